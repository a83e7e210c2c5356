// SPDX-License-Identifier: Apache-2.0
// Subscribers ask for their gateway: who is answered, how, and who is not.
#include "core/trace_inside.h"
#include "ip/router_test.h"
#include "route/address.h"
#include "testkit/channel.h"
#include "testkit/reasons.h"
#include "wire/arp.h"
#include "wire/nd.h"

static const uint8_t home[6] = {2, 0, 0, 0, 0, 1}, unknown[6] = {2, 0, 0, 0, 0, 9};

static int start(void **state)
{
	if (router_start(state) != 0)
		return -1;
	kit_begin();
	kit_path("upf", "10.1.0.1", "10.1.0.9");
	struct kit_session s = kit_session("homes", home, 100, 7, 0, "100.64.0.2", "2001:db8:64::/64", "upf", 0x200);
	kit_put_session("home", &s);
	s = kit_session("homes", home, 100, 9, 0, "100.64.0.4", NULL, "upf", 0x202);
	kit_put_session("other", &s);
	s = kit_session("homes", home, 100, 8, 5, "100.64.0.9", "2001:db8:65::/64", "upf", 0x201); // PPPoE
	kit_put_session("dialled", &s);
	return kit_commit();
}

static void begin(struct router_frame *f, const uint8_t *from, const uint8_t *to, uint16_t c_tag, uint16_t type)
{
	router_ethernet(f, "homes", from, 100, c_tag, type);
	if (to != NULL)
		memcpy(f->bytes, to, 6);
}

// Returns how many frames left.
static uint32_t ask_arp(const uint8_t *mac, uint16_t c_tag, const uint8_t *claimed_mac, const char *sender,
	const char *target, uint16_t operation)
{
	static const uint8_t everyone[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct router_frame f;

	begin(&f, mac, everyone, c_tag, 0x0806);
	arp_put(f.bytes + f.length, operation, claimed_mac, router_address(sender).bytes, NULL,
		router_address(target).bytes);
	f.length += ARP_LENGTH;
	kit_clear();
	router_receive("homes", &f);
	return router_count();
}

static void arp_for_the_gateway_is_answered(void **state)
{
	struct arp_info arp;

	assert_int_equal(ask_arp(home, 7, home, "100.64.0.2", "100.64.0.1", ARP_REQUEST), 1);
	const struct kit_frame *f = kit_frame("homes", 0);
	assert_memory_equal(f->bytes, home, 6);
	assert_memory_equal(f->bytes + 6, &port_by_name("homes")->mac, 6);
	// The subscriber's own encapsulation.
	assert_memory_equal(f->bytes + 12, "\x88\xa8\x00\x64\x81\x00\x00\x07\x08\x06", 10);
	assert_int_equal(arp_parse(f->bytes + 22, f->length - 22, &arp), ARP_OK);
	assert_int_equal(arp.operation, ARP_REPLY);
	assert_memory_equal(arp.sender_mac, &port_by_name("homes")->mac, 6);
	assert_memory_equal(arp.sender, router_address("100.64.0.1").bytes, 4);
	assert_memory_equal(arp.target, router_address("100.64.0.2").bytes, 4);
	assert_int_equal(ask_arp(home, 7, home, "0.0.0.0", "100.64.0.1", ARP_REQUEST), 1); // RFC 5227
	assert_true(kit_balance());
}

static void other_arp_is_not_answered(void **state)
{
	static const struct {
		const uint8_t *mac;
		uint16_t c_tag;
		const uint8_t *claimed;
		const char *sender, *target;
		uint16_t operation;
		const char *reason;
	} row[] = {
		{unknown, 7, unknown, "100.64.0.2", "100.64.0.1", ARP_REQUEST, "neighbour-unknown-subscriber"},
		{home, 8, home, "100.64.0.2", "100.64.0.1", ARP_REQUEST, "neighbour-unknown-subscriber"},
		{home, 7, home, "100.64.0.3", "100.64.0.1", ARP_REQUEST, "neighbour-spoof"}, // row B11
		{home, 7, home, "100.64.0.1", "100.64.0.1", ARP_REQUEST, "neighbour-spoof"},
		{home, 7, unknown, "100.64.0.2", "100.64.0.1", ARP_REQUEST, "neighbour-spoof"},
		{home, 7, home, "100.64.0.2", "100.64.0.3", ARP_REQUEST, "neighbour-not-gateway"},
		{home, 7, home, "100.64.0.2", "10.1.0.1", ARP_REQUEST, "neighbour-not-gateway"},
		{home, 7, home, "100.64.0.2", "100.64.0.2", ARP_REQUEST, "neighbour-announcement"},
		{home, 7, home, "100.64.0.2", "100.64.0.1", ARP_REPLY, "neighbour-announcement"}, // broadcast
		{home, 7, home, "127.0.0.1", "100.64.0.1", ARP_REQUEST, "arp-malformed"},
	};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct kit_reasons before = kit_reasons();
		uint32_t left = ask_arp(
			row[i].mac, row[i].c_tag, row[i].claimed, row[i].sender, row[i].target, row[i].operation);

		assert_int_equal(left, 0);
		kit_only_rose(&before, row[i].reason, 1);
	}
	assert_true(kit_balance());
}

static uint32_t ask_nd(const uint8_t *mac, const uint8_t *claimed, const char *source, const char *target, int probe)
{
	struct router_frame f;
	uint8_t group[16], group_mac[6];

	nd_solicited_node(group, router_address(target).bytes);
	nd_group_mac(group_mac, group);
	begin(&f, mac, group_mac, 7, 0x86dd);
	uint8_t *p = f.bytes + f.length;
	f.length += nd_put_ns(p, router_address(source).bytes, NULL, router_address(target).bytes, claimed);
	if (probe) { // without the option, and the checksum made again
		f.length -= ND_LENGTH - ND_LENGTH_NO_MAC;
		store16(p + 4, ND_LENGTH_NO_MAC - 40);
		memset(p + 42, 0, 2);
		uint16_t sum = checksum_finish(checksum_add(
			checksum_pseudo(6, p + 8, p + 24, 58, ND_LENGTH_NO_MAC - 40), p + 40, ND_LENGTH_NO_MAC - 40));
		memcpy(p + 42, &sum, 2);
	}
	kit_clear();
	router_receive("homes", &f);
	return router_count();
}

static struct nd_info nd_answer(const char *target)
{
	const struct kit_frame *f = kit_frame("homes", 0);
	struct nd_info nd = {0};

	assert_memory_equal(f->bytes, home, 6);
	assert_memory_equal(f->bytes + 12, "\x88\xa8\x00\x64\x81\x00\x00\x07\x86\xdd", 10);
	assert_int_equal(nd_parse(f->bytes + 22, f->length - 22, f->length - 22, &nd), ND_OK);
	assert_int_equal(nd.type, ND_ADVERT);
	assert_memory_equal(nd.target, router_address(target).bytes, 16);
	assert_memory_equal(nd.mac, &port_by_name("homes")->mac, 6);
	return nd;
}

static void nd_for_the_gateway_is_answered(void **state)
{
	assert_int_equal(ask_nd(home, home, "fe80::99", "fe80::1", 0), 1);
	struct nd_info nd = nd_answer("fe80::1");
	assert_memory_equal(nd.destination, router_address("fe80::99").bytes, 16);
	assert_int_equal(nd.flags, ND_ROUTER | ND_SOLICITED | ND_OVERRIDE);
	assert_int_equal(ask_nd(home, home, "2001:db8:64::5", "fe80::1", 0), 1);
	assert_int_equal(ask_nd(home, home, "::", "fe80::1", 1), 1); // the gateway's address is not free
	nd = nd_answer("fe80::1");
	assert_memory_equal(nd.destination, router_address("ff02::1").bytes, 16);
	assert_int_equal(nd.flags, ND_ROUTER | ND_OVERRIDE);
	assert_true(kit_balance());
}

static void other_nd_is_not_answered(void **state)
{
	static const struct {
		const uint8_t *mac, *claimed;
		const char *source, *target;
		const char *reason;
	} row[] = {
		{unknown, unknown, "fe80::99", "fe80::1", "neighbour-unknown-subscriber"},
		{home, unknown, "fe80::99", "fe80::1", "neighbour-spoof"},
		{home, home, "2001:db8:65::5", "fe80::1", "neighbour-spoof"},
		{home, home, "fe80::1", "fe80::1", "neighbour-spoof"},
		{home, home, "fe80::99", "fe80::77", "neighbour-not-gateway"},
		{home, home, "fe80::99", "2001:db8:1::1", "neighbour-not-gateway"},
		{home, home, "::", "fe80::1", "nd-malformed"}, // a probe has no link-layer address
	};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct kit_reasons before = kit_reasons();

		assert_int_equal(ask_nd(row[i].mac, row[i].claimed, row[i].source, row[i].target, 0), 0);
		kit_only_rose(&before, row[i].reason, 1);
	}
	assert_true(kit_balance());
}

// An echo request, and whether the right answer left.
static int echo(const char *source, const char *target)
{
	struct api_address from = router_address(source), to = router_address(target);
	static const uint8_t request[] = {128, 0, 0, 0, 0, 7, 0, 9};
	struct router_frame f;

	begin(&f, home, NULL, 7, 0x86dd);
	uint8_t *p = f.bytes + f.length;
	memcpy(p, (const uint8_t[8]){0x60, 0, 0, 0, 0, sizeof(request), 58, 64}, 8);
	memcpy(p + 8, from.bytes, 16);
	memcpy(p + 24, to.bytes, 16);
	memcpy(p + 40, request, sizeof(request));
	store16(p + 42, checksum_finish(checksum_add(
				checksum_pseudo(6, p + 8, p + 24, 58, sizeof(request)), p + 40, sizeof(request))));
	f.length += 40 + sizeof(request);
	kit_clear();
	router_receive("homes", &f);
	if (router_count() == 0)
		return 0;
	const uint8_t *answer = kit_frame("homes", 0)->bytes;
	assert_memory_equal(answer, home, 6);
	assert_memory_equal(answer + 12, "\x88\xa8\x00\x64\x81\x00\x00\x07\x86\xdd", 10);
	assert_memory_equal(answer + 22 + 8, to.bytes, 16);
	assert_memory_equal(answer + 22 + 24, from.bytes, 16);
	return answer[22 + 40] == 129;
}

static const char *text_of(const uint8_t address[16])
{
	struct api_address a = {.family = 6, .prefix = 128};
	static char text[64];

	memcpy(a.bytes, address, 16);
	return address_text(&a, text);
}

// Answers to the control plane's questions are punted, unrequested ones are not; row B11.
static void answers_to_us_go_up(void **state)
{
	static const struct {
		const char *source, *target, *reason; // NULL: up
		uint8_t flags;
	} row[] = {
		{"fe80::99", "fe80::99", NULL, ND_SOLICITED},
		{"2001:db8:64::5", "2001:db8:64::5", NULL, ND_SOLICITED | ND_OVERRIDE},
		{"fe80::99", "fe80::99", "neighbour-announcement", ND_OVERRIDE},
		{"fe80::1", "fe80::1", "neighbour-spoof", ND_SOLICITED},
		{"2001:db8:65::5", "2001:db8:65::5", "neighbour-spoof", ND_SOLICITED},
	};
	static const uint8_t everyone[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t *ours = port_by_name("homes")->mac.addr_bytes;
	struct router_frame f;

	kit_advance(1000000);
	kit_channel_open();
	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct kit_reasons before = kit_reasons();
		uint32_t frames = kit_channel.frames;

		begin(&f, home, ours, 7, 0x86dd);
		f.length += nd_put_na(f.bytes + f.length, router_address(row[i].source).bytes,
			router_address("fe80::1").bytes, router_address(row[i].target).bytes, home, row[i].flags);
		router_receive("homes", &f);
		assert_int_equal(kit_channel.frames - frames, row[i].reason == NULL);
		kit_only_rose(&before, row[i].reason != NULL ? row[i].reason : "neighbour-answer", 1);
	}
	assert_int_equal(kit_channel.frame[0].h.reason, API_FRAME_NEIGHBOUR_ANSWER);
	assert_memory_equal(kit_channel.frame[0].h.mac, home, 6);
	for (int i = 0; i < 3; i++) { // also to a question of 0.0.0.0; the third is broadcast
		begin(&f, home, i < 2 ? ours : everyone, 7, 0x0806);
		arp_put(f.bytes + f.length, ARP_REPLY, home, router_address("100.64.0.2").bytes, ours,
			i == 0 ? (const uint8_t[4]){0} : router_address("100.64.0.1").bytes);
		f.length += ARP_LENGTH;
		router_receive("homes", &f);
	}
	assert_int_equal(kit_channel.frames, 4);
	assert_true(kit_balance());
}

// The router that the control plane announces exists: it answers neighbour discovery and echo requests, and no other
// such address does. It is the file's link-local address, else the MAC address's, which the port always has.
static void the_router_that_is_told_is_there(void **state)
{
	static const char of_mac[] = "fe80::ff:fe00:9902";
	static const struct {
		const char *address, *told;
	} row[] = {
		{"fe80::1/64", "fe80::1"}, {"2001:db8:64::ffff/48", of_mac}, {"100.64.0.1/10", of_mac}, {NULL, of_mac}};

	kit_advance(1000000);
	assert_memory_equal(&port_by_name("homes")->mac, "\2\0\0\0\x99\2", 6);
	kit_channel_open();
	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct api_interface f = {.port = "homes", .count = 1};

		kit_begin();
		if (row[i].address != NULL) {
			f.address[0] = kit_address(row[i].address);
			kit_put(API_INTERFACE, "homes", &f, sizeof(f));
		} else {
			kit_delete(API_INTERFACE, "homes");
		}
		assert_int_equal(kit_commit(), 0);
		kit_advance(100000);
		assert_int_equal(kit_channel.ports, 1);
		assert_string_equal(text_of(kit_channel.port[0].link_local), row[i].told);
		for (int of = 0; of < 2; of++) {
			const char *router = of ? of_mac : row[i].told;

			assert_int_equal(ask_nd(home, home, "fe80::99", router, 0), 1);
			struct nd_info nd = nd_answer(router);
			assert_int_equal(nd.flags, ND_ROUTER | ND_SOLICITED | ND_OVERRIDE);
			assert_int_equal(ask_nd(home, home, router, router, 0), 0); // B11
			assert_true(echo("fe80::99", router));
			assert_true(echo("2001:db8:64::5", router));
		}
		assert_false(echo("fe80::99", "fe80::77"));
		assert_false(echo("fe80::99", "2001:db8:1::1"));
		assert_int_equal(ask_nd(home, home, "fe80::99", "fe80::77", 0), 0);
	}
	assert_true(kit_balance());
}

static void put_homes(uint32_t flags)
{
	struct api_interface f = {.port = "homes", .count = 3, .flags = flags};

	f.address[0] = kit_address("100.64.0.1/10");
	f.address[1] = kit_address("fe80::1/64");
	f.address[2] = kit_address("2001:db8:64::ffff/48");
	assert_int_equal(kit_change(API_INTERFACE, "homes", &f, sizeof(f)), 0);
}

// With local proxy, for all its networks except the asker's own addresses, group and broadcast addresses.
static void others_are_answered_for(void **state)
{
	static const struct {
		const char *sender, *target;
		int answered;
	} row[] = {{"100.64.0.2", "100.64.0.3", 1}, {"100.64.0.2", "100.64.0.1", 1}, {"0.0.0.0", "100.64.0.3", 1},
		{"0.0.0.0", "100.64.0.2", 0}, {"100.64.0.2", "10.1.0.1", 0}, {"100.64.0.2", "100.127.255.255", 0},
		{"100.64.0.2", "100.64.0.0", 0}};

	put_homes(API_INTERFACE_LOCAL_PROXY);
	kit_advance(1000000);
	for (size_t i = 0; i < RTE_DIM(row); i++) {
		assert_int_equal(ask_arp(home, 7, home, row[i].sender, row[i].target, ARP_REQUEST), row[i].answered);
		if (!row[i].answered)
			continue;
		const uint8_t *arp = kit_frame("homes", 0)->bytes + 22; // an answer to 0.0.0.0 is none to arp_parse()
		assert_memory_equal(arp + 8, &port_by_name("homes")->mac, 6);
		assert_memory_equal(arp + 14, router_address(row[i].target).bytes, 4);
	}
	assert_int_equal(ask_nd(home, home, "fe80::99", "2001:db8:64:1::7", 0), 1);
	const struct kit_frame *k = kit_frame("homes", 0);
	struct nd_info nd = {0};
	assert_int_equal(nd_parse(k->bytes + 22, k->length - 22, k->length - 22, &nd), ND_OK);
	assert_int_equal(nd.flags, ND_SOLICITED);
	assert_memory_equal(nd.target, router_address("2001:db8:64:1::7").bytes, 16);
	assert_int_equal(ask_nd(home, home, "fe80::99", "fe80::77", 0), 0); // on the link alone
	assert_int_equal(ask_nd(home, home, "::", "2001:db8:64::5", 1), 0); // its own: it is free
	assert_int_equal(ask_nd(home, home, "::", "2001:db8:64:1::5", 1), 1);
	put_homes(0);
	assert_int_equal(ask_arp(home, 7, home, "100.64.0.2", "100.64.0.3", ARP_REQUEST), 0);
}

// RFC 5072 §5: PPP has no link-layer addresses to ask for.
static void nd_inside_ppp_is_dropped(void **state)
{
	static const uint8_t pppoe[] = {0x11, 0, 0, 5, 0, ND_LENGTH + 2, 0, 0x57};
	struct kit_reasons before = kit_reasons();
	struct router_frame f;

	begin(&f, home, NULL, 8, 0x8864);
	router_append(&f, pppoe, sizeof(pppoe));
	f.length += nd_put_ns(
		f.bytes + f.length, router_address("fe80::99").bytes, NULL, router_address("fe80::1").bytes, home);
	kit_clear();
	router_receive("homes", &f);
	assert_int_equal(router_count(), 0);
	kit_only_rose(&before, "neighbour-on-ppp", 1);
}

// 100 a second per subscriber: a greedy one takes nothing from the others.
static void answers_are_bounded(void **state)
{
	kit_advance(1000001);
	struct kit_reasons before = kit_reasons();
	uint32_t left = 0;

	for (int i = 0; i < 1010; i++)
		left += ask_arp(home, 7, home, "100.64.0.2", "100.64.0.1", ARP_REQUEST);
	assert_int_equal(left, 100);
	left += ask_nd(home, home, "fe80::99", "fe80::1", 0);
	kit_only_rose(&before, "neighbour-access-rate-limit", 1011 - left);
	assert_int_equal(ask_arp(home, 9, home, "100.64.0.4", "100.64.0.1", ARP_REQUEST), 1);
	kit_advance(10001);
	assert_int_equal(ask_arp(home, 7, home, "100.64.0.2", "100.64.0.1", ARP_REQUEST), 1);
	assert_true(kit_balance());
}

static char said[512];

static void note(const struct api_trace_row *row)
{
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s: %.*s\n", row->node, row->length,
		(const char *)row->data);
}

// A question that is only asked about is answered in words, and takes nothing of a limit.
static void answers_are_explained(void **state)
{
	static struct trace_order o;
	struct api_trace_state is;
	struct router_frame f;

	begin(&f, home, NULL, 7, 0x0806);
	arp_put(f.bytes + f.length, ARP_REQUEST, home, router_address("100.64.0.2").bytes, NULL,
		router_address("100.64.0.1").bytes);
	f.length += ARP_LENGTH;
	o.want = (struct api_trace){
		.flags = API_TRACE_STEPS | API_TRACE_HYPOTHETICAL, .seconds = 30, .octets = f.length};
	memcpy(o.octets, f.bytes, f.length);
	strcpy(o.want.port, "homes");
	kit_advance(10001); // one answer, not two
	kit_clear();
	for (int i = 0; i < 200; i++) {
		said[0] = 0;
		assert_int_equal(trace_begin(&o, &is), 0);
		kit_run();
		assert_int_equal(kit_trace_poll(is.trace, 1, note, &is), 0);
		assert_non_null(strstr(said, "arp-access: a question of a subscriber: its answer goes on"));
		assert_non_null(strstr(said, " bytes on homes"));
	}
	assert_int_equal(router_count(), 0);
	assert_int_equal(ask_arp(home, 7, home, "100.64.0.2", "100.64.0.1", ARP_REQUEST), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arp_for_the_gateway_is_answered),
		cmocka_unit_test(other_arp_is_not_answered),
		cmocka_unit_test(nd_for_the_gateway_is_answered),
		cmocka_unit_test(other_nd_is_not_answered),
		cmocka_unit_test(answers_to_us_go_up),
		cmocka_unit_test(the_router_that_is_told_is_there),
		cmocka_unit_test(others_are_answered_for),
		cmocka_unit_test(nd_inside_ppp_is_dropped),
		cmocka_unit_test(answers_are_bounded),
		cmocka_unit_test(answers_are_explained),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
