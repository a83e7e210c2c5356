// SPDX-License-Identifier: Apache-2.0
// How a device spreads the frames of many subscribers over its queues, by the best method that it offers. Packets on
// the wrong worker are handed over in any case.
#ifndef CORE_STEERING_H
#define CORE_STEERING_H

#include <stdint.h>

#define STEERING_QUEUES 16 // of a device, at most

// Frame fields to hash, of those that the device offers (RTE_ETH_RSS_*); 0: none.
uint64_t steering_hash(uint64_t offered, int access);
// What such a hash is: enum api_steering.
uint8_t steering_of_hash(uint64_t hash, int access);
// Gives a started device rules that hash the fields by which subscribers differ. Returns 1: all rules in place; 0:
// none.
int steering_rules(uint16_t device, uint16_t queues, int access, uint32_t priority);

#endif
