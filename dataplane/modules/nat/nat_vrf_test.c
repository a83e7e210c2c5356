// SPDX-License-Identifier: Apache-2.0
// NAT44 of two VRFs whose subscribers have the same inside addresses.
#include "nat/fixture_test.h"

#define BLUE "203.0.113.8" // the external address there

// Subscriber 1 twice: by TEID 0x101 of the default VRF, by TEID 0x109 of blue.
static int setup(void **state)
{
	struct api_interface i = {.port = "internet", .vrf = "blue", .outer_vlan = 20, .count = 1};
	struct api_instance instance = kit_instance_body("blue", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	struct api_route r = {.prefix = kit_address("0.0.0.0/0"), .via = kit_address("192.0.2.2"), .vrf = "blue"};
	struct api_nat red = nat_body(), blue = kit_nat("10.45.0.0/16", BLUE "/32");
	struct kit_mobile k;

	fixture_start(NULL);
	i.address[0] = kit_address("192.0.2.1/24");
	kit_begin();
	kit_put(API_INTERFACE, "blue", &i, sizeof(i));
	kit_neighbour("blue", "192.0.2.2", mac_router);
	kit_put(API_ROUTE, "blue", &r, sizeof(r));
	kit_put(API_INSTANCE, "blue", &instance, sizeof(instance));
	kit_put(API_NAT, "core", &red, sizeof(red));
	kit_put(API_NAT, "blue", &blue, sizeof(blue));
	kit_put_mobile("s1", upf_session(1));
	kit_mobile(&k, 9, ue(1), NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x109, 1)->match |= API_PDR_UE_IP;
	kit_pdr_ue(&k, API_FROM_CORE, "blue", 2);
	kit_far_ip(&k, 1, API_FROM_CORE, "blue");
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x209);
	kit_put_mobile("s9", &k);
	commit();
	kit_run();
	return 0;
}

// The external address of a packet that left.
static const char *left(int blue)
{
	static char text[16];

	assert_int_equal(kit_count("internet"), 1);
	const uint8_t *frame = kit_frame("internet", 0)->bytes, *ip = frame + (blue ? 18 : 14);
	assert_int_equal(load16(frame + 12), blue ? 0x8100 : 0x0800);
	snprintf(text, sizeof(text), "%u.%u.%u.%u", ip[12], ip[13], ip[14], ip[15]);
	return text;
}

// Both send a datagram with the same addresses and identification: of each, all fragments have the external address of
// its own instance.
static void fragments_stay_apart(void **state)
{
	static struct frame f, whole;
	char first[2][16];

	for (int later = 0; later < 2; later++)
		for (int blue = 0; blue < 2; blue++) {
			make(&whole, 17, ue(1), 4000, FAR4, 53);
			split(&f, later ? 25 : 24, later ? 3 : 0, !later, &whole);
			up(&f, blue ? 9 : 1);
			send_frame("ran", &f);
			if (!later)
				snprintf(first[blue], sizeof(first[0]), "%s", left(blue));
			else
				assert_string_equal(left(blue), first[blue]);
		}
	assert_string_equal(first[1], BLUE);
	assert_string_not_equal(first[0], BLUE);
	assert_true(kit_balance());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fragments_stay_apart),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
