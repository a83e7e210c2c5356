// SPDX-License-Identifier: Apache-2.0
// NPTv6 in the graph: both directions byte by byte, with the receivers' checksums; hairpins, ICMPv6 errors, refusals.
#include "session/mobile_fixture.h"
#include "wire/icmp.h"

// Outside 2001:db8:8::/48: the sum of the prefix is 7 more, so subnets are 7 less.
#define OUT1 "2001:db8:8:fff9::77"
#define OUT2 "2001:db8:8:fffa::77"
#define UE1 "2001:db8:1:1::77"
#define UE2 "2001:db8:1:2::77"
#define IN64 "fd00:64:0:1:ffff::5" // behind peers, of no session
#define OUT64 "2001:db8:9:5:ffff:cf9e:0:5"

static struct api_nptv6 body(void)
{
	struct api_nptv6 n = {.pairs = 2};

	n.inside[0] = kit_address("2001:db8:1::/48");
	n.outside[0] = kit_address("2001:db8:8::/48");
	n.inside[1] = kit_address("fd00:64:0:1::/64");
	n.outside[1] = kit_address("2001:db8:9:5::/64");
	return n;
}

static void put_nptv6(const struct api_nptv6 *n)
{
	kit_begin();
	kit_put(API_NPTV6, "core", n, sizeof(*n));
	commit();
}

static struct api_nptv6_row row(uint32_t i)
{
	uint32_t count;
	const struct api_nptv6_row *r = kit_rows(API_TABLE_NPTV6, "core", sizeof(*r), &count);

	assert_in_range(i, 0, count - 1);
	return r[i];
}

static void counted(uint32_t i, uint64_t out, uint64_t in)
{
	assert_int_equal(row(i).packets_out, out);
	assert_int_equal(row(i).packets_in, in);
}

static int setup(void **state)
{
	struct api_route r = {.prefix = kit_address("fd00:64::/32"), .via = kit_address("fd00:9::2")};
	struct api_engine e = kit_engine();

	e.icmp_error_rate = 1000000;
	fixture_start(&e);
	kit_begin();
	kit_put(API_ROUTE, "fd00:64::/32", &r, sizeof(r));
	commit();
	return 0;
}

static int fresh(void **state)
{
	struct api_nptv6 n = body();

	kit_begin();
	kit_put(API_NPTV6, "core", &n, sizeof(n));
	kit_put_mobile("s1", upf_session(1));
	kit_put_mobile("s2", upf_session(2));
	kit_put_mobile("last", upf_session(0xffff));
	commit();
	return 0;
}

static int clean(void **state)
{
	kit_begin();
	kit_delete(API_SESSION, "s1");
	kit_delete(API_SESSION, "s2");
	kit_delete(API_SESSION, "last");
	kit_delete(API_NPTV6, "core");
	fixture_instances(0, 0);
	commit();
	kit_run();
	assert_true(kit_balance());
	assert_int_equal(kit_buffers_in_use(), 0);
	return 0;
}

static void set_sum(struct frame *f, uint32_t at)
{
	uint8_t protocol = f->at[6];
	uint32_t n = f->length - 40;

	memset(f->at + 40 + at, 0, 2);
	uint16_t sum =
		checksum_finish(checksum_add(checksum_pseudo(6, f->at + 8, f->at + 24, protocol, n), f->at + 40, n));
	memcpy(f->at + 40 + at, &sum, 2);
}

// UDP with a right checksum.
static struct frame *make(struct frame *f, const char *from, const char *to, uint32_t payload)
{
	ip_packet(f, from, to, payload);
	set_sum(f, 6);
	return f;
}

// An ICMPv6 error about the packet at f->at.
static struct frame *error_about(struct frame *f, uint8_t type, const char *from, const char *to)
{
	f->length = RTE_MIN(f->length, 40u + 13); // an odd quotation
	frame_push(f, 8)[0] = type;
	frame_ip(f, from, to, 58);
	set_sum(f, 2);
	return f;
}

static struct frame *up(struct frame *f, uint32_t n)
{
	tunnel(f, "10.1.0.2", "10.1.0.1", 0x100 + n, 0xff, API_PDU_UL);
	link_layer(f, "ran", 1);
	return f;
}

static struct frame *down(struct frame *f, uint32_t n)
{
	tunnel(f, "10.1.0.1", "10.1.0.2", 0x200 + n, 0xff, API_PDU_DL);
	link_layer(f, "ran", 0);
	return f;
}

static struct frame *comes(struct frame *f, const char *port)
{
	link_layer(f, port, 1);
	return f;
}

static struct frame *leaves(struct frame *f, const char *port)
{
	hop(f);
	link_layer(f, port, 0);
	return f;
}

static struct frame f, want;

static void there_and_back(void **state)
{
	expect("ran", up(make(&f, UE1, FAR6, 80), 1), "internet", leaves(make(&want, OUT1, FAR6, 80), "internet"));
	expect("internet", comes(make(&f, FAR6, OUT1, 80), "internet"), "ran", down(make(&want, FAR6, UE1, 80), 1));
	expect("internet", comes(make(&f, FAR6, OUT2, 80), "internet"), "ran", down(make(&want, FAR6, UE2, 80), 2));
	counted(0, 1, 2);
	counted(1, 0, 0);
	expect("internet", downlink_of(&f, FAR4, UE4), "ran", tunnelled_out(&want, FAR4, UE4, 0x202, 0xff));
}

// A later fragment has no more than addresses.
static void fragments(void **state)
{
	for (int is_up = 0; is_up < 2; is_up++) {
		make(&f, is_up ? UE1 : FAR6, is_up ? FAR6 : OUT1, 80);
		make(&want, is_up ? OUT1 : FAR6, is_up ? FAR6 : UE1, 80);
		frame_fragment(&f, 40, 0);
		frame_fragment(&want, 40, 0);
		if (is_up)
			expect("ran", up(&f, 1), "internet", leaves(&want, "internet"));
		else
			expect("internet", comes(&f, "internet"), "ran", down(&want, 1));
	}
}

// No session: from behind another interface, and there.
static void routed(void **state)
{
	expect("peers", comes(make(&f, IN64, FAR6, 80), "peers"), "internet",
		leaves(make(&want, OUT64, FAR6, 80), "internet"));
	expect("internet", comes(make(&f, FAR6, OUT64, 80), "internet"), "peers",
		leaves(make(&want, FAR6, IN64, 80), "peers"));
	counted(1, 1, 1);
	// Packets from outside get no outside address of ours.
	expect("internet", comes(make(&f, IN64, FAR6, 80), "internet"), "internet",
		leaves(make(&want, IN64, FAR6, 80), "internet"));
	counted(1, 1, 1);
}

// RFC 6296 §3.2 to §3.5, §3.7
static void unmapped(void **state)
{
	expect_drop("ran", up(make(&f, "2001:db8:1:ffff::77", FAR6, 80), 0xffff), "nptv6-unmapped");
	expect_drop("internet", comes(make(&f, FAR6, "2001:db8:8:ffff::77", 80), "internet"), "nptv6-unmapped");
	make(&f, "fd00:64:0:1:ffff:ffff:ffff:ffff", FAR6, 80);
	expect_drop("peers", comes(&f, "peers"), "nptv6-unmapped");
	make(&f, FAR6, "2001:db8:9:5:ffff:ffff:ffff:ffff", 80);
	expect_drop("internet", comes(&f, "internet"), "nptv6-unmapped");
	counted(0, 0, 0);
	counted(1, 0, 0);
}

static void inside_addresses(void **state)
{
	expect_drop("internet", comes(make(&f, FAR6, UE1, 80), "internet"), "nptv6-inside-address");
	// One UE to another, by the inside address.
	make(&want, UE1, UE2, 80);
	hop(&want);
	expect("ran", up(make(&f, UE1, UE2, 80), 1), "ran", down(&want, 2));
	counted(0, 0, 0);
}

// RFC 6296 §4.3 (RFC 4787 REQ-9): each knows the other by its outside address. Also where a router announces the
// outside prefix by a discard route.
static void hairpin(void **state)
{
	struct api_route r = {.prefix = kit_address("2001:db8:8::/47"), .discard = API_DISCARD_UNREACHABLE};

	make(&want, OUT1, UE2, 80);
	hop(&want);
	expect("ran", up(make(&f, UE1, OUT2, 80), 1), "ran", down(&want, 2));
	counted(0, 1, 1);
	assert_int_equal(kit_change(API_ROUTE, "outside", &r, sizeof(r)), 0);
	make(&want, OUT1, UE2, 80);
	hop(&want);
	expect("ran", up(make(&f, UE1, OUT2, 80), 1), "ran", down(&want, 2));
	counted(0, 2, 2);
	kit_begin();
	kit_delete(API_ROUTE, "outside");
	commit();
	make(&want, OUT64, UE2, 80);
	hop(&want);
	expect("peers", comes(make(&f, IN64, OUT2, 80), "peers"), "ran", down(&want, 2));
	error_about(make(&f, OUT1, UE2, 80), 1, UE2, OUT1);
	error_about(make(&want, UE1, OUT2, 80), 1, OUT2, UE1); // as UE 1 sent it
	hop(&want);
	expect("ran", up(&f, 2), "ran", down(&want, 1));
	kit_begin();
	fixture_instances(API_INSTANCE_NO_UE_TO_UE, 0);
	commit();
	expect_drop("ran", up(make(&f, UE1, OUT2, 80), 1), "ue-to-ue");
}

// Both are a first fragment, which quotes as much.
static void begins(int fragment)
{
	if (!fragment)
		return;
	frame_fragment(&f, 0, 1);
	frame_fragment(&want, 0, 1);
}

// An error quotes the packet as its receiver sent it.
static void errors(void **state)
{
	static const uint8_t type[] = {1, 2, 3, 4, 100};

	for (uint32_t i = 0; i < 2 * sizeof(type); i++) {
		error_about(make(&f, OUT1, FAR6, 80), type[i / 2], "2001:db8:ffff::99", OUT1);
		error_about(make(&want, UE1, FAR6, 80), type[i / 2], "2001:db8:ffff::99", UE1);
		begins(i & 1);
		expect("internet", comes(&f, "internet"), "ran", down(&want, 1));
		error_about(make(&f, FAR6, UE1, 80), type[i / 2], UE1, FAR6);
		error_about(make(&want, FAR6, OUT1, 80), type[i / 2], OUT1, FAR6);
		begins(i & 1);
		expect("ran", up(&f, 1), "internet", leaves(&want, "internet"));
	}
	// Of a router that is not translated itself.
	error_about(make(&f, FAR6, IN64, 80), 3, "fd00:9::2", FAR6);
	error_about(make(&want, FAR6, OUT64, 80), 3, "fd00:9::2", FAR6);
	expect("peers", comes(&f, "peers"), "internet", leaves(&want, "internet"));
	// It quotes too little; an echo with the same bytes.
	make(&f, FAR6, UE1, 80);
	f.length = 39;
	frame_push(&f, 8)[0] = 1;
	frame_ip(&f, UE1, FAR6, 58);
	set_sum(&f, 2);
	make(&want, FAR6, UE1, 80);
	want.length = 39;
	frame_push(&want, 8)[0] = 1;
	frame_ip(&want, OUT1, FAR6, 58);
	set_sum(&want, 2);
	expect("ran", up(&f, 1), "internet", leaves(&want, "internet"));
	error_about(make(&f, FAR6, UE1, 80), 128, UE1, FAR6);
	error_about(make(&want, FAR6, UE1, 80), 128, OUT1, FAR6);
	expect("ran", up(&f, 1), "internet", leaves(&want, "internet"));
}

// The errors that we send: with the addresses that their receiver knows.
static void our_errors(void **state)
{
	const uint8_t *ip;

	make(&f, FAR6, OUT64, 80);
	f.at[7] = 1; // ends here, behind nptv6-downlink
	send_frame("internet", comes(&f, "internet"));
	assert_int_equal(kit_count("internet"), 1);
	ip = kit_frame("internet", 0)->bytes + 14;
	make(&want, FAR6, OUT64, 80);
	want.at[7] = 1;
	assert_memory_equal(ip + 48, want.at, want.length);
	assert_int_equal(ip[40], ICMP6_TIME_EXCEEDED);
	uint32_t n = load16(ip + 4);
	assert_int_equal(checksum_finish(checksum_add(checksum_pseudo(6, ip + 8, ip + 24, 58, n), ip + 40, n)), 0);
	// To a subscriber, whose packet is too large.
	send_frame("ran", up(make(&f, UE1, FAR6, 1560), 1));
	assert_int_equal(kit_count("ran"), 1);
	ip = kit_frame("ran", 0)->bytes + 14 + 36;
	make(&want, UE1, FAR6, 1560);
	hop(&want);
	assert_memory_equal(ip + 24, want.at + 8, 16);
	assert_int_equal(ip[40], ICMP6_TOO_BIG);
	assert_memory_equal(ip + 48, want.at, 1232);
	assert_true(kit_balance());
}

// A remaining pair keeps its count, in any place; a refused change leaves all unchanged.
static void changes(void **state)
{
	struct api_nptv6 n = body();

	expect("ran", up(make(&f, UE1, FAR6, 80), 1), "internet", leaves(make(&want, OUT1, FAR6, 80), "internet"));
	n.inside[2] = n.inside[0];
	n.outside[2] = n.outside[0];
	n.pairs = 3;
	n.inside[0] = kit_address("fd00:65::/32");
	n.outside[0] = kit_address("2001:db9::/32");
	put_nptv6(&n);
	counted(0, 0, 0);
	counted(2, 1, 0);
	n.inside[0] = kit_address("fd00:65::/33");
	assert_int_equal(kit_change(API_NPTV6, "core", &n, sizeof(n)), EINVAL);
	expect("internet", comes(make(&f, FAR6, OUT1, 80), "internet"), "ran", down(make(&want, FAR6, UE1, 80), 1));
	counted(2, 1, 1);
	n.pairs = 1;
	n.inside[0] = kit_address("fd00:65::/32");
	memset(n.inside + 1, 0, sizeof(n.inside) - sizeof(n.inside[0]));
	memset(n.outside + 1, 0, sizeof(n.outside) - sizeof(n.outside[0]));
	put_nptv6(&n); // UEs are not translated any more
	expect("ran", up(make(&f, UE1, FAR6, 80), 1), "internet", leaves(make(&want, UE1, FAR6, 80), "internet"));
	expect("internet", comes(make(&f, FAR6, UE1, 80), "internet"), "ran", down(make(&want, FAR6, UE1, 80), 1));
}

static void refusals(void **state)
{
	struct api_nptv6 good = body(), n[9];

	for (int i = 0; i < 9; i++)
		n[i] = good;
	n[0].pairs = 0;
	n[1].pairs = API_NPTV6_PAIRS + 1;
	n[2].inside[0] = kit_address("10.0.0.0/24");
	n[3].inside[0] = kit_address("fd00:1::/64");
	n[4].inside[0] = n[4].outside[0];
	n[5].inside[1] = kit_address("2001:db8:1:7::/64");
	n[6].outside[1] = kit_address("2001:db8:9:5::/65");
	n[7].outside[1].bytes[15] = 1;
	n[8].outside[0] = kit_address("ff0e:8::/48");
	for (int i = 0; i < 9; i++) {
		assert_int_equal(kit_change(API_NPTV6, "core", &n[i], sizeof(n[i])), EINVAL);
	}
	assert_int_equal(kit_change(API_NPTV6, "access", &good, sizeof(good)), ENOENT);
	kit_begin();
	kit_delete(API_INSTANCE, "core");
	assert_int_not_equal(kit_commit(), 0);
	expect("ran", up(make(&f, UE1, FAR6, 80), 1), "internet", leaves(make(&want, OUT1, FAR6, 80), "internet"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(there_and_back, fresh, clean),
		cmocka_unit_test_setup_teardown(fragments, fresh, clean),
		cmocka_unit_test_setup_teardown(routed, fresh, clean),
		cmocka_unit_test_setup_teardown(unmapped, fresh, clean),
		cmocka_unit_test_setup_teardown(inside_addresses, fresh, clean),
		cmocka_unit_test_setup_teardown(hairpin, fresh, clean),
		cmocka_unit_test_setup_teardown(errors, fresh, clean),
		cmocka_unit_test_setup_teardown(our_errors, fresh, clean),
		cmocka_unit_test_setup_teardown(changes, fresh, clean),
		cmocka_unit_test_setup_teardown(refusals, fresh, clean),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
