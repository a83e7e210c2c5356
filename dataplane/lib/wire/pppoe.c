// SPDX-License-Identifier: Apache-2.0
// Checks on PPPoE discovery packets (RFC 2516 §5 and appendix A). Rare, so out of line.
#include "wire/pppoe.h"

static int known_code(uint8_t code)
{
	return code == PPPOE_PADI || code == PPPOE_PADO || code == PPPOE_PADR || code == PPPOE_PADS ||
	       code == PPPOE_PADT;
}

enum pppoe_status pppoe_discovery_check(const uint8_t *p, uint32_t available, uint32_t total)
{
	uint32_t end, at, tags = 0;

	if (available < PPPOE_DISCOVERY_HEADER || total < PPPOE_DISCOVERY_HEADER)
		return PPPOE_SHORT;
	if (p[0] != PPPOE_VERSION_TYPE || !known_code(p[1]))
		return PPPOE_VERSION;
	end = PPPOE_DISCOVERY_HEADER + (uint32_t)load16(p + 4);
	if (end > total)
		return PPPOE_LENGTH;
	if (end > available)
		return PPPOE_SHORT;
	for (at = PPPOE_DISCOVERY_HEADER; at < end;) {
		uint16_t type, length;
		if (end - at < 4 || ++tags > PPPOE_MAX_TAGS)
			return PPPOE_TAG;
		type = load16(p + at);
		length = load16(p + at + 2);
		if (length > end - at - 4)
			return PPPOE_TAG;
		if (type == 0) // End-Of-List: what follows is to be ignored (appendix A)
			break;
		at += 4 + length;
	}
	// PADI and PADR have exactly one Service-Name (§5.1, §5.3), so without any tag they are malformed. PADT may
	// have none.
	if (tags == 0 && (p[1] == PPPOE_PADI || p[1] == PPPOE_PADR))
		return PPPOE_TAG;
	return PPPOE_OK;
}
