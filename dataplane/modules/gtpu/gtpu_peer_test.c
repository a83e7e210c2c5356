// SPDX-License-Identifier: Apache-2.0
// End Markers, Error Indications, extension headers and supervision of paths, to peers and from them.
#include "session/mobile_fixture.h"
#include "testkit/events.h"
#include "wire/gtpu.h"
#include <errno.h>

#define GTPU_TEST_PATHS 10000

static int setup(void **state)
{
	fixture_start(NULL);
	kit_events_clear();
	return 0;
}

static int clean(void **state)
{
	kit_begin();
	kit_delete(API_SESSION, "s1");
	commit();
	kit_run();
	assert_true(kit_balance());
	kit_events_clear();
	kit_clear();
	return 0;
}

static void settle_events(void)
{
	for (int i = 0; i < 3; i++)
		kit_advance(2000);
}

// A message in place of a payload, from a peer to us.
static struct frame *message(
	struct frame *f, const uint8_t *bytes, uint32_t n, const char *port, const char *from, const char *to)
{
	frame_payload(f, 0);
	frame_append(f, bytes, n);
	frame_udp(f, 2152, 2152);
	frame_ip(f, from, to, 17);
	link_layer(f, port, 1);
	return f;
}

static const uint8_t *sent_message(const char *port, uint32_t i, uint32_t *length)
{
	const struct kit_frame *k = kit_frame(port, i);
	uint32_t header = load16(k->bytes + 12) == 0x86dd ? 14 + 48 : 14 + 28;

	*length = k->length - header;
	return k->bytes + header;
}

static void end_marker_when_asked(void **state)
{
	struct kit_mobile *k = upf_session(1);
	uint32_t n;

	kit_qer(k, 1, 9);
	kit_pdr_qer(&k->pdr[1], 1);
	put("s1", k);
	kit_clear();
	k->far[1].teid = 0x999; // moves, without a request for an End Marker
	put("s1", k);
	kit_run();
	assert_int_equal(all_out(), 0);
	k->far[1].teid = 0x777;
	k->far[1].end_marker = 1;
	strcpy(k->far[1].path, "gnb6");
	put("s1", k);
	kit_run();
	assert_int_equal(kit_count("ran"), 1);
	const uint8_t *m = sent_message("ran", 0, &n);
	static const uint8_t want[16] = {0x34, 254, 0, 8, 0, 0, 9, 0x99, 0, 0, 0, 0x85, 1, 0, 9, 0};
	assert_int_equal(n, sizeof(want));
	assert_memory_equal(m, want, sizeof(want));
	// In one transaction the path may go as well.
	kit_clear();
	kit_begin();
	kit_path("old", "10.1.0.1", "10.1.0.2");
	strcpy(k->far[1].path, "old");
	kit_put_mobile("s1", k);
	commit();
	k->far[1].end_marker = 2;
	strcpy(k->far[1].path, "gnb");
	kit_begin();
	kit_delete(API_PATH, "old");
	kit_put_mobile("s1", k);
	commit();
	kit_run();
	assert_int_equal(kit_count("ran"), 1);
}

// An SGW-U's session: TEID 0x300 from the PGW-U, 0x400 to the eNodeB.
static void end_marker_passed_on(void **state)
{
	static const uint8_t in[8] = {0x30, 254, 0, 0, 0, 0, 3, 0}, want[8] = {0x30, 254, 0, 0, 0, 0, 4, 0};
	static struct frame f;
	struct kit_mobile k;
	uint32_t n;

	kit_mobile(&k, 1, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_CORE, "10.9.0.1", 0x300, 1);
	kit_far_gtpu(&k, 1, API_FROM_ACCESS, "gnb", 0x400);
	put("s1", &k);
	send_frame("peers", message(&f, in, sizeof(in), "peers", "10.9.0.2", "10.9.0.1"));
	assert_int_equal(all_out(), 1);
	const uint8_t *m = sent_message("ran", 0, &n);
	assert_int_equal(n, sizeof(want));
	assert_memory_equal(m, want, sizeof(want));
	assert_true(kit_balance());
	// Row G18: of no tunnel.
	static const uint8_t stray[8] = {0x30, 254, 0, 0, 0, 0, 3, 1};
	expect_drop("peers", message(&f, stray, 8, "peers", "10.9.0.2", "10.9.0.1"), "gtpu-end-marker-unknown");
}

// Row G13: with pin_peer an End Marker comes from the session's peer, too.
static void end_marker_of_a_stranger(void **state)
{
	static const uint8_t in[8] = {0x30, 254, 0, 0, 0, 0, 1, 1};
	static struct frame f;

	put("s1", upf_session(1));
	kit_begin();
	fixture_instances(0, API_INSTANCE_PIN_PEER);
	commit();
	settle_events();
	expect_drop("ran", message(&f, in, sizeof(in), "ran", "10.1.0.77", "10.1.0.1"), "tunnel-peer");
	uint64_t punted = kit_totals().punted;
	send_frame("ran", message(&f, in, sizeof(in), "ran", "10.1.0.2", "10.1.0.1"));
	assert_int_equal(kit_totals().punted - punted, 1);
	kit_begin();
	fixture_instances(0, 0);
	commit();
}

// Rows G14, G18: strangers do not use up the peers' answers.
static void floods_of_strangers(void **state)
{
	static const uint8_t echo[] = {0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0};
	static struct frame f, unknown;

	ip_packet(&unknown, UE4, FAR4, 80);
	tunnel(&unknown, "10.1.0.77", "10.1.0.1", 0x909, 0xff, 0);
	link_layer(&unknown, "ran", 1);
	kit_advance(1000003);
	for (int i = 0; i < 200; i++) {
		send_frame("ran", message(&f, echo, sizeof(echo), "ran", "10.1.0.77", "10.1.0.1"));
		send_frame("ran", &unknown);
	}
	assert_int_not_equal(kit_reason("gtpu-echo-rate-limit"), 0);
	send_frame("ran", message(&f, echo, sizeof(echo), "ran", "10.1.0.2", "10.1.0.1"));
	assert_int_equal(kit_count("ran"), 1);
	send_frame("ran", uplink_of(&f, UE4, FAR4, 0x909, 0xff));
	assert_int_equal(kit_count("ran"), 1);
	kit_advance(5000000); // packets that wait for the stranger's MAC address are dropped
}

static void error_indications(void **state)
{
	uint8_t m[GTPU_MESSAGE_MAX];
	static struct frame f;
	struct api_address peer = kit_address("10.1.0.2"), unknown = kit_address("10.1.0.3");
	unsigned n = gtpu_put_error_indication(m, 0x201, 4, peer.bytes);

	send_frame("ran", message(&f, m, n, "ran", "10.1.0.2", "10.1.0.1"));
	settle_events();
	assert_int_equal(kit_events(API_EVENT_ERROR_INDICATION), 1);
	const struct api_event *e = kit_event(API_EVENT_ERROR_INDICATION, 0);
	assert_int_equal(e->teid, 0x201);
	assert_memory_equal(&e->peer.bytes, peer.bytes, 4);
	// Row G17: from no peer of ours; of an address that we send nothing to.
	expect_drop("ran", message(&f, m, n, "ran", "10.1.0.3", "10.1.0.1"), "gtpu-error-indication-stranger");
	n = gtpu_put_error_indication(m, 0x201, 4, unknown.bytes);
	expect_drop("ran", message(&f, m, n, "ran", "10.1.0.2", "10.1.0.1"), "gtpu-error-indication-stranger");
	m[7] = 1; // a TEID in the header
	expect_drop("ran", message(&f, m, n, "ran", "10.1.0.2", "10.1.0.1"), "gtpu-error-indication-malformed");
	settle_events();
	assert_int_equal(kit_events(API_EVENT_ERROR_INDICATION), 1);
}

static void extension_headers(void **state)
{
	static const uint8_t in[] = {0x34, 255, 0, 8, 0, 0, 1, 1, 0, 0, 0, 0xc1, 1, 0, 0, 0};
	static const uint8_t want[] = {0x32, 31, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 141, 2, 0x40, 0x85};
	uint64_t before = kit_reason("gtpu-extension-unknown");
	static struct frame f;
	uint32_t n;

	send_frame("ran", message(&f, in, sizeof(in), "ran", "10.1.0.2", "10.1.0.1"));
	assert_int_equal(kit_count("ran"), 1);
	const uint8_t *m = sent_message("ran", 0, &n);
	assert_int_equal(n, sizeof(want));
	assert_memory_equal(m, want, sizeof(want));
	kit_clear();
	for (int i = 0; i < 100; i++) // no more than the rate allows
		kit_send("ran", f.at, f.length);
	kit_run();
	assert_in_range(kit_count("ran"), 1, 20);
	assert_int_equal(kit_reason("gtpu-extension-unknown") - before, 101);
	assert_true(kit_balance());
}

static void supervise(const char *name, uint32_t interval)
{
	struct api_path p = {
		.local = kit_address("10.1.0.1"), .peer = kit_address("10.1.0.2"), .echo_interval = interval};

	kit_begin();
	kit_put(API_PATH, name, &p, sizeof(p));
	commit();
}

static void answer(uint16_t sequence, uint8_t recovery)
{
	uint8_t m[GTPU_MESSAGE_MAX];
	static struct frame f;
	unsigned n = gtpu_put_echo_response(m, sequence);

	m[13] = recovery;
	message(&f, m, n, "ran", "10.1.0.2", "10.1.0.1");
	assert_int_equal(kit_send("ran", f.at, f.length), 0);
	kit_run();
	settle_events();
}

static uint16_t asked(uint32_t i)
{
	uint32_t n;
	const uint8_t *m = sent_message("ran", i, &n);

	assert_int_equal(m[1], GTPU_ECHO_REQUEST);
	return load16(m + 8);
}

static void run_seconds(int seconds)
{
	for (int i = 0; i < 10 * seconds; i++)
		kit_advance(100000);
}

static void path_goes_down_and_comes_back(void **state)
{
	kit_clear();
	supervise("gnb", 60);
	run_seconds(2);
	assert_int_equal(kit_count("ran"), 1);
	answer(asked(0), 5);
	run_seconds(20);
	assert_int_equal(kit_count("ran"), 1); // answered: nothing more until the interval is over
	run_seconds(40);
	assert_int_equal(kit_count("ran"), 2);
	run_seconds(4); // T3-RESPONSE: the same request again
	assert_int_equal(kit_count("ran"), 3);
	assert_int_equal(asked(1), asked(2));
	run_seconds(3);
	assert_int_equal(kit_count("ran"), 4);
	assert_int_equal(kit_events(API_EVENT_PATH_DOWN), 0);
	run_seconds(4);
	assert_int_equal(kit_events(API_EVENT_PATH_DOWN), 1);
	assert_int_equal(kit_count("ran"), 4);
	answer((uint16_t)(asked(3) + 1), 5); // to nothing that we asked
	assert_int_equal(kit_events(API_EVENT_PATH_UP), 0);
	answer(asked(3), 5);
	assert_int_equal(kit_events(API_EVENT_PATH_UP), 1);
	assert_int_equal(kit_event(API_EVENT_PATH_UP, 0)->rule, 0);
	run_seconds(50);
	answer(asked(4), 6); // counts its restarts
	assert_int_equal(kit_events(API_EVENT_PATH_UP), 2);
	assert_int_equal(kit_event(API_EVENT_PATH_UP, 1)->rule, 1);
	assert_int_equal(kit_events(API_EVENT_PATH_DOWN), 1);
	supervise("gnb", 0);
	kit_clear();
	run_seconds(70);
	assert_int_equal(all_out(), 0);
}

static void many_paths(void **state)
{
	static struct frame f;
	uint8_t m[GTPU_MESSAGE_MAX];
	char name[API_NAME];

	kit_begin();
	for (uint32_t i = 0; i < GTPU_TEST_PATHS; i++) {
		struct api_path p = {.local = kit_address("10.1.0.1"), .peer = kit_address("10.200.0.0")};

		store32(p.peer.bytes, load32(p.peer.bytes) + i);
		snprintf(name, sizeof(name), "n4.%08x", i);
		kit_put(API_PATH, name, &p, sizeof(p));
	}
	commit();
	// The last one is found by its name and by its ends.
	struct kit_mobile *k = upf_session(1);
	snprintf(k->far[1].path, API_NAME, "n4.%08x", GTPU_TEST_PATHS - 1);
	put("s1", k);
	struct api_address peer = kit_address("10.200.39.15");
	unsigned n = gtpu_put_error_indication(m, 1, 4, peer.bytes);
	message(&f, m, n, "ran", "10.200.39.15", "10.1.0.1");
	uint64_t before = kit_reason("gtpu-error-indication");
	send_frame("ran", &f);
	assert_int_equal(kit_reason("gtpu-error-indication") - before, 1);
	gone("s1");
	kit_begin();
	for (uint32_t i = 0; i < GTPU_TEST_PATHS; i++) {
		snprintf(name, sizeof(name), "n4.%08x", i);
		kit_delete(API_PATH, name);
	}
	commit();
	expect_drop("ran", &f, "gtpu-error-indication-stranger");
}

// Every message, for an independent decoder.

// Appends the port's output to the capture named by GTPU_PEER_PCAP (test/golden/gtpu_messages_test.sh).
static uint32_t record(FILE *file, const char *port)
{
	uint32_t count = kit_count(port);

	for (uint32_t i = 0; i < count && file != NULL; i++) {
		const struct kit_frame *k = kit_frame(port, i);
		uint32_t head[4] = {i, 0, k->length, k->length};

		fwrite(head, sizeof(head), 1, file);
		fwrite(k->bytes, k->length, 1, file);
	}
	kit_clear();
	return count;
}

static void messages_of_family(FILE *file, int six, uint32_t *count)
{
	static const uint8_t required[] = {0x34, 255, 0, 8, 0, 0, 1, 1, 0, 0, 0, 0xc1, 1, 0, 0, 0};
	const char *from = six ? "fd00:1::2" : "10.1.0.2", *to = six ? "fd00:1::1" : "10.1.0.1";
	const char *name = six ? "gnb6" : "gnb";
	struct api_path p = {.local = kit_address(to), .peer = kit_address(from), .echo_interval = 60};
	struct kit_mobile *k = upf_session(1);
	static struct frame f;
	uint8_t m[GTPU_MESSAGE_MAX];

	kit_begin();
	kit_put(API_PATH, name, &p, sizeof(p));
	commit();
	kit_clear();
	kit_advance(200000); // Echo Request
	*count += record(file, "ran");
	p.echo_interval = 0;
	kit_begin();
	kit_put(API_PATH, name, &p, sizeof(p));
	commit();
	unsigned n = gtpu_put_echo_request(m, 77);
	send_frame("ran", message(&f, m, n, "ran", from, to)); // Echo Response
	*count += record(file, "ran");
	ip_packet(&f, "10.45.0.1", FAR4, 80);
	tunnel(&f, from, to, 0xbad, 9, API_PDU_UL);
	link_layer(&f, "ran", 1);
	send_frame("ran", &f); // Error Indication
	*count += record(file, "ran");
	send_frame("ran",
		message(&f, required, sizeof(required), "ran", from, to)); // Supported Extension Headers Notification
	*count += record(file, "ran");
	for (int container = 0; container < 2; container++) { // End Marker and G-PDU
		k = upf_session(1);
		if (container) {
			kit_qer(k, 1, 9);
			kit_pdr_qer(&k->pdr[1], 1);
		}
		strcpy(k->far[1].path, name);
		put("s1", k);
		send_frame("internet", downlink_of(&f, FAR4, "10.45.0.1"));
		*count += record(file, "ran");
		k->far[1].teid++;
		k->far[1].end_marker = 1 + (uint32_t)container;
		put("s1", k);
		kit_run();
		*count += record(file, "ran");
		gone("s1");
	}
}

static void every_message(void **state)
{
	static const uint32_t header[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1};
	const char *name = getenv("GTPU_PEER_PCAP");
	FILE *file = name != NULL ? fopen(name, "wb") : NULL;
	uint32_t count = 0;

	kit_advance(1000000); // limits are full again
	if (file != NULL)
		fwrite(header, sizeof(header), 1, file);
	for (int six = 0; six < 2; six++)
		messages_of_family(file, six, &count);
	if (file != NULL)
		assert_int_equal(fclose(file), 0);
	assert_int_equal(count, 2 * 8);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test_teardown(end_marker_when_asked, clean),
		cmocka_unit_test_teardown(end_marker_passed_on, clean),
		cmocka_unit_test_teardown(end_marker_of_a_stranger, clean),
		cmocka_unit_test_teardown(error_indications, clean),
		cmocka_unit_test_teardown(extension_headers, clean),
		cmocka_unit_test_teardown(path_goes_down_and_comes_back, clean),
		cmocka_unit_test_teardown(many_paths, clean),
		cmocka_unit_test_teardown(every_message, clean),
		cmocka_unit_test_teardown(floods_of_strangers, clean),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
