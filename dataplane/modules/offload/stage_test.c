// SPDX-License-Identifier: Apache-2.0
// Devices and a stage that says which packets it wants: none bypasses it from its commit on.
#include "core/node.h"
#include "offload/fixture_test.h"
#include "rule/tables.h"
#include "rule/view.h"
#include "rule/wish.h"

static struct {
	enum stage_wants wants;
	const char *session; // whose packets, with STAGE_SOME
} stage;

static rte_edge_t go_on(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	return session_exit(m);
}

static uint16_t pass_on(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, go_on);
}

static enum stage_wants wants(void)
{
	return stage.wants;
}

static struct rte_node_register uplink_node = {.name = "test-uplink",
	.process = pass_on,
	.nb_edges = SESSION_EXIT_COUNT,
	.next_nodes = {SESSION_EXITS("uplink")}};
NODE_STAGE(uplink_node, "uplink", .wants = wants)

static uint8_t ways(struct session *s)
{
	return stage.wants == STAGE_SOME && strcmp(s->name, stage.session) == 0 ? WISH_UPLINK : 0;
}
SESSION_WISH(RULE_STAGE, ways)

static void want(enum stage_wants wants_now, const char *session)
{
	stage.wants = wants_now;
	stage.session = session;
	kit_begin();
	wishes_renew();
	commit();
}

static int setup(void **state)
{
	stage.wants = STAGE_NONE;
	start_fixture(NULL);
	set_offload(API_OFFLOAD_AUTO);
	return 0;
}

static int is_taken(const struct frame *f)
{
	return recorder_receive(RAN, f->at, f->length) == 1;
}

static void wanted_packets_come(void **state)
{
	static struct frame u, v;

	put("u", upf_session(0x21));
	put("v", upf_session(0x22));
	uplink_of(&u, "10.45.0.33", FAR4, 0x121, 9);
	uplink_of(&v, "10.45.0.34", FAR4, 0x122, 9);
	teach("ran", &u);
	teach("ran", &v);
	assert_true(is_taken(&u) && is_taken(&v));
	want(STAGE_ALL, NULL);
	assert_int_equal(recorder.flows, 0);
	teach("ran", &u);
	teach("ran", &v);
	assert_int_equal(recorder.flows, 0);
	want(STAGE_NONE, NULL);
	settle_entries();
	assert_true(is_taken(&u) && is_taken(&v));
	want(STAGE_SOME, "u");
	assert_true(!is_taken(&u) && is_taken(&v));
	teach("ran", &u);
	assert_true(!is_taken(&u) && is_taken(&v));
	want(STAGE_NONE, NULL);
	teach("ran", &u);
	assert_true(is_taken(&u) && is_taken(&v));
	gone("u");
	gone("v");
	nothing_left();
}

int main(void)
{
	const struct CMUnitTest all[] = {cmocka_unit_test(wanted_packets_come)};

	return cmocka_run_group_tests(all, setup, NULL);
}
