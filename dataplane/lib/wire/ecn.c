// SPDX-License-Identifier: Apache-2.0
// Effect of a tunnel's outer mark on the packet inside.
#include "wire/ecn.h"

// RFC 6040 §4.2: a sender without ECN learns of a congestion mark only by a loss. Else the outer mark is kept: CE, or
// ECT(1), which outranks ECT(0).
int ecn_leave_tunnel(uint8_t outer, uint8_t version, uint8_t *ip)
{
	uint8_t inner = ip_ecn(version, ip);
	uint8_t class = ip_traffic_class(version, ip);

	if (inner == ECN_NOT_ECT)
		return outer != ECN_CE;
	ip_traffic_class_set(version, ip, (uint8_t)((class & 0xfc) | outer));
	return 1;
}
