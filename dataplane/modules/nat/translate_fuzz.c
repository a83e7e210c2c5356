// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any IPv4 packet is read and written within its bytes. Written fields read back equal. Correct
// header checksums stay correct, and so does the checksum of a whole ICMP error.
#include "nat/pairs.h"
#include "nat/translate.h"
#include "wire/checksum.h"
#include "wire/ip.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int good)
{
	if (!good)
		abort();
}

static int icmp_good(const uint8_t *p, const struct ip_info *info)
{
	return checksum_finish(checksum_add(0, p + info->l4, info->length - info->l4)) == 0;
}

// Of a protocol without ports, or an error about it.
static int is_pair(const struct nat_packet *p, const struct ip_info *info, uint32_t readable)
{
	uint32_t room = readable < info->length ? readable : info->length, id;
	const uint8_t *l4 = p->inner != NULL ? p->inner_l4 : p->l4;

	room = p->later           ? 8
	       : p->inner != NULL ? p->inner_room - (uint32_t)(l4 - p->inner)
				  : room - (uint32_t)(l4 - p->ip);
	return nat_pair_kind(p->protocol, l4, room, &id) > PAIR_SHORT;
}

static void translate(uint8_t *p, uint32_t readable, const struct ip_info *info, int out)
{
	int whole = info->length <= readable, right = ip4_checksum_ok(p), sum = whole && icmp_good(p, info);
	struct nat_packet was, is;
	uint8_t head[8] = {(uint8_t)(out ? 8 : 0), 0, 0x43, 0x21, 0x43, 0x21}; // of later fragments
	enum nat_kind kind = nat_read(&was, p, readable, out, head);

	if (kind == NAT_LATER || kind == NAT_BROKEN || (kind == NAT_OTHER && !is_pair(&was, info, readable)))
		return;
	nat_write(&was, kind, out, 0x05060708, 0x1234, 1);
	must(nat_read(&is, p, readable, out, head) == kind && is.address == 0x05060708);
	must(is.port == (kind == NAT_OTHER ? 0 : 0x1234));
	must(is.protocol == was.protocol && is.l4 == was.l4 && is.later == was.later);
	must(!right || ip4_checksum_ok(p));
	must(was.inner == NULL || !sum || icmp_good(p, info));
}

// The first byte: 1: out; the rest: how much of the packet is in the first segment, in eighths; 0xf8 and more: all.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ip_info info;

	if (size < 2)
		return 0;
	uint32_t total = (uint32_t)size - 1;
	uint32_t readable = data[0] >= 0xf8 ? total : (uint32_t)((uint64_t)total * (data[0] >> 5) / 8);
	uint8_t *packet = malloc(readable + 1);
	memcpy(packet, data + 1, readable);
	if (ip_parse(packet, readable, total, &info) == IP_OK && info.version == 4)
		translate(packet, readable, &info, data[0] & 1);
	free(packet);
	return 0;
}
