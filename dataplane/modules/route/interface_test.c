// SPDX-License-Identifier: Apache-2.0
// Workers' look-ups of interfaces, against a linear search.
#include "route/tables.h"
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include "core/engine.h"
#include "core/port.h"
#include "testkit/testkit.h"
#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCESS 3 // ports of each role
#define INTERFACES 60

static int setup(void **state)
{
	struct api_engine e = kit_engine();
	char port[API_NAME];

	if (engine_eal_init("interface-test", 0, 512, 0, NULL) != 0)
		return -1;
	engine_mode.virtual_now = rte_get_tsc_hz() * 1000;
	kit_begin();
	kit_put(API_ENGINE, "engine", &e, sizeof(e));
	for (int i = 0; i < 2 * ACCESS; i++) {
		snprintf(port, sizeof(port), "p%d", i);
		kit_port(port, i < ACCESS ? API_ROLE_ACCESS : API_ROLE_CORE);
	}
	return kit_commit();
}

// Interface n of its port is VLAN n, with networks of its own; every second one of an access port answers for them.
static void put(int n)
{
	struct api_interface f = {.count = 2, .outer_vlan = (uint16_t)(n + 1)};
	int port = n % (2 * ACCESS);
	char name[API_NAME], address[48];

	snprintf(name, sizeof(name), "i%d", n);
	snprintf(f.port, sizeof(f.port), "p%d", port);
	f.flags = port < ACCESS && n / (2 * ACCESS) % 2 ? API_INTERFACE_LOCAL_PROXY : 0;
	snprintf(f.vrf, sizeof(f.vrf), "%s", port == 2 * ACCESS - 1 ? "blue" : "");
	snprintf(address, sizeof(address), "10.%d.0.1/24", n);
	f.address[0] = kit_address(address);
	snprintf(address, sizeof(address), "2001:db8:%x::1/48", n);
	f.address[1] = kit_address(address);
	kit_put(API_INTERFACE, name, &f, sizeof(f));
}

static struct api_address near_one(int n, int host, uint8_t family)
{
	char text[48];

	snprintf(text, sizeof(text), family == 4 ? "10.%d.0.%d/32" : "2001:db8:%x::%x/128", n, host);
	return kit_address(text);
}

static int model_proxied(const struct api_address *a, uint16_t port)
{
	for (uint32_t i = 0; i < interface_count(); i++) {
		const struct interface *f = interface_get(i);

		for (uint32_t n = 0; f != NULL && f->port == port && f->local_proxy && n < f->addresses; n++)
			if (f->address[n].family == a->family &&
				ip_prefix_equal(f->address[n].bytes, a->bytes, f->address[n].prefix) &&
				!(a->family == 4 && (a->bytes[3] == 0 || a->bytes[3] == 255)))
				return 1;
	}
	return 0;
}

static uint32_t model_local(uint8_t vrf, const struct api_address *a)
{
	for (uint32_t i = 0; i < interface_count(); i++) {
		const struct interface *f = interface_get(i);

		for (uint32_t n = 0; f != NULL && f->role == API_ROLE_CORE && f->vrf == vrf && n < f->addresses; n++)
			if (f->address[n].family == a->family && memcmp(f->address[n].bytes, a->bytes, 16) == 0)
				return i;
	}
	return UINT32_MAX;
}

static const uint8_t *model_source(uint8_t family, uint16_t port)
{
	for (uint32_t i = 0; i < interface_count(); i++) {
		const struct interface *f = interface_get(i);

		if (f != NULL && f->port == port)
			return f->address[family == 6].bytes;
	}
	return NULL;
}

static uint32_t found[3]; // of each question, answers but none

static void compare(void)
{
	int blue = interfaces_vrf(interfaces_now(), "blue");

	for (int i = 0; i < 4000; i++) {
		uint8_t family = i % 2 ? 6 : 4, vrf = i % 3 == 0 && blue > 0 ? (uint8_t)blue : 0;
		uint16_t port = (uint16_t)(rand() % (2 * ACCESS + 1)); // the last is none
		struct api_address a = near_one(rand() % INTERFACES, i % 5 ? 1 + rand() % 3 : 255 * (i % 2), family);
		int proxied = ip_is_proxied(family, a.bytes, port);
		uint32_t local = ip_local_interface(vrf, family, a.bytes);
		const uint8_t *source = ip_source_on_port(family, port);

		assert_int_equal(proxied, model_proxied(&a, port));
		assert_int_equal(local, model_local(vrf, &a));
		assert_ptr_equal(source, model_source(family, port));
		found[0] += (uint32_t)proxied;
		found[1] += local != UINT32_MAX;
		found[2] += source != NULL;
	}
	assert_int_equal(ip_is_proxied(4, near_one(6, 9, 4).bytes, UINT16_MAX), 0);
	assert_null(ip_source_on_port(4, UINT16_MAX));
}

static void interfaces_come_and_go(void **state)
{
	char name[API_NAME];
	int there[INTERFACES] = {0};

	compare();
	for (int round = 0; round < 30; round++) {
		int first = rand() % INTERFACES;

		kit_begin();
		for (int i = 0; i < 8; i++) {
			int n = (first + 7 * i) % INTERFACES;

			snprintf(name, sizeof(name), "i%d", n);
			if (!there[n])
				put(n);
			else
				kit_delete(API_INTERFACE, name);
			there[n] = !there[n];
		}
		assert_int_equal(kit_commit(), 0);
		compare();
	}
	for (int i = 0; i < 3; i++)
		assert_true(found[i] > 1000);
}

// Flags without effect on subscribers' packets are refused on access ports.
static void flags_of_access_ports(void **state)
{
	static const uint32_t flags[] = {API_INTERFACE_DOWN, API_INTERFACE_RPF_STRICT, API_INTERFACE_RPF_LOOSE};
	struct api_interface f = {.outer_vlan = 4000};

	for (int port = 0; port <= ACCESS; port += ACCESS)
		for (uint32_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
			snprintf(f.port, sizeof(f.port), "p%d", port);
			f.flags = flags[i];
			assert_int_equal(kit_change(API_INTERFACE, "x", &f, sizeof(f)), port < ACCESS ? EINVAL : 0);
		}
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(interfaces_come_and_go), cmocka_unit_test(flags_of_access_ports)};

	return cmocka_run_group_tests(list, setup, NULL);
}
