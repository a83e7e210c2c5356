// SPDX-License-Identifier: Apache-2.0
// Mirrors: copied packets, their targets and number; the fast path beside; changes.
#include "mirror/mirror.h"
#include "rule/session.h"
#include "session/mobile_fixture.h"
#include "wire/ecn.h"
#include "wire/eth.h"

static const uint8_t no_mac[6];

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.max_buffered = 64;
	fixture_start(&e);
	kit_begin();
	kit_port("tap", API_ROLE_CORE);
	commit();
	return 0;
}

static int clean(void **state)
{
	kit_begin();
	kit_delete(API_MIRROR, "m");
	kit_delete(API_MIRROR, "m2");
	kit_delete(API_SESSION, "s1");
	commit();
	kit_run();
	assert_true(kit_balance());
	assert_int_equal(kit_buffers_in_use(), 0);
	return 0;
}

static struct api_mirror to_port(void)
{
	struct api_mirror x = {.to = API_MIRROR_PORT, .ue_port = {0, UINT16_MAX}, .remote_port = {0, UINT16_MAX}};

	strcpy(x.target, "tap");
	x.ue = kit_address("10.45.0.0/24");
	return x;
}

static struct api_mirror to_collector(const char *address)
{
	struct api_mirror x = to_port();

	x.to = API_MIRROR_ERSPAN;
	x.target[0] = 0;
	x.collector = kit_address(address);
	x.session = 0x2a5;
	x.dscp = 10;
	return x;
}

static int try(const char *name, const struct api_mirror *x)
{
	return kit_change(API_MIRROR, name, x, sizeof(*x));
}

static void put_mirror(const char *name, const struct api_mirror *x)
{
	if (try(name, x) != 0)
		fail_msg("refused: %s", kit_error());
}

static struct api_mirror_row row(const char *name)
{
	uint32_t count;
	const struct api_mirror_row *r = kit_rows(API_TABLE_MIRROR, name, sizeof(*r), &count);

	assert_int_equal(count, 1);
	return *r;
}

static int tapped(const struct frame *f)
{
	return kit_count("tap") == 1 && kit_frame("tap", 0)->length == f->length &&
	       memcmp(kit_frame("tap", 0)->bytes, f->at, f->length) == 0;
}

// Frames as received, with tunnel headers; the original goes on unchanged.
static void frames(void **state)
{
	struct api_mirror x = to_port();
	static struct frame f, want;

	put("s1", upf_session(1));
	put_mirror("m", &x);
	send_frame("ran", uplink_of(&f, "10.45.0.1", FAR4, 0x101, 0xff));
	assert_true(same_frame("internet", 0, routed_out(&want, "10.45.0.1", FAR4)));
	assert_true(tapped(&f));
	send_frame("internet", downlink_of(&f, FAR4, "10.45.0.1"));
	assert_true(same_frame("ran", 0, tunnelled_out(&want, FAR4, "10.45.0.1", 0x201, 0xff)));
	assert_true(tapped(&f));
	assert_true(kit_balance());
	assert_int_equal(row("m").packets, 2);
	// One direction alone; cut.
	x.direction = API_MIRROR_DOWNLINK;
	x.snap = 64;
	put_mirror("m", &x);
	send_frame("ran", uplink_of(&f, "10.45.0.1", FAR4, 0x101, 0xff));
	assert_int_equal(kit_count("tap"), 0);
	send_frame("internet", downlink_of(&f, FAR4, "10.45.0.1"));
	f.length = 64;
	assert_true(tapped(&f));
	assert_int_equal(row("m").packets, 3);
	assert_int_equal(kit_count("ran"), 1);
}

static void gtpu(void **state)
{
	struct api_mirror x = to_port();
	static struct frame f, copy;

	x.to = API_MIRROR_GTPU;
	strcpy(x.target, "peer");
	x.teid = 0xabcd;
	put("s1", upf_session(1));
	put_mirror("m", &x);
	send_frame("ran", uplink_of(&f, "10.45.0.1", FAR4, 0x101, 0xff));
	ip_packet(&copy, "10.45.0.1", FAR4, 80);
	tunnel(&copy, "10.9.0.1", "10.9.0.2", 0xabcd, 0xff, API_PDU_NONE);
	link_layer(&copy, "peers", 0);
	assert_true(same_frame("peers", 0, &copy));
	assert_int_equal(all_out(), 2);
}

static void erspan_to(const char *collector, uint32_t header, uint32_t snap)
{
	struct api_mirror x = to_collector(collector);
	static struct frame f;

	x.snap = (uint16_t)snap;
	put_mirror("m", &x);
	uint32_t first = mirrors[0].sequence;
	for (uint32_t i = 0; i < 2; i++) {
		send_frame("ran", uplink_of(&f, "10.45.0.1", FAR4, 0x101, 0xff));
		assert_int_equal(all_out(), 2);
		const uint8_t *ip = kit_frame("peers", 0)->bytes + 14, *gre = ip + header;
		uint32_t inside = snap ? snap : f.length;

		assert_int_equal(kit_frame("peers", 0)->length, 14 + header + 16 + inside);
		assert_int_equal(header == 20 ? ip[9] : ip[6], 47);
		assert_int_equal(ip_traffic_class(header == 20 ? 4 : 6, ip), 10 << 2);
		assert_true(header != 20 || ip4_checksum_ok(ip));
		assert_int_equal(load32(gre), 0x100088be); // RFC 2890: S
		assert_int_equal(load32(gre + 4), first + i);
		assert_int_equal(load16(gre + 8), 0x1000); // version 1 is type II
		assert_int_equal(load16(gre + 10), (snap ? 0x400 : 0) | 0x2a5);
		assert_int_equal(load32(gre + 12), API_MIRROR_UPLINK);
		assert_memory_equal(gre + 16, f.at, inside);
	}
	assert_true(kit_balance());
}

static void erspan(void **state)
{
	put("s1", upf_session(1));
	erspan_to("10.9.0.2", 20, 0);
	erspan_to("fd00:9::2", 40, 0);
	erspan_to("10.9.0.2", 20, 100);
}

// Longer than a link takes: our own outer packet is fragmented, the original is not.
static void erspan_of_long_frames(void **state)
{
	struct api_mirror x = to_collector("10.9.0.2");
	static struct frame f;

	put("s1", upf_session(1));
	put_mirror("m", &x);
	ip_packet(&f, "10.45.0.1", FAR4, 1400);
	tunnel(&f, "10.1.0.2", "10.1.0.1", 0x101, 0xff, API_PDU_UL);
	link_layer(&f, "ran", 1);
	send_frame("ran", &f);
	assert_int_equal(kit_count("internet"), 1);
	assert_int_equal(kit_count("peers"), 2);
	assert_true(kit_balance());
}

// Our own packets to ourselves have no Ethernet header; packets that waited have theirs.
static void made_headers(void **state)
{
	struct kit_mobile *k = upf_session(1);
	struct api_mirror x = to_port();
	static struct frame f;

	x.direction = API_MIRROR_DOWNLINK;
	put_mirror("m", &x);
	put("s1", k);
	kit_begin();
	kit_put_mobile("s2", upf_session(2));
	commit();
	send_frame("ran", uplink_of(&f, "10.45.0.2", "10.45.0.1", 0x102, 0xff)); // from UE to UE
	assert_int_equal(kit_count("ran"), 1);
	assert_int_equal(kit_count("tap"), 1);
	assert_int_equal(kit_frame("tap", 0)->length, 14 + 108);
	assert_memory_equal(kit_frame("tap", 0)->bytes, no_mac, 6);
	assert_int_equal(load16(kit_frame("tap", 0)->bytes + 12), ETH_TYPE_IP4);
	gone("s2");
	k = upf_session(1);
	k->far[1].action = API_FAR_BUFFER;
	put("s1", k);
	send_frame("internet", downlink_of(&f, FAR4, "10.45.0.1"));
	assert_int_equal(kit_count("tap"), 0);
	k->far[1].action = API_FAR_FORWARD;
	put("s1", k);
	kit_run();
	assert_int_equal(kit_count("ran"), 1);
	assert_true(tapped(&f));
}

static void flows(void **state)
{
	struct api_mirror x = to_port();
	static struct frame f;

	x.protocol = 17;
	x.remote = kit_address("198.51.100.0/24");
	x.remote_port[0] = x.remote_port[1] = 5000;
	put("s1", upf_session(1));
	put_mirror("m", &x);
	send_frame("ran", uplink_of(&f, "10.45.0.1", FAR4, 0x101, 0xff)); // from port 4000 to 5000
	assert_int_equal(kit_count("tap"), 1);
	send_frame("internet", downlink_of(&f, FAR4, "10.45.0.1")); // from 4000
	assert_int_equal(kit_count("tap"), 0);
	send_frame("ran", uplink_of(&f, "10.45.0.1", "203.0.113.1", 0x101, 0xff));
	assert_int_equal(kit_count("tap"), 0);
	x.protocol = 6;
	put_mirror("m", &x);
	send_frame("ran", uplink_of(&f, "10.45.0.1", FAR4, 0x101, 0xff));
	assert_int_equal(kit_count("tap"), 0);
	assert_int_equal(all_out(), 1);
}

// By name, by UE, by network instance; two mirrors make one copy.
static void sessions(void **state)
{
	struct kit_mobile *k = upf_session(1);
	struct api_mirror x = to_port();
	static struct frame f;

	x.ue = kit_address("10.45.1.0/24");
	put_mirror("m", &x);
	put("s1", k);
	send_frame("internet", downlink_of(&f, FAR4, "10.45.0.1"));
	assert_int_equal(kit_count("tap"), 0);
	strcpy(k->s.mirror, "m");
	put("s1", k);
	send_frame("internet", downlink_of(&f, FAR4, "10.45.0.1"));
	assert_int_equal(kit_count("tap"), 1);
	strcpy(k->s.mirror, "nobody");
	put("s1", k);
	send_frame("internet", &f);
	assert_int_equal(kit_count("tap"), 0);
	x.ue.family = 0;
	strcpy(x.instance, "core");
	put_mirror("m", &x);
	send_frame("internet", &f);
	assert_int_equal(kit_count("tap"), 1);
	x.ue = kit_address("10.45.0.1/32");
	put_mirror("m2", &x);
	send_frame("internet", &f);
	assert_int_equal(kit_count("tap"), 1);
	strcpy(x.instance, "peers");
	put_mirror("m", &x);
	put_mirror("m2", &x);
	send_frame("internet", &f);
	assert_int_equal(kit_count("tap"), 0);
}

static uint32_t copies_of(uint32_t packets)
{
	static struct frame f;

	downlink_of(&f, FAR4, "10.45.0.1");
	kit_clear();
	for (uint32_t i = 0; i < packets; i++)
		assert_int_equal(kit_send("internet", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count("ran"), packets);
	assert_true(kit_balance());
	return kit_count("tap");
}

static void samples(void **state)
{
	struct api_mirror x = to_port();

	put("s1", upf_session(1));
	x.sample = 5;
	put_mirror("m", &x);
	assert_int_equal(copies_of(50), 10);
	x.sample = 0;
	x.rate = 20;
	put_mirror("m", &x);
	kit_advance(2000000);
	assert_int_equal(copies_of(50), 20);
	assert_int_equal(row("m").limited, 30);
	kit_advance(1000000);
	assert_int_equal(copies_of(50), 20);
	assert_int_equal(row("m").limited, 60);
}

static void without_buffers(void **state)
{
	struct worker *w = worker_get(0);
	struct rte_mempool *pool = w->pool, *empty = rte_pktmbuf_pool_create("none", 1, 0, PACKET_PRIVATE, 2048, 0);
	struct api_mirror x = to_port();
	struct rte_mbuf *last = rte_pktmbuf_alloc(empty);

	put("s1", upf_session(1));
	put_mirror("m", &x);
	struct kit_reasons before = kit_reasons();
	w->pool = empty;
	assert_int_equal(copies_of(3), 0);
	w->pool = pool;
	kit_only_rose(&before, "mirror-no-buffer", 3);
	assert_int_equal(row("m").no_buffer, 3);
	rte_pktmbuf_free(last);
	rte_mempool_free(empty);
}

// No route leads to the collector: the copy is dropped, the original passes.
static void without_way(void **state)
{
	struct api_mirror x = to_collector("10.9.0.2");
	struct kit_reasons before;

	kit_begin();
	kit_delete(API_ROUTE, "::/0");
	commit();
	x.collector = kit_address("2001:db8:dead::1");
	put("s1", upf_session(1));
	put_mirror("m", &x);
	before = kit_reasons();
	copies_of(2);
	kit_only_rose(&before, "mirror-impossible", 2);
	assert_int_equal(row("m").failed, 2);
	struct api_route r = {.prefix = kit_address("::/0"), .via = kit_address("2001:db8:6::2")};
	kit_begin();
	kit_put(API_ROUTE, "::/0", &r, sizeof(r));
	commit();
}

static uint64_t full_nodes(uint32_t packets)
{
	uint64_t before = kit_node_packets("core-input");

	copies_of(packets);
	return kit_node_packets("core-input") - before;
}

// Only packets in a mirrored direction of mirrored sessions take the full nodes, as long as there is the mirror.
static void fast_path(void **state)
{
	struct api_mirror x = to_port();

	put("s1", upf_session(1));
	full_nodes(4);
	assert_int_equal(full_nodes(10), 0);
	x.direction = API_MIRROR_UPLINK;
	put_mirror("m", &x);
	assert_int_equal(full_nodes(10), 0);
	x.direction = API_MIRROR_BOTH;
	put_mirror("m", &x);
	assert_int_equal(full_nodes(10), 10);
	assert_int_equal(kit_count("tap"), 10);
	kit_begin();
	kit_delete(API_MIRROR, "m");
	commit();
	full_nodes(4);
	assert_int_equal(full_nodes(10), 0);
	// A session created in the transaction that deletes the mirror.
	put_mirror("m", &x);
	kit_begin();
	kit_put_mobile("s1", upf_session(1));
	kit_delete(API_MIRROR, "m");
	commit();
	full_nodes(4);
	assert_int_equal(full_nodes(10), 0);
}

static void expect_refused(const struct api_mirror *x, const char *text)
{
	assert_int_not_equal(try("bad", x), 0);
	if (strstr(kit_error(), text) == NULL)
		fail_msg("%s", kit_error());
}

static void refusals(void **state)
{
	struct api_mirror x = to_port();

	strcpy(x.target, "nowhere");
	expect_refused(&x, "no port nowhere");
	x.to = API_MIRROR_GTPU;
	expect_refused(&x, "no path nowhere");
	x.to = 9;
	expect_refused(&x, "none of its targets");
	x = to_collector("10.9.0.2");
	x.collector.family = 0;
	expect_refused(&x, "no host");
	x = to_collector("10.9.0.2");
	x.session = 1024;
	expect_refused(&x, "1023");
	x = to_port();
	x.snap = 20;
	expect_refused(&x, "at least 64");
	x = to_port();
	strcpy(x.instance, "nowhere");
	expect_refused(&x, "no network instance");
	x = to_port();
	x.ue_port[0] = 2, x.ue_port[1] = 1;
	expect_refused(&x, "out of range");
	x = to_port();
	for (uint32_t i = 0; i < API_MAX_MIRRORS; i++) {
		char name[API_NAME];

		snprintf(name, sizeof(name), "x%u", i);
		put_mirror(name, &x);
	}
	expect_refused(&x, "more than 64");
	kit_begin();
	for (uint32_t i = 0; i < API_MAX_MIRRORS; i++) {
		char name[API_NAME];

		snprintf(name, sizeof(name), "x%u", i);
		kit_delete(API_MIRROR, name);
	}
	commit();
	put_mirror("m", &x);
}

// A mirror's target cannot be deleted; a refused transaction changes nothing.
static void targets_stay(void **state)
{
	struct api_mirror x = to_port();

	put("s1", upf_session(1));
	put_mirror("m", &x);
	kit_begin();
	kit_delete(API_PORT, "tap");
	assert_int_not_equal(kit_commit(), 0);
	assert_non_null(strstr(kit_error(), "mirror m"));
	assert_int_equal(copies_of(2), 2);
	struct api_mirror bad = to_port();
	bad.snap = 1;
	kit_begin();
	kit_delete(API_MIRROR, "m");
	kit_put(API_MIRROR, "m2", &bad, sizeof(bad));
	assert_int_not_equal(kit_commit(), 0);
	assert_int_equal(copies_of(2), 2);
	kit_begin();
	kit_delete(API_MIRROR, "m");
	kit_delete(API_PORT, "tap");
	commit();
	kit_begin();
	kit_port("tap", API_ROLE_CORE);
	commit();
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test_teardown(frames, clean),
		cmocka_unit_test_teardown(gtpu, clean),
		cmocka_unit_test_teardown(erspan, clean),
		cmocka_unit_test_teardown(erspan_of_long_frames, clean),
		cmocka_unit_test_teardown(made_headers, clean),
		cmocka_unit_test_teardown(flows, clean),
		cmocka_unit_test_teardown(sessions, clean),
		cmocka_unit_test_teardown(samples, clean),
		cmocka_unit_test_teardown(without_buffers, clean),
		cmocka_unit_test_teardown(without_way, clean),
		cmocka_unit_test_teardown(fast_path, clean),
		cmocka_unit_test_teardown(refusals, clean),
		cmocka_unit_test_teardown(targets_stay, clean),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
