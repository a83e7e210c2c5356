// SPDX-License-Identifier: Apache-2.0
// The program that runs the rows of hostile input.
#include "hostile/hostile.h"

static int start(void **state)
{
	struct api_engine e = kit_engine();

	e.max_fragments = 64;
	gateway_start(&e);
	gateway_homes(1, GATEWAY_HOMES);
	kit_begin();
	struct api_route r4 = {.prefix = kit_address("198.51.100.0/24"), .via = kit_address("192.0.2.2")};
	struct api_route r6 = {.prefix = kit_address("2001:db8:ffff::/48"), .via = kit_address("2001:db8:6::2")};
	kit_put(API_ROUTE, "198.51.100.0/24", &r4, sizeof(r4));
	kit_put(API_ROUTE, "2001:db8:ffff::/48", &r6, sizeof(r6));
	assert_int_equal(kit_commit(), 0);
	assert_true(gateway_undisturbed());
	return 0;
}

int main(void)
{
	struct CMUnitTest all[64];
	size_t n = 0;

	for (size_t i = 0; i < gtpu_row_count; i++)
		all[n++] = gtpu_rows[i];
	for (size_t i = 0; i < access_row_count; i++)
		all[n++] = access_rows[i];
	for (size_t i = 0; i < ip_row_count; i++)
		all[n++] = ip_rows[i];
	return _cmocka_run_group_tests("hostile input", all, n, start, NULL);
}
