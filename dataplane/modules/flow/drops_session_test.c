// SPDX-License-Identifier: Apache-2.0
// Rows of the session nodes, of the access lists in front of them, and of policers, URRs and translations behind them.
#include "core/object.h"
#include "flow/drops_test.h"

// ---- sessions -------------------------------------------------------------------------------------------------------

static void add_qer(struct kit_mobile *k, const struct api_qer *qer)
{
	for (uint16_t i = 0; i < k->s.pdrs; i++)
		kit_pdr_qer(&k->pdr[i], 33);
	struct api_qer *q = kit_qer(k, 33, 0);
	*q = *qer;
	q->id = 33;
}

static void closed(struct kit_mobile *k)
{
	add_qer(k, &(struct api_qer){.gate_uplink = 1, .gate_downlink = 1});
}

static void policed(struct kit_mobile *k)
{
	add_qer(k, &(struct api_qer){.uplink_policer = "none", .downlink_policer = "none"});
}

static void no_quota(struct kit_mobile *k)
{
	for (uint16_t i = 0; i < k->s.pdrs; i++)
		kit_pdr_urr(&k->pdr[i], 1);
	kit_urr(k, 1)->flags = API_URR_HAS_VOLUME_QUOTA;
}

static void set_action(struct kit_mobile *k, uint8_t action)
{
	for (uint16_t i = 0; i < k->s.fars; i++)
		k->far[i].action = action;
}

static void dropped(struct kit_mobile *k)
{
	set_action(k, API_FAR_DROP);
}

static void notified(struct kit_mobile *k)
{
	set_action(k, API_FAR_DROP | API_FAR_NOTIFY);
}

// Filters of other flows.
static void filtered(struct kit_mobile *k)
{
	for (uint16_t i = 0; i < k->s.pdrs; i++) {
		struct api_sdf *f = kit_sdf(k, &k->pdr[i]);

		f->flags = API_SDF_PROTOCOL;
		f->protocol = 47;
	}
}

static void to_portal(struct kit_mobile *k)
{
	struct api_far_more *more = kit_far_more(k, &k->far[0]);

	more->redirect = API_REDIRECT_URL;
	snprintf(more->redirect_to, sizeof(more->redirect_to), "http://portal.example/");
}

// ---- what is configured ---------------------------------------------------------------------------------------------

static void between_ues(const struct way *w, int on)
{
	kit_begin();
	fixture_instances(on ? API_INSTANCE_NO_UE_TO_UE : 0, 0);
	commit();
}

static void pinned(const struct way *w, int on)
{
	kit_begin();
	fixture_instances(0, on ? API_INSTANCE_PIN_PEER : 0);
	commit();
}

static struct {
	struct api_acl head;
	struct api_acl_rule rule;
} list;

static void put_list(const char *key, int on)
{
	kit_begin();
	if (on)
		kit_put(API_ACL, key, &list, (uint32_t)(sizeof(list.head) + list.head.count * sizeof(list.rule)));
	else
		kit_delete(API_ACL, key);
	commit();
}

static void in_front(const struct way *w, int on)
{
	char key[API_NAME];

	snprintf(key, sizeof(key), "in/%s", w->instance == NULL ? "" : w->instance);
	put_list(w->interface == NULL ? "uplink" : w->instance == NULL ? "downlink" : key, on);
}

// UDP is denied; the rule looks at ports.
static void deny(const struct way *w, int on)
{
	list.head = (struct api_acl){API_PERMIT, 1};
	list.rule = (struct api_acl_rule){.source_port = {1, UINT16_MAX},
		.destination_port = {1, UINT16_MAX},
		.protocol = 17,
		.protocol_mask = 0xff,
		.action = API_DENY};
	in_front(w, on);
}

static void deny_all(const struct way *w, int on)
{
	list.head = (struct api_acl){API_DENY, 0};
	in_front(w, on);
}

static void set_flow_rates(uint32_t subscriber, uint32_t worker)
{
	struct api_engine e;
	uint32_t length;

	memcpy(&e, object_find(API_ENGINE, "engine", &length), sizeof(e));
	e.subscriber_flow_rate = subscriber;
	e.flow_rate = worker;
	assert_int_equal(kit_change(API_ENGINE, "engine", &e, sizeof(e)), 0);
}

// Its ports are known.
static void first_came(const struct way *w, int on)
{
	static struct frame f;

	if (!on)
		return;
	w->make_frame(&f);
	f.at[w->at[USER] + 6] |= 0x20;
	struct frame ip = {.at = f.at + w->at[USER]};
	frame_ip4_sum(&ip);
	assert_int_equal(kit_send(w->in, f.at, f.length), 0);
	kit_run();
}

// New flows until no more may begin.
static void begin_flows(const struct way *w)
{
	static struct frame f;

	for (uint16_t i = 0; i < 8; i++) {
		w->make_frame(&f);
		store16(f.at + w->at[USER_L4], (uint16_t)(6000 + i));
		assert_int_equal(kit_send(w->in, f.at, f.length), 0);
	}
	kit_run();
}

static void subscriber_begins(const struct way *w, int on)
{
	set_flow_rates(on ? 1 : 0, 0);
	if (on)
		begin_flows(w);
}

static void worker_begins(const struct way *w, int on)
{
	set_flow_rates(0, on ? 1 : 0);
	if (on)
		begin_flows(w);
}

static void nptv6(const struct way *w, int on)
{
	struct api_nptv6 n = {.pairs = 1,
		.inside = {kit_address("2001:db8:1:1::/64")},
		.outside = {kit_address("2001:db8:8:1::/64")}};

	kit_begin();
	if (on)
		kit_put(API_NPTV6, "core", &n, sizeof(n));
	else
		kit_delete(API_NPTV6, "core");
	commit();
}

static void all_ports_used(const struct way *w, int on)
{
	if (on)
		drops_exhaust_nat(1);
	else
		drops_put_nat(15 * 16, 0), drops_put_nat(16 * 16, 0); // no mapping is left
}

static void one_block(const struct way *w, int on)
{
	drops_put_nat(on ? 16 : 16 * 16, 0);
	if (on)
		assert_true(drops_exhaust_nat(2));
}

static void one_mapping(const struct way *w, int on)
{
	drops_put_nat(16 * 16, on);
	if (on)
		assert_true(drops_exhaust_nat(2));
}

static void pairs_on(const struct way *w, int on)
{
	drops_put_pairs(on * 64, on * 16, 0, 0);
}

// External addresses are announced by a discard route.
static void pairs_announced(const struct way *w, int on)
{
	struct api_route r = {.prefix = kit_address("203.0.113.4"), .discard = API_DISCARD_BLACKHOLE};

	pairs_on(w, on);
	kit_begin();
	if (on)
		kit_put(API_ROUTE, "outside", &r, sizeof(r));
	else
		kit_delete(API_ROUTE, "outside");
	commit();
}

static void pair_taken(const struct way *w, int on)
{
	drops_put_pairs(on * 64, on * 16, on * 2, 200);
}

static void pairs_of_one(const struct way *w, int on)
{
	drops_put_pairs(on * 64, on, on, 201);
}

static void one_pair(const struct way *w, int on)
{
	drops_put_pairs(on, on * 16, on * 2, 201);
}

// ---- frames ---------------------------------------------------------------------------------------------------------

// An ICMP error that quotes nothing.
static void empty_error(struct frame *f, const struct way *w)
{
	f->at[w->at[USER] + 9] = 1;
	memset(f->at + w->at[USER_L4], 0, 8);
	f->at[w->at[USER_L4]] = 3;
	f->at[w->at[USER_L4] + 8] = 0;
}

// A first fragment with other ports than the previous one.
static void first_again(struct frame *f, const struct way *w)
{
	f->at[w->at[USER] + 6] |= 0x20;
	store16(f->at + w->at[USER_L4], 0x7777);
}

static void pair_to_us(struct frame *f, const struct way *w)
{
	f->at[w->at[USER] + 9] = 41;
	f->at[w->at[USER] + 19] = 4;
}

#define OTHER_HOST "\x63"
#define NEW_PORT "\x77\x77"
#define TCP_AT_8 "\x00\x01\x40\x06" // a fragment that overwrites the flags of TCP (RFC 3128)

const struct row drops_session_rows[] = {
	// session nodes
	{"subscriber-unknown", ACCESS, PUT(FRAME, 19, "\x63")},
	{"subscriber-unknown", ACCESS, PUT(FRAME, 11, "\x63")},
	{"ue-unknown", BIT(DOWN) | BIT(DOWN_FLOW) | BIT(BNG_DOWN), PUT(USER, 19, OTHER_HOST), .sum = USER},
	{"ue-unknown", BIT(DOWN6), PUT(USER, 31, OTHER_HOST)},
	{"ue-to-ue", BIT(UP) | BIT(UP_VLAN) | BIT(UP_OUTER6), PUT(USER, 16, "\x0a\x2d\x00\x03"), .sum = USER,
		.change = between_ues},
	{"source-spoofed", MOBILE_UP | ACCESS, PUT(USER, 15, OTHER_HOST), .sum = USER},
	{"source-spoofed", BIT(UP_INNER6), PUT(USER, 15, OTHER_HOST)},
	{"destination-not-ue", BIT(AGF_DOWN), PUT(USER, 19, OTHER_HOST), .sum = USER},
	{"subscriber-to-gateway", MOBILE_UP | ACCESS | BIT(SGW), PUT(USER, 16, "\x0a\x01\x00\x01"), .sum = USER},
	{"subscriber-to-gateway", MOBILE_UP | ACCESS | BIT(SGW), PUT(USER, 16, "\x0a\x28\x00\x01"), .sum = USER},
	{"subscriber-gtpu", ALL_UP & ~BIT(UP_FLOW), PUT(USER_L4, 2, "\x08\x68")},
	{"tunnel-multicast", MOBILE_UP, PUT(USER, 16, "\xef\x01\x02\x03"), .sum = USER},
	{"tunnel-peer", BIT(UP) | BIT(UP_INNER6) | BIT(UP_FLOW) | BIT(NAT_UP), PUT(L3, 15, "\x09"), .sum = L3,
		.change = pinned},
	{"tunnel-peer", BIT(UP_OUTER6), .change = pinned},
	{"uplink-no-pdr", BIT(UP_FLOW), PUT(USER_L4, 2, NEW_PORT)},
	{"downlink-no-pdr", BIT(DOWN_FLOW), PUT(USER_L4, 0, NEW_PORT)},
	{"uplink-no-pdr", ALL_UP & ~BIT(UP_FLOW), .alter = filtered},
	{"downlink-no-pdr", ALL_DOWN & ~BIT(DOWN_FLOW), .alter = filtered},
	{"uplink-gate-closed", ALL_UP, .alter = closed},
	{"downlink-gate-closed", ALL_DOWN, .alter = closed},
	{"uplink-far-drop", ALL_UP, .alter = dropped},
	{"downlink-far-drop", ALL_DOWN, .alter = dropped},
	{"buffer-not-kept", MOBILE_UP | BIT(UP_INNER6) | BIT(SGW) | MOBILE_DOWN, .alter = notified},
	{"redirect-not-http", MOBILE_UP | BIT(UP_INNER6), .alter = to_portal},
	{"new-flows-subscriber", ACCESS | BIT(AGF_DOWN) | BIT(BNG_DOWN) | BIT(UP_FLOW), PUT(USER_L4, 0, NEW_PORT),
		.change = subscriber_begins},
	{"new-flows-worker", ACCESS | BIT(AGF_DOWN) | BIT(BNG_DOWN) | BIT(UP_FLOW), PUT(USER_L4, 0, NEW_PORT),
		.change = worker_begins},
	// access lists
	{"firewall-uplink-deny", ACCESS, .change = deny},
	{"firewall-uplink-default", ACCESS, .change = deny_all},
	{"firewall-uplink-tiny-fragment", ACCESS, PUT(USER, 6, TCP_AT_8), .sum = USER, .change = deny},
	{"firewall-downlink-deny", BIT(AGF_DOWN), .change = deny},
	{"firewall-downlink-default", BIT(AGF_DOWN), .change = deny_all},
	{"firewall-downlink-tiny-fragment", BIT(AGF_DOWN), PUT(USER, 6, TCP_AT_8), .sum = USER, .change = deny},
	{"firewall-instance-deny", MOBILE_UP | BIT(UP_INNER6) | BIT(SGW) | MOBILE_DOWN | BIT(BNG_DOWN), .change = deny},
	{"firewall-instance-default", MOBILE_UP | BIT(UP_INNER6) | BIT(SGW) | MOBILE_DOWN | BIT(BNG_DOWN),
		.change = deny_all},
	{"firewall-instance-tiny-fragment", MOBILE_UP | BIT(SGW) | BIT(DOWN) | BIT(DOWN_FLOW) | BIT(BNG_DOWN),
		PUT(USER, 6, TCP_AT_8), .sum = USER, .change = deny},
	// fragments of flows that differ in ports
	{"fragment-two-firsts", BIT(UP_FLOW) | BIT(DOWN_FLOW) | BIT(NAT_UP) | BIT(NAT_DOWN), .make = first_again,
		.sum = USER, .change = first_came},
	// policers and URRs
	{"policer-uplink", ALL_UP, .alter = policed},
	{"policer-downlink", ALL_DOWN, .alter = policed},
	{"usage-quota", ALL_UP | ALL_DOWN, .alter = no_quota},
	// translations
	{"nat-protocol", BIT(NAT_UP) | BIT(NAT_DOWN), PUT(USER, 9, "\x2f"), .sum = USER},
	{"nat-malformed", BIT(NAT_UP) | BIT(NAT_DOWN), .make = empty_error, .sum = USER},
	{"nat-no-mapping", BIT(NAT_DOWN), PUT(USER_L4, 2, "\xff\xf0")},
	{"nat-inside-address", BIT(NAT_DOWN), PUT(USER, 16, "\x0a\x2e\x00\x01"), .sum = USER},
	{"nat-subscriber-limit", BIT(NAT_UP), PUT(USER_L4, 0, NEW_PORT), .change = all_ports_used},
	{"nat-pool-exhausted", BIT(NAT_UP), .change = one_block},
	{"nat-table-full", BIT(NAT_UP), .change = one_mapping},
	{"nat-protocol", BIT(NAT_UP) | BIT(NAT_DOWN), PUT(USER, 9, "\x33"), .sum = USER, .change = pairs_on},
	{"nat-pair-unknown", BIT(NAT_DOWN), PUT(USER, 9, "\x29"), .sum = USER, .change = pairs_on},
	{"nat-pair-taken", BIT(NAT_UP), PUT(USER, 9, "\x29"), .sum = USER, .change = pair_taken},
	{"nat-pair-limit", BIT(NAT_UP), PUT(USER, 9, "\x29"), .sum = USER, .change = pairs_of_one},
	{"nat-pair-full", BIT(NAT_UP), PUT(USER, 9, "\x29"), .sum = USER, .change = one_pair},
	{"nat-pair-hairpin", BIT(NAT_UP), .make = pair_to_us, .sum = USER, .change = pairs_announced},
	{"nptv6-unmapped", BIT(UP_INNER6), PUT(USER, 16, "\xff\xff\xff\xff\xff\xff\xff\xff"), .change = nptv6},
	{"nptv6-inside-address", BIT(DOWN6), .change = nptv6},
};
const size_t drops_session_count = sizeof(drops_session_rows) / sizeof(drops_session_rows[0]);
