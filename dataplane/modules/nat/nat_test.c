// SPDX-License-Identifier: Apache-2.0
// NAT44 in the graph: both directions byte by byte; hairpins, fragments, ICMP errors, limits, time.
#include "core/trace_inside.h"
#include "nat/fixture_test.h"

static int setup(void **state)
{
	fixture_start(NULL);
	return 0;
}

static int fresh(void **state)
{
	struct api_nat n = nat_body();

	kit_begin();
	kit_put(API_NAT, "core", &n, sizeof(n));
	for (uint32_t i = 1; i <= 3; i++) {
		char name[8];

		snprintf(name, sizeof(name), "s%u", i);
		kit_put_mobile(name, upf_session(i));
	}
	commit();
	kit_events_clear();
	kit_events_clear(); // what the first one's time brought
	return 0;
}

static int clean(void **state)
{
	all_gone(state);
	kit_begin();
	fixture_instances(0, 0);
	commit();
	return 0;
}

// RFC 4787 REQ-1, REQ-2, REQ-8; RFC 5382 REQ-1, REQ-3; RFC 5508 REQ-1.
static void there_and_back(void **state)
{
	static const uint8_t protocol[] = {17, 6, 1};
	struct external first[3];

	for (int i = 0; i < 3; i++) {
		struct external e = out(1, protocol[i], 4000, FAR4, 53), again;

		first[i] = e;
		again = out(1, protocol[i], 4000, "198.51.100.77", 1234);
		assert_true(same(&e, &again)); // for any destination
		reaches(1, protocol[i], FAR4, 53, &e, 4000);
		reaches(1, protocol[i], "192.0.2.200", 999, &e, 4000); // from any source
		again = out(1, protocol[i], 4001, FAR4, 53);
		assert_false(same(&e, &again));
		assert_string_equal(e.address, again.address);
		assert_string_equal(e.address, first[0].address);
	}
	assert_int_equal(row().mappings, 6);
	assert_int_equal(row().used, 1);
	struct external other = out(2, 17, 4000, FAR4, 53);
	assert_false(same(&other, &first[0]));
	assert_int_equal(row().used, 2);
	assert_int_equal(row().subscribers, 2);
	unreachable(6, &first[0]); // the port is UDP's
	other.port = 1023;
	unreachable(17, &other);
	other.port = 1024 + 8 * 16;
	unreachable(17, &other);
}

static void without_checksum(void **state)
{
	static struct frame f, want;
	struct external e = out(1, 17, 4000, FAR4, 53);

	frame_payload(&f, 20);
	frame_udp(&f, 4000, 53); // RFC 768: checksum 0
	frame_ip(&f, ue(1), FAR4, 17);
	up(&f, 1);
	frame_payload(&want, 20);
	frame_udp(&want, e.port, 53);
	frame_ip(&want, e.address, FAR4, 17);
	hop(&want);
	link_layer(&want, "internet", 0);
	expect("ran", &f, "internet", &want);
}

// Only inside IPv4 prefixes are translated; they are reached only through a mapping.
static void untouched(void **state)
{
	static struct frame f, want;
	struct api_nat n = nat_body();

	downlink_of(&f, FAR4, ue(1));
	expect_drop("internet", &f, "nat-inside-address");
	n.inside_prefix[0] = kit_address("10.45.0.0/31"); // 0 and 1
	put_nat(&n);
	expect("ran", uplink_of(&f, ue(2), FAR4, 0x102, 0xff), "internet", routed_out(&want, ue(2), FAR4));
	expect("internet", downlink_of(&f, FAR4, ue(2)), "ran", tunnelled_out(&want, FAR4, ue(2), 0x202, 0xff));
	// One subscriber to another, by the inside address.
	uplink_of(&f, ue(1), ue(2), 0x101, 0xff);
	ip_packet(&want, ue(1), ue(2), 80);
	hop(&want);
	tunnel(&want, "10.1.0.1", "10.1.0.2", 0x202, 0xff, API_PDU_DL);
	link_layer(&want, "ran", 0);
	expect("ran", &f, "ran", &want);
	ip_packet(&f, "2001:db8:1:1::7", FAR6, 80);
	up(&f, 1);
	ip_packet(&want, "2001:db8:1:1::7", FAR6, 80);
	hop(&want);
	link_layer(&want, "internet", 0);
	expect("ran", &f, "internet", &want);
}

static void other_packets(void **state)
{
	static struct frame f;

	frame_payload(&f, 40);
	frame_ip(&f, ue(1), FAR4, 47);
	up(&f, 1);
	expect_drop("ran", &f, "nat-protocol");
	make(&f, 1, FAR4, 7, OUTSIDE, 0); // an echo request from outside
	link_layer(&f, "internet", 1);
	expect_drop("internet", &f, "nat-protocol");
	frame_payload(&f, 20);
	uint8_t *icmp = frame_push(&f, 8); // an error that quotes too little
	icmp[0] = 3;
	frame_ip(&f, FAR4, OUTSIDE, 1);
	uint16_t sum = l4_sum(f.at);
	memcpy(f.at + 22, &sum, 2);
	link_layer(&f, "internet", 1);
	expect_drop("internet", &f, "nat-malformed");
}

static void discard_outside(int there)
{
	struct api_route r = {.prefix = kit_address(OUTSIDE "/31"), .discard = API_DISCARD_BLACKHOLE};

	kit_begin();
	if (there)
		kit_put(API_ROUTE, "outside", &r, sizeof(r));
	else
		kit_delete(API_ROUTE, "outside");
	commit();
}

// RFC 4787 REQ-9 (a): the receiver sees the external source. Also where a router announces the external addresses by a
// discard route.
static void hairpin(void **state)
{
	struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	static struct frame f, want;
	struct external b = out(2, 17, 7000, FAR4, 53), a = out(1, 17, 4000, FAR4, 53);

	make(&f, 17, ue(1), 4000, b.address, b.port);
	up(&f, 1);
	make(&want, 17, a.address, a.port, ue(2), 7000);
	hop(&want);
	tunnel(&want, "10.1.0.1", "10.1.0.2", 0x202, 0xff, API_PDU_DL);
	link_layer(&want, "ran", 0);
	expect("ran", &f, "ran", &want);
	discard_outside(1);
	make(&f, 17, ue(1), 4000, b.address, b.port);
	up(&f, 1);
	expect("ran", &f, "ran", &want);
	reaches(2, 17, FAR4, 53, &b, 7000);
	discard_outside(0);
	core.flags = API_INSTANCE_NO_UE_TO_UE;
	kit_begin();
	kit_put(API_INSTANCE, "core", &core, sizeof(core));
	commit();
	make(&f, 17, ue(1), 4000, b.address, b.port);
	up(&f, 1);
	expect_drop("ran", &f, "ue-to-ue");
}

static void error_about(struct frame *f, uint8_t type, const char *from, const char *to)
{
	uint8_t *icmp;
	uint16_t sum;

	f->length = 20 + 8 + 13; // an odd quotation
	icmp = frame_push(f, 8);
	icmp[0] = type;
	frame_ip(f, from, to, 1);
	sum = l4_sum(f->at);
	memcpy(f->at + 22, &sum, 2);
}

// RFC 5508 REQ-3 to REQ-6: both ways, with their quotes.
static void errors(void **state)
{
	static const uint8_t protocol[] = {17, 6, 1};
	static struct frame f, want;

	for (int i = 0; i < 3; i++) {
		struct external e = out(1, protocol[i], 4000, FAR4, 53);

		make(&f, protocol[i], e.address, e.port, FAR4, 53);
		error_about(&f, 11, "192.0.2.99", e.address);
		link_layer(&f, "internet", 1);
		make(&want, protocol[i], ue(1), 4000, FAR4, 53);
		error_about(&want, 11, "192.0.2.99", ue(1));
		tunnel(&want, "10.1.0.1", "10.1.0.2", 0x201, 0xff, API_PDU_DL);
		link_layer(&want, "ran", 0);
		expect("internet", &f, "ran", &want);

		make(&f, protocol[i], FAR4, protocol[i] == 1 ? 0 : 53, ue(1), 4000);
		error_about(&f, 3, ue(1), FAR4);
		up(&f, 1);
		make(&want, protocol[i], FAR4, protocol[i] == 1 ? 0 : 53, e.address, e.port);
		error_about(&want, 3, e.address, FAR4);
		hop(&want);
		link_layer(&want, "internet", 0);
		expect("ran", &f, "internet", &want);
	}
	uint64_t made = row().made;
	make(&f, 17, FAR4, 53, ue(1), 4999);
	error_about(&f, 3, ue(1), FAR4);
	up(&f, 1);
	expect_drop("ran", &f, "nat-no-mapping");
	assert_int_equal(row().made, made);
}

// RFC 4787 REQ-14: in any order, both ways. UDP, TCP, ICMP.
static void fragments(void **state)
{
	static const uint8_t protocol[] = {17, 6, 1};

	for (int i = 0; i < 6; i++) {
		struct external e = out(1, protocol[i / 2], 4000, FAR4, 53);

		fragments_out(1, protocol[i / 2], 4000, &e, i % 2);
		fragments_in(1, protocol[i / 2], &e, 4000, i % 2);
	}
}

// A later one alone waits for a second, and uses no foreign mapping.
static void fragments_alone(void **state)
{
	static struct frame f, whole;
	struct external e = out(1, 17, 4000, FAR4, 53);

	for (int k = 0; k < 2; k++) {
		struct kit_reasons before = kit_reasons();

		if (k == 0)
			make(&whole, 17, FAR4, 53, e.address, e.port);
		else
			make(&whole, 17, ue(1), 4000, FAR4, 53);
		split(&f, 25, 3, 0, &whole);
		if (k == 0)
			link_layer(&f, "internet", 1);
		else
			up(&f, 1);
		send_frame(k == 0 ? "internet" : "ran", &f);
		kit_advance(900000);
		assert_int_equal(kit_totals().held, 1);
		kit_advance(200000);
		assert_int_equal(kit_totals().held, 0);
		kit_only_rose(&before, "fragment-no-first", 1);
		assert_int_equal(all_out(), 0);
		fragments_in(1, 17, &e, 4000, 1);
	}
}

// The session changes while one of its fragments waits: NAT44's data of the old version does not count.
static void fragments_of_another_version(void **state)
{
	static struct frame f, whole;

	out(1, 17, 4000, FAR4, 53);
	struct kit_reasons before = kit_reasons();
	make(&whole, 17, ue(1), 4000, FAR4, 53);
	split(&f, 25, 3, 0, &whole);
	up(&f, 1);
	send_frame("ran", &f);
	assert_int_equal(kit_totals().held, 1);
	put("s1", upf_session(1));
	put("s9", upf_session(9)); // the old version's rules are its rules now, the other way round
	split(&f, 24, 0, 1, &whole);
	up(&f, 1);
	send_frame("ran", &f);
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(kit_count("internet"), 1);
	kit_only_rose(&before, "nat-moving", 1);
	kit_begin();
	kit_delete(API_SESSION, "s9");
	commit();
}

// A list behind NAT44 sees the subscriber's port of all fragments.
static void fragments_before_a_list(void **state)
{
	struct {
		struct api_acl head;
		struct api_acl_rule rule;
	} l = {{API_DENY, 1}, {.protocol = 17, .protocol_mask = 0xff, .action = API_PERMIT}};
	struct external e = out(1, 17, 4000, FAR4, 53);

	l.rule.source_port[1] = UINT16_MAX;
	l.rule.destination_port[0] = l.rule.destination_port[1] = 4000;
	assert_int_equal(kit_change(API_ACL, "in/core", &l, sizeof(l)), 0);
	assert_int_not_equal(e.port, 4000);
	fragments_in(1, 17, &e, 4000, 0);
	fragments_in(1, 17, &e, 4000, 1);
	kit_begin();
	kit_delete(API_ACL, "in/core");
	commit();
}

// RFC 6888 REQ-4: a subscriber exhausts only its own ports (row A14). When all are used up, mappings still work, and
// freed ports are given again (row A15).
static void limits(void **state)
{
	struct api_nat n = nat_body();

	for (uint16_t i = 0; i < 32; i++)
		out(1, 17, (uint16_t)(4000 + i), FAR4, 53);
	assert_int_equal(row().used, 2);
	refused_out(1, 17, 4032, "nat-subscriber-limit");
	out(1, 17, 4007, FAR4, 53); // what it has works on
	out(2, 17, 4000, FAR4, 53);
	n.blocks = 3; // no mapping goes
	put_nat(&n);
	assert_int_equal(row().mappings, 33);
	out(1, 17, 4032, FAR4, 53);
	assert_int_equal(row().used, 4);

	n.port[1] = 1024 + 2 * 16 - 1; // two blocks an address
	put_nat(&n);
	assert_int_equal(row().mappings, 0);
	for (uint16_t i = 0; i < 32; i++)
		out(1, 17, (uint16_t)(4000 + i), FAR4, 53);
	refused_out(1, 17, 4032, "nat-pool-exhausted"); // RFC 4787 REQ-2: not of the other address
	for (uint16_t i = 0; i < 32; i++)
		out(2, 17, (uint16_t)(4000 + i), FAR4, 53);
	refused_out(3, 17, 4000, "nat-pool-exhausted");
	out(1, 17, 4007, FAR4, 53);
	out(2, 17, 4007, FAR4, 53);
	kit_advance(301000000);
	assert_int_equal(row().used, 0);
	assert_int_equal(row().mappings, 0);
	out(3, 17, 4000, FAR4, 53);
	n.mappings = 5;
	put_nat(&n);
	for (uint16_t i = 0; i < 6; i++)
		out(1, 17, (uint16_t)(4000 + i), FAR4, 53);
	refused_out(2, 17, 4000, "nat-table-full");
	assert_int_equal(row().used, 1);
}

static void tcp(uint32_t n, const struct external *e, uint8_t flags)
{
	static struct frame f;

	if (e == NULL)
		make(&f, 6, ue(n), 4000, FAR4, 53);
	else
		make(&f, 6, FAR4, 53, e->address, e->port);
	checksum_update16(f.at + 36, 2 << 8, (uint16_t)(flags << 8)); // SYN was there
	f.at[33] = flags;
	if (e == NULL)
		up(&f, n);
	else
		link_layer(&f, "internet", 1);
	send_frame(e == NULL ? "ran" : "internet", &f);
	assert_int_equal(all_out(), 1);
}

static void after(uint32_t seconds, uint64_t mappings)
{
	kit_advance(seconds * 1000000ull - 100000);
	assert_int_equal(row().mappings, 1);
	kit_advance(1500000);
	assert_int_equal(row().mappings, mappings);
}

// RFC 4787 REQ-5, REQ-6; RFC 5382 REQ-5; RFC 5508 REQ-2.
static void ageing(void **state)
{
	struct external e = out(1, 17, 4000, FAR4, 53);

	kit_advance(200000000);
	out(1, 17, 4000, FAR4, 53);
	kit_advance(200000000);
	reaches(1, 17, FAR4, 53, &e, 4000); // which does not keep it
	after(100, 0);
	unreachable(17, &e);
	out(1, 1, 4000, FAR4, 53);
	after(60, 0);
	out(1, 6, 4000, FAR4, 53); // a SYN, without answer
	after(240, 0);
	e = out(1, 6, 4000, FAR4, 53);
	tcp(1, &e, 0x12);
	tcp(1, NULL, 0x10);
	after(7440, 0);
	e = out(1, 6, 4000, FAR4, 53);
	tcp(1, &e, 0x12);
	tcp(1, NULL, 0x10);
	tcp(1, &e, 0x11); // FIN of both
	tcp(1, NULL, 0x11);
	after(240, 0);
	assert_int_equal(row().used, 0);
	e = out(1, 6, 4000, FAR4, 53);
	tcp(1, &e, 0x12);
	tcp(1, NULL, 0x10);
	tcp(1, &e, 0x14); // RST
	after(240, 0);
}

static int would; // translate: rows of an explanation that say so

static void count(const struct api_trace_row *row)
{
	would += memmem(row->data, row->length, "would translate", strlen("would translate")) != NULL;
}

// What `isthmus explain` does with a frame.
static int explain(const struct frame *f, const char *port)
{
	struct trace_order o = {.want = {.flags = API_TRACE_HYPOTHETICAL, .seconds = 30, .octets = f->length}};
	struct kit_reasons before = kit_reasons();
	struct api_trace_state s;

	snprintf(o.want.port, sizeof(o.want.port), "%s", port);
	memcpy(o.octets, f->at, f->length);
	assert_int_equal(trace_begin(&o, &s), 0);
	kit_run();
	would = 0;
	assert_int_equal(kit_trace_poll(s.trace, 1, count, &s), 0);
	kit_only_rose(&before, "explained", 1);
	return would;
}

// `explain --downlink` goes through the mapping, and does not close it.
static void hypothetical(void **state)
{
	struct external e = out(1, 6, 4000, FAR4, 53);
	static struct frame f;

	tcp(1, &e, 0x12);
	tcp(1, NULL, 0x10);
	make(&f, 6, FAR4, 53, e.address, e.port);
	checksum_update16(f.at + 36, 2 << 8, 0x14 << 8); // RST
	f.at[33] = 0x14;
	link_layer(&f, "internet", 1);
	explain(&f, "internet");
	after(7440, 0);
}

// An explanation says that a packet would be translated, if its source is inside.
static void hypothetical_untouched(void **state)
{
	static struct frame f;
	struct api_nat n = nat_body();

	n.inside_prefix[0] = kit_address("10.45.0.0/31"); // 0 and 1
	put_nat(&n);
	assert_int_equal(explain(uplink_of(&f, ue(1), FAR4, 0x101, 0xff), "ran"), 1);
	assert_int_equal(explain(uplink_of(&f, ue(2), FAR4, 0x102, 0xff), "ran"), 0);
}

// RFC 6888 REQ-8.
static void rest(void **state)
{
	struct api_nat n = nat_body();

	n.hold = 120;
	n.address[0] = kit_address(OUTSIDE "/32");
	n.port[1] = 1024 + 15; // one block
	put_nat(&n);
	out(1, 1, 4000, FAR4, 53);
	kit_advance(62000000);
	assert_int_equal(row().used, 0);
	assert_int_equal(row().resting, 1);
	refused_out(2, 1, 4000, "nat-pool-exhausted");
	kit_advance(121000000);
	assert_int_equal(row().resting, 0);
	out(2, 1, 4000, FAR4, 53);
}

// The row of a table that is counted in several steps.
static void many_blocks(void **state)
{
	struct api_nat n = nat_body();

	n.address[0] = kit_address("203.0.113.64/26");
	n.port[1] = 65535;
	n.hold = 120;
	n.mappings = 1000;
	put_nat(&n);
	out(1, 17, 4000, FAR4, 53);
	out(2, 1, 4000, FAR4, 53);
	assert_int_equal(row().blocks, 64 * 4032);
	assert_int_equal(row().used, 2);
	assert_int_equal(row().resting, 0);
	kit_advance(62000000);
	assert_int_equal(row().resting, 1);
}

// RFC 7422: by arithmetic; a deleted session's address is its successor's at once.
static void deterministic(void **state)
{
	struct api_nat n = nat_body();

	n.mode = API_NAT_DETERMINISTIC;
	n.blocks = 1;
	n.inside_prefix[0] = kit_address("10.45.0.0/28"); // 16, as there are blocks
	put_nat(&n);
	for (uint32_t i = 1; i <= 3; i++)
		for (uint16_t k = 0; k < 16; k++) {
			struct external e = out(i, 17, (uint16_t)(4000 + k), FAR4, 53);

			assert_string_equal(e.address, OUTSIDE);
			assert_in_range(e.port, 1024 + i * 16, 1024 + i * 16 + 15);
			reaches(i, 17, FAR4, 53, &e, (uint16_t)(4000 + k));
		}
	refused_out(1, 17, 4016, "nat-subscriber-limit");
	struct external e = out(1, 17, 4000, FAR4, 53);
	gone("s1");
	put("s1", upf_session(1));
	unreachable(17, &e);
	out(1, 17, 4016, FAR4, 53);
	assert_int_equal(row().mappings, 33);
	n.inside_prefix[0] = kit_address("10.45.0.0/27");
	assert_int_equal(kit_change(API_NAT, "core", &n, sizeof(n)), EINVAL);
}

static void reports(void **state)
{
	struct external e = out(1, 17, 4000, FAR4, 53);
	uint32_t count;

	kit_advance(300000);
	assert_int_equal(kit_events(API_EVENT_NAT_ALLOCATE), 1);
	struct api_event a = *kit_event(API_EVENT_NAT_ALLOCATE, 0);
	struct api_address outside = kit_address(e.address), inside = kit_address(ue(1));
	assert_memory_equal(&a.local, &outside, sizeof(outside));
	assert_memory_equal(&a.peer, &inside, sizeof(inside));
	assert_in_range(e.port, a.rule >> 16, a.rule & 0xffff);
	assert_int_equal((a.rule & 0xffff) - (a.rule >> 16), 15);
	assert_int_equal(a.seid, 1);
	assert_string_equal(a.session, "s1");
	const struct api_nat_block_row *b = kit_rows(API_TABLE_NAT_BLOCK, "", sizeof(*b), &count);
	assert_int_equal(count, 1);
	assert_string_equal(b->session, "s1");
	assert_int_equal(b->mappings, 1);
	assert_int_equal(b->port[0], a.rule >> 16);
	gone("s1");
	kit_advance(2000000);
	kit_advance(100000);
	assert_int_equal(kit_events(API_EVENT_NAT_RELEASE), 1);
	assert_int_equal(kit_event(API_EVENT_NAT_RELEASE, 0)->rule, a.rule);
	assert_int_equal(kit_event(API_EVENT_NAT_RELEASE, 0)->seid, 1);
	assert_int_equal(row().unreported, 0);
	// A deleted table returns all of them.
	out(2, 17, 4000, FAR4, 53);
	kit_advance(300000);
	struct api_nat n = nat_body();
	n.block = 32;
	put_nat(&n);
	kit_advance(300000);
	kit_advance(100000);
	assert_int_equal(kit_events(API_EVENT_NAT_ALLOCATE), 2);
	assert_int_equal(kit_events(API_EVENT_NAT_RELEASE), 2);
	put("s1", upf_session(1));
}

static void refusals(void **state)
{
	struct api_nat good = nat_body(), n[6];

	for (int i = 0; i < 6; i++)
		n[i] = good;
	n[0].block = 24;
	n[1].port[1] = 1030;
	n[2].inside_prefix[0] = kit_address("2001:db8::/64");
	n[3].udp = 0;
	n[4].addresses = 0;
	n[5].address[n[5].addresses++] = n[5].address[0];
	for (int i = 0; i < 6; i++) {
		assert_int_equal(kit_change(API_NAT, "core", &n[i], sizeof(n[i])), EINVAL);
	}
	assert_int_equal(kit_change(API_NAT, "access", &good, sizeof(good)), ENOENT);
	kit_begin();
	kit_delete(API_INSTANCE, "core");
	assert_int_not_equal(kit_commit(), 0);
	out(1, 17, 4000, FAR4, 53);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(there_and_back, fresh, clean),
		cmocka_unit_test_setup_teardown(without_checksum, fresh, clean),
		cmocka_unit_test_setup_teardown(untouched, fresh, clean),
		cmocka_unit_test_setup_teardown(other_packets, fresh, clean),
		cmocka_unit_test_setup_teardown(hairpin, fresh, clean),
		cmocka_unit_test_setup_teardown(errors, fresh, clean),
		cmocka_unit_test_setup_teardown(fragments, fresh, clean),
		cmocka_unit_test_setup_teardown(fragments_alone, fresh, clean),
		cmocka_unit_test_setup_teardown(fragments_of_another_version, fresh, clean),
		cmocka_unit_test_setup_teardown(fragments_before_a_list, fresh, clean),
		cmocka_unit_test_setup_teardown(limits, fresh, clean),
		cmocka_unit_test_setup_teardown(ageing, fresh, clean),
		cmocka_unit_test_setup_teardown(hypothetical, fresh, clean),
		cmocka_unit_test_setup_teardown(hypothetical_untouched, fresh, clean),
		cmocka_unit_test_setup_teardown(rest, fresh, clean),
		cmocka_unit_test_setup_teardown(many_blocks, fresh, clean),
		cmocka_unit_test_setup_teardown(deterministic, fresh, clean),
		cmocka_unit_test_setup_teardown(reports, fresh, clean),
		cmocka_unit_test_setup_teardown(refusals, fresh, clean),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
