// SPDX-License-Identifier: Apache-2.0
// What is not in a path's template, of the outer headers of a G-PDU: lengths, TEID, container, IPv4 identification and
// checksum. gtpu-encap and the fast path (flow/) make them so.
#ifndef PATH_OUTER_H
#define PATH_OUTER_H

#include "path/path.h"
#include "wire/checksum.h"
#include "wire/ip.h"
#include <rte_byteorder.h>
#include <string.h>

// UDP length, GTP-U length and TEID (host order); `length` of the whole packet whose IP header of ip_length bytes is at
// `ip`.
static __rte_always_inline void outer_finish(uint8_t *ip, uint32_t ip_length, uint32_t length, uint32_t teid)
{
	uint8_t *udp = ip + ip_length, *gtpu = udp + 8;

	store16(udp + 4, (uint16_t)(length - ip_length));
	store16(gtpu + 2, (uint16_t)(length - ip_length - 16));
	store32(gtpu + 4, teid);
}

// `path`: its index, `ip4_sum` its. `class`: DSCP << 2 | ECN. DF is clear: routers on the way may have smaller links,
// and fragment (TS 29.281 §4.2.2).
static __rte_always_inline void outer_finish_ip4(
	struct worker *w, uint8_t *ip, uint32_t path, uint32_t ip4_sum, uint32_t length, uint8_t class)
{
	uint16_t sum, id = worker_identify(w, path);
	uint16_t wire_length = rte_cpu_to_be_16((uint16_t)length);

	ip[1] = class;
	memcpy(ip + 2, &wire_length, 2);
	memcpy(ip + 4, &id, 2);
	sum = checksum_finish32(ip4_sum + ((uint32_t) class << 8) + wire_length + id);
	memcpy(ip + 10, &sum, 2);
}

// RFC 8200 §8.1: over IPv6 a UDP checksum is owed (RFC 6936 lets tunnels do without only where both ends agree); it
// covers the packet, and is not in place yet. `class`: traffic class.
static inline void outer_finish_ip6(uint8_t *ip, uint32_t length, uint8_t class)
{
	ip[0] = (uint8_t)(0x60 | class >> 4);
	ip[1] = (uint8_t)(class << 4);
	store16(ip + 4, (uint16_t)(length - IP6_HEADER));
}

static inline uint8_t outer_wire_type(uint8_t pdu_type)
{
	return pdu_type == API_PDU_UL ? GTPU_PDU_UL : GTPU_PDU_DL;
}

// The octet of the container with the QFI: the reflective QoS indicator stands in downlink ones alone (TS 38.415
// §5.5.2.1, §5.5.2.2).
static inline uint8_t outer_qfi(uint8_t pdu_type, uint8_t qfi, unsigned rqi)
{
	return (uint8_t)(qfi | (rqi & (pdu_type == API_PDU_DL)) << 6);
}

// The PDU Session Container of the GTP-U header at `gtpu` (TS 38.415 §5.5.2).
static __rte_always_inline void outer_container(uint8_t *gtpu, uint8_t pdu_type, uint8_t qfi, unsigned rqi)
{
	store16(gtpu + 13, (uint16_t)(outer_wire_type(pdu_type) << 12 | outer_qfi(pdu_type, qfi, rqi)));
}

#endif
