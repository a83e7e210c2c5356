// SPDX-License-Identifier: Apache-2.0
// Hypothetical packets of `isthmus explain`: their rows, and that they leave nothing but their count.
#include "trace/trace_test.h"

static void hypothetical(const struct frame *f, const char *port)
{
	struct trace_order *o = order(API_TRACE_STEPS | API_TRACE_HYPOTHETICAL | API_TRACE_SENT);

	o->want.octets = f->length;
	memcpy(o->octets, f->at, f->length);
	snprintf(o->want.port, sizeof(o->want.port), "%s", port);
	begin(o);
	kit_run();
	poll_it(1);
}

static uint64_t flows_made(void)
{
	uint32_t n;
	const struct api_worker_row *r = kit_rows(API_TABLE_WORKER, "", sizeof(*r), &n);

	return r->flow_inserts;
}

// One originated and one dropped, "explained", and nothing else.
static void leaves_nothing(const struct frame *f, const char *port)
{
	static uint64_t words[4096];
	struct kit_reasons reasons = kit_reasons();
	uint64_t changed = 0, flows = flows_made();

	memset(words, 0, sizeof(words));
	kit_clear();
	kit_count_words(words, RTE_DIM(words), (uint64_t)-1);
	hypothetical(f, port);
	kit_count_words(words, RTE_DIM(words), 1);
	for (uint32_t i = 0; i < RTE_DIM(words); i++)
		changed += words[i] != 0;
	assert_int_equal(changed, 3);
	assert_int_equal(flows_made(), flows);
	kit_only_rose(&reasons, "explained", 1);
	assert_int_equal(all_out(), 0);
	assert_true(kit_balance());
}

static void test_hypothetical(void **unused)
{
	struct frame f;

	uplink(&f, 0x100, UE4);
	send_frame("ran", &f);
	leaves_nothing(&f, "ran");
	says("policer-uplink", API_TRACE_STEP, "URRs count it");
	says("port-tx", API_TRACE_WENT, "bytes on internet");
	uplink(&f, 0x777, UE4);
	leaves_nothing(&f, "ran");
	says("session-tunnel", API_TRACE_STEP, "no session has it");
	downlink(&f);
	leaves_nothing(&f, "internet");
	says("port-tx", API_TRACE_WENT, "bytes on ran");
	ip_packet(&f, FAR4, "10.45.7.7", 64);
	link_layer(&f, "internet", 1);
	leaves_nothing(&f, "internet");
	says("drop", API_TRACE_WENT, "ue-unknown: ");
}

// An ICMP error is due: the packet does not go on, and its sender hears why.
static void test_hypothetical_errors(void **unused)
{
	struct api_route r = {.prefix = kit_address("203.0.113.0/24"), .discard = API_DISCARD_PROHIBIT};
	struct frame f;

	kit_begin();
	kit_put(API_ROUTE, "203.0.113.0/24", &r, sizeof(r));
	commit();
	ip_packet(&f, UE4, "203.0.113.9", 64);
	tunnel(&f, "10.1.0.2", "10.1.0.1", 0x100, 9, API_PDU_UL);
	link_layer(&f, "ran", 1);
	leaves_nothing(&f, "ran");
	says("icmp-error", API_TRACE_WENT, "its sender is sent ICMP prohibited (type 3, code 13)");
	assert_int_equal(row_of("icmp-error", API_TRACE_WENT)->outcome, API_TRACE_DROPPED);
}

// Rows for a session with several PDRs, an access list, a closed gate.
static void test_hypothetical_rules(void **unused)
{
	struct {
		struct api_acl head;
		struct api_acl_rule rule;
	} list = {{API_PERMIT, 1}, {.source = kit_address(UE4 "/32"), .action = API_DENY}};
	struct frame f;

	uplink(&f, 0x100, UE4);
	put_session_of(0, 1);
	leaves_nothing(&f, "ran");
	says("port-tx", API_TRACE_WENT, "bytes on internet");
	uint64_t flows = flows_made();
	send_frame("ran", &f);
	assert_int_equal(flows_made(), flows + 1);
	put_session(1);
	uint64_t bytes = urr_bytes();
	leaves_nothing(&f, "ran");
	says("drop", API_TRACE_WENT, "uplink-gate-closed: ");
	assert_int_equal(urr_bytes(), bytes);
	put_session(0);
	list.rule.source_port[1] = list.rule.destination_port[1] = UINT16_MAX;
	kit_begin();
	kit_put(API_ACL, "in/access", &list, sizeof(list));
	commit();
	leaves_nothing(&f, "ran");
	says("firewall-tunnel", API_TRACE_STEP, "the access list refuses it");
	says("drop", API_TRACE_WENT, "firewall-instance-deny: ");
	kit_begin();
	kit_delete(API_ACL, "in/access");
	commit();
}

static void fragment(struct frame *f, uint16_t offset, int more)
{
	ip_packet(f, UE4, FAR4, 64);
	frame_fragment(f, offset, more);
	tunnel(f, "10.1.0.2", "10.1.0.1", 0x100, 9, API_PDU_UL);
	link_layer(f, "ran", 1);
}

// A fragment where ports decide uses its first one's data, does not wait, and leaves no state.
static void test_hypothetical_fragments(void **unused)
{
	struct {
		struct api_acl head;
		struct api_acl_rule rule;
	} list = {{API_DENY, 1}, {.protocol = 17, .protocol_mask = 0xff, .action = API_PERMIT}};
	static struct frame first, later;

	list.rule.source_port[1] = UINT16_MAX;
	list.rule.destination_port[0] = list.rule.destination_port[1] = 5000;
	assert_int_equal(kit_change(API_ACL, "in/access", &list, sizeof(list)), 0);
	fragment(&first, 0, 1);
	fragment(&later, 9, 0);
	leaves_nothing(&later, "ran");
	says("drop", API_TRACE_WENT, "fragment-no-first: ");
	leaves_nothing(&first, "ran");
	says("port-tx", API_TRACE_WENT, "bytes on internet");
	leaves_nothing(&later, "ran");
	says("drop", API_TRACE_WENT, "fragment-no-first: ");
	send_frame("ran", &first);
	leaves_nothing(&later, "ran");
	says("port-tx", API_TRACE_WENT, "bytes on internet");
	send_frame("ran", &later);
	assert_int_equal(all_out(), 1);
	kit_begin();
	kit_delete(API_ACL, "in/access");
	commit();
	// The same by a session with several PDRs.
	kit_advance(1100000);
	put_session_of(0, 1);
	leaves_nothing(&later, "ran");
	says("drop", API_TRACE_WENT, "fragment-no-first: ");
	leaves_nothing(&first, "ran");
	says("port-tx", API_TRACE_WENT, "bytes on internet");
	send_frame("ran", &first);
	leaves_nothing(&later, "ran");
	says("port-tx", API_TRACE_WENT, "bytes on internet");
	put_session(0);
}

// Its trace ends while the packet still waits in an inbox: it is not sent all the same.
static void test_hypothetical_late(void **unused)
{
	struct trace_order *o = order(API_TRACE_STEPS | API_TRACE_HYPOTHETICAL);
	const struct rte_node *node = rte_graph_node_get_by_name("worker-0", "port-tx");
	rte_node_process_t own = node->process;
	struct kit_reasons reasons = kit_reasons();
	struct frame f;

	uplink(&f, 0x100, UE4);
	o->want.octets = f.length;
	memcpy(o->octets, f.at, f.length);
	strcpy(o->want.port, "ran");
	begin(o);
	poll_it(1);
	assert_ptr_not_equal(node->process, own);
	kit_clear();
	kit_run();
	assert_int_equal(all_out(), 0);
	kit_only_rose(&reasons, "explained", 1);
	kit_advance(200000);
	assert_ptr_equal(node->process, own);
	assert_true(kit_balance());
}

// A session whose uplink is redirected to a URL.
static void put_redirected(const char *url)
{
	struct kit_mobile k;

	kit_begin();
	kit_mobile(&k, 1, UE4, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x100, 1);
	struct api_far *up = kit_far_ip(&k, 1, API_FROM_CORE, "core");
	kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x200);
	struct api_far_more *more = kit_far_more(&k, up);
	more->redirect = API_REDIRECT_URL;
	snprintf(more->redirect_to, sizeof(more->redirect_to), "%s", url);
	kit_put_mobile("s1", &k);
	commit();
}

static void syn_to(struct frame *f, uint16_t port)
{
	struct api_address from = kit_address(UE4), to = kit_address(FAR4);

	frame_payload(f, 0);
	frame_tcp(f, 40000, port);
	uint16_t sum =
		checksum_finish(checksum_add(checksum_pseudo(4, from.bytes, to.bytes, 6, f->length), f->at, f->length));
	memcpy(f->at + 16, &sum, 2);
	frame_ip(f, UE4, FAR4, 6);
	tunnel(f, "10.1.0.2", "10.1.0.1", 0x100, 9, API_PDU_UL);
	link_layer(f, "ran", 1);
}

// What the gateway answers itself, splits, or sends back.
static void test_hypothetical_ends(void **unused)
{
	static struct frame f;

	uplink(&f, 0x777, UE4);
	leaves_nothing(&f, "ran");
	says("gtpu-control", API_TRACE_STEP, "its sender is sent Error Indication");
	says("drop", API_TRACE_WENT, "gtpu-teid-unknown: ");
	ip_packet(&f, UE4, FAR4, 1600);
	tunnel(&f, "10.1.0.2", "10.1.0.1", 0x100, 9, API_PDU_UL);
	link_layer(&f, "ran", 1);
	leaves_nothing(&f, "ran");
	says("fragment-core", API_TRACE_STEP, "in 2 fragments of at most 1500 bytes");
	says("port-tx", API_TRACE_WENT, "1514 bytes on internet");
	ip_packet(&f, UE4, FAR4, 1600);
	f.at[6] |= 0x40; // DF
	frame_ip4_sum(&f);
	tunnel(&f, "10.1.0.2", "10.1.0.1", 0x100, 9, API_PDU_UL);
	link_layer(&f, "ran", 1);
	leaves_nothing(&f, "ran");
	says("icmp-error", API_TRACE_WENT, "its sender is sent ICMP too big (type 3, code 4)");
	frame_payload(&f, 0);
	frame_icmp_echo(&f, "10.1.0.2", "10.1.0.1");
	link_layer(&f, "ran", 1);
	leaves_nothing(&f, "ran");
	says("icmp-echo", API_TRACE_STEP, "its answer goes on");
	says("port-tx", API_TRACE_WENT, "bytes on ran");
	put_redirected("http://portal.example/");
	syn_to(&f, 80);
	leaves_nothing(&f, "ran");
	says("redirect", API_TRACE_STEP, "its HTTP request with 302 to http://portal.example/");
	says("drop", API_TRACE_WENT, "redirect-answered: ");
	syn_to(&f, 443);
	leaves_nothing(&f, "ran");
	says("drop", API_TRACE_WENT, "redirect-not-http: ");
	put_session(0);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_hypothetical),
		cmocka_unit_test(test_hypothetical_rules),
		cmocka_unit_test(test_hypothetical_errors),
		cmocka_unit_test(test_hypothetical_fragments),
		cmocka_unit_test(test_hypothetical_ends),
		cmocka_unit_test(test_hypothetical_late),
	};

	return cmocka_run_group_tests(all, setup, NULL);
}
