// SPDX-License-Identifier: Apache-2.0
// For tests: a stage behind the uplink's policer that says which packets it wants, and counts those that pass it.
#ifndef SESSION_STAGE_FIXTURE_H
#define SESSION_STAGE_FIXTURE_H

#include "core/node.h"
#include "rule/tables.h"
#include "rule/view.h"
#include "rule/wish.h"
#include "session/mobile_fixture.h"

static struct {
	enum stage_wants wants;
	const char *session; // whose packets, with STAGE_SOME
	uint32_t passed;
} stage;

static rte_edge_t stage_go_on(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	stage.passed++;
	return session_exit(m);
}

static uint16_t stage_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, stage_go_on);
}

static enum stage_wants stage_wants_now(void)
{
	return stage.wants;
}

static struct rte_node_register uplink_node = {.name = "test-uplink",
	.process = stage_process,
	.nb_edges = SESSION_EXIT_COUNT,
	.next_nodes = {SESSION_EXITS("uplink")}};
NODE_STAGE(uplink_node, "uplink", .after = "policer-uplink", .wants = stage_wants_now)

static uint8_t stage_ways(struct session *s)
{
	return stage.wants == STAGE_SOME && strcmp(s->name, stage.session) == 0 ? WISH_UPLINK | WISH_DOWNLINK : 0;
}
SESSION_WISH(RULE_STAGE, stage_ways)

// As the commit of a module whose object says what its stage wants.
static inline void want(enum stage_wants wants, const char *session)
{
	stage.wants = wants;
	stage.session = session;
	kit_begin();
	wishes_renew();
	commit();
}

#endif
