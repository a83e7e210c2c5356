// SPDX-License-Identifier: Apache-2.0
// The table of neighbours: states, timers, and packets that wait. Control thread only.
#include "core/hold.h"
#include "core/object.h"
#include "neighbour/table.h"
#include "path/path.h"
#include "rule/view.h"
#include "wire/bytes.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIMER_MS 100
#define LOOK_AT 256u // slots, for a free one

DROP_REASON(drop_unresolved, "neighbour-unresolved",
	"the next hop did not answer ARP or neighbour solicitations. See show neighbour, show route: the next hop")
DROP_REASON(drop_queue, "neighbour-queue-full",
	"more packets wait for one neighbour, or for all, than may wait. See show neighbour, show route: the next hop")
DROP_REASON(drop_full, "neighbour-table-full",
	"no room for another neighbour, or too many of the interface's do not answer: perhaps a scan. See "
	"engine.limits.neighbours")
DROP_REASON(drop_no_host, "neighbour-no-host",
	"the destination is a network's own or broadcast address, or its route is gone. See show neighbour, show "
	"route: the next hop")

// Shared by the nodes that punt, so these are not static.
struct reason punt_arp = {
	.name = "arp", .text = "an ARP packet on a core interface", .kind = REASON_PUNT, .control = CONTROL_NEIGHBOUR};
struct reason punt_nd = {.name = "nd",
	.text = "a neighbour solicitation or advertisement on a core interface",
	.kind = REASON_PUNT,
	.control = CONTROL_NEIGHBOUR};
struct reason punt_resolve = {.name = "neighbour-resolve",
	.text = "a packet whose next hop's MAC address is not known yet",
	.kind = REASON_PUNT};
struct reason drop_arp_malformed = {.name = "arp-malformed",
	.text = "an ARP packet that is short, not IPv4 over Ethernet, or has impossible addresses",
	.kind = REASON_DROP};
struct reason drop_nd_malformed = {.name = "nd-malformed",
	.text = "a neighbour discovery message with a wrong hop limit, checksum, address, length or option",
	.kind = REASON_DROP};

static struct {
	struct neighbour *list; // `room`
	uint32_t room, unresolved; // most neighbours; of one interface's silent ones (RFC 6583)
	struct {
		uint16_t all, unresolved;
	} of[1u << 16]; // by interface
	struct {
		uint64_t second; // of the count
		uint32_t count, rate;
	} solicitations;
	uint32_t hand; // where make_room() goes on
	uint32_t by_hop[1u << 16]; // next hop -> index in list + 1
} table;

// The neighbour of a next hop, or NULL.
static struct neighbour *neighbour_of(uint32_t next_hop)
{
	uint32_t at = next_hop < RTE_DIM(table.by_hop) ? table.by_hop[next_hop] : 0;

	return at == 0 ? NULL : &table.list[at - 1];
}

struct neighbour *neighbour_find(uint32_t interface, uint8_t family, const uint8_t *address)
{
	uint32_t hop = next_hop_find(interface, family, address);

	return hop == NEXT_HOP_NONE ? NULL : neighbour_of(hop);
}

const uint8_t *neighbour_bytes(const struct neighbour *n)
{
	return ip_address_bytes(&n->address, n->family);
}

void neighbour_each(void (*fn)(struct neighbour *n, void *arg), void *arg)
{
	for (uint32_t i = 0; table.list != NULL && i < table.room; i++)
		if (table.list[i].state != NEIGHBOUR_FREE)
			fn(&table.list[i], arg);
}

HOLDER(neighbour_holder, "neighbour", max_held, .control = 1)

static struct rte_mbuf *unhold_oldest(struct neighbour *n)
{
	struct rte_mbuf *m = n->queue[0];

	n->held--;
	hold_give(worker_self(), &neighbour_holder, m->nb_segs);
	memmove(n->queue, n->queue + 1, n->held * sizeof(n->queue[0]));
	control_unhold(m);
	return m;
}

static void drop_held(struct neighbour *n, const struct reason *r)
{
	while (n->held > 0)
		control_drop(unhold_oldest(n), r);
}

// The packet passes ip-output again on its former worker: its flow keeps its order, its session its pipe and NAT44
// mappings.
static void send_on(struct rte_mbuf *m)
{
	control_inject(packet_of(m)->by, "ip-output", m);
}

// Its walk is over, so its rule may be gone or another session's. A session's packet has no session from now on and
// gets no ICMP error. An error would be routed to its sender's address, wherever routes lead.
static void forget_rule(struct rte_mbuf *m)
{
	struct session_view *v = session_view_of(m);

	if (v->rule == NULL)
		return;
	v->rule = NULL;
	v->uplink = 0;
	packet_of(m)->interface = UINT32_MAX;
}

static void hold(struct neighbour *n, struct rte_mbuf *m)
{
	// RFC 4861 §7.2.2: the newest packet replaces the oldest.
	if (n->held == NEIGHBOUR_HELD)
		control_drop(unhold_oldest(n), &drop_queue);
	while (m->nb_segs > hold_room(worker_self(), &neighbour_holder) && n->held > 0)
		control_drop(unhold_oldest(n), &drop_queue);
	if (!hold_take(worker_self(), &neighbour_holder, m->nb_segs)) {
		control_drop(m, &drop_queue);
		return;
	}
	control_hold(m);
	n->queue[n->held++] = m;
}

static int is_unresolved(const struct neighbour *n)
{
	return (n->state == INCOMPLETE || n->state == FAILED) && !n->used;
}

// All changes of a neighbour that counts are made between two calls.
static void count(const struct neighbour *n, int by)
{
	table.of[n->interface].all = (uint16_t)(table.of[n->interface].all + by);
	if (is_unresolved(n))
		table.of[n->interface].unresolved = (uint16_t)(table.of[n->interface].unresolved + by);
}

void neighbour_remove(struct neighbour *n)
{
	drop_held(n, &drop_unresolved);
	next_hop_resolve(n->next_hop, NULL);
	table.by_hop[n->next_hop] = 0;
	next_hop_release(n->next_hop);
	count(n, -1);
	memset(n, 0, sizeof(*n));
}

void neighbour_set_state(struct neighbour *n, enum neighbour_state state)
{
	count(n, -1);
	n->state = state;
	count(n, 1);
}

uint32_t neighbour_room(void)
{
	return table.room;
}

// How readily an entry is removed. A network scan fills the table with failing neighbours; it must not cost answering
// or needed ones their entries (RFC 6583 §7.1).
static int expendable(const struct neighbour *n, enum neighbour_purpose purpose)
{
	if (n->state == STATIC)
		return 0;
	if (is_unresolved(n))
		return n->state == FAILED ? 5 : purpose == FOR_ANYONE ? 0 : 4;
	if (purpose != FOR_CONFIG)
		return 0;
	return n->used ? 1 : n->state == STALE ? 3 : 2;
}

// 1 when the interface may only replace one of its own entries for this purpose. It has its share of silent neighbours,
// or leaves no more than an eighth of the table to the others.
static int has_its_share(uint32_t interface, enum neighbour_purpose purpose)
{
	return purpose == FOR_ANYONE && (table.of[interface].unresolved >= table.unresolved ||
						table.of[interface].all >= table.room - table.room / 8);
}

// A free slot, freed if necessary. Examines a few slots from the last position, so a flood costs little; examines all
// for needed neighbours.
static struct neighbour *make_room(uint32_t interface, enum neighbour_purpose purpose)
{
	uint32_t looks = purpose == FOR_ANYONE ? RTE_MIN(LOOK_AT, table.room) : table.room;
	int own = has_its_share(interface, purpose);
	struct neighbour *victim = NULL;

	for (uint32_t step = 0; step < looks; step++) {
		struct neighbour *n = &table.list[table.hand++ % table.room];

		if (n->state == NEIGHBOUR_FREE && !own)
			return n;
		if (n->state == NEIGHBOUR_FREE || (own && n->interface != interface))
			continue;
		if (expendable(n, purpose) > (victim != NULL ? expendable(victim, purpose) : 0))
			victim = n;
	}
	if (victim != NULL)
		neighbour_remove(victim);
	return victim;
}

struct neighbour *neighbour_ensure(
	uint32_t interface, uint8_t family, const uint8_t *address, enum neighbour_purpose purpose)
{
	const struct interface *i = interface_get(interface);
	struct ip_address a = ip_address_of(family, address);
	struct neighbour *n = neighbour_find(interface, family, address);

	if (n != NULL && purpose == FOR_US && !n->used) {
		count(n, -1);
		n->used = 1;
		count(n, 1);
	}
	if (n != NULL)
		return n;
	if (table.list == NULL || i == NULL)
		return NULL;
	n = make_room(interface, purpose);
	uint32_t hop = n == NULL ? NEXT_HOP_NONE : next_hop_ensure(interface, &a);
	if (hop == NEXT_HOP_NONE)
		return NULL;
	*n = (struct neighbour){
		.state = INCOMPLETE,
		.used = purpose == FOR_US,
		.family = family,
		.interface = interface,
		.next_hop = hop,
		.address = a,
		.since_ns = control_now_ns(),
		.due_ns = control_now_ns(),
	};
	memcpy(n->name, i->name, sizeof(n->name));
	table.by_hop[hop] = (uint32_t)(n - table.list) + 1;
	count(n, 1);
	return n;
}

void neighbour_learn(struct neighbour *n, const uint8_t mac[6])
{
	if (n->state != STATIC)
		neighbour_set_state(n, REACHABLE);
	memcpy(&n->mac, mac, 6);
	n->probes = 0;
	n->since_ns = control_now_ns();
	n->due_ns = n->since_ns + REACHABLE_NS;
	next_hop_resolve(n->next_hop, &n->mac);
	while (n->held > 0)
		send_on(unhold_oldest(n));
}

static void give_up(struct neighbour *n, uint64_t now_ns)
{
	drop_held(n, &drop_unresolved);
	next_hop_resolve(n->next_hop, NULL);
	next_hop_fail(n->next_hop);
	neighbour_set_state(n, FAILED);
	n->due_ns = now_ns + FAILED_NS;
}

// RFC 6583 §7: questions for unknown hosts that are no gateways or peers are rate-limited. Known neighbours are asked
// in any case: the table bounds them.
static int may_solicit(const struct neighbour *n, uint64_t now_ns)
{
	uint64_t second = now_ns / 1000000000ull;

	if (!is_unresolved(n))
		return 1;
	if (second != table.solicitations.second) {
		table.solicitations.second = second;
		table.solicitations.count = 0;
	}
	if (table.solicitations.count >= table.solicitations.rate)
		return 0;
	table.solicitations.count++;
	return 1;
}

static void tick_one(struct neighbour *n, void *arg)
{
	uint64_t now_ns = *(const uint64_t *)arg;

	if (n->state == STATIC || now_ns < n->due_ns)
		return;
	switch (n->state) {
	case REACHABLE:
		neighbour_set_state(n, STALE);
		n->probes = 0;
		// fall through
	case INCOMPLETE:
	case STALE:
		if (n->probes == PROBES ||
			(n->state == INCOMPLETE && now_ns - n->since_ns >= PROBES * PROBE_INTERVAL_NS)) {
			give_up(n, now_ns);
			return;
		}
		if (!may_solicit(n, now_ns)) {
			n->due_ns = now_ns + TIMER_MS * 1000000ull;
			return;
		}
		n->probes++;
		n->due_ns = now_ns + PROBE_INTERVAL_NS;
		exchange_probe(n);
		return;
	default: // FAILED
		if (!next_hop_is_one_of_several(n->next_hop)) {
			neighbour_remove(n);
			return;
		}
		// No packet asks for it while others have its flows.
		neighbour_set_state(n, INCOMPLETE);
		n->probes = 0;
		n->since_ns = n->due_ns = now_ns;
	}
}

static void tick(uint64_t now_ns)
{
	neighbour_each(tick_one, &now_ns);
}

// A packet without a next hop's MAC.

// Network and broadcast addresses of an interface's networks are no hosts (RFC 1812 §4.2.3.1, §5.3.5.2).
static int is_host(const struct interface *i, uint8_t family, const uint8_t *address)
{
	for (uint32_t k = 0; family == 4 && k < i->addresses; k++) {
		const struct api_address *a = &i->address[k];

		if (a->family != 4 || a->prefix > 30 || a->prefix == 0)
			continue;
		uint32_t mask = UINT32_MAX >> a->prefix, mine = load32(a->bytes), that = load32(address);
		if ((mine | mask) == (that | mask) && ((that & mask) == 0 || (that & mask) == mask))
			return 0;
	}
	return 1;
}

// A gateway or a tunnel's peer, which no unknown sender's packet can choose.
static enum neighbour_purpose purpose_of(const struct next_hop *h, uint8_t family, const uint8_t *packet)
{
	const uint8_t *source = packet + (family == 4 ? 12 : 8), *destination = packet + (family == 4 ? 16 : 24);

	return h->kind == NEXT_HOP_NEIGHBOUR || path_exists(family, source, destination) ? FOR_US : FOR_ANYONE;
}

static void resolve(struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *packet = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	const uint8_t *destination = packet + (pkt->ip_version == 4 ? 16 : 24);
	const struct next_hop *h =
		next_hop_of_packet(ip_route_of(pkt->vrf, pkt->ip_version, destination, pkt->interface), m);
	const struct interface *i = interface_get(h->interface);
	uint8_t family = pkt->ip_version;

	forget_rule(m);
	if (!next_hop_leads(h) || i == NULL ||
		(h->kind == NEXT_HOP_GLEAN && !is_host(i, pkt->ip_version, destination))) {
		control_drop(m, &drop_no_host);
		return;
	}
	const uint8_t *address = destination;
	if (h->kind == NEXT_HOP_NEIGHBOUR) {
		family = ip_address_family(&h->address); // RFC 8950
		address = ip_address_bytes(&h->address, family);
	}
	struct neighbour *n = neighbour_ensure(h->interface, family, address, purpose_of(h, pkt->ip_version, packet));
	if (n == NULL) {
		control_drop(m, &drop_full);
		return;
	}
	if (n->state == FAILED) {
		control_drop(m, &drop_unresolved);
		return;
	}
	if (n->state != INCOMPLETE) { // it was resolved while the packet was on its way here
		next_hop_resolve(n->next_hop, &n->mac);
		send_on(m);
		return;
	}
	hold(n, m);
	if (n->probes == 0) {
		uint64_t now = control_now_ns();

		tick_one(n, &now);
	}
}

static void check_interface(struct neighbour *n, void *arg)
{
	const struct interface *i = interface_get(n->interface);

	if (i == NULL || strcmp(i->name, n->name) != 0)
		neighbour_remove(n);
}

static struct interface *announced; // the last announcements on the links, by index
static uint32_t announced_count;

static void announce_new(const struct interface *i, const struct interface *before)
{
	for (uint32_t k = 0; k < i->addresses; k++) {
		int known = 0;

		for (uint32_t b = 0; b < before->addresses; b++)
			known |= memcmp(&before->address[b], &i->address[k], sizeof(i->address[k])) == 0;
		if (!known || strcmp(before->name, i->name) != 0 || !rte_is_same_ether_addr(&before->mac, &i->mac) ||
			before->port != i->port || memcmp(before->vlan, i->vlan, sizeof(i->vlan)) != 0)
			exchange_announce(i, &i->address[k]);
	}
}

static void interfaces_changed(void)
{
	uint32_t count = RTE_MAX(interface_count(), announced_count);
	struct interface *now = calloc(count + 1, sizeof(*now));
	static const struct interface none;

	neighbour_each(check_interface, NULL);
	if (now == NULL)
		return;
	for (uint32_t k = 0; k < count; k++) {
		const struct interface *i = interface_get(k);

		if (i == NULL || i->down)
			continue;
		now[k] = *i;
		if (i->role == API_ROLE_CORE)
			announce_new(i, k < announced_count ? &announced[k] : &none);
	}
	free(announced);
	announced = now;
	announced_count = count;
}

ENGINE_LIMIT(max_neighbours, 1, MAX_NEIGHBOURS)
ENGINE_LIMIT(max_unresolved, 1, MAX_NEIGHBOURS)
ENGINE_LIMIT(solicitation_rate, 1, 1000000)

static int start(const struct api_engine *engine)
{
	table.room = engine->max_neighbours != 0 ? engine->max_neighbours : NEIGHBOURS;
	table.unresolved = engine->max_unresolved != 0 ? engine->max_unresolved : RTE_MAX(table.room / 8, 1u);
	table.list = calloc(table.room, sizeof(*table.list));
	punt_handler_register(&punt_resolve, resolve);
	exchange_start();
	return table.list == NULL ? ENOMEM : 0;
}

static void set_rate(const struct api_engine *engine)
{
	table.solicitations.rate = engine->solicitation_rate != 0 ? engine->solicitation_rate : SOLICITATIONS;
}

static void row_of(struct stats_sink *s, const struct neighbour *n)
{
	static const uint8_t state[] = {[INCOMPLETE] = 1, [REACHABLE] = 2, [STALE] = 3, [FAILED] = 1, [STATIC] = 4};
	struct api_neighbour_row row = {
		.address = {.family = n->family, .prefix = n->family == 4 ? 32 : 128},
		.state = state[n->state],
		.age_s = (uint32_t)((control_now_ns() - n->since_ns) / 1000000000ull),
		.held = n->held,
	};

	memcpy(row.interface, n->name, sizeof(row.interface));
	memcpy(row.address.bytes, neighbour_bytes(n), n->family == 4 ? 4 : 16);
	memcpy(row.mac, &n->mac, sizeof(row.mac));
	stats_row(s, &row, sizeof(row));
}

// `key`: empty, an address, or the name of an interface.
static int is_asked(const struct neighbour *n, const char *key)
{
	struct api_address one = address_of_text(key);

	return key[0] == 0 || strcmp(key, n->name) == 0 ||
	       (one.family == n->family && memcmp(one.bytes, neighbour_bytes(n), one.family == 4 ? 4 : 16) == 0);
}

static uint64_t rows(struct stats_sink *s, const char *key, uint64_t place)
{
	if (place < table.room && table.list[place].state != NEIGHBOUR_FREE && is_asked(&table.list[place], key))
		row_of(s, &table.list[place]);
	return stats_next(place, table.room);
}

RTE_INIT(neighbour_module)
{
	struct reason *const all[] = {&punt_arp, &punt_nd, &punt_resolve, &drop_arp_malformed, &drop_nd_malformed};

	for (unsigned i = 0; i < RTE_DIM(all); i++)
		reason_register(all[i]);
	module_register(start);
	engine_watch(set_rate);
	timer_register(TIMER_MS, tick);
	interface_watch(interfaces_changed);
	stats_table_register(API_TABLE_NEIGHBOUR, sizeof(struct api_neighbour_row), rows);
	resume_register("port-tx"); // for our own messages
}
