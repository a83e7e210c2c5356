// SPDX-License-Identifier: Apache-2.0
// access-punt: packets of access ports for the control plane, within the limits.
#include "core/control.h"
#include "core/port.h"
#include "core/trace.h"
#include "host/host.h"
#include "rule/endpoint.h"
#include "rule/session.h"
#include "wire/eth.h"
#include "wire/pppoe.h"
#include <string.h>

enum { EDGE_PUNT, EDGE_DROP, EDGE_COUNT };

// No look-up for these reasons: access-input and session-uplink have made it, and newcomers are unknown.
static int is_known(struct rte_mbuf *m)
{
	const struct endpoint_view *e = endpoint_view_of(m);
	const uint8_t *mac = rte_pktmbuf_mtod(m, const uint8_t *) + 6;
	uint16_t reason = packet_of(m)->reason, port = packet_of(m)->port_in;

	if (reason == punt_ppp_control.id)
		return 1;
	if (reason == punt_first_packet.id || (reason == punt_pppoe_discovery.id && e->pppoe_session == 0))
		return 0;
	return session_endpoint_known(port, e, mac) || host_ppp_begins(port, e, mac);
}

DROP_REASON(drop_newcomer, "punt-newcomer-full",
	"a newcomer's first packet: the rest of the host path's room is for lines that have begun. Normal after a "
	"power cut: newcomers repeat")

DROP_REASON(drop_own, "punt-own-mac",
	"a stranger's frame for the control plane has the port's own MAC address. Normal with net_af_packet: the "
	"kernel "
	"sends by the device, too. Else look for a loop")

static int is_own(struct rte_mbuf *m)
{
	const struct port *p = port_get(packet_of(m)->port_in);

	return p != NULL && memcmp(rte_pktmbuf_mtod(m, const uint8_t *) + 6, p->mac.addr_bytes, 6) == 0;
}

// A PADR has begun: its cookie was asked for.
static int has_begun(struct rte_mbuf *m)
{
	uint32_t offset = ETH_HEADER + endpoint_view_of(m)->tags * ETH_TAG;

	return packet_of(m)->reason == punt_pppoe_discovery.id &&
	       rte_pktmbuf_mtod_offset(m, const uint8_t *, offset)[1] == PPPOE_PADR;
}

static rte_edge_t limit(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	int known = is_known(m);

	if (!known && is_own(m)) // it would sign in, and get an address
		return packet_leave(m, &drop_own, EDGE_DROP);
	// When all come at once, those that have begun shall finish: else each loses a packet somewhere.
	if (!known && !has_begun(m) && host_path_crowded())
		return packet_leave(m, &drop_newcomer, EDGE_DROP);
	return host_within_limits(w, m, known) ? EDGE_PUNT : EDGE_DROP;
}

NODE_EACH(access_punt, limit)

static struct rte_node_register access_punt_node = {
	.name = "access-punt",
	.process = access_punt,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_PUNT] = "punt", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(access_punt_node)

TRACE_STAGE("access-punt", .pure = 1)
