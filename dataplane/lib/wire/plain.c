// SPDX-License-Identifier: Apache-2.0
#include "wire/plain.h"

static void mask_gpdu(uint8_t *mask)
{
	mask[0] = 0xff;
	mask[6] = 0x3f; // not "don't fragment"
	mask[7] = 0xff;
	mask[9] = 0xff;
	memset(mask + 16, 0xff, 4);
	memset(mask + 22, 0xff, 2);
	mask[28] = 0xf0; // the rest of the flags is gtpu_parse()'s
	mask[29] = 0xff;
}

static void mask_to_gtpu6(uint8_t *mask)
{
	mask[0] = 0xf0;
	mask[6] = 0xff;
	memset(mask + 24, 0xff, 16);
	memset(mask + IP6_HEADER + 2, 0xff, 2);
}

void plain_bytes_set(struct plain_bytes *to, const uint8_t *frame, uint16_t l3, uint8_t outer)
{
	uint8_t *mask = to->mask;

	memset(mask, 0, PLAIN_BYTES);
	memset(mask, 0xff, 6);
	memset(mask + 12, 0xff, l3 - 12u);
	for (uint32_t tag = ETH_HEADER; tag < l3; tag += ETH_TAG)
		mask[tag] = 0x0f; // priority and DEI bits are not part of the id
	if (outer == 4)
		mask_gpdu(mask + l3);
	else if (outer == 6)
		mask_to_gtpu6(mask + l3);
	memcpy(to->want, frame, PLAIN_BYTES);
}
