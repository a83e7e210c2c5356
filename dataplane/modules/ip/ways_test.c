// SPDX-License-Identifier: Apache-2.0
// ip-output caches destinations' next hops: after any change, the next packet goes the new way.
#include "ip/router_test.h"
#include "route/route.h"
#include "route/tables.h"
#include "testkit/frame.h"
#include "wire/arp.h"
#include "wire/nd.h"

static const uint8_t mac_a[6] = {2, 0xa, 0, 0, 0, 1}, mac_b[6] = {2, 0xb, 0, 0, 0, 2}, mac_c[6] = {2, 0xc, 0, 0, 0, 3};

static void commit(void)
{
	if (router_commit() != 0)
		fail_msg("refused: %s", kit_error());
	kit_clear();
}

static void packet_to(struct router_frame *f, const char *destination)
{
	int six = strchr(destination, ':') != NULL;

	router_ethernet(f, "north", peer_north, 0, 0, six ? 0x86dd : 0x0800);
	router_udp(f, six ? "2001:db8:1::5" : "10.1.0.5", destination, 64, 30);
}

// Frames by the port since kit_clear() with this packet in them.
static uint32_t passed_on(const char *port, const char *destination)
{
	struct api_address d = kit_address(destination);
	uint32_t n = 0;

	for (uint32_t i = 0; i < kit_count(port); i++) {
		const uint8_t *p = kit_frame(port, i)->bytes;
		uint32_t l3 = load16(p + 12) == 0x8100 ? 18 : 14;
		const uint8_t *ip = p + l3;
		int six = load16(p + l3 - 2) == 0x86dd;

		if (six == (d.family == 6) && ip[six ? 6 : 9] == 17 &&
			memcmp(ip + (six ? 24 : 16), d.bytes, six ? 16 : 4) == 0)
			n++;
	}
	return n;
}

// Two packets, so that the second finds the first one's cache entry.
static void leads_to(const char *destination, const char *port, const uint8_t mac[6])
{
	struct router_frame f;

	packet_to(&f, destination);
	kit_clear();
	router_receive("north", &f);
	router_receive("north", &f);
	assert_int_equal(router_count(), 2);
	assert_int_equal(passed_on(port, destination), 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_memory_equal(kit_frame(port, i)->bytes, mac, 6);
}

static void leads_nowhere(const char *destination)
{
	struct router_frame f;

	packet_to(&f, destination);
	kit_clear();
	router_receive("north", &f);
	assert_int_equal(passed_on("north", destination) + passed_on("south", destination), 0);
}

// The neighbour is asked for, and the packet waits.
static void asks_for(const char *destination, const char *port)
{
	uint64_t before = kit_reason("neighbour-resolve");

	leads_nowhere(destination);
	assert_int_equal(kit_reason("neighbour-resolve") - before, 1);
	assert_int_equal(kit_count(port), 1);
	assert_int_equal(load16(kit_frame(port, 0)->bytes + 12), strchr(destination, ':') ? 0x86dd : 0x0806);
}

static void answers(const char *port, const char *us, const char *neighbour, const uint8_t mac[6])
{
	struct router_frame f;

	memset(&f, 0, sizeof(f));
	if (strchr(neighbour, ':') == NULL) {
		router_ethernet(&f, port, mac, 0, 0, 0x0806);
		arp_put(f.bytes + f.length, ARP_REPLY, mac, kit_address(neighbour).bytes,
			port_by_name(port)->mac.addr_bytes, kit_address(us).bytes);
		f.length += ARP_LENGTH + 18;
	} else {
		router_ethernet(&f, port, mac, 0, 0, 0x86dd);
		f.length += nd_put_na(f.bytes + f.length, kit_address(neighbour).bytes, kit_address(us).bytes,
			kit_address(neighbour).bytes, mac, ND_SOLICITED | ND_OVERRIDE);
	}
	router_receive(port, &f);
}

static int setup(void **state)
{
	if (router_start(state) != 0)
		return -1;
	kit_begin();
	kit_neighbour("south", "10.2.0.7", mac_a);
	kit_neighbour("south", "10.2.0.8", mac_b);
	kit_neighbour("north", "10.1.0.9", mac_c);
	kit_neighbour("south", "2001:db8:2::7", mac_a);
	kit_neighbour("south", "2001:db8:2::8", mac_b);
	kit_neighbour("north", "2001:db8:1::9", mac_c);
	commit();
	return 0;
}

static void route(const char *key, const char *prefix, const char *via)
{
	kit_begin();
	if (via != NULL)
		router_put_route(key, prefix, via, "");
	else
		kit_delete(API_ROUTE, key);
	commit();
}

static void neighbour_goes(const char *interface, const char *address)
{
	char key[API_NAME];

	snprintf(key, sizeof(key), "%.8s|%.20s", interface, address);
	kit_begin();
	kit_delete(API_NEIGHBOUR, key);
	commit();
}

struct place {
	const char *prefix, *half, *near, *far; // far is in the half
	const char *a, *b, *c; // gateways
};

static void routes_change(const struct place *p)
{
	leads_nowhere(p->near);
	leads_nowhere(p->near);
	route("r", p->prefix, p->a);
	leads_to(p->near, "south", mac_a);
	leads_to(p->far, "south", mac_a);
	route("r", p->prefix, p->b);
	leads_to(p->near, "south", mac_b);
	route("r", p->prefix, p->c); // another port
	leads_to(p->near, "north", mac_c);
	leads_to(p->far, "north", mac_c);
	route("more", p->half, p->a);
	leads_to(p->far, "south", mac_a);
	leads_to(p->near, "north", mac_c);
	route("more", NULL, NULL);
	leads_to(p->far, "north", mac_c);
	route("r", NULL, NULL);
	leads_nowhere(p->near);
	leads_nowhere(p->far);
}

static void routes(void **state)
{
	static const struct place four = {"203.0.113.0/24", "203.0.113.128/25", "203.0.113.1", "203.0.113.200",
		"10.2.0.7", "10.2.0.8", "10.1.0.9"};
	static const struct place six = {"2001:db8:9::/48", "2001:db8:9:8000::/49", "2001:db8:9::1",
		"2001:db8:9:8000::1", "2001:db8:2::7", "2001:db8:2::8", "2001:db8:1::9"};

	routes_change(&four);
	routes_change(&six);
}

// A transaction that is refused changes nothing, though it held and released next hops.
static void refused_routes(void **state)
{
	route("r", "203.0.113.0/24", "10.2.0.7");
	leads_to("203.0.113.1", "south", mac_a);
	kit_begin();
	router_put_route("r", "203.0.113.0/24", "10.2.0.8", "");
	router_put_route("bad", "203.0.114.0/24", "172.16.0.1", "");
	assert_int_not_equal(kit_commit(), 0);
	leads_to("203.0.113.1", "south", mac_a);
	route("r", NULL, NULL);
	leads_nowhere("203.0.113.1");
}

static void neighbours_learnt(const char *neighbour, const char *us)
{
	asks_for(neighbour, "south");
	kit_clear();
	answers("south", us, neighbour, mac_a);
	assert_int_equal(passed_on("south", neighbour), 1); // what waited
	leads_to(neighbour, "south", mac_a);
	router_wait(60); // it is asked again, does not answer, and is forgotten
	asks_for(neighbour, "south");
	answers("south", us, neighbour, mac_b); // a new one has the address
	leads_to(neighbour, "south", mac_b);
}

static void neighbours(void **state)
{
	neighbours_learnt("10.2.0.50", "10.2.0.1");
	neighbours_learnt("2001:db8:2::50", "2001:db8:2::1");
}

static void static_neighbours(void **state)
{
	static const char *const addresses[] = {"10.2.0.60", "2001:db8:2::60"};

	for (int i = 0; i < 2; i++) {
		asks_for(addresses[i], "south");
		kit_begin();
		kit_neighbour("south", addresses[i], mac_a);
		commit();
		leads_to(addresses[i], "south", mac_a);
		kit_begin();
		kit_neighbour("south", addresses[i], mac_b);
		commit();
		leads_to(addresses[i], "south", mac_b);
		neighbour_goes("south", addresses[i]);
		leads_to(addresses[i], "south", mac_b);
		router_wait(5); // it does not answer
		leads_nowhere(addresses[i]);
	}
	router_wait(10);
}

// A released slot goes to another neighbour only after all others were used.
static uint32_t take_slot(uint32_t interface, const struct ip_address *address, uint32_t want)
{
	for (uint32_t i = 0; i < 3 * MAX_NEXT_HOPS; i++) {
		uint32_t index = next_hop_ensure(interface, address);

		if (index == want)
			return index;
		next_hop_release(index);
	}
	return NEXT_HOP_NONE;
}

static void slots_are_reused(void **state)
{
	struct api_address was = kit_address("10.2.0.70"), is = kit_address("10.2.0.71");
	struct ip_address old = ip_address_of(4, was.bytes), fresh = ip_address_of(4, is.bytes);
	const struct interface *south = interface_find(port_by_name("south")->index, 0, 0);
	struct rte_ether_addr a, b;

	memcpy(&a, mac_a, 6);
	memcpy(&b, mac_b, 6);
	uint32_t index = next_hop_ensure(south->index, &old);
	next_hop_resolve(index, &a);
	leads_to("10.2.0.70", "south", mac_a);
	uint32_t generation = ip_ways_generation;
	next_hop_release(index);
	assert_int_not_equal(ip_ways_generation, generation);
	generation = ip_ways_generation;
	assert_int_equal(take_slot(south->index, &fresh, index), index);
	assert_int_not_equal(ip_ways_generation, generation);
	next_hop_resolve(index, &b);
	asks_for("10.2.0.70", "south");
	leads_to("10.2.0.71", "south", mac_b);
	next_hop_release(index);
	asks_for("10.2.0.71", "south");
	router_wait(10);
}

static void interfaces_go(void **state)
{
	struct api_interface i = router_interface("south", 77, 0, "10.77.0.1/24", NULL);

	kit_begin();
	kit_put(API_INTERFACE, "south.77", &i, sizeof(i));
	kit_neighbour("south.77", "10.77.0.2", mac_a);
	commit();
	leads_to("10.77.0.2", "south", mac_a);
	assert_int_equal(load16(kit_frame("south", 0)->bytes + 14), 77);
	kit_begin();
	kit_delete(API_NEIGHBOUR, "south.77|10.77.0.2");
	kit_delete(API_INTERFACE, "south.77");
	commit();
	leads_nowhere("10.77.0.2");
	assert_int_equal(kit_count("south"), 0);
	i = router_interface("north", 78, 0, "10.77.0.1/24", NULL);
	kit_begin();
	kit_put(API_INTERFACE, "north.78", &i, sizeof(i));
	kit_neighbour("north.78", "10.77.0.2", mac_b);
	commit();
	leads_to("10.77.0.2", "north", mac_b);
	assert_int_equal(load16(kit_frame("north", 0)->bytes + 14), 78);
	// The destination becomes an address of ours.
	i = router_interface("north", 78, 0, "10.77.0.2/24", NULL);
	kit_begin();
	kit_delete(API_NEIGHBOUR, "north.78|10.77.0.2");
	kit_put(API_INTERFACE, "north.78", &i, sizeof(i));
	commit();
	leads_nowhere("10.77.0.2");
	kit_begin();
	kit_delete(API_INTERFACE, "north.78");
	commit();
	leads_nowhere("10.77.0.2");
}

#define MANY 600 // more than are remembered

static void many_text(char *to, size_t room, uint32_t i)
{
	if (i % 3 == 2)
		snprintf(to, room, "2001:db8:%x::5", i);
	else
		snprintf(to, room, "198.18.%u.%u", i >> 8, i & 255);
}

static void many_routes(uint32_t shift)
{
	char text[64], key[API_NAME];

	kit_begin();
	for (uint32_t i = 0; i < MANY; i++) {
		int six = i % 3 == 2, second = (i + shift) % 2;

		many_text(text, sizeof(text), i);
		snprintf(key, sizeof(key), "many-%u", i);
		router_put_route(key, text,
			six      ? second ? "2001:db8:2::8" : "2001:db8:2::7"
			: second ? "10.2.0.8"
				 : "10.2.0.7",
			"");
	}
	commit();
}

// All of them in another order each time, in one go.
static void many_lead(uint32_t shift, uint32_t step)
{
	static struct router_frame f;
	char text[64];

	kit_clear();
	for (uint32_t n = 0; n < MANY; n++) {
		many_text(text, sizeof(text), n * step % MANY);
		packet_to(&f, text);
		assert_int_equal(kit_send("north", f.bytes, f.length), 0);
	}
	kit_run();
	assert_int_equal(kit_count("south"), MANY);
	for (uint32_t n = 0; n < MANY; n++) {
		const uint8_t *p = kit_frame("south", n)->bytes;
		int six = load16(p + 12) == 0x86dd;
		uint32_t i = load16(p + 14 + (six ? 24 + 4 : 18));

		assert_int_equal(i % 3 == 2, six);
		assert_memory_equal(p, (i + shift) % 2 ? mac_b : mac_a, 6);
	}
}

static void many(void **state)
{
	for (uint32_t shift = 0; shift < 2; shift++) {
		many_routes(shift);
		many_lead(shift, 1);
		many_lead(shift, 7);
		many_lead(shift, 599);
	}
	kit_begin();
	for (uint32_t i = 0; i < MANY; i++) {
		char key[API_NAME];

		snprintf(key, sizeof(key), "many-%u", i);
		kit_delete(API_ROUTE, key);
	}
	commit();
	leads_nowhere("198.18.0.1");
}

// Addresses with equal word sums, hence one hash, among them an IPv4 address and an IPv6 address with its bytes as the
// low word.
static void equal_words(void **state)
{
	static const char *const sixes[] = {"::cb00:7105:0:0", "2001:db8:0:0:eb01:7cbd:0:0"};

	route("four", "203.0.113.5/32", "10.2.0.7");
	route("six", "::/0", "2001:db8:2::8");
	for (int i = 0; i < 2; i++)
		for (int round = 0; round < 3; round++) {
			leads_to("203.0.113.5", "south", mac_a);
			leads_to(sixes[i], "south", mac_b);
		}
	route("four", NULL, NULL);
	leads_nowhere("203.0.113.5");
	leads_to(sixes[0], "south", mac_b);
	route("six", NULL, NULL);
	leads_nowhere(sixes[0]);
	route("one", "2001:db8:100::/48", "2001:db8:2::7");
	route("other", "2001:db8:101::/48", "2001:db8:2::8");
	for (int round = 0; round < 3; round++) {
		leads_to("2001:db8:100::1", "south", mac_a);
		leads_to("2001:db8:101::1:1", "south", mac_b);
	}
	route("one", NULL, NULL);
	route("other", NULL, NULL);
}

static void echo_from(const char *port, const uint8_t mac[6], const char *to)
{
	static struct frame f;

	frame_payload(&f, 16);
	frame_icmp_echo(&f, "fe80::99", to);
	frame_ethernet(&f, port_by_name(port)->mac.addr_bytes, mac, 0x86dd);
	kit_advance(100000); // echoes have a limit
	kit_clear();
	assert_int_equal(kit_send(port, f.at, f.length), 0);
	kit_run();
	assert_int_equal(router_count(), 1);
	assert_int_equal(kit_count(port), 1);
	assert_memory_equal(kit_frame(port, 0)->bytes, mac, 6);
	assert_int_equal(kit_frame(port, 0)->bytes[14 + 40], 129);
}

// A link-local destination is another one on each link.
static void link_local(void **state)
{
	struct api_interface i = router_interface("north", 0, 0, "10.1.0.1/24", "2001:db8:1::1/64");

	i.address[i.count++] = kit_address("fe80::3/64");
	kit_begin();
	kit_put(API_INTERFACE, "north", &i, sizeof(i));
	kit_neighbour("north", "fe80::99", mac_c);
	kit_neighbour("south", "fe80::99", mac_a);
	commit();
	for (int round = 0; round < 3; round++) {
		echo_from("south", mac_a, "fe80::2");
		echo_from("south", mac_a, "fe80::2");
		echo_from("north", mac_c, "fe80::3");
		echo_from("north", mac_c, "fe80::3");
	}
}

static int balanced(void **state)
{
	assert_true(kit_balance());
	return 0;
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test_teardown(routes, balanced),
		cmocka_unit_test_teardown(refused_routes, balanced),
		cmocka_unit_test_teardown(neighbours, balanced),
		cmocka_unit_test_teardown(static_neighbours, balanced),
		cmocka_unit_test_teardown(slots_are_reused, balanced),
		cmocka_unit_test_teardown(interfaces_go, balanced),
		cmocka_unit_test_teardown(many, balanced),
		cmocka_unit_test_teardown(equal_words, balanced),
		cmocka_unit_test_teardown(link_local, balanced),
	};

	return cmocka_run_group_tests(all, setup, NULL);
}
