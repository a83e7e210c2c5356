// SPDX-License-Identifier: Apache-2.0
// For the tests of icmp and fragment: the router of ip/router_test.h with hosts at both ends, a GTP-U peer behind "south"
// (10.2.0.9 and 2001:db8:2::9), and subscribers behind "homes":
//   S-tag 100, C-tag 1   100.64.0.1 is the gateway, UE 100.64.0.5 and 2001:db8:a:5::/64, tunnel over IPv4, MRU 1400
//   S-tag 100, C-tag 2   UE 100.64.0.6, tunnel over IPv6, MRU 1400
//   S-tag 100, C-tag 3   UE 100.64.0.7, plain IP towards the core, MRU 1400
#ifndef ICMP_WORLD_TEST_H
#define ICMP_WORLD_TEST_H

#include "ip/router_test.h"
#include "wire/eth.h"
#include "wire/gtpu.h"
#include "wire/icmp.h"

#define WORLD_TEID_UP 0x1000 // + C-tag
#define WORLD_TEID_DOWN 0x2000 // + C-tag

static const uint8_t world_home[6] = {0x02, 0x33, 0, 0, 0, 3};

static inline void world_path(const char *name, const char *local, const char *peer)
{
	struct api_path p = {.local = router_address(local), .peer = router_address(peer)};

	router_put(API_PATH, name, &p, sizeof(p));
}

static inline void world_session(uint16_t c_tag, const char *ue4, const char *ue6, const char *path, const char *local)
{
	struct {
		struct api_session s;
		struct api_pdr pdr[2];
		struct api_far far[2];
		struct api_qer qer[1];
	} x;
	char name[API_NAME];

	memset(&x, 0, sizeof(x));
	x.s = (struct api_session){.seid = c_tag,
		.encap = API_ENCAP_QINQ,
		.outer_tpid = 0x88a8,
		.s_tag = 100,
		.c_tag = c_tag,
		.mru = 1400,
		.port = "homes",
		.ue_ip4 = router_address(ue4),
		.ue_ip6 = router_address(ue6),
		.pdrs = 2,
		.fars = 2,
		.qers = 1};
	memcpy(x.s.mac, world_home, 6);
	x.pdr[0] = (struct api_pdr){.precedence = 100,
		.id = 1,
		.source = API_FROM_ACCESS,
		.match = API_PDR_ENDPOINT | API_PDR_UE_IP,
		.outer_header_removal = 1,
		.qers = 1,
		.far = 1,
		.qer = {1}};
	x.pdr[1] = (struct api_pdr){.precedence = 100,
		.id = 2,
		.source = API_FROM_CORE,
		.match = API_PDR_FTEID,
		.outer_header_removal = 1,
		.qers = 1,
		.far = 2,
		.qer = {1},
		.teid = WORLD_TEID_DOWN + c_tag,
		.local = router_address(local)};
	x.far[0] = (struct api_far){.id = 1,
		.action = API_FAR_FORWARD,
		.destination = API_FROM_CORE,
		.dscp = 0xff,
		.outer = path ? API_OUTER_GTPU : API_OUTER_NONE,
		.teid = WORLD_TEID_UP + c_tag};
	if (path)
		snprintf(x.far[0].path, API_NAME, "%s", path);
	x.far[1] = (struct api_far){.id = 2,
		.action = API_FAR_FORWARD,
		.destination = API_FROM_ACCESS,
		.dscp = 0xff,
		.outer = API_OUTER_ENDPOINT};
	x.qer[0] = (struct api_qer){.id = 1, .qfi = 9};
	snprintf(name, sizeof(name), "home-%u", c_tag);
	router_put(API_SESSION, name, &x, offsetof(typeof(x), qer) + sizeof(x.qer));
}

static inline int world_start(void **state)
{
	struct api_interface i = router_interface("homes", 0, 0, "100.64.0.1/10", "2001:db8:a::1/48");

	if (router_start(state) != 0)
		return -1;
	assert_int_equal(object_begin(), 0);
	i.address[i.count++] = router_address("fe80::1/64");
	router_put(API_INTERFACE, "homes", &i, sizeof(i));
	router_put_neighbour("n4", "north", "10.1.0.9", peer_north);
	router_put_neighbour("n6", "north", "2001:db8:1::9", peer_north);
	router_put_neighbour("s4", "south", "10.2.0.9", peer_south);
	router_put_neighbour("s6", "south", "2001:db8:2::9", peer_south);
	world_path("upf4", "10.2.0.1", "10.2.0.9");
	world_path("upf6", "2001:db8:2::1", "2001:db8:2::9");
	world_session(1, "100.64.0.5", "2001:db8:a:5::/64", "upf4", "10.2.0.1");
	world_session(2, "100.64.0.6", NULL, "upf6", "2001:db8:2::1");
	world_session(3, "100.64.0.7", NULL, NULL, "10.2.0.1");
	if (router_commit() != 0) {
		fprintf(stderr, "the world does not start: %s\n", router_refusal);
		return -1;
	}
	engine_run();
	return 0;
}

static inline int world_main(const char *name, const struct CMUnitTest *tests, size_t count)
{
	engine_mode.threads = 0;
	if (engine_eal_init("test", 0, 1024, 0, NULL) != 0)
		return 1;
	return _cmocka_run_group_tests(name, tests, count, world_start, NULL);
}

// Begins a test: empties the list of frames and lets a second pass, so that limits are fresh and nothing is held.
static inline int world_fresh(void **state)
{
	router_wait(2);
	router_outs = 0;
	return 0;
}

// ---- frames ----------------------------------------------------------------------------------------------------------

// Fills a UDP payload with a pattern and sets the checksum that router_udp left out.
static inline void world_pattern(uint8_t *ip, uint32_t length)
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
static inline uint8_t *world_plain(struct router_frame *f, const char *port, const char *from, const char *to,
	uint8_t ttl, uint32_t length, int df)
{
	int six = strchr(from, ':') != NULL;

	router_ethernet(f, port, port[0] == 'n' ? peer_north : peer_south, 0, 0, six ? 0x86dd : 0x0800);
	uint8_t *ip = router_udp(f, from, to, ttl, (uint16_t)(length - 8 - (six ? 40 : 20)));
	if (df) {
		ip[6] |= 0x40;
		ip4_checksum_set(ip);
	}
	world_pattern(ip, length);
	return ip;
}

static inline uint8_t *world_from_home(
	struct router_frame *f, uint16_t c_tag, const char *from, const char *to, uint8_t ttl, uint32_t length, int df)
{
	int six = strchr(from, ':') != NULL;

	router_ethernet(f, "homes", world_home, 100, c_tag, six ? 0x86dd : 0x0800);
	uint8_t *ip = router_udp(f, from, to, ttl, (uint16_t)(length - 8 - (six ? 40 : 20)));
	if (df) {
		ip[6] |= 0x40;
		ip4_checksum_set(ip);
	}
	world_pattern(ip, length);
	return ip;
}

// A packet of `length` bytes from the peer to a subscriber, in the tunnel over IPv4. Returns the inner packet.
static inline uint8_t *world_from_tunnel(
	struct router_frame *f, uint16_t c_tag, const char *from, const char *to, uint32_t length, int df)
{
	struct router_frame inner = {.length = 0};
	uint8_t *p = router_udp(&inner, from, to, 64, (uint16_t)(length - 8 - (strchr(from, ':') ? 40 : 20)));

	if (df) {
		p[6] |= 0x40;
		ip4_checksum_set(p);
	}
	world_pattern(p, length);
	router_ethernet(f, "south", peer_south, 0, 0, 0x0800);
	uint8_t *ip = router_udp(f, "10.2.0.9", "10.2.0.1", 64, (uint16_t)(16 + length));
	store16(ip + 20, GTPU_PORT);
	store16(ip + 22, GTPU_PORT);
	memset(ip + 26, 0, 2); // no UDP checksum
	gtpu_put_gpdu(ip + 28, WORLD_TEID_DOWN + c_tag, 9, GTPU_PDU_DL, (uint16_t)length);
	memcpy(ip + 44, p, length);
	return ip + 44;
}

static inline void world_echo(struct router_frame *f, const uint8_t *ip, uint32_t length)
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

// ---- what came out ---------------------------------------------------------------------------------------------------

struct world_packet {
	struct eth_info eth;
	struct ip_info ip;
	const uint8_t *p; // IP header
	uint32_t length; // of the IP packet
};

// The n-th frame that left, decoded; it must have left by `port` and hold a proper IP packet.
static inline struct world_packet world_out(uint32_t n, const char *port)
{
	struct world_packet x;

	assert_in_range(n + 1, 1, router_outs);
	assert_int_equal(router_out[n].port, port_by_name(port)->index);
	const uint8_t *frame = router_out[n].frame;
	uint32_t size = router_out[n].length;
	assert_int_equal(eth_parse(frame, size, &x.eth), ETH_OK);
	x.p = frame + x.eth.length;
	assert_int_equal(ip_parse(x.p, size - x.eth.length, size - x.eth.length, &x.ip), IP_OK);
	assert_true(x.ip.version == 6 || ip4_checksum_ok(x.p));
	assert_int_equal(x.eth.ethertype, x.ip.version == 4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
	x.length = x.ip.length;
	return x;
}

static inline void world_address_is(const uint8_t *bytes, const char *text)
{
	struct api_address a = router_address(text);

	assert_memory_equal(bytes, a.bytes, a.family == 4 ? 4 : 16);
}

// The packet is an ICMP message with this type and code, and its checksum is right.
static inline const uint8_t *world_icmp(const uint8_t *p, const struct ip_info *ip, uint8_t type, uint8_t code)
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
