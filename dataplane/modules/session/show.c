// SPDX-License-Identifier: Apache-2.0
// Rows of `show session`.
#include "core/control.h"
#include "core/object.h"
#include "session/tables.h"
#include <stdio.h>
#include <string.h>

static void add_counters(struct api_session_row *row, const struct session *s)
{
	for (uint16_t i = 0; i < s->rules; i++) {
		const struct rule *r = &session_pools.rule[s->rule[i]];
		const struct rule_state *state = rule_state_of(r);
		const struct rule_match *before = &session_pools.match[s->rule[i]];

		if (r->outer == API_OUTER_ENDPOINT) {
			row->downlink_packets += before->packets + state->packets;
			row->downlink_bytes += before->bytes + state->bytes;
			row->downlink_dropped += before->policed + state->policed;
		} else {
			row->uplink_packets += before->packets + state->packets;
			row->uplink_bytes += before->bytes + state->bytes;
			row->uplink_dropped += before->policed + state->policed;
			row->teid_peer = r->teid;
		}
	}
}

static void fill(struct api_session_row *row, const struct session *s, const struct api_session *body)
{
	const struct api_pdr *pdr = (const struct api_pdr *)(body + 1);

	snprintf(row->name, sizeof(row->name), "%s", s->name);
	row->seid = s->seid;
	row->worker = s->worker;
	row->pdrs = s->rules;
	memcpy(row->port, body->port, sizeof(row->port));
	row->s_tag = body->s_tag;
	row->c_tag = body->c_tag;
	row->pppoe_session = body->pppoe_session;
	row->encap = body->encap;
	memcpy(row->mac, body->mac, 6);
	row->ue_ip4 = body->ue_ip4;
	row->ue_ip6 = body->ue_ip6;
	for (uint16_t i = body->pdrs; i-- > 0;)
		if (pdr[i].source == API_FROM_CORE)
			row->teid_local = pdr[i].teid;
	add_counters(row, s);
}

static void session_rows(struct stats_sink *sink, const char *key)
{
	for (uint32_t i = 0; i < session_tables.capacity; i++) {
		const struct session *s = session_tables.session[i];
		struct api_session_row row = {0};
		uint32_t length;

		if (s == NULL || (key[0] != 0 && strcmp(key, s->name) != 0))
			continue;
		const struct api_session *body = object_find(API_SESSION, s->name, &length);
		if (body == NULL)
			continue;
		fill(&row, s, body);
		stats_row(sink, &row, sizeof(row));
	}
}

RTE_INIT(session_table)
{
	stats_table_register(API_TABLE_SESSION, sizeof(struct api_session_row), session_rows);
}
