// SPDX-License-Identifier: Apache-2.0
// What the tests of NAT44 share: its configuration, packets of subscribers and to them.
#ifndef NAT_FIXTURE_TEST_H
#define NAT_FIXTURE_TEST_H

#include "session/mobile_fixture.h"
#include "testkit/events.h"
#include "wire/ip.h"

#define OUTSIDE "203.0.113.4" // and .5

struct external {
	char address[16];
	uint16_t port;
};

static inline struct api_nat nat_body(void)
{
	struct api_nat n = kit_nat("10.45.0.0/16", OUTSIDE "/31");

	n.port[1] = 1024 + 8 * 16 - 1;
	n.block = 16;
	n.blocks = 2;
	return n;
}

static inline void put_nat(const struct api_nat *n)
{
	kit_begin();
	kit_put(API_NAT, "core", n, sizeof(*n));
	commit();
}

static inline struct api_nat_row row(void)
{
	uint32_t count;
	const struct api_nat_row *r = kit_rows(API_TABLE_NAT, "core", sizeof(*r), &count);

	assert_int_equal(count, 1);
	return *r;
}

// ---- packets --------------------------------------------------------------------------------------------------------

static inline uint32_t l4_sum_at(uint8_t protocol)
{
	return protocol == 17 ? 6 : protocol == 6 ? 16 : 2;
}

static inline uint16_t l4_sum(const uint8_t *ip)
{
	uint32_t length = load16(ip + 2) - 20u;

	return checksum_finish(
		checksum_add(ip[9] == 1 ? 0 : checksum_pseudo(4, ip + 12, ip + 16, ip[9], length), ip + 20, length));
}

// A right packet; of ICMP an echo request from, or a reply to, the port.
static inline void make(
	struct frame *f, uint8_t protocol, const char *from, uint16_t source, const char *to, uint16_t destination)
{
	uint16_t sum;

	frame_payload(f, 41);
	if (protocol == 17)
		frame_udp(f, source, destination);
	else if (protocol == 6)
		frame_tcp(f, source, destination);
	else {
		uint8_t *icmp = frame_push(f, 8);

		icmp[0] = source != 0 ? 8 : 0;
		store16(icmp + 4, source != 0 ? source : destination);
	}
	frame_ip(f, from, to, protocol);
	sum = l4_sum(f->at);
	memcpy(f->at + 20 + l4_sum_at(protocol), &sum, 2);
}

static inline void up(struct frame *f, uint32_t n)
{
	tunnel(f, "10.1.0.2", "10.1.0.1", 0x100 + n, 0xff, API_PDU_UL);
	link_layer(f, "ran", 1);
}

static inline const char *ue(uint32_t n)
{
	static char text[4][16];

	snprintf(text[n], sizeof(text[n]), "10.45.0.%u", n);
	return text[n];
}

// Sends a packet of subscriber n, looks at what leaves, and says as whom.
static inline struct external out(uint32_t n, uint8_t protocol, uint16_t source, const char *to, uint16_t destination)
{
	static struct frame f;
	struct external e;

	make(&f, protocol, ue(n), source, to, destination);
	up(&f, n);
	send_frame("ran", &f);
	if (kit_count("internet") != 1)
		kit_print();
	assert_int_equal(kit_count("internet"), 1);
	const uint8_t *ip = kit_frame("internet", 0)->bytes + 14;
	snprintf(e.address, sizeof(e.address), "%u.%u.%u.%u", ip[12], ip[13], ip[14], ip[15]);
	e.port = load16(ip + 20 + (protocol == 1 ? 4 : 0));
	make(&f, protocol, e.address, e.port, to, destination);
	hop(&f);
	link_layer(&f, "internet", 0);
	assert_true(same_frame("internet", 0, &f));
	assert_true(kit_balance());
	return e;
}

static inline void refused_out(uint32_t n, uint8_t protocol, uint16_t source, const char *reason)
{
	static struct frame f;

	make(&f, protocol, ue(n), source, FAR4, 53);
	up(&f, n);
	expect_drop("ran", &f, reason);
}

static inline void in(struct frame *f, uint8_t protocol, const char *from, uint16_t source, const struct external *e)
{
	make(f, protocol, from, protocol == 1 ? 0 : source, e->address, e->port);
	link_layer(f, "internet", 1);
}

// A packet from outside reaches subscriber n at this port.
static inline void reaches(
	uint32_t n, uint8_t protocol, const char *from, uint16_t source, const struct external *e, uint16_t port)
{
	static struct frame f, want;

	make(&want, protocol, from, protocol == 1 ? 0 : source, ue(n), port);
	tunnel(&want, "10.1.0.1", "10.1.0.2", 0x200 + n, 0xff, API_PDU_DL);
	link_layer(&want, "ran", 0);
	in(&f, protocol, from, source, e);
	expect("internet", &f, "ran", &want);
}

static inline void unreachable(uint8_t protocol, const struct external *e)
{
	static struct frame f;

	in(&f, protocol, FAR4, 53, e);
	expect_drop("internet", &f, "nat-no-mapping");
}

static inline int same(const struct external *a, const struct external *b)
{
	return strcmp(a->address, b->address) == 0 && a->port == b->port;
}

// Part of the UDP packet `whole`, `offset` times eight bytes behind its IP header.
static inline void split(struct frame *f, uint32_t payload, uint16_t offset, int more, const struct frame *whole)
{
	frame_payload(f, payload);
	memcpy(f->at, whole->at + 20 + offset * 8u, payload);
	frame_push(f, 20);
	memcpy(f->at, whole->at, 20);
	store16(f->at + 2, (uint16_t)(20 + payload));
	store16(f->at + 4, 0x4711);
	store16(f->at + 6, (uint16_t)(offset | (more ? 0x2000 : 0)));
	frame_ip4_sum(f);
}

#endif
