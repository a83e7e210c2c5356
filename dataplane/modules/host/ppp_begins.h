// SPDX-License-Identifier: Apache-2.0
#ifndef HOST_PPP_BEGINS_H
#define HOST_PPP_BEGINS_H

#include "exact/exact.h"
#include "isthmus_api.h"

// A frame of PPPoE that the control plane sends by the port, its header at `pppoe`. Control thread.
void host_ppp_sent(uint16_t port, const struct api_frame *h, const uint8_t *pppoe);
// A hash with a secret: collisions cannot be aimed at from the network. Any thread.
uint32_t host_secret_hash(const struct exact_key *k);

#endif
