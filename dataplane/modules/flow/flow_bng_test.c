// SPDX-License-Identifier: Apache-2.0
// Wireline subscribers with an IP core side on the fast path against the full nodes (both_ways_test.h). Random sessions
// in every encapsulation, nested prefixes, filters, meters, usage by family. Packets from homes, to homes, and between
// homes.
#include "access/bng_test.h"
#include "flow/both_ways_test.h"

#define HOMES 12
#define ROUNDS 6000

static struct bng bng_of(uint32_t home)
{
	return (struct bng){home, home % BNG_TAGS, home & 1};
}

// ---- sessions -------------------------------------------------------------------------------------------------------

// Further PDRs of the same keys, by ports, ToS or VLAN priority.
static void add_flows(struct kit_mobile *k)
{
	for (uint32_t i = 0; i < draw(4); i++) {
		int up = (int)draw(2);
		struct api_pdr *p = up ? kit_pdr_ue(k, API_FROM_ACCESS, NULL, BNG_UP)
				       : kit_pdr_ue(k, API_FROM_CORE, "internet", BNG_DOWN);

		p->precedence = 10 + i;
		p->match |= (up ? API_PDR_ENDPOINT : 0) | (draw(4) ? API_PDR_FRAMED : 0);
		if (draw(4) == 0) {
			p->match |= draw(2) ? API_PDR_UE4_ONLY : API_PDR_UE6_ONLY;
			continue;
		}
		struct api_sdf *f = kit_sdf(k, p);
		f->flags = API_SDF_PROTOCOL | (draw(8) ? 0 : API_SDF_TOS);
		f->protocol = 17;
		f->s_pcp = up && draw(8) == 0 ? (uint8_t)draw(256) : 0;
		f->remote_port[0] = (uint16_t)(up ? 5000 : 4000);
		f->remote_port[1] = (uint16_t)(f->remote_port[0] + draw(2));
	}
}

// A network inside that of the neighbour.
static void add_inside(struct kit_mobile *k, uint32_t home)
{
	char text[64];

	snprintf(text, sizeof(text), "203.0.113.%u/31", 8 * (home ^ 1) + 4);
	kit_framed_route(k, text);
	snprintf(text, sizeof(text), "2001:db8:f00%x:8000::/56", home ^ 1);
	kit_framed_route(k, text);
}

static void put_random(uint32_t home)
{
	static struct kit_mobile k;
	struct bng b = bng_of(home);

	bng_session(&k, &b);
	k.s.mru = draw(4) ? 0 : 600;
	if (draw(8) == 0)
		k.pdr[0].match &= (uint16_t) ~(API_PDR_UE_IP | API_PDR_FRAMED);
	if (draw(2))
		add_flows(&k);
	if (draw(3) == 0)
		add_inside(&k, home);
	for (int i = 0; i < 2; i++)
		if (draw(12) == 0)
			k.far[i].action = API_FAR_DROP;
	if (draw(6) == 0)
		k.far[0].dscp = 46;
	add_rates(&k);
	if (draw(2)) {
		kit_urr(&k, 9)->flags = API_URR_IP6;
		for (uint16_t i = 0; i < k.s.pdrs; i++)
			if (k.pdr[i].urrs < API_PDR_URRS)
				kit_pdr_urr(&k.pdr[i], 9);
	}
	k.s.worker = draw(WORKERS);
	bng_commit(gateway_home_name(home), &k);
}

static void change(void)
{
	uint32_t what = draw(10), home = 1 + draw(HOMES);

	if (what == 0) {
		put_policers();
	} else if (what == 1) {
		static const uint8_t other[6] = {2, 0, 0, 0, 0xee, 9};

		kit_begin();
		kit_neighbour("n6", "192.0.2.2", draw(2) ? gateway_router : other);
		commit();
	} else if (what == 2) {
		kit_begin();
		kit_delete(API_SESSION, gateway_home_name(home));
		kit_commit(); // absent: it cannot be deleted
	} else {
		put_random(home);
	}
}

// ---- packets --------------------------------------------------------------------------------------------------------

// An address of a home or in its networks, also where another's may be.
static const char *home_address(uint32_t home, int six)
{
	static char text[4][64];
	static unsigned next;
	char *t = text[next++ % 4];

	if (draw(2))
		return gateway_ue(home, six ? 6 : 4);
	if (six)
		snprintf(t, 64, "2001:db8:f00%x:%s::5", home, draw(2) ? "8000" : "12");
	else
		snprintf(t, 64, "203.0.113.%u", 8 * home + draw(8));
	return t;
}

static const char *far_address(int six)
{
	// None of them is a home's.
	static const char *const list[2][5] = {
		{"198.51.100.9", "203.0.113.200", "100.64.77.4", "192.0.2.1", "100.64.0.1"},
		{"2001:db8:ffff::9", "2001:db8:fffe::1", "2001:db8:1:77::5", "2001:db8:6::1", "fe80::5"}};

	return list[six][draw(8) ? draw(2) : draw(5)];
}

static void break_header(struct frame *f)
{
	if (draw(60) == 0)
		f->at[draw(30)] ^= (uint8_t)(1 << draw(8));
	if (draw(60) == 0) { // without its first tag
		uint8_t macs[12];

		memcpy(macs, f->at, 12);
		f->at += 4, f->length -= 4;
		memcpy(f->at, macs, 12);
	}
}

// Flows of other addresses have no order among them.
static uint32_t flow_number(const char *ue, const char *away)
{
	uint32_t h = 1;

	for (; *ue != 0; ue++)
		h = h * 31 + (uint8_t)*ue;
	for (; *away != 0; away++)
		h = h * 31 + (uint8_t)*away;
	return h;
}

static void make_packet(struct sent *s, uint32_t number)
{
	// Packets to a home from other homes and from the data network have no order, and meters and quotas depend on
	// it. So a vector has packets of one home, or to others, or all the rest.
	static uint32_t among_homes;
	if (number == 0)
		among_homes = draw(4) == 0 ? 1 + draw(HOMES) : 0;
	uint32_t home = among_homes ? among_homes : 1 + draw(HOMES), up = among_homes || draw(2), six = draw(3) == 0;
	uint32_t other = draw(16) ? home : 1 + draw(HOMES);
	const char *ue = home_address(other, (int)six);
	const char *away = among_homes && draw(2) ? home_address(1 + draw(HOMES), (int)six) : far_address((int)six);
	struct bng b = bng_of(home);

	frame_payload(&s->f, 20 + draw(draw(20) ? 200 : 1400));
	store32(s->f.at, MAGIC);
	store32(s->f.at + 4, flow_number(ue, away) ^ home << 8 ^ up << 4);
	store32(s->f.at + 8, number);
	if (draw(20) == 0)
		frame_tcp(&s->f, 4000, (uint16_t)(5000 + draw(2)));
	else
		frame_udp(&s->f, (uint16_t)(4000 + (draw(4) == 0)), (uint16_t)(draw(30) ? 5000 + (draw(4) == 0) : 67));
	frame_ip(&s->f, up ? ue : away, up ? away : ue, 17);
	set_class(s->f.at, random_class());
	disturb(&s->f, 0);
	s->port = up ? "access" : "internet";
	if (up) {
		bng_access(&s->f, &b, 1);
		if (b.tags != BNG_UNTAGGED && draw(4) == 0)
			s->f.at[14] |= (uint8_t)(draw(8) << 5);
		break_header(&s->f);
	} else {
		bng_internet(&s->f, 0);
	}
	if (draw(60) == 0)
		frame_append(&s->f, NULL, 1 + draw(20));
	if (draw(60) == 0)
		s->f.length -= draw(30);
}

static void as_the_full_nodes(void **unused)
{
	static const struct both_ways how = {.ports = {"access", "core", "internet"},
		.node = {"core-input", "access-input"},
		.change = change,
		.make = make_packet,
		.rounds = ROUNDS};

	both_ways(&how);
}

static int begin(void **unused)
{
	struct api_engine e = both_ways_engine();

	bng_start(&e);
	put_policers();
	for (uint32_t home = 1; home <= HOMES; home++)
		put_random(home);
	return 0;
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test(as_the_full_nodes)};

	return cmocka_run_group_tests(list, begin, NULL);
}
