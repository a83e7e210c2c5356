// SPDX-License-Identifier: Apache-2.0
#include "wire/tcp.h"
#include "wire/checksum.h"

enum { OPTION_END = 0, OPTION_NOTHING = 1, OPTION_MSS = 2 };

// Replaces the value at tcp + at by `to`. At an odd offset its octets are swapped in the sum (RFC 1071 §2).
static void replace(uint8_t *tcp, uint32_t at, uint16_t to)
{
	uint16_t from = load16(tcp + at);
	int odd = at % 2 != 0;

	checksum_update16(tcp + 16, odd ? from : __builtin_bswap16(from), odd ? to : __builtin_bswap16(to));
	store16(tcp + at, to);
}

unsigned tcp_clamp_mss(uint8_t *tcp, uint32_t readable, uint16_t most)
{
	uint32_t header = (tcp[12] >> 4) * 4u, at = TCP_HEADER;
	unsigned done = 0;

	if (header < TCP_HEADER || header > readable)
		return TCP_MSS_MALFORMED;
	while (at < header && tcp[at] != OPTION_END) {
		if (tcp[at] == OPTION_NOTHING) {
			at++;
			continue;
		}
		uint32_t length = at + 1 < header ? tcp[at + 1] : 0;
		// RFC 9293 §3.1: MUST-7; §3.2: an MSS has 4 octets.
		if (length < 2 || length > header - at || (tcp[at] == OPTION_MSS && length != 4))
			return done | TCP_MSS_MALFORMED;
		if (tcp[at] == OPTION_MSS && load16(tcp + at + 2) > most) {
			replace(tcp, at + 2, most);
			done |= TCP_MSS_LOWERED;
		}
		at += length;
	}
	return done;
}
