// SPDX-License-Identifier: Apache-2.0
// Inside of the neighbour module: the table of neighbours. Everything here belongs to the control thread.
#ifndef NEIGHBOUR_TABLE_H
#define NEIGHBOUR_TABLE_H

#include "core/control.h"
#include "neighbour/neighbour.h"
#include "route/route.h"

#define NEIGHBOURS 4096 // engine.max_neighbours, when it names none
#define MAX_NEIGHBOURS 8000 // most that it may name: next hops are as many, with those of routes
#define SOLICITATIONS 1000 // engine.solicitation_rate, when it names none
#define NEIGHBOUR_HELD 8 // packets waiting for one neighbour; a further one replaces the oldest

// RFC 4861 §10, RFC 1122 §2.3.2.1
#define PROBE_INTERVAL_NS 1000000000ull
#define PROBES 3
#define REACHABLE_NS 30000000000ull
#define FAILED_NS 5000000000ull // no new probes so soon after a failure

// INCOMPLETE --answer--> REACHABLE --30 s--> STALE (probed, still used) --answer--> REACHABLE
//      | 3 probes                              | 3 probes
//      v                                       v
//    FAILED (packets are dropped) --5 s--> forgotten
enum neighbour_state { NEIGHBOUR_FREE, INCOMPLETE, REACHABLE, STALE, FAILED, STATIC };

struct neighbour {
	uint8_t state; // enum neighbour_state
	uint8_t probes; // sent since the last answer
	uint8_t held;
	uint8_t wanted; // STATIC: the object is still there
	uint8_t used; // a route's gateway, or the peer of a tunnel
	uint8_t family;
	struct rte_ether_addr mac;
	uint32_t interface;
	uint32_t next_hop; // held
	char name[API_NAME]; // of the interface: its index may be given to another
	struct ip_address address;
	uint64_t since_ns; // last answer, or when it was made
	uint64_t due_ns; // next thing to do
	struct rte_mbuf *queue[NEIGHBOUR_HELD]; // oldest first
};

// A neighbour by its address; NULL when it is not known.
struct neighbour *neighbour_find(uint32_t interface, uint8_t family, const uint8_t *address);
// For what a neighbour is needed.
enum neighbour_purpose {
	FOR_ANYONE, // a packet to a host of an attached network, which may be part of a scan
	FOR_US, // gateway of a route, peer of a tunnel
	FOR_CONFIG, // the operator names it
};
// Creates it if missing. NULL when the interface has its share of unresolved neighbours, or no entry may be replaced
// for this purpose.
struct neighbour *neighbour_ensure(
	uint32_t interface, uint8_t family, const uint8_t *address, enum neighbour_purpose purpose);
void neighbour_set_state(struct neighbour *n, enum neighbour_state state);
uint32_t neighbour_room(void); // most neighbours
void neighbour_remove(struct neighbour *n);
// Calls fn for every neighbour; fn may remove it.
void neighbour_each(void (*fn)(struct neighbour *n, void *arg), void *arg);
// Its MAC is known now: releases waiting packets.
void neighbour_learn(struct neighbour *n, const uint8_t mac[6]);
const uint8_t *neighbour_bytes(const struct neighbour *n); // 4 or 16 bytes

// Messages (exchange.c).

// Asks for the neighbour's MAC: by broadcast or group if unknown, else by unicast.
void exchange_probe(const struct neighbour *n);
// Announces an address of ours on its link (RFC 5227 §3, RFC 4861 §7.2.6).
void exchange_announce(const struct interface *i, const struct api_address *a);
void exchange_start(void); // registers the handlers

#endif
