// SPDX-License-Identifier: Apache-2.0
// Interfaces and our own addresses: the INTERFACE objects, and the snapshot of them that workers read.
//
// The snapshot is built whole from the objects, published by one pointer, and freed after a grace period. An interface
// keeps its index while it exists.
#include "core/control.h"
#include "core/object.h"
#include "core/port.h"
#include "route/tables.h"
#include "wire/bytes.h"
#include "wire/ip.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WATCHES 8
#define LEAST_MTU 68 // RFC 791 §3.1
#define RPF (API_INTERFACE_RPF_STRICT | API_INTERFACE_RPF_LOOSE)

static const struct interfaces nothing = {
	.vlan = (struct vlan_slot[]){{.key = VLAN_EMPTY}},
	.local = (struct local_slot[]){{.interface = UINT32_MAX}},
};

static struct {
	const struct interfaces *now; // read by workers
	const struct interfaces *next; // of the open transaction, or NULL
	char name[MAX_INTERFACES][API_NAME]; // index -> name; control thread
	char vrf[MAX_VRFS][API_NAME]; // number -> name; written while no snapshot has the number
	void (*watch[MAX_WATCHES])(void);
	uint32_t watches;
} table = {.now = &nothing};

const struct ip_filter *ip_local_filter = &nothing.filter;

const struct interfaces *interfaces_now(void)
{
	return __atomic_load_n(&table.now, __ATOMIC_ACQUIRE);
}

const struct interfaces *interfaces_next(void)
{
	return table.next != NULL ? table.next : table.now;
}

static uint64_t vlan_key(uint16_t port, uint16_t outer, uint16_t inner)
{
	return (uint64_t)port << 32 | (uint32_t)outer << 16 | inner;
}

static uint32_t hash_of(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32);
}

static uint32_t local_hash(const struct ip_address *a)
{
	uint64_t high, low;

	memcpy(&high, a->bytes, sizeof(high));
	memcpy(&low, a->bytes + 8, sizeof(low));
	return hash_of(high ^ (low * 0xc2b2ae3d27d4eb4full));
}

struct ip_address ip_address_of(uint8_t family, const uint8_t *address)
{
	struct ip_address a = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}};

	if (family == 4)
		memcpy(a.bytes + 12, address, 4);
	else
		memcpy(a.bytes, address, 16);
	return a;
}

uint8_t ip_address_family(const struct ip_address *a)
{
	const struct ip_address four = ip_address_of(4, a->bytes + 12);

	return memcmp(a, &four, sizeof(four)) == 0 ? 4 : 6;
}

const struct interface *interface_find(uint16_t port, uint16_t outer_vlan, uint16_t inner_vlan)
{
	const struct interfaces *s = interfaces_now();
	uint64_t key = vlan_key(port, outer_vlan, inner_vlan);

	// Ends at an empty slot: the table is at most half full.
	for (uint32_t i = hash_of(key) & s->vlan_mask; s->vlan[i].key != VLAN_EMPTY; i = (i + 1) & s->vlan_mask)
		if (s->vlan[i].key == key)
			return &s->interface[s->vlan[i].interface];
	return NULL;
}

static const struct interface *get(const struct interfaces *s, uint32_t index)
{
	return index < s->count && s->interface[index].name[0] != 0 ? &s->interface[index] : NULL;
}

const struct interface *interface_get(uint32_t index)
{
	return get(interfaces_now(), index);
}

uint32_t interface_count(void)
{
	return interfaces_now()->count;
}

// Which slots of an address match: of a VRF, of an interface or no link, or of an access port.
enum local_match { LOCAL_VRF, LOCAL_CORE, LOCAL_INTERFACE, LOCAL_GATEWAY };

// The interface of the first matching slot, or UINT32_MAX. `where`: of the VRF (of core ports alone), interface or
// port.
static uint32_t local_find(
	const struct interfaces *s, const struct ip_address *a, enum local_match match, uint32_t where)
{
	const struct interface *f = match == LOCAL_INTERFACE ? get(s, where) : NULL;

	for (uint32_t i = local_hash(a) & s->local_mask; s->local[i].interface != UINT32_MAX;
		i = (i + 1) & s->local_mask) {
		const struct local_slot *slot = &s->local[i];

		if (memcmp(&slot->address, a, sizeof(*a)) != 0)
			continue;
		if ((match == LOCAL_VRF && (slot->vrf == where || where == VRF_ANY)) ||
			(match == LOCAL_CORE && !slot->access && slot->vrf == where) ||
			(f != NULL && (slot->interface == where || (slot->port == PORT_NONE && slot->vrf == f->vrf))) ||
			(match == LOCAL_GATEWAY && slot->access && slot->port == where))
			return slot->interface;
	}
	return UINT32_MAX;
}

int ip_is_local_exactly(uint8_t vrf, uint8_t family, const uint8_t *address)
{
	struct ip_address a = ip_address_of(family, address);

	return local_find(interfaces_now(), &a, LOCAL_VRF, vrf) != UINT32_MAX;
}

int ip_is_local_on(uint8_t family, const uint8_t *address, uint32_t interface)
{
	struct ip_address a = ip_address_of(family, address);

	return local_find(interfaces_now(), &a, LOCAL_INTERFACE, interface) != UINT32_MAX;
}

uint32_t ip_local_interface(uint8_t vrf, uint8_t family, const uint8_t *address)
{
	struct ip_address a = ip_address_of(family, address);

	return local_find(interfaces_now(), &a, LOCAL_CORE, vrf);
}

static void link_local_of_mac(const struct port *p, uint8_t to[16])
{
	const uint8_t *mac = p->mac.addr_bytes;

	memcpy(to,
		(const uint8_t[]){
			0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]},
		16);
}

static int is_link_local_of(const struct port *p, uint8_t family, const uint8_t *address)
{
	uint8_t own[16];

	if (family != 6 || p == NULL || p->role != API_ROLE_ACCESS)
		return 0;
	link_local_of_mac(p, own);
	return memcmp(own, address, 16) == 0;
}

int ip_is_gateway(uint8_t family, const uint8_t *address, uint16_t port)
{
	struct ip_address a = ip_address_of(family, address);

	return local_find(interfaces_now(), &a, LOCAL_GATEWAY, port) != UINT32_MAX ||
	       is_link_local_of(port_get(port), family, address);
}

// The first interface of a port, or NULL.
static const struct interface *first_of(const struct interfaces *s, uint16_t port)
{
	return port < MAX_PORTS && s->of_port[port] != 0 ? &s->interface[s->of_port[port] - 1] : NULL;
}

static const struct interface *beside(const struct interfaces *s, const struct interface *f)
{
	return f->beside != 0 ? &s->interface[f->beside - 1] : NULL;
}

// The first and the last address of an IPv4 network that has more than two (RFC 3021).
static int is_broadcast(const struct api_address *network, const uint8_t *address)
{
	uint32_t hosts = network->prefix < 31 ? UINT32_MAX >> network->prefix : 0, host = load32(address) & hosts;

	return network->family == 4 && hosts != 0 && (host == 0 || host == hosts);
}

int ip_is_proxied(uint8_t family, const uint8_t *address, uint16_t port)
{
	const struct interfaces *s = interfaces_now();

	if (address_is_link_local(family, address))
		return 0;
	for (const struct interface *f = first_of(s, port); f != NULL; f = beside(s, f))
		for (uint32_t n = 0; f->local_proxy && n < f->addresses; n++)
			if (f->address[n].family == family &&
				ip_prefix_equal(f->address[n].bytes, address, f->address[n].prefix) &&
				!is_broadcast(&f->address[n], address))
				return 1;
	return 0;
}

static const uint8_t *source_of(const struct interface *i, uint8_t family, const uint8_t *towards)
{
	const uint8_t *any = NULL;

	if (i == NULL)
		return NULL;
	for (uint32_t n = 0; n < i->addresses; n++) {
		const struct api_address *a = &i->address[n];

		if (a->family != family)
			continue;
		if (towards != NULL && ip_prefix_equal(a->bytes, towards, a->prefix))
			return a->bytes;
		// A link-local address only as the last choice (RFC 6724 §5 rule 2).
		if (any == NULL || address_is_link_local(family, any))
			any = a->bytes;
	}
	return any;
}

const uint8_t *ip_source_towards(uint8_t family, uint32_t interface, const uint8_t *towards)
{
	const struct interfaces *s = interfaces_now();
	const struct interface *i = get(s, interface);
	const uint8_t *a = source_of(i, family, towards);

	for (uint32_t n = 0; i != NULL && a == NULL && n < s->count; n++)
		if (s->interface[n].port == PORT_NONE && s->interface[n].vrf == i->vrf)
			a = source_of(get(s, n), family, towards);
	return a;
}

const uint8_t *ip_source_on_interface(uint8_t family, uint32_t interface)
{
	return source_of(interface_get(interface), family, NULL);
}

const uint8_t *ip_source_on_port(uint8_t family, uint16_t port)
{
	const struct interfaces *s = interfaces_now();
	const uint8_t *a = NULL;

	for (const struct interface *f = first_of(s, port); f != NULL && a == NULL; f = beside(s, f))
		a = source_of(f, family, NULL);
	return a;
}

void ip_link_local(const struct port *p, uint8_t to[16])
{
	const struct interfaces *s = interfaces_now();

	for (const struct interface *f = first_of(s, p->index); f != NULL; f = beside(s, f))
		for (uint32_t n = 0; n < f->addresses; n++)
			if (f->address[n].family == 6 && address_is_link_local(6, f->address[n].bytes)) {
				memcpy(to, f->address[n].bytes, 16);
				return;
			}
	link_local_of_mac(p, to);
}

const struct interface *interfaces_by_name(const struct interfaces *s, const char *name)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (name[0] != 0 && strcmp(s->interface[i].name, name) == 0)
			return &s->interface[i];
	return NULL;
}

const char *vrf_name(uint8_t vrf)
{
	return table.vrf[vrf];
}

int interfaces_vrf(const struct interfaces *s, const char *name)
{
	for (int v = 0; v < MAX_VRFS; v++)
		if ((v == 0 || s->vrfs >> v & 1) && strncmp(table.vrf[v], name, API_NAME) == 0)
			return v;
	return -1;
}

int interfaces_vrf_of(const struct interfaces *s, const struct api_address *a)
{
	int found = -1;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct interface *f = get(s, i);

		for (uint32_t n = 0; f != NULL && f->role == API_ROLE_CORE && n < f->addresses; n++) {
			if (f->address[n].family != a->family ||
				memcmp(f->address[n].bytes, a->bytes, address_length(a->family)) != 0)
				continue;
			if (found >= 0 && found != f->vrf)
				return -1;
			found = f->vrf;
		}
	}
	return RTE_MAX(found, 0);
}

const struct interface *interfaces_by_prefix(const struct interfaces *s, uint8_t vrf, const struct api_address *a)
{
	if (address_is_link_local(a->family, a->bytes))
		return NULL;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct interface *f = get(s, i);

		for (uint32_t n = 0; f != NULL && f->role == API_ROLE_CORE && f->vrf == vrf && n < f->addresses; n++)
			if (f->address[n].family == a->family &&
				ip_prefix_equal(f->address[n].bytes, a->bytes, f->address[n].prefix))
				return f;
	}
	return NULL;
}

static int check_addresses(const char *key, const struct api_interface *want)
{
	char text[64];

	if (want->count > API_MAX_ADDRESSES)
		return object_error(EINVAL, "interface %s: %u addresses, at most %d are possible", key, want->count,
			API_MAX_ADDRESSES);
	for (uint32_t i = 0; i < want->count; i++) {
		const struct api_address *a = &want->address[i];

		if (!address_valid(a))
			return object_error(EINVAL,
				"interface %s: address %u is neither IPv4 nor IPv6 with a prefix length", key, i + 1);
		if (!address_assignable(a))
			return object_error(
				EINVAL, "interface %s cannot have the address %s", key, address_text(a, text));
	}
	return 0;
}

static int check(const char *key, const void *body, uint32_t length)
{
	const struct api_interface *want = body;
	if (memchr(want->vrf, 0, API_NAME) == NULL)
		return object_error(EINVAL, "interface %s: the name of its VRF has no end", key);
	if (want->port[0] == 0)
		return want->outer_vlan == 0 && want->inner_vlan == 0 && want->mtu == 0 && want->flags == 0
			       ? check_addresses(key, want)
			       : object_error(EINVAL, "interface %s: without a port it has no VLAN, MTU, flags", key);
	if (memchr(want->port, 0, API_NAME) == NULL || port_by_name(want->port) == NULL)
		return object_error(ENOENT, "interface %s: there is no port \"%.*s\"", key, API_NAME - 1, want->port);
	if (want->outer_vlan > 4094 || want->inner_vlan > 4094)
		return object_error(EINVAL, "interface %s: VLAN ids go from 1 to 4094", key);
	if (want->inner_vlan != 0 && want->outer_vlan == 0)
		return object_error(EINVAL, "interface %s has an inner VLAN but no outer VLAN", key);
	if (want->flags & ~(API_INTERFACE_DOWN | RPF | API_INTERFACE_LOCAL_PROXY))
		return object_error(EINVAL, "interface %s: unknown flags %#x", key, want->flags);
	if ((want->flags & RPF) == RPF)
		return object_error(EINVAL, "interface %s: reverse paths are strict or loose, not both", key);
	if ((want->flags & RPF) != 0 && port_by_name(want->port)->role != API_ROLE_CORE)
		return object_error(
			EINVAL, "interface %s is on an access port, where sessions say what sources may be", key);
	if ((want->flags & API_INTERFACE_DOWN) && port_by_name(want->port)->role != API_ROLE_CORE)
		return object_error(EINVAL, "interface %s is on an access port, whose subscribers do without", key);
	if ((want->flags & API_INTERFACE_LOCAL_PROXY) && port_by_name(want->port)->role != API_ROLE_ACCESS)
		return object_error(EINVAL, "interface %s is on a core port, which answers for nobody", key);
	if (want->vrf[0] != 0 && port_by_name(want->port)->role != API_ROLE_CORE)
		return object_error(
			EINVAL, "interface %s is on an access port, whose addresses are of the default VRF", key);
	if (want->mtu != 0 && (want->mtu < LEAST_MTU || want->mtu > port_by_name(want->port)->mtu))
		return object_error(
			EINVAL, "interface %s: its MTU %u is below %d or above the port's", key, want->mtu, LEAST_MTU);
	return check_addresses(key, want);
}

struct build {
	struct interface *list; // MAX_INTERFACES
	uint32_t count, used;
};

// The index of an existing interface, or a free one. The index of a removed interface is free when no snapshot has it
// any more.
static int index_of(const struct build *b, const char *key)
{
	int empty = -1;

	for (int i = 0; i < MAX_INTERFACES; i++) {
		if (strcmp(table.name[i], key) == 0)
			return i;
		if (empty < 0 && b->list[i].name[0] == 0 && get(table.now, i) == NULL &&
			get(interfaces_next(), i) == NULL)
			empty = i;
	}
	if (empty >= 0)
		memcpy(table.name[empty], key, API_NAME);
	return empty;
}

// The number of an existing VRF, or a free one, as index_of(); -1: none.
static int vrf_number(const struct build *b, const char *name)
{
	uint64_t used = 1 | table.now->vrfs | interfaces_next()->vrfs;

	for (uint32_t i = 0; i < MAX_INTERFACES; i++)
		if (b->list[i].name[0] != 0)
			used |= 1ull << b->list[i].vrf;
	for (int v = 0; v < MAX_VRFS; v++)
		if (strcmp(table.vrf[v], name) == 0)
			return v;
	for (int v = 0; v < MAX_VRFS; v++)
		if (!(used >> v & 1)) {
			memcpy(table.vrf[v], name, API_NAME);
			return v;
		}
	return -1;
}

static int build_one(const char *key, const void *body, uint32_t length, void *arg)
{
	const struct api_interface *want = body;
	struct build *b = arg;
	// Objects that are not staged yet are checked here too: a deletion finishes before additions are looked at.
	int error = check(key, want, sizeof(*want));
	int index = error == 0 ? index_of(b, key) : -1;

	if (error != 0)
		return error;
	if (index < 0)
		return object_error(ENOSPC, "interface %s: more than %d interfaces", key, MAX_INTERFACES);
	int vrf = vrf_number(b, want->vrf);
	if (vrf < 0)
		return object_error(ENOSPC, "interface %s: more than %d VRFs", key, MAX_VRFS);
	const struct port *p = want->port[0] != 0 ? port_by_name(want->port) : NULL;
	struct interface *f = &b->list[index];
	memcpy(f->name, key, API_NAME);
	f->index = (uint16_t)index;
	f->port = PORT_NONE;
	f->vrf = (uint8_t)vrf;
	f->addresses = want->count;
	memcpy(f->address, want->address, sizeof(f->address));
	b->count = RTE_MAX(b->count, (uint32_t)index + 1);
	b->used++;
	if (p == NULL)
		return 0;
	f->port = p->index;
	f->vlan[0] = want->outer_vlan;
	f->vlan[1] = want->inner_vlan;
	f->mtu = want->mtu != 0 ? want->mtu : p->mtu;
	f->rpf = (uint8_t)(want->flags & RPF);
	f->local_proxy = (want->flags & API_INTERFACE_LOCAL_PROXY) != 0;
	f->down = (want->flags & API_INTERFACE_DOWN) != 0;
	f->role = p->role;
	f->l2_length = RTE_ETHER_HDR_LEN + (want->outer_vlan ? 4 : 0) + (want->inner_vlan ? 4 : 0);
	f->mac = p->mac;
	return 0;
}

static int overlap(
	const struct interface *a, const struct api_address *x, const struct interface *b, const struct api_address *y)
{
	char text[64];
	int both_core = a->role == API_ROLE_CORE && b->role == API_ROLE_CORE;

	if (x->family != y->family || a->vrf != b->vrf)
		return 0;
	if (address_is_link_local(x->family, x->bytes) && a != b)
		return 0; // every link has its own
	// The same gateway address on several access ports is one gateway to its subscribers.
	if (memcmp(x->bytes, y->bytes, 16) == 0 && (a == b || a->role == API_ROLE_CORE || b->role == API_ROLE_CORE))
		return object_error(EEXIST, "address %s is on interface %s and on interface %s", address_text(x, text),
			a->name, b->name);
	if (a != b && both_core && ip_prefix_equal(x->bytes, y->bytes, RTE_MIN(x->prefix, y->prefix)))
		return object_error(EEXIST, "address %s of interface %s lies in a network of interface %s",
			address_text(x, text), a->name, b->name);
	return 0;
}

static int check_pair(const struct interface *a, const struct interface *b)
{
	int error = 0;

	if (a != b && a->port != PORT_NONE && a->port == b->port && a->vlan[0] == b->vlan[0] &&
		a->vlan[1] == b->vlan[1])
		return object_error(EEXIST, "interfaces %s and %s are on the same port and VLAN", a->name, b->name);
	for (uint32_t i = 0; i < a->addresses && error == 0; i++)
		for (uint32_t k = a == b ? i + 1 : 0; k < b->addresses && error == 0; k++)
			error = overlap(a, &a->address[i], b, &b->address[k]);
	return error;
}

static int check_all(const struct build *b)
{
	int error = 0;

	for (uint32_t i = 0; i < b->count; i++)
		for (uint32_t k = i; k < b->count && error == 0; k++)
			if (b->list[i].name[0] != 0 && b->list[k].name[0] != 0)
				error = check_pair(&b->list[i], &b->list[k]);
	return error;
}

static void fill_ports(struct interfaces *s)
{
	for (uint32_t i = s->count; i-- > 0;) {
		struct interface *f = &s->interface[i];

		if (f->name[0] == 0 || f->port >= MAX_PORTS)
			continue;
		f->beside = s->of_port[f->port];
		s->of_port[f->port] = (uint16_t)(i + 1);
	}
}

static void fill_hashes(struct interfaces *s)
{
	for (uint32_t i = 0; i <= s->vlan_mask; i++)
		s->vlan[i].key = VLAN_EMPTY;
	for (uint32_t i = 0; i <= s->local_mask; i++)
		s->local[i].interface = UINT32_MAX;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct interface *f = get(s, i);

		if (f == NULL)
			continue;
		s->vrfs |= 1ull << f->vrf;
		uint64_t key = vlan_key(f->port, f->vlan[0], f->vlan[1]);
		uint32_t at = hash_of(key) & s->vlan_mask;
		while (s->vlan[at].key != VLAN_EMPTY)
			at = (at + 1) & s->vlan_mask;
		s->vlan[at] = (struct vlan_slot){.key = key, .interface = i};
		for (uint32_t n = 0; n < f->addresses; n++) {
			struct ip_address a = ip_address_of(f->address[n].family, f->address[n].bytes);

			uint32_t bit = ip_filter_bit(f->address[n].family, f->address[n].bytes);
			s->filter.bits[bit / 64] |= 1ull << bit % 64;
			at = local_hash(&a) & s->local_mask;
			while (s->local[at].interface != UINT32_MAX)
				at = (at + 1) & s->local_mask;
			s->local[at] = (struct local_slot){.address = a,
				.interface = i,
				.port = f->port,
				.access = f->role == API_ROLE_ACCESS,
				.vrf = f->vrf};
		}
	}
}

// The whole snapshot is one allocation.
static struct interfaces *snapshot_make(const struct build *b)
{
	uint32_t addresses = 0;

	for (uint32_t i = 0; i < b->count; i++)
		addresses += b->list[i].addresses;
	uint32_t vlans = rte_align32pow2(2 * b->used + 1), locals = rte_align32pow2(2 * addresses + 1);
	size_t head = sizeof(struct interfaces) + b->count * sizeof(struct interface);
	head = RTE_ALIGN_CEIL(head, 16);
	struct interfaces *s = calloc(1, head + vlans * sizeof(struct vlan_slot) + locals * sizeof(struct local_slot));
	if (s == NULL)
		return NULL;
	s->count = b->count;
	s->vlan_mask = vlans - 1;
	s->local_mask = locals - 1;
	s->vlan = (struct vlan_slot *)((char *)s + head);
	s->local = (struct local_slot *)(s->vlan + vlans);
	memcpy(s->interface, b->list, b->count * sizeof(struct interface));
	fill_ports(s);
	fill_hashes(s);
	return s;
}

static int snapshot_build(struct interfaces **out)
{
	struct build b = {.list = calloc(MAX_INTERFACES, sizeof(*b.list))};
	int error = b.list == NULL ? object_error(ENOMEM, "no memory for interfaces") : 0;

	if (error == 0)
		error = object_each(API_INTERFACE, build_one, &b);
	if (error == 0)
		error = check_all(&b);
	if (error == 0) {
		*out = snapshot_make(&b);
		error = *out == NULL ? object_error(ENOMEM, "no memory for interfaces") : 0;
	}
	free(b.list);
	return error;
}

static void snapshot_free(const struct interfaces *s)
{
	if (s != &nothing)
		free((void *)(uintptr_t)s);
}

static void publish(const struct interfaces *s)
{
	const struct interfaces *old = table.now;

	next_hops_refresh(s);
	__atomic_store_n(&table.now, s, __ATOMIC_RELEASE);
	__atomic_store_n(&ip_local_filter, &s->filter, __ATOMIC_RELEASE);
	ip_ways_changed();
	control_synchronize();
	snapshot_free(old);
	for (uint32_t i = 0; i < table.watches; i++)
		table.watch[i]();
}

void interface_watch(void (*fn)(void))
{
	if (table.watches < MAX_WATCHES)
		table.watch[table.watches] = fn;
	table.watches++; // too many is found when the engine starts
}

static int start(const struct api_engine *engine)
{
	return table.watches <= MAX_WATCHES
		       ? 0
		       : object_error(ENOSPC, "more than %d modules watch interfaces", MAX_WATCHES);
}

RTE_INIT(interface_start)
{
	module_register(start);
}

static int stage(struct object_change *c)
{
	const struct api_interface *want = c->body;

	// Endpoints of network instances are addresses of interfaces in one VRF.
	if (want != NULL && c->old_body != NULL)
		c->narrows = memcmp(want, c->old_body, sizeof(*want)) != 0;
	else
		c->narrows = want != NULL && (want->vrf[0] != 0 || (table.now->vrfs & ~1ull) != 0);
	return c->body == NULL ? 0 : check(c->key, c->body, c->length);
}

static void commit(struct object_change *c)
{
}

static int finish_stage(void)
{
	struct interfaces *s;
	int error = snapshot_build(&s);

	if (error != 0)
		return error;
	table.next = s;
	error = routes_plan();
	if (error != 0) {
		snapshot_free(table.next);
		table.next = NULL;
	}
	return error;
}

static void finish_discard(void)
{
	routes_forget();
	if (table.next != NULL)
		snapshot_free(table.next);
	table.next = NULL;
}

static void finish_commit(void)
{
	const struct interfaces *s = table.next;

	table.next = NULL;
	publish(s);
	routes_apply();
}

static const struct object_ops interface_ops = {
	OBJECT_OF_ONE(API_INTERFACE, "interface", struct api_interface),
	.stage = stage,
	.commit = commit,
	.finish_stage = finish_stage,
	.finish_discard = finish_discard,
	.finish_commit = finish_commit,
	.verify = check,
};
OBJECT_REGISTER(interface_ops)
