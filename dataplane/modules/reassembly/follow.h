// SPDX-License-Identifier: Apache-2.0
// Later fragments follow their first one: nodes that decide by ports get them here (RFC 8900 §3.2 to §3.4).
//
// A packet stays in fragments; the beginning of the first one's transport header is kept for later ones. Fragments that
// overtook the first wait for it. Nodes that decide by addresses alone do not ask, and no state is kept.
#ifndef REASSEMBLY_FOLLOW_H
#define REASSEMBLY_FOLLOW_H

#include "core/packet.h"
#include "core/worker.h"
#include <stddef.h>
#include <string.h>

#define FOLLOW_HEAD 8

extern int follow_offset; // of the dynamic field of struct rte_mbuf

// Of a later fragment with IP_FRAGMENT_FOLLOWS: the fields of the first one's transport header, at their offsets; all
// else is 0. Fields: ports, an SPI, an ICMP type and identifier, or GRE's version, protocol and call id. A node that
// translates the header translates this too.
static inline uint8_t *follow_head(const struct rte_mbuf *m)
{
	return (uint8_t *)(uintptr_t)m + follow_offset;
}

// Inside of the module: while the fragment waits.
static inline struct rte_mbuf *follow_next(const struct rte_mbuf *m)
{
	struct rte_mbuf *next;

	static_assert(sizeof(next) <= FOLLOW_HEAD, "a pointer fits");
	memcpy(&next, follow_head(m), sizeof(next));
	return next;
}

// Within which a packet's addresses and identification are its own, so that no fragment follows another's packet.
enum follow_kind { FOLLOW_VRF, FOLLOW_INSTANCE, FOLLOW_ENDPOINT, FOLLOW_TUNNEL, FOLLOW_SESSION };
struct follow_scope {
	uint8_t kind;
	uint8_t of[15]; // FOLLOW_ENDPOINT: the line (port and tags), then the rest of its key
};
#define FOLLOW_LINE offsetof(struct follow_scope, of[6])

static inline int follow_is_subscriber(const struct follow_scope *s)
{
	return s->kind >= FOLLOW_ENDPOINT;
}

static inline struct follow_scope follow_session(uint32_t session)
{
	struct follow_scope s = {.kind = FOLLOW_SESSION};

	memcpy(s.of, &session, sizeof(session));
	return s;
}

static inline struct follow_scope follow_instance(uint16_t instance)
{
	struct follow_scope s = {.kind = FOLLOW_INSTANCE};

	memcpy(s.of, &instance, sizeof(instance));
	return s;
}

enum follow {
	FOLLOW_ON, // it has IP_FRAGMENT_FOLLOWS, or is a first fragment with less than FOLLOW_HEAD of transport header
	FOLLOW_GONE, // it waits, or went to another worker, and comes back by the edge `resume` of handover-rx
	FOLLOW_DROP, // packet.reason says why
};

// Of a fragment without IP_FRAGMENT_FOLLOWS. Worker, within a walk; FOLLOW_SESSION: the session's. A hypothetical
// packet stays, and is kept nowhere. packet.resume is `resume` from then on.
enum follow fragment_follow(struct worker *w, struct rte_mbuf *m, const struct follow_scope *scope, uint16_t resume);

#endif
