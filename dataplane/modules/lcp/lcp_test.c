// SPDX-License-Identifier: Apache-2.0
// LCP echo in virtual time: answers, spread of requests, silent homes, loops, floods, malformed packets.
#include "access/bng_test.h"
#include "testkit/events.h"
#include "testkit/reasons.h"
#include "wire/pppoe.h"

#define MAGIC 0xa1b2c3d4u
#define HOMES 6u

static void home_of(struct bng *b, uint32_t home)
{
	*b = (struct bng){home, home % BNG_TAGS, 1};
}

static void open_home(uint32_t home, uint16_t interval, uint8_t count, int opened)
{
	static struct kit_mobile k;
	struct bng b;

	home_of(&b, home);
	bng_session(&k, &b);
	k.s.lcp_magic = MAGIC + home;
	k.s.lcp_interval = interval;
	k.s.lcp_count = count;
	k.s.lcp_opened = (uint8_t)opened;
	bng_commit(gateway_home_name(home), &k);
}

// An LCP packet of `length` bytes with `more` bytes of PPP padding behind, in the home's encapsulation.
static void lcp(
	struct frame *f, uint32_t home, uint8_t code, uint8_t id, uint16_t length, uint32_t magic, int from_home)
{
	struct bng b;

	home_of(&b, home);
	frame_payload(f, length - 4u);
	store32(f->at, magic);
	uint8_t *head = frame_push(f, 4);
	head[0] = code;
	head[1] = id;
	store16(head + 2, length);
	bng_access(f, &b, from_home);
	uint32_t at = 14 + (b.tags == BNG_QINQ ? 8 : b.tags == BNG_SINGLE ? 4 : 0);
	store16(f->at + at + 6, PPP_LCP);
	store16(f->at + at + 4, (uint16_t)(length + 2));
}

static void answered(void **state)
{
	static struct frame in, out;

	for (uint32_t home = 1; home <= HOMES; home++) {
		open_home(home, 0, 0, 1);
		for (uint16_t length = 8; length < 1400; length += 199) {
			kit_advance(1000000);
			lcp(&in, home, LCP_ECHO_REQUEST, (uint8_t)length, length, 77, 1);
			lcp(&out, home, LCP_ECHO_REPLY, (uint8_t)length, length, MAGIC + home, 0);
			expect("access", &in, "access", &out);
		}
		lcp(&in, home, LCP_ECHO_REPLY, 1, 8, 77, 1);
		expect_drop("access", &in, "lcp-echo-heard");
		lcp(&in, home, LCP_DISCARD_REQUEST, 1, 100, 77, 1);
		expect_drop("access", &in, "lcp-echo-heard");
		lcp(&in, home, LCP_ECHO_REQUEST, 1, 8, MAGIC + home, 1);
		expect_drop("access", &in, "lcp-echo-loop");
		lcp(&in, home, LCP_ECHO_REPLY, 1, 8, MAGIC + home, 1);
		expect_drop("access", &in, "lcp-echo-loop");
	}
}

// A subscriber takes no more than its MRU, of an answer either (RFC 1661 §6.1).
static void answers_fit(void **state)
{
	static struct frame in, out;
	static struct kit_mobile k;
	struct bng b;

	for (uint32_t home = 1; home <= HOMES; home++) {
		home_of(&b, home);
		bng_session(&k, &b);
		k.s.lcp_magic = MAGIC + home;
		k.s.lcp_opened = 1;
		k.s.mru = 576;
		bng_commit(gateway_home_name(home), &k);
		for (uint16_t length = 575; length <= 577; length++) {
			kit_advance(1000000);
			lcp(&in, home, LCP_ECHO_REQUEST, 1, length, 77, 1);
			lcp(&out, home, LCP_ECHO_REPLY, 1, length > 576 ? 576 : length, MAGIC + home, 0);
			expect("access", &in, "access", &out);
		}
		lcp(&in, home, LCP_ECHO_REQUEST, 1, 1400, 77, 1);
		lcp(&out, home, LCP_ECHO_REPLY, 1, 576, MAGIC + home, 0);
		expect("access", &in, "access", &out);
	}
	assert_true(kit_balance());
}

static void malformed(void **state)
{
	static struct frame f, whole;
	struct kit_reasons before;

	open_home(5, 0, 0, 1); // untagged: LCP at 22
	lcp(&whole, 5, LCP_ECHO_REQUEST, 1, 20, 77, 1);
	for (uint16_t length = 0; length <= 300; length++) {
		f = whole;
		f.at = f.room + (whole.at - whole.room);
		store16(f.at + 24, length);
		if (length < 8 || length > 20)
			expect_drop("access", &f, "lcp-echo-malformed");
	}
	for (uint32_t cut = 14 + 8; cut < whole.length; cut++) { // PPPoE says more than there is
		f = whole;
		f.at = f.room + (whole.at - whole.room);
		f.length = cut;
		expect_drop("access", &f, "pppoe-malformed");
	}
	for (uint16_t payload = 2; payload < 22; payload++) { // LCP says more than PPPoE
		f = whole;
		f.at = f.room + (whole.at - whole.room);
		store16(f.at + 18, payload);
		before = kit_reasons();
		assert_int_equal(kit_send("access", f.at, f.length), 0);
		kit_run();
		if (payload > 2)
			kit_only_rose(&before, "lcp-echo-malformed", 1);
	}
	f = whole;
	f.at = f.room + (whole.at - whole.room);
	f.at[11] ^= 1; // another MAC address
	expect_drop("access", &f, "ppp-unknown-subscriber");
	assert_true(kit_balance());
}

// Before LCP is open, echoes are the control plane's, and so are all other codes.
static void not_ours(void **state)
{
	static struct frame f;

	open_home(2, 0, 0, 0);
	uint64_t punted = kit_reason("ppp-control");
	lcp(&f, 2, LCP_ECHO_REQUEST, 1, 8, 77, 1);
	assert_int_equal(kit_send("access", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_reason("ppp-control") - punted, 1);
	open_home(2, 0, 0, 1);
	for (uint8_t code = 1; code < 9; code++) {
		lcp(&f, 2, code, 1, 8, 77, 1);
		assert_int_equal(kit_send("access", f.at, f.length), 0);
	}
	kit_run();
	assert_int_equal(kit_reason("ppp-control") - punted, 9);
}

static void flood(void **state)
{
	static struct frame f, other;

	open_home(2, 0, 0, 1);
	open_home(4, 0, 0, 1);
	kit_advance(5000000);
	kit_clear();
	lcp(&f, 2, LCP_ECHO_REQUEST, 1, 8, 77, 1);
	lcp(&other, 4, LCP_ECHO_REQUEST, 1, 8, 77, 1);
	struct kit_reasons before = kit_reasons();
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(kit_send("access", f.at, f.length), 0);
		if (i % 200 == 0)
			assert_int_equal(kit_send("access", other.at, other.length), 0);
	}
	kit_run();
	assert_int_equal(kit_count("access"), 10 + 5);
	kit_only_rose(&before, "lcp-echo-rate-limit", 990);
	kit_clear();
	kit_advance(1100000);
	assert_int_equal(kit_send("access", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count("access"), 1);
}

// Requests sent since the last call, by home; each is checked.
static uint32_t requests(uint32_t of[HOMES + 1])
{
	static struct frame want;
	uint32_t n = kit_count("access");

	for (uint32_t i = 0; i < n; i++) {
		const struct kit_frame *k = kit_frame("access", i);
		uint32_t home = k->bytes[5], identifier = k->bytes[k->length - 7];

		assert_true(home >= 1 && home <= HOMES);
		lcp(&want, home, LCP_ECHO_REQUEST, (uint8_t)identifier, 8, MAGIC + home, 0);
		assert_int_equal(k->length, want.length);
		assert_memory_equal(k->bytes, want.at, want.length);
		of[home]++;
	}
	kit_clear();
	return n;
}

static void pass_ms(uint32_t ms)
{
	for (; ms >= 10; ms -= 10)
		kit_advance(10000);
}

// One echo per interval and home. Homes that answer stay; a silent one is reported once, and again after an answer.
static void silence(void **state)
{
	static struct frame f;
	uint32_t of[HOMES + 1] = {0};

	for (uint32_t home = 1; home <= HOMES; home++)
		open_home(home, 5, 3, 1);
	kit_events_clear();
	kit_clear();
	for (int second = 0; second < 60; second++) {
		pass_ms(1000);
		requests(of);
		for (uint32_t home = 1; home <= HOMES; home++) {
			if (home == 4 && second < 40)
				continue;
			lcp(&f, home, LCP_ECHO_REPLY, 1, 8, 77, 1);
			assert_int_equal(kit_send("access", f.at, f.length), 0);
		}
		kit_run();
		if (second < 14)
			assert_int_equal(kit_events(API_EVENT_LCP_DOWN), 0);
	}
	for (uint32_t home = 1; home <= HOMES; home++)
		assert_in_range(of[home], 11, 13);
	assert_int_equal(kit_events(API_EVENT_LCP_DOWN), 1);
	assert_int_equal(kit_event(API_EVENT_LCP_DOWN, 0)->seid, 0x504);
	assert_string_equal(kit_event(API_EVENT_LCP_DOWN, 0)->session, "home-4");
	pass_ms(30000);
	assert_int_equal(kit_events(API_EVENT_LCP_DOWN), 1 + HOMES);
	kit_clear();
	// A change of the session that is not about LCP changes nothing here; without an interval, none are sent.
	for (uint32_t home = 1; home <= HOMES; home++)
		open_home(home, 0, 3, 1);
	pass_ms(10000);
	assert_int_equal(kit_count("access"), 0);
}

static void refused(void **state)
{
	static struct kit_mobile k;
	struct bng b = {1, BNG_QINQ, 0};

	bng_session(&k, &b);
	k.s.lcp_interval = 10;
	kit_begin();
	kit_put_mobile("home-9", &k);
	assert_int_equal(kit_commit(), EINVAL);
	assert_non_null(strstr(kit_error(), "has LCP and no PPPoE"));
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(answered),
		cmocka_unit_test(answers_fit),
		cmocka_unit_test(malformed),
		cmocka_unit_test(not_ours),
		cmocka_unit_test(flood),
		cmocka_unit_test(silence),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(list, bng_setup, NULL);
}
