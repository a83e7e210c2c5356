// SPDX-License-Identifier: Apache-2.0
// What stops the assembly of arcs: each case in a process of its own, as what is registered stays.
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
	struct rte_node_register *used[2 + RTE_DIM(stage)] = {&from, &past};
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

	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		int status = 0;
		pid_t child = fork();

		if (child == 0)
			_exit(assemble(&cases[i]) == 0);
		assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
		if (WEXITSTATUS(status) != cases[i].ok)
			fail_msg("%s: %s", cases[i].what, cases[i].ok ? "refused" : "accepted");
	}
}

// The product's own first, whatever the names; who passes on what a stage held leads to what follows it.
static void order(void **state)
{
	struct test t = {.stage = {{.node = &a}, {.node = &b, .standard = 1}}};

	assert_int_equal(assemble(&t), 0);
	assert_string_equal(from.next_nodes[0], "b");
	assert_string_equal(b.next_nodes[1], "a");
	assert_string_equal(a.next_nodes[0], "x");
	assert_string_equal(a.next_nodes[1], "y");
	assert_string_equal(past.next_nodes[1], "y");
	assert_int_equal(arc_is_standard("arc"), 0);
}

int main(void)
{
	const struct CMUnitTest all[] = {cmocka_unit_test(what_is_refused), cmocka_unit_test(order)};

	return cmocka_run_group_tests(all, NULL, NULL);
}
