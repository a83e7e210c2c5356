// SPDX-License-Identifier: Apache-2.0
// The firewall nodes in the whole graph: which header they look at, reasons, hit counters, swaps and refused lists.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firewall/firewall.h"
#include "testkit/reasons.h"
#include "testkit/testkit.h"
#include "wire/checksum.h"
#include "wire/gtpu.h"
#include <errno.h>
#include <string.h>

static const uint8_t home[6] = {2, 0, 0, 0, 0, 1}, upf[6] = {2, 0, 0, 0, 0xff, 1};
static const uint8_t access_mac[6] = {2, 0, 0, 0, 0x99, 0}, core_mac[6] = {2, 0, 0, 0, 0x99, 1};

struct list {
	struct api_acl head;
	struct api_acl_rule rule[4];
};

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
	struct kit_session a = kit_session("access", home, 100, 1, 0, "100.64.0.2", NULL, "upf", 0x200);
	kit_put_session("a", &a);
	assert_int_equal(kit_commit(), 0);
	kit_advance(1000);
	return 0;
}

static int put_list(const char *key, struct list *l)
{
	for (uint32_t i = 0; i < l->head.count; i++)
		if (l->rule[i].source_port[1] == 0)
			l->rule[i].source_port[1] = UINT16_MAX;
	return kit_change(API_ACL, key, l, (uint32_t)(sizeof(l->head) + l->head.count * sizeof(l->rule[0])));
}

// Flags and offset of the subscriber's packets. A later fragment is TCP's: at offset 8 it would overwrite the flags
// (RFC 1858 §4).
static uint16_t part;

static uint32_t put_udp4(uint8_t *p, const char *source, const char *destination, uint16_t port, uint32_t n)
{
	memset(p, 0, 28 + n);
	p[0] = 0x45;
	store16(p + 2, (uint16_t)(28 + n));
	p[8] = 64;
	p[9] = 17;
	if (port != 2152) // not the outer header
		store16(p + 6, part), p[9] = part & 0x1fff ? 6 : 17;
	memcpy(p + 12, kit_address(source).bytes, 4);
	memcpy(p + 16, kit_address(destination).bytes, 4);
	ip4_checksum_set(p);
	store16(p + 20, 1000);
	store16(p + 22, port);
	store16(p + 24, (uint16_t)(8 + n));
	return 28 + n;
}

// Sends one UDP packet of the subscriber; returns how many reached the core.
static uint32_t send_up(uint16_t port)
{
	uint8_t frame[256];

	memcpy(frame, access_mac, 6);
	memcpy(frame + 6, home, 6);
	store16(frame + 12, 0x88a8);
	store16(frame + 14, 100);
	store16(frame + 16, 0x8100);
	store16(frame + 18, 1);
	store16(frame + 20, 0x0800);
	uint32_t n = 22 + put_udp4(frame + 22, "100.64.0.2", "8.8.8.8", port, 60);
	kit_clear();
	assert_int_equal(kit_send("access", frame, n), 0);
	kit_run();
	assert_true(kit_balance());
	return kit_count("core");
}

static uint32_t send_down(uint16_t port)
{
	uint8_t frame[256], inner[128];
	uint32_t n = put_udp4(inner, "8.8.8.8", "100.64.0.2", port, 60);

	memcpy(frame, core_mac, 6);
	memcpy(frame + 6, upf, 6);
	store16(frame + 12, 0x0800);
	put_udp4(frame + 14, "10.0.0.2", "10.0.0.1", 2152, 16 + n);
	gtpu_put_gpdu(frame + 42, 0x200, 9, GTPU_PDU_DL, (uint16_t)n);
	memcpy(frame + 58, inner, n);
	kit_clear();
	assert_int_equal(kit_send("core", frame, 58 + n), 0);
	kit_run();
	assert_true(kit_balance());
	return kit_count("access");
}

static uint64_t hits(enum acl_place direction, uint32_t slot)
{
	return firewall_list(direction)->hits[slot];
}

static void no_list(void **state)
{
	assert_null(firewall_list(ACL_UPLINK));
	assert_null(firewall_list(ACL_DOWNLINK));
	assert_int_equal(send_up(53), 1);
	assert_int_equal(send_down(1234), 1);
}

static void blocklist(void **state)
{
	struct list l = {{API_PERMIT, 2}, {{.source = kit_address("100.64.0.0/16"),
						   .destination_port = {25, 25},
						   .protocol = 17,
						   .protocol_mask = 0xff},
						  {.destination = kit_address("8.8.8.8/32"),
							  .destination_port = {20, 30},
							  .action = API_PERMIT}}};

	assert_int_equal(put_list("uplink", &l), 0);
	assert_int_equal(send_up(53), 1);
	assert_int_equal(send_up(25), 0);
	assert_int_equal(kit_reason("firewall-uplink-deny"), 1);
	assert_int_equal(send_up(26), 1);
	assert_int_equal(hits(ACL_UPLINK, 0), 1);
	assert_int_equal(hits(ACL_UPLINK, 1), 1);
	assert_int_equal(hits(ACL_UPLINK, 2), 1);
	// Priority turns it round, and the new list counts from zero.
	l.rule[1].priority = 1;
	assert_int_equal(put_list("uplink", &l), 0);
	assert_int_equal(send_up(25), 1);
	assert_int_equal(hits(ACL_UPLINK, 2), 1);
	assert_int_equal(send_down(25), 1); // the other direction has no list
}

// The inner header decides: the outer one is UDP to port 2152 of 10.0.0.1.
static void allowlist(void **state)
{
	struct list l = {{API_DENY, 2}, {{.destination = kit_address("100.64.0.2/32"),
						 .destination_port = {1234, 1234},
						 .protocol = 17,
						 .protocol_mask = 0xff,
						 .action = API_PERMIT},
						{.destination = kit_address("10.0.0.1/32"),
							.destination_port = {0, UINT16_MAX},
							.action = API_PERMIT}}};

	assert_int_equal(put_list("downlink", &l), 0);
	assert_int_equal(send_down(1234), 1);
	assert_int_equal(send_down(1235), 0);
	assert_int_equal(kit_reason("firewall-downlink-default"), 1);
	assert_int_equal(hits(ACL_DOWNLINK, 0), 1);
	assert_int_equal(hits(ACL_DOWNLINK, 1), 1);
	assert_int_equal(hits(ACL_DOWNLINK, 2), 0);
}

// Each verdict of either direction has its own reason.
static void reasons(void **state)
{
	struct list l = {{API_DENY, 2}, {{.destination_port = {25, 25}, .protocol = 17, .protocol_mask = 0xff},
						{.destination_port = {1234, 1234},
							.protocol = 17,
							.protocol_mask = 0xff,
							.action = API_PERMIT}}};
	static const struct {
		const char *key;
		uint32_t (*send)(uint16_t port);
		const char *deny, *by_default, *tiny;
	} row[] = {
		{"uplink", send_up, "firewall-uplink-deny", "firewall-uplink-default", "firewall-uplink-tiny-fragment"},
		{"downlink", send_down, "firewall-downlink-deny", "firewall-downlink-default",
			"firewall-downlink-tiny-fragment"}};

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(put_list(row[i].key, &l), 0);
		struct kit_reasons before = kit_reasons();
		part = 1;
		assert_int_equal(row[i].send(1234), 0);
		kit_only_rose(&before, row[i].tiny, 1);
		for (part = 0; part <= 0x2000; part += 0x2000) { // also of what has more fragments: it has the ports
			before = kit_reasons();
			assert_int_equal(row[i].send(25), 0);
			kit_only_rose(&before, row[i].deny, 1);
			kit_advance(1100000); // all have one identification
			before = kit_reasons();
			assert_int_equal(row[i].send(26), 0);
			kit_only_rose(&before, row[i].by_default, 1);
			kit_advance(1100000);
			assert_int_equal(row[i].send(1234), 1);
			kit_advance(1100000);
		}
		part = 0;
		kit_begin();
		kit_delete(API_ACL, row[i].key);
		assert_int_equal(kit_commit(), 0);
	}
}

static void refused(void **state)
{
	const struct acl *before = firewall_list(ACL_DOWNLINK);
	struct list l = {{API_DENY, 1}, {{.destination_port = {9, 1}}}};

	assert_int_equal(put_list("downlink", &l), EINVAL);
	assert_int_equal(put_list("sideways", &l), EINVAL);
	assert_ptr_equal(firewall_list(ACL_DOWNLINK), before);
	assert_int_equal(send_down(1234), 1);
}

static void removed(void **state)
{
	kit_begin();
	kit_delete(API_ACL, "uplink");
	kit_delete(API_ACL, "downlink");
	assert_int_equal(kit_commit(), 0);
	assert_int_equal(send_down(1235), 1);
	assert_int_equal(send_up(25), 1);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(no_list),
		cmocka_unit_test(blocklist),
		cmocka_unit_test(allowlist),
		cmocka_unit_test(refused),
		cmocka_unit_test(removed),
		cmocka_unit_test(reasons),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
