// SPDX-License-Identifier: Apache-2.0
#include "rule/engine.h"
#include "rule/session.h"
#include "rule/tables.h"

const struct flow_engine *flow_engines[FLOW_ENGINES + 1];

void flow_engine_register(const struct flow_engine *e) // before main()
{
	uint32_t i = 0;

	while (i < FLOW_ENGINES && flow_engines[i] != NULL)
		i++;
	if (i == FLOW_ENGINES)
		rte_panic("more than %d flow engines\n", FLOW_ENGINES);
	flow_engines[i] = e;
}

void engines_take(const struct rule *r)
{
	for (const struct flow_engine *const *e = flow_engines; *e != NULL; e++)
		(*e)->take(r);
}

void engines_read(uint32_t session)
{
	const struct rule *r;

	for (const struct flow_engine *const *e = flow_engines; *e != NULL; e++)
		for (uint16_t i = 0; (*e)->read != NULL && (r = session_rule_at(session, i)) != NULL; i++)
			(*e)->read(r);
}
