// SPDX-License-Identifier: Apache-2.0
// Routes: the ROUTE objects and the networks of interfaces, made into forwarding tables.
//
// Every transaction that touches interfaces or routes makes a plan: the new next hop of each prefix concerned. Only the
// plan can be refused. A transaction of routes plans those; one of interfaces plans all, because gateways may move.
// Carrying it out changes the tables in place, prefix by prefix.
#include "core/control.h"
#include "core/object.h"
#include "route/tables.h"
#include <errno.h>
#include <inttypes.h>
#include <rte_jhash.h>
#include <stdlib.h>
#include <string.h>

// What becomes of a prefix.
struct change {
	uint32_t entry; // of the RIB
	uint16_t hop; // to be, which the plan holds; NEXT_HOP_NONE: the prefix goes
	uint16_t old; // after it was made true: a next hop that the tables no longer need
	int16_t objects; // that will have the prefix: one at most
	uint8_t connected; // it will be an interface's own network
};

// Where the last gateways were found: many routes have few of them.
struct gateway {
	struct api_address via;
	char interface[API_NAME];
	uint16_t hop; // NEXT_HOP_NONE: not used yet
	uint8_t vrf;
};
#define GATEWAYS 256

struct plan {
	struct change *list;
	uint32_t count, room;
	int full; // of all objects: what is staged behind it is in it already
	struct gateway gateway[GATEWAYS];
};

static struct {
	uint32_t routes; // ROUTE objects
	struct plan *plan;
} table;

uint32_t ip_route_lookup(uint8_t vrf, uint8_t family, const uint8_t *destination)
{
	uint32_t index = fib_lookup(table_of(vrf, family), destination);
	const struct next_hop *h = next_hop_get(index);

	if (h->kind != NEXT_HOP_GLEAN)
		return index;
	uint32_t neighbour = next_hop_find(h->interface, family, destination);
	return neighbour != NEXT_HOP_NONE ? neighbour : index;
}

uint32_t ip_route_of(uint8_t vrf, uint8_t family, const uint8_t *destination, uint32_t interface)
{
	// A link-local destination is on the packet's link: an answer to a neighbour.
	if (likely(!address_is_link_local(family, destination) || interface == UINT32_MAX))
		return ip_route_lookup(vrf, family, destination);
	uint32_t neighbour = next_hop_find(interface, family, destination);
	return neighbour != NEXT_HOP_NONE ? neighbour : next_hop_find(interface, family, NULL);
}

static struct plan *plan_open(void)
{
	if (table.plan == NULL)
		table.plan = calloc(1, sizeof(*table.plan));
	if (table.plan == NULL)
		object_error(ENOMEM, "no memory for routes");
	return table.plan;
}

void routes_forget(void)
{
	struct plan *p = table.plan;

	if (p == NULL)
		return;
	for (uint32_t i = 0; i < p->count; i++) {
		struct change *c = &p->list[i];

		next_hop_release(c->hop);
		rib[c->entry].plan = 0;
		if (!(rib[c->entry].flags & RIB_PRESENT))
			rib_free(c->entry);
	}
	free(p->list);
	free(p);
	table.plan = NULL;
}

// The change of an entry; a new change keeps its owner and has no next hop. NULL after object_error().
static struct change *change_of_entry(struct plan *p, uint32_t entry)
{
	struct rib_entry *r = &rib[entry];

	if (r->plan != 0)
		return &p->list[r->plan - 1];
	if (p->count == p->room) {
		uint32_t room = p->room ? 2 * p->room : 64;
		struct change *list = realloc(p->list, room * sizeof(*list));

		if (list == NULL) {
			object_error(ENOMEM, "no memory for routes");
			return NULL;
		}
		p->list = list;
		p->room = room;
	}
	struct change *c = &p->list[p->count++];
	*c = (struct change){
		.entry = entry, .objects = (r->flags & RIB_ROUTE) != 0, .connected = (r->flags & RIB_CONNECTED) != 0};
	r->plan = p->count;
	return c;
}

static struct change *change_of(struct plan *p, uint8_t vrf, const struct api_address *prefix)
{
	uint32_t entry = rib_ensure(table_of(vrf, prefix->family), prefix);

	if (entry == 0) {
		object_error(ENOSPC, "no room for so many routes in one transaction");
		return NULL;
	}
	struct change *c = change_of_entry(p, entry);
	if (c == NULL && !(rib[entry].flags & RIB_PRESENT))
		rib_free(entry);
	return c;
}

// Next hop `n` of a route (0: the first) as a route of its own.
static struct api_route route_by(const struct api_route *r, uint32_t n)
{
	const struct api_route_hop *further = (const struct api_route_hop *)(r + 1);
	struct api_route one = *r;

	if (n > 0) {
		one.via = further[n - 1].via;
		memcpy(one.interface, further[n - 1].interface, API_NAME);
	}
	one.further = 0;
	return one;
}

static int route_form(const char *key, const struct api_route *want);

static int route_forms(const char *key, const struct api_route *want)
{
	int error = 0;

	if (want->further > API_ROUTE_FURTHER)
		return object_error(EINVAL, "route %s has %u next hops, at most %d are possible", key,
			1 + want->further, 1 + API_ROUTE_FURTHER);
	if (want->discard != API_DISCARD_NONE && want->further != 0)
		return object_error(EINVAL, "route %s leads nowhere, but by several next hops", key);
	for (uint32_t n = 0; n <= want->further && error == 0; n++) {
		struct api_route one = route_by(want, n);

		error = want->further != 0 && one.via.family == 0
				? object_error(EINVAL, "route %s: one of several next hops has no address", key)
				: route_form(key, &one);
	}
	return error;
}

static int route_form(const char *key, const struct api_route *want)
{
	char text[64];

	if (!address_valid(&want->prefix))
		return object_error(EINVAL, "route %s: the prefix is neither IPv4 nor IPv6", key);
	if (!prefix_canonical(&want->prefix))
		return object_error(EINVAL, "route %s: %s has bits set behind its prefix length", key,
			address_text(&want->prefix, text));
	if (memchr(want->interface, 0, API_NAME) == NULL)
		return object_error(EINVAL, "route %s: the interface's name has no end", key);
	if (memchr(want->vrf, 0, API_NAME) == NULL)
		return object_error(EINVAL, "route %s: the VRF's name has no end", key);
	if (address_is_link_local(want->prefix.family, want->prefix.bytes) && want->prefix.prefix > 9)
		return object_error(EINVAL, "route %s: link-local destinations are never forwarded", key);
	if (want->discard > API_DISCARD_UNASSIGNED)
		return object_error(EINVAL, "route %s: unknown kind of discard %u", key, want->discard);
	if (want->discard != API_DISCARD_NONE)
		return want->via.family == 0 && want->interface[0] == 0
			       ? 0
			       : object_error(EINVAL, "route %s leads nowhere, but by a gateway or interface", key);
	if (want->via.family == 0)
		return want->interface[0]
			       ? 0
			       : object_error(EINVAL, "route %s has neither a gateway nor an interface", key);
	// RFC 8950: an IPv4 prefix may have an IPv6 next hop.
	if (!address_valid(&want->via) || (want->via.family == 4 && want->prefix.family != 4))
		return object_error(EINVAL, "route %s: the gateway is not of the prefix's family", key);
	struct api_address host = want->via;
	host.prefix = (uint8_t)(8 * address_length(host.family));
	if (!address_assignable(&host))
		return object_error(EINVAL, "route %s: %s cannot be a gateway", key, address_text(&host, text));
	return 0;
}

static int is_address_of(const struct interface *i, const struct api_address *a)
{
	for (uint32_t n = 0; n < i->addresses; n++)
		if (i->address[n].family == a->family && memcmp(i->address[n].bytes, a->bytes, 16) == 0)
			return 1;
	return 0;
}

// The interface that the route leaves by, or NULL after object_error().
static const struct interface *route_interface(const char *key, const struct api_route *want, uint8_t vrf)
{
	const struct interfaces *s = interfaces_next();
	const struct interface *i;
	struct api_address via = want->via;
	char text[64];

	via.prefix = (uint8_t)(8 * address_length(via.family));
	if (want->interface[0] != 0) {
		i = interfaces_by_name(s, want->interface);
		if (i == NULL)
			object_error(ENOENT, "route %s: there is no interface \"%s\"", key, want->interface);
	} else {
		i = interfaces_by_prefix(s, vrf, &via);
		if (i == NULL)
			object_error(ENOENT, "route %s: gateway %s is in no interface's network", key,
				address_text(&via, text));
	}
	if (i == NULL)
		return NULL;
	if (i->role != API_ROLE_CORE) {
		object_error(EINVAL, "route %s: interface %s is on no core port", key, i->name);
		return NULL;
	}
	if (i->vrf != vrf) {
		object_error(EINVAL, "route %s: interface %s is in %s%s", key, i->name,
			i->vrf != 0 ? "VRF " : "the default VRF", vrf_name(i->vrf));
		return NULL;
	}
	if (via.family == 0)
		return i;
	if (is_address_of(i, &via)) {
		object_error(EINVAL, "route %s: gateway %s is our own address", key, address_text(&via, text));
		return NULL;
	}
	return i;
}

// The next hop of a route, held; NEXT_HOP_NONE after object_error().
static uint32_t find_gateway(const char *key, const struct api_route *want, uint8_t vrf)
{
	const struct interface *i = route_interface(key, want, vrf);

	if (i == NULL)
		return NEXT_HOP_NONE;
	struct ip_address via = ip_address_of(want->via.family == 4 ? 4 : 6, want->via.bytes);
	uint32_t hop = next_hop_hold(i, want->via.family == 0 ? NULL : &via);
	if (hop == NEXT_HOP_NONE)
		object_error(ENOSPC, "route %s: more than %d next hops", key, MAX_NEXT_HOPS - 1);
	return hop;
}

static uint32_t gateway_of(struct plan *p, const char *key, const struct api_route *want, uint8_t vrf)
{
	struct gateway *g =
		&p->gateway[(rte_jhash(want->interface, API_NAME, vrf) ^ rte_jhash(&want->via, sizeof(want->via), 0)) %
			    GATEWAYS];

	if (g->hop != NEXT_HOP_NONE && g->vrf == vrf && memcmp(&g->via, &want->via, sizeof(g->via)) == 0 &&
		memcmp(g->interface, want->interface, API_NAME) == 0) {
		next_hop_take(g->hop);
		return g->hop;
	}
	uint32_t hop = find_gateway(key, want, vrf);
	*g = (struct gateway){.via = want->via, .hop = (uint16_t)hop, .vrf = vrf};
	memcpy(g->interface, want->interface, API_NAME);
	return hop;
}

static uint32_t gateways_of(struct plan *p, const char *key, const struct api_route *want, uint8_t vrf)
{
	uint32_t hop[1 + API_ROUTE_FURTHER], n = 0, several = NEXT_HOP_NONE;

	if (want->discard != API_DISCARD_NONE) {
		hop[0] = next_hop_discard((uint8_t)want->discard);
		if (hop[0] == NEXT_HOP_NONE)
			object_error(ENOSPC, "route %s: more than %d next hops", key, MAX_NEXT_HOPS - 1);
		return hop[0];
	}
	if (likely(want->further == 0))
		return gateway_of(p, key, want, vrf);
	for (; n <= want->further; n++) {
		struct api_route one = route_by(want, n);

		hop[n] = gateway_of(p, key, &one, vrf);
		if (hop[n] == NEXT_HOP_NONE)
			break;
	}
	if (n > want->further) {
		several = next_hop_several(hop, n);
		if (several == NEXT_HOP_NONE)
			object_error(EINVAL, "route %s: a next hop is there twice, or more than %d next hops", key,
				MAX_NEXT_HOPS - 1);
	}
	while (n > 0)
		next_hop_release(hop[--n]);
	return several;
}

// A route by interfaces that are all down is not there: no plan counts it.
static int is_down(const struct api_route *r, uint8_t vrf)
{
	const struct interfaces *s = interfaces_next();

	if (r->discard != API_DISCARD_NONE)
		return 0;
	for (uint32_t n = 0; n <= r->further; n++) {
		struct api_route one = route_by(r, n);

		one.via.prefix = (uint8_t)(8 * address_length(one.via.family));
		const struct interface *i = one.interface[0] != 0 ? interfaces_by_name(s, one.interface)
								  : interfaces_by_prefix(s, vrf, &one.via);
		if (i == NULL || !i->down)
			return 0;
	}
	return 1;
}

static int plan_route(const char *key, const void *body, uint32_t length, void *arg)
{
	const struct api_route *want = body;
	// Objects that are not staged yet are checked here too: interfaces finish before routes are staged.
	int error = route_forms(key, want);

	if (error != 0)
		return error;
	int vrf = interfaces_vrf(interfaces_next(), want->vrf);
	if (vrf < 0)
		return object_error(ENOENT, "route %s: no interface is in VRF %s", key, want->vrf);
	if (is_down(want, (uint8_t)vrf))
		return route_interface(key, want, (uint8_t)vrf) != NULL ? 0 : EINVAL;
	struct change *c = change_of(arg, (uint8_t)vrf, &want->prefix);
	uint32_t hop = c != NULL ? gateways_of(arg, key, want, (uint8_t)vrf) : NEXT_HOP_NONE;
	if (hop == NEXT_HOP_NONE)
		return EINVAL;
	next_hop_release(c->hop); // of a second route of the prefix: refused at the end
	c->hop = (uint16_t)hop;
	c->objects++;
	return 0;
}

static int plan_connected(struct plan *p, const struct interface *i)
{
	for (uint32_t n = 0; n < i->addresses; n++) {
		struct api_address prefix = i->address[n];

		if (address_is_link_local(prefix.family, prefix.bytes))
			continue;
		for (uint32_t bit = prefix.prefix; bit < 8 * address_length(prefix.family); bit++)
			prefix.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
		struct change *c = change_of(p, i->vrf, &prefix);
		if (c == NULL)
			return ENOSPC;
		if (c->connected)
			continue; // two addresses in one network
		c->connected = 1;
		c->hop = (uint16_t)next_hop_hold(i, NULL);
		if (c->hop == NEXT_HOP_NONE)
			return object_error(ENOSPC, "interface %s: more than %d next hops", i->name, MAX_NEXT_HOPS - 1);
	}
	return 0;
}

// Counts what the plan needs and looks for prefixes that have two owners.
static int plan_check(struct plan *p)
{
	uint32_t routes = table.routes;
	uint64_t groups = 0;
	char text[64];

	for (uint32_t i = 0; i < p->count; i++) {
		const struct change *c = &p->list[i];
		const struct rib_entry *r = &rib[c->entry];
		struct api_address prefix = rib_prefix(r);

		if (c->objects > 1 || (c->objects > 0 && c->connected))
			return object_error(EEXIST,
				c->connected ? "route %s is an interface's own network already"
					     : "route %s is there twice",
				address_text(&prefix, text));
		routes += (uint32_t)((c->objects > 0) - ((r->flags & RIB_ROUTE) != 0));
		if (c->hop == NEXT_HOP_NONE || (r->flags & RIB_PRESENT))
			continue;
		groups += fib_groups(r);
		if (fib_open(r->table) != 0)
			return object_error(ENOMEM, "no memory for IPv%u routes", prefix.family);
	}
	if (routes > rib_limit())
		return object_error(ENOSPC, "%u routes, at most %u are possible (max_routes)", routes, rib_limit());
	if (groups > fib_groups_free())
		return object_error(ENOSPC,
			"the routes may need %" PRIu64
			" groups of the forwarding table, %u are free (max_routes): fewer in one "
			"transaction need less",
			groups, fib_groups_free());
	return 0;
}

static int plan_all(struct plan *p)
{
	const struct interfaces *s = interfaces_next();
	int error = 0;

	for (uint32_t n = 1; n < rib_end(); n++) {
		if (!(rib[n].flags & RIB_PRESENT))
			continue;
		struct change *c = change_of_entry(p, n);
		if (c == NULL)
			return ENOMEM;
		c->objects = 0;
		c->connected = 0;
	}
	for (uint32_t i = 0; i < s->count && error == 0; i++)
		if (s->interface[i].name[0] != 0 && s->interface[i].role == API_ROLE_CORE && !s->interface[i].down)
			error = plan_connected(p, &s->interface[i]);
	if (error == 0)
		error = object_each(API_ROUTE, plan_route, p);
	return error == 0 ? plan_check(p) : error;
}

int routes_plan(void)
{
	routes_forget();
	struct plan *p = plan_open();
	int error = p == NULL ? ENOMEM : plan_all(p);

	if (error != 0)
		routes_forget();
	else
		p->full = 1;
	return error;
}

static int stage(struct object_change *c)
{
	const struct api_route *was = c->old_body;
	struct plan *p = plan_open();
	int error = p == NULL ? ENOMEM : 0;

	int vrf = was != NULL ? interfaces_vrf(interfaces_next(), was->vrf) : -1;
	if (error == 0 && !p->full && vrf >= 0 && !is_down(was, (uint8_t)vrf)) {
		struct change *old = change_of(p, (uint8_t)vrf, &was->prefix);

		if (old != NULL)
			old->objects--;
		error = old == NULL ? ENOMEM : 0;
	}
	if (error == 0 && c->body != NULL)
		error = p->full ? route_forms(c->key, c->body) : plan_route(c->key, c->body, c->length, p);
	if (error != 0)
		routes_forget();
	return error;
}

static void discard(struct object_change *c)
{
	routes_forget();
}

static int finish_stage(void)
{
	return table.plan == NULL || table.plan->full ? 0 : plan_check(table.plan);
}

static void commit(struct object_change *c)
{
}

static void lead_to(struct change *c)
{
	struct rib_entry *r = &rib[c->entry];
	int present = r->flags & RIB_PRESENT;

	r->flags = (uint8_t)(present | (c->objects ? RIB_ROUTE : 0) | (c->connected ? RIB_CONNECTED : 0));
	c->old = r->hop; // the plan's hold is the entry's now
	if (present && r->hop == c->hop)
		return;
	__atomic_store_n(&r->hop, c->hop, __ATOMIC_RELEASE); // the next hop may be as new
	if (present) {
		fib_replace(c->entry);
		return;
	}
	rib_present(c->entry, 1);
	fib_add(c->entry);
}

static void lead_nowhere(struct change *c)
{
	struct rib_entry *r = &rib[c->entry];

	c->old = r->hop;
	if (!(r->flags & RIB_PRESENT))
		return;
	rib_present(c->entry, 0);
	fib_delete(c->entry);
}

void routes_apply(void)
{
	struct plan *p = table.plan;

	if (p == NULL)
		return;
	table.plan = NULL;
	for (uint32_t i = 0; i < p->count; i++) {
		struct change *c = &p->list[i];

		rib[c->entry].plan = 0;
		table.routes += (uint32_t)((c->objects > 0) - ((rib[c->entry].flags & RIB_ROUTE) != 0));
		// First in, then out: a reader never misses a route that is only replaced by others.
		if (c->hop != NEXT_HOP_NONE)
			lead_to(c);
	}
	for (uint32_t i = 0; i < p->count; i++)
		if (p->list[i].hop == NEXT_HOP_NONE)
			lead_nowhere(&p->list[i]);
	ip_ways_changed();
	control_synchronize();
	for (uint32_t i = 0; i < p->count; i++) {
		next_hop_release(p->list[i].old);
		if (p->list[i].hop == NEXT_HOP_NONE)
			rib_free(p->list[i].entry);
	}
	fib_settle();
	free(p->list);
	free(p);
}

static const struct object_array route_arrays[] = {
	OBJECT_ARRAY(API_PART_ROUTE_HOP, struct api_route_hop, struct api_route, further), {.part = 0}};

static const struct object_ops route_ops = {
	.kind = API_ROUTE,
	.name = "route",
	.min_length = sizeof(struct api_route),
	.max_length = sizeof(struct api_route) + API_ROUTE_FURTHER * sizeof(struct api_route_hop),
	.arrays = route_arrays,
	.packed = 1,
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.finish_stage = finish_stage,
	.finish_discard = routes_forget,
	.finish_commit = routes_apply,
};
OBJECT_REGISTER(route_ops)

ENGINE_LIMIT(max_routes, 1, MAX_ROUTES)

static int start(const struct api_engine *engine)
{
	uint32_t routes = engine->max_routes != 0 ? engine->max_routes : API_ROUTES;

	return rib_start(routes) == 0 && fib_start(routes) == 0
		       ? 0
		       : object_error(ENOMEM, "no memory for %u routes", routes);
}

RTE_INIT(route_start)
{
	module_register(start);
}
