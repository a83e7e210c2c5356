// SPDX-License-Identifier: Apache-2.0
// Arcs and the stages that stand on them: from what they say of each other, the edges of the graph.
#include "core/arc.h"
#include "core/log.h"
#include "core/node.h"
#include <stdio.h>
#include <string.h>

static struct {
	struct node_arc *arc;
	struct node_stage *waiting; // not placed yet: the product's own first, then by name
} arcs;

void node_arc_register(struct node_arc *a)
{
	a->next = arcs.arc;
	arcs.arc = a;
}

static int comes_first(const struct node_stage *a, const struct node_stage *b)
{
	return a->standard != b->standard ? a->standard : strcmp(a->node->name, b->node->name) < 0;
}

void node_stage_register(struct node_stage *s)
{
	struct node_stage **at = &arcs.waiting;

	while (*at != NULL && comes_first(*at, s))
		at = &(*at)->next;
	s->next = *at;
	*at = s;
}

static struct node_arc *arc_find(const char *name)
{
	struct node_arc *a = arcs.arc;

	while (a != NULL && strcmp(a->name, name) != 0)
		a = a->next;
	return a;
}

int arc_is_standard(const char *name)
{
	const struct node_arc *a = arc_find(name);

	for (const struct node_stage *s = a != NULL ? a->first : NULL; s != NULL; s = s->next)
		if (!s->standard)
			return 0;
	return a != NULL;
}

static int is(const struct node_stage *s, const char *name)
{
	return name != NULL && strcmp(s->node->name, name) == 0;
}

static struct node_stage *find_in(struct node_stage *list, const char *arc, const char *node)
{
	for (; list != NULL; list = list->next)
		if (strcmp(list->arc, arc) == 0 && is(list, node))
			return list;
	return NULL;
}

// Whether nothing that still waits must be passed before this one.
static int may_come(const struct node_stage *s)
{
	for (const struct node_stage *t = arcs.waiting; t != NULL; t = t->next)
		if (strcmp(t->arc, s->arc) == 0 && (is(s, t->before) || is(t, s->after)))
			return 0;
	return 1;
}

static int check(const struct node_stage *s)
{
	struct node_arc *a = arc_find(s->arc);

	if (a == NULL) {
		LOG(ERR, "stage %s stands on arc %s, which does not exist\n", s->node->name, s->arc);
		return -1;
	}
	const char *other[] = {s->before, s->after};
	for (unsigned i = 0; i < RTE_DIM(other); i++)
		if (other[i] != NULL && find_in(arcs.waiting, s->arc, other[i]) == NULL) {
			LOG(ERR, "stage %s stands %s %s, which is no stage of arc %s\n", s->node->name,
				i == 0 ? "before" : "after", other[i], s->arc);
			return -1;
		}
	return 0;
}

static int put_in_order(void)
{
	struct node_stage **at = &arcs.waiting;

	for (struct node_stage *s = arcs.waiting; s != NULL; s = s->next)
		if (check(s) != 0)
			return -1;
	while (*at != NULL) {
		struct node_stage *s = *at, **last = &arc_find(s->arc)->first;

		if (!may_come(s)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		while (*last != NULL)
			last = &(*last)->next;
		*last = s;
		s->next = NULL;
		at = &arcs.waiting; // what waited for this one
	}
	if (arcs.waiting == NULL)
		return 0;
	LOG(ERR, "stage %s of arc %s stands before itself\n", arcs.waiting->node->name, arcs.waiting->arc);
	return -1;
}

static unsigned exits_of(const struct node_arc *a)
{
	unsigned n = 0;

	while (n < NODE_ARC_EXITS && a->exit[n] != NULL)
		n++;
	return n;
}

// What the arc's stage `s` (NULL: who leads to the arc) leads to by its exit `k`.
static const char *follows(const struct node_arc *a, const struct node_stage *s, unsigned k)
{
	const struct node_stage *next = s != NULL ? s->next : a->first;

	if (next != NULL)
		return next->node->name;
	return k < exits_of(a) && (s != NULL || exits_of(a) == 1) ? a->exit[k] : NULL;
}

// The node's edges to the arc, as its stage `s`, or NULL. `word` is what they are called in next_nodes.
static int connect(struct rte_node_register *n, const struct node_arc *a, const struct node_stage *s, const char *word)
{
	unsigned k = 0;

	for (uint16_t e = 0; e < n->nb_edges; e++) {
		if (n->next_nodes[e] == NULL || strcmp(n->next_nodes[e], word) != 0)
			continue;
		n->next_nodes[e] = follows(a, s, s != NULL ? k : 0);
		k++;
		if (n->next_nodes[e] == NULL) {
			LOG(ERR, "node %s leads to arc %s by edge %u, which ends nowhere\n", n->name, a->name, e);
			return -1;
		}
	}
	if (s == NULL || k == exits_of(a) || (k == 0 && s->node != n))
		return 0;
	LOG(ERR, "node %s leads on by %u of the %u exits of arc %s\n", n->name, k, exits_of(a), a->name);
	return -1;
}

static int connect_to_arc(struct rte_node_register *n, const struct node_arc *a)
{
	char word[NODE_ARC_WORD];
	const struct node_stage *own = find_in(a->first, a->name, n->name);

	for (const struct node_stage *s = a->first; s != NULL; s = s->next) {
		snprintf(word, sizeof(word), ">%s", s->node->name);
		if (s != own && connect(n, a, s, word) != 0)
			return -1;
	}
	snprintf(word, sizeof(word), "@%s", a->name);
	return connect(n, a, own, word);
}

int arcs_assemble(struct rte_node_register **node, uint32_t count)
{
	if (put_in_order() != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		for (const struct node_arc *a = arcs.arc; a != NULL; a = a->next)
			if (connect_to_arc(node[i], a) != 0)
				return -1;
	return 0;
}
