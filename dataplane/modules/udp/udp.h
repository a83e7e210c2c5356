// SPDX-License-Identifier: Apache-2.0
// UDP/IP tunnels (outer header creation and removal, TS 29.244 §8.2.56, §8.2.64) as the instance module sees them.
#ifndef UDP_UDP_H
#define UDP_UDP_H

#include <stdint.h>

// A network instance's udp_port came or went: packets to one of our addresses and this port go to node udp-input, which
// asks instance_udp_port(interface) whether the port is that interface's. Control thread; counted.
void udp_port_take(uint16_t port);
void udp_port_give(uint16_t port);

#endif
