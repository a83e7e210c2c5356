// SPDX-License-Identifier: Apache-2.0
// NAT44 of protocols without ports in the graph: both directions byte by byte; two subscribers at one remote, limits,
// ends, ICMP errors. Two workers: a pair belongs to its session's worker, or to the other.
#include "core/trace_inside.h"
#include "nat/fixture_test.h"

#define REMOTES 8 // so many, that both workers have some
enum { PPTP, ESP, SIX, GRE, KINDS };

static struct api_nat pairs_body(void)
{
	struct api_nat n = nat_body();

	n.address[0] = kit_address(OUTSIDE); // one, which all share
	n.pairs = 100;
	n.pair_protocols = API_NAT_GRE | API_NAT_ESP | API_NAT_6IN4;
	n.pairs_of_subscriber = REMOTES;
	n.pair_timeout = 60;
	return n;
}

static int fresh(void **state)
{
	struct api_nat n = pairs_body();

	put_nat(&n);
	for (uint32_t i = 1; i <= 3; i++)
		put_on(i, i % 2);
	return 0;
}

static const char *remote(uint32_t i)
{
	static char text[REMOTES + 2][20];

	snprintf(text[i], sizeof(text[i]), "198.51.100.%u", 9 + i);
	return text[i];
}

static uint8_t protocol_of(int kind)
{
	return kind == ESP ? 50 : kind == SIX ? 41 : 47;
}

// The receiver's id: of PPTP 16 bits, of others none.
static void make_pair(struct frame *f, int kind, uint32_t id, const char *from, const char *to)
{
	static const uint8_t pptp[] = {0x30, 0x01, 0x88, 0x0b, 0, 41};
	uint8_t *head;

	frame_payload(f, 41);
	head = frame_push(f, kind == PPTP ? 12 : kind == ESP ? 8 : 4);
	if (kind == PPTP) {
		memcpy(head, pptp, sizeof(pptp));
		store16(head + 6, (uint16_t)id);
	} else if (kind == ESP) {
		store32(head, id);
		head[7] = 1;
	} else
		head[kind == SIX ? 0 : 2] = kind == SIX ? 0x60 : 0x08;
	frame_ip(f, from, to, protocol_of(kind));
}

static void goes_out(uint32_t n, int kind, uint32_t id, const char *to)
{
	static struct frame f, want;

	make_pair(&f, kind, id, ue(n), to);
	up(&f, n);
	make_pair(&want, kind, id, OUTSIDE, to);
	hop(&want);
	link_layer(&want, "internet", 0);
	expect("ran", &f, "internet", &want);
}

static void refused_pair(uint32_t n, int kind, uint32_t id, const char *to, const char *reason)
{
	static struct frame f;

	make_pair(&f, kind, id, ue(n), to);
	up(&f, n);
	expect_drop("ran", &f, reason);
}

static void comes_to(uint32_t n, int kind, uint32_t id, const char *from)
{
	static struct frame f, want;

	make_pair(&f, kind, id, from, OUTSIDE);
	link_layer(&f, "internet", 1);
	make_pair(&want, kind, id, from, ue(n));
	tunnel(&want, "10.1.0.1", "10.1.0.2", 0x200 + n, 0xff, API_PDU_DL);
	link_layer(&want, "ran", 0);
	expect("internet", &f, "ran", &want);
}

static void comes_to_nobody(int kind, uint32_t id, const char *from, const char *reason)
{
	static struct frame f;

	make_pair(&f, kind, id, from, OUTSIDE);
	link_layer(&f, "internet", 1);
	expect_drop("internet", &f, reason);
}

static void off(void **state)
{
	struct api_nat n = nat_body();

	put_nat(&n);
	for (int kind = 0; kind < KINDS; kind++) {
		refused_pair(1, kind, 7, FAR4, "nat-protocol");
		comes_to_nobody(kind, 7, FAR4, "nat-protocol");
	}
	n = pairs_body();
	n.pair_protocols = API_NAT_ESP;
	put_nat(&n);
	for (int kind = 0; kind < KINDS; kind++) {
		if (kind == ESP)
			continue;
		refused_pair(1, kind, 7, FAR4, "nat-protocol");
		comes_to_nobody(kind, 7, FAR4, "nat-protocol");
	}
	goes_out(1, ESP, 7, FAR4);
	comes_to(1, ESP, 8, FAR4);
}

// The subscriber's external address (RFC 4787 REQ-2), whose block stays as long as the pair.
static void there_and_back(void **state)
{
	for (int kind = 0; kind < KINDS; kind++)
		for (uint32_t i = 0; i < REMOTES / 4; i++) {
			comes_to_nobody(kind, 9, remote(i), "nat-pair-unknown");
			goes_out(1, kind, 7, remote(i));
			comes_to(1, kind, 9, remote(i));
			comes_to(1, kind, 9, remote(i));
			goes_out(1, kind, 7, remote(i));
			comes_to_nobody(kind, 9, remote(REMOTES), "nat-pair-unknown");
		}
	assert_int_equal(row().pairs, REMOTES);
	assert_int_equal(row().pairs_made, REMOTES);
	assert_int_equal(row().mappings, 3); // GRE, ESP, 6in4
	kit_advance(50000000);
	assert_int_equal(row().pairs, REMOTES);
	assert_int_equal(row().used, 1);
	goes_out(1, ESP, 7, remote(0));
	kit_advance(20000000);
	assert_int_equal(row().pairs, 1);
	assert_int_equal(row().used, 1);
	comes_to(1, ESP, 9, remote(0)); // does not keep it: RFC 4787 REQ-6
	comes_to_nobody(SIX, 9, remote(0), "nat-pair-unknown");
	kit_advance(41000000);
	comes_to_nobody(ESP, 9, remote(0), "nat-pair-unknown");
	kit_advance(1100000);
	assert_int_equal(row().pairs, 0);
	assert_int_equal(row().used, 0);
}

// RFC 2637: two subscribers call one server; each call has an id each way.
static void pptp(void **state)
{
	for (uint32_t i = 0; i < REMOTES; i++) {
		goes_out(1, PPTP, 0x100, remote(i));
		refused_pair(2, PPTP, 0x101, remote(i), "nat-pair-taken"); // whose answer would it be?
		comes_to(1, PPTP, 0x4001, remote(i));
		goes_out(2, PPTP, 0x101, remote(i));
		comes_to(1, PPTP, 0x4001, remote(i));
		comes_to(2, PPTP, 0x4002, remote(i));
		comes_to(1, PPTP, 0x4001, remote(i));
		comes_to_nobody(PPTP, 0x4003, remote(i), "nat-pair-unknown");
		goes_out(2, PPTP, 0x101, remote(i));
		goes_out(1, PPTP, 0x100, remote(i));
		refused_pair(3, PPTP, 0x100, remote(i), "nat-pair-taken"); // the server's id of the first one's call
	}
	assert_int_equal(row().pairs, 2 * REMOTES);
	assert_int_equal(row().pairs_refused, 2 * REMOTES);
}

// An unanswered pair is waited for two seconds.
static void esp_rekeys(void **state)
{
	goes_out(1, ESP, 0x1000, FAR4);
	kit_advance(2200000);
	goes_out(2, ESP, 0x2000, FAR4);
	comes_to(2, ESP, 0x2001, FAR4);
	comes_to_nobody(ESP, 0x1001, FAR4, "nat-pair-unknown");
	kit_advance(2200000);
	goes_out(1, ESP, 0x1000, FAR4);
	comes_to(1, ESP, 0x1001, FAR4);
	for (uint32_t spi = 0x1010; spi < 0x1100; spi += 0x10) {
		goes_out(1, ESP, spi, FAR4);
		comes_to(1, ESP, spi + 1, FAR4);
		goes_out(2, ESP, 0x2000, FAR4);
		comes_to(2, ESP, 0x2001, FAR4);
		comes_to(1, ESP, spi - 0xf, FAR4); // the old one, until it ends
	}
	gone("s1");
	comes_to(2, ESP, 0x7777, FAR4); // alone
}

// Without identifiers a remote is one subscriber's, until its time is over.
static void one_at_a_remote(void **state)
{
	for (int kind = SIX; kind <= GRE; kind++) {
		goes_out(1, kind, 0, FAR4);
		refused_pair(2, kind, 0, FAR4, "nat-pair-taken");
		comes_to(1, kind, 0, FAR4);
		kit_advance(59000000);
		refused_pair(2, kind, 0, FAR4, "nat-pair-taken");
		kit_advance(2000000);
		goes_out(2, kind, 0, FAR4);
		comes_to(2, kind, 0, FAR4);
	}
	goes_out(1, PPTP, 1, FAR4); // PPTP calls are kept apart
	comes_to(1, PPTP, 2, FAR4);
}

static void limits(void **state)
{
	struct api_nat n = pairs_body();
	uint32_t good = 0;

	for (uint32_t i = 0; i < REMOTES; i++)
		goes_out(1, SIX, 0, remote(i));
	refused_pair(1, SIX, 0, remote(REMOTES), "nat-pair-limit");
	goes_out(1, SIX, 0, remote(0));
	goes_out(2, SIX, 0, remote(REMOTES));
	n.pairs_of_subscriber = REMOTES + 1; // no pair goes
	put_nat(&n);
	goes_out(1, SIX, 0, remote(REMOTES + 1));
	assert_int_equal(row().pairs, REMOTES + 2);
	n.pairs = 4;
	put_nat(&n);
	assert_int_equal(row().pairs, 0);
	for (uint32_t i = 0; i < REMOTES; i++) {
		static struct frame f;

		make_pair(&f, SIX, 0, ue(1), remote(i));
		up(&f, 1);
		send_frame("ran", &f);
		good += all_out();
	}
	assert_int_equal(good, 4);
	assert_int_equal(row().pairs, 4);
	assert_int_equal(row().pairs_refused, REMOTES - 4);
	n.port[1] = 1024 + 16 - 1; // one block, which is the other's
	put_nat(&n);
	out(2, 17, 4000, FAR4, 53);
	refused_pair(1, SIX, 0, FAR4, "nat-pool-exhausted");
}

// A pair is a session's, on the worker where that is.
static void sessions_end(void **state)
{
	for (uint32_t i = 0; i < REMOTES; i++)
		goes_out(1, ESP, 7, remote(i));
	gone("s1");
	for (uint32_t i = 0; i < REMOTES; i++)
		comes_to_nobody(ESP, 8, remote(i), "nat-pair-unknown");
	put_on(1, 1);
	comes_to_nobody(ESP, 8, FAR4, "nat-pair-unknown");
	kit_advance(1100000);
	assert_int_equal(row().pairs, 0);
	for (uint32_t i = 0; i < REMOTES; i++)
		goes_out(1, ESP, 7, remote(i));
	put_on(1, 0);
	refused_pair(1, ESP, 7, FAR4, "nat-moving");
	kit_advance(1100000);
	assert_int_equal(row().pairs, 0);
	for (uint32_t i = 0; i < REMOTES; i++) {
		goes_out(1, ESP, 7, remote(i));
		comes_to(1, ESP, 8, remote(i));
	}
}

static void icmp_about(struct frame *f, const char *from, const char *to)
{
	uint16_t sum;

	f->length = 20 + 8; // RFC 792: eight octets
	uint8_t *icmp = frame_push(f, 8);
	icmp[0] = 3;
	icmp[1] = 4;
	store16(icmp + 6, 1280);
	frame_ip(f, from, to, 1);
	sum = l4_sum(f->at);
	memcpy(f->at + 22, &sum, 2);
}

// RFC 5508 REQ-3 to REQ-6.
static void error_comes(uint32_t n, int kind, uint32_t id, const char *far)
{
	static struct frame f, want;

	make_pair(&f, kind, id, OUTSIDE, far);
	icmp_about(&f, "192.0.2.99", OUTSIDE);
	link_layer(&f, "internet", 1);
	if (n == 0) {
		expect_drop("internet", &f, "nat-pair-unknown");
		return;
	}
	make_pair(&want, kind, id, ue(n), far);
	icmp_about(&want, "192.0.2.99", ue(n));
	tunnel(&want, "10.1.0.1", "10.1.0.2", 0x200 + n, 0xff, API_PDU_DL);
	link_layer(&want, "ran", 0);
	expect("internet", &f, "ran", &want);
}

static void error_goes(uint32_t n, int kind, uint32_t id, const char *far, const char *reason)
{
	static struct frame f, want;

	make_pair(&f, kind, id, far, ue(n));
	icmp_about(&f, ue(n), far);
	up(&f, n);
	if (reason != NULL) {
		expect_drop("ran", &f, reason);
		return;
	}
	make_pair(&want, kind, id, far, OUTSIDE);
	icmp_about(&want, OUTSIDE, far);
	hop(&want);
	link_layer(&want, "internet", 0);
	expect("ran", &f, "internet", &want);
}

static void errors(void **state)
{
	for (uint32_t i = 0; i < REMOTES / 2; i++) {
		error_comes(0, ESP, 0x100, remote(i));
		error_goes(1, ESP, 0x101, remote(i), i == 0 ? "nat-no-mapping" : "nat-pair-unknown");
		goes_out(1, ESP, 0x100, remote(i));
		error_comes(1, ESP, 0x7777, remote(i)); // alone
		comes_to(1, ESP, 0x101, remote(i));
		goes_out(2, ESP, 0x200, remote(i));
		comes_to(2, ESP, 0x201, remote(i));
		error_comes(1, ESP, 0x100, remote(i));
		error_comes(2, ESP, 0x200, remote(i));
		error_comes(0, ESP, 0x7777, remote(i));
		error_goes(1, ESP, 0x101, remote(i), NULL);
		error_goes(2, ESP, 0x201, remote(i), NULL);
		error_goes(1, ESP, 0x201, remote(i), "nat-pair-unknown"); // about the other's
		goes_out(1, SIX, 0, remote(i));
		error_comes(1, SIX, 0, remote(i));
		error_goes(1, SIX, 0, remote(i), NULL);
	}
	uint64_t made = row().pairs_made;
	error_goes(3, ESP, 0x101, FAR4, "nat-no-mapping");
	assert_int_equal(row().pairs_made, made);
}

// RFC 5508 REQ-4: the subscriber gets the path's MTU with its own packet quoted, on whichever worker the pair is. (For
// a remote: own_errors_test.c.)
static void too_big(void **state)
{
	static struct frame f, about;

	for (uint32_t i = 0; i < REMOTES; i++) {
		make_pair(&f, ESP, 0x100, ue(1), remote(i));
		frame_append(&f, NULL, 1460);
		store16(f.at + 2, (uint16_t)f.length);
		store16(f.at + 6, 0x4000); // DF
		frame_ip4_sum(&f);
		about = f;
		about.at = about.room + (f.at - f.room);
		hop(&about);
		up(&f, 1);
		kit_advance(1000000);
		send_frame("ran", &f);
		assert_int_equal(all_out(), 1);
		assert_int_equal(kit_count("ran"), 1);
		const uint8_t *ip = kit_frame("ran", 0)->bytes + 14 + 36; // behind IP, UDP, GTP-U
		assert_memory_equal(ip + 16, kit_address(ue(1)).bytes, 4);
		assert_int_equal(load16(ip + 20), 0x0304);
		assert_int_equal(load16(ip + 26), 1500);
		assert_memory_equal(ip + 28, about.at, kit_frame("ran", 0)->length - 14 - 36 - 28);
		assert_true(kit_balance());
	}
	assert_int_equal(row().pairs_made, 0);
}

static void not_translated(void **state)
{
	static struct frame f;

	refused_pair(1, ESP, 7, OUTSIDE, "nat-pair-hairpin");
	goes_out(1, ESP, 7, FAR4);
	frame_payload(&f, 4);
	frame_ip(&f, ue(1), FAR4, 50);
	up(&f, 1);
	expect_drop("ran", &f, "nat-malformed");
	frame_payload(&f, 4);
	frame_ip(&f, FAR4, OUTSIDE, 50);
	link_layer(&f, "internet", 1);
	expect_drop("internet", &f, "nat-malformed");
	frame_payload(&f, 40);
	frame_ip(&f, ue(1), FAR4, 51);
	up(&f, 1);
	expect_drop("ran", &f, "nat-protocol");
}

// In any order, both ways: they belong to their first one's pair.
static void fragments(void **state)
{
	static struct frame f[2], want[2], whole;

	for (int i = 0; i < KINDS * REMOTES / 2; i++) {
		int kind = i % KINDS, later_first = i / KINDS % 2;
		const char *far = remote((uint32_t)i % (REMOTES / 2));

		make_pair(&whole, kind, 0x107, ue(1), far);
		in_two(f, &whole);
		make_pair(&whole, kind, 0x107, OUTSIDE, far);
		in_two(want, &whole);
		for (int k = 0; k < 2; k++) {
			up(&f[k], 1);
			hop(&want[k]);
			link_layer(&want[k], "internet", 0);
		}
		both_pass("ran", f, "internet", want, later_first);
		make_pair(&whole, kind, 0x109, far, OUTSIDE);
		in_two(f, &whole);
		make_pair(&whole, kind, 0x109, far, ue(1));
		in_two(want, &whole);
		for (int k = 0; k < 2; k++) {
			link_layer(&f[k], "internet", 1);
			tunnel(&want[k], "10.1.0.1", "10.1.0.2", 0x201, 0xff, API_PDU_DL);
			link_layer(&want[k], "ran", 0);
		}
		both_pass("internet", f, "ran", want, later_first);
		if (kind == ESP || kind == PPTP) { // which learnt both identifiers, from the first fragment
			goes_out(2, kind, 0x200, far);
			comes_to(2, kind, 0x201, far);
			comes_to(1, kind, 0x109, far);
			both_pass("internet", f, "ran", want, later_first);
		}
	}
}

static void no_row(const struct api_trace_row *row)
{
}

// `isthmus explain --downlink` teaches nothing.
static void hypothetical(void **state)
{
	static struct trace_order o = {.want = {.flags = API_TRACE_HYPOTHETICAL, .seconds = 30, .port = "internet"}};
	struct api_trace_state s;
	static struct frame f;

	goes_out(1, ESP, 7, FAR4);
	make_pair(&f, ESP, 99, FAR4, OUTSIDE);
	link_layer(&f, "internet", 1);
	struct kit_reasons before = kit_reasons();
	o.want.octets = f.length;
	memcpy(o.octets, f.at, f.length);
	assert_int_equal(trace_begin(&o, &s), 0);
	kit_run();
	assert_int_equal(kit_trace_poll(s.trace, 1, no_row, &s), 0);
	kit_only_rose(&before, "explained", 1);
	refused_pair(2, ESP, 8, FAR4, "nat-pair-taken"); // it waits yet
	comes_to(1, ESP, 9, FAR4);
	goes_out(2, ESP, 8, FAR4);
	comes_to(2, ESP, 99, FAR4);
}

static void refusals(void **state)
{
	struct api_nat good = pairs_body(), n[7];

	for (int i = 0; i < 7; i++)
		n[i] = good;
	n[0].pair_protocols = 0;
	n[1].pair_protocols = 8;
	n[2].pairs_of_subscriber = 0;
	n[3].pair_timeout = 0;
	n[4].pair_timeout = 8 * 86400;
	n[5].pairs = 1 << 20;
	n[6].pairs = 0;
	for (int i = 0; i < 7; i++)
		assert_int_equal(kit_change(API_NAT, "core", &n[i], sizeof(n[i])), EINVAL);
	assert_int_equal(kit_change(API_NAT, "core", &good, sizeof(good)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(off, fresh, all_gone),
		cmocka_unit_test_setup_teardown(there_and_back, fresh, all_gone),
		cmocka_unit_test_setup_teardown(pptp, fresh, all_gone),
		cmocka_unit_test_setup_teardown(esp_rekeys, fresh, all_gone),
		cmocka_unit_test_setup_teardown(one_at_a_remote, fresh, all_gone),
		cmocka_unit_test_setup_teardown(limits, fresh, all_gone),
		cmocka_unit_test_setup_teardown(sessions_end, fresh, all_gone),
		cmocka_unit_test_setup_teardown(errors, fresh, all_gone),
		cmocka_unit_test_setup_teardown(too_big, fresh, all_gone),
		cmocka_unit_test_setup_teardown(not_translated, fresh, all_gone),
		cmocka_unit_test_setup_teardown(fragments, fresh, all_gone),
		cmocka_unit_test_setup_teardown(hypothetical, fresh, all_gone),
		cmocka_unit_test_setup_teardown(refusals, fresh, all_gone),
	};
	return cmocka_run_group_tests(tests, start_two_workers, NULL);
}
