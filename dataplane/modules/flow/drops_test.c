// SPDX-License-Identifier: Apache-2.0
// Provokes each drop reason of the nodes that the fast paths skip, before and after a good packet of the way was
// learnt. Sends one packet, a vector of them, and a mix with good ones. Every reason has a row, or a sentence why
// packets of a learnt flow cannot meet it.
#include "flow/drops_test.h"
#include "flow/flow.h"
#include "rule/tables.h"

#define VECTOR 64

static int wrong; // what failed
static const struct row *row;
static const struct way *way;
static const char *phase;
static int is_new; // nothing of the way is learnt yet

static void check(int good, const char *what)
{
	if (good)
		return;
	print_error("%s, %s, %s: %s\n", row->reason, way->name, phase, what);
	wrong++;
}

// ---- frames ---------------------------------------------------------------------------------------------------------

static void make_bad(struct frame *f)
{
	uint8_t *place;

	way->make_frame(f);
	if (row->make != NULL)
		row->make(f, way);
	place = f->at + way->at[row->place];
	if (row->bytes != 0)
		memcpy(place + row->at, row->put, row->bytes);
	if (row->sum != 0) {
		f->at += way->at[row->sum];
		frame_ip4_sum(f);
		f->at -= way->at[row->sum];
	}
	if (way->at[USER] > way->at[L3] && f->at[way->at[L3]] >> 4 == 6 && row->place != L4)
		frame_udp6_sum(f->at + way->at[L3]);
	if (row->end != 0)
		f->length = (uint32_t)(place + row->end - f->at);
}

static uint64_t full_nodes(void)
{
	return kit_node_packets("core-input") + kit_node_packets("access-input");
}

static uint32_t out_of_all(void)
{
	return all_out() + kit_count("homes") + kit_count("loose");
}

// How many of `n` good packets, which all leave, take the full nodes.
static uint64_t send_good(uint32_t n)
{
	static struct frame f;

	way->make_frame(&f);
	uint64_t before = full_nodes();
	kit_clear();
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(kit_send(way->in, f.at, f.length), 0);
	kit_run();
	check(kit_count(way->out) == n && out_of_all() == n, "a good packet does not leave");
	return full_nodes() - before;
}

// ---- rows -----------------------------------------------------------------------------------------------------------

static void set(int on)
{
	if (row->alter != NULL)
		drops_put_session(way, on ? row->alter : NULL);
	if (row->change != NULL)
		row->change(way, on);
	kit_advance(5000);
}

static void only_rose(const struct kit_reasons *before, uint32_t n)
{
	char text[128];

	for (uint16_t i = 0; i < reason_count(); i++) {
		const struct reason *r = reason_get(i);
		uint64_t rose = kit_reason_of(i) - before->count[i], want = strcmp(r->name, row->reason) == 0 ? n : 0;

		snprintf(text, sizeof(text), "%s rose by %lu, of %u packets", r->name, rose, n);
		check(rose == want || r->kind == REASON_PUNT, text);
	}
}

// Drops of the session's own gate, FAR, meters, quotas, redirection and limit of flows.
static int is_own(void)
{
	return strstr(" uplink-gate-closed downlink-gate-closed uplink-far-drop downlink-far-drop buffer-not-kept "
		      "redirect-not-http policer-uplink policer-downlink usage-quota new-flows-subscriber ",
		       row->reason) != NULL;
}

static uint64_t session_dropped(void)
{
	struct api_session_row s = {0};

	if (way->session != NULL)
		s = kit_session_row(way->session);
	return s.uplink_dropped + s.downlink_dropped;
}

// `bad` frames: with BEFORE a good one in front of each, with BEHIND one after each.
enum { ALONE, BEFORE, BEHIND };

static void send_bad(uint32_t bad, int mixed)
{
	static struct frame f, good;
	struct kit_reasons before;
	char text[64];

	make_bad(&f);
	way->make_frame(&good);
	kit_clear();
	before = kit_reasons();
	uint64_t full = full_nodes(), dropped = session_dropped();
	for (uint32_t i = 0; i < bad; i++) {
		if (mixed == BEFORE)
			assert_int_equal(kit_send(way->in, good.at, good.length), 0);
		assert_int_equal(kit_send(way->in, f.at, f.length), 0);
		if (mixed == BEHIND)
			assert_int_equal(kit_send(way->in, good.at, good.length), 0);
	}
	kit_run();
	only_rose(&before, bad);
	check(!is_new || full_nodes() - full == bad, "the flow is learnt already");
	uint32_t left = mixed != ALONE ? bad : 0, out = kit_count(way->out), all = out_of_all();
	snprintf(text, sizeof(text), "%u of %u frames left", out, all);
	check(row->answered ? out == left || strcmp(way->in, way->out) == 0 : out == left && all == left, text);
	check(kit_balance(), "the sum does not hold");
	dropped = session_dropped() - dropped;
	snprintf(text, sizeof(text), "the session counts %lu as dropped, of %u", dropped, bad);
	check(dropped == (is_own() ? bad : 0), text);
}

static void forget(void)
{
	for (uint32_t i = 0; i < session_pools.rules; i++)
		session_pools.state[i].key = 0;
	for (uint32_t v = 0; v < MAX_VRFS; v++)
		flow_routed[0].of_vrf[v].key = 0;
}

static void before_and_after(void)
{
	uint64_t full = 1;

	kit_advance(1000000);
	forget();
	phase = "before";
	is_new = 1;
	set(1);
	send_bad(1, ALONE);
	is_new = 0;
	set(0);
	for (int i = 0; i < 8 && full != 0; i++)
		full = send_good(1);
	check(full == 0 && send_good(VECTOR) == 0, "a good packet takes the full nodes");
	phase = "after";
	set(1);
	send_bad(1, ALONE);
	set(0);
	while (full++ < 4)
		send_good(1);
	phase = "a vector";
	set(1);
	send_bad(VECTOR, ALONE);
	set(0);
	if (row->alter != NULL || row->change != NULL)
		return;
	phase = "mixed";
	send_good(1);
	send_bad(VECTOR / 2, BEFORE);
	send_bad(VECTOR / 2, BEHIND);
	kit_clear();
}

static void run_rows(const struct row *rows, size_t count)
{
	for (row = rows; row < rows + count; row++)
		for (uint32_t w = 0; w < WAYS; w++) {
			way = &drops_ways[w];
			if (row->ways & BIT(w))
				before_and_after();
		}
	assert_int_equal(wrong, 0);
}

static void input(void **state)
{
	run_rows(drops_input_rows, drops_input_count);
}

static void sessions(void **state)
{
	run_rows(drops_session_rows, drops_session_count);
}

// ---- none is left out -----------------------------------------------------------------------------------------------

static const struct {
	const char *why, *reasons;
} elsewhere[] = {
	{"the fast path gives its packets to these nodes too",
		"port-gone port-tx-full scheduler-queue-full scheduler-red scheduler-precedence scheduler-longest "
		"scheduler-no-room scheduler-replaced"},
	{"before it: in the port, on the way from another worker", "receive-no-buffer inbox-full"},
	{"of what a device marked, offload_test.c", "offload-mark offload-inner"},
	{"the host path: no packet of a session",
		"punt-rate-limit punt-neighbour-full punt-control-full punt-urgent-full punt-queue-full inject-full "
		"punt-newcomer-full punt-own-mac punt-subscriber-limit punt-line-limit punt-s-tag-limit "
		"punt-port-limit "
		"channel-full channel-too-long clone-refused clone-too-long clone-no-buffer clone-interface-down "
		"pppoe-discovery-malformed lcp-echo-malformed lcp-echo-loop lcp-echo-rate-limit lcp-echo-heard"},
	{"ARP, neighbour discovery, and who waits for them: what is not resolved takes the full nodes",
		"neighbour-unknown-subscriber neighbour-spoof neighbour-not-gateway neighbour-announcement "
		"neighbour-access-rate-limit neighbour-on-ppp neighbour-no-room arp-malformed arp-not-for-us "
		"arp-unsolicited nd-malformed nd-not-for-us nd-unsolicited address-conflict neighbour-rate-limit "
		"neighbour-unresolved neighbour-queue-full neighbour-table-full"},
	{"GTP-U messages that are no G-PDU",
		"gtpu-echo-rate-limit gtpu-echo-malformed gtpu-error-indication-malformed "
		"gtpu-error-indication-stranger gtpu-end-marker-unknown gtpu-end-marker-lost"},
	{"echo requests to us", "echo-rate-limit echo-not-answerable echo-malformed echo-no-session echo-shared"},
	{"how a sender is told: what it is told of has a row",
		"icmp-rate-limit icmp-no-source icmp-no-session icmp-no-way icmp-no-room"},
	{"fragments to us, and packets that are too long for the way out",
		"reassembly-timeout reassembly-full reassembly-source reassembly-overlap reassembly-ecn "
		"reassembly-malformed fragment-malformed fragment-impossible fragment-no-buffer fragment-limit"},
	{"later fragments whose time is over: follow_test.c", "fragment-no-first"},
	{"behind FARs that do not just forward: buffer-not-kept and redirect-not-http have rows",
		"buffer-full buffer-crowded-out buffer-precedence buffer-timeout buffer-discarded redirect-answered "
		"redirect-silent redirect-strange redirect-no-way duplicate-impossible"},
	{"copies, of which none is of a learnt flow", "mirror-impossible mirror-no-buffer explained"},
	{"tunnels of UDP without GTP-U, which are never learnt",
		"udp-not-endpoint udp-length udp-checksum udp-inner-malformed udp-inner-checksum udp-inner-martian "
		"udp-inner-ecn udp-path-gone udp-headroom udp-too-long"},
	{"circles of sessions: what comes back to us, or goes from UE to UE, is never learnt",
		"forward-hops output-hops output-to-ourselves"},
	{"a session's ports change hands: table_test.c", "nat-moving"},
	{"no packet from the wire comes so far, hostile/nodes_test.c gives them to the node",
		"forward-no-packet output-no-packet headroom access-headroom gtpu-headroom gtpu-too-long"},
	{"what a session needs cannot be deleted", "gtpu-path-gone access-port-gone"},
};

static int has_row(const struct row *rows, size_t count, const char *reason)
{
	while (count > 0 && strcmp(rows[count - 1].reason, reason) != 0)
		count--;
	return count > 0;
}

static int is_listed(const char *reason)
{
	char name[64], words[1024];
	int found = 0;

	snprintf(name, sizeof(name), " %s ", reason);
	for (size_t i = 0; i < RTE_DIM(elsewhere); i++) {
		snprintf(words, sizeof(words), " %s ", elsewhere[i].reasons);
		found += strstr(words, name) != NULL;
	}
	return found;
}

// A reason that is new has to be thought about.
static void none_is_left_out(void **state)
{
	int missing = 0;

	for (uint16_t i = 0; i < reason_count(); i++) {
		const struct reason *r = reason_get(i);
		int known = is_listed(r->name) + (has_row(drops_input_rows, drops_input_count, r->name) ||
							 has_row(drops_session_rows, drops_session_count, r->name));

		if (r->kind != REASON_DROP || known == 1)
			continue;
		print_error("%s: %s\n", r->name, known == 0 ? "no row, and not listed" : "a row, and listed");
		missing++;
	}
	assert_int_equal(missing, 0);
}

static int setup(void **state)
{
	drops_start();
	return 0;
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(input), cmocka_unit_test(sessions), cmocka_unit_test(none_is_left_out)};

	return cmocka_run_group_tests(list, setup, NULL);
}
