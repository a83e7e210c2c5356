// SPDX-License-Identifier: Apache-2.0
// Random transactions of routes and interfaces against a list: refusals, and addresses' next hops.
#include "ip/router_test.h"
#include "route/route.h"
#include <stdlib.h>

#define KEYS 80
#define LIMIT 60 // routes

struct model {
	struct api_address prefix[KEYS]; // family 0: no route of this key
	uint8_t via[KEYS]; // last octet of its gateway; 0: it discards
	struct api_address connected; // of the interface "moving"; family 0: there is none
};

static struct model now;

static struct api_address shortened(struct api_address a)
{
	for (uint32_t bit = a.prefix; bit < 128; bit++)
		a.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	return a;
}

// Few, so that keys meet on one.
static struct api_address random_prefix(void)
{
	static const uint8_t four[] = {12, 15, 16, 17, 24, 25, 32}, six[] = {32, 44, 48, 49, 56, 64, 128};
	int is_six = rand() % 2;
	struct api_address a = kit_address(is_six ? "2001:db8:0:0::/128" : "10.64.0.0/32");
	uint8_t *last = a.bytes + (is_six ? 3 : 0);

	last[1] |= (uint8_t)(rand() % 4 << (is_six ? 4 : 0));
	last[2] = (uint8_t)(rand() % 2);
	last[3] = (uint8_t)(rand() % 2 << 7 | rand() % 2);
	a.prefix = is_six ? six[rand() % RTE_DIM(six)] : four[rand() % RTE_DIM(four)];
	return shortened(a);
}

static struct api_address via_of(const struct model *m, int key)
{
	char text[64];

	snprintf(text, sizeof(text), m->prefix[key].family == 4 ? "10.1.0.%u" : "2001:db8:ffff::%u", m->via[key]);
	return kit_address(text);
}

static int model_good(const struct model *m)
{
	int routes = 0;

	for (int i = 0; i < KEYS; i++) {
		if (m->prefix[i].family == 0)
			continue;
		routes++;
		if (prefix_compare(&m->prefix[i], &m->connected) == 0)
			return 0;
		for (int k = 0; k < i; k++)
			if (prefix_compare(&m->prefix[i], &m->prefix[k]) == 0)
				return 0;
	}
	return routes <= LIMIT;
}

static void model_compare(const struct model *m)
{
	for (int n = 0; n < 60; n++) {
		struct api_address a = random_prefix();
		int best = -1, length = -1;

		for (int i = 0; i < KEYS; i++)
			if (ip_in_prefix(&m->prefix[i], a.family, a.bytes) && m->prefix[i].prefix > length) {
				best = i;
				length = m->prefix[i].prefix;
			}
		const struct next_hop *h = next_hop_get(ip_route_lookup(0, a.family, a.bytes));
		if (ip_in_prefix(&m->connected, a.family, a.bytes) && m->connected.prefix > length) {
			assert_int_equal(h->kind, NEXT_HOP_GLEAN);
			continue;
		}
		assert_int_equal(h->kind, best < 0            ? NEXT_HOP_NOWHERE
					  : m->via[best] == 0 ? NEXT_HOP_DISCARD
							      : NEXT_HOP_NEIGHBOUR);
		if (h->kind != NEXT_HOP_NEIGHBOUR)
			continue;
		struct api_address via = via_of(m, best);
		struct ip_address want = ip_address_of(via.family, via.bytes);
		assert_memory_equal(&h->address, &want, sizeof(want));
	}
}

static void change_route(struct model *m, int key)
{
	char name[API_NAME];
	struct api_route r = {0};

	snprintf(name, sizeof(name), "route-%d", key);
	if (rand() % 3 == 0) {
		kit_delete(API_ROUTE, name);
		m->prefix[key].family = 0;
		return;
	}
	if (m->prefix[key].family == 0 || rand() % 2 == 0)
		m->prefix[key] = random_prefix();
	m->via[key] = (uint8_t)(rand() % 4 ? 9 + rand() % 4 : 0);
	r.prefix = m->prefix[key];
	if (m->via[key] == 0)
		r.discard = API_DISCARD_BLACKHOLE;
	else
		r.via = via_of(m, key);
	kit_put(API_ROUTE, name, &r, sizeof(r));
}

static void change_interface(struct model *m)
{
	if (m->connected.family != 0 && rand() % 2 == 0) {
		kit_delete(API_INTERFACE, "moving");
		m->connected.family = 0;
		return;
	}
	struct api_interface i = router_interface("south", 5, 0, NULL, NULL);
	i.address[i.count++] = kit_address(rand() % 2 ? "10.65.0.3/24" : "10.66.0.3/25");
	kit_put(API_INTERFACE, "moving", &i, sizeof(i));
	m->connected = shortened(i.address[0]);
}

static void random_transactions(void **state)
{
	int accepted = 0, refused = 0;

	srand(1);
	for (int round = 0; round < 1500; round++) {
		struct model next = now;
		uint8_t touched[KEYS] = {0};

		kit_begin();
		for (int n = rand() % 8; n >= 0; n--) {
			int key = rand() % KEYS;

			if (!touched[key]++)
				change_route(&next, key);
		}
		if (rand() % 4 == 0)
			change_interface(&next);
		int good = model_good(&next);
		assert_int_equal(kit_commit() == 0, good);
		if (good)
			now = next;
		accepted += good;
		refused += !good;
		model_compare(&now);
	}
	print_message("%d accepted, %d refused\n", accepted, refused);
	assert_true(accepted > 100 && refused > 100);
	for (int i = 0; i < KEYS; i++)
		if (now.prefix[i].family != 0)
			return;
	fail();
}

// A route's prefix moves to another in one transaction, whichever is staged first.
static void prefixes_change_hands(void **state)
{
	kit_begin();
	for (int i = 0; i < KEYS; i++) {
		char name[API_NAME];

		snprintf(name, sizeof(name), "route-%d", i);
		kit_delete(API_ROUTE, name);
	}
	router_put_route("a", "10.80.0.0/16", "10.1.0.9", "");
	router_put_route("b", "10.81.0.0/16", "10.1.0.10", "");
	assert_int_equal(kit_commit(), 0);
	kit_begin();
	router_put_route("a", "10.81.0.0/16", "10.1.0.9", "");
	router_put_route("b", "10.80.0.0/16", "10.1.0.10", "");
	assert_int_equal(kit_commit(), 0);
	assert_int_equal(next_hop_get(ip_route_lookup(0, 4, kit_address("10.80.0.1").bytes))->address.bytes[15], 10);
	assert_int_equal(next_hop_get(ip_route_lookup(0, 4, kit_address("10.81.0.1").bytes))->address.bytes[15], 9);
	kit_begin();
	kit_delete(API_ROUTE, "a");
	router_put_route("c", "10.81.0.0/16", "10.1.0.11", "");
	assert_int_equal(kit_commit(), 0);
	assert_int_equal(next_hop_get(ip_route_lookup(0, 4, kit_address("10.81.0.1").bytes))->address.bytes[15], 11);
}

static void more_than_the_limit(void **state)
{
	char key[API_NAME], prefix[32];

	kit_begin();
	for (int i = 0; i < LIMIT - 1; i++) { // and b and c
		snprintf(key, sizeof(key), "n%d", i);
		snprintf(prefix, sizeof(prefix), "10.90.%d.0/24", i);
		router_put_route(key, prefix, "10.1.0.9", "");
	}
	assert_int_not_equal(kit_commit(), 0);
	assert_non_null(strstr(kit_error(), "61 routes, at most 60"));
	assert_int_equal(ip_route_lookup(0, 4, kit_address("10.90.0.1").bytes), NEXT_HOP_NONE);
}

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.max_routes = LIMIT;
	kit_start(&e);
	kit_begin();
	kit_port("north", API_ROLE_CORE);
	kit_port("south", API_ROLE_CORE);
	kit_port("homes", API_ROLE_ACCESS);
	kit_interface("north", "north", "10.1.0.1/24", "2001:db8:ffff::1/64");
	return kit_commit();
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(random_transactions),
		cmocka_unit_test(prefixes_change_hands),
		cmocka_unit_test(more_than_the_limit),
	};

	return cmocka_run_group_tests(all, setup, NULL);
}
