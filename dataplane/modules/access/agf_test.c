// SPDX-License-Identifier: Apache-2.0
// The access gateway as a whole: both encapsulations, both directions, through the real graph.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "testkit/testkit.h"
#include "wire/checksum.h"
#include "wire/gtpu.h"
#include "wire/pppoe.h"
#include <string.h>

static const uint8_t home[6] = {2, 0, 0, 0, 0, 1}, home2[6] = {2, 0, 0, 0, 0, 2}, upf[6] = {2, 0, 0, 0, 0xff, 1};
static const uint8_t access_mac[6] = {2, 0, 0, 0, 0x99, 0}, core_mac[6] = {2, 0, 0, 0, 0x99, 1};

static int setup(void **state)
{
	kit_start(NULL);
	kit_begin();
	kit_port("access", API_ROLE_ACCESS);
	kit_port("core", API_ROLE_CORE);
	kit_interface("n3", "core", "10.0.0.1/24", "fd00::1/64");
	kit_interface("homes", "access", "100.64.0.1/16", NULL);
	kit_neighbour("n3", "10.0.0.2", upf);
	kit_neighbour("n3", "fd00::2", upf);
	kit_path("upf", "10.0.0.1", "10.0.0.2");
	kit_path("upf6", "fd00::1", "fd00::2");
	assert_int_equal(kit_commit(), 0);
	kit_begin();
	struct kit_session a = kit_session("access", home, 100, 1, 0, "100.64.0.2", "2001:db8:1::/64", "upf", 0x200);
	struct kit_session b = kit_session("access", home2, 100, 2, 7, "100.64.0.3", NULL, "upf6", 0x201);
	kit_put_session("a", &a);
	kit_put_session("b", &b);
	int error = kit_commit();
	if (error != 0)
		print_message("%s\n", kit_error());
	assert_int_equal(error, 0);
	kit_advance(1000); // gratuitous ARP and unsolicited advertisements leave
	return 0;
}

// IPv4/UDP of 20 + 8 + n bytes.
static uint32_t put_udp4(uint8_t *p, const char *source, const char *destination, uint16_t port, uint32_t n)
{
	memset(p, 0, 28 + n);
	p[0] = 0x45;
	store16(p + 2, (uint16_t)(28 + n));
	p[8] = 64;
	p[9] = 17;
	memcpy(p + 12, kit_address(source).bytes, 4);
	memcpy(p + 16, kit_address(destination).bytes, 4);
	ip4_checksum_set(p);
	store16(p + 20, 1000);
	store16(p + 22, port);
	store16(p + 24, (uint16_t)(8 + n));
	for (uint32_t i = 0; i < n; i++)
		p[28 + i] = (uint8_t)i;
	return 28 + n;
}

static uint32_t put_qinq(uint8_t *p, const uint8_t *to, const uint8_t *from, uint16_t s, uint16_t c, uint16_t type)
{
	memcpy(p, to, 6);
	memcpy(p + 6, from, 6);
	store16(p + 12, 0x88a8);
	store16(p + 14, s);
	store16(p + 16, 0x8100);
	store16(p + 18, c);
	store16(p + 20, type);
	return 22;
}

static uint32_t put_core(uint8_t *p, uint32_t teid, const uint8_t *inner, uint32_t n)
{
	memcpy(p, core_mac, 6);
	memcpy(p + 6, upf, 6);
	store16(p + 12, 0x0800);
	put_udp4(p + 14, "10.0.0.2", "10.0.0.1", 2152, 16 + n);
	gtpu_put_gpdu(p + 42, teid, 9, GTPU_PDU_DL, (uint16_t)n);
	memcpy(p + 58, inner, n);
	return 58 + n;
}

static void uplink_qinq(void **state)
{
	uint8_t frame[512];
	uint32_t n = put_qinq(frame, access_mac, home, 100, 1, 0x0800);

	n += put_udp4(frame + n, "100.64.0.2", "8.8.8.8", 53, 100);
	kit_clear();
	assert_int_equal(kit_send("access", frame, n), 0);
	kit_run();
	assert_int_equal(kit_count("core"), 1);
	const struct kit_frame *f = kit_frame("core", 0);
	assert_int_equal(f->length, 14 + 44 + 128);
	assert_memory_equal(f->bytes, upf, 6);
	assert_memory_equal(f->bytes + 58, frame + 22, 128);
	assert_int_equal(load32(f->bytes + 46), 0x10200);
	assert_true(ip4_checksum_ok(f->bytes + 14));
	assert_true(kit_balance());
}

static void downlink_qinq(void **state)
{
	uint8_t frame[512], inner[256];
	uint32_t n = put_udp4(inner, "8.8.8.8", "100.64.0.2", 1234, 100);

	n = put_core(frame, 0x200, inner, n);
	kit_clear();
	for (int i = 0; i < 3; i++)
		assert_int_equal(kit_send("core", frame, n), 0);
	kit_run();
	kit_print();
	assert_int_equal(kit_count("access"), 3);
	const struct kit_frame *f = kit_frame("access", 0);
	assert_int_equal(f->length, 22 + 128);
	assert_memory_equal(f->bytes, home, 6);
	assert_memory_equal(f->bytes + 22, inner, 128);
	assert_true(kit_balance());
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test(uplink_qinq), cmocka_unit_test(downlink_qinq)};

	return cmocka_run_group_tests(list, setup, NULL);
}
