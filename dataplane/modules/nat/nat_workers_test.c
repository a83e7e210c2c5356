// SPDX-License-Identifier: Apache-2.0
// NAT44 of two workers, walked in turn; packets enter by the first.
#include "nat/fixture_test.h"

static void prepare(const struct api_nat *n)
{
	put_nat(n);
	for (uint32_t i = 1; i <= 3; i++)
		put_on(i, i % 2);
}

static void each(void)
{
	static const uint8_t protocol[] = {17, 6, 1};

	for (uint32_t i = 1; i <= 3; i++)
		for (int k = 0; k < 3; k++) {
			struct external e = out(i, protocol[k], (uint16_t)(4000 + k), FAR4, 53);

			reaches(i, protocol[k], FAR4, 53, &e, (uint16_t)(4000 + k));
		}
	assert_int_equal(row().mappings, 9);
	assert_int_equal(row().subscribers, 3);
}

static void both(void **state)
{
	struct api_nat n = nat_body();

	prepare(&n);
	each();
}

static void both_deterministic(void **state)
{
	struct api_nat n = nat_body();

	n.mode = API_NAT_DETERMINISTIC;
	n.blocks = 1;
	n.inside_prefix[0] = kit_address("10.45.0.0/28");
	prepare(&n);
	each();
}

static void hairpin(void **state)
{
	struct api_nat n = nat_body();
	static struct frame f, want;

	prepare(&n);
	for (uint32_t from = 1; from <= 2; from++) {
		struct external b = out(3 - from, 17, 7000, FAR4, 53), a = out(from, 17, 4000, FAR4, 53);

		make(&f, 17, ue(from), 4000, b.address, b.port);
		up(&f, from);
		make(&want, 17, a.address, a.port, ue(3 - from), 7000);
		hop(&want);
		tunnel(&want, "10.1.0.1", "10.1.0.2", 0x200 + 3 - from, 0xff, API_PDU_DL);
		link_layer(&want, "ran", 0);
		expect("ran", &f, "ran", &want);
	}
}

// A later fragment has no port that names its subscriber: RFC 4787 REQ-14, on any worker.
static void fragments(void **state)
{
	static const uint8_t protocol[] = {17, 6, 1};
	struct api_nat n = nat_body();

	prepare(&n);
	for (uint32_t i = 1; i <= 2; i++)
		for (int k = 0; k < 6; k++) {
			struct external e = out(i, protocol[k / 2], 4000, FAR4, 53);

			fragments_in(i, protocol[k / 2], &e, 4000, k % 2);
			fragments_out(i, protocol[k / 2], 4000, &e, k % 2);
		}
}

// A session that moves to another worker gets ports there once the old worker released its own.
static void moves(const struct api_nat *n)
{
	prepare(n);
	struct external e = out(1, 17, 4000, FAR4, 53);
	put_on(1, 0);
	refused_out(1, 17, 4001, "nat-moving");
	kit_advance(1100000);
	unreachable(17, &e);
	e = out(1, 17, 4000, FAR4, 53);
	reaches(1, 17, FAR4, 53, &e, 4000);
	assert_int_equal(row().used, 1);
}

static void moved(void **state)
{
	struct api_nat n = nat_body();

	moves(&n);
	n.mode = API_NAT_DETERMINISTIC;
	n.blocks = 1;
	n.inside_prefix[0] = kit_address("10.45.0.0/28");
	moves(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(both, all_gone),
		cmocka_unit_test_teardown(both_deterministic, all_gone),
		cmocka_unit_test_teardown(hairpin, all_gone),
		cmocka_unit_test_teardown(fragments, all_gone),
		cmocka_unit_test_teardown(moved, all_gone),
	};
	return cmocka_run_group_tests(tests, start_two_workers, NULL);
}
