// SPDX-License-Identifier: Apache-2.0
// End Markers that we send when a FAR moves to another tunnel (TS 29.281 §7.3.2, TS 23.501 §5.8.2.5.2).
//
// A transaction may move more tunnels than a worker's inbox holds: End Markers wait here while it is more than half
// full. They leave on the session's worker, whose last packets on the old tunnel left before the grace period ended.
#include "core/control.h"
#include "core/node.h"
#include "forward/tunnel.h"
#include "gtpu/gtpu.h"
#include "rule/rule.h"
#include "rule/view.h"
#include "rule/watch.h"
#include "wire/ecn.h"
#include <rte_ring.h>
#include <stdlib.h>

#define MAX_WAITING 65536u

DROP_REASON(drop_lost, "gtpu-end-marker-lost",
	"more End Markers to be sent at once than wait for the workers. More than 65,536 tunnels moved at once")

static struct {
	struct rte_mbuf **packet; // ring; packet.resume holds the worker meanwhile
	uint32_t first, count, room;
} markers;

static int has_room(uint32_t worker)
{
	const struct rte_ring *inbox = worker_get(worker)->inbox;

	return rte_ring_free_count(inbox) > rte_ring_get_capacity(inbox) / 2;
}

static int grow(void)
{
	uint32_t room = markers.room ? markers.room * 2 : 256;
	struct rte_mbuf **packet = room > MAX_WAITING ? NULL : malloc(room * sizeof(struct rte_mbuf *));

	if (packet == NULL)
		return -1;
	for (uint32_t i = 0; i < markers.count; i++)
		packet[i] = markers.packet[(markers.first + i) % markers.room];
	free(markers.packet);
	markers.packet = packet;
	markers.first = 0;
	markers.room = room;
	return 0;
}

static void send(uint32_t worker, struct rte_mbuf *m)
{
	packet_of(m)->resume = 0;
	control_inject(worker, "ip-output", m);
}

static void tick(uint64_t now_ns)
{
	while (markers.count != 0) {
		struct rte_mbuf *m = markers.packet[markers.first];
		uint32_t worker = packet_of(m)->resume;

		if (!has_room(worker))
			return;
		markers.first = (markers.first + 1) % markers.room;
		markers.count--;
		send(worker, m);
	}
}

int gtpu_put_end_marker_packet(struct rte_mbuf *m, const struct path *p, const struct action *a)
{
	uint32_t ip_length = path_ip_length(p), most = ip_length + 8 + GTPU_MESSAGE_MAX;
	uint8_t *ip = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)most);

	if (ip == NULL)
		return -1;
	memcpy(ip, path_header(p, 0), ip_length + 8);
	path_mark(ip, p, a->dscp, ECN_NOT_ECT);
	uint8_t type = a->flags >> ACTION_PDU_SHIFT, qfi = type == API_PDU_NONE ? GTPU_NO_QFI : a->qfi;
	unsigned length = gtpu_put_end_marker(ip + ip_length + 8, a->teid, qfi, tunnel_wire_type(type));
	rte_pktmbuf_trim(m, (uint16_t)(GTPU_MESSAGE_MAX - length));
	path_finish_outer(m, path_vrf(p), p->outer.version, ip_length + 8 + length);
	memset(session_view_of(m), 0, sizeof(struct session_view));
	return 0;
}

void gtpu_end_marker(const struct rule *old)
{
	const struct path *p = old->outer == API_OUTER_GTPU ? path_before(old->action.path) : NULL;
	struct rte_mbuf *m = p != NULL && old->worker < worker_count() ? control_originate() : NULL;

	if (m == NULL)
		return;
	if (gtpu_put_end_marker_packet(m, p, &old->action) != 0) {
		control_drop(m, &drop_lost);
		return;
	}
	if (markers.count == 0 && has_room(old->worker)) {
		send(old->worker, m);
		return;
	}
	if (markers.count == markers.room && grow() != 0) {
		control_drop(m, &drop_lost);
		return;
	}
	packet_of(m)->resume = (uint8_t)old->worker;
	markers.packet[(markers.first + markers.count++) % markers.room] = m;
}

RTE_INIT(end_marker_module)
{
	static struct session_watcher watcher = {.tunnel_moved = gtpu_end_marker};

	timer_register(1, tick);
	session_watch(&watcher);
}
