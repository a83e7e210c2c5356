// SPDX-License-Identifier: Apache-2.0
// Drop reasons of the nodes that the fast paths skip: how to provoke each from a good packet on a fast path.
#ifndef FLOW_DROPS_TEST_H
#define FLOW_DROPS_TEST_H

#include "gtpu/tunnel_fixture.h"

// Ways of good packets.
enum {
	UP, // UPF: out of a tunnel over IPv4, to the data network
	UP_VLAN,
	UP_OUTER6,
	UP_INNER6,
	UP_FLOW, // of a key with several PDRs
	SGW, // from tunnel to tunnel
	DOWN, // UPF: into a tunnel
	DOWN6,
	DOWN_FLOW,
	ROUTED, // of no session: where no UEs are looked up,
	ROUTED6,
	ROUTED_UE, // where they are,
	ROUTED_VRF, // and in a VRF without any
	NAT_UP,
	NAT_DOWN,
	AGF_DOWN, // wireline, with a tunnel on the core side,
	BNG_DOWN, // and with IP
	AGF_UP,
	PPPOE_UP,
	BNG_UP,
	WAYS
};
#define BIT(way) (1u << (way))
#define TUNNELS4 (BIT(UP) | BIT(UP_VLAN) | BIT(UP_INNER6) | BIT(UP_FLOW) | BIT(NAT_UP) | BIT(AGF_DOWN))
#define TUNNELS (TUNNELS4 | BIT(UP_OUTER6))
#define PLAIN4                                                                                                         \
	(BIT(DOWN) | BIT(DOWN_FLOW) | BIT(ROUTED) | BIT(ROUTED_UE) | BIT(ROUTED_VRF) | BIT(NAT_DOWN) | BIT(BNG_DOWN))
#define PLAIN6 (BIT(DOWN6) | BIT(ROUTED6))
#define MOBILE_UP (BIT(UP) | BIT(UP_VLAN) | BIT(UP_OUTER6) | BIT(UP_FLOW) | BIT(NAT_UP)) // IPv4 inside
#define MOBILE_DOWN (BIT(DOWN) | BIT(DOWN6) | BIT(DOWN_FLOW) | BIT(NAT_DOWN))
#define ACCESS (BIT(AGF_UP) | BIT(PPPOE_UP) | BIT(BNG_UP))
#define CORE (BIT(AGF_UP) - 1)
#define ALL_UP (MOBILE_UP | BIT(UP_INNER6) | BIT(SGW) | ACCESS)
#define ALL_DOWN (MOBILE_DOWN | BIT(AGF_DOWN) | BIT(BNG_DOWN))

// Where bytes of a frame are counted from.
enum { FRAME, L3, L4, GTPU, USER, USER_L4, PLACES };

struct way {
	const char *name, *in, *out;
	const char *interface, *interface_out; // NULL: of an access port
	const char *instance; // that it comes into; NULL: none
	const char *session; // NULL: of none
	void (*make_session)(struct kit_mobile *k);
	void (*make_frame)(struct frame *f);
	uint16_t at[PLACES];
};
extern struct way drops_ways[WAYS];
void drops_start(void);
void drops_put_session(const struct way *w, void (*alter)(struct kit_mobile *k));
int drops_exhaust_nat(uint32_t subscriber); // 1: so that the next mapping is refused
void drops_put_nat(uint16_t ports, uint32_t mappings); // of the external address; most
// Protocols without ports: most pairs, of a subscriber. One then sends 6in4 to the host `to` of the ways; 0: none does.
void drops_put_pairs(uint32_t most, uint32_t of_subscriber, uint32_t subscriber, uint8_t to);

// A row: makes and changes the frame, and alters the session or the configuration.
struct row {
	const char *reason;
	uint32_t ways; // BIT()
	uint8_t place; // of the bytes `put`, at `at` from there
	int8_t at;
	uint8_t bytes;
	uint8_t sum; // L3, USER: the IPv4 header there gets a right checksum
	uint8_t end; // the frame ends so many bytes behind the place; 0: as it is
	uint8_t answered; // the sender gets an answer
	const char *put;
	void (*make)(struct frame *f, const struct way *w); // changes the frame, or makes another
	void (*alter)(struct kit_mobile *k); // the session
	void (*change)(const struct way *w, int on); // what is configured, or what there is
};
#define PUT(place_, at_, put_) .place = (place_), .at = (at_), .put = (put_), .bytes = sizeof(put_) - 1

extern const struct row drops_input_rows[], drops_session_rows[];
extern const size_t drops_input_count, drops_session_count;

#endif
