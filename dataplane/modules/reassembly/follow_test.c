// SPDX-License-Identifier: Apache-2.0
// Later fragments follow their first one: PDRs with ports, access lists, limits, contradictions. Packets enter by the
// first of two workers; sessions are the second one's.
#include "reassembly/split_test.h"
#include "session/mobile_fixture.h"

#define DNS 53
#define SPI 0x01020304

static uint32_t next_id = 1;

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.max_fragments = 512; // of a worker 128 of packets that pass through, of a source 32
	e.workers = 2;
	for (int i = 0; i < 2; i++)
		e.cpu[i] = -1;
	fixture_start(&e);
	return 0;
}

static int clean(void **state)
{
	kit_advance(1200000);
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(kit_buffers_in_use(), 0);
	assert_true(kit_balance());
	return 0;
}

static void put_second(const char *name, struct kit_mobile *k)
{
	k->s.worker = 1;
	put(name, k);
}

struct flow {
	const char *ue, *far;
	uint32_t teid; // of the UE's packets; to it: 0x100 more
	uint16_t port; // of the far side; 0: ICMPv6 behind destination options
	int up;
	uint8_t qfi; // to the UE; 0xff: none
	uint16_t vlan; // of the data network; 0: none
	uint32_t spi; // 0: UDP
};

static void whole(struct frame *f, const struct flow *x)
{
	uint8_t protocol = IP_PROTOCOL_UDP;

	frame_payload(f, 90);
	if (x->spi != 0) {
		store32(f->at, x->spi);
		protocol = IP_PROTOCOL_ESP;
	} else if (x->port == 0) {
		f->at[0] = 128; // RFC 4443 §4.1: echo request
		memcpy(frame_push(f, 8), (const uint8_t[]){IP_PROTOCOL_ICMP6, 0, 1, 4}, 4); // RFC 8200 §4.2: PadN
		protocol = IP_PROTOCOL_DESTINATION;
	} else {
		frame_udp(f, x->up ? 4000 : x->port, x->up ? x->port : 4000);
	}
	frame_ip(f, x->up ? x->ue : x->far, x->up ? x->far : x->ue, protocol);
}

static void carry(struct frame *f, const struct flow *x, int out)
{
	if (out && x->up)
		hop(f);
	if (out != x->up)
		tunnel(f, out ? "10.1.0.1" : "10.1.0.2", out ? "10.1.0.2" : "10.1.0.1", out ? x->teid + 0x100 : x->teid,
			out ? x->qfi : 0xff, out ? API_PDU_DL : API_PDU_UL);
	link_layer(f, out == x->up ? "internet" : "ran", !out);
	if (out == x->up && x->vlan != 0)
		frame_tag(f, 0x8100, x->vlan);
}

static const char *port_of(const struct flow *x, int out)
{
	return out == x->up ? "internet" : "ran";
}

static void make_piece(struct frame *f, const struct flow *x, int i, uint32_t id, int out)
{
	static struct frame all;

	whole(&all, x);
	piece(f, all.at, i, id);
	carry(f, x, out);
}

static void send_piece(const struct flow *x, int i, uint32_t id)
{
	static struct frame f;

	make_piece(&f, x, i, id, 0);
	assert_int_equal(kit_send(port_of(x, 0), f.at, f.length), 0);
	kit_run();
}

static void send_cut(const struct flow *x, uint32_t from, uint32_t size, uint32_t id)
{
	static struct frame f, all;

	whole(&all, x);
	cut(&f, all.at, from, size, id);
	carry(&f, x, 0);
	assert_int_equal(kit_send(port_of(x, 0), f.at, f.length), 0);
	kit_run();
}

static void send_whole(const struct flow *x)
{
	static struct frame f;

	whole(&f, x);
	carry(&f, x, 0);
	assert_int_equal(kit_send(port_of(x, 0), f.at, f.length), 0);
	kit_run();
}

static void pieces_left(const struct flow *x, const int *order, uint32_t id)
{
	static struct frame want;

	assert_int_equal(all_out(), PIECES);
	assert_int_equal(kit_count(port_of(x, 1)), PIECES);
	for (int i = 0; i < PIECES; i++) {
		make_piece(&want, x, leaves(order, i), id, 1);
		assert_true(same_frame(port_of(x, 1), (uint32_t)i, &want));
	}
	kit_clear();
	assert_true(kit_balance());
	assert_int_equal(kit_totals().held, 0);
}

static void all_pass(const struct flow *x, const int *order)
{
	kit_clear();
	for (int i = 0; i < PIECES; i++)
		send_piece(x, order[i], next_id);
	pieces_left(x, order, next_id++);
}

static void none_passes(const struct flow *x, const int *order, const char *reason)
{
	struct kit_reasons before = kit_reasons();

	kit_clear();
	for (int i = 0; i < PIECES; i++)
		send_piece(x, order[i], next_id);
	next_id++;
	assert_int_equal(all_out(), 0);
	kit_only_rose(&before, reason, PIECES);
	assert_int_equal(kit_totals().held, 0);
}

static const struct flow flows[4] = {
	{UE4, FAR4, 0x102, DNS, 1, 5, 0, 0},
	{UE4, FAR4, 0x102, DNS, 0, 5, 0, 0},
	{UE6, FAR6, 0x102, DNS, 1, 5, 0, 0},
	{UE6, FAR6, 0x102, DNS, 0, 5, 0, 0},
};

static void only_dns(struct kit_mobile *k, struct api_pdr *p)
{
	struct api_sdf *f = kit_sdf(k, p);

	f->flags = API_SDF_PROTOCOL;
	f->protocol = 17;
	f->remote_port[0] = f->remote_port[1] = DNS;
	p->precedence = 10;
}

// QFI 5 and URR 2 are DNS's, QFI 7 and URR 1 all other packets'.
static struct kit_mobile *session_with_ports(uint32_t n)
{
	struct kit_mobile *k = upf_session(n);

	only_dns(k, kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1", 0x100 + n, 1));
	only_dns(k, kit_pdr_ue(k, API_FROM_CORE, "core", 2));
	kit_qer(k, 1, 7);
	kit_qer(k, 2, 5);
	kit_urr(k, 1)->flags = API_URR_COUNT_PACKETS;
	kit_urr(k, 2)->flags = API_URR_COUNT_PACKETS;
	for (int i = 0; i < 4; i++) {
		k->pdr[i].match |= i % 2 == 0 ? API_PDR_UE_IP : 0;
		kit_pdr_qer(&k->pdr[i], i < 2 ? 1 : 2);
		kit_pdr_urr(&k->pdr[i], i < 2 ? 1 : 2);
	}
	return k;
}

static uint64_t counted(const char *session, uint32_t urr)
{
	uint32_t count;
	const struct api_urr_row *row = kit_rows(API_TABLE_URR, session, sizeof(*row), &count);

	for (uint32_t i = 0; i < count; i++)
		if (row[i].urr == urr)
			return row[i].packets[API_TOTAL];
	fail_msg("no URR %u", urr);
	return 0;
}

static void by_the_pdr_of_the_ports(void **state)
{
	put_second("s2", session_with_ports(2));
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < ORDERS_OF_PIECES; k++) {
			struct flow other = flows[i];
			uint64_t dns = counted("s2", 2), rest = counted("s2", 1);

			all_pass(&flows[i], orders[k]);
			assert_int_equal(counted("s2", 2), dns + PIECES);
			assert_int_equal(counted("s2", 1), rest);
			other.port = (uint16_t)(1000 + k);
			other.qfi = 7;
			all_pass(&other, orders[k]);
			assert_int_equal(counted("s2", 2), dns + PIECES);
			assert_int_equal(counted("s2", 1), rest + PIECES);
		}
	gone("s2");
}

// One flow: fragments use the entries of whole packets, and the reverse.
static void whole_ones_between(void **state)
{
	put_second("s2", session_with_ports(2));
	for (int i = 0; i < 4; i++) {
		struct flow other = flows[i];

		other.port = (uint16_t)(2000 + i);
		other.qfi = 7;
		for (int k = 0; k < 6; k++) {
			const struct flow *x = k % 2 ? &other : &flows[i];
			uint64_t dns = counted("s2", 2), rest = counted("s2", 1);

			kit_clear();
			send_whole(x);
			assert_int_equal(all_out(), 1);
			all_pass(x, orders[k % ORDERS_OF_PIECES]);
			assert_int_equal(counted("s2", 2), dns + (k % 2 ? 0 : 1 + PIECES));
			assert_int_equal(counted("s2", 1), rest + (k % 2 ? 1 + PIECES : 0));
		}
	}
	gone("s2");
}

// RFC 4303 §2.1: the SPI is in the first fragment alone, too.
static void by_the_spi(void **state)
{
	struct kit_mobile *k = session_with_ports(2);

	for (int i = 0; i < 2; i++)
		k->sdf[i] = (struct api_sdf){.remote_port = {0, UINT16_MAX},
			.local_port = {0, UINT16_MAX},
			.flags = API_SDF_SPI,
			.spi = SPI};
	put_second("s2", k);
	for (int i = 0; i < 4; i++)
		for (int o = 0; o < ORDERS_OF_PIECES; o++) {
			struct flow x = flows[i];
			uint64_t esp = counted("s2", 2), rest = counted("s2", 1);

			x.spi = SPI;
			all_pass(&x, orders[o]);
			assert_int_equal(counted("s2", 2), esp + PIECES);
			x.spi = SPI + 1;
			x.qfi = 7;
			all_pass(&x, orders[o]);
			assert_int_equal(counted("s2", 2), esp + PIECES);
			assert_int_equal(counted("s2", 1), rest + PIECES);
		}
	gone("s2");
}

// By addresses and QFIs alone.
static struct kit_mobile *session_without_ports(void)
{
	struct kit_mobile *k = upf_session(2);
	struct api_pdr *up = kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1", 0x102, 1);
	struct api_pdr *down = kit_pdr_ue(k, API_FROM_CORE, "core", 2);

	up->match |= API_PDR_QFI;
	up->qfis = 1 << 9;
	kit_sdf(k, down)->remote = kit_address(FAR4 "/32");
	up->precedence = down->precedence = 10;
	kit_qer(k, 2, 5);
	kit_pdr_qer(down, 2);
	return k;
}

// Of one PDR, or of several that do not differ in ports: fragments pass at once and leave no state.
static void without_ports_none_waits(void **state)
{
	for (int i = 0; i < 8; i++) {
		struct flow x = flows[i % 4];

		put_second("s2", i < 4 ? upf_session(2) : session_without_ports());
		x.qfi = i == 5 ? 5 : 0xff;
		for (int n = PIECES - 1; n > 0; n--) { // no first one
			static struct frame want;

			kit_clear();
			send_piece(&x, n, 77);
			make_piece(&want, &x, n, 77, 1);
			assert_int_equal(all_out(), 1);
			assert_true(same_frame(port_of(&x, 1), 0, &want));
		}
	}
	gone("s2");
}

struct list {
	struct api_acl head;
	struct api_acl_rule rule[2];
};

// Lets UDP pass from and to these two ports of the far side.
static void permit(const char *key, int up, uint16_t a, uint16_t b)
{
	struct list l = {.head = {API_DENY, 2}};

	for (int i = 0; i < 2; i++) {
		struct api_acl_rule *r = &l.rule[i];
		uint16_t *far = up ? r->destination_port : r->source_port,
			 *ue = up ? r->source_port : r->destination_port;

		ue[1] = UINT16_MAX;
		far[0] = far[1] = i ? b : a;
		r->protocol = 17;
		r->protocol_mask = 0xff;
		r->action = API_PERMIT;
	}
	assert_int_equal(kit_change(API_ACL, key, &l, sizeof(l)), 0);
}

static void delete_lists(void)
{
	kit_begin();
	kit_delete(API_ACL, "in/access");
	kit_delete(API_ACL, "in/core");
	commit();
}

static void by_the_list(void **state)
{
	put_second("s2", upf_session(2));
	permit("in/access", 1, DNS, DNS);
	permit("in/core", 0, DNS, DNS);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < ORDERS_OF_PIECES; k++) {
			struct flow x = flows[i];

			x.qfi = 0xff;
			all_pass(&x, orders[k]);
			x.port = 54;
			none_passes(&x, orders[k], "firewall-instance-default");
		}
	delete_lists();
	gone("s2");
}

// RFC 8200 §4.5: behind the Fragment header, later ones name the extension header; the first one has a protocol without
// ports.
static void no_ports_behind_extensions(void **state)
{
	const struct flow x = {UE6, FAR6, 0x102, 0, 1, 0xff, 0, 0};
	struct list l = {.head = {API_DENY, 2}};

	for (int i = 0; i < 2; i++)
		l.rule[i] = (struct api_acl_rule){.source_port = {0, UINT16_MAX},
			.destination_port = {0, UINT16_MAX},
			.protocol = i == 0 ? IP_PROTOCOL_ICMP6 : IP_PROTOCOL_UDP,
			.protocol_mask = 0xff,
			.action = API_PERMIT};
	l.rule[1].destination_port[0] = DNS;
	put_second("s2", upf_session(2));
	assert_int_equal(kit_change(API_ACL, "in/access", &l, sizeof(l)), 0);
	for (int k = 0; k < ORDERS_OF_PIECES; k++)
		all_pass(&x, orders[k]);
	l.rule[0].action = API_DENY;
	assert_int_equal(kit_change(API_ACL, "in/access", &l, sizeof(l)), 0);
	for (int k = 0; k < ORDERS_OF_PIECES; k++)
		none_passes(&x, orders[k], "firewall-instance-deny");
	delete_lists();
	gone("s2");
}

static void without_a_first_one(void **state)
{
	struct kit_reasons before = kit_reasons();

	put_second("s2", upf_session(2));
	permit("in/access", 1, DNS, DNS);
	kit_clear();
	send_piece(&flows[0], 1, 99);
	send_piece(&flows[0], 2, 99);
	kit_advance(900000);
	assert_int_equal(kit_totals().held, 2);
	assert_true(kit_balance());
	kit_advance(300000);
	assert_int_equal(kit_totals().held, 0);
	kit_only_rose(&before, "fragment-no-first", 2);
	assert_int_equal(all_out(), 0);
	// The packet's data is forgotten, too.
	send_piece(&flows[0], 0, 100);
	kit_advance(1200000);
	send_piece(&flows[0], 1, 100);
	assert_int_equal(all_out(), 1);
	assert_int_equal(kit_totals().held, 1);
	delete_lists();
	gone("s2");
}

// RFC 5722: a second first fragment with other ports inherits nothing, and ends the flow of the first.
static void two_first_ones(void **state)
{
	put_second("s2", upf_session(2));
	permit("in/access", 1, DNS, 54);
	for (int i = 0; i < 4; i += 2) {
		struct kit_reasons before = kit_reasons();
		struct flow second = flows[i];

		second.port = 54;
		kit_clear();
		send_piece(&flows[i], 0, 200);
		send_piece(&flows[i], 0, 200); // the same again
		assert_int_equal(all_out(), 2);
		send_piece(&second, 0, 200);
		send_piece(&flows[i], 1, 200);
		send_piece(&flows[i], 0, 200);
		assert_int_equal(all_out(), 2);
		kit_only_rose(&before, "fragment-two-firsts", 3);
		kit_advance(1200000);
		second.qfi = 0xff;
		all_pass(&second, orders[0]);
	}
	delete_lists();
	gone("s2");
}

// A packet is forgotten once it has passed: its identification may be used again.
static void identification_again(void **state)
{
	struct flow x = flows[0];

	put_second("s2", upf_session(2));
	permit("in/access", 1, DNS, 54);
	for (int k = 0; k < 8; k++) {
		x.port = k % 2 ? DNS : 54;
		next_id = 300;
		all_pass(&x, orders[k % ORDERS_OF_PIECES]);
	}
	delete_lists();
	gone("s2");
}

// A packet with duplicated fragments is known until its last one has passed (RFC 791 §3.2: copies may come).
static void copies_count_once(void **state)
{
	static const uint8_t order[][5] = {
		{0, 0, 3, 2, 1}, {0, 3, 3, 2, 1}, {0, 1, 1, 3, 2}, {3, 3, 0, 1, 2}, {1, 1, 3, 0, 2}, {0, 2, 2, 3, 1}};

	put_second("s2", upf_session(2));
	permit("in/access", 1, DNS, DNS);
	for (uint32_t i = 0; i < RTE_DIM(order); i++)
		for (int f = 0; f < 4; f += 2) {
			kit_clear();
			for (uint32_t n = 0; n < RTE_DIM(order[i]); n++) // of 24, 24, 24 and 26 bytes
				send_cut(&flows[f], order[i][n] * 24u, order[i][n] == 3 ? UINT16_MAX : 24, 400 + i);
			assert_int_equal(all_out(), RTE_DIM(order[i]));
			assert_int_equal(kit_totals().held, 0);
		}
	delete_lists();
	gone("s2");
}

// Later fragments alone: a subscriber has its share for all its source addresses, and others keep theirs.
static void a_flood_keeps_to_its_share(void **state)
{
	struct flow flood = {NULL, FAR4, 0x103, DNS, 1, 0xff, 0, 0}, good = flows[0];
	struct kit_reasons before = kit_reasons();
	char from[32];

	put_second("s2", upf_session(2));
	put_second("s3", upf_session(3));
	permit("in/access", 1, DNS, DNS);
	kit_clear();
	flood.ue = from;
	send_piece(&good, 2, 1);
	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(from, sizeof(from), "10.45.1.%u", 1 + i % 250);
		send_piece(&flood, 1 + (int)(i & 1), i);
		assert_in_range(kit_totals().held, 1, 2 * 32 + 1);
	}
	assert_int_equal(all_out(), 0);
	kit_only_rose(&before, "reassembly-source", 1000 - 2 * 32);
	send_piece(&good, 1, 1);
	send_piece(&good, 0, 1);
	assert_int_equal(all_out(), PIECES);
	before = kit_reasons();
	kit_advance(1200000);
	kit_only_rose(&before, "fragment-no-first", 2 * 32);
	assert_int_equal(kit_totals().held, 0);
	delete_lists();
	gone("s2");
	gone("s3");
}

// From outside, of many sources: all room is used, and a new packet still passes, because the oldest is removed.
static void a_flood_of_many(void **state)
{
	struct flow flood = {UE4, NULL, 0x102, DNS, 0, 0xff, 0, 0}, good = flows[1];
	char from[32];

	put_second("s2", upf_session(2));
	permit("in/core", 0, DNS, DNS);
	kit_clear();
	flood.far = from;
	good.qfi = 0xff;
	for (uint32_t i = 0; i < 2000; i++) {
		snprintf(from, sizeof(from), "198.51.%u.%u", 101 + i / 200, 1 + i % 200);
		send_piece(&flood, (int)(i % 3), i); // first ones, too, whose data needs no buffer
		assert_in_range(kit_totals().held, 0, 2 * 128);
	}
	for (int k = 0; k < ORDERS_OF_PIECES; k++, next_id++) {
		kit_clear();
		for (int i = 0; i < PIECES; i++)
			send_piece(&good, orders[k][i], next_id);
		assert_int_equal(kit_count("ran"), PIECES);
	}
	assert_in_range(kit_totals().held, 1, 2 * 128);
	delete_lists();
	gone("s2");
}

// Fragments to us have a half of their own: passing packets keep their state, and their fragments keep waiting.
static void a_flood_to_us(void **state)
{
	struct flow flood = {"192.0.2.1", NULL, 0, DNS, 0, 0xff, 0, 0};
	const struct flow *good = &flows[0];
	char from[32];

	put_second("s2", upf_session(2));
	permit("in/access", 1, DNS, DNS);
	kit_clear();
	flood.far = from;
	for (uint32_t id = 500; id < 508; id++) // of either worker
		send_piece(good, 0, id);
	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(from, sizeof(from), "198.51.%u.%u", 101 + i / 200, 1 + i % 200);
		send_piece(&flood, 1, i);
	}
	for (uint32_t id = 600; id < 608; id++)
		send_piece(good, 2, id);
	assert_int_equal(all_out(), 8);
	assert_int_equal(kit_totals().held, 2 * 128 + 8);
	for (uint32_t id = 500; id < 508; id++) {
		send_piece(good, 1, id);
		send_piece(good, 2, id);
		send_piece(good, 0, 100 + id);
		send_piece(good, 1, 100 + id);
	}
	assert_int_equal(all_out(), 8 * 2 * PIECES);
	delete_lists();
	gone("s2");
}

// Subscribers of two VRFs with equal addresses, whose packets have equal identifications.
static void two_vrfs(void **state)
{
	struct api_interface i = {.port = "internet", .vrf = "blue", .outer_vlan = 20, .count = 1};
	struct api_instance instance = kit_instance_body("blue", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	struct api_route r = {.prefix = kit_address("0.0.0.0/0"), .via = kit_address("192.0.2.2"), .vrf = "blue"};
	struct kit_mobile k;

	i.address[0] = kit_address("192.0.2.1/24");
	kit_begin();
	kit_put(API_INTERFACE, "blue", &i, sizeof(i));
	kit_neighbour("blue", "192.0.2.2", mac_router);
	kit_put(API_ROUTE, "blue", &r, sizeof(r));
	kit_put(API_INSTANCE, "blue", &instance, sizeof(instance));
	kit_put_mobile("s2", upf_session(2));
	kit_mobile(&k, 9, UE4, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x109, 1)->match |= API_PDR_UE_IP;
	kit_pdr_ue(&k, API_FROM_CORE, "blue", 2);
	kit_far_ip(&k, 1, API_FROM_CORE, "blue");
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x209);
	kit_put_mobile("s9", &k);
	commit();
	kit_run();
	permit("in/access", 1, DNS, DNS);
	permit("in/core", 0, DNS, DNS);
	permit("in/blue", 0, DNS, DNS);
	for (int n = 0; n < 2; n++)
		for (int o = 0; o < ORDERS_OF_PIECES; o++) {
			struct flow red = flows[n], blue = {UE4, FAR4, 0x109, 54, flows[n].up, 0xff, 20, 0};
			struct kit_reasons before = kit_reasons();

			red.qfi = 0xff;
			kit_clear();
			for (int p = 0; p < PIECES; p++) {
				send_piece(&red, orders[o][p], next_id);
				send_piece(&blue, orders[o][p], next_id);
			}
			kit_only_rose(&before, "firewall-instance-default", PIECES);
			pieces_left(&red, orders[o], next_id++);
		}
	delete_lists();
	kit_begin();
	kit_delete(API_ACL, "in/blue");
	commit();
	gone("s2");
	gone("s9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(by_the_pdr_of_the_ports, clean),
		cmocka_unit_test_teardown(whole_ones_between, clean),
		cmocka_unit_test_teardown(by_the_spi, clean),
		cmocka_unit_test_teardown(without_ports_none_waits, clean),
		cmocka_unit_test_teardown(by_the_list, clean),
		cmocka_unit_test_teardown(no_ports_behind_extensions, clean),
		cmocka_unit_test_teardown(without_a_first_one, clean),
		cmocka_unit_test_teardown(two_first_ones, clean),
		cmocka_unit_test_teardown(identification_again, clean),
		cmocka_unit_test_teardown(copies_count_once, clean),
		cmocka_unit_test_teardown(a_flood_keeps_to_its_share, clean),
		cmocka_unit_test_teardown(a_flood_of_many, clean),
		cmocka_unit_test_teardown(a_flood_to_us, clean),
		cmocka_unit_test_teardown(two_vrfs, clean),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
