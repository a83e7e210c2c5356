// SPDX-License-Identifier: Apache-2.0
// Faults that stop the assembly of arcs: each in its own process, because registrations stay. Targets of edges when
// stages want no packets.
#include "core/arc.h"
#include "core/node.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct rte_node_register from = {.name = "from", .nb_edges = 1, .next_nodes = {"@arc"}};
static struct rte_node_register a = {.name = "a", .nb_edges = 2, .next_nodes = {"@arc", "@arc"}};
static struct rte_node_register b = {.name = "b", .nb_edges = 2, .next_nodes = {"@arc", "@arc"}};
static struct rte_node_register once = {.name = "once", .nb_edges = 1, .next_nodes = {"@arc"}};
static struct rte_node_register past = {.name = "past", .nb_edges = 2, .next_nodes = {">a", ">a"}};

struct test {
	const char *what;
	struct node_stage stage[2];
	int ok;
};

static int assemble(const struct test *t)
{
	static struct node_arc arc = {.name = "arc", .exit = {"x", "y"}};
	static struct node_stage stage[2];
	static struct rte_node_register *used[2 + RTE_DIM(stage)] = {&from, &past};
	uint32_t n = 2;

	memcpy(stage, t->stage, sizeof(stage));
	node_arc_register(&arc);
	for (int i = 0; i < 2; i++)
		if (stage[i].node != NULL) {
			stage[i].arc = stage[i].arc != NULL ? stage[i].arc : "arc";
			node_stage_register(&stage[i]);
			used[n++] = stage[i].node;
		}
	return arcs_assemble(used, n);
}

static int in_child(int (*fn)(const struct test *t), const struct test *t)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(fn(t));
	assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int is_assembled(const struct test *t)
{
	return assemble(t) == 0;
}

static void what_is_refused(void **state)
{
	static const struct test cases[] = {
		{"no stage chooses an exit", {{0}}, 0},
		{"one", {{.node = &a}}, 1},
		{"two", {{.node = &a, .after = "b"}, {.node = &b}}, 1},
		{"another's name that is not there", {{.node = &a, .after = "c"}}, 0},
		{"another's name that is not there, before", {{.node = &a, .before = "c"}}, 0},
		{"an arc that is not there", {{.node = &a, .arc = "road"}}, 0},
		{"each behind the other", {{.node = &a, .after = "b"}, {.node = &b, .after = "a"}}, 0},
		{"before itself", {{.node = &a, .before = "a"}}, 0},
		{"an exit is left out", {{.node = &once}}, 0},
	};

	for (unsigned i = 0; i < RTE_DIM(cases); i++)
		if (in_child(is_assembled, &cases[i]) != cases[i].ok)
			fail_msg("%s: %s", cases[i].what, cases[i].ok ? "refused" : "accepted");
}

static int leaves_out_a_road(const struct test *t)
{
	static struct arc_bypass bypass = {.arc = {"arc", "road"}};

	arc_bypass_register(&bypass);
	return assemble(t) == 0;
}

static enum stage_wants wanted;

static enum stage_wants wants(void)
{
	return wanted;
}

static int leads_to_the_only_stage(const struct test *t)
{
	wanted = STAGE_NONE;
	if (assemble(t) != 0)
		return 0;
	arcs_settle();
	return strcmp(from.next_nodes[0], "a") == 0;
}

static void alone(void **state)
{
	static const struct test t = {.stage = {{.node = &a, .wants = wants}}};

	assert_int_equal(in_child(is_assembled, &t), 1);
	assert_int_equal(in_child(leaves_out_a_road, &t), 0);
	// It wants no packets, and chooses their exit.
	assert_int_equal(in_child(leads_to_the_only_stage, &t), 1);
}

static struct arc_bypass bypass = {.arc = {"arc"}};

// The product's own first, whatever the names; a node that releases held packets leads to the stage's successor.
static void order(void **state)
{
	struct test t = {.stage = {{.node = &a, .wants = wants}, {.node = &b, .standard = 1}}};

	arc_bypass_register(&bypass);
	assert_int_equal(assemble(&t), 0);
	assert_string_equal(from.next_nodes[0], "b");
	assert_string_equal(b.next_nodes[1], "a");
	assert_string_equal(a.next_nodes[0], "x");
	assert_string_equal(a.next_nodes[1], "y");
	assert_string_equal(past.next_nodes[1], "y");
	assert_int_equal(bypass.closed, 1);
}

// Behind order(): the stage a stands behind b.
static void edges_follow_what_is_wanted(void **state)
{
	static const struct {
		enum stage_wants wants;
		const char *behind_b[2];
		int closed;
	} cases[] = {
		{STAGE_NONE, {"x", "y"}, 0},
		{STAGE_SOME, {"a", "a"}, 0},
		{STAGE_ALL, {"a", "a"}, 1},
		{STAGE_NONE, {"x", "y"}, 0},
	};

	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		uint32_t before = arcs_generation;

		wanted = cases[i].wants;
		arcs_settle();
		assert_int_equal(arcs_generation, before + 1);
		arcs_settle(); // nothing has changed
		assert_int_equal(arcs_generation, before + 1);
		assert_string_equal(from.next_nodes[0], "b");
		for (int k = 0; k < 2; k++)
			assert_string_equal(b.next_nodes[k], cases[i].behind_b[k]);
		assert_string_equal(past.next_nodes[1], "y");
		assert_int_equal(bypass.closed, cases[i].closed);
	}
}

int main(void)
{
	const struct CMUnitTest all[] = {cmocka_unit_test(what_is_refused), cmocka_unit_test(alone),
		cmocka_unit_test(order), cmocka_unit_test(edges_follow_what_is_wanted)};

	return cmocka_run_group_tests(all, NULL, NULL);
}
