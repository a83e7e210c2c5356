// SPDX-License-Identifier: Apache-2.0
#include "wire/arp.h"
#include "wire/checksum.h"
#include "wire/nd.h"
#include "wire/wire_test.h"

static const uint8_t mac1[6] = {2, 0, 0, 0, 0, 1}, mac2[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t host4[4] = {10, 1, 0, 7}, ours4[4] = {10, 1, 0, 1};
static const uint8_t host6[16] = {0x20, 1, 0x0d, 0xb8, 0, 1, [15] = 7},
		     ours6[16] = {0x20, 1, 0x0d, 0xb8, 0, 1, [15] = 1};

static void arp_known(void **state)
{
	uint8_t to[ARP_LENGTH];
	struct arp_info a;

	arp_put(to, ARP_REQUEST, mac1, host4, NULL, ours4);
	assert_memory_equal(to, arp_request, ARP_LENGTH);
	arp_put(to, ARP_REPLY, mac2, ours4, mac1, host4);
	assert_memory_equal(to, arp_reply, ARP_LENGTH);
	assert_int_equal(arp_parse(arp_request, sizeof(arp_request), &a), ARP_OK);
	assert_int_equal(a.operation, ARP_REQUEST);
	assert_memory_equal(a.sender_mac, mac1, 6);
	assert_memory_equal(a.sender, host4, 4);
	assert_memory_equal(a.target, ours4, 4);
}

static void arp_hostile(void **state)
{
	static const struct {
		const char *name;
		uint8_t at, value;
		enum arp_status status;
	} row[] = {
		{"hardware type", 1, 6, ARP_TYPE},
		{"protocol type", 2, 0x86, ARP_TYPE},
		{"hardware length", 4, 255, ARP_TYPE},
		{"protocol length", 5, 16, ARP_TYPE},
		{"operation 0", 7, 0, ARP_TYPE},
		{"operation 3 (RARP)", 7, 3, ARP_TYPE},
		{"multicast sender", 8, 1, ARP_ADDRESS},
		{"sender 224", 14, 224, ARP_ADDRESS},
		{"sender 127", 14, 127, ARP_ADDRESS},
		{"target 255", 24, 255, ARP_ADDRESS},
		{"target 0", 24, 0, ARP_ADDRESS},
	};
	struct arp_info a;

	for (size_t i = 0; i < COUNT(row); i++) {
		uint8_t *p = exact_copy(arp_request, ARP_LENGTH);
		p[row[i].at] = row[i].value;
		enum arp_status status = arp_parse(p, ARP_LENGTH, &a);
		if (status != row[i].status)
			fail_msg("%s: status %d", row[i].name, status);
		free(p);
	}
	for (size_t n = 0; n < ARP_LENGTH; n++) {
		uint8_t *p = exact_copy(arp_request, n);
		assert_int_equal(arp_parse(p, n, &a), ARP_SHORT);
		free(p);
	}
	uint8_t probe[ARP_LENGTH];
	memcpy(probe, arp_request, ARP_LENGTH);
	memset(probe + 14, 0, 4); // RFC 5227
	assert_int_equal(arp_parse(probe, ARP_LENGTH, &a), ARP_OK);
	probe[7] = ARP_REPLY;
	assert_int_equal(arp_parse(probe, ARP_LENGTH, &a), ARP_ADDRESS);
}

static void nd_known(void **state)
{
	uint8_t to[ND_LENGTH];
	struct nd_info n;

	assert_int_equal(nd_put_ns(to, host6, NULL, ours6, mac1), ND_LENGTH);
	assert_memory_equal(to, nd_ns, ND_LENGTH);
	assert_int_equal(nd_put_na(to, ours6, host6, ours6, mac2, ND_ROUTER | ND_SOLICITED | ND_OVERRIDE), ND_LENGTH);
	assert_memory_equal(to, nd_na, ND_LENGTH);
	assert_int_equal(nd_parse(nd_ns, sizeof(nd_ns), sizeof(nd_ns), &n), ND_OK);
	assert_int_equal(n.type, ND_SOLICIT);
	assert_memory_equal(n.target, ours6, 16);
	assert_memory_equal(n.mac, mac1, 6);
	assert_false(n.probe);
	assert_int_equal(nd_parse(nd_na, sizeof(nd_na), sizeof(nd_na) + 10, &n), ND_OK);
	assert_int_equal(n.flags, ND_ROUTER | ND_SOLICITED | ND_OVERRIDE);
	assert_memory_equal(n.mac, mac2, 6);
	assert_int_equal(nd_parse(nd_dad, sizeof(nd_dad), sizeof(nd_dad), &n), ND_OK);
	assert_true(n.probe);
	assert_null(n.mac);
}

static void set_sum(uint8_t *p, size_t size)
{
	memset(p + 42, 0, 2);
	uint64_t sum = checksum_pseudo(6, p + 8, p + 24, 58, size - 40);
	uint16_t check = checksum_finish(checksum_add(sum, p + 40, size - 40));
	memcpy(p + 42, &check, 2);
}

static void nd_hostile(void **state)
{
	static const struct {
		const char *name;
		uint8_t at, value;
		int fix_sum;
		enum nd_status status;
	} row[] = {
		{"hop limit 254", 7, 254, 0, ND_HOP_LIMIT},
		{"checksum", 43, 0, 0, ND_CHECKSUM},
		{"code 1", 41, 1, 1, ND_TYPE},
		{"router solicitation", 40, 133, 1, ND_TYPE},
		{"redirect", 40, 137, 1, ND_TYPE},
		{"option length 0", 65, 0, 1, ND_OPTION},
		{"option past the end", 65, 2, 1, ND_OPTION},
		{"target is a group", 48, 0xff, 1, ND_ADDRESS},
		{"source is a group", 8, 0xff, 1, ND_ADDRESS},
	};
	struct nd_info n;
	uint8_t p[ND_LENGTH];

	for (size_t i = 0; i < COUNT(row); i++) {
		memcpy(p, nd_ns, ND_LENGTH);
		p[row[i].at] = row[i].value;
		if (row[i].fix_sum)
			set_sum(p, ND_LENGTH);
		enum nd_status status = nd_parse(p, ND_LENGTH, ND_LENGTH, &n);
		if (status != row[i].status)
			fail_msg("%s: status %d", row[i].name, status);
	}
	memcpy(p, nd_ns, ND_LENGTH);
	memset(p + 8, 0, 16); // a probe must not carry a link-layer address (§7.1.1)
	set_sum(p, ND_LENGTH);
	assert_int_equal(nd_parse(p, ND_LENGTH, ND_LENGTH, &n), ND_ADDRESS);
	memcpy(p, nd_na, ND_LENGTH);
	memcpy(p + 24, nd_ns + 24, 16); // solicited, but to a group (§7.1.2)
	set_sum(p, ND_LENGTH);
	assert_int_equal(nd_parse(p, ND_LENGTH, ND_LENGTH, &n), ND_ADDRESS);
	for (size_t size = 0; size < ND_LENGTH; size++) {
		uint8_t *exact = exact_copy(nd_ns, size);
		assert_int_equal(nd_parse(exact, size, ND_LENGTH, &n), ND_SHORT);
		free(exact);
	}
}

static void group_addresses(void **state)
{
	static const uint8_t expected[6] = {0x33, 0x33, 0xff, 0, 0, 1};
	uint8_t group[16], mac[6];

	nd_solicited_node(group, ours6);
	assert_memory_equal(group, nd_ns + 24, 16);
	nd_group_mac(mac, group);
	assert_memory_equal(mac, expected, 6);
}

static void mutations(void **state)
{
	mutate(check_neighbour, arp_request, sizeof(arp_request));
	mutate(check_neighbour, nd_ns, sizeof(nd_ns));
	mutate(check_neighbour, nd_na, sizeof(nd_na));
	mutate(check_neighbour, nd_dad, sizeof(nd_dad));
}

int neighbour_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(arp_known), cmocka_unit_test(arp_hostile),
		cmocka_unit_test(nd_known), cmocka_unit_test(nd_hostile), cmocka_unit_test(group_addresses),
		cmocka_unit_test(mutations)};

	return cmocka_run_group_tests_name("neighbour", tests, NULL, NULL);
}
