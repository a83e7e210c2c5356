// SPDX-License-Identifier: Apache-2.0
// Two workers, walked in turn: packets reach the subscriber's own worker, in order, and none is lost on the way. The
// engine of this program also drops GTP-U from subscribers (row G10).
#include "hostile/hostile.h"

#define HOMES 40
#define FLOWS 20

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	e.flags = API_ENGINE_DROP_UE_GTPU;
	gateway_start(&e);
	kit_begin();
	for (uint32_t home = 1; home <= HOMES; home++) {
		struct kit_session k = gateway_home(home);

		k.s.worker = (uint16_t)(home / 2 % 2);
		kit_put_session(gateway_home_name(home), &k);
	}
	assert_int_equal(kit_commit(), 0);
	return 0;
}

static uint64_t handed_over(void)
{
	return worker_get(0)->handed_over + worker_get(1)->handed_over;
}

// Packet n of a home, marked in its payload.
static void marked(struct frame *f, uint32_t home, int uplink, uint32_t n)
{
	int family = n % 2 ? 6 : 4;
	const char *far = family == 4 ? FAR4 : FAR6, *ue = gateway_ue(home, family);

	frame_payload(f, 40);
	store32(f->at, home);
	store32(f->at + 4, n);
	frame_udp(f, 4000, 5000);
	frame_ip(f, uplink ? ue : far, uplink ? far : ue, 17);
	uplink ? gateway_from_home(f, home) : gateway_from_upf(f, home);
}

// Each home's packets left complete and in order.
static void in_order(const char *port)
{
	uint32_t next[HOMES + 1] = {0};

	for (uint32_t i = 0; i < kit_count(port); i++) {
		const struct kit_frame *k = kit_frame(port, i);
		const uint8_t *mark = k->bytes + k->length - 40;
		uint32_t home = load32(mark);

		assert_in_range(home, 1, HOMES);
		assert_int_equal(load32(mark + 4), next[home]);
		next[home]++;
	}
	for (uint32_t home = 1; home <= HOMES; home++)
		assert_int_equal(next[home], FLOWS);
}

static void handed_over_in_order(void **state)
{
	static struct frame f;

	for (int uplink = 0; uplink < 2; uplink++) {
		uint64_t before = handed_over();
		uint32_t buffers = kit_buffers_in_use();

		kit_clear();
		for (uint32_t n = 0; n < FLOWS; n++)
			for (uint32_t home = 1; home <= HOMES; home++) {
				marked(&f, home, uplink, n);
				assert_int_equal(kit_send(uplink ? "access" : "core", f.at, f.length), 0);
			}
		kit_run();
		assert_int_equal(kit_count(uplink ? "core" : "access"), HOMES * FLOWS);
		in_order(uplink ? "core" : "access");
		assert_true(handed_over() - before >=
			    HOMES / 2 * FLOWS); // ports here have one queue, which is one worker's
		assert_true(kit_balance());
		assert_int_equal(kit_totals().held, 0);
		assert_int_equal(kit_buffers_in_use(), buffers);
		assert_true(gateway_undisturbed());
	}
}

static void owner_does_the_work(void **state)
{
	static struct frame f;
	uint64_t out[2] = {worker_get(0)->out, worker_get(1)->out};

	for (uint32_t home = 2; home <= 3; home++) // worker 1
		for (uint32_t n = 0; n < 10; n++) {
			marked(&f, home, 1, n);
			send_one("access", &f);
		}
	assert_int_equal(worker_get(1)->out - out[1], 20);
	assert_int_equal(worker_get(0)->out - out[0], 0);
}

// A session moves to the other worker; its packets follow.
static void session_changes_worker(void **state)
{
	static struct frame f;

	for (int round = 0; round < 20; round++) {
		struct kit_session k = gateway_home(1);
		uint32_t worker = round % 2;
		uint64_t out = worker_get(worker)->out;

		k.s.worker = (uint16_t)worker;
		kit_begin();
		kit_put_session("home-1", &k);
		assert_int_equal(kit_commit(), 0);
		for (uint32_t n = 0; n < 4; n++) {
			marked(&f, 1, n & 1, n);
			send_one(n & 1 ? "access" : "core", &f);
		}
		assert_int_equal(worker_get(worker)->out - out, 4);
		assert_true(kit_balance());
	}
}

static void fragments_meet(void **state)
{
	static struct frame whole, f;

	for (uint32_t id = 1; id < 40; id++) { // some of these are worker 0's to put together, some worker 1's
		marked(&whole, HOME_QINQ, 0, 0);
		uint32_t n = whole.length - 34;
		uint8_t *payload = whole.at + 34;

		kit_clear();
		for (uint32_t at = 0; at < n; at += 64) {
			uint32_t size = n - at < 64 ? n - at : 64;

			frame_payload(&f, 0);
			frame_append(&f, payload + at, size);
			frame_ip(&f, "10.0.0.2", "10.0.0.1", 17);
			store16(f.at + 4, (uint16_t)id);
			store16(f.at + 6, (uint16_t)(at / 8 | (at + size < n ? 0x2000 : 0)));
			frame_ip4_sum(&f);
			frame_ethernet(&f, gateway_mac[1], gateway_upf, 0x0800);
			send_one("core", &f);
		}
		assert_int_equal(kit_count("access"), 1);
		assert_int_equal(kit_totals().held, 0);
		assert_true(kit_balance());
	}
}

static void user_gtpu(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 1);
	for (uint32_t deep = 0; deep < 1 + i % 3; deep++) {
		frame_gtpu(f, 0x201, i % 2 ? 9 : 0xff);
		frame_udp(f, 2152, 2152);
		frame_ip(f, ue_of(variant), far_of(variant), 17);
	}
	gateway_from_home(f, home_of(variant));
}

static void g10_gtpu_from_subscribers_forbidden(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G10", "access", user_gtpu, 24, "subscriber-gtpu", 0}}));
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(handed_over_in_order),
		cmocka_unit_test(owner_does_the_work),
		cmocka_unit_test(session_changes_worker),
		cmocka_unit_test(fragments_meet),
		cmocka_unit_test(g10_gtpu_from_subscribers_forbidden),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
