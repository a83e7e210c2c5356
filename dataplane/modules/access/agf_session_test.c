// SPDX-License-Identifier: Apache-2.0
// Transactions on the access gateway's sessions: changes in place, moves, refusals that change nothing, and random
// changes against a model. Forwarding is checked after each.
#include "access/agf_test.h"
#include "core/engine.h"

static void change_keeps_counters(void **state)
{
	static struct frame up, down, want;
	struct api_session_row before, after;
	struct kit_session k = gateway_home(1);

	up_and_down(&up, &down);
	before = kit_session_row("home-1");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(kit_send("access", up.at, up.length), 0);
		assert_int_equal(kit_send("core", down.at, down.length), 0);
	}
	kit_run();
	k.pdr[1].teid = 0x5555;
	k.far[0].teid = 0x6666;
	put("home-1", &k);
	uint64_t unknown = kit_reason("gtpu-teid-unknown");
	assert_int_equal(kit_send("core", down.at, down.length), 0);
	kit_run();
	assert_int_equal(kit_reason("gtpu-teid-unknown") - unknown, 1);
	inner(&want, gateway_ue(1, 4), FAR4, 60);
	gateway_to_upf(&want, 1);
	store32(want.at + 46, 0x6666);
	expect("access", &up, "core", &want);
	store32(down.at + 46, 0x5555);
	inner(&want, FAR4, gateway_ue(1, 4), 60);
	gateway_to_home(&want, 1);
	expect("core", &down, "access", &want);
	after = kit_session_row("home-1");
	assert_int_equal(after.uplink_packets - before.uplink_packets, 4);
	assert_int_equal(after.uplink_bytes - before.uplink_bytes, 4 * 88);
	assert_int_equal(after.downlink_packets - before.downlink_packets, 4);
	assert_int_equal(after.downlink_bytes - before.downlink_bytes, 4 * 88);
	assert_int_equal(after.teid_local, 0x5555);
}

static void moved_to_other_tags(void **state)
{
	static struct frame up, down, want;
	struct kit_session k = gateway_home(1);

	up_and_down(&up, &down);
	k.s.c_tag = 99;
	put("home-1", &k);
	expect_drop("access", &up, "subscriber-unknown");
	inner(&want, FAR4, gateway_ue(1, 4), 60);
	gateway_to_home(&want, 1);
	store16(want.at + 18, 99);
	expect("core", &down, "access", &want);
	store16(up.at + 18, 99);
	inner(&want, gateway_ue(1, 4), FAR4, 60);
	gateway_to_upf(&want, 1);
	expect("access", &up, "core", &want);
}

static void swap_of_teids(void **state)
{
	static struct frame up, down, want;
	struct kit_session a = gateway_home(1), b = gateway_home(5);

	a.pdr[1].teid = 0x205;
	b.pdr[1].teid = 0x201;
	kit_begin();
	kit_put_session("home-1", &a);
	kit_put_session("home-5", &b);
	commit();
	up_and_down(&up, &down);
	expect_drop("core", &down, "destination-not-ue"); // 0x201 is home 5's now
	store32(down.at + 46, 0x205);
	inner(&want, FAR4, gateway_ue(1, 4), 60);
	gateway_to_home(&want, 1);
	expect("core", &down, "access", &want);
}

static void add_digest(const struct api_digest *d, void *arg)
{
	uint64_t *sum = arg;

	*sum += (d->digest ^ d->kind) * 0x9e3779b97f4a7c15ull; // order does not matter
}

static uint64_t digest_of_all(void)
{
	uint64_t sum = 0;

	for (uint32_t kind = 1; kind < API_KIND_COUNT; kind++) {
		struct api_list all = {.kind = kind, .limit = UINT32_MAX, .last = UINT64_MAX};

		assert_int_equal(kit_list(&all, add_digest, &sum), 0);
	}
	return sum;
}

// The open transaction is refused, with a reason, and nothing has changed: neither state nor forwarding.
static void refused(uint64_t before, const char *what)
{
	static struct frame up, down, want;

	if (kit_commit() == 0)
		fail_msg("%s was accepted", what);
	assert_true(kit_error()[0] != 0);
	if (digest_of_all() != before)
		fail_msg("%s changed the state", what);
	up_and_down(&up, &down);
	inner(&want, gateway_ue(1, 4), FAR4, 60);
	gateway_to_upf(&want, 1);
	expect("access", &up, "core", &want);
	inner(&want, FAR4, gateway_ue(1, 4), 60);
	gateway_to_home(&want, 1);
	expect("core", &down, "access", &want);
	assert_true(gateway_undisturbed());
}

typedef void (*spoil_fn)(struct kit_session *k);

static void same_endpoint(struct kit_session *k)
{
	k->s.c_tag = 3;
	memcpy(k->s.mac, gateway_home_mac(3), 6);
}

static void same_fteid(struct kit_session *k)
{
	k->pdr[1].teid = 0x203;
}

static void no_path(struct kit_session *k)
{
	strcpy(k->far[0].path, "nowhere");
}

static void no_policer(struct kit_session *k)
{
	strcpy(k->qer[0].uplink_policer, "nobody");
}

static void no_port(struct kit_session *k)
{
	strcpy(k->s.port, "nothing");
}

static void core_port(struct kit_session *k)
{
	strcpy(k->s.port, "core");
}

static void no_far(struct kit_session *k)
{
	k->pdr[0].far = 77;
}

static void no_qer(struct kit_session *k)
{
	k->pdr[1].qer[0] = 77;
}

static void same_pdr(struct kit_session *k)
{
	k->pdr[1].id = 1;
}

static void teid_zero(struct kit_session *k)
{
	k->pdr[1].teid = 0;
}

static void other_local(struct kit_session *k)
{
	k->pdr[1].local = kit_address("10.0.0.77");
}

static void group_mac(struct kit_session *k)
{
	k->s.mac[0] = 1;
}

static void tag_range(struct kit_session *k)
{
	k->s.c_tag = 4095;
}

static void wild_worker(struct kit_session *k)
{
	k->s.worker = 5;
}

static void wild_qfi(struct kit_session *k)
{
	k->qer[0].qfi = 64;
}

static void wild_dscp(struct kit_session *k)
{
	k->far[0].dscp = 64;
}

static void endless_names(struct kit_session *k)
{
	memset(k->qer[1].downlink_policer, 'x', API_NAME);
}

static void too_many_rules(struct kit_session *k)
{
	k->s.pdrs = 0xffff;
}

static const struct {
	const char *what;
	spoil_fn spoil;
} spoils[] = {{"the endpoint of another session", same_endpoint}, {"the F-TEID of another session", same_fteid},
	{"an unknown path", no_path}, {"an unknown policer", no_policer}, {"an unknown port", no_port},
	{"a core port", core_port}, {"an unknown FAR", no_far}, {"an unknown QER", no_qer},
	{"one PDR id twice", same_pdr}, {"TEID 0", teid_zero}, {"an F-TEID on no path", other_local},
	{"a group MAC address", group_mac}, {"VLAN 4095", tag_range}, {"a worker that is not there", wild_worker},
	{"QFI 64", wild_qfi}, {"DSCP 64", wild_dscp}, {"a name without end", endless_names},
	{"more rules than the body has", too_many_rules}};

static void refused_sessions(void **state)
{
	uint64_t before = digest_of_all();

	for (unsigned i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++)
		for (int fresh = 0; fresh < 2; fresh++) {
			struct kit_session good = gateway_home(6), bad = gateway_home(fresh ? 9 : 1);

			good.far[0].teid = 0x99999; // part of the same transaction: not applied either
			spoils[i].spoil(&bad);
			kit_begin();
			kit_put_session("home-6", &good);
			kit_put_session(fresh ? "home-9" : "home-1", &bad);
			refused(before, spoils[i].what);
		}
}

static void two_new_sessions_with_one_key(void **state)
{
	uint64_t before = digest_of_all();
	struct kit_session a = gateway_home(9), b = gateway_home(11);

	b.pdr[1].teid = a.pdr[1].teid;
	kit_begin();
	kit_put_session("home-9", &a);
	kit_put_session("home-11", &b);
	refused(before, "one F-TEID for two new sessions");
}

static void what_is_in_use_stays(void **state)
{
	struct api_policer p = {.type = API_SRTCM, .cir = 1000000, .cbs = 100000, .pbs = 100000};
	struct kit_session k = gateway_home(5);

	strcpy(k.qer[0].uplink_policer, "used");
	kit_begin();
	kit_put(API_POLICER, "used", &p, sizeof(p));
	kit_put_session("home-5", &k);
	commit();
	uint64_t before = digest_of_all();
	static const struct {
		uint32_t kind;
		const char *key;
	} used[] = {{API_PATH, "upf4"}, {API_PATH, "upf6"}, {API_POLICER, "used"}, {API_PORT, "access"},
		{API_PORT, "core"}, {API_INTERFACE, "n3"}, {API_ENGINE, "engine"}};
	for (unsigned i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
		kit_begin();
		kit_delete(used[i].kind, used[i].key);
		refused(before, used[i].key);
	}
	gateway_homes(5, 5);
	kit_begin();
	kit_delete(API_POLICER, "used"); // no user left
	commit();
}

// Random transactions against an obvious model.

#define SLOTS 6 // sessions, endpoints and TEIDs
#define ROUNDS 1000

struct model {
	int there, endpoint, teid, peer;
};

static uint64_t random_state = 88172645463325252ull;

static uint32_t draw(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % n;
}

static uint16_t pppoe_of(int endpoint)
{
	return endpoint % 2 ? (uint16_t)(50 + endpoint) : 0;
}

static struct kit_session random_session(const struct model *m)
{
	uint8_t mac[6] = {2, 9, 0, 0, 0, (uint8_t)(m->endpoint / 3)};
	struct kit_session k = kit_session("access", mac, 300, (uint16_t)(10 + m->endpoint), pppoe_of(m->endpoint),
		"100.64.9.9", NULL, "upf4", 0x7000 + (uint32_t)m->teid);

	k.far[0].teid = 0x8000 + (uint32_t)m->peer;
	return k;
}

static const char *slot_name(int slot)
{
	static char name[16];

	snprintf(name, sizeof(name), "random-%d", slot);
	return name;
}

static int possible(const struct model *m)
{
	for (int a = 0; a < SLOTS; a++)
		for (int b = a + 1; b < SLOTS; b++)
			if (m[a].there && m[b].there && (m[a].endpoint == m[b].endpoint || m[a].teid == m[b].teid))
				return 0;
	return 1;
}

static void random_header(struct frame *f, int endpoint, int uplink)
{
	uint8_t mac[6] = {2, 9, 0, 0, 0, (uint8_t)(endpoint / 3)};

	if (pppoe_of(endpoint))
		frame_pppoe(f, pppoe_of(endpoint), 0x21);
	frame_ethernet(
		f, uplink ? gateway_mac[0] : mac, uplink ? mac : gateway_mac[0], pppoe_of(endpoint) ? 0x8864 : 0x0800);
	frame_tag(f, 0x8100, (uint16_t)(10 + endpoint));
	frame_tag(f, 0x88a8, 300);
}

static void check_endpoint(const struct model *m, int endpoint)
{
	static struct frame f, want;
	const struct model *owner = NULL;

	for (int s = 0; s < SLOTS; s++)
		if (m[s].there && m[s].endpoint == endpoint)
			owner = &m[s];
	inner(&f, "100.64.9.9", FAR4, 30);
	random_header(&f, endpoint, 1);
	if (owner == NULL) {
		expect_drop("access", &f, "subscriber-unknown");
		return;
	}
	inner(&want, "100.64.9.9", FAR4, 30);
	frame_gtpu(&want, 0x8000 + (uint32_t)owner->peer, 9);
	want.at[13] = 0x10;
	gateway_outer(&want, 4, 1);
	expect("access", &f, "core", &want);
}

static void check_teid(const struct model *m, int teid)
{
	static struct frame f, want;
	const struct model *owner = NULL;

	for (int s = 0; s < SLOTS; s++)
		if (m[s].there && m[s].teid == teid)
			owner = &m[s];
	inner(&f, FAR4, "100.64.9.9", 30);
	frame_gtpu(&f, 0x7000 + (uint32_t)teid, 9);
	gateway_outer(&f, 4, 0);
	if (owner == NULL) {
		uint64_t before = kit_reason("gtpu-teid-unknown");

		kit_clear();
		assert_int_equal(kit_send("core", f.at, f.length), 0);
		kit_run();
		assert_int_equal(kit_reason("gtpu-teid-unknown") - before, 1);
		assert_int_equal(kit_count("access"), 0);
		return;
	}
	inner(&want, FAR4, "100.64.9.9", 30);
	random_header(&want, owner->endpoint, 0);
	expect("core", &f, "access", &want);
}

static void random_transactions(void **state)
{
	struct model m[SLOTS] = {{0}};
	int accepted = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct model next[SLOTS];
		int first = (int)draw(SLOTS), count = 1 + (int)draw(4);

		memcpy(next, m, sizeof(m));
		kit_begin();
		for (int i = 0; i < count; i++) {
			int slot = (first + i) % SLOTS;

			next[slot] = (struct model){draw(4) != 0, (int)draw(SLOTS), (int)draw(SLOTS), (int)draw(1000)};
			struct kit_session k = random_session(&next[slot]);
			if (next[slot].there)
				kit_put_session(slot_name(slot), &k);
			else
				kit_delete(API_SESSION, slot_name(slot));
		}
		int error = kit_commit();
		if ((error == 0) != possible(next))
			fail_msg("round %d: the model says %s, the gateway says %s", round,
				possible(next) ? "yes" : "no", error == 0 ? "yes" : kit_error());
		if (error == 0)
			memcpy(m, next, sizeof(m));
		accepted += error == 0;
		for (int i = 0; i < SLOTS; i++) {
			check_endpoint(m, i);
			check_teid(m, i);
		}
		if (round % 100 == 0)
			assert_true(gateway_undisturbed());
	}
	assert_in_range(accepted, ROUNDS / 10, ROUNDS - ROUNDS / 10);
	kit_begin();
	for (int slot = 0; slot < SLOTS; slot++)
		kit_delete(API_SESSION, slot_name(slot));
	commit();
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test_teardown(change_keeps_counters, restore),
		cmocka_unit_test_teardown(moved_to_other_tags, restore),
		cmocka_unit_test_teardown(swap_of_teids, restore),
		cmocka_unit_test_teardown(refused_sessions, restore),
		cmocka_unit_test_teardown(two_new_sessions_with_one_key, restore),
		cmocka_unit_test_teardown(what_is_in_use_stays, restore),
		cmocka_unit_test_teardown(random_transactions, restore),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
