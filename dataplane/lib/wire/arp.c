// SPDX-License-Identifier: Apache-2.0
// ARP decoder and encoder.
#include "wire/arp.h"
#include "wire/ip.h"

static int mac_is_host(const uint8_t *mac)
{
	return !(mac[0] & 1) && (mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]) != 0;
}

enum arp_status arp_parse(const uint8_t *p, uint32_t available, struct arp_info *out)
{
	uint32_t sender, target;

	if (available < ARP_LENGTH)
		return ARP_SHORT;
	if (load16(p) != 1 || load16(p + 2) != 0x0800 || p[4] != 6 || p[5] != 4)
		return ARP_TYPE;
	out->operation = load16(p + 6);
	if (out->operation != ARP_REQUEST && out->operation != ARP_REPLY)
		return ARP_TYPE;
	out->sender_mac = p + 8;
	out->sender = p + 14;
	out->target_mac = p + 18;
	out->target = p + 24;
	sender = load32(out->sender);
	target = load32(out->target);
	int to_probe = target == 0 && out->operation == ARP_REPLY; // RFC 5227 §2.1.1
	if (!mac_is_host(out->sender_mac) || (sender != 0 && !ip4_is_host(sender)) ||
		(!ip4_is_host(target) && !to_probe))
		return ARP_ADDRESS;
	// A reply announces its sender's address; 0.0.0.0 is none.
	return sender == 0 && out->operation == ARP_REPLY ? ARP_ADDRESS : ARP_OK;
}

void arp_put(uint8_t *to, uint16_t operation, const uint8_t *sender_mac, const uint8_t *sender,
	const uint8_t *target_mac, const uint8_t *target)
{
	store16(to, 1);
	store16(to + 2, 0x0800);
	to[4] = 6;
	to[5] = 4;
	store16(to + 6, operation);
	memcpy(to + 8, sender_mac, 6);
	memcpy(to + 14, sender, 4);
	if (target_mac)
		memcpy(to + 18, target_mac, 6);
	else
		memset(to + 18, 0, 6);
	memcpy(to + 24, target, 4);
}
