// SPDX-License-Identifier: Apache-2.0
// The UDP checksum of tunnel packets that came in.
#include "path/udp_sum.h"
#include "core/control.h"
#include "wire/checksum.h"
#include "wire/ip.h"
#include <rte_byteorder.h>

static struct {
	uint16_t mask;
	uint8_t zero6;
} settings = {.mask = UINT16_MAX};

static int start(const struct api_engine *e)
{
	settings.mask = e->flags & API_ENGINE_UDP_SUM_IGNORED ? 0 : UINT16_MAX;
	settings.zero6 = (e->flags & API_ENGINE_UDP_SUM_ZERO6) != 0;
	return 0;
}

RTE_INIT(udp_sum)
{
	module_register(start);
}

uint16_t udp_sum_mask(void)
{
	return settings.mask;
}

// A device that knows the tunnel reports the inner checksum as the transport's, and the outer one separately.
static int device_found_good(const struct rte_mbuf *m)
{
	uint64_t outer = m->ol_flags & RTE_MBUF_F_RX_OUTER_L4_CKSUM_MASK;

	if (outer == RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD)
		return 1;
	return !(m->packet_type & RTE_PTYPE_TUNNEL_MASK) &&
	       (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD;
}

// Sum of `length` bytes from `at` on, which may be in several segments. A byte behind an odd number of others is the
// second of its word (RFC 1071 §2).
static uint64_t sum_of(const struct rte_mbuf *m, uint32_t at, uint32_t length)
{
	uint64_t sum = 0;

	for (int odd = 0; m != NULL && length > 0; m = m->next, at = 0) {
		uint32_t n = RTE_MIN(rte_pktmbuf_data_len(m) - at, length);
		uint16_t part = checksum_fold(checksum_add(0, rte_pktmbuf_mtod_offset(m, const uint8_t *, at), n));

		sum += odd ? rte_bswap16(part) : part;
		odd ^= n & 1;
		length -= n;
	}
	return sum;
}

int udp_sum_good(const struct rte_mbuf *m, uint8_t version, uint32_t ip, uint32_t udp)
{
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, ip);
	const uint8_t *header = rte_pktmbuf_mtod_offset(m, const uint8_t *, udp);
	uint32_t address = version == 4 ? 4 : 16, at = version == 4 ? 12 : 8, length = load16(header + 4);
	uint16_t field;

	memcpy(&field, header + 6, 2);
	if (likely(settings.mask == 0 || (field == 0 && (version == 4 || settings.zero6))))
		return 1;
	if (field == 0)
		return 0;
	if (device_found_good(m))
		return 1;
	uint64_t pseudo = checksum_pseudo(version, p + at, p + at + address, IP_PROTOCOL_UDP, length);
	return field == checksum_fold(pseudo) || checksum_finish(pseudo + sum_of(m, udp, length)) == 0;
}
