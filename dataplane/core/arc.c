// SPDX-License-Identifier: Apache-2.0
// Arcs and their stages: builds the graph's edges from their declarations and from the packets that stages want.
//
//   written by: the control thread (target nodes); the owner worker (its graph's edges)
//   safe because: a worker changes edges between walks, when its graph is empty: no reordering
#include "core/arc.h"
#include "core/log.h"
#include "core/object.h"
#include <rte_graph_worker.h>
#include <stdio.h>
#include <string.h>

#define MAX_LINKS 512

struct arc_link {
	const struct node_arc *arc;
	const struct node_stage *behind; // the stage whose exit it is; NULL: it leads to the arc
	uint16_t from, edge, exit;
	uint16_t to; // as `from` a number in the register of nodes; workers read it
};

static struct {
	struct node_arc *arc;
	struct node_stage *waiting; // not placed yet: the product's own first, then by name
	struct arc_bypass *bypass;
	struct rte_node_register **node; // all
	uint32_t nodes, links;
	struct arc_link link[MAX_LINKS];
} arcs;

uint32_t arcs_generation;

void node_arc_register(struct node_arc *a)
{
	a->next = arcs.arc;
	arcs.arc = a;
}

void arc_bypass_register(struct arc_bypass *b)
{
	b->next = arcs.bypass;
	arcs.bypass = b;
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

// 1 when no waiting stage must come before this one.
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

// Next node behind exit `k` of stage `s` (NULL: of a node that leads to the arc): the next stage that wants packets.
// The last stage is not skipped if it chooses between exits.
static const char *follows(const struct node_arc *a, const struct node_stage *s, unsigned k)
{
	const struct node_stage *next = s != NULL ? s->next : a->first;
	int chosen = s != NULL || exits_of(a) == 1;

	while (next != NULL && next->wanted == STAGE_NONE && (chosen || next->next != NULL))
		next = next->next;
	if (next != NULL)
		return next->node->name;
	return k < exits_of(a) && chosen ? a->exit[k] : NULL;
}

// Connects a node (its number) to the arc, as its stage `s`, or NULL. `word`: the edges' name in next_nodes.
static int connect(uint16_t from, const struct node_arc *a, const struct node_stage *s, const char *word)
{
	struct rte_node_register *n = arcs.node[from];
	uint16_t k = 0;

	for (uint16_t e = 0; e < n->nb_edges; e++) {
		if (n->next_nodes[e] == NULL || strcmp(n->next_nodes[e], word) != 0)
			continue;
		if (arcs.links == MAX_LINKS) {
			LOG(ERR, "more than %d edges lead along arcs\n", MAX_LINKS);
			return -1;
		}
		struct arc_link l = {.arc = a, .behind = s, .from = from, .edge = e, .exit = s != NULL ? k : 0};
		n->next_nodes[e] = follows(a, s, l.exit);
		k++;
		if (n->next_nodes[e] == NULL) {
			LOG(ERR, "node %s leads to arc %s by edge %u, which ends nowhere\n", n->name, a->name, e);
			return -1;
		}
		arcs.link[arcs.links++] = l;
	}
	if (s == NULL || k == exits_of(a) || (k == 0 && s->node != n))
		return 0;
	LOG(ERR, "node %s leads on by %u of the %u exits of arc %s\n", n->name, k, exits_of(a), a->name);
	return -1;
}

static int connect_to_arc(uint16_t from, const struct node_arc *a)
{
	char word[NODE_ARC_WORD];
	const struct node_stage *own = find_in(a->first, a->name, arcs.node[from]->name);

	for (const struct node_stage *s = a->first; s != NULL; s = s->next) {
		snprintf(word, sizeof(word), ">%s", s->node->name);
		if (s != own && connect(from, a, s, word) != 0)
			return -1;
	}
	snprintf(word, sizeof(word), "@%s", a->name);
	return connect(from, a, own, word);
}

static uint16_t number_of(const char *name)
{
	uint16_t i = 0;

	while (i < arcs.nodes && strcmp(arcs.node[i]->name, name) != 0)
		i++;
	return i;
}

// All edges along arcs, as stages want it now.
static void aim(void)
{
	for (uint32_t i = 0; i < arcs.links; i++) {
		struct arc_link *l = &arcs.link[i];
		const char *name = follows(l->arc, l->behind, l->exit);

		if (name == NULL) // never: connect() refuses an edge that ends nowhere
			continue;
		arcs.node[l->from]->next_nodes[l->edge] = name; // which `show graph` reads
		__atomic_store_n(&l->to, number_of(name), __ATOMIC_RELAXED);
	}
}

static int closes(const struct node_arc *a)
{
	for (const struct node_stage *s = a->first; s != NULL; s = s->next)
		if (!s->standard && s->wanted == STAGE_ALL)
			return 1;
	return 0;
}

static void judge(struct arc_bypass *b)
{
	uint8_t closed = 0;

	for (uint32_t i = 0; i < ARC_BYPASS_ARCS && b->arc[i] != NULL; i++)
		closed |= (uint8_t)closes(arc_find(b->arc[i]));
	if (closed == b->closed)
		return;
	__atomic_store_n(&b->closed, closed, __ATOMIC_RELAXED);
	if (b->changed != NULL)
		b->changed();
}

static int check_bypass(const struct arc_bypass *b)
{
	for (uint32_t i = 0; i < ARC_BYPASS_ARCS && b->arc[i] != NULL; i++)
		if (arc_find(b->arc[i]) == NULL) {
			LOG(ERR, "a fast path leaves out arc %s, which does not exist\n", b->arc[i]);
			return -1;
		}
	return 0;
}

int arcs_assemble(struct rte_node_register **node, uint32_t count)
{
	arcs.node = node;
	arcs.nodes = count;
	if (put_in_order() != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		for (const struct node_arc *a = arcs.arc; a != NULL; a = a->next)
			if (connect_to_arc((uint16_t)i, a) != 0)
				return -1;
	for (const struct arc_bypass *b = arcs.bypass; b != NULL; b = b->next)
		if (check_bypass(b) != 0)
			return -1;
	aim();
	for (struct arc_bypass *b = arcs.bypass; b != NULL; b = b->next)
		judge(b);
	return 0;
}

void arcs_settle(void)
{
	int changed = 0;

	for (const struct node_arc *a = arcs.arc; a != NULL; a = a->next)
		for (struct node_stage *s = a->first; s != NULL; s = s->next) {
			enum stage_wants was = s->wanted;

			s->wanted = s->wants != NULL ? s->wants() : STAGE_ALL;
			changed |= s->wanted != was;
		}
	if (!changed)
		return;
	aim();
	__atomic_store_n(&arcs_generation, arcs_generation + 1, __ATOMIC_RELEASE);
	for (struct arc_bypass *b = arcs.bypass; b != NULL; b = b->next)
		judge(b);
}

uint32_t arcs_link(struct rte_node *const *node)
{
	uint32_t generation = __atomic_load_n(&arcs_generation, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < arcs.links; i++) {
		const struct arc_link *l = &arcs.link[i];

		node[l->from]->nodes[l->edge] = node[__atomic_load_n(&l->to, __ATOMIC_RELAXED)];
	}
	return generation;
}

RTE_INIT(arcs_follow)
{
	object_commit_watch(NULL, arcs_settle);
}
