// SPDX-License-Identifier: Apache-2.0
// Entries of two workers, walked in turn; packets enter by the first.
#include "core/worker.h"
#include "flow/flow.h"
#include "path/local.h"
#include "rule/rule.h"
#include "rule/session.h"
#include "session/mobile_fixture.h"

#define TEID 0x100
#define STATES 1024 // more than there are
#define GUESSES 3200

static void put_upf(const char *name, uint64_t seid, uint16_t worker)
{
	static struct kit_mobile k;

	kit_mobile(&k, seid, UE4, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", TEID, 1)->match |= API_PDR_UE_IP;
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x200);
	k.s.worker = worker;
	kit_begin();
	kit_put_mobile(name, &k);
	commit();
}

static void delete_session(const char *name)
{
	kit_begin();
	kit_delete(API_SESSION, name);
	commit();
}

static uint16_t local_id(void)
{
	static const uint8_t endpoint[4] = {10, 1, 0, 1};

	return path_local_id(4, endpoint);
}

static uint32_t state_index(void)
{
	const struct rule *r = session_fteid_rule(TEID, local_id());

	assert_non_null(r);
	return r->state;
}

static void receive(uint32_t teid)
{
	static struct frame f;

	ip_packet(&f, UE4, FAR4, 40);
	tunnel(&f, "10.1.0.2", "10.1.0.1", teid, 9, API_PDU_UL);
	link_layer(&f, "ran", 1);
	assert_int_equal(kit_send("ran", f.at, f.length), 0);
}

// Sends a packet of the UE, which leaves. Returns how many the first worker handed over.
static uint64_t send_one(void)
{
	uint64_t before = worker_get(0)->handed_over;

	kit_clear();
	receive(TEID);
	kit_run();
	assert_int_equal(kit_count("internet"), 1);
	assert_true(kit_balance());
	return worker_get(0)->handed_over - before;
}

// A state is returned while the first worker's index leads to its entry; a session of the second worker gets it, with
// the same key.
static void state_moves_to_another_worker(void **unused)
{
	put_upf("a", 1, 0);
	uint32_t state = state_index();
	assert_int_equal(send_one(), 0);
	uint64_t full = kit_node_packets("core-input");
	assert_int_equal(send_one(), 0);
	assert_int_equal(kit_node_packets("core-input"), full); // it had an entry
	delete_session("a");
	put_upf("b", 2, 1);
	for (int i = 0; state_index() != state; i++) {
		assert_true(i < STATES);
		delete_session("b");
		put_upf("b", 2, 1);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(send_one(), 1);
	delete_session("b");
}

// From the second packet on the receiving worker knows the owner, where the packet takes the fast path. An old hint
// leads to full nodes of another worker, which hand it over once more.
static void goes_to_its_worker_at_once(void **unused)
{
	put_upf("a", 1, 1);
	assert_int_equal(send_one(), 1);
	uint64_t full = kit_node_packets("core-input");
	for (int i = 0; i < 3; i++)
		assert_int_equal(send_one(), 1);
	assert_int_equal(kit_node_packets("core-input"), full);
	int16_t *several = flow_several(worker_get(0), 1, local_id());
	*several = 10; // the same where packets are looked for by their 5-tuples
	assert_int_equal(send_one(), 1);
	assert_int_equal(kit_node_packets("core-input"), full);
	*several = 0;
	put_upf("a", 1, 0);
	assert_int_equal(send_one(), 1);
	assert_int_equal(kit_node_packets("core-input"), full + 1);
	assert_int_equal(send_one(), 0);
	assert_int_equal(kit_node_packets("core-input"), full + 1);
	delete_session("a");
}

// Row G14: a flood of guessed TEIDs, half of them with the known TEID's place in the index. Each misses and is dropped,
// Error Indications are limited, and the known flow's packets between them take the fast path.
static void guessed_teids(void **unused)
{
	uint32_t known = 0;

	put_upf("a", 1, 0);
	for (int i = 0; i < 2; i++)
		send_one();
	struct kit_reasons before = kit_reasons();
	uint64_t full = kit_node_packets("core-input");
	kit_clear();
	for (uint32_t i = 1; i <= GUESSES; i++) {
		receive(i & 1 ? TEID | i << 16 : TEID + i * 7919);
		if (i % 32 == 0) {
			receive(TEID);
			known++;
			kit_run();
		}
	}
	assert_int_equal(kit_count("internet"), known);
	assert_int_equal(kit_node_packets("core-input") - full, GUESSES);
	assert_in_range(kit_count("ran"), 1, kit_engine().error_indication_rate);
	kit_only_rose(&before, "gtpu-teid-unknown", GUESSES);
	assert_true(kit_balance());
	delete_session("a");
}

static void put_tunnel(const char *name, uint64_t seid, uint32_t teid)
{
	static struct kit_mobile k;

	kit_mobile(&k, seid, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", teid, 1);
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	kit_begin();
	kit_put_mobile(name, &k);
	commit();
}

// A TEID's first packet takes the full nodes, the second does not.
static uint32_t state_of(uint32_t teid)
{
	uint16_t local = local_id();

	for (int i = 0; i < 2; i++) {
		uint64_t full = kit_node_packets("core-input");

		kit_clear();
		receive(teid);
		kit_run();
		assert_int_equal(kit_count("internet"), 1);
		assert_int_equal(kit_node_packets("core-input") - full, i == 0);
	}
	return session_fteid_rule(teid, local)->state;
}

#define FIRST_TEID (TEID + 0x100)

// Neighbouring TEIDs have neighbouring states, which packets find without the index. A TEID with another's low bits has
// its state elsewhere, and still takes the fast path. If many have, packets use the index again.
static void states_lie_at_their_places(void **unused)
{
	uint16_t local = local_id();
	int16_t *in_place = flow_in_place(worker_get(0), 1, local);
	char name[16];

	*in_place = 0;
	for (uint32_t i = 0; i < 9; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		put_tunnel(name, 10 + i, FIRST_TEID + i);
		assert_int_equal(state_of(FIRST_TEID + i), flow_place(fteid_key(FIRST_TEID + i, local)));
	}
	int16_t before = *in_place;
	assert_in_range(before, 8, 9); // the first TEID's place in the index may know the state
	put_tunnel("other", 20, 0xabc00000 | FIRST_TEID);
	assert_int_not_equal(state_of(0xabc00000 | FIRST_TEID), flow_place(fteid_key(FIRST_TEID, local)));
	assert_int_equal(*in_place, before - FLOW_HABIT_BREACH);
	for (uint32_t i = 0; i < 9; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		delete_session(name);
	}
	put_tunnel("another", 21, 0xabc00000 | (FIRST_TEID + 1)); // at a place that is free again
	assert_int_equal(state_of(0xabc00000 | (FIRST_TEID + 1)), flow_place(fteid_key(FIRST_TEID + 1, local)));
	delete_session("another");
	delete_session("other");
}

static void put_several(const char *name, uint64_t seid, uint32_t teid)
{
	static struct kit_mobile k;

	kit_mobile(&k, seid, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", teid, 1);
	struct api_pdr *p = kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", teid, 1);
	p->precedence = 10;
	struct api_sdf *f = kit_sdf(&k, p);
	f->flags = API_SDF_PROTOCOL;
	f->protocol = 6;
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	kit_begin();
	kit_put_mobile(name, &k);
	commit();
}

// Where nearly all keys have several PDRs, packets are looked up by 5-tuple at once, without the index; a key with one
// PDR keeps the fast path.
static void several_pdrs_by_tuple_at_once(void **unused)
{
	int16_t *several = flow_several(worker_get(0), 1, local_id());
	const uint32_t teid = FIRST_TEID + 0x20;
	char name[16];

	*several = 0;
	for (uint32_t i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		put_several(name, 30 + i, teid + i);
		state_of(teid + i);
		assert_int_equal(*several, i + 1);
	}
	memset(flow_index.state[0], 0, (flow_index.mask + 1) * sizeof(uint32_t));
	uint64_t full = kit_node_packets("core-input");
	receive(teid);
	kit_run();
	assert_int_equal(kit_node_packets("core-input"), full);
	put_tunnel("one", 40, teid + 4);
	state_of(teid + 4);
	assert_int_equal(*several, 4 - FLOW_HABIT_BREACH);
	full = kit_node_packets("core-input");
	receive(teid + 4);
	receive(teid + 1);
	kit_run();
	assert_int_equal(kit_node_packets("core-input"), full);
	for (uint32_t i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		delete_session(name);
	}
	delete_session("one");
	*several = 0;
}

// A UE with both families and one PDR, in an instance where nearly all have several. The state has the key of its IPv4
// address, and IPv6 takes the fast path as well. Its keys name no instance and do not change an instance's habits.
static void both_families_beside_several(void **unused)
{
	struct flow_habits *habits = &flow_index.habits[0], before;
	static struct kit_mobile k;
	static struct frame f;

	kit_mobile(&k, 50, UE4, "2001:db8:1:7::/64");
	kit_pdr_ue(&k, API_FROM_CORE, "core", 1);
	kit_far_gtpu(&k, 1, API_FROM_ACCESS, "gnb", 0x200);
	kit_begin();
	kit_put_mobile("both", &k);
	commit();
	for (uint32_t i = 0; i < 256; i++)
		habits->several[0][i] = 10;
	before = *habits;
	for (int i = 0; i < 4; i++) {
		uint64_t full = kit_node_packets("core-input");
		int six = i & 1;

		kit_clear();
		ip_packet(&f, six ? FAR6 : FAR4, six ? "2001:db8:1:7::5" : UE4, 40);
		link_layer(&f, "internet", 1);
		assert_int_equal(kit_send("internet", f.at, f.length), 0);
		kit_run();
		assert_int_equal(kit_count("ran"), 1);
		assert_int_equal(kit_node_packets("core-input") - full, i == 0);
	}
	uint32_t changed = 0;
	for (uint32_t i = 0; i < 256; i++)
		changed += habits->several[0][i] != before.several[0][i];
	assert_int_equal(changed, 1); // by IPv4
	memset(habits->several, 0, sizeof(habits->several));
	delete_session("both");
}

static void put_metered(uint32_t meters)
{
	static struct kit_mobile k;

	kit_mobile(&k, 60, UE4, NULL);
	struct api_pdr *p = kit_pdr_ue(&k, API_FROM_CORE, "core", 1);
	kit_far_gtpu(&k, 1, API_FROM_ACCESS, "gnb", 0x200);
	for (uint32_t id = 1; id <= meters; id++) {
		strcpy(kit_qer(&k, id, 0)->downlink_policer, id == 1 ? "mark" : "pass");
		kit_pdr_qer(p, id);
	}
	kit_begin();
	kit_put_mobile("metered", &k);
	commit();
}

// A meter that marks passing packets (flow level marking of a QER, TS 29.244 §8.2.66), alone and among others. The fast
// path marks, too, and keeps congestion marks.
static void marks_as_its_meters_say(void **unused)
{
	struct api_policer pass = {.type = API_SRTCM, .cir = 1000000, .cbs = 1000000, .dscp = {46, 46}}, mark = pass;
	static struct frame f;

	mark.action[0] = mark.action[1] = API_COLOUR_REMARK;
	kit_begin();
	kit_put(API_POLICER, "pass", &pass, sizeof(pass));
	kit_put(API_POLICER, "mark", &mark, sizeof(mark));
	commit();
	for (uint32_t i = 0; i < 9; i++) {
		uint64_t full = kit_node_packets("core-input");

		if (i % 3 == 0)
			put_metered(1 + i / 3);
		kit_clear();
		ip_packet(&f, FAR4, UE4, 40);
		f.at[1] = 2; // ECT(0)
		ip4_checksum_set(f.at);
		uint32_t length = f.length;
		link_layer(&f, "internet", 1);
		assert_int_equal(kit_send("internet", f.at, f.length), 0);
		kit_run();
		assert_int_equal(kit_count("ran"), 1);
		assert_int_equal(kit_node_packets("core-input") - full, i % 3 == 0);
		const struct kit_frame *out = kit_frame("ran", 0);
		const uint8_t *ip = out->bytes + out->length - length;
		assert_int_equal(ip[1], 46 << 2 | 2);
		assert_true(ip4_checksum_ok(ip));
	}
	delete_session("metered");
}

static int setup(void **unused)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	e.max_sessions = 16;
	fixture_start(&e);
	return 0;
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test(guessed_teids),
		cmocka_unit_test(state_moves_to_another_worker), cmocka_unit_test(goes_to_its_worker_at_once),
		cmocka_unit_test(states_lie_at_their_places), cmocka_unit_test(several_pdrs_by_tuple_at_once),
		cmocka_unit_test(both_families_beside_several), cmocka_unit_test(marks_as_its_meters_say)};

	return cmocka_run_group_tests(list, setup, NULL);
}
