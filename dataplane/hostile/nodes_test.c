// SPDX-License-Identifier: Apache-2.0
// Drops at each node's own input. Earlier nodes stop such packets today, so a source node of this test injects them.
// Also tests that need small queues: this program's engine has small limits.
#include "core/control.h"
#include "core/engine.h"
#include "core/node.h"
#include "gtpu/gtpu.h"
#include "host/host.h"
#include "hostile/hostile.h"
#include "icmp/icmp.h"
#include "route/route.h"
#include "rule/far_more.h"
#include "rule/rule.h"
#include "wire/arp.h"
#include "wire/eth.h"
#include "wire/nd.h"
#include "wire/pppoe.h"

#define ROOM 32 // packets handed over to a worker, and punted, that may wait

// A source of packets with any metadata.

enum {
	ACCESS_ENCAP,
	DUPLICATE,
	FRAGMENT_ACCESS,
	GTPU_ENCAP,
	ICMP_ECHO,
	ICMP_ERROR,
	IP_FORWARD,
	IP_OUTPUT,
	ND_ACCESS,
	PORT_TX,
	UDP_ENCAP,
	NODES
};

static struct {
	struct rte_mbuf *packet[256];
	uint16_t count;
	rte_edge_t node;
} probe;

static uint16_t probe_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	uint16_t count = worker_self()->id == 0 ? probe.count : 0;

	if (count != 0) {
		rte_node_enqueue(graph, node, probe.node, (void **)probe.packet, count);
		probe.count = 0;
	}
	return count;
}

static struct rte_node_register probe_node = {
	.name = "probe",
	.flags = RTE_NODE_SOURCE_F,
	.process = probe_process,
	.nb_edges = NODES,
	.next_nodes = {[ACCESS_ENCAP] = "access-encap",
		[DUPLICATE] = "duplicate",
		[FRAGMENT_ACCESS] = "fragment-access",
		[GTPU_ENCAP] = "gtpu-encap",
		[ICMP_ECHO] = "icmp-echo",
		[ICMP_ERROR] = "icmp-error",
		[IP_FORWARD] = "ip-forward",
		[IP_OUTPUT] = "ip-output",
		[ND_ACCESS] = "nd-access",
		[PORT_TX] = "port-tx",
		[UDP_ENCAP] = "udp-encap"},
};
NODE_REGISTER(probe_node)

// The rule of a packet that needs one; fresh for each case.
static struct rule rule;

static uint16_t port_index(const char *name)
{
	return port_by_name(name)->index;
}

// A packet that holds the IP packet (or frame) of f and nothing else, `headroom` bytes behind the start of its buffer.
static struct rte_mbuf *give(rte_edge_t node, const struct frame *f, uint16_t headroom)
{
	struct rte_mbuf *m = packet_originate(worker_get(0));
	struct packet *pkt = packet_of(m);

	m->data_off = headroom;
	memcpy(rte_pktmbuf_append(m, (uint16_t)f->length), f->at, f->length);
	pkt->ip_version = f->at[0] >> 4;
	pkt->l4 = pkt->ip_version == 4 ? 20 : 40;
	pkt->length = f->length;
	pkt->protocol = 17;
	session_view_of(m)->rule = &rule;
	probe.packet[probe.count++] = m;
	probe.node = node;
	return m;
}

static void udp4(struct frame *f, const char *from, const char *to, uint32_t payload)
{
	frame_payload(f, payload);
	frame_udp(f, 4000, 5000);
	frame_ip(f, from, to, 17);
}

// A rule that leads to the UPF, or to home 1.
static void fresh_rule(void)
{
	rule = (struct rule){.generation = 1,
		.flags = RULE_FORWARD,
		.outer = API_OUTER_GTPU,
		.urr = RULE_NONE,
		.state = RULE_NONE,
		.mru = 1500,
		.action = {.dscp = ACTION_NO_DSCP, .qfi = 9, .flags = ACTION_TUNNEL},
		.instance = UINT16_MAX,
		.down = {.s_tag = 100, .c_tag = 1, .tpid = 0x88a8, .port = port_index("access")}};
}

static struct frame f;

static void user_packet(void)
{
	udp4(&f, gateway_ue(HOME_QINQ, 4), FAR4, 100);
}

static void access_port_gone(void)
{
	user_packet();
	rule.down.port = PORT_NONE;
	give(ACCESS_ENCAP, &f, 128);
}

static void access_no_headroom(void)
{
	user_packet();
	give(ACCESS_ENCAP, &f, 31);
}

static void gtpu_path_gone(void)
{
	user_packet();
	rule.action.path = UINT16_MAX;
	give(GTPU_ENCAP, &f, 128);
}

static void gtpu_no_headroom(void)
{
	user_packet();
	give(GTPU_ENCAP, &f, 40);
}

static void gtpu_too_long(void)
{
	user_packet();
	packet_of(give(GTPU_ENCAP, &f, 128))->length = UINT16_MAX - 10;
}

static void udp_path_gone(void)
{
	user_packet();
	rule.action.path = UINT16_MAX;
	give(UDP_ENCAP, &f, 128);
}

static void udp_no_headroom(void)
{
	user_packet();
	give(UDP_ENCAP, &f, 20);
}

static void udp_too_long(void)
{
	user_packet();
	packet_of(give(UDP_ENCAP, &f, 128))->length = UINT16_MAX - 20;
}

static void icmp_echo_no_ip(void)
{
	user_packet();
	f.at[0] = 0x41; // a header of four bytes
	give(ICMP_ECHO, &f, 128);
}

// From a group: the answer would go to all its members.
static void icmp_echo_from_group(void)
{
	frame_payload(&f, 20);
	frame_icmp_echo(&f, "224.0.0.5", "10.0.0.1");
	packet_of(give(ICMP_ECHO, &f, 128))->port_in = port_index("core");
}

static struct rte_mbuf *shared;

// Others read the packet's bytes too: it cannot become the answer.
static void icmp_echo_shared(void)
{
	frame_payload(&f, 20);
	frame_icmp_echo(&f, "10.0.0.2", "10.0.0.1");
	shared = give(ICMP_ECHO, &f, 128);
	packet_of(shared)->port_in = port_index("core");
	rte_mbuf_refcnt_update(shared, 1);
}

static void icmp_error_no_source(void)
{
	user_packet();
	struct rte_mbuf *m = give(ICMP_ERROR, &f, 128);
	icmp_error_request_problem(m, ICMP_PROBLEM_TTL, 0);
	session_view_of(m)->rule = NULL;
}

static void icmp_error_shared(void)
{
	udp4(&f, "10.0.0.2", FAR4, 100);
	shared = give(ICMP_ERROR, &f, 128);
	icmp_error_request_problem(shared, ICMP_PROBLEM_TTL, 0);
	session_view_of(shared)->rule = NULL;
	packet_of(shared)->interface = ip_local_interface(0, 4, kit_address("10.0.0.1").bytes);
	rte_mbuf_refcnt_update(shared, 1);
}

static void forward_nothing(void)
{
	user_packet();
	packet_of(give(IP_FORWARD, &f, 128))->ip_version = 0;
}

static void output_nothing(void)
{
	user_packet();
	packet_of(give(IP_OUTPUT, &f, 128))->ip_version = 0;
}

static void output_no_headroom(void)
{
	udp4(&f, FAR4, "10.0.0.2", 100);
	give(IP_OUTPUT, &f, 8);
}

// ip-input keeps a host's packets to our addresses; they do not return to us by a route.
static void output_to_ourselves(void)
{
	udp4(&f, FAR4, "10.0.0.1", 100);
	packet_of(give(IP_OUTPUT, &f, 128))->port_in = port_index("internet");
}

// An ICMP error would have no receiver: the packet is our own.
static void output_without_route(void)
{
	udp4(&f, "10.0.0.1", "203.0.113.1", 100);
	give(IP_OUTPUT, &f, 128);
}

static void transmit_port_gone(void)
{
	user_packet();
	give(PORT_TX, &f, 128);
}

static void fragment_no_ip(void)
{
	user_packet();
	f.at[0] = 0x41;
	give(FRAGMENT_ACCESS, &f, 128);
}

// Every link takes 68 bytes (RFC 791 §3.2).
static void fragment_too_small(void)
{
	udp4(&f, FAR4, gateway_ue(HOME_QINQ, 4), 100);
	rule.mru = 67;
	give(FRAGMENT_ACCESS, &f, 128);
}

// A solicitation in two buffers.
static void solicitation_in_pieces(void)
{
	static const uint8_t home_tags[] = {0x88, 0xa8, 0, 100, 0x81, 0, 0, 1, 0x86, 0xdd};
	uint8_t message[ND_LENGTH];
	uint32_t length = nd_put_ns(message, kit_address("fe80::99").bytes, NULL, kit_address("2001:db8:1::1").bytes,
		gateway_home_mac(HOME_QINQ));

	frame_payload(&f, 0);
	frame_append(&f, gateway_mac[0], 6);
	frame_append(&f, gateway_home_mac(HOME_QINQ), 6);
	frame_append(&f, home_tags, sizeof(home_tags));
	frame_append(&f, message, length);
	struct rte_mbuf *m = give(ND_ACCESS, &f, 128);
	packet_of(m)->port_in = port_index("access");
	*endpoint_view_of(m) = (struct endpoint_view){.l2_length = 22,
		.ethertype = 0x86dd,
		.s_tag = 100,
		.c_tag = HOME_QINQ,
		.outer_tpid = 0x88a8,
		.encap = API_ENCAP_QINQ,
		.tags = 2};
	rte_pktmbuf_chain(m, rte_pktmbuf_alloc(engine_pool()));
}

static void one_packet_one_counter(void **state)
{
	static const struct {
		void (*make)(void);
		const char *reason;
	} row[] = {
		{access_port_gone, "access-port-gone"},
		{access_no_headroom, "access-headroom"},
		{gtpu_path_gone, "gtpu-path-gone"},
		{gtpu_no_headroom, "gtpu-headroom"},
		{gtpu_too_long, "gtpu-too-long"},
		{udp_path_gone, "udp-path-gone"},
		{udp_no_headroom, "udp-headroom"},
		{udp_too_long, "udp-too-long"},
		{icmp_echo_no_ip, "echo-malformed"},
		{icmp_echo_from_group, "echo-not-answerable"},
		{icmp_echo_shared, "echo-shared"},
		{icmp_error_no_source, "icmp-no-source"},
		{icmp_error_shared, "icmp-no-room"},
		{forward_nothing, "forward-no-packet"},
		{output_nothing, "output-no-packet"},
		{output_no_headroom, "headroom"},
		{output_to_ourselves, "output-to-ourselves"},
		{output_without_route, "no-route"},
		{transmit_port_gone, "port-gone"},
		{fragment_no_ip, "fragment-malformed"},
		{fragment_too_small, "fragment-impossible"},
		{solicitation_in_pieces, "neighbour-no-room"},
	};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct snapshot b;

		kit_advance(1000003);
		kit_clear();
		fresh_rule();
		snapshot_take(&b);
		row[i].make();
		kit_run();
		print_message("  %s\n", row[i].reason);
		assert_int_equal(all_out(), 0);
		rte_pktmbuf_free(shared);
		shared = NULL;
		snapshot_compare(&b, row[i].reason, 1);
	}
	assert_true(gateway_undisturbed());
}

// 204 packets of 40 pieces each: a visit of the node makes 8,192 pieces at most, and keeps room for a packet of 64.
static void fragments_of_one_visit_are_bounded(void **state)
{
	struct snapshot b;

	fresh_rule();
	rule.mru = 68;
	kit_advance(1000003);
	kit_clear();
	snapshot_take(&b);
	for (int i = 0; i < 210; i++) {
		udp4(&f, FAR4, gateway_ue(HOME_QINQ, 4), 40 * 48 - 8);
		give(FRAGMENT_ACCESS, &f, 128);
	}
	kit_run();
	assert_int_equal(kit_count("access"), 204 * 40);
	kit_clear();
	snapshot_compare(&b, "fragment-limit", 6);
	assert_true(gateway_undisturbed());
}

// The copy has nowhere to go, the original passes.
static void copies_without_path_are_dropped(void **state)
{
	static const struct far_more gone = {
		.duplicate = 1, .duplicate_outer = API_OUTER_GTPU, .copy = {.path = UINT16_MAX}};
	uint32_t i = 0;
	struct snapshot b;

	kit_clear();
	while (session_pools.rule[i].action.teid != 0x10200 + HOME_QINQ)
		assert_true(++i < session_pools.rules);
	session_pools.match[i].more = &gone;
	snapshot_take(&b);
	user_packet();
	struct rte_mbuf *m = give(DUPLICATE, &f, 128);
	session_view_of(m)->rule = &session_pools.rule[i];
	session_view_of(m)->uplink = 1;
	kit_run();
	session_pools.match[i].more = NULL;
	assert_int_equal(kit_count("core"), 1);
	kit_clear();
	snapshot_compare(&b, "duplicate-impossible", 1);
}

// A session with an uplink PDR alone has no way back to its UE.
static void sessions_without_downlink_get_no_answer(void **state)
{
	struct kit_session k = gateway_home(99);
	struct {
		struct api_session s;
		struct api_pdr pdr;
		struct api_far far;
		struct api_qer qer;
	} up = {k.s, k.pdr[0], k.far[0], k.qer[0]};
	struct snapshot b;

	up.s.pdrs = up.s.fars = up.s.qers = 1;
	up.far.outer = API_OUTER_NONE;
	assert_int_equal(kit_change(API_SESSION, "up", &up, sizeof(up)), 0);
	kit_clear();
	snapshot_take(&b);
	frame_payload(&f, 20);
	frame_icmp_echo(&f, gateway_ue(99, 4), "100.64.0.1");
	gateway_from_home(&f, 99);
	send_one("access", &f);
	snapshot_compare(&b, "echo-no-session", 1);
	snapshot_take(&b);
	udp4(&f, gateway_ue(99, 4), FAR4, 20);
	f.at[8] = 1; // TTL
	frame_ip4_sum(&f);
	gateway_from_home(&f, 99);
	send_one("access", &f);
	snapshot_compare(&b, "icmp-no-session", 1);
	assert_int_equal(all_out(), 0);
	kit_begin();
	kit_delete(API_SESSION, "up");
	assert_int_equal(kit_commit(), 0);
	assert_true(gateway_undisturbed());
}

// The home's session is the other worker's, whose inbox takes ROOM packets before it is read.
static void full_inbox(void **state)
{
	struct kit_session k = gateway_home(50);
	uint32_t queue_of = worker_get(0)->queues->count == 0; // the worker that receives from the access port
	struct snapshot b;

	k.s.worker = (uint16_t)!queue_of;
	kit_begin();
	kit_put_session("other", &k);
	assert_int_equal(kit_commit(), 0);
	kit_advance(1000003);
	kit_clear();
	snapshot_take(&b);
	for (int i = 0; i < VECTOR; i++) {
		udp4(&f, gateway_ue(50, 4), FAR4, 20);
		gateway_from_home(&f, 50);
		assert_int_equal(kit_send("access", f.at, f.length), 0);
	}
	kit_run();
	assert_int_equal(kit_count("core"), ROOM);
	snapshot_compare(&b, "inbox-full", VECTOR - ROOM);
	kit_begin();
	kit_delete(API_SESSION, "other");
	assert_int_equal(kit_commit(), 0);
	assert_true(gateway_undisturbed());
}

static void full_inbox_for_the_control_thread(void **state)
{
	struct snapshot b;

	kit_clear();
	snapshot_take(&b);
	for (int i = 0; i < ROOM + 5; i++) {
		struct rte_mbuf *m = control_originate();

		udp4(&f, "10.0.0.1", "10.0.0.2", 20);
		memcpy(rte_pktmbuf_append(m, (uint16_t)f.length), f.at, f.length);
		packet_of(m)->ip_version = 4;
		packet_of(m)->length = f.length;
		control_inject(0, "ip-output", m);
	}
	kit_run();
	assert_int_equal(kit_count("core"), ROOM);
	snapshot_compare(&b, "inject-full", 5);
}

static uint16_t transmit_three(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent = RTE_MIN(n, 3);

	rte_pktmbuf_free_bulk(pkts, sent);
	return sent;
}

// A device that takes three packets of a burst of ten.
static void full_transmit_queue(void **state)
{
	struct port *core = port_by_name("core");
	struct port_driver slow = *core->driver;
	const struct port_driver *driver = core->driver;
	uint32_t count;
	struct snapshot b;

	kit_clear();
	slow.tx = transmit_three;
	core->driver = &slow;
	snapshot_take(&b);
	for (int i = 0; i < 10; i++) {
		user_packet();
		gateway_from_home(&f, HOME_QINQ);
		assert_int_equal(kit_send("access", f.at, f.length), 0);
	}
	kit_run();
	core->driver = driver;
	snapshot_compare(&b, "port-tx-full", 7);
	const struct api_port_row *row = kit_rows(API_TABLE_PORT, "core", sizeof(*row), &count);
	assert_int_equal(row->tx_dropped, 7);
	assert_true(gateway_undisturbed());
}

// UDP to a closed port of our address: the host path gets a tenth of a second's worth.
static void host_path_limited(void **state)
{
	uint64_t host = kit_reason("host");
	uint32_t burst = burst_of(10000), beyond = 50;
	struct snapshot b;

	kit_advance(1000003);
	kit_clear();
	snapshot_take(&b);
	for (uint32_t i = 0; i < burst + beyond; i++) {
		udp4(&f, "10.0.0.2", "10.0.0.1", 20);
		frame_ethernet(&f, gateway_mac[1], gateway_upf, 0x0800);
		send_one("core", &f);
	}
	assert_int_equal(kit_reason("host") - host, burst);
	for (uint16_t r = 0; r < reason_count(); r++)
		if (strcmp(reason_get(r)->name, "host") == 0)
			b.reason[r] += burst;
	snapshot_compare(&b, "punt-rate-limit", beyond);
}

static void add_reason(struct snapshot *b, const char *name, uint64_t packets)
{
	for (uint16_t r = 0; r < reason_count(); r++)
		if (strcmp(reason_get(r)->name, name) == 0)
			b->reason[r] += packets;
}

// An ARP request for our address or a home's PPPoE discovery; with a DSCP: UDP to a closed port of ours.
#define NO_DSCP 0xff
#define DISCOVERY 0xfe
static void send_to_host(uint8_t dscp, uint16_t port)
{
	uint8_t message[ARP_LENGTH];

	if (dscp == NO_DSCP) {
		arp_put(message, ARP_REQUEST, gateway_upf, kit_address("10.0.0.2").bytes, NULL,
			kit_address("10.0.0.1").bytes);
		frame_payload(&f, 0);
		frame_append(&f, message, sizeof(message));
		frame_ethernet(&f, gateway_mac[1], gateway_upf, 0x0806);
	} else if (dscp == DISCOVERY) {
		frame_payload(&f, 0);
		frame_append(&f, (uint8_t[]){0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0}, 10);
		frame_ethernet(&f, gateway_mac[0], gateway_home_mac(HOME_PPPOE), 0x8863);
		frame_tag(&f, 0x8100, HOME_PPPOE);
		frame_tag(&f, 0x88a8, 100);
	} else {
		frame_payload(&f, 20);
		frame_udp(&f, 4000, port);
		frame_ip(&f, "10.0.0.2", "10.0.0.1", 17);
		f.at[1] = (uint8_t)(dscp << 2);
		frame_ip4_sum(&f);
		frame_ethernet(&f, gateway_mac[1], gateway_upf, 0x0800);
	}
	assert_int_equal(kit_send(dscp == DISCOVERY ? "access" : "core", f.at, f.length), 0);
}

// More in one walk than each queue of the control thread takes: neighbours, other control protocols, urgent DSCPs, the
// rest.
static void full_host_path(void **state)
{
	static const struct {
		uint8_t dscp;
		const char *kind, *full;
		uint32_t room;
	} queue[] = {
		{NO_DSCP, "arp", "punt-neighbour-full", ROOM / 2},
		{DISCOVERY, "pppoe-discovery", "punt-control-full", ROOM / 2},
		{46, "host", "punt-urgent-full", ROOM / 2},
		{0, "host", "punt-queue-full", ROOM / 2},
	};

	for (uint32_t q = 0; q < RTE_DIM(queue); q++) {
		uint64_t punted = kit_reason(queue[q].kind);
		struct snapshot b;

		kit_advance(1000003);
		kit_clear();
		snapshot_take(&b);
		for (int i = 0; i < VECTOR; i++)
			send_to_host(queue[q].dscp, 9);
		kit_run();
		assert_int_equal(kit_reason(queue[q].kind) - punted, queue[q].room);
		assert_int_equal(kit_count("core"), queue[q].dscp == NO_DSCP ? ROOM / 2 : 0); // answers
		add_reason(&b, queue[q].kind, queue[q].room);
		snapshot_compare(&b, queue[q].full, VECTOR - queue[q].room);
		assert_true(gateway_undisturbed());
	}
}

// Half of the room is for subscribers that have begun: no PADI takes it, a PADR does.
static void newcomers_leave_room(void **state)
{
	uint64_t punted = kit_reason("pppoe-discovery");
	struct snapshot b;

	kit_advance(1000003);
	kit_clear();
	snapshot_take(&b);
	for (uint32_t i = 0; i < ROOM / 4 + 1; i++)
		send_to_host(DISCOVERY, 0);
	engine_walk(); // and the control thread is busy
	send_to_host(DISCOVERY, 0);
	f.at[ETH_HEADER + 2 * ETH_TAG + 1] = PPPOE_PADR;
	assert_int_equal(kit_send("access", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_reason("pppoe-discovery") - punted, ROOM / 4 + 2);
	add_reason(&b, "pppoe-discovery", ROOM / 4 + 2);
	snapshot_compare(&b, "punt-newcomer-full", 1);
	assert_true(gateway_undisturbed());
}

static uint32_t arrivals, first_of[HOST_QUEUES], arrived[HOST_QUEUES];

static void arrive(struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	int control = reason_get(pkt->reason)->control;
	enum host_queue q = control                                                     ? HOST_NEIGHBOUR
			    : *rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3 + 1) ? HOST_URGENT
											: HOST_OTHER;

	if (arrived[q]++ == 0)
		first_of[q] = arrivals;
	arrivals++;
	rte_pktmbuf_free(m);
}

// Behind floods of the other two queues, in the same walk: control protocols lose nothing and come first, urgent ones
// second. Limits are separate too: one DSCP does not use up another's.
static void control_protocols_first(void **state)
{
	static const uint8_t urgent[] = {34, 36, 38, 40, 46, 48, 56};
	uint32_t burst = burst_of(10000), control = 6;
	uint64_t limited = kit_reason("punt-rate-limit"), arp = kit_reason("arp");

	punt_handler_register(&punt_host, arrive);
	punt_handler_register(&punt_routing, arrive);
	kit_advance(1000003);
	kit_clear();
	arrivals = 0;
	memset(arrived, 0, sizeof(arrived));
	for (uint32_t i = 0; i < VECTOR - RTE_DIM(urgent) - control - 1; i++)
		send_to_host(0, 9);
	for (uint32_t i = 0; i < RTE_DIM(urgent); i++)
		send_to_host(urgent[i], 9);
	for (uint32_t i = 0; i < control; i++)
		send_to_host(0, i % 2 ? 3784 : 4784); // BFD
	send_to_host(NO_DSCP, 0);
	kit_run();
	assert_int_equal(kit_reason("arp") - arp, 1);
	assert_int_equal(kit_count("core"), 1);
	assert_int_equal(arrived[HOST_NEIGHBOUR], control);
	assert_int_equal(arrived[HOST_URGENT], RTE_DIM(urgent));
	assert_int_equal(arrived[HOST_OTHER], ROOM / 2);
	assert_int_equal(first_of[HOST_NEIGHBOUR], 0);
	assert_int_equal(first_of[HOST_URGENT], control);
	assert_int_equal(first_of[HOST_OTHER], control + RTE_DIM(urgent));
	for (uint32_t i = 0; i < burst; i++) { // more than the rate of all others
		send_to_host(0, 9);
		kit_run();
	}
	assert_true(kit_reason("punt-rate-limit") > limited);
	limited = kit_reason("punt-rate-limit");
	for (uint32_t i = 0; i < RTE_DIM(urgent); i++)
		send_to_host(urgent[i], 9);
	send_to_host(0, 3784);
	send_to_host(NO_DSCP, 0);
	kit_run();
	assert_int_equal(kit_reason("punt-rate-limit"), limited);
	assert_int_equal(arrived[HOST_URGENT], 2 * RTE_DIM(urgent));
	assert_int_equal(arrived[HOST_NEIGHBOUR], control + 1);
	assert_int_equal(kit_count("core"), 2);
	punt_handler_register(&punt_host, NULL);
	punt_handler_register(&punt_routing, NULL);
	assert_true(kit_balance());
	assert_true(gateway_undisturbed());
}

static int start(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	e.packet_buffers = 24576;
	e.max_handed_over = 2 * ROOM;
	e.max_punted = 2 * ROOM; // a quarter of each queue
	e.punt_subscriber_rate = e.punt_line_rate = 1000; // not before the queue is full
	gateway_start(&e);
	gateway_homes(1, GATEWAY_HOMES);
	struct api_route r = {.prefix = kit_address("198.51.100.0/24"), .via = kit_address("192.0.2.2")};
	assert_int_equal(kit_change(API_ROUTE, "198.51.100.0/24", &r, sizeof(r)), 0);
	assert_true(gateway_undisturbed());
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_packet_one_counter),
		cmocka_unit_test(fragments_of_one_visit_are_bounded),
		cmocka_unit_test(copies_without_path_are_dropped),
		cmocka_unit_test(sessions_without_downlink_get_no_answer),
		cmocka_unit_test(full_inbox),
		cmocka_unit_test(full_inbox_for_the_control_thread),
		cmocka_unit_test(full_transmit_queue),
		cmocka_unit_test(host_path_limited),
		cmocka_unit_test(full_host_path),
		cmocka_unit_test(newcomers_leave_room),
		cmocka_unit_test(control_protocols_first),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
