// SPDX-License-Identifier: Apache-2.0
// As flow_model_test.c, with NAT44: mappings come, go, and are used by the fast path and the full nodes in turn.
// Subscribers are mobile, or wireline with an IP core side. The remaining mappings, blocks and subscribers are the same
// too.
#define WORKERS 1 // two draw their ports in another order
#include "flow/both_ways_test.h"
#include "instance/instance.h"
#include "nat/fixture_test.h"
#include "nat/nat.h"
#include <rte_random.h>

#define SESSIONS 20 // those up to INSIDE - 1 have inside addresses
#define INSIDE 16
#define ROUNDS 6000
#define OTHER "198.51.100.77"

static const uint8_t mac_access[6] = {2, 0, 0, 0, 0x99, 3};

// The wireline ones: behind S-tag 100 and a C-tag of their own.
static int is_home(uint32_t n)
{
	return n % 4 == 3;
}

static const uint8_t *home_mac(uint32_t n)
{
	static uint8_t mac[6] = {2, 0, 0, 0, 0xdd};

	mac[5] = (uint8_t)n;
	return mac;
}

static const char *name_of(uint32_t n)
{
	static char name[16];

	snprintf(name, sizeof(name), "s%u", n);
	return name;
}

// ---- mappings: what is saved ----------------------------------------------------------------------------------------

static const struct nat *nat(void)
{
	return nat_of((uint16_t)instance_index("core"));
}

struct region {
	void *at;
	size_t length;
};

static uint32_t regions(struct region list[10])
{
	if (nat() == NULL)
		return 0;
	struct nat_table *t = nat()->table;
	struct nat_part *p = &t->part[0];
	uint32_t n = 0;

	assert_int_equal(p->map->spilled, 0);
	list[n++] = (struct region){t->slot, ((size_t)t->blocks << t->shift) * sizeof(*t->slot)};
	list[n++] = (struct region){t->block, t->blocks * sizeof(*t->block)};
	list[n++] = (struct region){t->bits, (size_t)t->blocks * t->words * 8};
	list[n++] = (struct region){t->subscriber, t->sessions * sizeof(*t->subscriber)};
	list[n++] = (struct region){p, sizeof(*p)};
	list[n++] = (struct region){p->used, t->blocks * sizeof(*p->used)};
	list[n++] = (struct region){p->first_of, t->addresses * sizeof(*p->first_of)};
	list[n++] = (struct region){p->last_of, t->addresses * sizeof(*p->last_of)};
	list[n++] = (struct region){p->map, sizeof(*p->map)};
	list[n++] = (struct region){p->map->block, (p->map->mask + 1) * sizeof(*p->map->block)};
	return n;
}

static struct saved {
	uint8_t bytes[1 << 17];
	size_t length;
} saved[3];

// Both runs draw the same ports.
static void save_mappings(int which)
{
	struct region list[10];
	struct saved *s = &saved[which];

	s->length = 0;
	for (uint32_t i = 0, n = regions(list); i < n; i++) {
		assert_true(s->length + list[i].length <= sizeof(s->bytes));
		memcpy(s->bytes + s->length, list[i].at, list[i].length);
		s->length += list[i].length;
	}
	if (which == BEFORE)
		rte_srand(saved[BEFORE].length);
}

static void restore_mappings(void)
{
	struct region list[10];
	const uint8_t *from = saved[BEFORE].bytes;

	for (uint32_t i = 0, n = regions(list); i < n; i++, from += list[i - 1].length)
		memcpy(list[i].at, from, list[i].length);
	rte_srand(saved[BEFORE].length);
}

static int same_mappings(void)
{
	struct region list[10];
	const uint8_t *a = saved[FULL].bytes, *b = saved[FAST].bytes;

	for (uint32_t i = 0, n = regions(list); i < n; a += list[i].length, b += list[i].length, i++)
		for (size_t k = 0; k < list[i].length; k++)
			if (a[k] != b[k]) {
				print_message("mappings: part %u differs at %zu\n", i, k);
				return 0;
			}
	return 1;
}

// ---- changes --------------------------------------------------------------------------------------------------------

static struct api_pdr *uplink_pdr(struct kit_mobile *k, uint32_t n)
{
	struct api_pdr *p = is_home(n) ? kit_pdr_ue(k, API_FROM_ACCESS, NULL, 1)
				       : kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1", 0x100 + n, 1);

	p->match |= is_home(n) ? API_PDR_ENDPOINT : API_PDR_UE_IP;
	return p;
}

static struct kit_mobile *home_session(uint32_t n)
{
	static struct kit_mobile k;
	char ue4[32], ue6[64];

	snprintf(ue4, sizeof(ue4), "10.45.0.%u", n);
	snprintf(ue6, sizeof(ue6), "2001:db8:1:%x::/64", n);
	kit_mobile(&k, n, ue4, ue6);
	k.s.encap = API_ENCAP_QINQ;
	k.s.outer_tpid = 0x88a8;
	k.s.s_tag = 100;
	k.s.c_tag = (uint16_t)n;
	memcpy(k.s.mac, home_mac(n), 6);
	snprintf(k.s.port, API_NAME, "access");
	uplink_pdr(&k, n);
	kit_pdr_ue(&k, API_FROM_CORE, "core", 2)->outer_header_removal = API_REMOVAL_NOTHING;
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	kit_far(&k, 2, API_FAR_FORWARD, API_FROM_ACCESS)->outer = API_OUTER_ENDPOINT;
	return &k;
}

// A dedicated flow each way, by a port.
static void add_flow(struct kit_mobile *k, uint32_t n)
{
	struct api_pdr *p = uplink_pdr(k, n);

	p->precedence = 10;
	struct api_sdf *f = kit_sdf(k, p);
	f->flags = API_SDF_PROTOCOL;
	f->protocol = 17;
	f->remote_port[0] = f->remote_port[1] = 5000;
	p = kit_pdr_ue(k, API_FROM_CORE, "core", 2);
	p->precedence = 10;
	f = kit_sdf(k, p);
	f->flags = API_SDF_PROTOCOL;
	f->protocol = 17;
	f->local_port[0] = f->local_port[1] = 4000;
}

static void put_random(uint32_t n)
{
	struct kit_mobile *k = is_home(n) ? home_session(n) : upf_session(n);

	if (draw(3) == 0)
		add_flow(k, n);
	if (draw(12) == 0 && !is_home(n)) // packets to it are routed
		kit_far_ip(k, 3, API_FROM_CORE, "core"), k->pdr[1].far = 3;
	if (draw(12) == 0)
		k->far[draw(2)].action = API_FAR_DROP;
	if (draw(6) == 0)
		k->far[0].dscp = 46;
	add_rates(k);
	k->s.worker = draw(WORKERS);
	put(name_of(n), k);
}

// Without homes, mobile subscribers are found by their addresses alone.
static void remove_homes(void)
{
	for (uint32_t n = 1; n < SESSIONS; n++) {
		if (!is_home(n))
			continue;
		kit_begin();
		kit_delete(API_SESSION, name_of(n));
		kit_commit(); // absent: it cannot be deleted
	}
}

static void put_random_nat(void)
{
	static struct api_nat n; // times and the number of blocks keep the mappings

	if (n.inside == 0 || draw(4) == 0)
		n = nat_body();
	n.inside_prefix[0] = kit_address("10.45.0.0/28");
	n.hold = draw(3);
	n.udp = 1 + draw(4);
	n.tcp = 2 + draw(4);
	n.tcp_transitory = n.icmp = 1 + draw(3);
	if (draw(8) == 0)
		n.mode = API_NAT_DETERMINISTIC;
	n.blocks = (uint16_t)(n.mode == API_NAT_DETERMINISTIC ? 1 : 1 + draw(3));
	if (draw(8) == 0)
		n.port[1] = (uint16_t)(1024 + 16 * (8 + draw(8)) - 1);
	put_nat(&n);
}

static void change(void)
{
	uint32_t what = draw(13);

	if (what == 12) {
		remove_homes();
	} else if (what < 3) {
		put_random_nat();
	} else if (what == 3) {
		put_policers();
	} else if (what == 4 && nat() != NULL) {
		kit_begin();
		kit_delete(API_NAT, "core");
		commit();
	} else if (what == 5) {
		kit_advance(2000000);
	} else if (what == 6) {
		put_path("gnb", "10.1.0.1", "10.1.0.2");
	} else {
		put_random(1 + draw(SESSIONS - 1));
	}
}

// ---- packets --------------------------------------------------------------------------------------------------------

struct end {
	char address[20];
	uint16_t port;
	uint8_t protocol;
};

static void set_end(struct end *e, uint32_t address, uint16_t port)
{
	address = rte_be_to_cpu_32(address);
	snprintf(e->address, sizeof(e->address), "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255,
		address & 255);
	e->port = port;
}

// An external end: of a mapping, of any port, or the last one again.
static struct end external(void)
{
	static struct end e;

	if (e.port != 0 && draw(3) == 0)
		return e;
	e = (struct end){.address = OUTSIDE, .port = (uint16_t)(1000 + draw(200)), .protocol = draw(2) ? 17 : 6};
	const struct nat_table *t = nat() != NULL ? nat()->table : NULL;

	for (uint32_t i = 0; t != NULL && i < 2000 && draw(30); i++) {
		uint32_t slot = draw(t->blocks << t->shift);
		const struct nat_slot *s = &t->slot[slot];

		if (s->protocol == 0)
			continue;
		set_end(&e, nat_block_of(t, slot)->outside, nat_port_of(t, slot));
		e.protocol = s->protocol;
		break;
	}
	return e;
}

static void add_transport(struct frame *f, uint8_t protocol, int is_up, uint16_t source, uint16_t destination)
{
	static const uint8_t flags[] = {16, 16, 16, 24, 2, 18, 17, 4, 20, 1};
	static const uint8_t query[2][4] = {{0, 14, 3, 9}, {8, 13, 3, 9}};

	if (protocol == 17) {
		frame_udp(f, source, destination);
	} else if (protocol == 6) {
		frame_tcp(f, source, destination);
		f->at[13] = flags[draw(RTE_DIM(flags))];
	} else if (protocol == 1) {
		uint8_t *icmp = frame_push(f, 8);
		icmp[0] = query[is_up][draw(10) ? draw(2) : draw(4)];
		store16(icmp + 4, is_up ? source : destination);
	} else {
		store16(frame_push(f, 12), source);
	}
}

// With a right checksum mostly; of UDP none at times.
static void add_sum(struct frame *f, uint8_t protocol)
{
	if (protocol != 1 && protocol != 6 && protocol != 17)
		return;
	uint16_t sum = l4_sum(f->at);
	if (protocol != 17 || draw(4))
		memcpy(f->at + 20 + l4_sum_at(protocol), &sum, 2);
	if (draw(30) == 0)
		f->at[20 + l4_sum_at(protocol)] ^= (uint8_t)(1 << draw(8));
}

// An ICMP error, from or to a subscriber, about a packet to or from it.
static void make_error(struct frame *f, int is_up, const char *from, const char *to, uint16_t port, uint8_t protocol)
{
	const char *inside = is_up && draw(4) ? "10.45.0.3" : from;

	frame_payload(f, 30);
	store32(f->at + 18, MAGIC);
	store32(f->at + 22, draw(1u << 31));
	add_transport(f, protocol, !is_up, is_up ? 53 : port, is_up ? port : 53);
	frame_ip(f, is_up ? FAR4 : to, is_up ? inside : FAR4, protocol);
	add_sum(f, protocol);
	frame_push(f, 8)[0] = (uint8_t)(draw(4) ? 3 : 11 + draw(2));
	frame_ip(f, from, to, 1);
	add_sum(f, 1);
}

static void add_link(struct frame *f, int is_up, uint32_t n)
{
	if (is_up && is_home(n)) {
		frame_ethernet(f, mac_access, home_mac(n), f->at[0] >> 4 == 6 ? 0x86dd : 0x0800);
		frame_tag(f, 0x8100, (uint16_t)n);
		frame_tag(f, 0x88a8, 100);
		return;
	}
	if (is_up) {
		tunnel(f, "10.1.0.2", "10.1.0.1", 0x100 + n, draw(3) ? 9 : 0xff, API_PDU_UL);
		if (draw(8) == 0) {
			set_class(f->at, random_class());
			frame_ip4_sum(f);
		}
	}
	link_layer(f, is_up ? "ran" : "internet", 1);
}

// Packets without a translated address, beside the others.
static void make_six(struct sent *s, uint32_t number, uint32_t n, int is_up)
{
	char ue6[64];

	snprintf(ue6, sizeof(ue6), "2001:db8:1:%x::77", n);
	frame_payload(&s->f, 20 + draw(200));
	store32(s->f.at, MAGIC);
	store32(s->f.at + 4, n << 12 | (uint32_t)is_up << 8 | 0x41);
	store32(s->f.at + 8, number);
	frame_udp(&s->f, (uint16_t)(is_up ? 4000 : 5000), (uint16_t)(is_up ? 5000 : 4000));
	frame_ip(&s->f, is_up ? ue6 : FAR6, is_up ? FAR6 : ue6, 17);
	set_class(s->f.at, random_class());
	if (draw(2))
		frame_options(&s->f, 8 * (1 + draw(OPTIONS_MOST / 8)));
	disturb(&s->f, 0);
}

// The payload begins with MAGIC, flow and number. All of a vector go one way, and subscribers' by one port: packets of
// one mapping on different ways have no order. Later fragments follow a first one of their vector.
static void make_packet(struct sent *s, uint32_t number)
{
	static struct end first;
	static uint16_t identification;
	static uint32_t direction, mends, of_homes;
	direction = number == 0 ? draw(2) : direction;
	mends = number == 0 ? draw(4) == 0 : mends;
	of_homes = number == 0 ? draw(2) : of_homes;
	first.port = number == 0 ? 0 : first.port;
	uint32_t n = 1 + draw(SESSIONS - 1), is_up = direction, size = 20 + draw(draw(20) ? 200 : 1460);
	while (is_up && is_home(n) != (int)of_homes)
		n = 1 + draw(SESSIONS - 1);
	s->port = !is_up ? "internet" : of_homes ? "access" : "ran";
	if (draw(8) == 0) {
		make_six(s, number, n, (int)is_up);
		add_link(&s->f, (int)is_up, n);
		return;
	}
	uint8_t protocol = (uint8_t)(draw(8) ? (draw(2) ? 17 : 6) : draw(2) ? 1 : 132);
	uint16_t port = (uint16_t)(4000 + draw(draw(4) ? 3 : 40));
	struct end to = {.address = FAR4, .port = (uint16_t)(5000 + draw(2))};
	int later = !is_up && first.port != 0 && mends && draw(4) == 0;
	char ue_address[20];

	if ((!is_up && !later) || draw(10) == 0)
		to = external();
	if (!is_up)
		protocol = draw(30) ? to.protocol : protocol;
	if (!is_up && draw(20) == 0) // an inside address, or another's
		snprintf(to.address, sizeof(to.address), "10.45.0.%u", n), to.port = (uint16_t)n;
	if (later)
		to = first, protocol = to.protocol;
	snprintf(ue_address, sizeof(ue_address), "10.45.0.%u", draw(20) ? n : 1 + draw(SESSIONS - 1));
	const char *away = draw(8) ? FAR4 : OTHER;
	frame_payload(&s->f, size);
	store32(s->f.at, MAGIC);
	store32(s->f.at + 4, (is_up ? n : to.port) << 12 | (uint32_t)(to.address[10] & 3) << 10 |
				     (uint32_t)(atoi(to.address) == 203) << 9 | is_up << 8 | protocol);
	store32(s->f.at + 8, number);
	const char *from = is_up ? ue_address : later ? FAR4 : away;
	add_transport(&s->f, protocol, (int)is_up, is_up ? port : 53, to.port);
	frame_ip(&s->f, from, to.address, protocol);
	add_sum(&s->f, protocol);
	if (!later && draw(16) == 0)
		make_error(&s->f, (int)is_up, from, to.address, is_up ? port : to.port, protocol);
	set_class(s->f.at, random_class());
	store16(s->f.at + 4, (uint16_t)draw(65536));
	if (draw(8) == 0)
		s->f.at[6] |= 0x40;
	disturb(&s->f, 0);
	if (mends)
		store16(s->f.at + 6, draw(8) == 0 ? 0x2000 : 0);
	if (later) {
		store16(s->f.at + 4, identification);
		s->f.at[7] = 100;
	} else if (!is_up && (s->f.at[6] & 0x20) && away[11] == '9') {
		first = to;
		first.protocol = protocol;
		identification = load16(s->f.at + 4);
	}
	frame_ip4_sum(&s->f);
	if (draw(60) == 0)
		s->f.at[10] ^= 1;
	add_link(&s->f, (int)is_up, n);
	if (!is_up && draw(30) == 0)
		frame_append(&s->f, NULL, 1 + draw(20));
}

static void as_the_full_nodes(void **unused)
{
	static const struct both_ways how = {.ports = {"ran", "peers", "internet", "access"},
		.outer = 1u << 0,
		.node = {"core-input", "access-input"},
		.change = change,
		.make = make_packet,
		.save = save_mappings,
		.restore = restore_mappings,
		.same = same_mappings,
		.rounds = ROUNDS};

	for (uint32_t n = 1; n < SESSIONS; n++)
		put_random(n);
	put_random_nat();
	both_ways(&how);
}

// Existing mappings of sessions with one PDR each way, and with several: UDP, TCP and ICMP queries.
static void takes_the_fast_path(void **unused)
{
	static const uint8_t protocol[] = {17, 6, 1};
	struct api_nat n = nat_body();

	put_nat(&n);
	for (uint32_t u = 1; u <= 2; u++) {
		struct kit_mobile *k = upf_session(u);
		if (u == 2)
			add_flow(k, u);
		put(u == 1 ? "s1" : "s2", k);
		for (uint32_t i = 0; i < RTE_DIM(protocol); i++) {
			struct external e = out(u, protocol[i], 4000, FAR4, 5000);
			for (uint32_t warm = 0; warm < 3; warm++) {
				out(u, protocol[i], 4000, FAR4, 5000);
				reaches(u, protocol[i], FAR4, 5000, &e, 4000);
			}
			uint64_t before = kit_node_packets("core-input");
			struct external again = out(u, protocol[i], 4000, FAR4, 5000);
			reaches(u, protocol[i], FAR4, 5000, &e, 4000);
			assert_true(same(&again, &e));
			assert_int_equal(kit_node_packets("core-input") - before, 0);
		}
		gone(u == 1 ? "s1" : "s2");
	}
}

static int setup(void **unused)
{
	struct api_engine e = both_ways_engine();

	e.max_sessions = 256;
	fixture_start(&e);
	kit_begin();
	kit_port("access", API_ROLE_ACCESS);
	commit();
	put_policers();
	return 0;
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test(takes_the_fast_path), cmocka_unit_test(as_the_full_nodes)};

	return cmocka_run_group_tests(list, setup, NULL);
}
