// SPDX-License-Identifier: Apache-2.0
// Mirrors of two workers, walked in turn, beside NAT44. Packets enter by the first worker, which hands them to the
// worker with the subscriber's ports or session.
#include "instance/instance.h"
#include "mirror/mirror.h"
#include "nat/fixture_test.h"
#include "rule/session.h"
#include "rule/view.h"

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	for (int i = 0; i < 2; i++)
		e.cpu[i] = -1;
	fixture_start(&e);
	kit_begin();
	kit_port("tap", API_ROLE_CORE);
	commit();
	return 0;
}

static struct api_mirror to_port(void)
{
	struct api_mirror x = {.to = API_MIRROR_PORT, .ue_port = {0, UINT16_MAX}, .remote_port = {0, UINT16_MAX}};

	strcpy(x.target, "tap");
	x.ue = kit_address("10.45.0.0/24");
	return x;
}

static void put_mirror(const struct api_mirror *x)
{
	kit_begin();
	kit_put(API_MIRROR, "m", x, sizeof(*x));
	commit();
}

static struct api_mirror_row copied(void)
{
	uint32_t count;
	const struct api_mirror_row *r = kit_rows(API_TABLE_MIRROR, "m", sizeof(*r), &count);

	assert_int_equal(count, 1);
	return *r;
}

// Sessions 1 and 2, of a worker each.
static void prepare(const struct api_nat *n, const struct api_mirror *x)
{
	put_nat(n);
	for (uint32_t i = 1; i <= 2; i++) {
		struct kit_mobile *k = upf_session(i);

		k->s.worker = i % 2;
		put(i == 1 ? "s1" : "s2", k);
	}
	put_mirror(x);
}

static int clean(void **state)
{
	kit_begin();
	kit_delete(API_MIRROR, "m");
	kit_delete(API_SESSION, "s1");
	kit_delete(API_SESSION, "s2");
	kit_delete(API_NAT, "core");
	commit();
	kit_run();
	assert_true(kit_balance());
	assert_int_equal(kit_buffers_in_use(), 0);
	return 0;
}

static int is_tapped(uint32_t i, const struct frame *f)
{
	return kit_frame("tap", i)->length == f->length && memcmp(kit_frame("tap", i)->bytes, f->at, f->length) == 0;
}

static void tapped(const struct frame *f)
{
	assert_int_equal(kit_count("tap"), 1);
	assert_true(is_tapped(0, f));
}

// One copy of each packet, with the subscriber's own address and port in both directions.
static void beside_nat(void **state)
{
	static const uint8_t protocol[] = {17, 6, 1};
	static struct frame f;
	struct api_nat n = nat_body();
	struct api_mirror x = to_port();

	for (int deterministic = 0; deterministic < 2; deterministic++) {
		if (deterministic) {
			n.mode = API_NAT_DETERMINISTIC;
			n.blocks = 1;
			n.inside_prefix[0] = kit_address("10.45.0.0/28");
		}
		prepare(&n, &x);
		for (uint32_t i = 1; i <= 2; i++)
			for (int k = 0; k < 3; k++) {
				uint16_t port = (uint16_t)(4000 + k);
				struct external e = out(i, protocol[k], port, FAR4, 53);

				make(&f, protocol[k], ue(i), port, FAR4, 53);
				up(&f, i);
				tapped(&f);
				reaches(i, protocol[k], FAR4, 53, &e, port);
				make(&f, protocol[k], FAR4, protocol[k] == 1 ? 0 : 53, ue(i), port);
				link_layer(&f, "internet", 1);
				tapped(&f);
			}
		assert_int_equal(copied().packets, 12 + deterministic * 12);
	}
}

// From one subscriber to another worker's: copied at the source, and at the destination with the sender's external
// address.
static void hairpins(void **state)
{
	static const uint8_t nobody[6];
	static struct frame f, turned;
	struct api_nat n = nat_body();
	struct api_mirror x = to_port();

	prepare(&n, &x);
	for (uint32_t from = 1; from <= 2; from++) {
		struct external b = out(3 - from, 17, 7000, FAR4, 53), a = out(from, 17, 4000, FAR4, 53);

		make(&turned, 17, a.address, a.port, ue(3 - from), 7000);
		hop(&turned);
		frame_ethernet(&turned, nobody, nobody, 0x0800);
		make(&f, 17, ue(from), 4000, b.address, b.port);
		up(&f, from);
		send_frame("ran", &f);
		assert_int_equal(kit_count("ran"), 1);
		assert_int_equal(kit_count("tap"), 2);
		assert_true((is_tapped(0, &f) && is_tapped(1, &turned)) || (is_tapped(1, &f) && is_tapped(0, &turned)));
		assert_true(kit_balance());
	}
}

static void send_to_both(uint32_t packets)
{
	static struct frame f;

	kit_clear();
	for (uint32_t i = 0; i < packets; i++) {
		make(&f, 17, ue(1 + i % 2), 4000, FAR4, 53);
		up(&f, 1 + i % 2);
		assert_int_equal(kit_send("ran", f.at, f.length), 0);
	}
	kit_run();
	assert_int_equal(kit_count("internet"), packets);
	assert_true(kit_balance());
}

// The rate is of all workers together; a sample is of each.
static void rates(void **state)
{
	struct api_nat n = nat_body();
	struct api_mirror x = to_port();

	x.rate = 20;
	prepare(&n, &x);
	kit_advance(2000000);
	send_to_both(50);
	assert_int_equal(kit_count("tap"), 20);
	assert_int_equal(copied().limited, 30);
	x.rate = 0;
	x.sample = 5;
	put_mirror(&x);
	send_to_both(50);
	assert_int_equal(kit_count("tap"), 10);
}

// Whether a worker makes a copy of a packet to the first subscriber now.
static int copies(struct worker *w)
{
	const struct rule *r = session_ue_rule((uint16_t)instance_index("core"), 4, (const uint8_t[]){10, 45, 0, 1});
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool), *copy;

	memset(packet_of(m), 0, sizeof(struct packet));
	rte_pktmbuf_append(m, 60);
	session_view_of(m)->rule = (struct rule *)(uintptr_t)r;
	int made = mirror_copy(w, m, &copy) != MIRROR_NONE;
	if (made) {
		w->originated--;
		rte_pktmbuf_free(copy);
	}
	rte_pktmbuf_free(m);
	return made;
}

// A worker's second begins at its own walk: workers still in the old one do not start it again.
static void rate_between_seconds(void **state)
{
	struct worker *w[2] = {worker_get(0), worker_get(1)};
	struct api_nat n = nat_body();
	struct api_mirror x = to_port();
	int made = 0;

	x.rate = 20;
	prepare(&n, &x);
	kit_advance(2000000);
	w[0]->now = (w[0]->now / w[0]->tsc_hz + 1) * w[0]->tsc_hz;
	w[1]->now = w[0]->now - 1;
	for (int i = 0; i < 100; i++)
		made += copies(w[i % 2]);
	assert_int_equal(made, 20);
	w[1]->now += w[1]->tsc_hz;
	for (int i = 0; i < 100; i++)
		made += copies(w[i % 2]);
	assert_int_equal(made, 20);
	w[0]->now += w[0]->tsc_hz;
	for (int i = 0; i < 100; i++)
		made += copies(w[i % 2]);
	assert_int_equal(made, 40);
}

// The GRE sequence is the mirror's: each number once, over all workers.
static void sequence(void **state)
{
	struct api_nat n = nat_body();
	struct api_mirror x = to_port();
	uint64_t seen = 0;

	x.to = API_MIRROR_ERSPAN;
	x.target[0] = 0;
	x.collector = kit_address("10.9.0.2");
	prepare(&n, &x);
	send_to_both(40);
	assert_int_equal(kit_count("peers"), 40);
	for (uint32_t i = 0; i < 40; i++)
		seen |= 1ull << (load32(kit_frame("peers", i)->bytes + 14 + 20 + 4) & 63);
	assert_int_equal(__builtin_popcountll(seen), 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(beside_nat, clean),
		cmocka_unit_test_teardown(hairpins, clean),
		cmocka_unit_test_teardown(rates, clean),
		cmocka_unit_test_teardown(rate_between_seconds, clean),
		cmocka_unit_test_teardown(sequence, clean),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
