// SPDX-License-Identifier: Apache-2.0
// Wireline subscribers on the fast path against the full nodes (both_ways_test.h): random sessions, access lists,
// meters and changes; packets from homes and to homes.
#include "flow/both_ways_test.h"
#include "testkit/gateway.h"
#include "wire/eth.h"
#include "wire/pppoe.h"
#include <stdio.h>

#define HOMES 8
#define ROUNDS 6000

static void commit(void)
{
	if (kit_commit() != 0)
		fail_msg("refused: %s", kit_error());
}

// ---- sessions -------------------------------------------------------------------------------------------------------

static struct api_pdr *uplink_pdr(struct kit_mobile *k)
{
	struct api_pdr *p = kit_pdr_ue(k, API_FROM_ACCESS, NULL, 1);

	p->match = API_PDR_ENDPOINT | (draw(8) ? API_PDR_UE_IP : 0);
	return p;
}

static struct api_pdr *downlink_pdr(struct kit_mobile *k, const struct kit_session *as)
{
	struct api_pdr *p = kit_pdr_fteid(k, API_FROM_CORE, "10.0.0.1", as->pdr[1].teid, 2);

	p->local = as->pdr[1].local;
	p->match |= draw(4) ? API_PDR_UE_IP : 0;
	return p;
}

// Further PDRs of the same keys, by ports, ToS, VLAN priority or QFI.
static void add_flows(struct kit_mobile *k, const struct kit_session *as)
{
	for (uint32_t i = 0; i < draw(4); i++) {
		int up = (int)draw(2);
		struct api_pdr *p = up ? uplink_pdr(k) : downlink_pdr(k, as);

		p->precedence = 10 + i;
		if (!up && draw(3) == 0) {
			p->match |= API_PDR_QFI;
			p->qfis = 0xff00ff;
			continue;
		}
		struct api_sdf *f = kit_sdf(k, p);
		f->flags = API_SDF_PROTOCOL | (draw(8) ? 0 : API_SDF_TOS);
		f->protocol = 17;
		f->s_pcp = up && draw(8) == 0 ? (uint8_t)draw(256) : 0;
		f->c_pcp = up && draw(8) == 0 ? (uint8_t)draw(256) : 0;
		f->remote_port[0] = (uint16_t)(up ? 5000 : 4000);
		f->remote_port[1] = (uint16_t)(f->remote_port[0] + draw(2));
	}
}

static void put_random(uint32_t home)
{
	static struct kit_mobile k;
	struct kit_session as = gateway_home(home);

	memset(&k, 0, sizeof(k));
	k.s = as.s;
	k.s.pdrs = k.s.fars = k.s.qers = 0;
	k.s.mru = draw(4) ? 0 : 600;
	uplink_pdr(&k);
	downlink_pdr(&k, &as);
	if (draw(3) == 0)
		kit_far_ip(&k, 1, API_FROM_CORE, NULL);
	else
		kit_far_gtpu(&k, 1, API_FROM_CORE, as.far[0].path, as.far[0].teid);
	kit_far(&k, 2, API_FAR_FORWARD, API_FROM_ACCESS)->outer = API_OUTER_ENDPOINT;
	if (draw(2))
		add_flows(&k, &as);
	for (int i = 0; i < 2; i++)
		if (draw(12) == 0)
			k.far[i].action = API_FAR_DROP;
	if (draw(6) == 0)
		k.far[0].dscp = 46;
	add_rates(&k);
	kit_begin();
	k.s.worker = draw(WORKERS);
	kit_put_mobile(gateway_home_name(home), &k);
	commit();
}

// ---- changes --------------------------------------------------------------------------------------------------------

static void put_list(const char *key)
{
	struct {
		struct api_acl head;
		struct api_acl_rule rule[3];
	} l = {.head = {.default_action = draw(8) ? API_PERMIT : API_DENY, .count = 3}};

	for (int i = 0; i < 3; i++) {
		struct api_acl_rule *r = &l.rule[i];

		*r = (struct api_acl_rule){.source_port = {0, UINT16_MAX},
			.destination_port = {(uint16_t)(4000 + 1000 * draw(2) + draw(3)), UINT16_MAX},
			.protocol = (uint8_t)(draw(4) ? 17 : 6),
			.protocol_mask = 0xff,
			.action = draw(4) ? API_PERMIT : API_DENY,
			.priority = draw(4)};
	}
	kit_begin();
	if (draw(4))
		kit_put(API_ACL, key, &l, sizeof(l));
	else
		kit_delete(API_ACL, key);
	kit_commit(); // absent: it cannot be deleted
}

// The data network's addresses become ours, or others'.
static void change_owners(void)
{
	struct api_interface n6 = {.port = "internet", .count = draw(3) ? 2 : 3};

	n6.address[0] = kit_address("192.0.2.1/24");
	n6.address[1] = kit_address("2001:db8:6::1/64");
	n6.address[2] = kit_address("203.0.113.7/32");
	kit_begin();
	kit_put(API_INTERFACE, "n6", &n6, sizeof(n6));
	commit();
}

static void change(void)
{
	static const uint8_t other[6] = {2, 0, 0, 0, 0xee, 9};
	uint32_t what = draw(13);

	if (what == 12) {
		put_path("upf4", "10.0.0.1", "10.0.0.2");
	} else if (what == 0) {
		put_policers();
	} else if (what < 4) {
		put_list(draw(2) ? "uplink" : "downlink");
	} else if (what == 4) {
		kit_begin();
		kit_neighbour("n3", "10.0.0.2", draw(2) ? gateway_upf : other);
		commit();
	} else if (what == 5) {
		change_owners();
	} else {
		put_random(1 + draw(HOMES));
	}
}

// ---- packets --------------------------------------------------------------------------------------------------------

static const char *far_address(int six, uint32_t n)
{
	static const char *const list[2][6] = {
		{"198.51.100.9", "203.0.113.7", "100.64.0.4", "10.0.0.1", "100.64.0.1", "169.254.1.1"},
		{"2001:db8:ffff::9", "2001:db8:fffe::1", "2001:db8:1:3::5", "fd00::1", "2001:db8:1::1", "fe80::5"}};

	return list[six][draw(8) ? n % 2 : draw(6)];
}

// Flips bits of the access header, so that it may match any session or none.
static void break_header(struct frame *f)
{
	if (draw(60) == 0)
		f->at[draw(30)] ^= (uint8_t)(1 << draw(8));
	if (draw(60) == 0) { // the other family (row G8)
		int pppoe = load16(f->at + 20) == ETH_TYPE_PPPOE_SESSION;
		uint8_t *type = f->at + (pppoe ? 28 : 20);

		store16(type, (uint16_t)(load16(type) ^ (pppoe ? PPP_IP4 ^ PPP_IP6 : ETH_TYPE_IP4 ^ ETH_TYPE_IP6)));
	}
	if (draw(60) == 0) { // one tag only
		uint8_t macs[12];

		memcpy(macs, f->at, 12);
		f->at += 4, f->length -= 4;
		memcpy(f->at, macs, 12);
	}
}

static uint8_t transport(struct frame *f)
{
	static const uint8_t echo[8] = {128}, lite[8] = {0x0f, 0xa0, 0x13, 0x88};

	switch (draw(20)) {
	case 0:
		frame_tcp(f, 4000, (uint16_t)(5000 + draw(2)));
		return 6;
	case 1:
		memcpy(frame_push(f, 8), echo, 8);
		return draw(2) ? 58 : 1;
	case 2:
		memcpy(frame_push(f, 8), lite, 8);
		return (uint8_t)(draw(2) ? 136 : 33);
	}
	uint16_t special = (uint16_t)(draw(2) ? 2152 : draw(2) ? 67 : 547);
	frame_udp(f, (uint16_t)(4000 + (draw(4) == 0)), (uint16_t)(draw(30) ? 5000 + (draw(4) == 0) : special));
	return 17;
}

// Of no session: to others, or to a home's address or to us, which only routes lead to here.
static void make_routed(struct sent *s, uint32_t number)
{
	uint32_t six = draw(3) == 0, core = draw(2);
	const char *to = far_address((int)six, number);
	size_t end = strlen(to) - 1;

	frame_payload(&s->f, 20 + draw(draw(20) ? 200 : 1500));
	store32(s->f.at, MAGIC);
	store32(s->f.at + 4, 0x100000 | (uint32_t)end << 12 | (uint32_t)to[end] << 4 | core << 1 | six); // each one's
	store32(s->f.at + 8, number);
	frame_udp(&s->f, 4000, 5000);
	frame_ip(&s->f, six ? "2001:db8:18::7" : "198.18.0.7", to, 17);
	set_class(s->f.at, random_class());
	disturb(&s->f, 0);
	s->port = core ? "core" : "internet";
	frame_ethernet(&s->f, gateway_mac[core ? 1 : 2], core ? gateway_upf : gateway_router, six ? 0x86dd : 0x0800);
}

static void make_packet(struct sent *s, uint32_t number)
{
	if (draw(8) == 0) {
		make_routed(s, number);
		return;
	}
	uint32_t home = 1 + draw(HOMES), up = draw(2), six = draw(3) == 0;
	uint32_t size = 20 + draw(draw(20) ? 200 : 1400), other = draw(16) ? home : 1 + draw(HOMES);
	const char *ue = gateway_ue(other, six ? 6 : 4), *away = far_address((int)six, number);

	frame_payload(&s->f, size);
	store32(s->f.at, MAGIC);
	store32(s->f.at + 4, home << 8 | up << 4 | six);
	store32(s->f.at + 8, number);
	uint8_t protocol = transport(&s->f);
	frame_ip(&s->f, up ? ue : away, up ? away : ue, protocol);
	set_class(s->f.at, random_class());
	disturb(&s->f, 0);
	s->port = up ? "access" : "core";
	if (up) {
		gateway_from_home(&s->f, home);
		for (uint32_t tag = 14; tag <= 18 && draw(4) == 0; tag += 4)
			s->f.at[tag] |= (uint8_t)(draw(8) << 5);
		break_header(&s->f);
	} else {
		uint32_t nobodys = draw(60) ? 0 : 0x1000;
		frame_gtpu(&s->f, 0x200 + home + nobodys, draw(3) ? (uint8_t)draw(64) : 0xff);
		if (draw(30) == 0)
			s->f.at[draw(4)] ^= (uint8_t)(1 << draw(8));
		int family = home % 2 == 0 && draw(40) ? 6 : 4;
		frame_udp(&s->f, 2152, draw(60) ? 2152 : 2153);
		frame_ip(&s->f, family == 4 ? "10.0.0.2" : "fd00::2", family == 4 ? "10.0.0.1" : "fd00::1", 17);
		set_class(s->f.at, random_class());
		disturb(&s->f, 1);
		if (nobodys && draw(2))
			add_options(&s->f);
		frame_ethernet(&s->f, gateway_mac[1], gateway_upf, family == 4 ? 0x0800 : 0x86dd);
	}
	if (draw(60) == 0)
		frame_append(&s->f, NULL, 1 + draw(20));
	if (draw(60) == 0)
		s->f.length -= draw(30);
}

static void as_the_full_nodes(void **unused)
{
	static const struct both_ways how = {.ports = {"access", "core", "internet"},
		.outer = 1u << 1,
		.node = {"core-input", "access-input"},
		.change = change,
		.make = make_packet,
		.rounds = ROUNDS};

	both_ways(&how);
}

static int setup(void **unused)
{
	struct api_engine e = both_ways_engine();

	gateway_start(&e);
	struct api_route r = {.prefix = kit_address("0.0.0.0/0"), .via = kit_address("192.0.2.2")};
	kit_begin();
	kit_put(API_ROUTE, "0.0.0.0/0", &r, sizeof(r));
	r = (struct api_route){.prefix = kit_address("::/0"), .via = kit_address("2001:db8:6::2")};
	kit_put(API_ROUTE, "::/0", &r, sizeof(r));
	commit();
	put_policers();
	for (uint32_t home = 1; home <= HOMES; home++)
		put_random(home);
	return 0;
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test(as_the_full_nodes)};

	return cmocka_run_group_tests(list, setup, NULL);
}
