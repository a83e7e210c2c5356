// SPDX-License-Identifier: Apache-2.0
// Properties of each decoder for any input, shared by fuzz targets and mutation tests; a violation aborts. The buffer
// ends exactly at `size`, so a sanitizer sees every byte read beyond it.
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
