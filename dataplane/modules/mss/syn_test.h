// SPDX-License-Identifier: Apache-2.0
// TCP packets for tests: with an MSS among other options, and a right checksum.
#ifndef MSS_SYN_TEST_H
#define MSS_SYN_TEST_H

#include "testkit/frame.h"
#include "testkit/testkit.h"
#include "wire/bytes.h"
#include "wire/checksum.h"
#include "wire/tcp.h"
#include <string.h>

#define ACK 0x10u
#define NO_MSS UINT32_MAX

// Behind a change of the TCP header at l4 of the packet at f->at.
static inline void tcp_sum(struct frame *f, uint32_t l4)
{
	int six = f->at[0] >> 4 == 6;
	const uint8_t *source = f->at + (six ? 8 : 12);
	uint32_t length = f->length - l4;

	memset(f->at + l4 + 16, 0, 2);
	uint16_t sum = checksum_finish(checksum_add(
		checksum_pseudo(six ? 6 : 4, source, source + (six ? 16 : 4), 6, length), f->at + l4, length));
	memcpy(f->at + l4 + 16, &sum, 2);
}

// An IP packet without Ethernet. `options`: of whole words.
static inline void tcp_packet_with(struct frame *f, const char *from, const char *to, uint8_t flags,
	const uint8_t *options, uint32_t length, uint32_t payload)
{
	frame_payload(f, payload);
	memcpy(frame_push(f, length), options, length);
	frame_tcp(f, 40000, 443);
	f->at[12] = (uint8_t)((TCP_HEADER + length) / 4 << 4);
	f->at[13] = flags;
	frame_ip(f, from, to, 6);
	tcp_sum(f, f->at[0] >> 4 == 6 ? 40 : 20);
}

static inline void tcp_packet(struct frame *f, const char *from, const char *to, uint8_t flags, uint32_t mss)
{
	// The value lies across two words of the checksum.
	const uint8_t options[12] = {1, 2, 4, (uint8_t)(mss >> 8), (uint8_t)mss, 3, 3, 7, 1, 1, 4, 2};
	int syn = (flags & TCP_SYN) != 0;

	tcp_packet_with(f, from, to, flags, options, syn && mss != NO_MSS ? sizeof(options) : 0, syn ? 0 : 100);
}

// The nameless row is that of no instance.
static inline struct api_mss_row mss_row(const char *name)
{
	uint32_t count;
	const struct api_mss_row *row = kit_rows(API_TABLE_MSS, "", sizeof(*row), &count);

	for (uint32_t i = 0; i < count; i++)
		if (strcmp(row[i].name, name) == 0)
			return row[i];
	return (struct api_mss_row){.malformed = UINT64_MAX};
}

#endif
