// SPDX-License-Identifier: Apache-2.0
// An access gateway for tests: one access port, a core port towards the UPF, a core port towards the Internet.
//
//   access    homes behind S-tag 100, C-tag = home; gateway 100.64.0.1, 2001:db8:1::1
//   core      10.0.0.1/24, fd00::1/64; the UPF is 10.0.0.2, fd00::2
//   internet  192.0.2.1/24, 2001:db8:6::1/64; a router is 192.0.2.2, 2001:db8:6::2
//
// Home n has 100.64.0.(n+1) and 2001:db8:1:n::/64, MAC 02:00:00:00:00:0n, local TEID 0x200 + n, peer TEID 0x10200 + n.
// Odd homes: QinQ, tunnel over IPv4. Even homes: QinQ + PPPoE (session id n), tunnel over IPv6.
#ifndef TESTKIT_GATEWAY_H
#define TESTKIT_GATEWAY_H

#include "testkit/frame.h"
#include "testkit/testkit.h"

#define GATEWAY_HOMES 6
#define HOME_QINQ 1 // the homes that tests break things for
#define HOME_PPPOE 2
#define HOME_QINQ_OTHER 3 // the homes that must not notice
#define HOME_PPPOE_OTHER 4

extern const uint8_t gateway_upf[6], gateway_router[6];
extern const uint8_t gateway_mac[3][6]; // of the ports, in the order above

// Starts the engine with the ports, addresses and paths (once a program); then the homes, one transaction.
void gateway_start(const struct api_engine *engine);
void gateway_homes(uint32_t first, uint32_t last);
struct kit_session gateway_home(uint32_t home); // to be changed and put
const char *gateway_home_name(uint32_t home);
const uint8_t *gateway_home_mac(uint32_t home);
const char *gateway_ue(uint32_t home, int family); // 4 or 6; a host address of the home

// Headers in front of the IP packet at f->at.
void gateway_from_home(struct frame *f, uint32_t home); // access encapsulation towards us
void gateway_to_home(struct frame *f, uint32_t home); // what must leave
// UDP and IP of the tunnel in front of the GTP-U message at f->at, towards us or from us, then Ethernet.
void gateway_outer(struct frame *f, int family, int from_us);
void gateway_from_upf(struct frame *f, uint32_t home); // a G-PDU of the home with QFI 9
void gateway_to_upf(struct frame *f, uint32_t home); // what must leave

// 1 when frame i sent by the port equals f, except for identification and checksums of an outer header; else 0, and
// prints why.
int gateway_same(const char *port, uint32_t i, const struct frame *f);
// Sends one packet from and to each of the two undisturbed homes, both families, and checks the output. 1 or 0. Clears
// the sent frames.
int gateway_undisturbed(void);

#endif
