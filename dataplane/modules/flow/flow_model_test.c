// SPDX-License-Identifier: Apache-2.0
// The fast path against the full nodes: random sessions that change, random vectors of good and bad packets. Each
// vector passes twice from the same state: with all entries forgotten, and with earlier packets' entries. Output,
// counters, meters and URRs are the same, and packets of a flow keep their order.
#include "flow/both_ways_test.h"
#include "session/mobile_fixture.h"

#define SESSIONS 24
#define ROUNDS 6000
#define OUTSIDE6 "2001:db8:8::/48"

// ---- sessions -------------------------------------------------------------------------------------------------------

enum kind { UPF, SGW, FILTERS, KINDS };
static uint8_t kinds[SESSIONS], outer6[SESSIONS]; // outer6: its packets come in over IPv6

// Sessions from here on belong to instance blue, whose interface n6b has its own VRF and VLAN on the data network's
// port. Its addresses, pools, UEs and routes repeat the others'.
#define BLUE (SESSIONS / 2)
#define BLUE_VLAN 7

static const char *core_of(uint32_t n)
{
	return n >= BLUE ? "blue" : "core";
}

static uint32_t ue_of(uint32_t n)
{
	return n % BLUE;
}

// Ends of session n's tunnel on its access or core side.
static const char *endpoint_of(uint32_t n, int from_access, int peers)
{
	static const char *const ends[2][2][2] = {{{"10.9.0.1", "10.9.0.2"}, {"10.1.0.1", "10.1.0.2"}},
		{{"fd00:9::1", "fd00:9::2"}, {"fd00:1::1", "fd00:1::2"}}};

	return ends[outer6[n]][from_access][peers];
}

// Dedicated flows: further PDRs of the same keys, by ports or by QFI.
static void add_flows(struct kit_mobile *k, uint32_t n)
{
	for (uint32_t i = 0; i < draw(4); i++) {
		int up = draw(2), ue = kinds[n] != SGW;
		struct api_pdr *p = !ue && !up ? kit_pdr_fteid(k, API_FROM_CORE, endpoint_of(n, 0, 0), 0x300 + n, 2)
				    : up       ? kit_pdr_fteid(k, API_FROM_ACCESS, endpoint_of(n, 1, 0), 0x100 + n, 1)
					       : kit_pdr_ue(k, API_FROM_CORE, core_of(n), 2);
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
	snprintf(ue4, sizeof(ue4), "10.45.0.%u", ue_of(n));
	snprintf(ue6, sizeof(ue6), "2001:db8:1:%x::/64", ue_of(n));
	kinds[n] = (uint8_t)draw(KINDS);
	outer6[n] = draw(3) == 0;
	kit_mobile(&k, n + 1, draw(8) ? ue4 : NULL, draw(2) ? ue6 : NULL);
	if (k.s.ue_ip4.family == 0 && k.s.ue_ip6.family == 0)
		k.s.ue_ip4 = kit_address(ue4);
	if (kinds[n] == SGW) {
		kit_pdr_fteid(&k, API_FROM_ACCESS, endpoint_of(n, 1, 0), 0x100 + n, 1);
		kit_pdr_fteid(&k, API_FROM_CORE, endpoint_of(n, 0, 0), 0x300 + n, 2);
		kit_far_gtpu(&k, 1, API_FROM_CORE, draw(8) ? "peer" : "peer6", 0x400 + n);
	} else {
		kit_pdr_fteid(&k, API_FROM_ACCESS, endpoint_of(n, 1, 0), 0x100 + n, 1)->match |= API_PDR_UE_IP;
		kit_pdr_ue(&k, API_FROM_CORE, core_of(n), 2);
		kit_far_ip(&k, 1, API_FROM_CORE, core_of(n));
	}
	kit_far_gtpu(&k, 2, API_FROM_ACCESS,
		draw(8)   ? (draw(4) ? "gnb" : "far")
		: draw(2) ? "gnb6"
			  : "far6",
		0x200 + n);
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
	k.s.worker = draw(WORKERS);
	kit_begin();
	kit_put_mobile(name, &k);
	commit();
}

// The data network's addresses become a new pool's UE's, ours, a guarded host's, or others'.
static void change_owners(void)
{
	struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	struct api_instance peers = kit_instance_body("n9", "10.9.0.1", API_LOOKUP_NONE, NULL);

	core.pool[core.pools++] = kit_address("2001:db8:1::/48");
	if (draw(3) == 0)
		core.pool[core.pools++] = kit_address("203.0.113.0/24");
	random_marks(core.qfi_dscp);
	peers.guard[peers.guarded++] = kit_address(draw(3) ? "10.40.0.1" : "203.0.113.7");
	peers.guard[peers.guarded++] = kit_address(draw(3) ? "2001:db8:40::1" : "2001:db8:fffe::1");
	peers.endpoint[peers.endpoints++] = kit_address("fd00:9::1");
	kit_begin();
	kit_put(API_INSTANCE, "core", &core, sizeof(core));
	kit_put(API_INSTANCE, "peers", &peers, sizeof(peers));
	static const uint32_t rpf[] = {0, 0, API_INTERFACE_RPF_LOOSE, API_INTERFACE_RPF_STRICT};
	struct api_interface n6 = {.port = "internet", .count = draw(3) ? 2 : 3, .flags = rpf[draw(4)]};
	n6.address[0] = kit_address("192.0.2.1/24");
	n6.address[1] = kit_address("2001:db8:6::1/64");
	n6.address[2] = kit_address("203.0.113.7/32");
	kit_put(API_INTERFACE, "n6", &n6, sizeof(n6));
	commit();
}

// The same of instance blue.
static void change_blue(void)
{
	static const char *const of_ours[] = {"203.0.113.7/32", "2001:db8:fffe::1/128", "10.40.0.1/32"};
	struct api_instance blue = kit_instance_body("n6b", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	struct api_interface n6b = {.port = "internet", .outer_vlan = BLUE_VLAN, .count = 2, .vrf = "blue"};
	static const uint32_t rpf[] = {0, 0, API_INTERFACE_RPF_LOOSE, API_INTERFACE_RPF_STRICT};

	n6b.flags = rpf[draw(4)];

	blue.pool[blue.pools++] = kit_address("2001:db8:1::/48");
	if (draw(3) == 0)
		blue.pool[blue.pools++] = kit_address("198.51.100.0/24");
	if (draw(2))
		blue.guard[blue.guarded++] = kit_address(draw(2) ? "203.0.113.7" : FAR6);
	random_marks(blue.qfi_dscp);
	n6b.address[0] = kit_address("192.0.2.1/24");
	n6b.address[1] = kit_address("2001:db8:6::1/64");
	if (draw(2))
		n6b.address[n6b.count++] = kit_address(of_ours[draw(3)]);
	kit_begin();
	kit_put(API_INTERFACE, "n6b", &n6b, sizeof(n6b));
	kit_put(API_INSTANCE, "blue", &blue, sizeof(blue));
	commit();
}

// `also`: a second next hop of equal cost, or NULL.
static void put_route(const char *prefix, const char *via, const char *also, int blue)
{
	struct {
		struct api_route r;
		struct api_route_hop further;
	} body = {.r = {.prefix = kit_address(prefix), .via = kit_address(via), .further = also != NULL}};
	struct api_route_hop *hop = &body.further;
	char key[API_NAME];

	if (also != NULL)
		hop->via = kit_address(also);
	snprintf(body.r.vrf, sizeof(body.r.vrf), "%s", blue ? "blue" : "");
	snprintf(key, sizeof(key), "%.20s%s", prefix, blue ? "|blue" : "");
	kit_put(API_ROUTE, key, &body, sizeof(body.r) + (also != NULL ? sizeof(*hop) : 0));
}

static void start_blue(void)
{
	static const uint8_t router[6] = {2, 0, 0, 0, 0xee, 7};

	change_blue();
	kit_begin();
	kit_neighbour("n6b", "192.0.2.2", router);
	kit_neighbour("n6b", "2001:db8:6::2", router);
	put_route("0.0.0.0/0", "192.0.2.2", NULL, 1);
	put_route("::/0", "2001:db8:6::2", NULL, 1);
	commit();
}

// Base stations to which two ways lead.
static void start_far(void)
{
	kit_begin();
	put_route("10.77.0.0/16", "10.1.0.2", "10.9.0.2", 0);
	put_route("fd00:77::/32", "fd00:1::2", "fd00:9::2", 0);
	kit_path("far", "10.1.0.1", "10.77.0.9");
	kit_path("far6", "fd00:1::1", "fd00:77::9");
	commit();
}

// UEs' IPv6 addresses are others outside, or the same.
static void change_nptv6(void)
{
	struct api_nptv6 n = {
		.pairs = 1, .inside = {kit_address("2001:db8:1::/48")}, .outside = {kit_address(OUTSIDE6)}};

	kit_begin();
	if (draw(2))
		kit_put(API_NPTV6, "core", &n, sizeof(n));
	else
		kit_delete(API_NPTV6, "core");
	kit_commit(); // absent: it cannot be deleted
}

// Where routed packets go: to the data network, to peers, or by the default route alone.
static void change_route(void)
{
	static const char *const prefix[2] = {"172.16.0.0/12", "2001:db8:172::/48"};
	static const char *const via[2][2] = {{"192.0.2.2", "10.9.0.2"}, {"2001:db8:6::2", "fd00:9::2"}};
	uint32_t six = draw(2), what = draw(4), blue = draw(2);
	char key[API_NAME];

	snprintf(key, sizeof(key), "%.20s%s", prefix[six], blue ? "|blue" : "");
	kit_begin();
	if (what < 2)
		put_route(prefix[six], via[six][blue ? 0 : what], NULL, (int)blue);
	else if (what == 2 && !blue)
		put_route(prefix[six], via[six][0], via[six][1], 0);
	else
		kit_delete(API_ROUTE, key);
	kit_commit(); // absent: it cannot be deleted
}

// Something changes: a session, all policers, a neighbour, paths, owners of addresses, a route.
static void change(void)
{
	static const uint8_t other[6] = {2, 0, 0, 0, 0xee, 9};
	uint32_t what = draw(18);

	if (what == 0) {
		put_policers();
	} else if (what == 17) {
		change_blue();
	} else if (what == 16) {
		change_nptv6();
	} else if (what == 13) {
		change_route();
	} else if (what == 14) {
		kit_begin();
		kit_neighbour(
			draw(2) ? "n6" : "n6b", draw(2) ? "192.0.2.2" : "2001:db8:6::2", draw(2) ? mac_router : other);
		commit();
	} else if (what == 12) {
		put_path("gnb", "10.1.0.1", "10.1.0.2");
		put_path("gnb6", "fd00:1::1", "fd00:1::2");
	} else if (what == 10 || what == 11) {
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

// Above 0: all packets of the vector come from this session, also those to other UEs. Packets to a UE from several
// sources have no order, and meters depend on it.
static uint32_t among_ues;

// `which`: packets to other UEs belong to other sessions, without order with the rest.
static const char *far_address(int six, uint32_t n, uint32_t *which)
{
	static const char *const list[2][7] = {
		{FAR4, "203.0.113.7", "10.45.0.3", "10.1.0.1", "10.40.0.1", "169.254.1.1", "10.45.0.4"},
		{FAR6, "2001:db8:fffe::1", "2001:db8:1:3::5", "fd00:1::1", "2001:db8:40::1", "fe80::5",
			"2001:db8:8:fffb::5"}};

	*which = draw(4) ? n % 2 : draw(7);
	if (!among_ues && (*which == 2 || *which == 6))
		*which = 0;
	return list[six][*which];
}

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

static int tagged; // the present packet comes by n6b
static uint32_t routed_alone; // 1 + port of a vector of packets that are routed, nearly all plain (router.c); 0: others

// A packet without a tunnel: to others, to an existing or absent UE, to us, to a guarded host.
static void make_routed(struct sent *s, uint32_t number)
{
	static const char *const list[2][8] = {
		{"172.16.0.9", FAR4, "203.0.113.7", "10.9.0.2", "10.45.200.1", "10.45.0.3", "10.40.0.1", "169.254.1.1"},
		{"2001:db8:172::9", FAR6, "2001:db8:fffe::1", "fd00:9::2", "2001:db8:1:fff::1", "2001:db8:1:3::5",
			"2001:db8:40::1", "fe80::5"}};
	static const char *const from[2][2] = {{"198.18.0.7", "169.254.7.7"}, {"2001:db8:18::7", "fe80::7"}};
	uint32_t odd = draw(routed_alone ? 40 : 4) == 0;
	uint32_t six = draw(3) == 0, to = odd ? draw(8) : draw(routed_alone ? 2 : 3),
		 port = routed_alone ? routed_alone - 1u : draw(3);

	frame_payload(&s->f, 20 + draw(draw(20) ? 200 : 1500));
	store32(s->f.at, MAGIC);
	tagged = port == 2 && draw(2);
	store32(s->f.at + 4, 0x100000 | (uint32_t)tagged << 16 | port << 8 | to << 1 | six);
	store32(s->f.at + 8, number);
	frame_udp(&s->f, 4000, (uint16_t)(draw(20) ? 5000 : 2152));
	frame_ip(&s->f, from[six][draw(30) == 0 && odd], list[six][to], 17);
	set_class(s->f.at, random_class());
	s->f.at[6] |= !six && draw(4) == 0 ? 0x40 : 0; // not to be fragmented
	if (!routed_alone || odd)
		disturb(&s->f, 0);
	else if (!six)
		frame_ip4_sum(&s->f);
	if (!six && draw(20) == 0)
		frame_options(&s->f, 4);
	s->port = fixture_port[port];
}

static void make_of_session(struct sent *s, uint32_t number);

// The payload begins with MAGIC, flow and number, so that order can be compared.
static void make_packet(struct sent *s, uint32_t number)
{
	if (number == 0) {
		routed_alone = draw(4) == 0 ? 1 + draw(2) : 0;
		among_ues = !routed_alone && draw(4) == 0 ? 1 + draw(SESSIONS - 1) : 0;
	}
	if (among_ues || (!routed_alone && draw(4)))
		make_of_session(s, number);
	else
		make_routed(s, number);
	link_layer(&s->f, s->port, 1);
	if (tagged)
		frame_tag(&s->f, 0x8100, BLUE_VLAN);
	if (draw(60) == 0)
		frame_append(&s->f, NULL, 1 + draw(20));
	if (draw(60) == 0)
		s->f.length -= draw(30);
}

static void make_of_session(struct sent *s, uint32_t number)
{
	uint32_t n = among_ues ? among_ues : 1 + draw(SESSIONS - 1), up = among_ues || draw(2);
	uint32_t six = draw(3) == 0, size = 20 + draw(draw(20) ? 200 : 1460);
	uint32_t other = draw(16) ? n : 1 + draw(SESSIONS - 1), ue_number = ue_of(other);
	char ue[64];

	uint32_t outside = six && !up && draw(2);
	snprintf(ue, sizeof(ue),
		outside ? "2001:db8:8:%x::77"
		: six   ? "2001:db8:1:%x::77"
			: "10.45.0.%u",
		outside ? (ue_number + 0xfff8) % 0xffff : ue_number); // its sum is 7 more than the inside prefix's
	uint32_t which;
	const char *away = far_address((int)six, number, &which);
	frame_payload(&s->f, size);
	int tunnelled = up || kinds[n] == SGW;
	tagged = !tunnelled && (other >= BLUE) != (draw(30) == 0);
	store32(s->f.at, MAGIC);
	store32(s->f.at + 4, (tunnelled ? n : (uint32_t)tagged * BLUE + ue_number) << 8 | outside << 5 | up << 4 | six |
				     (up && which > 1 ? which << 24 : 0));
	store32(s->f.at + 8, number);
	uint8_t protocol = 17;
	if (six && draw(20) == 0)
		protocol = discovery(&s->f);
	else
		frame_udp(&s->f, (uint16_t)(4000 + draw(2)), (uint16_t)(draw(20) ? 5000 + draw(3) : 2152));
	frame_ip(&s->f, up ? ue : away, up ? away : ue, protocol);
	set_class(s->f.at, random_class());
	disturb(&s->f, 0);
	s->port = up ? "ran" : kinds[n] == SGW ? "peers" : "internet";
	if (tunnelled) {
		uint32_t nobodys = draw(60) ? 0 : 0x1000;

		frame_gtpu(&s->f, (up ? 0x100 : 0x300) + n + nobodys, draw(3) ? (uint8_t)draw(64) : 0xff);
		if ((s->f.at[0] & 4) && draw(2))
			s->f.at[13] = 0x10;
		if (draw(30) == 0)
			s->f.at[draw(4)] ^= (uint8_t)(1 << draw(8));
		frame_udp(&s->f, 2152, draw(60) ? 2152 : 2153);
		if (draw(2))
			store16(s->f.at + 6, (uint16_t)draw(65536)); // the checksum is not checked
		frame_ip(&s->f, endpoint_of(n, (int)up, 1), endpoint_of(n, (int)up, 0), 17);
		set_class(s->f.at, random_class());
		disturb(&s->f, 1);
		if (nobodys && draw(2))
			add_options(&s->f);
	}
}

static void as_the_full_nodes(void **unused)
{
	static const struct both_ways how = {.ports = {"ran", "peers", "internet"},
		.outer = 1u << 0 | 1u << 1,
		.node = {"core-input"},
		.change = change,
		.make = make_packet,
		.rounds = ROUNDS};

	both_ways(&how);
}

static int setup(void **unused)
{
	struct api_engine e = both_ways_engine();

	fixture_start(&e);
	start_blue();
	start_far();
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
