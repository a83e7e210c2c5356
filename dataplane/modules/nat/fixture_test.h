// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of NAT44: its configuration, packets of subscribers and to them.
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

// Two workers, walked in turn.
static inline int start_two_workers(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	for (int i = 0; i < 2; i++)
		e.cpu[i] = -1;
	fixture_start(&e);
	return 0;
}

static inline void put_on(uint32_t n, uint32_t worker)
{
	struct kit_mobile *k = upf_session(n);
	char name[8];

	k->s.worker = worker;
	snprintf(name, sizeof(name), "s%u", n);
	put(name, k);
}

// Sessions 1 to 3 and NAT44 go, and leave nothing.
static inline int all_gone(void **state)
{
	kit_begin();
	kit_delete(API_SESSION, "s1");
	kit_delete(API_SESSION, "s2");
	kit_delete(API_SESSION, "s3");
	commit();
	kit_advance(2500000);
	assert_int_equal(row().used, 0); // what sessions had goes with them
	assert_int_equal(row().mappings, 0);
	assert_int_equal(row().subscribers, 0);
	assert_int_equal(row().pairs, 0);
	kit_begin();
	kit_delete(API_NAT, "core");
	commit();
	kit_run();
	assert_true(kit_balance());
	assert_int_equal(kit_buffers_in_use(), 0);
	return 0;
}

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

// Sends a packet of subscriber n, checks the output, and returns its external side.
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

// Both fragments of a packet from or to `port` pass, the later one first or last. *want: as it leaves.
static inline void both_pass(
	const char *port, const struct frame *in, const char *to, const struct frame *want, int later_first)
{
	kit_clear();
	for (int i = 0; i < 2; i++) {
		const struct frame *f = &in[i ^ later_first];

		assert_int_equal(kit_send(port, f->at, f->length), 0);
		kit_run();
	}
	if (all_out() != 2)
		kit_print();
	assert_int_equal(kit_count(to), 2);
	assert_true(same_frame(to, 0, &want[0]));
	assert_true(same_frame(to, 1, &want[1]));
	assert_int_equal(kit_totals().held, 0);
	assert_true(kit_balance());
}

static inline void in_two(struct frame f[2], const struct frame *whole)
{
	split(&f[0], 24, 0, 1, whole);
	split(&f[1], load16(whole->at + 2) - 44u, 3, 0, whole);
}

static inline void fragments_out(uint32_t n, uint8_t protocol, uint16_t port, const struct external *e, int later_first)
{
	static struct frame f[2], want[2], whole;

	make(&whole, protocol, ue(n), port, FAR4, 53);
	in_two(f, &whole);
	make(&whole, protocol, e->address, e->port, FAR4, 53);
	in_two(want, &whole);
	for (int i = 0; i < 2; i++) {
		up(&f[i], n);
		hop(&want[i]);
		link_layer(&want[i], "internet", 0);
	}
	both_pass("ran", f, "internet", want, later_first);
}

static inline void fragments_in(uint32_t n, uint8_t protocol, const struct external *e, uint16_t port, int later_first)
{
	static struct frame f[2], want[2], whole;
	uint16_t far = protocol == 1 ? 0 : 53;

	make(&whole, protocol, FAR4, far, e->address, e->port);
	in_two(f, &whole);
	make(&whole, protocol, FAR4, far, ue(n), port);
	in_two(want, &whole);
	for (int i = 0; i < 2; i++) {
		link_layer(&f[i], "internet", 1);
		tunnel(&want[i], "10.1.0.1", "10.1.0.2", 0x200 + n, 0xff, API_PDU_DL);
		link_layer(&want[i], "ran", 0);
	}
	both_pass("internet", f, "ran", want, later_first);
}

#endif
