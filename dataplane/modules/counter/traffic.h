// SPDX-License-Identifier: Apache-2.0
// Traffic forwarded by rules, by network instance, DNN and QFI. Control thread.
#ifndef COUNTER_TRAFFIC_H
#define COUNTER_TRAFFIC_H

#include "isthmus_api.h"
#include "rule/tables.h"

int traffic_start(uint32_t rows); // 0, or ENOMEM after object_error()
// Number of a row (rule_match.traffic). Rows stay until the end; beyond `rows`, traffic counts in the first one,
// "other". The names have API_NAME bytes; qfi 0xff: none.
uint32_t traffic_row(const char *instance, const char *dnn, uint8_t qfi);
void traffic_add(uint32_t rule, const struct rule_counts *more);

#endif
