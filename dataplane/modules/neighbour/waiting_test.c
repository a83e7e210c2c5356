// SPDX-License-Identifier: Apache-2.0
// Sessions' packets that wait for a neighbour: changes of their session meanwhile, and the worker on which they
// continue.
#include "core/engine.h"
#include "session/mobile_fixture.h"
#include "wire/arp.h"

#define NOT_KNOWN "192.0.2.9" // the way to BEYOND
#define BEYOND "203.0.113.5"
#define GNB "10.1.0.3" // not known either

static const uint8_t mac_late[6] = {2, 0, 0, 0, 0xee, 9};

// Session n is worker n's, and has pipe n of its subport.
static struct kit_mobile *session(uint32_t n, const char *path)
{
	struct kit_mobile *k = upf_session(n);

	k->s.worker = n - 1;
	k->s.subport = n - 1;
	snprintf(k->s.port, sizeof(k->s.port), "ran");
	snprintf(k->s.pipe_profile, sizeof(k->s.pipe_profile), "all");
	snprintf(k->far[1].path, sizeof(k->far[1].path), "%s", path);
	return k;
}

static void put_scheduler(void)
{
	static struct api_scheduler s = {.subports = 2, .profiles = 1, .rate = 125000000};

	for (uint32_t i = 0; i < 2; i++) {
		s.subport[i].rate = s.rate / 2;
		s.subport[i].pipes = 1;
		s.subport[i].worker = i;
	}
	for (int i = 0; i < API_TRAFFIC_CLASSES; i++)
		s.queue_size[i] = 64;
	memset(s.qfi_class, 0xff, sizeof(s.qfi_class));
	snprintf(s.profile[0].name, sizeof(s.profile[0].name), "all");
	s.profile[0].rate = s.rate;
	s.profile[0].burst = 10000;
	memset(s.profile[0].weight, 1, sizeof(s.profile[0].weight));
	kit_put(API_SCHEDULER, "ran", &s, sizeof(s));
}

static int start(void **state)
{
	struct api_engine e = kit_engine();
	struct api_route r = {.prefix = kit_address("203.0.113.0/24"), .via = kit_address(NOT_KNOWN)};

	e.workers = 2;
	e.cpu[0] = e.cpu[1] = -1;
	e.max_scheduled = 1024;
	fixture_start(&e);
	kit_begin();
	kit_put(API_ROUTE, "beyond", &r, sizeof(r));
	kit_path("late", "10.1.0.1", GNB);
	put_scheduler();
	commit();
	return 0;
}

static void mtu(uint32_t bytes)
{
	struct api_interface n6 = {.port = "internet", .count = 2, .mtu = bytes};

	n6.address[0] = kit_address("192.0.2.1/24");
	n6.address[1] = kit_address("2001:db8:6::1/64");
	kit_put(API_INTERFACE, "n6", &n6, sizeof(n6));
}

static int fresh(void **state)
{
	kit_begin();
	mtu(0);
	kit_put_mobile("s1", session(1, "gnb"));
	commit();
	kit_advance(2000000); // limits are fresh
	kit_clear();
	return 0;
}

static int clean(void **state)
{
	kit_begin();
	kit_delete(API_SESSION, "s1");
	kit_delete(API_SESSION, "s2");
	kit_delete(API_NEIGHBOUR, "n6|" NOT_KNOWN);
	commit();
	for (int i = 0; i < 150; i++) // neighbours that do not answer are forgotten
		kit_advance(100000);
	assert_true(kit_balance());
	assert_int_equal(kit_buffers_in_use(), 0);
	return 0;
}

static void arp_reply(const char *port, const char *from, const char *to)
{
	static struct frame f;

	frame_payload(&f, 0);
	frame_push(&f, 46);
	arp_put(f.at, ARP_REPLY, mac_late, kit_address(from).bytes, mac_ours[port_number(port)], kit_address(to).bytes);
	frame_ethernet(&f, mac_ours[port_number(port)], mac_late, 0x0806);
	send_frame(port, &f);
}

// 1,400 bytes with DF, from UE 1.
static void sends_large(void)
{
	static struct frame f;

	ip_packet(&f, "10.45.0.1", BEYOND, 1400 - 28);
	f.at[6] = 0x40;
	frame_ip4_sum(&f);
	tunnel(&f, "10.1.0.2", "10.1.0.1", 0x101, 0xff, API_PDU_UL);
	link_layer(&f, "ran", 1);
	kit_clear();
	assert_int_equal(kit_send("ran", f.at, f.length), 0);
}

// RFC 1191 §4: the sender learns the link's MTU at once, while its packet's session is known.
static void too_large_need_not_wait(void **state)
{
	kit_begin();
	mtu(1280);
	commit();
	sends_large();
	kit_run();
	assert_int_equal(kit_count("internet"), 0); // no neighbour is asked for
	assert_int_equal(kit_count("ran"), 1);
	const uint8_t *gtpu = kit_frame("ran", 0)->bytes + 14 + 28, *ip = gtpu + 8;

	assert_int_equal(load32(gtpu + 4), 0x201);
	assert_int_equal(load32(ip + 16), 0x0a2d0001);
	assert_int_equal(ip[20], 3);
	assert_int_equal(load16(ip + 26), 1280);
}

// Its rule is another session's when the packet continues: neither that session nor the data network gets an error.
static void session_goes(int held)
{
	struct kit_reasons before;

	sends_large();
	for (int i = 0; i < 4; i++)
		engine_walk(); // up to the control thread, and no further
	if (held)
		kit_run();
	kit_begin();
	kit_delete(API_SESSION, "s1");
	commit();
	kit_begin();
	mtu(1280);
	kit_put_mobile("s2", session(2, "gnb"));
	if (!held)
		kit_neighbour("n6", NOT_KNOWN, mac_late);
	commit();
	kit_clear();
	before = kit_reasons();
	if (held)
		arp_reply("internet", NOT_KNOWN, "192.0.2.1");
	else
		kit_run();
	assert_int_equal(all_out(), 0);
	kit_only_dropped(&before, "icmp-no-source", 1);
}

static void session_goes_on_the_way_up(void **state)
{
	session_goes(0);
}

static void session_goes_while_it_waits(void **state)
{
	session_goes(1);
}

static uint64_t scheduled(uint32_t subport)
{
	uint32_t count;
	const struct api_scheduler_row *r = kit_rows(API_TABLE_SCHEDULER, "ran", sizeof(*r), &count);
	uint64_t packets = 0;

	for (uint32_t i = 0; i < count; i++)
		packets += r[i].subport == subport ? r[i].packets : 0;
	return packets;
}

// Of a subport that the second worker has.
static void shaped_where_its_pipe_is(void **state)
{
	static struct frame f;

	kit_begin();
	kit_put_mobile("s1", session(1, "late"));
	kit_put_mobile("s2", session(2, "late"));
	commit();
	for (uint32_t n = 1; n <= 2; n++) {
		char ue[16];

		snprintf(ue, sizeof(ue), "10.45.0.%u", n);
		downlink_of(&f, FAR4, ue);
		assert_int_equal(kit_send("internet", f.at, f.length), 0);
	}
	kit_run();
	uint64_t before[2] = {scheduled(0), scheduled(1)};

	arp_reply("ran", GNB, "10.1.0.1");
	kit_advance(1000);
	assert_int_equal(kit_count("ran"), 2);
	assert_int_equal(scheduled(0) - before[0], 1);
	assert_int_equal(scheduled(1) - before[1], 1);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test_setup_teardown(too_large_need_not_wait, fresh, clean),
		cmocka_unit_test_setup_teardown(session_goes_on_the_way_up, fresh, clean),
		cmocka_unit_test_setup_teardown(session_goes_while_it_waits, fresh, clean),
		cmocka_unit_test_setup_teardown(shaped_where_its_pipe_is, fresh, clean),
	};

	return cmocka_run_group_tests(list, start, NULL);
}
