// SPDX-License-Identifier: Apache-2.0
// Traces of a UPF's packets: the way, the words, the end; the same frames, counters and usage with and without a trace;
// limits.
#include "trace/trace_test.h"
#include "trace/program.h"
#include "trace/sessions.h"

// A trace without room gives everything back: another one finds it.
static void test_no_room(void **unused)
{
	struct rte_ring *taken = rte_ring_create("trace-1", 64, SOCKET_ID_ANY, 0);

	assert_non_null(taken);
	assert_int_equal(trace_begin(order(API_TRACE_STEPS), &state), ENOMEM);
	rte_ring_free(taken);
	begin(order(API_TRACE_STEPS));
	poll_it(1);
}

static void test_way(void **unused)
{
	struct trace_order *o = order(API_TRACE_STEPS | API_TRACE_RECEIVED | API_TRACE_INSIDE | API_TRACE_SENT);
	struct frame f, other;

	uplink(&f, 0x100, UE4);
	uplink(&other, 0x101, "10.45.0.3");
	send_frame("ran", &f); // the fast path knows it now
	key_of_ue(o);
	begin(o);
	send_frame("ran", &other);
	send_frame("ran", &f);
	assert_int_equal(kit_count("internet"), 1);
	poll_it(0);
	assert_int_equal(state.packets, 1);
	assert_non_null(
		row_of("flow-input", API_TRACE_ENTERED)); // behind the fast path, from which its session was taken
	says("session-tunnel", API_TRACE_STEP,
		"F-TEID 0x00000100, QFI 9: session s1; PDR 1 (precedence 100), FAR 1, QER 1, URR 1: ");
	says("policer-uplink", API_TRACE_STEP, "URRs count it");
	says("ip-output", API_TRACE_STEP, "by the neighbour 192.0.2.2 on n6, MTU");
	uint32_t count;
	const struct api_rule_row *rule = kit_rows(API_TABLE_RULE, "s1", sizeof(*rule), &count);
	assert_int_equal(rule->qfi, 9);
	assert_int_equal(rule->qers, 1);
	assert_int_equal(rule->urrs, 1);
	assert_int_equal(rule->qer[0], 1);
	assert_int_equal(rule->urr[0], 1);
	says("port-tx", API_TRACE_WENT, "bytes on internet");
	assert_int_equal(row_of("port-tx", API_TRACE_WENT)->outcome, API_TRACE_LEFT);
	assert_string_equal(row_of("flow-input", API_TRACE_ENTERED)->port, "ran");
	// The frame as received, as the IP packet inside, as sent.
	const struct api_trace_row *data = row_of("flow-input", API_TRACE_DATA);
	assert_memory_equal(data->data, f.at, data->length);
	assert_int_equal(row_of("session-tunnel", API_TRACE_DATA)->frame, f.length - 14 - 20 - 8 - 16);
	assert_memory_equal(row_of("port-tx", API_TRACE_DATA)->data, kit_frame("internet", 0)->bytes,
		kit_frame("internet", 0)->length);
	downlink(&f);
	send_frame("internet", &f);
	poll_it(1);
	says("gtpu-encap", API_TRACE_STEP, "to 10.1.0.2, TEID 0x00000200");
	assert_int_equal(kit_trace_poll(state.trace, 0, take, &state), ENOENT);
	send_frame("internet", &f);
	assert_int_equal(kit_count("ran"), 1);
}

static uint32_t rows_with(uint32_t table, const char *key, uint32_t size)
{
	uint32_t count;

	kit_rows(table, key, size, &count);
	return count;
}

// Keys of explain: sessions by an address, routes that may lead to one.
static void test_keys(void **unused)
{
	const uint32_t session = sizeof(struct api_session_row), route = sizeof(struct api_route_row);

	assert_int_equal(rows_with(API_TABLE_SESSION, "", session), 1);
	assert_int_equal(rows_with(API_TABLE_SESSION, "s1", session), 1);
	assert_int_equal(rows_with(API_TABLE_SESSION, UE4, session), 1);
	assert_int_equal(rows_with(API_TABLE_RULE, UE4, sizeof(struct api_rule_row)), 2);
	assert_int_equal(rows_with(API_TABLE_SESSION, "10.45.9.9", session), 0);
	assert_true(rows_with(API_TABLE_ROUTE, "", route) > 3);
	assert_int_equal(rows_with(API_TABLE_ROUTE, "0.0.0.0/0", route), 1);
	assert_int_equal(rows_with(API_TABLE_ROUTE, "192.0.2.77", route), 2); // the network and the default route
	assert_int_equal(rows_with(API_TABLE_ROUTE, "2001:db8:6::9", route), 2);
	assert_int_equal(rows_with(API_TABLE_ROUTE, "192.0.2.0/25", route), 0);
}

// A flow known to the fast path, and a new one.
static void put_flows(struct frame *known, struct frame *new)
{
	put_session_of(0, 1);
	uplink(known, 0x100, UE4);
	put_udp(new, 5001);
	for (int i = 0; i < 3; i++)
		send_frame("ran", known);
}

static void send_ten(struct frame *known, struct frame *new)
{
	for (int i = 0; i < 20; i++) {
		send_frame("ran", i % 2 ? new : known);
		assert_int_equal(kit_count("internet"), 1);
	}
}

// Flows known to the fast path, and a flow that begins during the trace: all packets of both are traced. Afterwards the
// fast path has both again.
static void test_several(void **unused)
{
	struct trace_order *o = order(API_TRACE_STEPS);
	struct frame f, new;

	put_flows(&f, &new);
	key_of_ue(o);
	begin(o);
	send_ten(&f, &new);
	poll_it(1);
	assert_int_equal(state.packets, 20);
	send_frame("ran", &f);
	send_frame("ran", &new);
	uint64_t full = kit_node_packets("session-tunnel");
	send_frame("ran", &f);
	send_frame("ran", &new);
	assert_int_equal(kit_node_packets("session-tunnel"), full);
	put_session(0);
}

// A subscriber's packets of one port: the program sees that session's packets alone, which stay off the fast path
// whether they match or not.
static void test_filtered(void **unused)
{
	static const struct api_trace_instruction port[] = {{48, 0, 0, 9}, {21, 0, 6, 17}, {177, 0, 0, 0},
		{72, 0, 0, 0}, {21, 2, 0, 5001}, {72, 0, 0, 2}, {21, 0, 1, 5001}, {6, 0, 0, 65535}, {6, 0, 0, 0}};
	struct trace_order *o = order(API_TRACE_STEPS);
	struct frame f, new;

	put_flows(&f, &new);
	key_of_ue(o);
	o->want.packet_code = RTE_DIM(port);
	memcpy(o->packet, port, sizeof(port));
	begin(o);
	send_ten(&f, &new);
	poll_it(1);
	assert_int_equal(state.packets, 10);
	assert_non_null(row_of("flow-input", API_TRACE_ENTERED));
	put_session(0);
}

// Drops are among the fast path's rest.
static void test_late(void **unused)
{
	struct frame f, spoofed, good;

	uplink(&f, 0x999, UE4);
	uplink(&spoofed, 0x100, "10.45.9.9");
	uplink(&good, 0x100, UE4);
	send_frame("ran", &good);
	begin(order(API_TRACE_STEPS | API_TRACE_LATE));
	send_frame("ran", &good);
	poll_it(0);
	assert_int_equal(count, 0);
	send_frame("ran", &f);
	poll_it(0);
	says("session-tunnel", API_TRACE_STEP, "F-TEID 0x00000999, QFI 9: no session has it");
	send_frame("ran", &spoofed);
	assert_int_equal(kit_reason("source-spoofed"), 1);
	poll_it(0);
	says("drop", API_TRACE_WENT, "source-spoofed: ");
	put_session(1);
	send_frame("ran", &good);
	poll_it(1);
	says("drop", API_TRACE_WENT, "uplink-gate-closed: ");
	put_session(0);
}

// Packets that a trace behind the fast path saw and left stay the fast path's.
static void test_left(void **unused)
{
	struct trace_order *o = order(API_TRACE_STEPS | API_TRACE_LATE);
	struct frame f, unknown;

	uplink(&f, 0x100, UE4);
	uplink(&unknown, 0x999, UE4);
	o->want.sample = 1000;
	begin(o);
	put_session(0);
	send_frame("ran", &unknown); // the one of a thousand
	send_frame("ran", &f);
	uint64_t full = kit_node_packets("session-tunnel");
	send_frame("ran", &f);
	assert_int_equal(kit_count("internet"), 1);
	assert_int_equal(kit_node_packets("session-tunnel"), full);
	poll_it(1);
	assert_int_equal(state.packets, 1);
}

// Many keys and many sessions do not hold the control thread up: the trace looks at frames instead.
static void test_withdraw(void **unused)
{
	const struct api_trace_key key[2] = {
		{.by = API_TRACE_BY_ADDRESS, .address = kit_address(UE4)}, {.by = API_TRACE_BY_TEID, .teid = 0x100}};

	assert_int_equal(sessions_withdraw(key, 2, 1000), 1);
	assert_int_equal(sessions_withdraw(key, 2, 5), 0);
}

// A trace of all packets and a trace of the fast path's rest both show the packet's way, under one number.
static void test_both(void **unused)
{
	struct api_trace_state all, late;
	struct frame spoofed;
	uint32_t number;

	uplink(&spoofed, 0x100, "10.45.9.9");
	begin(order(API_TRACE_STEPS));
	all = state;
	begin(order(API_TRACE_STEPS | API_TRACE_LATE));
	late = state;
	send_frame("ran", &spoofed);
	state = all;
	poll_it(1);
	assert_int_equal(state.packets, 1);
	says("drop", API_TRACE_WENT, "source-spoofed: ");
	assert_non_null(row_of("port-rx", API_TRACE_ENTERED));
	assert_null(row_of("flow-input", API_TRACE_ENTERED));
	number = rows[0].packet;
	state = late;
	poll_it(1);
	assert_int_equal(state.packets, 1);
	says("drop", API_TRACE_WENT, "source-spoofed: ");
	assert_int_equal(rows[0].what, API_TRACE_ENTERED);
	assert_string_equal(rows[0].node, "flow-input");
	assert_int_equal(rows[0].packet, number);
}

// Packets followed by an ended trace, some still waiting, are not the next trace's.
static void test_waits(void **unused)
{
	struct frame down;

	downlink(&down);
	downlink_action = API_FAR_BUFFER;
	put_session(0);
	begin(order(API_TRACE_STEPS));
	send_frame("internet", &down);
	poll_it(1);
	assert_int_equal(state.packets, 1);
	begin(order(API_TRACE_STEPS));
	downlink_action = API_FAR_FORWARD;
	put_session(0);
	kit_advance(1000);
	assert_int_equal(kit_count("ran"), 1);
	poll_it(1);
	assert_int_equal(count, 0);
}

// Packets before a traced one in its vector stay before it, when the fast path leaves them too.
static void test_order(void **unused)
{
	static const struct api_trace_instruction port[] = {
		{0x30, 0, 0, 9}, {0x15, 0, 3, 17}, {0x28, 0, 0, 22}, {0x15, 0, 1, 5001}, {6, 0, 0, 1}, {6, 0, 0, 0}};
	struct trace_order *o = order(API_TRACE_STEPS);
	struct frame f;

	memcpy(o->packet, port, sizeof(port));
	o->want.packet_code = RTE_DIM(port);
	begin(o);
	put_session(0); // the fast path does not know it yet
	kit_clear();
	for (uint16_t i = 0; i < 5; i++) {
		put_udp(&f, i < 3 ? 6000 + i : 4998 + i);
		assert_int_equal(kit_send("ran", f.at, f.length), 0);
	}
	kit_run();
	assert_int_equal(kit_count("internet"), 5);
	for (uint16_t i = 0; i < 5; i++)
		assert_int_equal(load16(kit_frame("internet", i)->bytes + 14 + 20 + 2), i < 3 ? 6000 + i : 4998 + i);
	poll_it(1);
	assert_int_equal(state.packets, 1);
}

// The same traffic untraced, traced whole, and traced by UE: the same frames, counters, usage.
static void test_same(void **unused)
{
	static uint64_t words[3][4096];
	uint64_t usage[3];
	struct frame up, down;
	uint32_t n = 0;

	uplink(&up, 0x100, UE4);
	downlink(&down);
	for (int traced = 0; traced < 3; traced++) {
		struct trace_order *o = order(API_TRACE_STEPS | API_TRACE_RECEIVED | API_TRACE_SENT);

		n = kit_count_words(words[traced], 4096, (uint64_t)-1);
		usage[traced] = -urr_bytes();
		if (traced == 2)
			key_of_ue(o);
		if (traced != 0)
			begin(o);
		for (int i = 0; i < 50; i++) {
			send_frame("ran", &up);
			assert_int_equal(kit_count("internet"), 1);
			send_frame("internet", &down);
			assert_int_equal(kit_count("ran"), 1);
		}
		kit_count_words(words[traced], 4096, 1);
		usage[traced] += urr_bytes();
		assert_int_equal(usage[traced], 100 * 92);
		if (traced == 0)
			continue;
		assert_memory_equal(words[traced], words[0], n * sizeof(words[0][0]));
		poll_it(1);
		assert_int_equal(state.packets, 100);
		assert_true(kit_balance());
	}
}

static void test_bounded(void **unused)
{
	struct trace_order *o = order(API_TRACE_STEPS | API_TRACE_RECEIVED);
	struct frame f;

	uplink(&f, 0x100, UE4);
	o->want.rate = 10;
	begin(o);
	for (int i = 0; i < 100; i++)
		send_frame("ran", &f);
	poll_it(1);
	assert_in_range(count, 6, ROWS - 1);
	says("port-tx", API_TRACE_WENT, "bytes on internet");
	assert_in_range(state.packets, 1, 2);
	assert_int_equal(state.missed, 100 - state.packets);
	o = order(API_TRACE_STEPS | API_TRACE_RECEIVED);
	o->want.rate = 1000000;
	begin(o);
	for (int i = 0; i < 2000; i++) {
		kit_advance(10);
		send_frame("ran", &f);
		assert_int_equal(kit_count("internet"), 1);
	}
	// A poll takes so many; the last one all.
	poll_it(0);
	assert_int_equal(taken, TRACE_ROWS_OF_POLL);
	poll_it(1);
	assert_int_equal(taken, TRACE_ROWS - 1 - TRACE_ROWS_OF_POLL);
	assert_true(state.lost > 0);
	// Of what is dropped, too, nothing is counted twice.
	o = order(API_TRACE_STEPS | API_TRACE_LATE);
	o->want.rate = 10;
	begin(o);
	put_session(1); // a closed gate
	for (int i = 0; i < 100; i++)
		send_frame("ran", &f);
	put_session(0);
	poll_it(1);
	assert_in_range(state.packets, 1, 2);
	assert_int_equal(state.missed, 100 - state.packets);
	// The number of packets, one of so many.
	o = order(API_TRACE_STEPS);
	o->want.sample = 10;
	o->want.packets = 3;
	begin(o);
	for (int i = 0; i < 100; i++) {
		kit_advance(1000);
		send_frame("ran", &f);
	}
	poll_it(0);
	assert_int_equal(state.packets, 3);
	assert_int_equal(state.end, API_TRACE_PACKETS);
	poll_it(1);
}

static void test_life(void **unused)
{
	struct frame f;
	struct api_trace_state s[API_MAX_TRACES];
	const struct rte_node *node = rte_graph_node_get_by_name("worker-0", "port-rx");
	rte_node_process_t own = node->process;

	uplink(&f, 0x100, UE4);
	for (uint32_t i = 0; i < API_MAX_TRACES; i++)
		assert_int_equal(trace_begin(order(API_TRACE_STEPS), &s[i]), 0);
	assert_ptr_not_equal(node->process, own);
	assert_int_equal(trace_begin(order(API_TRACE_STEPS), &state), EBUSY);
	send_frame("ran", &f);
	for (uint32_t i = 0; i < API_MAX_TRACES; i++) {
		state = s[i];
		poll_it(i > 0);
		says("port-tx", API_TRACE_WENT, "on internet");
	}
	// The first one is no longer polled.
	for (int i = 0; i < 12; i++)
		kit_advance(1000000);
	assert_int_equal(kit_trace_poll(s[0].trace, 0, take, &state), ENOENT);
	assert_ptr_equal(node->process, own);
	struct trace_order *o = order(API_TRACE_STEPS);
	o->want.seconds = 10;
	begin(o);
	for (int i = 1; i <= 11; i++) {
		kit_advance(1000000);
		if (i < 4 || i == 10) // no poll for four seconds
			continue;
		poll_it(0);
		assert_int_equal(state.end, i < 10 ? API_TRACE_RUNS : API_TRACE_TIME);
	}
	o = order(API_TRACE_STEPS);
	o->want.seconds = 0;
	assert_int_equal(trace_begin(o, &state), EINVAL);
	o = order(API_TRACE_STEPS);
	strcpy(o->want.port, "nowhere");
	assert_int_equal(trace_begin(o, &state), ENOENT);
}

// tcp or udp port 5000 (0x1388), as tcpdump -y RAW makes it, shortened: accept a UDP packet of IPv4.
static void test_programs(void **unused)
{
	static const struct api_trace_instruction udp[] = {
		{0x30, 0, 0, 9}, {0x15, 0, 1, 17}, {0x06, 0, 0, 65535}, {0x06, 0, 0, 0}};
	static const struct api_trace_instruction backwards[] = {{0x05, 0, 0, 0xffffffff}, {0x06, 0, 0, 0}};
	struct trace_order *o = order(API_TRACE_STEPS);
	struct frame f;

	downlink(&f);
	memcpy(o->packet, udp, sizeof(udp));
	o->want.packet_code = RTE_DIM(udp);
	begin(o);
	send_frame("internet", &f);
	poll_it(0);
	assert_int_equal(state.packets, 1);
	says("flow-input", API_TRACE_STEP, "fast path leaves");
	assert_int_equal(kit_count("ran"), 1);
	poll_it(1);
	memcpy(o->packet, udp, sizeof(udp));
	o->packet[1].k = 6;
	begin(o);
	send_frame("internet", &f);
	poll_it(1);
	assert_int_equal(state.packets, 0);
	// udp port 2152 and udp[9] = 255, of IPv4, as libpcap compiles it: loads by index.
	static const struct api_trace_instruction gtpu[] = {{48, 0, 0, 9}, {21, 0, 10, 17}, {40, 0, 0, 6},
		{69, 8, 0, 8191}, {177, 0, 0, 0}, {72, 0, 0, 0}, {21, 2, 0, 2152}, {72, 0, 0, 2}, {21, 0, 3, 2152},
		{80, 0, 0, 9}, {21, 0, 1, 255}, {6, 0, 0, 65535}, {6, 0, 0, 0}};
	uplink(&f, 0x100, UE4);
	memcpy(o->packet, gtpu, sizeof(gtpu));
	o->want.packet_code = RTE_DIM(gtpu);
	begin(o);
	send_frame("ran", &f);
	poll_it(1);
	assert_int_equal(state.packets, 1);
	memcpy(o->packet, backwards, sizeof(backwards));
	o->want.packet_code = RTE_DIM(backwards);
	assert_int_equal(trace_begin(o, &state), EINVAL);
}

// Every code: bpf_filter() has the accepted ones; it ends the process at others.
static void test_instructions(void **unused)
{
	static const uint8_t packet[40] = {0x45};
	static const struct api_trace_instruction bad[] = {
		{0x0106, 0, 0, 0}, {0x000e, 0, 0, 0}, {0x34, 0, 0, 0}, {0x94, 0, 0, 0}, {0x64, 0, 0, 32}};
	struct api_trace_instruction code[3] = {{0}, {0x06, 0, 0, 0}, {0x06, 0, 0, 0}};
	uint32_t taken = 0;
	struct bpf_insn *p;

	for (uint32_t i = 0; i <= UINT16_MAX; i++) {
		code[0] = (struct api_trace_instruction){(uint16_t)i, 0, 0, (i & 7) == BPF_JMP ? 0 : 1};
		if (program_load(&p, code, RTE_DIM(code)) != 0)
			continue;
		taken++;
		program_takes(p, packet, sizeof(packet), sizeof(packet));
		free(p);
	}
	assert_int_equal(taken, 49);
	for (uint32_t i = 0; i < RTE_DIM(bad); i++) {
		struct trace_order *o = order(API_TRACE_STEPS);

		o->packet[0] = bad[i];
		o->packet[1] = code[1];
		o->want.packet_code = 2;
		assert_int_equal(trace_begin(o, &state), EINVAL);
	}
}

static uint64_t edge_packets(const char *from, const char *to)
{
	uint32_t n;
	const struct api_edge_row *r = kit_rows(API_TABLE_EDGE, "", sizeof(*r), &n);

	for (uint32_t i = 0; i < n; i++)
		if (strcmp(r[i].from, from) == 0 && strcmp(r[i].to, to) == 0 && r[i].packets != 0)
			return r[i].packets;
	return 0;
}

static void test_edges(void **unused)
{
	struct frame f, wrong;
	uint64_t fast = edge_packets("flow-input", "port-tx"), full = edge_packets("flow-input", "core-input");

	uplink(&f, 0x100, UE4);
	uplink(&wrong, 0x778, UE4);
	send_frame("ran", &f); // counted by no rule
	assert_int_equal(edge_packets("flow-input", "port-tx"), fast);
	begin(order(API_TRACE_EDGES));
	send_frame("ran", &f);
	send_frame("ran", &f);
	send_frame("ran", &wrong);
	assert_int_equal(edge_packets("flow-input", "port-tx"), fast + 2);
	assert_int_equal(edge_packets("flow-input", "core-input"), full + 1);
	poll_it(1);
	assert_int_equal(count, 0);
}

// Behind a followed packet, other flows' packets keep the fast path; its own flow's do not overtake it.
static void test_others(void **unused)
{
	static const struct api_trace_instruction port[] = {
		{0x30, 0, 0, 9}, {0x15, 0, 3, 17}, {0x28, 0, 0, 22}, {0x15, 0, 1, 5001}, {6, 0, 0, 1}, {6, 0, 0, 0}};
	static const uint16_t to[] = {6000, 5001, 6001, 7000, 6002, 7001, 5001, 6003};
	struct trace_order *o = order(API_TRACE_STEPS);
	struct api_trace_state edges;
	struct frame f;
	uint16_t last = 6000, far = 0, other = 0;

	put_session(0);
	put_udp(&f, 6000);
	send_frame("ran", &f); // the fast path learns it
	assert_int_equal(trace_begin(order(API_TRACE_EDGES), &edges), 0);
	uint64_t fast = edge_packets("flow-input", "port-tx"), full = edge_packets("flow-input", "core-input");
	o = order(API_TRACE_STEPS);
	memcpy(o->packet, port, sizeof(port));
	o->want.packet_code = RTE_DIM(port);
	begin(o);
	kit_clear();
	for (uint32_t i = 0; i < RTE_DIM(to); i++) {
		put_udp_to(&f, to[i] < 7000 ? FAR4 : "203.0.113.9", to[i]);
		assert_int_equal(kit_send("ran", f.at, f.length), 0);
	}
	kit_run();
	assert_int_equal(kit_count("internet"), RTE_DIM(to));
	for (uint32_t i = 0; i < RTE_DIM(to); i++) {
		uint16_t is = load16(kit_frame("internet", i)->bytes + 14 + 20 + 2);

		if (is >= 7000) {
			assert_int_equal(is, 7000 + other++);
			continue;
		}
		if (is != 5001) {
			assert_true(is >= last);
			last = is;
		}
		assert_true((is == 5001) == (far == 1 || far == 4)); // in its place
		far++;
	}
	assert_int_equal(edge_packets("flow-input", "port-tx"), fast + 3);
	assert_int_equal(edge_packets("flow-input", "core-input"), full + 5);
	poll_it(1);
	assert_int_equal(state.packets, 2);
	state = edges;
	poll_it(1);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_way),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_filtered),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_withdraw),
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_instructions),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(all, setup, NULL);
}
