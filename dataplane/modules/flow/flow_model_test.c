// SPDX-License-Identifier: Apache-2.0
// The fast path against the full nodes: random sessions that change, random vectors of good and bad packets. Each
// vector passes twice from the same state, with all entries forgotten and with those that earlier packets left: what
// leaves, every counter, meter and URR are the same, and packets of one flow keep their order.
#include "flow/flow.h"
#include "meter/meter.h"
#include "session/mobile_fixture.h"
#include "usage/usage.h"

#define SESSIONS 24
#define MOST 24 // packets of a vector
#define ROUNDS 6000
#define STATES 1024
#define METERS 256

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % below;
}

// ---- sessions -------------------------------------------------------------------------------------------------------

enum kind { UPF, SGW, FILTERS, KINDS };
static uint8_t kinds[SESSIONS];

static void set_rates(struct api_qer *q)
{
	static const char *const policer[] = {"", "slow", "fast", "remark"};

	q->flags = draw(4) ? 0 : API_QER_RQI;
	snprintf(q->uplink_policer, sizeof(q->uplink_policer), "%s", policer[draw(4)]);
	snprintf(q->downlink_policer, sizeof(q->downlink_policer), "%s", policer[draw(4)]);
	q->gate_uplink = draw(12) == 0;
	q->gate_downlink = draw(12) == 0;
}

// A QER for each PDR; one that all have, as for a session's AMBR; URRs that all have, and a threshold now and then.
static void add_rates(struct kit_mobile *k)
{
	uint32_t urrs = draw(4) ? draw(2) : 2 + draw(2);

	for (uint16_t i = 0; i < k->s.pdrs; i++) {
		set_rates(kit_qer(k, 1 + i, draw(2) ? (uint8_t)draw(64) : 0));
		kit_pdr_qer(&k->pdr[i], 1 + i);
	}
	if (draw(3) == 0) {
		set_rates(kit_qer(k, 60, 0));
		for (uint16_t i = 0; i < k->s.pdrs; i++)
			kit_pdr_qer(&k->pdr[i], 60);
	}
	for (uint32_t u = 1; u <= urrs; u++) {
		struct api_urr *urr = kit_urr(k, u);

		urr->flags = draw(4) ? 0 : API_URR_BEFORE_QOS;
		urr->triggers = draw(4) ? 0 : API_URR_VOLTH;
		urr->volume_threshold[API_TOTAL] = urr->triggers ? 2000 : 0;
		for (uint16_t i = 0; i < k->s.pdrs; i++)
			kit_pdr_urr(&k->pdr[i], u);
	}
}

// Dedicated flows: further PDRs of the same keys, by ports or by QFI.
static void add_flows(struct kit_mobile *k, uint32_t n)
{
	for (uint32_t i = 0; i < draw(4); i++) {
		int up = draw(2), ue = kinds[n] != SGW;
		struct api_pdr *p = !ue && !up ? kit_pdr_fteid(k, API_FROM_CORE, "10.9.0.1", 0x300 + n, 2)
				    : up       ? kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1", 0x100 + n, 1)
					       : kit_pdr_ue(k, API_FROM_CORE, "core", 2);
		p->match |= up && ue ? API_PDR_UE_IP : 0;
		p->precedence = 10 + i;
		if (up && draw(3) == 0) {
			p->match |= API_PDR_QFI;
			p->qfis = 0xff00ff;
			continue;
		}
		struct api_sdf *f = kit_sdf(k, p);
		f->flags = API_SDF_PROTOCOL | (draw(8) ? 0 : API_SDF_TOS);
		f->protocol = 17;
		f->remote_port[0] = (uint16_t)(up ? 5000 : 4000);
		f->remote_port[1] = (uint16_t)(f->remote_port[0] + draw(2));
	}
}

static void random_far(struct kit_mobile *k, uint32_t i)
{
	k->far[i].pdu_type = (uint8_t)draw(3);
	if (draw(6) == 0)
		k->far[i].dscp = 46;
	if (draw(12) == 0)
		k->far[i].action = API_FAR_DROP;
}

static void put_random(uint32_t n)
{
	static struct kit_mobile k;
	char name[16], ue4[32], ue6[64];

	snprintf(name, sizeof(name), "s%u", n);
	snprintf(ue4, sizeof(ue4), "10.45.0.%u", n);
	snprintf(ue6, sizeof(ue6), "2001:db8:1:%x::/64", n);
	kinds[n] = (uint8_t)draw(KINDS);
	kit_mobile(&k, n + 1, draw(8) ? ue4 : NULL, draw(2) ? ue6 : NULL);
	if (k.s.ue_ip4.family == 0 && k.s.ue_ip6.family == 0)
		k.s.ue_ip4 = kit_address(ue4);
	if (kinds[n] == SGW) {
		kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x100 + n, 1);
		kit_pdr_fteid(&k, API_FROM_CORE, "10.9.0.1", 0x300 + n, 2);
		kit_far_gtpu(&k, 1, API_FROM_CORE, draw(8) ? "peer" : "peer6", 0x400 + n);
	} else {
		kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x100 + n, 1)->match |= API_PDR_UE_IP;
		kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
		kit_far_ip(&k, 1, API_FROM_CORE, "core");
	}
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, draw(8) ? "gnb" : "gnb6", 0x200 + n);
	if (draw(2))
		add_flows(&k, n);
	random_far(&k, 0);
	random_far(&k, 1);
	if (draw(6) == 0)
		k.pdr[0].outer_header_removal = API_REMOVAL_CONTAINER;
	if (kinds[n] == FILTERS) {
		struct api_sdf *f = kit_sdf(&k, &k.pdr[1]);

		f->flags = API_SDF_PROTOCOL;
		f->protocol = 17;
	}
	add_rates(&k);
	kit_begin();
	kit_put_mobile(name, &k);
	commit();
}

static void put_policer(const char *name, uint64_t rate, uint8_t yellow)
{
	struct api_policer p = {
		.type = draw(2) ? API_TRTCM : API_SRTCM, .cir = rate, .pir = 2 * rate, .cbs = 3000, .pbs = 6000};

	p.action[RTE_COLOR_YELLOW] = yellow;
	p.dscp[RTE_COLOR_YELLOW] = 8;
	p.action[RTE_COLOR_RED] = API_COLOUR_DROP;
	kit_put(API_POLICER, name, &p, sizeof(p));
}

static void put_policers(void)
{
	kit_begin();
	put_policer("slow", 20000, API_COLOUR_PASS);
	put_policer("fast", 100000000, API_COLOUR_PASS);
	put_policer("remark", 40000, API_COLOUR_REMARK);
	commit();
}

// Who has the addresses of the data network: a UE of a new pool, we, a host that is guarded, or others.
static void change_owners(void)
{
	struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	struct api_instance peers = kit_instance_body("n9", "10.9.0.1", API_LOOKUP_NONE, NULL);

	core.pool[core.pools++] = kit_address("2001:db8:1::/48");
	if (draw(3) == 0)
		core.pool[core.pools++] = kit_address("203.0.113.0/24");
	peers.guard[peers.guarded++] = kit_address(draw(3) ? "10.40.0.1" : "203.0.113.7");
	peers.guard[peers.guarded++] = kit_address(draw(3) ? "2001:db8:40::1" : "2001:db8:fffe::1");
	peers.endpoint[peers.endpoints++] = kit_address("fd00:9::1");
	kit_begin();
	kit_put(API_INSTANCE, "core", &core, sizeof(core));
	kit_put(API_INSTANCE, "peers", &peers, sizeof(peers));
	struct api_interface n6 = {.port = "internet", .count = draw(3) ? 2 : 3};
	n6.address[0] = kit_address("192.0.2.1/24");
	n6.address[1] = kit_address("2001:db8:6::1/64");
	n6.address[2] = kit_address("203.0.113.7/32");
	kit_put(API_INTERFACE, "n6", &n6, sizeof(n6));
	commit();
}

// Something changes: a session, all policers, a neighbour, owners of addresses.
static void change(void)
{
	static const uint8_t other[6] = {2, 0, 0, 0, 0xee, 9};
	uint32_t what = draw(12);

	if (what == 0) {
		put_policers();
	} else if (what > 9) {
		change_owners();
	} else if (what == 1) {
		kit_begin();
		kit_neighbour("n3", "10.1.0.2", draw(2) ? mac_gnb : other);
		commit();
	} else if (what == 2) {
		kit_begin();
		fixture_instances(0, draw(2) ? API_INSTANCE_PIN_PEER : 0);
		commit();
	} else {
		put_random(1 + draw(SESSIONS - 1));
	}
}

// ---- packets --------------------------------------------------------------------------------------------------------

struct sent {
	struct frame f;
	const char *port;
};
static struct sent sent[MOST];

static uint8_t random_class(void)
{
	return (uint8_t)(draw(4) ? 2 : draw(256));
}

static void set_class(uint8_t *ip, uint8_t class)
{
	if (ip[0] >> 4 == 4)
		ip[1] = class;
	else
		ip[0] = (uint8_t)(0x60 | class >> 4), ip[1] = (uint8_t)(class << 4);
}

static const char *far_address(int six, uint32_t n)
{
	static const char *const list[2][6] = {
		{FAR4, "203.0.113.7", "10.45.0.3", "10.1.0.1", "10.40.0.1", "169.254.1.1"},
		{FAR6, "2001:db8:fffe::1", "2001:db8:1:3::5", "fd00:1::1", "2001:db8:40::1", "fe80::5"}};

	return list[six][draw(4) ? n % 2 : draw(6)];
}

// A small fault of the IP header at f->at. Outer ones are no fragments, for what waits for its rest is not of one
// vector. The destination stays, since another is of another flow.
static void disturb(struct frame *f, int outer)
{
	uint8_t *ip = f->at;
	uint32_t at = draw(40);

	switch (draw(24)) {
	case 0:
		ip[ip[0] >> 4 == 4 ? 8 : 7] = (uint8_t)draw(3); // TTL
		break;
	case 1:
		ip[6] |= outer ? 0 : 0x20; // more fragments
		break;
	case 2:
		ip[3] ^= (uint8_t)draw(4);
		break;
	case 3:
		ip[at] ^= (uint8_t)(at >= (ip[0] >> 4 == 6 ? 24u : 16u) || (outer && (at == 6 || at == 7))
					    ? 0
					    : 1 << draw(8));
		break;
	}
	if (ip[0] >> 4 == 4 && draw(40))
		frame_ip4_sum(f);
}

#define MAGIC 0xf10f10f1u

// Neighbour discovery, in front of the payload: with an extension header or without.
static uint8_t discovery(struct frame *f)
{
	static const uint8_t solicitation[8] = {135}, options[8] = {58, 0, 1, 4};

	memcpy(frame_push(f, 8), solicitation, 8);
	if (draw(2))
		return 58;
	memcpy(frame_push(f, 8), options, 8);
	return 0;
}

// The payload begins with MAGIC, flow and number, so that order can be compared.
static void make_packet(struct sent *s, uint32_t number)
{
	uint32_t n = 1 + draw(SESSIONS - 1), up = draw(2), six = draw(3) == 0, size = 20 + draw(draw(20) ? 200 : 1460);
	uint32_t other = draw(16) ? n : 1 + draw(SESSIONS - 1);
	char ue[64];

	snprintf(ue, sizeof(ue), six ? "2001:db8:1:%x::77" : "10.45.0.%u", other);
	frame_payload(&s->f, size);
	int tunnelled = up || kinds[n] == SGW;
	store32(s->f.at, MAGIC);
	store32(s->f.at + 4, (tunnelled ? n : other) << 8 | up << 4 | six);
	store32(s->f.at + 8, number);
	uint8_t protocol = 17;
	if (six && draw(20) == 0)
		protocol = discovery(&s->f);
	else
		frame_udp(&s->f, (uint16_t)(4000 + draw(2)), (uint16_t)(draw(20) ? 5000 + draw(3) : 2152));
	const char *away = far_address((int)six, number);
	frame_ip(&s->f, up ? ue : away, up ? away : ue, protocol);
	set_class(s->f.at, random_class());
	disturb(&s->f, 0);
	s->port = up ? "ran" : kinds[n] == SGW ? "peers" : "internet";
	if (tunnelled) {
		frame_gtpu(
			&s->f, (up ? 0x100 : 0x300) + n + (draw(60) ? 0 : 0x1000), draw(3) ? (uint8_t)draw(64) : 0xff);
		if ((s->f.at[0] & 4) && draw(2))
			s->f.at[13] = 0x10;
		if (draw(30) == 0)
			s->f.at[draw(4)] ^= (uint8_t)(1 << draw(8));
		frame_udp(&s->f, 2152, draw(60) ? 2152 : 2153);
		frame_ip(&s->f, up ? "10.1.0.2" : "10.9.0.2", up ? "10.1.0.1" : "10.9.0.1", 17);
		set_class(s->f.at, random_class());
		disturb(&s->f, 1);
	}
	link_layer(&s->f, s->port, 1);
	if (draw(60) == 0)
		frame_append(&s->f, NULL, 1 + draw(20));
	if (draw(60) == 0)
		s->f.length -= draw(30);
}

// ---- what became of a vector ----------------------------------------------------------------------------------------

#define WORDS 4096
#define MOST_OUT (8 * MOST)

struct left {
	uint8_t port;
	uint32_t length;
	uint8_t bytes[2048];
};

static uint32_t states, usages; // of the pools, those that are used: low ones come first

// What workers write.
struct written {
	struct rule_state state[STATES];
	struct usage_state usage[STATES];
	struct meter_state meter[METERS];
};

static struct outcome {
	uint64_t words[WORDS];
	uint32_t counters, count;
	struct left left[MOST_OUT];
	struct written written;
} full, fast;

static void save(struct written *to)
{
	memcpy(to->state, session_pools.state, states * sizeof(to->state[0]));
	memcpy(to->usage, usage_pools.state, usages * sizeof(to->usage[0]));
	memcpy(to->meter, meter_states, sizeof(to->meter));
}

static void restore(const struct written *from)
{
	memcpy(session_pools.state, from->state, states * sizeof(from->state[0]));
	memcpy(usage_pools.state, from->usage, usages * sizeof(from->usage[0]));
	memcpy(meter_states, from->meter, sizeof(from->meter));
}

// Identifications follow the order of the nodes: they are made equal, after a check of the sum.
static void keep(struct outcome *o, uint8_t port, const struct kit_frame *k)
{
	struct left *l = &o->left[o->count++];

	assert_true(o->count <= MOST_OUT && k->length <= sizeof(l->bytes));
	l->port = port;
	l->length = k->length;
	memcpy(l->bytes, k->bytes, k->length);
	if (load16(l->bytes + 12) == 0x0800 && port != 2) {
		assert_true(ip4_checksum_ok(l->bytes + 14));
		memset(l->bytes + 18, 0, 2);
		memset(l->bytes + 24, 0, 2);
	}
	if (load16(l->bytes + 12) == 0x86dd && l->bytes[20] == 44)
		memset(l->bytes + 58, 0, 4);
}

static uint32_t flow_of(const struct left *l)
{
	for (uint32_t at = 0; at + 8 <= l->length; at++)
		if (load32(l->bytes + at) == MAGIC)
			return load32(l->bytes + at + 4);
	return 0;
}

// By flow, the order within a flow as it was (insertion sort).
static void sort_by_flow(struct outcome *o)
{
	for (uint32_t i = 1; i < o->count; i++)
		for (uint32_t k = i; k > 0 && (flow_of(&o->left[k]) < flow_of(&o->left[k - 1])); k--) {
			static struct left swap;

			swap = o->left[k];
			o->left[k] = o->left[k - 1];
			o->left[k - 1] = swap;
		}
}

static void run(struct outcome *o, uint32_t n)
{
	memset(o->words, 0, sizeof(o->words));
	o->count = 0;
	worker_get(0)->identification = 1;
	kit_clear();
	kit_count_words(o->words, WORDS, -1ull);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(kit_send(sent[i].port, sent[i].f.at, sent[i].f.length), 0);
	kit_run();
	o->counters = kit_count_words(o->words, WORDS, 1);
	for (uint8_t p = 0; p < 3; p++)
		for (uint32_t i = 0; i < kit_count(fixture_port[p]); i++)
			keep(o, p, kit_frame(fixture_port[p], i));
	sort_by_flow(o);
	assert_true(kit_balance());
	save(&o->written);
}

static void forget_all(void)
{
	for (uint32_t i = 0; i < states; i++)
		session_pools.state[i].key = 0;
}

static void compare(uint32_t round)
{
	const struct written *a = &full.written, *b = &fast.written;

	assert_int_equal(full.counters, fast.counters);
	for (uint32_t i = 0; i < full.counters; i++)
		if (full.words[i] != fast.words[i])
			fail_msg("round %u: %s (word %u) rose by %ld, by the full nodes %ld", round,
				i < reason_count() ? reason_get((uint16_t)i)->name : "a counter", i, fast.words[i],
				full.words[i]);
	if (full.count != fast.count)
		fail_msg("round %u: %u frames left, by the full nodes %u", round, fast.count, full.count);
	for (uint32_t i = 0; i < full.count; i++)
		if (full.left[i].port != fast.left[i].port || full.left[i].length != fast.left[i].length ||
			memcmp(full.left[i].bytes, fast.left[i].bytes, full.left[i].length) != 0)
			fail_msg("round %u: frame %u of flow %x differs", round, i, flow_of(&full.left[i]));
	for (uint32_t i = 0; i < states; i++)
		if (memcmp(&a->state[i].meter, &b->state[i].meter, sizeof(struct meter)) != 0 ||
			memcmp(&a->state[i].forwarded, &b->state[i].forwarded, sizeof(struct rule_counts)) != 0)
			fail_msg("round %u: meter or counters of state %u differ", round, i);
	if (memcmp(a->usage, b->usage, sizeof(a->usage)) != 0)
		fail_msg("round %u: URRs differ", round);
	for (uint32_t i = 0; i < METERS; i++)
		if (memcmp(&a->meter[i].meter, &b->meter[i].meter, sizeof(struct meter)) != 0 ||
			a->meter[i].policed != b->meter[i].policed)
			fail_msg("round %u: meter %u in common differs", round, i);
}

static void as_the_full_nodes(void **unused)
{
	static struct written before_both;
	const char *more = getenv("FLOW_MODEL_ROUNDS"); // a longer run
	uint32_t rounds = more != NULL ? (uint32_t)strtoul(more, NULL, 10) : ROUNDS;
	uint64_t sent_all = 0, before = kit_node_packets("core-input");

	for (uint32_t round = 0; round < rounds; round++) {
		uint32_t n = 1 + draw(MOST);

		if (draw(24) == 0)
			change();
		kit_advance(1000000 / (1 + draw(20)));
		for (uint32_t i = 0; i < n; i++)
			make_packet(&sent[i], i);
		save(&before_both);
		forget_all();
		run(&full, n);
		restore(&before_both);
		kit_advance(0);
		run(&fast, n);
		// What asks for a neighbour does so once in two runs.
		if (full.words[reason_count() + KIT_HELD] == 0 && fast.words[reason_count() + KIT_HELD] == 0)
			compare(round);
		sent_all += n;
	}
	// The fast path had its share: of each second run some, of the first runs none.
	uint64_t slow = kit_node_packets("core-input") - before;
	print_message("%lu of %lu packets took the fast path\n", 2 * sent_all - slow, sent_all);
	assert_true(2 * sent_all - slow > sent_all / 10);
}

static int setup(void **unused)
{
	fixture_start(NULL);
	states = RTE_MIN(session_pools.rules, (uint32_t)STATES);
	usages = RTE_MIN(usage_pools.states, (uint32_t)STATES);
	put_policers();
	for (uint32_t n = 1; n < SESSIONS; n++)
		put_random(n);
	return 0;
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test(as_the_full_nodes)};

	return cmocka_run_group_tests(list, setup, NULL);
}
