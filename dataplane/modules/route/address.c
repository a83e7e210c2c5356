// SPDX-License-Identifier: Apache-2.0
// Questions about addresses and prefixes, for both families. Pure code.
#include "route/address.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

int address_valid(const struct api_address *a)
{
	static const uint8_t zero[16];

	if (a->family != 4 && a->family != 6)
		return 0;
	if (a->prefix > 8 * address_length(a->family))
		return 0;
	return a->family == 6 || memcmp(a->bytes + 4, zero, 12) == 0;
}

int prefix_canonical(const struct api_address *a)
{
	for (uint32_t bit = a->prefix; bit < 8 * address_length(a->family); bit++)
		if (a->bytes[bit / 8] & (0x80 >> bit % 8))
			return 0;
	return 1;
}

static int host_bits_all(const struct api_address *a, int one)
{
	for (uint32_t bit = a->prefix; bit < 8 * address_length(a->family); bit++)
		if (!!(a->bytes[bit / 8] & (0x80 >> bit % 8)) != one)
			return 0;
	return 1;
}

int address_assignable(const struct api_address *a)
{
	static const uint8_t zero[15];

	if (!address_valid(a) || a->prefix == 0)
		return 0;
	if (a->family == 6)
		return a->bytes[0] != 0xff && (memcmp(a->bytes, zero, 15) != 0 || a->bytes[15] > 1);
	if (a->bytes[0] == 0 || a->bytes[0] == 127 || a->bytes[0] >= 224)
		return 0;
	// RFC 3021: a /31 has no network and broadcast address.
	return a->prefix > 30 || (!host_bits_all(a, 0) && !host_bits_all(a, 1));
}

int prefix_compare(const struct api_address *a, const struct api_address *b)
{
	int order = (int)a->family - (int)b->family;

	if (order == 0)
		order = memcmp(a->bytes, b->bytes, 16);
	return order != 0 ? order : (int)a->prefix - (int)b->prefix;
}

const char *address_text(const struct api_address *a, char text[64])
{
	char host[INET6_ADDRSTRLEN] = "?";

	inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->bytes, host, sizeof(host));
	if (a->prefix == 8 * address_length(a->family))
		snprintf(text, 64, "%s", host);
	else
		snprintf(text, 64, "%s/%u", host, a->prefix);
	return text;
}

struct api_address address_of_text(const char *text)
{
	struct api_address a = {0};

	if (inet_pton(AF_INET, text, a.bytes) == 1)
		a.family = 4, a.prefix = 32;
	else if (inet_pton(AF_INET6, text, a.bytes) == 1)
		a.family = 6, a.prefix = 128;
	return a;
}
