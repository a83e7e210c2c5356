// SPDX-License-Identifier: Apache-2.0
// Subscribers with an IP core side through the real graph: every encapsulation, both families, all prefixes, both ways,
// and a router's duties.
#include "access/bng_test.h"

static const struct bng one = {1, BNG_QINQ, 0}, two = {2, BNG_QINQ, 1};

// Addresses of a home: its own, and its routed ones.
static const char *address_of(uint32_t home, int family, int framed)
{
	static char text[4][64];
	static unsigned next;
	char *t = text[next++ % 4];

	if (!framed)
		return gateway_ue(home, family);
	if (family == 4)
		snprintf(t, 64, "203.0.113.%u", 8 * home + 3);
	else
		snprintf(t, 64, "2001:db8:f00%x:12::5", home);
	return t;
}

static void matrix(void **state)
{
	static const uint32_t payload[] = {0, 1, 100, 1300};

	for (uint32_t i = 0; i < 2 * BNG_TAGS; i++) {
		struct bng b = {1 + i, i % BNG_TAGS, i >= BNG_TAGS};

		bng_put(&b);
		for (int way = 0; way < 32; way++) {
			int family = way & 1 ? 6 : 4, uplink = way >> 1 & 1, framed = way >> 2 & 1;
			const char *ue = address_of(b.home, family, framed), *far = family == 4 ? FAR4 : FAR6;

			bng_expect(&b, uplink, uplink ? ue : far, uplink ? far : ue, payload[way >> 3]);
		}
		bng_delete(b.home);
	}
}

static void spoofed(void **state)
{
	static const char *const sources[] = {"100.64.0.9", "8.8.8.8", "203.0.113.3", "203.0.113.16",
		"2001:db8:1:9::77", "2001:db8:f002::1", "fd00::2"};
	static struct frame f;

	bng_put(&one);
	bng_put(&two);
	for (unsigned i = 0; i < RTE_DIM(sources); i++) {
		inner(&f, sources[i], strchr(sources[i], ':') ? FAR6 : FAR4, 60);
		bng_access(&f, &one, 1);
		expect_drop("access", &f, "source-spoofed");
	}
	inner(&f, FAR4, "100.64.9.9", 60); // of the instance's pool, without a session
	bng_internet(&f, 0);
	expect_drop("internet", &f, "ue-unknown");
}

// PDRs of one family pass that family alone, also routed packets to the subscriber.
static void one_family(void **state)
{
	static struct kit_mobile k;
	static struct frame f;

	bng_session(&k, &one);
	for (int i = 0; i < 2; i++)
		k.pdr[i].match |= API_PDR_UE6_ONLY;
	bng_commit("home-1", &k);
	for (int framed = 0; framed < 2; framed++) {
		bng_expect(&one, 1, address_of(1, 6, framed), FAR6, 60);
		bng_expect(&one, 0, FAR6, address_of(1, 6, framed), 60);
		inner(&f, address_of(1, 4, framed), FAR4, 60);
		bng_access(&f, &one, 1);
		expect_drop("access", &f, "source-spoofed");
	}
}

// Both homes' rules see it, and it is one hop.
static void home_to_home(void **state)
{
	static struct frame in, out;

	bng_put(&one);
	bng_put(&two);
	for (int i = 0; i < 8; i++) {
		int family = i & 1 ? 6 : 4, framed = i >> 1 & 1, back = i >> 2;
		const struct bng *from = back ? &two : &one, *to = back ? &one : &two;
		const char *source = address_of(from->home, family, framed),
			   *target = address_of(to->home, family, !framed);
		struct api_session_row up = kit_session_row(gateway_home_name(from->home));
		struct api_session_row down = kit_session_row(gateway_home_name(to->home));

		inner(&in, source, target, 60);
		bng_access(&in, from, 1);
		inner(&out, source, target, 60);
		bng_ttl(&out, 63);
		bng_access(&out, to, 0);
		for (int n = 0; n < 3; n++)
			expect("access", &in, "access", &out);
		assert_int_equal(kit_session_row(gateway_home_name(from->home)).uplink_packets - up.uplink_packets, 3);
		assert_int_equal(
			kit_session_row(gateway_home_name(to->home)).downlink_packets - down.downlink_packets, 3);
	}
}

// A session with a longer prefix gets its packets at once, although flows led to the other one.
static void longer_prefix(void **state)
{
	static struct kit_mobile k;
	struct bng inside = {3, BNG_QINQ, 0};

	bng_put(&one);
	bng_expect(&one, 0, FAR4, "203.0.113.12", 60);
	bng_expect(&one, 0, FAR6, "2001:db8:f001:7::1", 60);
	bng_session(&k, &inside);
	k.s.ue_ip4 = kit_address("203.0.113.12");
	k.s.ue_ip6 = kit_address("2001:db8:f001:7::/64");
	bng_commit("home-3", &k);
	for (int i = 0; i < 2; i++) {
		bng_expect(&inside, 0, FAR4, "203.0.113.12", 60);
		bng_expect(&inside, 0, FAR6, "2001:db8:f001:7::1", 60);
		bng_expect(&one, 0, FAR4, "203.0.113.11", 60);
	}
	bng_delete(3);
	bng_expect(&one, 0, FAR4, "203.0.113.12", 60);
	bng_expect(&one, 0, FAR6, "2001:db8:f001:7::1", 60);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(matrix),
		cmocka_unit_test(spoofed),
		cmocka_unit_test(one_family),
		cmocka_unit_test(home_to_home),
		cmocka_unit_test(longer_prefix),
	};

	return cmocka_run_group_tests(list, bng_setup, NULL);
}
