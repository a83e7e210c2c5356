// SPDX-License-Identifier: Apache-2.0
// Our ICMP errors about packets translated by NAT44 or NPTv6. Each sender sees its own packet; the data network learns
// no inside address (RFC 5508 REQ-4).
#include "access/bng_test.h"
#include "wire/icmp.h"
#include <rte_ip.h>

static const struct bng homes[2] = {{1, BNG_QINQ, 0}, {2, BNG_UNTAGGED, 1}};
#define FRONT 22 // of a home's frame: with two tags, or PPPoE
#define ELSEWHERE4 "198.51.100.66" // the way to these leads by the core port
#define ELSEWHERE6 "2001:db8:fffe::66"

static struct external {
	char address[2][64]; // IPv4, IPv6
	uint16_t port[2];
} outside[2];

static const char *far_of(int family)
{
	return family == 4 ? FAR4 : FAR6;
}

// With a right checksum. ICMP: an echo reply to the port. ESP: the port is an SPI.
static void make(struct frame *f, uint8_t protocol, const char *from, const char *to, uint16_t port, uint32_t payload)
{
	uint16_t sum;

	frame_payload(f, payload);
	if (protocol == 17)
		frame_udp(f, 5000, port);
	else if (protocol == 6)
		frame_tcp(f, 5000, port);
	else if (protocol == 50)
		store32(frame_push(f, 8), port);
	else
		store16(frame_push(f, 8) + 4, port);
	frame_ip(f, from, to, protocol);
	if (protocol == 50)
		return;
	uint8_t *l4 = f->at + (f->at[0] >> 4 == 4 ? 20 : 40);

	if (f->at[0] >> 4 == 6)
		sum = rte_ipv6_udptcp_cksum((const struct rte_ipv6_hdr *)f->at, l4);
	else if (protocol == 1)
		sum = checksum_finish(checksum_add(0, l4, payload + 8));
	else
		sum = rte_ipv4_udptcp_cksum((const struct rte_ipv4_hdr *)f->at, l4);
	memcpy(l4 + (protocol == 17 ? 6 : protocol == 6 ? 16 : 2), &sum, 2);
}

static void dont_fragment(struct frame *f)
{
	if (f->at[0] >> 4 != 4)
		return;
	f->at[6] = 0x40;
	frame_ip4_sum(f);
}

static void address_text(char text[64], int family, const uint8_t *bytes)
{
	int n = 0;

	for (int i = 0; family == 4 && i < 4; i++)
		n += snprintf(text + n, 64 - n, "%s%u", i ? "." : "", bytes[i]);
	for (int i = 0; family == 6 && i < 8; i++)
		n += snprintf(text + n, 64 - n, "%s%x", i ? ":" : "", load16(bytes + 2 * i));
}

static void send_frame(const char *port, const struct frame *f)
{
	kit_clear();
	kit_advance(1000000); // of the limit of errors
	assert_int_equal(kit_send(port, f->at, f->length), 0);
	kit_run();
}

// The external form of a home's port 4000 of the protocol.
static void learn(int home, int family, uint8_t protocol)
{
	static struct frame f;
	int six = family == 6;

	frame_payload(&f, 20);
	if (protocol == 17)
		frame_udp(&f, 4000, 5000);
	else if (protocol == 6)
		frame_tcp(&f, 4000, 5000);
	else if (protocol == 50)
		store32(frame_push(&f, 8), 4000u + (uint32_t)home);
	else {
		uint8_t *icmp = frame_push(&f, 8);

		icmp[0] = 8;
		store16(icmp + 4, 4000);
	}
	frame_ip(&f, gateway_ue(homes[home].home, family), far_of(family), protocol);
	bng_access(&f, &homes[home], 1);
	send_frame("access", &f);
	assert_int_equal(kit_count("internet"), 1);
	const uint8_t *ip = kit_frame("internet", 0)->bytes + 14;

	address_text(outside[home].address[six], family, ip + (six ? 8 : 12));
	assert_string_not_equal(outside[home].address[six], gateway_ue(homes[home].home, family));
	outside[home].port[six] =
		protocol == 50 ? (uint16_t)(5000 + home) : load16(ip + (six ? 40 : 20) + (protocol == 1 ? 4 : 0));
}

// The IP packet at f->at as an error quotes it.
static const struct frame *quoted(const struct frame *f, uint8_t ttl)
{
	static struct frame copy;

	copy = *f;
	copy.at = copy.room + (f->at - f->room);
	bng_ttl(&copy, ttl);
	return &copy;
}

// One frame left: our address's error to the sender, with the IP packet at `sent` quoted.
static void tells(
	const char *port, uint32_t before, const struct frame *sent, const char *source, enum icmp_problem problem)
{
	int family = sent->at[0] >> 4;
	struct icmp_type type = icmp_type_of(problem, (uint8_t)family);
	uint32_t header = family == 4 ? 20 : 40, size = family == 4 ? 4 : 16, at = family == 4 ? 12 : 8;

	if (all_out() != 1 || kit_count(port) != 1)
		kit_print();
	assert_int_equal(all_out(), 1);
	assert_int_equal(kit_count(port), 1);
	const uint8_t *ip = kit_frame(port, 0)->bytes + before, *icmp = ip + header;
	uint32_t length = kit_frame(port, 0)->length - before - header;

	assert_int_equal(ip[0] >> 4, family);
	assert_memory_equal(ip + at, kit_address(source).bytes, size);
	assert_memory_equal(ip + at + size, sent->at + at, size);
	assert_true(family == 6 || ip4_checksum_ok(ip));
	assert_int_equal(checksum_finish(checksum_add(
				 family == 4 ? 0 : checksum_pseudo(6, ip + 8, ip + 24, 58, length), icmp, length)),
		0);
	assert_int_equal(icmp[0], type.type);
	assert_int_equal(icmp[1], type.code);
	assert_int_equal(length - 8, RTE_MIN(sent->length, family == 4 ? 548u : 1232u));
	assert_memory_equal(icmp + 8, sent->at, length - 8);
	assert_true(kit_balance());
}

static const char *ours(int family)
{
	return family == 4 ? "192.0.2.1" : "2001:db8:6::1";
}

static const char *gateway(int family)
{
	return family == 4 ? "100.64.0.1" : "2001:db8:1::1";
}

static void put_route(const char *prefix, const char *via)
{
	struct api_route r = {.prefix = kit_address(prefix), .via = kit_address(via)};

	kit_put(API_ROUTE, prefix, &r, sizeof(r));
}

static int start(void **state)
{
	struct api_nat nat = kit_nat("100.64.0.0/16", "192.0.2.77/32");
	struct api_nptv6 six = {.pairs = 1};

	nat.pairs = nat.pair_timeout = 64;
	nat.pairs_of_subscriber = 16;
	nat.pair_protocols = API_NAT_ESP;
	bng_start(NULL);
	for (int i = 0; i < 2; i++)
		bng_put(&homes[i]);
	six.inside[0] = kit_address("2001:db8:1::/48");
	six.outside[0] = kit_address("2001:db8:8::/48");
	kit_begin();
	kit_put(API_NAT, "internet", &nat, sizeof(nat));
	kit_put(API_NPTV6, "internet", &six, sizeof(six));
	put_route(ELSEWHERE4 "/32", "10.0.0.2");
	put_route(ELSEWHERE6 "/128", "fd00::2");
	commit();
	return 0;
}

// To a home's port by its external address.
static void comes_in(struct frame *f, int home, uint8_t protocol, const char *from, uint32_t payload)
{
	int six = strchr(from, ':') != NULL;

	learn(home, six ? 6 : 4, protocol);
	make(f, protocol, from, outside[home].address[six], outside[home].port[six], payload);
}

// RFC 1812 §5.3.1, RFC 4443 §3.3: towards a home, by routing. The error leaves by the interface that the packet came in
// on, or by an interface without translation.
static void hop_limit(void **state)
{
	static const struct {
		const char *from;
		uint8_t protocol;
		const char *port;
	} rows[] = {{FAR4, 17, "internet"}, {FAR4, 6, "internet"}, {FAR4, 1, "internet"}, {FAR6, 17, "internet"},
		{FAR6, 6, "internet"}, {ELSEWHERE4, 17, "core"}, {ELSEWHERE6, 17, "core"}, {FAR4, 50, "internet"}};
	static struct frame f;

	for (uint32_t i = 0; i < RTE_DIM(rows) * 2; i++) {
		comes_in(&f, i % 2, rows[i / 2].protocol, rows[i / 2].from, 700);
		bng_ttl(&f, 1);
		const struct frame *sent = quoted(&f, 1);

		bng_internet(&f, 0);
		send_frame("internet", &f);
		tells(rows[i / 2].port, 14, sent, ours(sent->at[0] >> 4), ICMP_PROBLEM_TTL);
	}
}

// Longer than the PPPoE subscriber takes (RFC 1191 §4, RFC 4443 §3.2).
static void too_big(void **state)
{
	static struct frame f;

	for (int family = 4; family <= 6; family += 2) {
		comes_in(&f, 1, 17, far_of(family), 1493 - 8 - (family == 4 ? 20 : 40));
		dont_fragment(&f);
		const struct frame *sent = quoted(&f, 63);

		bng_internet(&f, 0);
		send_frame("internet", &f);
		tells("internet", 14, sent, ours(family), ICMP_PROBLEM_TOO_BIG);
	}
	comes_in(&f, 1, 50, FAR4, 1493 - 8 - 20);
	dont_fragment(&f);
	const struct frame *sent = quoted(&f, 63);
	bng_internet(&f, 0);
	send_frame("internet", &f);
	tells("internet", 14, sent, ours(4), ICMP_PROBLEM_TOO_BIG);
}

static void home_hears(struct frame *f)
{
	int family = f->at[0] >> 4;

	dont_fragment(f);
	const struct frame *sent = quoted(f, 63);

	bng_access(f, &homes[0], 1);
	send_frame("access", f);
	tells("access", FRONT, sent, gateway(family), ICMP_PROBLEM_TOO_BIG);
}

// One home to the other by its external address: the sender knows no other.
static void turned_round(void **state)
{
	static struct frame f;

	for (int family = 4; family <= 6; family += 2) {
		learn(0, family, 17);
		comes_in(&f, 1, 17, gateway_ue(1, family), 1493 - 8 - (family == 4 ? 20 : 40));
		home_hears(&f);
	}
}

static void too_big_for_the_link(void)
{
	static struct frame f;

	for (int family = 4; family <= 6; family += 2) {
		learn(0, family, 17);
		make(&f, 17, gateway_ue(1, family), far_of(family), 5000, 1401 - 8 - (family == 4 ? 20 : 40));
		home_hears(&f);
	}
	make(&f, 50, gateway_ue(1, 4), FAR4, 5000, 1401 - 8 - 20);
	home_hears(&f);
}

// ip-output checks the MTU when the source is already an outside one; and the flow's next hop of several of equal cost.
static void too_big_out(void **state)
{
	struct api_interface n6 = {.port = "internet", .count = 2, .mtu = 1400};
	struct {
		struct api_route r;
		struct api_route_hop hop[1];
	} several = {.r.further = 1};

	n6.address[0] = kit_address("192.0.2.1/24");
	n6.address[1] = kit_address("2001:db8:6::1/64");
	kit_begin();
	kit_put(API_INTERFACE, "n6", &n6, sizeof(n6));
	commit();
	too_big_for_the_link();
	kit_begin();
	kit_neighbour("n6", "192.0.2.3", gateway_router);
	kit_neighbour("n6", "2001:db8:6::3", gateway_router);
	several.r.prefix = kit_address("198.51.100.0/24");
	several.r.via = kit_address("192.0.2.2");
	several.hop[0].via = kit_address("192.0.2.3");
	kit_put(API_ROUTE, "four", &several, sizeof(several));
	several.r.prefix = kit_address("2001:db8:ffff::/48");
	several.r.via = kit_address("2001:db8:6::2");
	several.hop[0].via = kit_address("2001:db8:6::3");
	kit_put(API_ROUTE, "six", &several, sizeof(several));
	commit();
	too_big_for_the_link();
	n6.mtu = 0;
	kit_begin();
	kit_delete(API_ROUTE, "four");
	kit_delete(API_ROUTE, "six");
	kit_put(API_INTERFACE, "n6", &n6, sizeof(n6));
	commit();
}

// A packet that came by a mapping to an address without a session is not forwarded with that address, wherever routes
// lead.
static void nobodys(void **state)
{
	static struct kit_mobile k;
	static struct frame f;

	kit_begin();
	kit_instance("internet", "n6", NULL, API_LOOKUP_DESTINATION, NULL);
	commit();
	bng_session(&k, &homes[0]);
	k.s.pdrs = 1; // uplink
	bng_commit("home-1", &k);
	comes_in(&f, 0, 17, FAR4, 60);
	bng_internet(&f, 0);
	expect_drop("internet", &f, "ue-unknown");
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(hop_limit),
		cmocka_unit_test(too_big),
		cmocka_unit_test(turned_round),
		cmocka_unit_test(too_big_out),
		cmocka_unit_test(nobodys),
	};

	return cmocka_run_group_tests(list, start, NULL);
}
