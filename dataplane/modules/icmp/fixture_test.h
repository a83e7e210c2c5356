// SPDX-License-Identifier: Apache-2.0
// For the tests of icmp and fragment: a gateway with hosts on two core ports and subscribers on an access port.
//
//   `north`   10.1.0.1/24, 2001:db8:1::1/64   host 10.1.0.9 and 2001:db8:1::9.
//   `south`   10.2.0.1/24, 2001:db8:2::1/64   host and GTP-U peer 10.2.0.9 and 2001:db8:2::9
//
//   `homes`   100.64.0.1/10, 2001:db8:a::1/48 subscribers with S-tag 100 and MRU 1400.
//     C-tag 1   100.64.0.5 and 2001:db8:a:5::/64, tunnel over IPv4
//     C-tag 2   100.64.0.6, tunnel over IPv6
//     C-tag 3   100.64.0.7, plain IP towards the core
#ifndef ICMP_FIXTURE_TEST_H
#define ICMP_FIXTURE_TEST_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "core/port.h"
#include "testkit/testkit.h"
#include "wire/checksum.h"
#include "wire/eth.h"
#include "wire/gtpu.h"
#include "wire/icmp.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIXTURE_TEID_DOWN 0x2000 // + C-tag
#define FIXTURE_TEID_UP (0x10000 + FIXTURE_TEID_DOWN) // + C-tag

static const uint8_t peer_north[6] = {0x02, 0x11, 0, 0, 0, 1}, peer_south[6] = {0x02, 0x22, 0, 0, 0, 2};
static const uint8_t fixture_home[6] = {0x02, 0x33, 0, 0, 0, 3};

static inline void fixture_session(
	const char *name, uint16_t c_tag, const char *ue4, const char *ue6, const char *path, const char *local)
{
	struct kit_session k = kit_session(
		"homes", fixture_home, 100, c_tag, 0, ue4, ue6, path ? path : "", FIXTURE_TEID_DOWN + c_tag);

	k.s.mru = 1400;
	k.pdr[1].local = kit_address(local);
	if (path == NULL)
		k.far[0].outer = API_OUTER_NONE;
	kit_put_session(name, &k);
}

static inline void fixture_start_with(const struct api_engine *e)
{
	kit_start(e);
	kit_begin();
	kit_port("north", API_ROLE_CORE);
	kit_port("south", API_ROLE_CORE);
	kit_port("homes", API_ROLE_ACCESS);
	kit_interface("north", "north", "10.1.0.1/24", "2001:db8:1::1/64");
	kit_interface("south", "south", "10.2.0.1/24", "2001:db8:2::1/64");
	kit_interface("homes", "homes", "100.64.0.1/10", "2001:db8:a::1/48");
	kit_neighbour("north", "10.1.0.9", peer_north);
	kit_neighbour("north", "2001:db8:1::9", peer_north);
	kit_neighbour("south", "10.2.0.9", peer_south);
	kit_neighbour("south", "2001:db8:2::9", peer_south);
	kit_path("upf4", "10.2.0.1", "10.2.0.9");
	kit_path("upf6", "2001:db8:2::1", "2001:db8:2::9");
	fixture_session("home-1", 1, "100.64.0.5", "2001:db8:a:5::/64", "upf4", "10.2.0.1");
	fixture_session("home-2", 2, "100.64.0.6", NULL, "upf6", "2001:db8:2::1");
	fixture_session("home-3", 3, "100.64.0.7", NULL, NULL, "10.2.0.1");
	if (kit_commit() != 0) {
		fprintf(stderr, "the fixture does not start: %s\n", kit_error());
		exit(1);
	}
	kit_run();
}

// Limits: 1000 ICMP errors and echo replies a second.
static inline void fixture_start(uint32_t workers)
{
	struct api_engine e = kit_engine();

	e.workers = workers;
	e.icmp_error_rate = e.echo_rate = 1000;
	fixture_start_with(&e);
}

// Moves the clock in steps, as time does.
static inline void fixture_wait(double seconds)
{
	for (int i = 0; i < (int)(seconds * 10 + 0.5); i++)
		kit_advance(100001);
}

// Begins a test: limits are fresh, nothing is held, no frame has left.
static inline int fixture_fresh(void **state)
{
	fixture_wait(2);
	kit_clear();
	return 0;
}

static inline void fixture_balance(void)
{
	assert_true(kit_balance());
}

// Frames that left, by any port.
static inline uint32_t fixture_outs(void)
{
	return kit_count("north") + kit_count("south") + kit_count("homes");
}

struct fixture_frame {
	uint8_t bytes[2048];
	uint32_t length;
};

static inline void fixture_receive(const char *port, const struct fixture_frame *f)
{
	assert_int_equal(kit_send(port, f->bytes, f->length), 0);
	kit_run();
}

static inline void fixture_append(struct fixture_frame *f, const void *bytes, uint32_t n)
{
	memcpy(f->bytes + f->length, bytes, n);
	f->length += n;
}

static inline void fixture_ethernet(struct fixture_frame *f, const char *port, uint16_t c_tag, uint16_t type)
{
	uint8_t tags[10];

	f->length = 0;
	fixture_append(f, &port_by_name(port)->mac, 6);
	fixture_append(f, port[0] == 'n' ? peer_north : port[0] == 's' ? peer_south : fixture_home, 6);
	store16(tags, ETH_TYPE_STAG);
	store16(tags + 2, 100);
	store16(tags + 4, ETH_TYPE_CTAG);
	store16(tags + 6, c_tag);
	store16(tags + 8, type);
	if (c_tag != 0)
		fixture_append(f, tags, 8);
	fixture_append(f, tags + 8, 2);
}

// A UDP packet of `length` bytes; returns where its IP header begins. No checksum yet.
static inline uint8_t *fixture_udp(
	struct fixture_frame *f, const char *source, const char *destination, uint8_t ttl, uint32_t length)
{
	struct api_address s = kit_address(source), d = kit_address(destination);
	uint8_t *p = f->bytes + f->length;
	uint32_t header = s.family == 4 ? 20 : 40;

	memset(p, 0, length);
	if (s.family == 4) {
		p[0] = 0x45;
		store16(p + 2, (uint16_t)length);
		p[8] = ttl;
		p[9] = IP_PROTOCOL_UDP;
		memcpy(p + 12, s.bytes, 4);
		memcpy(p + 16, d.bytes, 4);
		ip4_checksum_set(p);
	} else {
		p[0] = 0x60;
		store16(p + 4, (uint16_t)(length - 40));
		p[6] = IP_PROTOCOL_UDP;
		p[7] = ttl;
		memcpy(p + 8, s.bytes, 16);
		memcpy(p + 24, d.bytes, 16);
	}
	store16(p + header, 4000);
	store16(p + header + 2, 5000);
	store16(p + header + 4, (uint16_t)(length - header));
	f->length += length;
	return p;
}

// Fills a UDP payload with a pattern and sets the checksum that fixture_udp left out.
static inline void fixture_pattern(uint8_t *ip, uint32_t length)
{
	uint32_t header = ip[0] >> 4 == 4 ? 20 : 40;
	uint32_t address = header == 20 ? 12 : 8, size = header == 20 ? 4 : 16;

	for (uint32_t i = header + 8; i < length; i++)
		ip[i] = (uint8_t)(i * 7 + (i >> 8));
	memset(ip + header + 6, 0, 2);
	uint16_t sum = checksum_finish(
		checksum_add(checksum_pseudo(ip[0] >> 4, ip + address, ip + address + size, 17, length - header),
			ip + header, length - header));
	memcpy(ip + header + 6, &sum, 2);
}

// A UDP packet of `length` bytes from a host on a core port; IPv4 with DF or not.
static inline uint8_t *fixture_plain(struct fixture_frame *f, const char *port, const char *from, const char *to,
	uint8_t ttl, uint32_t length, int df)
{
	fixture_ethernet(f, port, 0, strchr(from, ':') ? ETH_TYPE_IP6 : ETH_TYPE_IP4);
	uint8_t *ip = fixture_udp(f, from, to, ttl, length);
	if (df) {
		ip[6] |= 0x40;
		ip4_checksum_set(ip);
	}
	fixture_pattern(ip, length);
	return ip;
}

static inline uint8_t *fixture_from_home(
	struct fixture_frame *f, uint16_t c_tag, const char *from, const char *to, uint8_t ttl, uint32_t length, int df)
{
	fixture_ethernet(f, "homes", c_tag, strchr(from, ':') ? ETH_TYPE_IP6 : ETH_TYPE_IP4);
	uint8_t *ip = fixture_udp(f, from, to, ttl, length);
	if (df) {
		ip[6] |= 0x40;
		ip4_checksum_set(ip);
	}
	fixture_pattern(ip, length);
	return ip;
}

// A packet of `length` bytes from the peer to a subscriber, in the tunnel over IPv4. Returns the inner packet.
static inline uint8_t *fixture_from_tunnel(
	struct fixture_frame *f, uint16_t c_tag, const char *from, const char *to, uint32_t length, int df)
{
	struct fixture_frame inner = {.length = 0};
	uint8_t *p = fixture_udp(&inner, from, to, 64, length);

	if (df) {
		p[6] |= 0x40;
		ip4_checksum_set(p);
	}
	fixture_pattern(p, length);
	fixture_ethernet(f, "south", 0, ETH_TYPE_IP4);
	uint8_t *ip = fixture_udp(f, "10.2.0.9", "10.2.0.1", 64, 44 + length);
	store16(ip + 20, GTPU_PORT);
	store16(ip + 22, GTPU_PORT);
	memset(ip + 26, 0, 2); // no UDP checksum
	gtpu_put_gpdu(ip + 28, FIXTURE_TEID_DOWN + c_tag, 9, GTPU_PDU_DL, (uint16_t)length);
	memcpy(ip + 44, p, length);
	return ip + 44;
}

static inline void fixture_echo(struct fixture_frame *f, const uint8_t *ip, uint32_t length)
{
	// Turns the UDP packet at ip into an echo request of the same length.
	uint8_t *p = f->bytes + (ip - f->bytes);
	uint32_t header = p[0] >> 4 == 4 ? 20 : 40;
	uint64_t sum = 0;

	p[header] = header == 20 ? ICMP4_ECHO : ICMP6_ECHO;
	p[header + 1] = 0;
	memset(p + header + 2, 0, 2);
	store32(p + header + 4, 0x00070001);
	if (header == 20) {
		p[9] = IP_PROTOCOL_ICMP;
		ip4_checksum_set(p);
	} else {
		p[6] = IP_PROTOCOL_ICMP6;
		sum = checksum_pseudo(6, p + 8, p + 24, IP_PROTOCOL_ICMP6, length - 40);
	}
	uint16_t check = checksum_finish(checksum_add(sum, p + header, length - header));
	memcpy(p + header + 2, &check, 2);
}

struct fixture_packet {
	struct eth_info eth;
	struct ip_info ip;
	const uint8_t *p; // IP header
	uint32_t length; // of the IP packet
};

// The n-th frame that left by `port`, decoded; it must hold a proper IP packet.
static inline struct fixture_packet fixture_out(uint32_t n, const char *port)
{
	struct fixture_packet x;

	assert_in_range(n + 1, 1, kit_count(port));
	const uint8_t *frame = kit_frame(port, n)->bytes;
	uint32_t size = kit_frame(port, n)->length;
	assert_int_equal(eth_parse(frame, size, &x.eth), ETH_OK);
	x.p = frame + x.eth.length;
	assert_int_equal(ip_parse(x.p, size - x.eth.length, size - x.eth.length, &x.ip), IP_OK);
	assert_true(x.ip.version == 6 || ip4_checksum_ok(x.p));
	assert_int_equal(x.eth.ethertype, x.ip.version == 4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
	x.length = x.ip.length;
	return x;
}

static inline void fixture_address_is(const uint8_t *bytes, const char *text)
{
	struct api_address a = kit_address(text);

	assert_memory_equal(bytes, a.bytes, a.family == 4 ? 4 : 16);
}

// The packet is an ICMP message with this type and code, and its checksum is right.
static inline const uint8_t *fixture_icmp(const uint8_t *p, const struct ip_info *ip, uint8_t type, uint8_t code)
{
	uint32_t size = ip->length - ip->l4;
	uint64_t sum = ip->version == 4 ? 0 : checksum_pseudo(6, ip->source, ip->destination, IP_PROTOCOL_ICMP6, size);

	assert_int_equal(ip->protocol, ip->version == 4 ? IP_PROTOCOL_ICMP : IP_PROTOCOL_ICMP6);
	assert_int_equal(p[ip->l4], type);
	assert_int_equal(p[ip->l4 + 1], code);
	assert_int_equal(checksum_finish(checksum_add(sum, p + ip->l4, size)), 0);
	return p + ip->l4;
}

#endif
