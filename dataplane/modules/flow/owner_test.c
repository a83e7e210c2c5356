// SPDX-License-Identifier: Apache-2.0
// Hints to the owner of a session, with three workers walked in turn. A UE's packets enter at the last worker, which
// hands them to the supposed owner.
#include "core/engine.h"
#include "core/worker.h"
#include "session/mobile_fixture.h"

#define CAME_TO 2u // the worker of the port "internet"
#define WORKERS 3u

static void put_upf(uint16_t worker)
{
	static struct kit_mobile k;

	kit_mobile(&k, 1, UE4, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x100, 1)->match |= API_PDR_UE_IP;
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x200);
	k.s.worker = worker;
	kit_begin();
	kit_put_mobile("a", &k);
	commit();
}

static void receive(uint32_t n)
{
	static struct frame f;

	frame_payload(&f, 40);
	store32(f.at, n);
	frame_udp(&f, 4000, 5000);
	frame_ip(&f, FAR4, UE4, 17);
	link_layer(&f, "internet", 1);
	assert_int_equal(kit_send("internet", f.at, f.length), 0);
}

static void handed_over(uint64_t by[WORKERS])
{
	for (uint32_t w = 0; w < WORKERS; w++)
		by[w] = worker_get(w)->handed_over;
}

// A packet of the UE takes so many hand-overs, by the first and by the second worker.
static void takes(uint64_t first, uint64_t second)
{
	uint64_t before[WORKERS], after[WORKERS];

	handed_over(before);
	kit_clear();
	receive(0);
	kit_run();
	handed_over(after);
	assert_int_equal(kit_count("ran"), 1);
	assert_int_equal(after[CAME_TO] - before[CAME_TO], first);
	assert_int_equal(after[1] - before[1], second);
	assert_true(kit_balance());
}

// The second worker, where a hint led, is no longer the owner: it corrects the first one.
static void a_hint_is_corrected(void **unused)
{
	for (int i = 0; i < 5; i++) {
		put_upf(1);
		receive(0); // of some hint, or none
		kit_run();
		takes(1, 0);
		put_upf(i % 2 ? CAME_TO : 0);
		takes(1, 1);
		for (int n = 0; n < 3; n++)
			takes(i % 2 ? 0 : 1, 0);
	}
}

// The number of the packet that left as the i-th.
static uint32_t left(uint32_t i)
{
	const struct kit_frame *k = kit_frame("ran", i);

	return load32(k->bytes + k->length - 40);
}

// A packet half way through the owner's full nodes, two handed over by others, and one received by the owner: in order.
static void none_overtakes_another(void **unused)
{
	uint32_t n = 0;

	put_upf(1);
	takes(1, 0);
	kit_clear();
	for (uint32_t move = 0; move < 300; move++) {
		for (uint32_t i = 0; i < 1 + move % 5; i++) {
			for (uint32_t k = 0; k <= (move + i) % 3; k++)
				receive(n++);
			engine_walk();
		}
		put_upf((uint16_t)((move / 3 + move) % 2)); // never home: those that come back, below
	}
	kit_run();
	assert_int_equal(kit_count("ran"), n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(left(i), i);
	assert_true(kit_balance());
}

// A session moves to the worker that receives its packets. Packets in flight at the change may be overtaken by later
// ones. They are the last before the change; two walks later none is in flight.
static void those_on_their_way_home_are_the_last_to_be_overtaken(void **unused)
{
	uint32_t n = 0;

	for (uint32_t move = 0; move < 300; move++) {
		put_upf((uint16_t)(move % 2));
		kit_run();
		kit_clear();
		uint32_t first = n, moved, on_their_way, next[2];

		for (uint32_t i = 0; i < 1 + move % 3; i++) {
			for (uint32_t k = 0; k <= (move + i) % 5; k++)
				receive(n++);
			engine_walk();
		}
		on_their_way = n - first - kit_count("ran");
		put_upf(CAME_TO);
		moved = n;
		for (uint32_t k = 0; k <= move % 4; k++)
			receive(n++);
		engine_walk();
		engine_walk();
		assert_int_equal(kit_count("ran"), n - first);
		next[0] = first, next[1] = moved;
		for (uint32_t i = 0; i < n - first; i++) {
			uint32_t number = left(i), since = number >= moved;

			assert_int_equal(number, next[since]++);
			if (!since && next[1] != moved)
				assert_in_range(number, moved - on_their_way, moved - 1);
		}
	}
	assert_true(kit_balance());
}

static int setup(void **unused)
{
	struct api_engine e = kit_engine();

	e.workers = WORKERS;
	fixture_start(&e);
	return 0;
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(a_hint_is_corrected),
		cmocka_unit_test(none_overtakes_another),
		cmocka_unit_test(those_on_their_way_home_are_the_last_to_be_overtaken),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
