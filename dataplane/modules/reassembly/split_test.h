// SPDX-License-Identifier: Apache-2.0
// For the tests of follow.c: a UDP packet in three fragments, sent in some order.
#ifndef REASSEMBLY_SPLIT_TEST_H
#define REASSEMBLY_SPLIT_TEST_H

#include "testkit/frame.h"
#include "testkit/testkit.h"
#include "wire/ip.h"
#include <string.h>

#define PIECES 3

static const int orders[][PIECES] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}};
#define ORDERS_OF_PIECES 4

// Which piece leaves as the n-th: those that overtook the first one follow it, in order.
static inline int leaves(const int *order, int n)
{
	int first = 0;

	while (order[first] != 0)
		first++;
	return n > first ? order[n] : n == 0 ? 0 : order[n - 1];
}

// Of the packet `ip`, without headers in front: `size` bytes of data, or all that are left.
static inline void cut(struct frame *f, const uint8_t *ip, uint32_t from, uint32_t size, uint32_t id)
{
	int six = ip[0] >> 4 == 6;
	uint32_t header = six ? 40 : 20, left = (six ? load16(ip + 4) : load16(ip + 2) - 20u) - from,
		 more = size < left;

	size = more ? size : left;
	frame_payload(f, size);
	memcpy(f->at, ip + header + from, size);
	if (six) {
		uint8_t *p = frame_push(f, 8);

		p[0] = ip[6];
		store16(p + 2, (uint16_t)(from | more));
		store32(p + 4, id);
	}
	frame_push(f, header);
	memcpy(f->at, ip, header);
	if (six) {
		store16(f->at + 4, (uint16_t)(size + 8));
		f->at[6] = IP_PROTOCOL_FRAGMENT;
		return;
	}
	store16(f->at + 2, (uint16_t)(20 + size));
	store16(f->at + 4, (uint16_t)id);
	store16(f->at + 6, (uint16_t)(from / 8 | more << 13));
	frame_ip4_sum(f);
}

static inline void piece(struct frame *f, const uint8_t *ip, int i, uint32_t id)
{
	cut(f, ip, (uint32_t)i * 24, i == PIECES - 1 ? UINT16_MAX : 24, id);
}

#endif
