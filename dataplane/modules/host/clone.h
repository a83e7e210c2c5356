// SPDX-License-Identifier: Apache-2.0
// Cloned interfaces: a kernel device (TAP) for an interface of a core port. It gets the packets that no node serves;
// its packets leave by the interface.
//
// Everything belongs to the control thread but clone_interfaces, which it writes and workers read, a byte each.
#ifndef HOST_CLONE_H
#define HOST_CLONE_H

#include "core/node.h"

#define CLONE_INTERFACES 1024 // most interfaces

extern uint8_t clone_interfaces[CLONE_INTERFACES];

// Workers: 1 when the interface has a clone.
static inline int clone_exists(uint32_t interface)
{
	return interface < CLONE_INTERFACES && __atomic_load_n(&clone_interfaces[interface], __ATOMIC_RELAXED);
}

enum clone_result { CLONE_NONE, CLONE_TAKEN, CLONE_REFUSED };

// Control thread: gives a copy of a punted packet to the clone of its received interface. packet.l3 is right behind its
// Ethernet header and tags.
enum clone_result clone_up(const struct rte_mbuf *m);

#endif
