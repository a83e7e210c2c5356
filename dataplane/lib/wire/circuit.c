// SPDX-License-Identifier: Apache-2.0
// Circuit ids. Malformed messages have none: the control plane judges them.
#include "wire/circuit.h"
#include "wire/pppoe.h"

#define OPTIONS 64 // that are looked at
#define RELAYS 8 // HOP_COUNT_LIMIT (RFC 8415 §7.6)
#define BOOTP 240 // up to the options, with the magic cookie
#define RELAY_FORWARD 12
#define RELAY_HEADER 34
#define BROADBAND_FORUM 3561 // enterprise number

enum { TAG_VENDOR = 0x0105, AGENT = 82, AGENT_CIRCUIT = 1, RELAY_MESSAGE = 9, INTERFACE_ID = 18 };

// The first option with a code from *p on; *p and *n are then the rest behind it. `wide`: two octets each for code and
// length. DHCPv4 pads with 0; in the wide form 0 ends the list.
static struct circuit next_option(const uint8_t **p, uint32_t *n, uint32_t code, uint32_t wide)
{
	for (int i = 0; i < OPTIONS && *n >= 2 * wide; i++) {
		uint32_t is = wide == 1 ? **p : load16(*p), length = wide == 1 ? (*p)[1] : load16(*p + 2);
		uint32_t size = wide == 1 && is == 0 ? 1 : 2 * wide + length;

		if (size > *n || (wide == 2 && is == 0))
			break;
		const struct circuit found = {*p + 2 * wide, length};
		*p += size;
		*n -= size;
		if (is == code)
			return found;
	}
	return (struct circuit){0};
}

static struct circuit option(const uint8_t *p, uint32_t n, uint32_t code, uint32_t wide)
{
	return next_option(&p, &n, code, wide);
}

struct circuit circuit_of_pppoe(const uint8_t *p, uint32_t n)
{
	struct circuit tag;

	if (n < PPPOE_DISCOVERY_HEADER || n - PPPOE_DISCOVERY_HEADER < load16(p + 4))
		return (struct circuit){0};
	n = load16(p + 4);
	p += PPPOE_DISCOVERY_HEADER;
	// Other vendors have tags of the same type.
	while ((tag = next_option(&p, &n, TAG_VENDOR, 2)).length != 0)
		if (tag.length >= 4 && load32(tag.id) == BROADBAND_FORUM)
			return option(tag.id + 4, tag.length - 4, AGENT_CIRCUIT, 1);
	return tag;
}

struct circuit circuit_of_dhcp4(const uint8_t *p, uint32_t n)
{
	struct circuit agent = {0};

	if (n > BOOTP)
		agent = option(p + BOOTP, n - BOOTP, AGENT, 1);
	return option(agent.id, agent.length, AGENT_CIRCUIT, 1);
}

struct circuit circuit_of_dhcp6(const uint8_t *p, uint32_t n)
{
	struct circuit id = {0}, inner;

	for (int i = 0; i < RELAYS && n > RELAY_HEADER && p[0] == RELAY_FORWARD; i++) {
		id = option(p + RELAY_HEADER, n - RELAY_HEADER, INTERFACE_ID, 2);
		inner = option(p + RELAY_HEADER, n - RELAY_HEADER, RELAY_MESSAGE, 2);
		p = inner.id;
		n = inner.length;
	}
	return id;
}
