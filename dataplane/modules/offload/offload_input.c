// SPDX-License-Identifier: Apache-2.0
// offload-input: frames of core ports whose device removes tunnel headers. Marked ones continue behind gtpu-input, all
// others unchanged.
#include "core/node.h"
#include "core/port.h"
#include "instance/instance.h"
#include "offload/mark.h"
#include "path/local.h"
#include "rule/view.h"
#include "wire/eth.h"
#include <string.h>

DROP_REASON(drop_mark, "offload-mark",
	"the device marked the packet for a flow that it should have no more. Normal for a moment when sessions end; "
	"else see show port")
DROP_REASON(drop_inner, "offload-inner",
	"what the device left of a tunnel packet is no proper IP packet. Report it, and set offload: none")

enum { EDGE_PLAIN, EDGE_DOWNLINK, EDGE_TUNNEL, EDGE_DROP, EDGE_COUNT };

static struct {
	struct offload_request of[MARKS]; // by place; of a tunnel
	uint32_t mark[MARKS]; // 0: none
	uint8_t epoch[MARKS];
} marks; // of places that were never used no page is touched

uint32_t mark_take(uint32_t index, const struct offload_request *q)
{
	marks.epoch[index] = (uint8_t)(marks.epoch[index] + 1 == MARK_EPOCHS ? 1 : marks.epoch[index] + 1);
	marks.of[index] = *q;
	uint32_t mark = (uint32_t)marks.epoch[index] << 16 | index;
	__atomic_store_n(&marks.mark[index], mark, __ATOMIC_RELEASE);
	return mark;
}

void mark_give(uint32_t index)
{
	__atomic_store_n(&marks.mark[index], 0, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); // before the place gets other words
}

static const struct offload_request *find(uint32_t mark)
{
	uint32_t index = mark % MARKS;

	return mark != 0 && __atomic_load_n(&marks.mark[index], __ATOMIC_ACQUIRE) == mark ? &marks.of[index] : NULL;
}

// Puts the removed header back in front of the packet for later nodes: an error indication, a FAR that needs the peer.
// Returns 0 without room.
static int restore(struct rte_mbuf *m, const struct offload_request *q, uint32_t length)
{
	uint8_t *frame = (uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)(q->l3 - ETH_HEADER));

	if (frame == NULL)
		return 0;
	uint8_t *ip = frame + q->outer_l3, *gtpu = ip + IP4_HEADER + 8;
	memcpy(frame, q->header, q->l3);
	store16(ip + 2, (uint16_t)(length + q->l3 - q->outer_l3));
	store16(ip + IP4_HEADER + 4, (uint16_t)(length + q->l3 - q->outer_l3 - IP4_HEADER));
	store16(gtpu + 2, (uint16_t)(length + q->l3 - q->outer_l3 - IP4_HEADER - 16));
	return 1;
}

// Leaves the packet as gtpu-input does. Returns 0 when the interface is down or gone, which core-input handles.
static int arrived(struct rte_mbuf *m, const struct offload_request *q, const struct ip_info *info)
{
	const struct interface *i = interface_get(q->interface);
	struct packet *pkt = packet_of(m);
	const struct container came = offload_came_with(q);

	*tunnel_view_of(m) = (struct tunnel_view){.teid = load32(offload_gtpu(q) + 4),
		.header_length = came.pdu_type != API_PDU_NONE ? GTPU_HEADER_CONTAINER : GTPU_HEADER,
		.message = GTPU_GPDU,
		.qfi = came.qfi,
		.outer_version = 4,
		.outer_l3 = q->outer_l3,
		.gtpu = (uint16_t)(q->outer_l3 + IP4_HEADER + 8),
		.local = path_local_id(4, q->header + q->outer_l3 + 16),
		.pdu_type = came.pdu_type};
	pkt->l3 = q->l3;
	pkt->l4 = (uint16_t)(q->l3 + info->l4);
	pkt->ip_version = info->version;
	pkt->protocol = info->protocol;
	pkt->fragment = info->fragment;
	pkt->length = info->length;
	pkt->interface = q->interface;
	pkt->vrf = i != NULL ? i->vrf : 0;
	pkt->instance = q->instance;
	return i != NULL && !i->down;
}

static rte_edge_t offload_input_packet(struct rte_mbuf *m)
{
	struct ip_info info;

	if (!(m->ol_flags & RTE_MBUF_F_RX_FDIR_ID))
		return EDGE_PLAIN;
	const struct offload_request *q = find(m->hash.fdir.hi);
	uint32_t length = rte_pktmbuf_data_len(m), total = rte_pktmbuf_pkt_len(m) - ETH_HEADER;
	if (q == NULL)
		return packet_leave(m, &drop_mark, EDGE_DROP);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, ETH_HEADER);
	// Row G6: it fills its tunnel packet.
	if (length <= ETH_HEADER || ip_check(ip, length - ETH_HEADER, total, &info) != IP_OK || info.length != total)
		return packet_leave(m, &drop_inner, EDGE_DROP);
	int mobile = q->instance != INSTANCE_NONE;
	if ((ip_martian(info.version, info.source, info.destination) & (mobile ? ~(unsigned)IP_MULTICAST : ~0u)) != 0 ||
		!restore(m, q, info.length))
		return packet_leave(m, &drop_inner, EDGE_DROP);
	int is_up = arrived(m, q, &info);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (find(m->hash.fdir.hi) != q) // given to another meanwhile
		return packet_leave(m, &drop_mark, EDGE_DROP);
	if (unlikely(!is_up))
		return EDGE_PLAIN;
	return mobile ? EDGE_TUNNEL : EDGE_DOWNLINK;
}

static uint16_t offload_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	rte_edge_t next[NODE_CHUNK];

	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i++)
			next[i] = offload_input_packet(objs[base + i]);
		node_dispatch(graph, node, objs + base, next, count);
	}
	return n;
}

static struct rte_node_register offload_input_node = {
	.name = "offload-input",
	.process = offload_input,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_PLAIN] = "@input-core",
		[EDGE_DOWNLINK] = "@lookup-downlink",
		[EDGE_TUNNEL] = "@lookup-tunnel",
		[EDGE_DROP] = "drop"},
};
NODE_REGISTER(offload_input_node)

RTE_INIT(offload_input_marks)
{
	port_marks_register("offload-input");
}
