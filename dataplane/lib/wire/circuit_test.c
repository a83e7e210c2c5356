// SPDX-License-Identifier: Apache-2.0
#include "wire/circuit.h"
#include "wire/wire_test.h"

// PADI: Service-Name, another vendor's tag, the access node's with circuit and remote id.
static const uint8_t marked[] = {0x11, 9, 0, 0, 0, 34, 1, 1, 0, 0, 1, 5, 0, 6, 0, 0, 0, 9, 1, 0, 1, 5, 0, 16, 0, 0, 13,
	0xe9, 1, 4, '0', '/', '1', '7', 2, 4, 'h', 'o', 'm', 'e'};
static const uint8_t options4[] = {53, 1, 1, 0, 0, 82, 12, 1, 4, '0', '/', '1', '7', 2, 4, 'h', 'o', 'm', 'e', 255};
// Relay-Forwards of two relays around a Solicit; the inner one is the access node's.
static const uint8_t inner6[] = {0, 18, 0, 4, '0', '/', '1', '7', 0, 9, 0, 4, 1, 1, 2, 3};

static struct circuit dhcp4(uint8_t to[300])
{
	memset(to, 0, 300);
	memcpy(to + 240, options4, sizeof(options4));
	return circuit_of_dhcp4(to, 240 + sizeof(options4));
}

static uint32_t relays(uint8_t to[200])
{
	uint32_t inner = 34 + sizeof(inner6);

	memset(to, 0, 200);
	to[0] = 12;
	store16(to + 34, 18);
	store16(to + 36, 1);
	to[38] = 'x';
	store16(to + 39, 9);
	store16(to + 41, (uint16_t)inner);
	to[43] = 12;
	memcpy(to + 43 + 34, inner6, sizeof(inner6));
	return 43 + inner;
}

static void is(struct circuit c)
{
	assert_int_equal(c.length, 4);
	assert_memory_equal(c.id, "0/17", 4);
}

static void known_circuits(void **state)
{
	uint8_t four[300], six[200];

	is(circuit_of_pppoe(marked, sizeof(marked)));
	is(dhcp4(four));
	is(circuit_of_dhcp6(six, relays(six)));
}

static void no_circuits(void **state)
{
	uint8_t p[300], two[sizeof(marked)];

	memcpy(two, marked, sizeof(marked));
	two[27] = 0; // no Broadband Forum
	assert_int_equal(circuit_of_pppoe(two, sizeof(two)).length, 0);
	assert_int_equal(circuit_of_pppoe(marked, sizeof(marked) - 1).length, 0);
	dhcp4(p);
	p[246] = 13; // option 82 ends behind the message
	assert_int_equal(circuit_of_dhcp4(p, 240 + sizeof(options4) - 1).length, 0);
	memset(p, 0, sizeof(p)); // padding without end
	assert_int_equal(circuit_of_dhcp4(p, sizeof(p)).length, 0);
	uint32_t n = relays(p);
	p[0] = 1;
	assert_int_equal(circuit_of_dhcp6(p, n).length, 0);
}

static void mutations(void **state)
{
	uint8_t p[300];

	mutate(check_circuit, marked, sizeof(marked));
	dhcp4(p);
	mutate(check_circuit, p, 240 + sizeof(options4));
	mutate(check_circuit, p, relays(p));
}

int circuit_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_circuits), cmocka_unit_test(no_circuits), cmocka_unit_test(mutations)};

	return cmocka_run_group_tests_name("circuit", tests, NULL, NULL);
}
