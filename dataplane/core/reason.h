// SPDX-License-Identifier: Apache-2.0
// Named reasons of dropped and punted packets.
#ifndef CORE_REASON_H
#define CORE_REASON_H

#include <rte_common.h>
#include <stdint.h>

enum reason_kind { REASON_DROP, REASON_PUNT };
enum reason_control { CONTROL_NONE, CONTROL_PROTOCOL, CONTROL_NEIGHBOUR };

// A named reason. `name` is the label of metrics and JSON ("ip-length") and keeps its meaning. `text` is for the
// operator: "what happened. What to look at" (scripts/reasons.py). id is assigned at start-up.
struct reason {
	const char *name;
	const char *text;
	enum reason_kind kind;
	uint16_t id;
	uint8_t control; // REASON_PUNT: enum reason_control; of core links' neighbours, of other control protocols
	uint8_t limited; // REASON_PUNT: who punts has limits of its own, engine.rates.punt is not asked
};

void reason_register(struct reason *r);
uint16_t reason_count(void);
const struct reason *reason_get(uint16_t id); // NULL when id is out of range

#define REASON_DEFINE(var, reason_kind, reason_name, reason_text, ...)                                                 \
	static struct reason var = {.name = (reason_name), .text = (reason_text), .kind = (reason_kind), __VA_ARGS__}; \
	RTE_INIT(reason_register_##var)                                                                                \
	{                                                                                                              \
		reason_register(&(var));                                                                               \
	}
#define DROP_REASON(var, name, text) REASON_DEFINE(var, REASON_DROP, name, text)
#define PUNT_REASON(var, name, text, ...) REASON_DEFINE(var, REASON_PUNT, name, text, __VA_ARGS__)

#endif
