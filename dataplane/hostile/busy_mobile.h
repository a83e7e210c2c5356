// SPDX-License-Identifier: Apache-2.0
// Mobile sessions of every kind on the busy gateway, packets for them, and changes.
//
//   `n3`, core port       10.0.0.11, fd00::11 (instance access), 10.0.0.12 (instance peers); peer 10.0.0.2, fd00::2.
//   `n6`, internet port   instance core: UEs by destination, 10.45.0.0/16, 2001:db8:45::/48; UDP tunnels on 5555.
//   `radio`, core port VLAN 7   10.7.0.1/24, instance radio: UEs by source
//
// Session n (1 to BUSY_MOBILE): UE 10.45.0.n and 2001:db8:45:n::/64, local TEIDs 0x1000 + n (access) and 0x2000 + n
// (peers).
#ifndef HOSTILE_BUSY_MOBILE_H
#define HOSTILE_BUSY_MOBILE_H

#include "testkit/frame.h"

#define BUSY_MOBILE 12

void busy_mobile_objects(void); // into the open transaction
// A whole packet for session n from bytes, with matching addresses, lengths and checksums. Returns its port.
const char *busy_mobile_frame(struct frame *f, uint8_t kind, const uint8_t *bytes, uint32_t length);
// One of the sessions changes, is deleted or returns, by the two numbers.
void busy_mobile_change(uint8_t session, uint8_t how);
// All are there again, as at the start.
void busy_mobile_restore(void);

#endif
