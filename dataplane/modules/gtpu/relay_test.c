// SPDX-License-Identifier: Apache-2.0
// Extension headers from tunnel to tunnel and where tunnels end (TS 29.281 §5.2.1, TS 29.244 §8.2.64): SGW-U, UPF on
// N9, indirect forwarding at a handover.
#include "session/mobile_fixture.h"
#include "wire/gtpu.h"

#define NO_QFI 0xff
#define RQI 0x40

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.max_buffered = 64;
	fixture_start(&e);
	return 0;
}

// Bytes between the first 8 of a GTP-U header and the packet.
struct options {
	uint8_t flags, length;
	uint8_t bytes[28];
};

// A G-PDU with these options around a UE's packet, received or sent by "ran" or "peers".
static struct frame *gpdu(struct frame *f, const struct options *o, const char *port, uint32_t teid, int in, int six)
{
	static const char *const ends[2][2][2] = {{{"10.1.0.2", "10.1.0.1"}, {"fd00:1::2", "fd00:1::1"}},
		{{"10.9.0.2", "10.9.0.1"}, {"fd00:9::2", "fd00:9::1"}}};
	const char *const *end = ends[port[0] == 'p'][six];

	ip_packet(f, FAR4, UE4, 80);
	uint32_t inner = f->length;
	memcpy(frame_push(f, o->length), o->bytes, o->length);
	uint8_t *h = frame_push(f, 8);
	h[0] = 0x30 | o->flags;
	h[1] = GTPU_GPDU;
	store16(h + 2, inner + o->length);
	store32(h + 4, teid);
	frame_udp(f, 2152, 2152);
	frame_ip(f, end[!in], end[in], 17);
	link_layer(f, port, in);
	return f;
}

// A tunnel that leads into another: 0x700 to 0x7001 by gNB or peer. `back`: both on the radio side, as at a handover.
static struct kit_mobile *tunnels(const char *path, int back, uint8_t removal, uint8_t qfi)
{
	static struct kit_mobile k;

	kit_mobile(&k, 7, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x700, 1);
	k.pdr[0].outer_header_removal = removal;
	kit_far_gtpu(&k, 1, back ? API_FROM_ACCESS : API_FROM_CORE, path, 0x7001);
	if (qfi != NO_QFI) {
		kit_qer(&k, 1, qfi & 63)->flags = qfi & RQI ? API_QER_RQI : 0;
		kit_pdr_qer(&k.pdr[0], 1);
	}
	return &k;
}

static const struct {
	const char *name;
	uint8_t qfi, removal; // of the QER, of the PDR
	struct options in, out;
} rows[] = {
	{"nothing", NO_QFI, 1, {0}, {0}},
	{"long PDCP PDU number", NO_QFI, 1, {4, 12, {0, 0, 0, 0x82, 2, 0x80, 1, 2, 3, 0, 0, 0}},
		{4, 12, {0, 0, 0, 0x82, 2, 0x80, 1, 2, 3, 0, 0, 0}}},
	{"long PDCP PDU number, new value", NO_QFI, 1, {4, 12, {0, 0, 0, 0x03, 2, 0x80, 1, 2, 3, 0, 0, 0}},
		{4, 12, {0, 0, 0, 0x03, 2, 0x80, 1, 2, 3, 0, 0, 0}}},
	{"PDCP PDU number", NO_QFI, 1, {4, 8, {0, 0, 0, 0xc0, 1, 0x12, 0x34, 0}},
		{4, 8, {0, 0, 0, 0xc0, 1, 0x12, 0x34, 0}}},
	{"RAN container", NO_QFI, 1, {4, 8, {0, 0, 0, 0x81, 1, 7, 8, 0}}, {4, 8, {0, 0, 0, 0x81, 1, 7, 8, 0}}},
	{"Xw RAN container", NO_QFI, 1, {4, 8, {0, 0, 0, 0x83, 1, 7, 8, 0}}, {4, 8, {0, 0, 0, 0x83, 1, 7, 8, 0}}},
	{"NR RAN container", NO_QFI, 1, {4, 8, {0, 0, 0, 0x84, 1, 7, 8, 0}}, {4, 8, {0, 0, 0, 0x84, 1, 7, 8, 0}}},
	{"service class", NO_QFI, 1, {4, 8, {0, 0, 0, 0x20, 1, 7, 0, 0}}, {4, 8, {0, 0, 0, 0x20, 1, 7, 0, 0}}},
	{"unknown, 00", NO_QFI, 1, {4, 12, {0, 0, 0, 0x32, 1, 7, 8, 0x33, 1, 9, 10, 0}},
		{4, 12, {0, 0, 0, 0x32, 1, 7, 8, 0x33, 1, 9, 10, 0}}},
	{"unknown, 01", NO_QFI, 1, {4, 8, {0, 0, 0, 0x41, 1, 7, 8, 0}}, {0}},
	{"UDP port", NO_QFI, 1, {4, 8, {0, 0, 0, 0x40, 1, 8, 0x68, 0}}, {0}},
	{"unknown, 10", NO_QFI, 1, {4, 8, {0, 0, 0, 0xa2, 1, 7, 8, 0}}, {4, 8, {0, 0, 0, 0xa2, 1, 7, 8, 0}}},
	{"01 between others", NO_QFI, 1, {4, 20, {0, 0, 0, 0x85, 1, 0, 9, 0x41, 2, 1, 1, 1, 1, 1, 1, 0x84, 1, 7, 8, 0}},
		{4, 12, {0, 0, 0, 0x85, 1, 0, 9, 0x84, 1, 7, 8, 0}}},
	{"sequence number", NO_QFI, 1, {2, 4, {0x12, 0x34, 0xee, 0xee}}, {2, 4, {0x12, 0x34, 0, 0}}},
	{"N-PDU number", NO_QFI, 1, {1, 4, {0xee, 0xee, 0x56, 0xee}}, {1, 4, {0, 0, 0x56, 0}}},
	{"all numbers", NO_QFI, 1, {7, 8, {0x12, 0x34, 0x56, 0x84, 1, 7, 8, 0}},
		{7, 8, {0x12, 0x34, 0x56, 0x84, 1, 7, 8, 0}}},
	{"container", NO_QFI, 1, {4, 8, {0, 0, 0, 0x85, 1, 0, 9, 0}}, {4, 8, {0, 0, 0, 0x85, 1, 0, 9, 0}}},
	{"container, uplink", NO_QFI, 1, {4, 8, {0, 0, 0, 0x85, 1, 0x10, 9, 0}},
		{4, 8, {0, 0, 0, 0x85, 1, 0x10, 9, 0}}},
	{"reflective QoS", NO_QFI, 1, {4, 8, {0, 0, 0, 0x85, 1, 0, 0x49, 0}}, {4, 8, {0, 0, 0, 0x85, 1, 0, 0x49, 0}}},
	{"paging policy", NO_QFI, 1, {4, 12, {0, 0, 0, 0x85, 2, 0, 0x89, 0x60, 0, 0, 0, 0}},
		{4, 12, {0, 0, 0, 0x85, 2, 0, 0x89, 0x60, 0, 0, 0, 0}}},
	{"the QER's QFI", 5, 1, {4, 8, {0, 0, 0, 0x85, 1, 0, 9, 0}}, {4, 8, {0, 0, 0, 0x85, 1, 0, 5, 0}}},
	{"the QER's QFI, reflective QoS", 5, 1, {4, 8, {0, 0, 0, 0x85, 1, 0, 0x49, 0}},
		{4, 8, {0, 0, 0, 0x85, 1, 0, 0x45, 0}}},
	{"the QER's QFI beside others", 5, 1, {4, 12, {0, 0, 0, 0x85, 1, 0, 9, 0x84, 1, 7, 8, 0}},
		{4, 12, {0, 0, 0, 0x85, 1, 0, 5, 0x84, 1, 7, 8, 0}}},
	{"a container is made", 5, 1, {4, 8, {0, 0, 0, 0x84, 1, 7, 8, 0}},
		{4, 12, {0, 0, 0, 0x85, 1, 0, 5, 0x84, 1, 7, 8, 0}}},
	{"the QER's reflective QoS", 5 | RQI, 1, {4, 12, {0, 0, 0, 0x85, 1, 0, 9, 0x84, 1, 7, 8, 0}},
		{4, 12, {0, 0, 0, 0x85, 1, 0, 5 | RQI, 0x84, 1, 7, 8, 0}}},
	{"the QER's reflective QoS and no QFI", RQI, 1, {4, 12, {0, 0, 0, 0x85, 1, 0, 9, 0x84, 1, 7, 8, 0}},
		{4, 12, {0, 0, 0, 0x85, 1, 0, 9 | RQI, 0x84, 1, 7, 8, 0}}},
	{"the QER's reflective QoS, uplink", 5 | RQI, 1, {4, 12, {0, 0, 0, 0x85, 1, 0x10, 9, 0x84, 1, 7, 8, 0}},
		{4, 12, {0, 0, 0, 0x85, 1, 0x10, 5, 0x84, 1, 7, 8, 0}}},
	{"a container is made, reflective QoS", 5 | RQI, 1, {4, 8, {0, 0, 0, 0x84, 1, 7, 8, 0}},
		{4, 12, {0, 0, 0, 0x85, 1, 0, 5 | RQI, 0x84, 1, 7, 8, 0}}},
	{"container to be deleted", NO_QFI, 2, {4, 8, {0, 0, 0, 0x85, 1, 0, 9, 0}}, {0}},
	{"container to be deleted, others not", NO_QFI, 2, {6, 12, {1, 2, 0, 0x85, 1, 0, 0x49, 0x84, 1, 7, 8, 0}},
		{6, 8, {1, 2, 0, 0x84, 1, 7, 8, 0}}},
	{"container deleted, the QER's made", 5, 2, {4, 8, {0, 0, 0, 0x85, 1, 0, 0x49, 0}},
		{4, 8, {0, 0, 0, 0x85, 1, 0, 5, 0}}},
};

// `padded`: the full parse, through ip-input and gtpu-input.
static void one_row(unsigned i, const char *path, int padded)
{
	static struct frame f, want;
	int back = path[0] == 'g', six = path[strlen(path) - 1] == '6';
	struct kit_mobile *k = tunnels(path, back, rows[i].removal, rows[i].qfi);
	struct options out = rows[i].out;

	if (!back && out.length > 4 && out.bytes[3] == 0x85 && (rows[i].removal == 2 || rows[i].in.bytes[3] != 0x85))
		out.bytes[5] |= 0x10, out.bytes[6] &= 63; // a new container has the direction of its packet
	put("s", k);
	gpdu(&f, &rows[i].in, "ran", 0x700, 1, 0);
	if (padded)
		frame_append(&f, NULL, 4);
	gpdu(&want, &out, back ? "ran" : "peers", 0x7001, 0, six);
	print_message("  %s, %s\n", rows[i].name, path);
	expect("ran", &f, back ? "ran" : "peers", &want);
	assert_true(kit_balance());
}

static void passed_on(void **state)
{
	static const char *const paths[] = {"gnb", "gnb6", "peer", "peer6"};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int p = 0; p < 4; p++)
			for (int padded = 0; padded < 2; padded++)
				one_row(i, paths[p], padded);
	gone("s");
}

// As long as an NR RAN Container may be (TS 38.425 §5.5), eight of them, and packets that wait for a UE meanwhile.
static void long_ones_wait(void **state)
{
	static struct frame f, want;
	static const struct options none = {0};

	for (int n = 1; n <= 8; n += 7)
		for (int waits = 0; waits < 2; waits++) {
			struct kit_mobile *k = tunnels("gnb", 1, 1, NO_QFI);
			uint32_t size = n == 1 ? 1020 : 16;

			k->far[0].action = waits ? API_FAR_BUFFER : API_FAR_FORWARD;
			put("s", k);
			for (int out = 0; out < 2; out++) {
				struct frame *t = out ? &want : &f;

				gpdu(t, &none, "ran", out ? 0x7001 : 0x700, !out, 0);
				t->at += 14 + 20 + 8 + 8; // the packet alone
				t->length -= 14 + 20 + 8 + 8;
				for (int e = n; e-- > 0;) {
					uint8_t *x = frame_push(t, size);

					memset(x, 0x5a, size);
					x[0] = (uint8_t)(size / 4);
					x[size - 1] = e + 1 == n ? 0 : 0x84;
				}
				frame_push(t, 4)[3] = 0x84;
				uint8_t *h = frame_push(t, 8);
				h[0] = 0x34;
				h[1] = GTPU_GPDU;
				store16(h + 2, t->length - 8);
				store32(h + 4, out ? 0x7001 : 0x700);
				frame_udp(t, 2152, 2152);
				frame_ip(t, out ? "10.1.0.1" : "10.1.0.2", out ? "10.1.0.2" : "10.1.0.1", 17);
				link_layer(t, "ran", !out);
			}
			send_frame("ran", &f);
			if (waits) {
				assert_int_equal(all_out(), 0);
				k->far[0].action = API_FAR_FORWARD;
				put("s", k);
				kit_run();
			}
			assert_int_equal(kit_count("ran"), 1);
			assert_true(same_frame("ran", 0, &want));
		}
	gone("s");
}

// Unknown extensions that every receiver must understand are not relayed; an end point understands none of the radio
// nodes' own.
static void not_understood(void **state)
{
	static const uint8_t every[] = {0xc1, 0xc2, 0xff}, end_points[] = {0x81, 0x82, 0x83, 0x84, 0xa0, 0xc0, 0xc1},
			     nobody[] = {0x01, 0x03, 0x20, 0x32, 0x40, 0x41};
	struct options o = {4, 8, {0, 0, 0, 0, 1, 7, 8, 0}};
	static struct frame f;

	put("s", tunnels("gnb", 1, 1, NO_QFI));
	put("s1", upf_session(1));
	for (unsigned i = 0; i < sizeof(every) + sizeof(end_points); i++) {
		int here = i >= sizeof(every);
		uint64_t before = kit_reason("gtpu-extension-unknown");

		o.bytes[3] = here ? end_points[i - sizeof(every)] : every[i];
		gpdu(&f, &o, "ran", here ? 0x101 : 0x700, 1, 0);
		if (here) { // from the UE
			ip_packet(&f, "10.45.0.1", FAR4, 80);
			memcpy(frame_push(&f, 8), o.bytes, 8);
			memcpy(frame_push(&f, 8), (const uint8_t[]){0x34, 255, 0, 116, 0, 0, 1, 1}, 8);
			frame_udp(&f, 2152, 2152);
			frame_ip(&f, "10.1.0.2", "10.1.0.1", 17);
			link_layer(&f, "ran", 1);
		}
		kit_advance(1000003);
		send_frame("ran", &f);
		assert_int_equal(kit_reason("gtpu-extension-unknown") - before, 1);
		assert_int_equal(kit_count("ran"), 1); // Supported Extension Headers Notification (§7.2.3)
		assert_int_equal(kit_frame("ran", 0)->bytes[14 + 20 + 8 + 1], GTPU_SUPPORTED_EXTENSIONS);
	}
	for (unsigned i = 0; i < sizeof(nobody); i++) {
		o.bytes[3] = nobody[i];
		ip_packet(&f, "10.45.0.1", FAR4, 80);
		memcpy(frame_push(&f, 8), o.bytes, 8);
		memcpy(frame_push(&f, 8), (const uint8_t[]){0x34, 255, 0, 116, 0, 0, 1, 1}, 8);
		frame_udp(&f, 2152, 2152);
		frame_ip(&f, "10.1.0.2", "10.1.0.1", 17);
		link_layer(&f, "ran", 1);
		send_frame("ran", &f);
		assert_int_equal(kit_count("internet"), 1);
	}
	gone("s");
	gone("s1");
}

// Into tunnels of other interfaces.

// PDU Session Containers are for N3 and N9 (TS 29.281 §5.2.2.7). Tunnels to the CP function or the SGi-LAN do not
// connect radio and core nodes: the extensions between those end here as well.
static void other_interfaces(void **state)
{
	static const struct {
		const char *name;
		enum api_source destination;
		uint8_t pdu_type, qfi;
		struct options in, out;
	} row[] = {
		{"container, to the CP function", API_FROM_CP, API_PDU_NONE, NO_QFI,
			{4, 8, {0, 0, 0, 0x85, 1, 0x10, 1, 0}}, {0}},
		{"container, to the SGi-LAN", API_FROM_SGI_LAN, API_PDU_NONE, NO_QFI,
			{4, 8, {0, 0, 0, 0x85, 1, 0x10, 1, 0}}, {0}},
		{"container and a QER's QFI", API_FROM_CP, API_PDU_NONE, 5, {4, 8, {0, 0, 0, 0x85, 1, 0x10, 1, 0}},
			{0}},
		{"a QER's QFI", API_FROM_CP, API_PDU_NONE, 5, {0}, {0}},
		{"container, sequence number, to the CP function", API_FROM_CP, API_PDU_NONE, NO_QFI,
			{6, 8, {1, 2, 0, 0x85, 1, 0x10, 1, 0}}, {0}},
		{"numbers, unknown 00, to the SGi-LAN", API_FROM_SGI_LAN, API_PDU_NONE, NO_QFI,
			{7, 8, {1, 2, 3, 0x32, 1, 7, 8, 0}}, {0}},
		{"container, to a core interface that is not N9", API_FROM_CORE, API_PDU_NONE, NO_QFI,
			{4, 8, {0, 0, 0, 0x85, 1, 0x10, 1, 0}}, {0}},
		{"container and a QER's QFI, likewise", API_FROM_CORE, API_PDU_NONE, 5,
			{4, 8, {0, 0, 0, 0x85, 1, 0x10, 1, 0}}, {0}},
		{"container beside others, likewise", API_FROM_CORE, API_PDU_NONE, NO_QFI,
			{6, 12, {1, 2, 0, 0x85, 1, 0x10, 1, 0x84, 1, 7, 8, 0}}, {6, 8, {1, 2, 0, 0x84, 1, 7, 8, 0}}},
	};
	static struct frame f, want;

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		for (int waits = 0; waits < 2; waits++) {
			struct kit_mobile *k = tunnels("peer", 0, 1, row[i].qfi);

			print_message("  %s, waits: %d\n", row[i].name, waits);
			k->far[0].destination = (uint8_t)row[i].destination;
			k->far[0].pdu_type = row[i].pdu_type;
			k->far[0].action = waits ? API_FAR_BUFFER : API_FAR_FORWARD;
			put("s", k);
			gpdu(&f, &row[i].in, "ran", 0x700, 1, 0);
			gpdu(&want, &row[i].out, "peers", 0x7001, 0, 0);
			if (waits) {
				send_frame("ran", &f);
				assert_int_equal(all_out(), 0);
				k->far[0].action = API_FAR_FORWARD;
				put("s", k);
				kit_run();
				assert_int_equal(kit_count("peers"), 1);
				assert_true(same_frame("peers", 0, &want));
			}
			expect("ran", &f, "peers", &want);
			expect("ran", &f, "peers", &want); // plain ones by the fast path
		}
	// What an end point must understand.
	uint64_t before = kit_reason("gtpu-extension-unknown");
	struct kit_mobile *k = tunnels("peer", 0, 1, NO_QFI);

	k->far[0].destination = API_FROM_CP;
	k->far[0].pdu_type = API_PDU_NONE;
	put("s", k);
	send_frame("ran", gpdu(&f, &(struct options){4, 8, {0, 0, 0, 0x84, 1, 7, 8, 0}}, "ran", 0x700, 1, 0));
	assert_int_equal(kit_reason("gtpu-extension-unknown") - before, 1);
	assert_int_equal(kit_frame("ran", 0)->bytes[14 + 20 + 8 + 1], GTPU_SUPPORTED_EXTENSIONS);
	gone("s");
}

// End Markers of a downlink tunnel follow its packets to radio nodes, not into the SGi-LAN.
static void end_markers(void **state)
{
	static const struct options none = {0};
	static struct frame f;

	for (int lan = 0; lan < 2; lan++) {
		struct kit_mobile *k = tunnels("peer", 0, 1, NO_QFI);

		k->pdr[0].source = API_FROM_CORE;
		k->far[0].destination = lan ? API_FROM_SGI_LAN : API_FROM_ACCESS;
		k->far[0].pdu_type = lan ? API_PDU_NONE : API_PDU_DL;
		put("s", k);
		gpdu(&f, &none, "ran", 0x700, 1, 0);
		f.at[14 + 20 + 8 + 1] = GTPU_END_MARKER;
		send_frame("ran", &f);
		assert_int_equal(all_out(), !lan);
		assert_int_equal(kit_count("peers"), !lan);
		assert_true(kit_balance());
	}
	gone("s");
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(passed_on),
		cmocka_unit_test(other_interfaces),
		cmocka_unit_test(end_markers),
		cmocka_unit_test(long_ones_wait),
		cmocka_unit_test(not_understood),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
