// SPDX-License-Identifier: Apache-2.0
// Helpers of the rows of hostile input. They send bad packets and check that exactly one counter rises, nothing leaves,
// no buffer is lost, and other traffic is untouched.
#ifndef HOSTILE_HOSTILE_H
#define HOSTILE_HOSTILE_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "hostile/snapshot.h"
#include "testkit/gateway.h"
#include "wire/bytes.h"
#include "wire/checksum.h"
#include "wire/eth.h"
#include "wire/gtpu.h"
#include "wire/icmp.h"
#include "wire/ip.h"
#include <stdio.h>
#include <string.h>

#define FAR4 "198.51.100.9"
#define FAR6 "2001:db8:ffff::9"

// Variants that a row is sent in.
#define INNER6 1u // the subscriber's packet is IPv6
#define PPPOE 2u // home 2 (PPPoE, tunnel over IPv6) instead of home 1 (QinQ, tunnel over IPv4)
#define VARIANTS 4u

static inline uint32_t home_of(uint32_t variant)
{
	return variant & PPPOE ? HOME_PPPOE : HOME_QINQ;
}

static inline int family_of(uint32_t variant)
{
	return variant & INNER6 ? 6 : 4;
}

static inline const char *far_of(uint32_t variant)
{
	return variant & INNER6 ? FAR6 : FAR4;
}

static inline const char *ue_of(uint32_t variant)
{
	return gateway_ue(home_of(variant), family_of(variant));
}

// Builds bad packet number i into f.
typedef void (*bad_fn)(struct frame *f, uint32_t i, uint32_t variant);

struct bad {
	const char *row; // "G1 length 0"
	const char *port;
	bad_fn build;
	uint32_t count; // packets, of each variant
	const char *reason; // drop or punt reason that rises by as many
	uint32_t only4; // 1: the variant INNER6 makes no sense
};

void bad_rows(const struct bad *list, uint32_t rows);
#define BAD_ROWS(list) bad_rows(list, sizeof(list) / sizeof((list)[0]))

// Frames that left by any port since kit_clear.
uint32_t all_out(void);
void send_one(const char *port, const struct frame *f);

// Packets of the subscriber: UDP of 60 bytes.
void inner_udp(struct frame *f, uint32_t variant, int uplink);
// The IP header of frame i sent by `port` (info filled in), checked.
const uint8_t *out_ip(const char *port, uint32_t i, struct ip_info *info);

extern const struct CMUnitTest gtpu_rows[], access_rows[], ip_rows[];
extern const size_t gtpu_row_count, access_row_count, ip_row_count;

#endif
