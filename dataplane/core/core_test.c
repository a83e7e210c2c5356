// SPDX-License-Identifier: Apache-2.0
// The engine and the object store: the state after a refused transaction, the view during an open one, what may change
// later. Traffic that waits for a neighbour does not starve the neighbour's answer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/engine.h"
#include "testkit/testkit.h"
#include "wire/arp.h"
#include "wire/checksum.h"
#include <rte_cycles.h>
#include <stdio.h>
#include <string.h>

static const uint8_t home[6] = {2, 0, 0, 0, 0, 1}, upf[6] = {2, 0, 0, 0, 0xff, 1};
static const uint8_t access_mac[6] = {2, 0, 0, 0, 0x99, 0}, core_mac[6] = {2, 0, 0, 0, 0x99, 1};
static struct api_engine engine;

static int start(void **state)
{
	if (engine_eal_init("core-test", 0, 512, 0, NULL) != 0)
		return -1;
	engine_mode.virtual_now = rte_get_tsc_hz() * 1000;
	engine = kit_engine();
	engine.punt_rate = 100;
	return 0;
}

static void put_engine(void)
{
	kit_put(API_ENGINE, "engine", &engine, sizeof(engine));
}

// The engine starts while a transaction is staged. After a refusal, the next one with the same engine must succeed.
static void refused_first_transaction(void **state)
{
	struct api_port bad = {.role = 9, .mtu = 1500, .driver = "inject"};

	kit_begin();
	put_engine();
	kit_put(API_PORT, "access", &bad, sizeof(bad));
	assert_int_equal(kit_commit(), EINVAL);
	assert_false(engine_failed());
	kit_begin();
	put_engine();
	kit_port("access", API_ROLE_ACCESS);
	kit_port("core", API_ROLE_CORE);
	kit_interface("n3", "core", "10.0.0.1/24", NULL);
	kit_path("upf", "10.0.0.1", "10.0.0.2");
	assert_int_equal(kit_commit(), 0);
	kit_advance(1000);
	kit_clear();
}

// Values that would size a table or set a time beyond its bounds are refused in words, and start nothing.
static void limits_are_bounded(void **state)
{
	static const struct {
		size_t field;
		uint32_t bad;
		const char *why;
	} row[] = {
		{offsetof(struct api_engine, max_traffic), 65537, "max_traffic is 65537, must be 0 or 1..65536"},
		{offsetof(struct api_engine, max_traffic), UINT32_MAX,
			"max_traffic is 4294967295, must be 0 or 1..65536"},
		{offsetof(struct api_engine, max_routes), UINT32_MAX,
			"max_routes is 4294967295, must be 0 or 1..8388608"},
		{offsetof(struct api_engine, max_neighbours), 8001, "max_neighbours is 8001, must be 0 or 1..8000"},
		{offsetof(struct api_engine, max_unresolved), 8001, "max_unresolved is 8001, must be 0 or 1..8000"},
		{offsetof(struct api_engine, max_rules), UINT32_MAX,
			"max_rules is 4294967295, must be 0 or 1..134217696"},
		{offsetof(struct api_engine, max_urrs), 1u << 25, "max_urrs is 33554432, must be 0 or 1..16777216"},
		{offsetof(struct api_engine, max_qers), 1u << 26, "max_qers is 67108864, must be 0 or 1..33554432"},
		{offsetof(struct api_engine, max_events), 3, "max_events is 3, must be 0 or 4..4194304"},
		{offsetof(struct api_engine, channel_kib), 63, "channel_kib is 63, must be 0 or 64..1048576"},
		{offsetof(struct api_engine, channel_kib), UINT32_MAX,
			"channel_kib is 4294967295, must be 0 or 64..1048576"},
		{offsetof(struct api_engine, buffer_size), 511, "buffer_size is 511, must be 0 or 512..16384"},
		{offsetof(struct api_engine, punt_line_rate), UINT32_MAX,
			"punt_line_rate is 4294967295, must be 0 or 1..10000000"},
		{offsetof(struct api_engine, flow_idle), UINT32_MAX, "flow_idle is 4294967295, must be 0 or 1..86400"},
		{offsetof(struct api_engine, buffer_seconds), 86401, "buffer_seconds is 86401, must be 0 or 1..86400"},
	};

	for (uint32_t i = 0; i < RTE_DIM(row); i++) {
		struct api_engine e = engine;

		memcpy((uint8_t *)&e + row[i].field, &row[i].bad, sizeof(row[i].bad));
		assert_int_equal(kit_change(API_ENGINE, "engine", &e, sizeof(e)), EINVAL);
		assert_string_equal(kit_error(), row[i].why);
		assert_null(engine_get());
		assert_false(engine_failed());
	}
}

static void only_rates_may_change(void **state)
{
	engine.icmp_error_rate = 7;
	kit_begin();
	put_engine();
	assert_int_equal(kit_commit(), 0);
	assert_int_equal(engine_get()->icmp_error_rate, 7);
	engine.max_flows *= 2;
	kit_begin();
	put_engine();
	assert_int_equal(kit_commit(), EBUSY);
	engine.max_flows /= 2;
	engine.flow_lifetime = 15 * API_FLOW_IDLE + 1;
	kit_begin();
	put_engine();
	assert_int_equal(kit_commit(), EINVAL);
	engine.flow_lifetime = 0;
}

static void put_sessions(uint32_t from, uint32_t count)
{
	for (uint32_t i = from; i < from + count; i++) {
		char name[16], ue[20];

		snprintf(name, sizeof(name), "s%u", i);
		snprintf(ue, sizeof(ue), "100.64.0.%u", i);
		struct kit_session k = kit_session("access", home, 100, (uint16_t)i, 0, ue, NULL, "upf", 0x200 + i);
		kit_put_session(name, &k);
	}
}

// An open transaction is invisible until it is committed, however large it is.
static void open_transaction_is_invisible(void **state)
{
	uint32_t length = 0;
	char name[16];

	kit_begin();
	put_sessions(1, 200);
	assert_int_equal(kit_commit(), 0);
	kit_begin();
	for (uint32_t i = 2; i <= 200; i++) { // more than the array of changes began with
		snprintf(name, sizeof(name), "s%u", i);
		kit_delete(API_SESSION, name);
		assert_non_null(object_find(API_SESSION, "s2", &length));
		assert_true(length >= sizeof(struct api_session));
		assert_false(object_changing(API_SESSION, "s2"));
	}
	assert_int_equal(kit_commit(), 0);
	assert_null(object_find(API_SESSION, "s2", &length));
	assert_non_null(object_find(API_SESSION, "s1", &length));
}

// A session that stays must fit the new versions of its objects.
static void narrowing_is_refused(void **state)
{
	static struct api_scheduler s = {.subports = 1, .rate = 1000000000, .profiles = 1};

	for (int i = 0; i < API_TRAFFIC_CLASSES; i++)
		s.queue_size[i] = 64;
	memset(s.qfi_class, 0xff, sizeof(s.qfi_class));
	s.subport[0] = (struct api_subport){.rate = 1000000000, .pipes = 16};
	s.profile[0] = (struct api_pipe_profile){.name = "other", .rate = 1000000, .weight = {1, 1, 1, 1}};
	kit_begin();
	kit_put(API_SCHEDULER, "access", &s, sizeof(s)); // session s1 has no profile of that name
	assert_int_equal(kit_commit(), ENOENT);
	kit_begin();
	kit_path("upf", "10.0.0.9", "10.0.0.2"); // session s1 has its F-TEID on 10.0.0.1
	assert_int_equal(kit_commit(), EBUSY);
	kit_begin();
	kit_path("upf", "10.0.0.1", "10.0.0.3"); // only the peer: fine
	assert_int_equal(kit_commit(), 0);
	kit_begin();
	kit_path("upf", "10.0.0.1", "10.0.0.2");
	assert_int_equal(kit_commit(), 0);
}

static uint32_t put_uplink(uint8_t *p)
{
	memcpy(p, access_mac, 6);
	memcpy(p + 6, home, 6);
	store16(p + 12, 0x88a8);
	store16(p + 14, 100);
	store16(p + 16, 0x8100);
	store16(p + 18, 1);
	store16(p + 20, 0x0800);
	uint8_t *ip = p + 22;
	memset(ip, 0, 40);
	ip[0] = 0x45;
	store16(ip + 2, 40);
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, kit_address("100.64.0.1").bytes, 4);
	memcpy(ip + 16, kit_address("8.8.8.8").bytes, 4);
	ip4_checksum_set(ip);
	store16(ip + 24, 20);
	return 62;
}

// 500 packets find no neighbour; five times the punt rate. The ARP reply has its own share and gets through.
static void traffic_does_not_starve_arp(void **state)
{
	uint8_t frame[64], reply[64] = {0};

	kit_clear();
	for (int i = 0; i < 500; i++) {
		assert_int_equal(kit_send("access", frame, put_uplink(frame)), 0);
		kit_run();
	}
	assert_true(kit_reason("punt-rate-limit") > 100);
	memcpy(reply, core_mac, 6);
	memcpy(reply + 6, upf, 6);
	store16(reply + 12, 0x0806);
	store16(reply + 14, 1);
	store16(reply + 16, 0x0800);
	reply[18] = 6;
	reply[19] = 4;
	store16(reply + 20, 2);
	memcpy(reply + 22, upf, 6);
	memcpy(reply + 28, kit_address("10.0.0.2").bytes, 4);
	memcpy(reply + 32, core_mac, 6);
	memcpy(reply + 38, kit_address("10.0.0.1").bytes, 4);
	assert_int_equal(kit_send("core", reply, 60), 0);
	kit_run();
	kit_clear();
	assert_int_equal(kit_send("access", frame, put_uplink(frame)), 0);
	kit_run();
	assert_int_equal(kit_count("core"), 1);
	assert_memory_equal(kit_frame("core", 0)->bytes, upf, 6);
	assert_true(kit_balance());
}

// All ports have packets: a walk takes 2,048 of them, and the next one continues there.
static void a_walk_takes_so_many(void **state)
{
	uint8_t frame[60] = {0};
	char name[8];
	uint64_t in = kit_totals().in;

	kit_begin();
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		kit_port(name, API_ROLE_CORE);
	}
	assert_int_equal(kit_commit(), 0);
	for (uint32_t i = 0; i < 40 * VECTOR; i++) {
		snprintf(name, sizeof(name), "p%u", i % 40);
		assert_int_equal(kit_send(name, frame, sizeof(frame)), 0);
	}
	engine_walk();
	assert_int_equal(kit_totals().in - in, 32 * VECTOR);
	engine_walk();
	assert_int_equal(kit_totals().in - in, 40 * VECTOR);
	kit_run();
	assert_true(kit_balance());
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(limits_are_bounded),
		cmocka_unit_test(refused_first_transaction),
		cmocka_unit_test(only_rates_may_change),
		cmocka_unit_test(open_transaction_is_invisible),
		cmocka_unit_test(narrowing_is_refused),
		cmocka_unit_test(traffic_does_not_starve_arp),
		cmocka_unit_test(a_walk_takes_so_many),
	};

	return cmocka_run_group_tests(list, start, NULL);
}
