// SPDX-License-Identifier: Apache-2.0
// VRFs: the same addresses and routes twice, each its own.
#include "instance/instance.h"
#include "ip/router_test.h"
#include "path/path.h"
#include "route/route.h"
#include "testkit/frame.h"
#include "testkit/mobile.h"
#include "testkit/reasons.h"
#include <errno.h>

// Interfaces red and blue: 10.50.0.1/24, 2001:db8:50::1/64, on VLAN 20 of north and of south.
static const uint8_t peer[2][6] = {{2, 0, 0, 0, 0xaa, 1}, {2, 0, 0, 0, 0xbb, 1}};
static const char *const names[2] = {"red", "blue"}, *const ports[2] = {"north", "south"};

static struct api_interface vrf_interface(int blue, const char *vrf)
{
	struct api_interface i = router_interface(ports[blue], 20, 0, "10.50.0.1/24", "2001:db8:50::1/64");

	snprintf(i.vrf, sizeof(i.vrf), "%s", vrf);
	return i;
}

static void put_vrf_route(const char *vrf, const char *prefix, const char *via, const char *interface)
{
	struct api_route r = {.prefix = router_address(prefix), .via = router_address(via)};
	char key[API_NAME];

	snprintf(r.vrf, sizeof(r.vrf), "%s", vrf);
	snprintf(r.interface, sizeof(r.interface), "%s", interface);
	snprintf(key, sizeof(key), "%.16s|%.12s", prefix, vrf);
	kit_put(API_ROUTE, key, &r, sizeof(r));
}

static void put_both(void)
{
	kit_begin();
	for (int blue = 0; blue < 2; blue++) {
		struct api_interface i = vrf_interface(blue, names[blue]);

		kit_put(API_INTERFACE, names[blue], &i, sizeof(i));
		put_vrf_route(names[blue], "0.0.0.0/0", "10.50.0.9", "");
		put_vrf_route(names[blue], "::/0", "2001:db8:50::9", "");
		kit_neighbour(names[blue], "10.50.0.9", peer[blue]);
		kit_neighbour(names[blue], "2001:db8:50::9", peer[blue]);
	}
	assert_int_equal(router_commit(), 0);
	kit_clear();
}

static int setup(void **state)
{
	if (router_start(state) != 0)
		return -1;
	put_both();
	return 0;
}

static void refused(const char *text)
{
	assert_int_not_equal(router_commit(), 0);
	if (strstr(kit_error(), text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", kit_error(), text);
}

static void send(int blue, struct frame *f)
{
	const uint8_t *to = port_by_name(ports[blue])->mac.addr_bytes;

	frame_ethernet(f, to, peer[blue], f->at[0] >> 4 == 6 ? 0x86dd : 0x0800);
	frame_tag(f, 0x8100, 20);
	assert_int_equal(kit_send(ports[blue], f->at, f->length), 0);
	kit_run();
}

static void send_udp(int blue, const char *from, const char *to, uint8_t ttl)
{
	struct frame f;

	frame_payload(&f, 20);
	frame_udp(&f, 4000, 5000);
	frame_ip(&f, from, to, 17);
	if (f.at[0] >> 4 == 4) {
		f.at[8] = ttl;
		frame_ip4_sum(&f);
	} else {
		f.at[7] = ttl;
	}
	send(blue, &f);
}

// One frame left, by the VRF's interface to its peer.
static const uint8_t *left_by(int blue)
{
	static uint8_t packet[2048];

	assert_int_equal(router_count(), 1);
	assert_int_equal(kit_count(ports[blue]), 1);
	const struct kit_frame *f = router_out(0);

	assert_memory_equal(f->bytes, peer[blue], 6);
	assert_int_equal(load16(f->bytes + 12), 0x8100);
	assert_int_equal(load16(f->bytes + 14) & 0xfff, 20);
	memcpy(packet, f->bytes + 18, f->length - 18);
	kit_clear();
	return packet;
}

static void each_by_its_own_table(void **state)
{
	// Twice: the second time a worker knows the destination.
	for (int round = 0; round < 2; round++)
		for (int blue = 0; blue < 2; blue++) {
			send_udp(blue, "10.50.0.9", "198.51.100.7", 64);
			assert_int_equal(left_by(blue)[8], 63);
			send_udp(blue, "2001:db8:50::9", "2001:db8:ffff::7", 64);
			assert_int_equal(left_by(blue)[7], 63);
		}
	kit_begin();
	put_vrf_route("blue", "198.51.100.0/24", "10.50.0.9", "");
	kit_delete(API_ROUTE, "0.0.0.0/0|red");
	assert_int_equal(router_commit(), 0);
	send_udp(1, "10.50.0.9", "198.51.100.7", 64);
	left_by(1);
	send_udp(0, "10.50.0.9", "198.51.100.7", 64); // no route in red: an ICMP error goes back in it
	const uint8_t *ip = left_by(0);
	assert_int_equal(ip[9], 1);
	assert_int_equal(ip[20], 3);
	kit_begin();
	kit_delete(API_ROUTE, "198.51.100.0/24|blue");
	put_vrf_route("red", "0.0.0.0/0", "10.50.0.9", "");
	assert_int_equal(router_commit(), 0);
}

static void what_we_say_stays_in_it(void **state)
{
	for (int blue = 0; blue < 2; blue++) {
		struct frame f;

		frame_payload(&f, 8);
		frame_icmp_echo(&f, "203.0.113.5", "10.50.0.1");
		send(blue, &f);
		assert_int_equal(left_by(blue)[20], 0); // echo reply
		send_udp(blue, "203.0.113.5", "198.51.100.7", 1);
		assert_int_equal(left_by(blue)[20], 11); // time exceeded
	}
}

// 10.1.0.1 is our address in the default VRF alone: in red it is another host's.
static void ours_in_one_is_not_ours_in_another(void **state)
{
	struct frame f;

	frame_payload(&f, 8);
	frame_icmp_echo(&f, "10.50.0.9", "10.1.0.1");
	send(0, &f);
	assert_int_equal(left_by(0)[20], 8); // the request, routed on
	assert_true(ip_is_local(0, 4, router_address("10.1.0.1").bytes));
	uint8_t red = interfaces_by_name(interfaces_now(), "red")->vrf;
	assert_int_not_equal(red, 0);
	assert_false(ip_is_local(red, 4, router_address("10.1.0.1").bytes));
	assert_true(ip_is_local(VRF_ANY, 4, router_address("10.1.0.1").bytes));
	assert_false(ip_is_local(0, 4, router_address("10.50.0.1").bytes));
}

// A datagram is made of the fragments of one VRF.
static void fragments_stay_apart(void **state)
{
	for (int last = 0; last < 2; last++) {
		for (int piece = 0; piece < 2; piece++) {
			struct frame f;

			frame_payload(&f, 16);
			frame_icmp_echo(&f, "10.50.0.9", "10.50.0.1");
			uint8_t ip[20];
			memcpy(ip, f.at, 20);
			if (piece == 1) { // the last 8 bytes of 24, of which the first piece has 16
				f.at += 16;
				f.length -= 16;
				memcpy(f.at, ip, 20);
			} else {
				f.length -= 8;
			}
			store16(f.at + 2, (uint16_t)f.length);
			store16(f.at + 4, (uint16_t)(0x7700 + last));
			store16(f.at + 6, piece == 0 ? 0x2000 : 2);
			frame_ip4_sum(&f);
			send(piece == 0 ? 0 : last, &f);
		}
		assert_int_equal(router_count(), last == 0 ? 1 : 0); // red and red; red and blue
		kit_clear();
	}
}

// Rows G24, G25, G27.
static void bad_packets_are_no_better_in_it(void **state)
{
	static const struct {
		const char *from, *to;
		uint8_t protocol;
		const char *reason;
	} row[] = {
		{"10.50.0.9", "10.50.0.1", 4, "ip-protocol-unreachable"},
		{"10.50.0.9", "10.50.0.1", 41, "ip-protocol-unreachable"},
		{"10.50.0.9", "10.50.0.1", 47, "ip-protocol-unreachable"},
		{"127.0.0.1", "198.51.100.7", 17, "ip-martian-source"},
		{"10.50.0.9", "127.0.0.1", 17, "ip-martian-destination"},
		{"10.50.0.9", "240.0.0.1", 17, "ip-martian-destination"},
		{"10.50.0.9", "224.0.0.9", 17, "ip-multicast"},
		{"2001:db8:50::9", "::1", 17, "ip-martian-destination"},
		{"10.50.0.9", "198.51.100.7", 6, "ip-transport-header"},
	};

	for (int blue = 0; blue < 2; blue++)
		for (size_t i = 0; i < RTE_DIM(row); i++) {
			struct kit_reasons before = kit_reasons();
			struct frame f;

			frame_payload(&f, 20);
			if (row[i].protocol == 6) {
				frame_tcp(&f, 4000, 5000);
				f.at[12] = 0x30; // data offset
			} else {
				frame_udp(&f, 4000, 5000);
			}
			frame_ip(&f, row[i].from, row[i].to, row[i].protocol);
			send(blue, &f);
			kit_only_rose(&before, row[i].reason, 1);
			assert_int_equal(router_count(), 0);
		}
}

static void an_interface_moves(void **state)
{
	struct api_interface red = vrf_interface(0, "green");

	kit_begin();
	kit_put(API_INTERFACE, "red", &red, sizeof(red));
	refused("no interface is in VRF red"); // its routes are there
	kit_begin();
	kit_delete(API_ROUTE, "0.0.0.0/0|red");
	kit_delete(API_ROUTE, "::/0|red");
	kit_put(API_INTERFACE, "red", &red, sizeof(red));
	put_vrf_route("green", "0.0.0.0/0", "10.50.0.9", "");
	assert_int_equal(router_commit(), 0);
	kit_clear();
	send_udp(0, "10.50.0.9", "198.51.100.7", 64);
	left_by(0);
	kit_begin();
	kit_delete(API_ROUTE, "0.0.0.0/0|green");
	assert_int_equal(router_commit(), 0);
	put_both();
	send_udp(0, "10.50.0.9", "198.51.100.7", 64);
	left_by(0);
}

static void put_interface(const char *name, const char *port, uint16_t vlan, const char *address, const char *vrf)
{
	struct api_interface i = router_interface(port, vlan, 0, address, NULL);

	snprintf(i.vrf, sizeof(i.vrf), "%s", vrf);
	kit_put(API_INTERFACE, name, &i, sizeof(i));
}

static void mixtures_are_refused(void **state)
{
	kit_begin();
	put_interface("homes", "homes", 0, "100.64.0.1/10", "red");
	refused("is on an access port");
	kit_begin();
	put_interface("new", "north", 30, "10.50.0.7/24", "red");
	refused("lies in a network of interface");
	kit_begin();
	put_vrf_route("green", "10.60.0.0/16", "10.50.0.9", "");
	refused("no interface is in VRF green");
	kit_begin();
	put_vrf_route("red", "10.60.0.0/16", "10.50.0.9", "blue");
	refused("interface blue is in VRF blue");
	kit_begin();
	put_vrf_route("red", "10.60.0.0/16", "10.1.0.9", "north");
	refused("interface north is in the default VRF");
	kit_begin();
	put_vrf_route("", "10.60.0.0/16", "10.50.0.9", "");
	refused("in no interface's network");
	kit_begin();
	put_vrf_route("red", "10.50.0.0/24", "10.50.0.9", "");
	refused("own network");
}

static void instances_have_one(void **state)
{
	struct api_instance mixed = kit_instance_body("red", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	struct api_instance endpoint = kit_instance_body("red", "10.50.0.1", API_LOOKUP_NONE, NULL);

	snprintf(mixed.interface[mixed.interfaces++], API_NAME, "blue");
	kit_begin();
	kit_put(API_INSTANCE, "mixed", &mixed, sizeof(mixed));
	refused("its interfaces red and blue are in different VRFs");
	kit_begin();
	kit_put(API_INSTANCE, "access", &endpoint, sizeof(endpoint));
	refused("endpoint 10.50.0.1 is on interfaces of several VRFs");
	kit_begin();
	kit_path("twice", "10.50.0.1", "10.50.0.9");
	refused("on interfaces of several VRFs");
}

// A tunnel's address stays in one VRF: a change to another VRF is refused while the tunnel exists.
static void a_tunnel_address_stays_single(void **state)
{
	kit_begin();
	put_interface("new", "north", 31, "10.51.0.1/24", "red");
	kit_path("p", "10.51.0.1", "10.51.0.9");
	assert_int_equal(router_commit(), 0);
	assert_int_equal(path_vrf(path_get((uint32_t)path_index("p"))), interfaces_vrf(interfaces_now(), "red"));
	kit_begin();
	put_interface("other", "south", 31, "10.51.0.1/24", "blue");
	refused("on interfaces of several VRFs");
	kit_begin();
	put_interface("new", "north", 31, "10.51.0.1/24", "blue");
	assert_int_equal(router_commit(), 0);
	assert_int_equal(path_vrf(path_get((uint32_t)path_index("p"))), interfaces_vrf(interfaces_now(), "blue"));
	kit_begin();
	kit_delete(API_PATH, "p");
	kit_delete(API_INTERFACE, "new");
	assert_int_equal(router_commit(), 0);
}

static void numbers_are_used_again(void **state)
{
	char name[API_NAME], last[API_NAME];

	for (int round = 0; round < 3; round++) {
		kit_begin();
		for (int i = 0; i < MAX_VRFS - 3; i++) {
			snprintf(name, sizeof(name), "v%d.%d", round, i);
			put_interface(name, "north", (uint16_t)(100 + i), "10.9.0.1/24", name);
		}
		assert_int_equal(router_commit(), 0);
		kit_begin();
		put_interface("more", "north", 99, "10.9.0.1/24", "more");
		snprintf(last, sizeof(last), "more than %d VRFs", MAX_VRFS);
		refused(last);
		kit_begin();
		for (int i = 0; i < MAX_VRFS - 3; i++) {
			snprintf(name, sizeof(name), "v%d.%d", round, i);
			kit_delete(API_INTERFACE, name);
		}
		assert_int_equal(router_commit(), 0);
	}
	kit_clear();
	send_udp(0, "10.50.0.9", "198.51.100.7", 64);
	left_by(0);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(each_by_its_own_table),
		cmocka_unit_test(what_we_say_stays_in_it),
		cmocka_unit_test(ours_in_one_is_not_ours_in_another),
		cmocka_unit_test(fragments_stay_apart),
		cmocka_unit_test(bad_packets_are_no_better_in_it),
		cmocka_unit_test(an_interface_moves),
		cmocka_unit_test(mixtures_are_refused),
		cmocka_unit_test(instances_have_one),
		cmocka_unit_test(a_tunnel_address_stays_single),
		cmocka_unit_test(numbers_are_used_again),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
