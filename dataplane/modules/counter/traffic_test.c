// SPDX-License-Identifier: Apache-2.0
// Traffic by network instance, DNN and QFI against a model. Sessions come, change their DNN, QFI and worker, and go.
// Each packet counts in the row of its moment; no row ever decreases.
#include "session/mobile_fixture.h"

#define SECOND 1000000u
#define SESSIONS 4
#define DNNS 4
#define QFIS 3
#define ROWS 13 // "other" first
#define STEPS 600
#define IP_BYTES 108u // of a packet

static uint32_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static const char *const dnn_name[DNNS] = {"", "internet", "ims", "fleet.example"};

static struct {
	int lives;
	uint32_t dnn, qfi;
} model[SESSIONS];

static uint64_t expected[2][DNNS][QFIS]; // packets: uplink (by "access"), downlink (by "core")
static uint64_t sent;

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	e.max_traffic = ROWS;
	fixture_start(&e);
	return 0;
}

// QFI 0: no QER, thus no QFI.
static struct kit_mobile *session(uint32_t n, uint32_t dnn, uint32_t qfi, uint32_t worker)
{
	struct kit_mobile *k = upf_session(n + 1);

	strcpy(k->s.dnn, dnn_name[dnn]);
	k->s.worker = (uint16_t)worker;
	strcpy(k->s.instance[1], "access");
	k->pdr[0].instance = 1;
	if (qfi != 0) {
		kit_qer(k, 1, (uint8_t)qfi);
		kit_pdr_qer(&k->pdr[0], 1);
		kit_pdr_qer(&k->pdr[1], 1);
	}
	return k;
}

static const char *name_of(uint32_t n)
{
	static char name[8];

	snprintf(name, sizeof(name), "s%u", n);
	return name;
}

static void change(uint32_t n)
{
	model[n].lives = 1;
	model[n].dnn = below(DNNS);
	model[n].qfi = below(QFIS);
	put(name_of(n), session(n, model[n].dnn, model[n].qfi, below(2)));
}

// As often as not some packets of a flow, which are on the fast path then.
static void packets(uint32_t n, int up)
{
	static struct frame f;
	uint32_t count = 1 + below(3) * 4;
	char ue[16];

	snprintf(ue, sizeof(ue), "10.45.0.%u", n + 1);
	up ? uplink_of(&f, ue, FAR4, 0x101 + n, 0xff) : downlink_of(&f, FAR4, ue);
	kit_clear();
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(kit_send(up ? "ran" : "internet", f.at, f.length), 0);
	kit_run();
	assert_int_equal(all_out(), count);
	expected[!up][model[n].dnn][model[n].qfi] += count;
	sent += count;
}

static uint64_t expected_of(const struct api_traffic_row *r)
{
	uint32_t qfi = r->qfi == API_NO_QFI ? 0 : r->qfi;

	for (uint32_t d = 0; d < DNNS; d++)
		if (strcmp(r->dnn, dnn_name[d]) == 0)
			return expected[strcmp(r->instance, "core") == 0][d][qfi];
	return 0;
}

// Compares the rows; none has decreased.
static void compare(int settled)
{
	static struct api_traffic_row before[ROWS];
	uint64_t all = 0, own = 0;
	uint32_t count;
	const struct api_traffic_row *r = kit_rows(API_TABLE_TRAFFIC, "", sizeof(*r), &count);

	assert_in_range(count, 1, ROWS);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t now = r[i].uplink_packets + r[i].downlink_packets;

		assert_int_equal(r[i].other, i == 0);
		assert_true(r[i].uplink_packets >= before[i].uplink_packets);
		assert_true(r[i].downlink_packets >= before[i].downlink_packets);
		assert_int_equal(r[i].uplink_bytes, r[i].uplink_packets * IP_BYTES);
		assert_int_equal(r[i].downlink_bytes, r[i].downlink_packets * IP_BYTES);
		if (settled && i != 0) {
			assert_int_equal(now, expected_of(&r[i]));
			own += now;
		}
		all += now;
		before[i] = r[i];
	}
	if (settled) {
		assert_int_equal(all, sent);
		assert_int_equal(r[0].uplink_packets + r[0].downlink_packets, sent - own);
	}
}

static void against_model(void **state)
{
	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t n = below(SESSIONS);

		if (!model[n].lives || below(8) == 0) {
			change(n);
		} else if (below(12) == 0) {
			gone(name_of(n));
			model[n].lives = 0;
		} else {
			packets(n, (int)below(2));
		}
		compare(0);
		if (below(16) != 0)
			continue;
		kit_advance(2 * SECOND);
		compare(1);
	}
	kit_advance(2 * SECOND);
	compare(1);
	uint32_t count;
	const struct api_traffic_row *r = kit_rows(API_TABLE_TRAFFIC, "", sizeof(*r), &count);
	assert_int_equal(count, ROWS); // 2 instances, 4 DNNs, 3 QFIs: more than there is room for
	assert_true(r[0].uplink_packets + r[0].downlink_packets != 0);
}

// With a counter in force the sums of both are right.
static void beside_counters(void **state)
{
	struct api_counter x = {.instance = "core"};
	uint32_t count;

	kit_begin();
	kit_put(API_COUNTER, "c", &x, sizeof(x));
	commit();
	uint64_t before = sent;
	for (uint32_t step = 0; step < 40; step++) {
		uint32_t n = below(SESSIONS);

		if (!model[n].lives || below(4) == 0)
			change(n);
		packets(n, (int)below(2));
	}
	kit_advance(2 * SECOND);
	compare(1);
	const struct api_counter_row *c = kit_rows(API_TABLE_COUNTER, "c", sizeof(*c), &count);
	assert_int_equal(c->packets, sent - before);
	// Of one instance.
	const struct api_traffic_row *r = kit_rows(API_TABLE_TRAFFIC, "core", sizeof(*r), &count);
	for (uint32_t i = 0; i < count; i++)
		assert_string_equal(r[i].instance, "core");
	assert_true(count > 0);
}

static void refused_name(void **state)
{
	struct kit_mobile *k = session(0, 0, 0, 0);

	memset(k->s.dnn, 'a', sizeof(k->s.dnn));
	assert_int_not_equal(refused("s9", k), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_model),
		cmocka_unit_test(beside_counters),
		cmocka_unit_test(refused_name),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
