// SPDX-License-Identifier: Apache-2.0
// The policer nodes in the whole graph: the rate over a virtual second, counters, remarking, and profiles that change
// while sessions run.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_common.h>

#include "meter/policer.h"
#include "rule/session.h"
#include "testkit/reasons.h"
#include "testkit/testkit.h"
#include "wire/checksum.h"
#include "wire/gtpu.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define IP_BYTES 228u
#define RATE 100000u // bytes per second

static const uint8_t home[6] = {2, 0, 0, 0, 0, 1}, upf[6] = {2, 0, 0, 0, 0xff, 1};
static const uint8_t access_mac[6] = {2, 0, 0, 0, 0x99, 0};

static int put_profile(const char *name, const struct api_policer *p)
{
	return kit_change(API_POLICER, name, p, sizeof(*p));
}

static const struct api_policer profile = {.type = API_SRTCM,
	.cir = RATE,
	.cbs = 1500,
	.pbs = 0,
	.action = {API_COLOUR_PASS, API_COLOUR_PASS, API_COLOUR_DROP}};

static int put_session(const char *policer)
{
	struct kit_session a = kit_session("access", home, 100, 1, 0, "100.64.0.2", NULL, "upf", 0x200);

	snprintf(a.qer[0].uplink_policer, sizeof(a.qer[0].uplink_policer), "%s", policer);
	kit_begin();
	kit_put_session("a", &a);
	return kit_commit();
}

static int setup(void **state)
{
	kit_start(NULL);
	kit_begin();
	kit_port("access", API_ROLE_ACCESS);
	kit_port("core", API_ROLE_CORE);
	kit_interface("n3", "core", "10.0.0.1/24", NULL);
	kit_interface("homes", "access", "100.64.0.1/16", NULL);
	kit_neighbour("n3", "10.0.0.2", upf);
	kit_path("upf", "10.0.0.1", "10.0.0.2");
	kit_put(API_POLICER, "gold", &profile, sizeof(profile));
	assert_int_equal(kit_commit(), 0);
	assert_int_equal(put_session("gold"), 0);
	kit_advance(1000);
	return 0;
}

// Offers a packet each 500 us for `ms`; returns how many reached the core.
static uint32_t offer(uint32_t ms)
{
	uint8_t frame[22 + IP_BYTES] = {0}, *ip = frame + 22;

	memcpy(frame, access_mac, 6);
	memcpy(frame + 6, home, 6);
	store16(frame + 12, 0x88a8);
	store16(frame + 14, 100);
	store16(frame + 16, 0x8100);
	store16(frame + 18, 1);
	store16(frame + 20, 0x0800);
	ip[0] = 0x45;
	ip[1] = 1; // ECT(1), which a remark keeps
	store16(ip + 2, IP_BYTES);
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, kit_address("100.64.0.2").bytes, 4);
	memcpy(ip + 16, kit_address("8.8.8.8").bytes, 4);
	ip4_checksum_set(ip);
	store16(ip + 24, IP_BYTES - 20);
	kit_clear();
	for (uint32_t i = 0; i < 2 * ms; i++) {
		assert_int_equal(kit_send("access", frame, sizeof(frame)), 0);
		kit_advance(500);
	}
	assert_true(kit_balance());
	return kit_count("core");
}

// The one rule that has seen packets.
static const struct rule *used(void)
{
	const struct rule *r;

	for (uint16_t i = 0; (r = session_rule_at(0, i)) != NULL && rule_forwarded(r).packets == 0; i++)
		;
	return r;
}

static void rate(void **state)
{
	struct kit_reasons before = kit_reasons();
	uint32_t passed = offer(1000), expected = (RATE + 1500) / IP_BYTES;

	assert_in_range(passed, expected * 99 / 100, expected * 101 / 100 + 1);
	kit_only_rose(&before, "policer-uplink", 2000 - passed);
	assert_int_equal(rule_forwarded(used()).packets, passed);
	assert_int_equal(rule_forwarded(used()).bytes, passed * IP_BYTES);
	assert_int_equal(rule_account_of(used())->dropped, 2000 - passed);
}

// The other direction: a burst that the profile's bucket holds in part.
static void downlink(void **state)
{
	struct kit_session a = kit_session("access", home, 100, 1, 0, "100.64.0.2", NULL, "upf", 0x200);
	uint8_t frame[58 + IP_BYTES] = {0}, *outer = frame + 14, *ip = frame + 58;
	const uint32_t burst = 20, passed = 1500 / IP_BYTES;

	strcpy(a.qer[1].downlink_policer, "gold");
	kit_begin();
	kit_put_session("a", &a);
	assert_int_equal(kit_commit(), 0);
	kit_advance(1000);
	memcpy(frame, (const uint8_t[]){2, 0, 0, 0, 0x99, 1}, 6);
	memcpy(frame + 6, upf, 6);
	store16(frame + 12, 0x0800);
	for (int i = 0; i < 2; i++) {
		uint8_t *p = i ? ip : outer;

		p[0] = 0x45;
		store16(p + 2, i ? IP_BYTES : 44 + IP_BYTES);
		p[8] = 64;
		p[9] = 17;
		memcpy(p + 12, kit_address(i ? "8.8.8.8" : "10.0.0.2").bytes, 4);
		memcpy(p + 16, kit_address(i ? "100.64.0.2" : "10.0.0.1").bytes, 4);
		ip4_checksum_set(p);
		store16(p + 22, i ? 5000 : 2152);
		store16(p + 24, i ? IP_BYTES - 20 : 24 + IP_BYTES);
	}
	gtpu_put_gpdu(frame + 42, 0x200, 9, GTPU_PDU_DL, IP_BYTES);
	struct kit_reasons before = kit_reasons();
	kit_clear();
	for (uint32_t i = 0; i < burst; i++)
		assert_int_equal(kit_send("core", frame, sizeof(frame)), 0);
	kit_run();
	assert_int_equal(kit_count("access"), passed);
	kit_only_rose(&before, "policer-downlink", burst - passed);
	assert_true(kit_balance());
	assert_int_equal(put_session("gold"), 0);
}

// Twice the rate from now on; the counters go on.
static void changed_profile(void **state)
{
	struct api_policer faster = profile;
	uint64_t before = rule_forwarded(used()).packets;
	int index = policer_index("gold");

	faster.cir *= 2;
	assert_int_equal(put_profile("gold", &faster), 0);
	assert_int_equal(policer_index("gold"), index);
	uint32_t passed = offer(1000), expected = 2 * RATE / IP_BYTES;
	assert_in_range(passed, expected * 99 / 100, expected * 101 / 100 + 7);
	assert_int_equal(rule_forwarded(used()).packets, before + passed);
}

static void refused_profile(void **state)
{
	struct api_policer bad = profile;

	bad.cir = 0;
	assert_int_equal(put_profile("gold", &bad), EINVAL);
	assert_int_equal(put_profile("silver", &bad), EINVAL);
	assert_int_equal(policer_index("silver"), -1);
	kit_begin();
	kit_delete(API_POLICER, "gold");
	assert_int_equal(kit_commit(), EBUSY); // the session uses it
	assert_true(policer_index("gold") >= 0);
	assert_int_equal(put_session("silver"), ENOENT);
}

// Above the rate, packets go on with another DSCP in the inner header.
static void remarked(void **state)
{
	struct api_policer remark = profile;
	uint32_t marked = 0;

	remark.action[2] = API_COLOUR_REMARK;
	remark.dscp[2] = 8;
	assert_int_equal(put_profile("gold", &remark), 0);
	offer(100);
	uint32_t passed = offer(1000);
	assert_int_equal(passed, 2000);
	for (uint32_t i = 0; i < passed; i++) {
		const uint8_t *inner = kit_frame("core", i)->bytes + 58;
		assert_true(ip4_checksum_ok(inner));
		assert_true(inner[1] == 1 || inner[1] == (8 << 2 | 1));
		marked += inner[1] >> 2 == 8;
	}
	uint32_t expected = 2000 - RATE / IP_BYTES;
	assert_in_range(marked, expected * 99 / 100, expected * 101 / 100);
}

// Without a policer everything passes, and is still counted; then nothing keeps the profile.
static void unpoliced(void **state)
{
	uint64_t before = rule_forwarded(used()).packets;

	assert_int_equal(put_session(""), 0);
	assert_int_equal(offer(100), 200);
	assert_int_equal(rule_forwarded(used()).packets, before + 200);
	kit_begin();
	kit_delete(API_POLICER, "gold");
	assert_int_equal(kit_commit(), 0);
	assert_int_equal(policer_index("gold"), -1);
}

// A profile and its sessions are made and deleted in one transaction each.
static void together(void **state)
{
	struct kit_session a = kit_session("access", home, 100, 1, 0, "100.64.0.2", NULL, "upf", 0x200);

	strcpy(a.qer[0].uplink_policer, "new");
	kit_begin();
	kit_put_session("a", &a);
	kit_put(API_POLICER, "new", &profile, sizeof(profile));
	assert_int_equal(kit_commit(), 0);
	uint32_t passed = offer(1000), expected = RATE / IP_BYTES;
	assert_in_range(passed, expected * 99 / 100, (RATE + 1500) / IP_BYTES * 101 / 100 + 1);
	kit_begin();
	kit_delete(API_SESSION, "a");
	kit_delete(API_POLICER, "new");
	assert_int_equal(kit_commit(), 0);
	assert_int_equal(offer(10), 0);
}

// As many profiles as a million sessions of N4 may need; those far beyond 16 bits meter correctly.
static void many(void **state)
{
	const uint32_t count = 200000, part = 4096;
	struct api_policer other = profile;
	char name[API_NAME];

	other.cir = 1;
	for (uint32_t i = 0; i < count; i += part) {
		kit_begin();
		for (uint32_t k = i; k < RTE_MIN(i + part, count); k++) {
			snprintf(name, sizeof(name), "n4.%u", k);
			kit_put(API_POLICER, name, k + 1 == count ? &profile : &other, sizeof(other));
		}
		assert_int_equal(kit_commit(), 0);
	}
	assert_int_equal(put_session(name), 0);
	assert_true(policer_index(name) > UINT16_MAX);
	uint32_t passed = offer(1000), expected = RATE / IP_BYTES;
	assert_in_range(passed, expected * 99 / 100, (RATE + 1500) / IP_BYTES * 101 / 100 + 1);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(rate),
		cmocka_unit_test(changed_profile),
		cmocka_unit_test(refused_profile),
		cmocka_unit_test(downlink),
		cmocka_unit_test(remarked),
		cmocka_unit_test(unpoliced),
		cmocka_unit_test(together),
		cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
