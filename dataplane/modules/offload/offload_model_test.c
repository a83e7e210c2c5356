// SPDX-License-Identifier: Apache-2.0
// Random sessions, traffic, changes and device faults against a list of what is in force. A device never treats a
// packet in a way that its session no longer has, and all packets are counted. OFFLOAD_MODEL_ROUNDS=N for a longer run.
#include "offload/fixture_test.h"

#define SESSIONS 12u

static struct {
	uint8_t lives, moved; // moved: the gNB's MAC address
	uint32_t teid; // to the gNB
	uint64_t up, down;
} model[SESSIONS];
static uint8_t gnb_moved;
static uint32_t taken, teids = 0x1000;
static const uint8_t other_gnb[6] = {2, 0, 0, 0, 0xee, 9};

static uint32_t draw(uint32_t n)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	return (uint32_t)(x >> 33) % n;
}

static void ue_of(uint32_t n, char ue[32])
{
	snprintf(ue, 32, "10.45.0.%u", n + 0x40);
}

static void change_session(uint32_t n)
{
	struct kit_mobile *k = upf_session(n + 0x40);
	char name[16];

	snprintf(name, sizeof(name), "m%u", n);
	if (model[n].lives && draw(3) == 0) {
		gone(name);
		model[n].lives = 0;
		return;
	}
	if (!model[n].lives)
		model[n].up = model[n].down = 0;
	model[n].lives = 1;
	model[n].teid = k->far[1].teid = teids++;
	if (draw(4) == 0)
		k->far[0].action = API_FAR_DROP;
	put(name, k);
}

// A frame enters by the device, or else by the software; the output is the session's, if it exists.
static void packet(uint32_t n, int uplink)
{
	static struct frame f;
	char ue[32], name[16];
	uint64_t *count = uplink ? &model[n].up : &model[n].down;
	const char *in = uplink ? "ran" : "internet", *out = uplink ? "internet" : "ran";

	ue_of(n, ue);
	snprintf(name, sizeof(name), "m%u", n);
	uplink ? uplink_of(&f, ue, FAR4, 0x140 + n, 9) : downlink_of(&f, FAR4, ue);
	int done = recorder_receive(uplink ? RAN : INTERNET, f.at, f.length);
	assert_true(done == -1 || (done == 1 && model[n].lives));
	const uint8_t *left = recorder.frame;
	if (done == 1) {
		taken++;
		(*count)++;
	} else {
		kit_clear();
		assert_int_equal(kit_send(in, f.at, f.length), 0);
		kit_run();
		assert_true(kit_count(out) <= model[n].lives);
		*count += kit_count(out);
		left = kit_count(out) != 0 ? kit_frame(out, 0)->bytes : NULL;
	}
	if (left != NULL && !uplink) {
		assert_int_equal(load32(left + 14 + 28 + 4), model[n].teid);
		assert_memory_equal(left, gnb_moved ? other_gnb : mac_gnb, 6);
	}
	if (model[n].lives && draw(8) == 0) {
		struct api_session_row row = kit_session_row(name);

		assert_int_equal(row.uplink_packets, model[n].up);
		assert_int_equal(row.uplink_bytes, model[n].up * 108);
		assert_int_equal(row.downlink_packets, model[n].down);
		assert_int_equal(row.downlink_bytes, model[n].down * 108);
	}
}

static void fault(void)
{
	uint32_t what = draw(6);

	if (what == 0) {
		recorder.down[draw(3)] ^= 1;
	} else if (what == 1) {
		recorder.room = draw(2) ? UINT32_MAX : draw(20);
	} else if (what == 2) {
		recorder.refuses[RTE_FLOW_ACTION_TYPE_RAW_ENCAP] = draw(2) != 0;
	} else if (what == 3) {
		kit_advance(11000000);
	} else {
		gnb_moved ^= 1;
		kit_begin();
		kit_neighbour("n3", "10.1.0.2", gnb_moved ? other_gnb : mac_gnb);
		commit();
	}
	settle_entries();
}

static int setup(void **state)
{
	start_fixture(NULL);
	set_offload(API_OFFLOAD_FULL);
	return 0;
}

static void random_operations(void **state)
{
	const char *rounds = getenv("OFFLOAD_MODEL_ROUNDS");

	for (int i = 0, n = rounds ? atoi(rounds) : 20000; i < n; i++) {
		uint32_t what = draw(40);

		if (what == 0)
			fault();
		else if (what < 4)
			change_session(draw(SESSIONS));
		else if (what < 8)
			settle_entries();
		else
			packet(draw(SESSIONS), (int)draw(2));
	}
	assert_true(taken > 1000);
	for (uint32_t n = 0; n < SESSIONS; n++) {
		char name[16];

		snprintf(name, sizeof(name), "m%u", n);
		if (model[n].lives)
			gone(name);
	}
	nothing_left();
	assert_true(kit_balance());
}

int main(void)
{
	const struct CMUnitTest all[] = {cmocka_unit_test(random_operations)};

	return cmocka_run_group_tests(all, setup, NULL);
}
