// SPDX-License-Identifier: Apache-2.0
// End Markers (TS 29.281 §7.3.2).
#ifndef GTPU_GTPU_H
#define GTPU_GTPU_H

struct action;
struct path;
struct rte_mbuf;
struct rule;

// The FAR of this rule now sends elsewhere: End Marker on the old tunnel (TS 29.281 §7.3.2), with a PDU Session
// Container if the tunnel used one. Call from release(), so that it follows the old rule's last packet. Nothing for
// other tunnels.
void gtpu_end_marker(const struct rule *old);
// Makes an empty mbuf an End Marker of the tunnel, with IP and UDP headers. Returns 0; -1: no room.
int gtpu_put_end_marker_packet(struct rte_mbuf *m, const struct path *p, const struct action *a);

#endif
