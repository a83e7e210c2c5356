// SPDX-License-Identifier: Apache-2.0
// Access lists compiled for the fast path: one rte_acl trie per IP version.
//
//   Written by: the control thread, before the list is published (rules); each worker its own column (hits).
//   Read by:    workers, through one pointer per direction; the control thread (hits, for `show`).
//   Safe because: a published list never changes, and is freed after a grace period
#ifndef FIREWALL_FIREWALL_H
#define FIREWALL_FIREWALL_H

#include "isthmus_api.h"
#include <assert.h>
#include <rte_acl.h>
#include <rte_mbuf.h>
#include <stdint.h>

#define ACL_VECTOR 64 // packets of one acl_classify
#define ACL_MAX_RULES 65536
#define ACL_KEY_SIZE 48 // of the largest key: an IPv6 header and two ports, rounded up

// The lists of wireline subscribers, and those of network instances, for packets that enter one on their way to a
// mobile session.
enum acl_place { ACL_UPLINK, ACL_DOWNLINK, ACL_INSTANCE, ACL_PLACES };

// The verdict on a packet: slot << 1 | permit. Slot 0 is the default action, slot i + 1 is rule i.
#define ACL_SLOT_BITS 17
static_assert(ACL_MAX_RULES < 1u << ACL_SLOT_BITS, "a slot fits beside the generation in acl_permission()");
#define ACL_TOO_SHORT UINT32_MAX // first fragment without its ports, or a fragment that would overwrite them (RFC 1858)
#define ACL_FRAGMENT (UINT32_MAX - 1) // a fragment that the list asks for ports, without IP_FRAGMENT_FOLLOWS

struct acl {
	struct rte_acl_ctx *trie[2]; // IPv4, IPv6; NULL when no rule can match that version
	uint32_t default_verdict;
	uint32_t generation; // of no list before; not 0
	uint32_t rules;
	uint8_t asks; // some rule looks at ports
	uint32_t workers;
	uint32_t stride; // of hits, in counters
	uint64_t *hits; // [worker * stride + slot]
	uint8_t *permits; // of rule i
};

static inline uint64_t *acl_hits(const struct acl *a, uint32_t worker)
{
	return a->hits + (size_t)worker * a->stride;
}

// By which rule of which list a packet passed: the list's generation, cut off, and the slot. No list: 0.
static inline uint32_t acl_permission(const struct acl *a, uint32_t slot)
{
	return a != NULL ? a->generation << ACL_SLOT_BITS | slot : 0;
}

// Compiles `body` (count and lengths already checked by acl_check). NULL after object_error(), with the errno in
// *error. `workers` columns of hit counters. Control thread.
struct acl *acl_build(const struct api_acl *body, uint32_t workers, int *error);
void acl_free(struct acl *a);

// Checks a body from the control plane. Returns 0, or a positive errno after object_error().
int acl_check(const void *body, uint32_t length);

// Verdicts on at most ACL_VECTOR packets, by the IP header at packet_of(m)->l3. Any thread.
void acl_classify(const struct acl *a, struct rte_mbuf **pkts, uint32_t n, uint32_t *verdict);

// The list of wireline's direction, or NULL: everything is permitted. Within a graph walk, or on the control thread.
const struct acl *firewall_list(enum acl_place direction);
// 1 when some network instance has a list. Within a graph walk.
int firewall_instances(void);
// The list of a network instance (its index, or INSTANCE_NONE), or NULL. Within a graph walk.
const struct acl *firewall_instance_list(uint16_t instance);

#endif
