// SPDX-License-Identifier: Apache-2.0
// What must hold for any input, decoder by decoder. The fuzz targets and the mutation tests call the same functions; a
// broken promise aborts. The buffer ends exactly where `size` says, so that a sanitizer sees every byte read beyond it.
#ifndef WIRE_KIT_H
#define WIRE_KIT_H

#include <stddef.h>
#include <stdint.h>

typedef void (*wire_check_fn)(const uint8_t *data, size_t size);

void check_eth(const uint8_t *data, size_t size);
void check_pppoe(const uint8_t *data, size_t size);
void check_ip(const uint8_t *data, size_t size);
void check_gtpu(const uint8_t *data, size_t size);
void check_neighbour(const uint8_t *data, size_t size);
void check_circuit(const uint8_t *data, size_t size);
void check_icmp(const uint8_t *data, size_t size);
void check_tcp(const uint8_t *data, size_t size);

#endif
