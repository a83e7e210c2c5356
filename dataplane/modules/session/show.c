// SPDX-License-Identifier: Apache-2.0
// Rows of `show session` and `show rule`.
#include "core/control.h"
#include "core/object.h"
#include "meter/policer.h"
#include "path/path.h"
#include "route/address.h"
#include "rule/engine.h"
#include "rule/watch.h"
#include "scheduler/scheduler.h"
#include "session/compile.h"
#include "usage/usage.h"
#include <stdio.h>
#include <string.h>

static void add_counters(struct api_session_row *row, const struct session *s)
{
	for (uint16_t i = 0; i < s->rules; i++) {
		const struct rule *r = &session_pools.rule[s->rule[i]];
		struct rule_counts counts = rule_forwarded(r);
		const struct rule_match *before = &session_pools.match[s->rule[i]];

		if (!(r->flags & RULE_UPLINK)) {
			row->downlink_packets += before->packets + counts.packets;
			row->downlink_bytes += before->bytes + counts.bytes;
			row->downlink_dropped += before->dropped + rule_account_of(r)->dropped;
		} else {
			row->uplink_packets += before->packets + counts.packets;
			row->uplink_bytes += before->bytes + counts.bytes;
			row->uplink_dropped += before->dropped + rule_account_of(r)->dropped;
		}
	}
}

static void add_teids(struct api_session_row *row, const struct parts *p)
{
	for (uint16_t i = 0; i < p->s->pdrs && row->teid_local == 0; i++)
		if (p->pdr[i].match & API_PDR_FTEID)
			row->teid_local = p->pdr[i].teid;
	for (uint16_t i = 0; i < p->s->fars && row->teid_peer == 0; i++)
		if (p->far[i].outer == API_OUTER_GTPU)
			row->teid_peer = p->far[i].teid;
}

static void fill(struct api_session_row *row, const struct session *s, const struct api_session *body)
{
	struct parts p;

	session_parts(&p, body, s->name);
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
	row->buffered = s->notifies ? session_waiting(s->index) : 0;
	if (scheduler_has_place(body->port, body->subport, body->pipe)) {
		row->subport = body->subport;
		row->pipe = body->pipe;
		memcpy(row->pipe_profile, body->pipe_profile, sizeof(row->pipe_profile));
	}
	add_teids(row, &p);
	add_counters(row, s);
}

// The rate above which the meter drops; 0: none.
static uint64_t limit_of(const struct api_policer *p)
{
	if (p->action[1] == API_COLOUR_DROP)
		return p->cir;
	return p->action[2] != API_COLOUR_DROP ? 0 : p->type == API_TRTCM ? p->pir : p->cir;
}

static uint64_t mbr_of(const struct parts *p, const struct api_pdr *pdr)
{
	uint64_t least = 0;

	for (uint8_t i = 0; i < pdr->qers; i++) {
		const struct api_qer *q = parts_qer(p, pdr->qer[i]);
		const char *name = pdr->source == API_FROM_ACCESS ? q->uplink_policer : q->downlink_policer;
		const struct api_policer *body = name[0] == 0 ? NULL : policer_body((uint32_t)policer_index(name));
		uint64_t limit = body == NULL ? 0 : limit_of(body);

		least = least == 0 || (limit != 0 && limit < least) ? limit : least;
	}
	return least;
}

static void fill_rule(struct api_rule_row *row, const struct session *s, uint16_t i, const struct parts *p)
{
	const struct rule *r = &session_pools.rule[s->rule[i]];
	const struct rule_match *m = &session_pools.match[s->rule[i]];
	const struct api_far *far = parts_far(p, m->far);
	const struct path *path =
		r->outer == API_OUTER_GTPU || r->outer == API_OUTER_UDP ? path_get(r->action.path) : NULL;

	snprintf(row->session, sizeof(row->session), "%s", s->name);
	row->pdr = m->pdr;
	row->far = m->far;
	row->precedence = m->precedence;
	row->qfi = r->action.qfi == 0xff ? API_NO_QFI : r->action.qfi;
	row->qers = p->pdr[i].qers;
	row->urrs = p->pdr[i].urrs;
	memcpy(row->qer, p->pdr[i].qer, row->qers * sizeof(row->qer[0]));
	memcpy(row->urr, p->pdr[i].urr, row->urrs * sizeof(row->urr[0]));
	row->source = p->pdr[i].source;
	if (far != NULL) {
		row->destination = far->destination;
		row->action = far->action;
	}
	if (p->pdr[i].match & API_PDR_FTEID) {
		row->teid_local = p->pdr[i].teid;
		row->local = p->pdr[i].local;
	}
	row->teid_peer = r->outer == API_OUTER_GTPU ? r->action.teid : 0;
	if (path != NULL)
		row->peer = path->want.peer;
	row->packets = m->packets + rule_forwarded(r).packets;
	row->bytes = m->bytes + rule_forwarded(r).bytes;
	row->dropped = m->dropped + rule_account_of(r)->dropped;
	row->buffered = r->flags & (RULE_BUFFER | RULE_DRAINING) ? session_waiting(s->index) : 0;
	row->mbr = mbr_of(p, &p->pdr[i]);
	row->flags = (r->flags & RULE_GATE_CLOSED ? API_ROW_GATE_CLOSED : 0) |
		     (r->flags & RULE_REDIRECT ? API_ROW_REDIRECTS : 0) | (usage_rule_out(r) ? API_ROW_QUOTA_USED : 0);
}

static void rows_of(struct stats_sink *sink, const struct session *s, int rules)
{
	uint32_t length;
	const struct api_session *body = object_find(API_SESSION, s->name, &length);
	struct api_session_row row = {0};
	struct parts p;

	if (body == NULL)
		return;
	engines_read(s->index);
	session_parts(&p, body, s->name);
	for (uint16_t i = 0; rules && i < s->rules; i++) {
		struct api_rule_row rule = {0};

		fill_rule(&rule, s, i, &p);
		stats_row(sink, &rule, sizeof(rule));
	}
	if (rules)
		return;
	fill(&row, s, body);
	stats_row(sink, &row, sizeof(row));
}

// `key`: empty, a session's name, or the address of a UE.
static int is_asked(const struct session *s, const char *key)
{
	if (key[0] == 0 || strcmp(key, s->name) == 0)
		return 1;
	struct api_address ue = address_of_text(key);
	return (ue.family == 4 && s->has_ue4 && memcmp(ue.bytes, s->ue4, 4) == 0) ||
	       (ue.family == 6 && s->ue6_prefix <= 128 && ip_prefix_equal(s->ue6, ue.bytes, s->ue6_prefix));
}

static uint64_t rows_at(struct stats_sink *sink, const char *key, uint64_t place, int rules)
{
	const struct session *s = place < session_tables.capacity ? session_tables.session[place] : NULL;

	if (s != NULL && is_asked(s, key))
		rows_of(sink, s, rules);
	return stats_next(place, session_tables.capacity);
}

static uint64_t session_rows(struct stats_sink *sink, const char *key, uint64_t place)
{
	return rows_at(sink, key, place, 0);
}

static uint64_t rule_rows(struct stats_sink *sink, const char *key, uint64_t place)
{
	return rows_at(sink, key, place, 1);
}

RTE_INIT(session_table)
{
	stats_table_register(API_TABLE_SESSION, sizeof(struct api_session_row), session_rows);
	stats_table_register(API_TABLE_RULE, sizeof(struct api_rule_row), rule_rows);
}
