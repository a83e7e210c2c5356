// SPDX-License-Identifier: Apache-2.0
// A router's duties to subscribers with an IP core side: errors both ways, fragments both ways, access lists, reverse
// paths, captive subscribers, address translation.
#include "access/bng_test.h"
#include "wire/bytes.h"
#include <rte_ip.h>

#define PORTAL "http://portal.example/"

static const struct bng homes[2] = {{1, BNG_QINQ, 0}, {2, BNG_UNTAGGED, 1}};
static struct kit_mobile session;

static void put_both(void)
{
	for (int i = 0; i < 2; i++)
		bng_put(&homes[i]);
}

// Bytes of a home's frame in front of its IP packet.
static uint32_t front_of(const struct bng *b)
{
	return 14 + (b->tags == BNG_QINQ ? 8 : b->tags == BNG_SINGLE ? 4 : 0) + (b->pppoe ? 8 : 0);
}

// One frame left by the port, an ICMP error of the family with this type and code, to `to`.
static void is_error(const char *port, uint32_t front, int family, uint8_t type, uint8_t code)
{
	assert_int_equal(kit_count(port), 1);
	const uint8_t *ip = kit_frame(port, 0)->bytes + front, *icmp = ip + (family == 4 ? 20 : 40);

	assert_int_equal(ip[0] >> 4, family);
	assert_int_equal(ip[family == 4 ? 9 : 6], family == 4 ? 1 : 58);
	assert_int_equal(icmp[0], type);
	assert_int_equal(icmp[1], code);
	if (family == 4)
		assert_true(ip4_checksum_ok(ip));
}

static void send_frame(const char *port, const struct frame *f)
{
	kit_clear();
	assert_int_equal(kit_send(port, f->at, f->length), 0);
	kit_run();
}

// RFC 1812 §5.3.1, RFC 4443 §3.3: from the home and to it.
static void hop_limit(void **state)
{
	static struct frame f;

	put_both();
	for (int i = 0; i < 8; i++) {
		const struct bng *b = &homes[i & 1];
		int family = i & 2 ? 6 : 4, up = i >> 2;
		const char *ue = gateway_ue(b->home, family), *far = family == 4 ? FAR4 : FAR6;

		inner(&f, up ? ue : far, up ? far : ue, 60);
		bng_ttl(&f, 1);
		up ? bng_access(&f, b, 1) : bng_internet(&f, 0);
		for (int n = 0; n < 2; n++) {
			kit_advance(1000000);
			send_frame(up ? "access" : "internet", &f);
			is_error(up ? "access" : "internet", up ? front_of(b) : 14, family, family == 4 ? 11 : 3, 0);
		}
	}
	assert_true(kit_balance());
}

// Exceeds the PPPoE subscriber's MTU: fragmented if IPv4 without DF, else the sender gets an ICMP error.
static void too_big(void **state)
{
	static struct frame f;

	put_both();
	for (int i = 0; i < 2; i++) {
		int family = i ? 6 : 4;

		inner(&f, family == 4 ? FAR4 : FAR6, gateway_ue(2, family), family == 4 ? 1493 - 28 : 1493 - 48);
		if (family == 4) {
			f.at[6] = 0x40;
			frame_ip4_sum(&f);
		}
		bng_internet(&f, 0);
		kit_advance(1000000);
		send_frame("internet", &f);
		is_error("internet", 14, family, family == 4 ? 3 : 2, family == 4 ? 4 : 0);
		const uint8_t *icmp = kit_frame("internet", 0)->bytes + 14 + (family == 4 ? 20 : 40);
		assert_int_equal(load32(icmp + 4) & 0xffff, 1492);
	}
	inner(&f, FAR4, gateway_ue(2, 4), 1493 - 28);
	bng_internet(&f, 0);
	send_frame("internet", &f);
	assert_int_equal(kit_count("access"), 2);
	for (uint32_t i = 0; i < 2; i++) {
		const uint8_t *ip = kit_frame("access", i)->bytes + front_of(&homes[1]);

		assert_true(load16(ip + 2) <= 1492);
		assert_int_equal(ip[8], 63);
	}
	bng_expect(&homes[1], 0, FAR4, gateway_ue(2, 4), 1492 - 28);
	bng_expect(&homes[1], 0, FAR6, gateway_ue(2, 6), 1492 - 48);
	assert_true(kit_balance());
}

// Fragments pass as they are, either way, to the rule that filters choose for the whole.
static void fragments(void **state)
{
	static struct frame part, want;

	put_both();
	for (int up = 0; up < 2; up++)
		for (int first = 1; first >= 0; first--) {
			inner(&part, up ? gateway_ue(1, 4) : FAR4, up ? FAR4 : gateway_ue(1, 4), 64);
			store16(part.at + 6, first ? 0x2000 : 9);
			frame_ip4_sum(&part);
			want = part;
			want.at = want.room + (part.at - part.room);
			bng_ttl(&want, 63);
			if (up) {
				bng_access(&part, &homes[0], 1);
				bng_internet(&want, 1);
			} else {
				bng_internet(&part, 0);
				bng_access(&want, &homes[0], 0);
			}
			expect(up ? "access" : "internet", &part, up ? "internet" : "access", &want);
		}
}

// A blocklist of the subscriber's own: a rule in front that drops. An allowlist: none but rules with filters.
static void lists_of_a_subscriber(void **state)
{
	static struct frame f;

	for (int family = 4; family <= 6; family += 2) {
		bng_session(&session, &homes[0]);
		struct api_pdr *blocked = kit_pdr_ue(&session, API_FROM_ACCESS, NULL, 3);
		blocked->match |= API_PDR_ENDPOINT | API_PDR_FRAMED;
		blocked->precedence = 10;
		kit_sdf(&session, blocked)->remote_port[0] = 5000;
		session.sdf[0].remote_port[1] = 5000;
		kit_far_ip(&session, 3, API_FROM_CORE, "internet")->action = API_FAR_DROP;
		kit_sdf(&session, &session.pdr[1])->remote_port[0] = 4000;
		session.sdf[1].remote_port[1] = 4000;
		bng_commit("home-1", &session);
		const char *ue = gateway_ue(1, family), *far = family == 4 ? FAR4 : FAR6;
		inner(&f, ue, far, 60);
		bng_access(&f, &homes[0], 1);
		for (int i = 0; i < 3; i++)
			expect_drop("access", &f, "uplink-far-drop");
		bng_expect(&homes[0], 0, far, ue, 60); // from port 4000
		inner(&f, far, ue, 60);
		store16(f.at + (family == 4 ? 20 : 40), 4001);
		bng_internet(&f, 0);
		for (int i = 0; i < 3; i++)
			expect_drop("internet", &f, "downlink-no-pdr");
	}
	bng_put(&homes[0]);
}

// Lists of all subscribers on the uplink, and of an instance on the downlink.
static void lists_of_all(void **state)
{
	struct {
		struct api_acl head;
		struct api_acl_rule rule[1];
	} l = {.head = {.default_action = API_PERMIT, .count = 1}};
	static struct frame f;

	put_both();
	l.rule[0] = (struct api_acl_rule){.destination = kit_address("198.51.100.66/32"),
		.source_port = {0, UINT16_MAX},
		.destination_port = {0, UINT16_MAX},
		.action = API_DENY};
	kit_begin();
	kit_put(API_ACL, "uplink", &l, sizeof(l));
	commit();
	bng_expect(&homes[1], 1, gateway_ue(2, 4), FAR4, 60);
	inner(&f, gateway_ue(2, 4), "198.51.100.66", 60);
	bng_access(&f, &homes[1], 1);
	for (int i = 0; i < 3; i++)
		expect_drop("access", &f, "firewall-uplink-deny");
	l.rule[0].destination = (struct api_address){0};
	l.rule[0].source = kit_address("198.51.100.66/32");
	kit_begin();
	kit_delete(API_ACL, "uplink");
	kit_put(API_ACL, "in/internet", &l, sizeof(l));
	commit();
	bng_expect(&homes[1], 0, FAR4, gateway_ue(2, 4), 60);
	bng_expect(&homes[0], 0, FAR6, "2001:db8:f001:5::1", 60);
	inner(&f, "198.51.100.66", gateway_ue(2, 4), 60);
	bng_internet(&f, 0);
	for (int i = 0; i < 3; i++)
		expect_drop("internet", &f, "firewall-instance-deny");
	kit_begin();
	kit_delete(API_ACL, "in/internet");
	commit();
}

// TCP port 80 of a captive subscriber is answered with 302; DNS passes by a rule in front; nothing else does. The
// gateway itself answers pings.
static void captive(void **state)
{
	static struct frame f;

	bng_session(&session, &homes[1]);
	struct api_far_more *more = kit_far_more(&session, &session.far[0]);
	more->redirect = API_REDIRECT_URL;
	snprintf(more->redirect_to, sizeof(more->redirect_to), PORTAL);
	struct api_pdr *dns = kit_pdr_ue(&session, API_FROM_ACCESS, NULL, 3);
	dns->match |= API_PDR_ENDPOINT;
	dns->precedence = 10;
	struct api_sdf *port = kit_sdf(&session, dns);
	port->remote_port[0] = port->remote_port[1] = 5000;
	kit_far_ip(&session, 3, API_FROM_CORE, "internet");
	bng_commit("home-2", &session);
	for (int family = 4; family <= 6; family += 2) {
		const char *ue = gateway_ue(2, family), *far = family == 4 ? FAR4 : FAR6;

		bng_expect(&homes[1], 1, ue, far, 60);
		frame_payload(&f, 60);
		frame_udp(&f, 4000, 443);
		frame_ip(&f, ue, far, 17);
		bng_access(&f, &homes[1], 1);
		expect_drop("access", &f, "redirect-not-http");
		frame_payload(&f, 0);
		frame_tcp(&f, 4000, 80);
		frame_ip(&f, ue, far, 6);
		uint8_t *ip = f.at, *tcp = ip + (family == 4 ? 20 : 40);
		uint16_t sum = family == 4 ? rte_ipv4_udptcp_cksum((const struct rte_ipv4_hdr *)ip, tcp)
					   : rte_ipv6_udptcp_cksum((const struct rte_ipv6_hdr *)ip, tcp);
		memcpy(tcp + 16, &sum, 2);
		bng_access(&f, &homes[1], 1);
		send_frame("access", &f);
		assert_int_equal(kit_count("access"), 1); // SYN, ACK
		const uint8_t *answer = kit_frame("access", 0)->bytes + front_of(&homes[1]) + (family == 4 ? 20 : 40);
		assert_int_equal(load16(answer), 80);
		assert_int_equal(answer[13] & 0x12, 0x12);
	}
	frame_payload(&f, 32);
	frame_icmp_echo(&f, gateway_ue(2, 4), "100.64.0.1"); // the gateway answers, whatever the redirection
	bng_access(&f, &homes[1], 1);
	send_frame("access", &f);
	assert_int_equal(kit_count("access"), 1);
	assert_int_equal(kit_frame("access", 0)->bytes[front_of(&homes[1]) + 20], 0); // Echo Reply
	bng_put(&homes[1]);
	assert_true(kit_balance());
}

// RFC 3704: packets from the core whose source has no route back there.
static void reverse_path(void **state)
{
	struct api_interface n6 = {.port = "internet", .count = 2, .flags = API_INTERFACE_RPF_STRICT};
	static struct frame f;

	put_both();
	n6.address[0] = kit_address("192.0.2.1/24");
	n6.address[1] = kit_address("2001:db8:6::1/64");
	kit_begin();
	kit_put(API_INTERFACE, "n6", &n6, sizeof(n6));
	commit();
	bng_expect(&homes[0], 0, FAR4, gateway_ue(1, 4), 60);
	bng_expect(&homes[0], 0, FAR6, gateway_ue(1, 6), 60);
	inner(&f, "10.0.0.77", gateway_ue(1, 4), 60); // of the other core link
	bng_internet(&f, 0);
	for (int i = 0; i < 3; i++)
		expect_drop("internet", &f, "ip-reverse-path");
	n6.flags = 0;
	kit_begin();
	kit_put(API_INTERFACE, "n6", &n6, sizeof(n6));
	commit();
}

// Both ways through address translation, on the fast path too; home to home is not translated.
static void translated(void **state)
{
	struct api_nat nat = kit_nat("100.64.0.0/16", "192.0.2.77/32");
	static struct frame in, out;

	put_both();
	kit_begin();
	kit_put(API_NAT, "internet", &nat, sizeof(nat));
	if (kit_commit() != 0)
		fail_msg("%s", kit_error());
	inner(&in, gateway_ue(2, 4), FAR4, 60);
	bng_access(&in, &homes[1], 1);
	uint16_t port = 0;
	for (int i = 0; i < 4; i++) {
		send_frame("access", &in);
		assert_int_equal(kit_count("internet"), 1);
		const uint8_t *ip = kit_frame("internet", 0)->bytes + 14;
		assert_int_equal(load32(ip + 12), 0xc000024d);
		assert_int_equal(ip[8], 63);
		assert_true(port == 0 || port == load16(ip + 20));
		port = load16(ip + 20);
	}
	for (int i = 0; i < 4; i++) {
		frame_payload(&in, 60);
		frame_udp(&in, 5000, port);
		frame_ip(&in, FAR4, "192.0.2.77", 17);
		bng_internet(&in, 0);
		frame_payload(&out, 60);
		frame_udp(&out, 5000, 4000);
		frame_ip(&out, FAR4, gateway_ue(2, 4), 17);
		bng_ttl(&out, 63);
		bng_access(&out, &homes[1], 0);
		uint64_t full = kit_node_packets("session-ue");
		expect("internet", &in, "access", &out);
		if (i == 3)
			assert_int_equal(kit_node_packets("session-ue"), full);
	}
	bng_expect(&homes[0], 0, FAR6, gateway_ue(1, 6), 60);
	kit_begin();
	kit_delete(API_NAT, "internet");
	commit();
}

// The fast path reads each packet by itself, not by an earlier one, also those that it leaves to the full nodes. IPv4
// options to a mapped port, IPv6 headers of any length.
static void translated_options(void **state)
{
	struct api_nat nat = kit_nat("100.64.0.0/16", "192.0.2.77/32");
	static struct frame before, in, out;

	put_both();
	kit_begin();
	kit_put(API_NAT, "internet", &nat, sizeof(nat));
	commit();
	inner(&in, gateway_ue(2, 4), FAR4, 60);
	bng_access(&in, &homes[1], 1);
	send_frame("access", &in);
	assert_int_equal(kit_count("internet"), 1);
	uint16_t port = load16(kit_frame("internet", 0)->bytes + 14 + 20);
	for (uint32_t size = 8; size <= 1024; size *= 2)
		for (int i = 0; i < 3; i++) {
			inner(&before, FAR6, gateway_ue(1, 6), 60);
			frame_options(&before, size);
			bng_internet(&before, 0);
			send_frame("internet", &before);
			assert_int_equal(kit_count("access"), 1);
			for (int way = 0; way < 2; way++) {
				struct frame *f = way ? &out : &in;

				frame_payload(f, 60);
				frame_udp(f, 5000, way ? 4000 : port);
				frame_ip(f, FAR4, way ? gateway_ue(2, 4) : "192.0.2.77", 17);
				frame_options(f, 4);
			}
			bng_internet(&in, 0);
			bng_ttl(&out, 63);
			bng_access(&out, &homes[1], 0);
			expect("internet", &in, "access", &out);
		}
	kit_begin();
	kit_delete(API_NAT, "internet");
	commit();
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(hop_limit),
		cmocka_unit_test(too_big),
		cmocka_unit_test(fragments),
		cmocka_unit_test(lists_of_a_subscriber),
		cmocka_unit_test(lists_of_all),
		cmocka_unit_test(captive),
		cmocka_unit_test(reverse_path),
		cmocka_unit_test(translated),
		cmocka_unit_test(translated_options),
	};

	return cmocka_run_group_tests(list, bng_setup, NULL);
}
