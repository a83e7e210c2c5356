// SPDX-License-Identifier: Apache-2.0
// Numbers with units as profiles and the command line have them. Pure, and the same in every locale.
#ifndef TRAFFIC_UNITS_H
#define TRAFFIC_UNITS_H

#include "traffic/profile/profile.h"

#define RATE_PPS_MAX 200e6
#define RATE_BIT_MAX 400e9
#define RATE_PART_MAX 10.0

// All return 0, or -1 when the text is something else; then *to is left alone.
int whole_parse(const char *text, uint64_t *to); // 4096, 0x1000
int real_parse(const char *text, double *to); // 1, 0.5, 1e6; not negative
int part_parse(const char *text, double *to); // 0.5 or 50%: 0.5
int seconds_parse(const char *text, double *to); // 2, 2s, 500ms, 100us
int mac_parse(const char *text, uint8_t to[6]); // 02:00:00:00:00:01
int address_parse(const char *text, struct profile_address *to); // 192.0.2.1, 2001:db8::1
// The text of a rate without a look at its limits, which rate_parse() has too.
int rate_scan(const char *text, struct rate *to);
// Why a rate is impossible, as the end of a sentence, or NULL.
const char *rate_fault(const struct rate *r);

#endif
