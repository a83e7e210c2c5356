// SPDX-License-Identifier: Apache-2.0
// Mobile sessions through the real graph: UPF, SGW-U, PGW-U, uplink classifier, and their drops.
#include "rule/tables.h"
#include "session/mobile_fixture.h"
#include <errno.h>
#include <rte_log.h>

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.max_buffered = 64;
	fixture_start(&e);
	return 0;
}

// Uplink GTP-U to IP, downlink IP to GTP-U, both families inside.
static void upf(void **state)
{
	static struct frame in, out;

	put("s2", upf_session(2));
	expect("ran", uplink_of(&in, UE4, FAR4, 0x102, 0xff), "internet", routed_out(&out, UE4, FAR4));
	expect("ran", uplink_of(&in, UE6, FAR6, 0x102, 0xff), "internet", routed_out(&out, UE6, FAR6));
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	expect("internet", downlink_of(&in, FAR6, UE6), "ran", tunnelled_out(&out, FAR6, UE6, 0x202, 0xff));
	gone("s2");
}

// SGW-U: two tunnels, either family outside, nothing looked at inside.
static void sgwu(void **state)
{
	static struct frame in, out;
	struct kit_mobile k;

	kit_mobile(&k, 7, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x700, 1);
	kit_pdr_fteid(&k, API_FROM_CORE, "10.9.0.1", 0x701, 2);
	kit_far_gtpu(&k, 1, API_FROM_CORE, "peer6", 0x7000);
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x7001);
	put("bearer", &k);
	uplink_of(&in, UE4, FAR4, 0x700, 0xff);
	ip_packet(&out, UE4, FAR4, 80);
	tunnel(&out, "fd00:9::1", "fd00:9::2", 0x7000, 0xff, 0);
	link_layer(&out, "peers", 0);
	expect("ran", &in, "peers", &out);
	ip_packet(&in, FAR4, UE4, 80);
	tunnel(&in, "10.9.0.2", "10.9.0.1", 0x701, 0xff, 0);
	link_layer(&in, "peers", 1);
	expect("peers", &in, "ran", tunnelled_out(&out, FAR4, UE4, 0x7001, 0xff));
	gone("bearer");
}

// G-PDU from a peer with a PDU Session Container of this type.
static void between(struct frame *f, const char *ports, uint32_t teid, uint8_t qfi, uint8_t type)
{
	int up = type == API_PDU_UL, in = strcmp(ports, up ? "ran" : "peers") == 0;

	ip_packet(f, up ? UE4 : FAR4, up ? FAR4 : UE4, 80);
	if (up)
		tunnel(f, in ? "10.1.0.2" : "10.9.0.1", in ? "10.1.0.1" : "10.9.0.2", teid, qfi, type);
	else
		tunnel(f, in ? "10.9.0.2" : "10.1.0.1", in ? "10.9.0.1" : "10.1.0.2", teid, qfi, type);
	link_layer(f, ports, in);
}

// I-UPF between N3 and N9: without a QER the received QFI goes on, with one the QER's does. Buffered packets do the
// same.
static void iupf(void **state)
{
	static struct frame in, out;
	struct kit_mobile k;

	kit_mobile(&k, 7, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x700, 1);
	kit_pdr_fteid(&k, API_FROM_CORE, "10.9.0.1", 0x701, 2);
	kit_far_gtpu(&k, 1, API_FROM_CORE, "peer", 0x7000);
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x7001);
	k.far[0].pdu_type = API_PDU_UL;
	k.far[1].pdu_type = API_PDU_DL;
	put("n9", &k);
	for (uint8_t qfi = 1; qfi < 64; qfi += 31) {
		between(&in, "ran", 0x700, qfi, API_PDU_UL);
		between(&out, "peers", 0x7000, qfi, API_PDU_UL);
		expect("ran", &in, "peers", &out);
		between(&in, "peers", 0x701, qfi, API_PDU_DL);
		between(&out, "ran", 0x7001, qfi, API_PDU_DL);
		expect("peers", &in, "ran", &out);
	}
	between(&in, "ran", 0x700, 0xff, API_PDU_UL); // no container came in
	between(&out, "peers", 0x7000, 0xff, API_PDU_UL);
	expect("ran", &in, "peers", &out);
	k.far[1].action = API_FAR_BUFFER;
	put("n9", &k);
	between(&in, "peers", 0x701, 5, API_PDU_DL);
	send_frame("peers", &in);
	assert_int_equal(all_out(), 0);
	k.far[1].action = API_FAR_FORWARD;
	put("n9", &k);
	kit_run();
	between(&out, "ran", 0x7001, 5, API_PDU_DL);
	assert_int_equal(kit_count("ran"), 1);
	assert_true(same_frame("ran", 0, &out));
	kit_qer(&k, 1, 9);
	kit_pdr_qer(&k.pdr[0], 1);
	kit_pdr_qer(&k.pdr[1], 1);
	put("n9", &k);
	between(&in, "ran", 0x700, 5, API_PDU_UL);
	between(&out, "peers", 0x7000, 9, API_PDU_UL);
	expect("ran", &in, "peers", &out);
	between(&in, "peers", 0x701, 5, API_PDU_DL);
	between(&out, "ran", 0x7001, 9, API_PDU_DL);
	expect("peers", &in, "ran", &out);
	gone("n9");
}

// QFI, and the PDU Session Container of the direction (TS 38.415).
static void qfi(void **state)
{
	static struct frame in, out;
	struct kit_mobile *k = upf_session(2);

	k->pdr[0].match |= API_PDR_QFI;
	k->pdr[0].qfis = 1ull << 9 | 1ull << 63;
	kit_qer(k, 1, 9);
	kit_pdr_qer(&k->pdr[1], 1);
	put("s2", k);
	expect("ran", uplink_of(&in, UE4, FAR4, 0x102, 9), "internet", routed_out(&out, UE4, FAR4));
	expect("ran", uplink_of(&in, UE4, FAR4, 0x102, 63), "internet", routed_out(&out, UE4, FAR4));
	expect_drop("ran", uplink_of(&in, UE4, FAR4, 0x102, 8), "uplink-no-pdr");
	expect_drop("ran", uplink_of(&in, UE4, FAR4, 0x102, 0xff), "uplink-no-pdr");
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 9));
	k->far[1].pdu_type = API_PDU_NONE; // LTE: no container, whatever the QER says
	put("s2", k);
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	gone("s2");
}

// The reflective QoS indicator of a QER is set in downlink containers (TS 38.415 §5.5.2.1); a received one is kept.
static void reflective_qos(void **state)
{
	enum { RQI = 0x40 };
	static struct frame in, out;
	struct kit_mobile k, *upf = upf_session(2);

	kit_qer(upf, 1, 9)->flags = API_QER_RQI;
	kit_pdr_qer(&upf->pdr[1], 1);
	put("s2", upf);
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 9 | RQI));
	upf->far[1].pdu_type = API_PDU_NONE;
	put("s2", upf);
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	gone("s2");

	for (unsigned own = 0; own < 2; own++) { // the QER has a QFI
		kit_mobile(&k, 7, NULL, NULL);
		kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x700, 1);
		kit_pdr_fteid(&k, API_FROM_CORE, "10.9.0.1", 0x701, 2);
		kit_far_gtpu(&k, 1, API_FROM_CORE, "peer", 0x7000)->pdu_type = API_PDU_UL;
		kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x7001)->pdu_type = API_PDU_DL;
		kit_qer(&k, 1, own ? 9 : 0)->flags = API_QER_RQI;
		kit_pdr_qer(&k.pdr[0], 1);
		kit_pdr_qer(&k.pdr[1], 1);
		put("n9", &k);
		between(&in, "ran", 0x700, 5, API_PDU_UL);
		between(&out, "peers", 0x7000, own ? 9 : 5, API_PDU_UL);
		expect("ran", &in, "peers", &out);
		between(&out, "ran", 0x7001, (own ? 9 : 5) | RQI, API_PDU_DL);
		for (unsigned came = 0; came < 2; came++) {
			k.qer[0].flags = came ? 0 : API_QER_RQI;
			put("n9", &k);
			between(&in, "peers", 0x701, came ? 5 | RQI : 5, API_PDU_DL);
			expect("peers", &in, "ran", &out);
		}
		gone("n9");
	}
}

// Rows G8, G11, G12: wrong sources, wrong destinations in a tunnel, a family that the session does not have.
static void spoofing(void **state)
{
	static const char *const sources[] = {"10.45.0.3", "8.8.8.8", "10.1.0.2", "2001:db8:1:3::1", "2001:db8::1"};
	static struct frame in, out;
	struct kit_mobile *k = upf_session(2);

	put("s2", k);
	for (unsigned i = 0; i < 5; i++)
		expect_drop("ran", uplink_of(&in, sources[i], strchr(sources[i], ':') ? FAR6 : FAR4, 0x102, 0xff),
			"source-spoofed");
	expect_drop("ran", uplink_of(&in, "fe80::1", FAR6, 0x102, 0xff), "source-spoofed");
	k->pdr[0].match |= API_PDR_UE4_ONLY;
	k->pdr[1].match |= API_PDR_UE4_ONLY;
	put("s2", k);
	expect("ran", uplink_of(&in, UE4, FAR4, 0x102, 0xff), "internet", routed_out(&out, UE4, FAR4));
	expect_drop("ran", uplink_of(&in, UE6, FAR6, 0x102, 0xff), "source-spoofed");
	expect_drop("internet", downlink_of(&in, FAR6, UE6), "ue-unknown");
	gone("s2");

	kit_mobile(k, 5, UE4, NULL);
	kit_pdr_fteid(k, API_FROM_CORE, "10.9.0.1", 0x500, 1)->match |= API_PDR_UE_IP;
	kit_far_gtpu(k, 1, API_FROM_ACCESS, "gnb", 0x501);
	put("s5", k);
	ip_packet(&in, FAR4, "10.45.0.3", 80);
	tunnel(&in, "10.9.0.2", "10.9.0.1", 0x500, 0xff, 0);
	link_layer(&in, "peers", 1);
	expect_drop("peers", &in, "destination-not-ue");
	gone("s5");
}

// Rows A11, G9, G10, G19, G24: forbidden destinations of a UE, and GTP-U that is only a UE's data.
static void infrastructure(void **state)
{
	static const char *const ours[] = {
		"10.1.0.1", "10.9.0.1", "192.0.2.1", "fd00:1::1", "2001:db8:6::1", "10.40.0.1", "2001:db8:40::1"};
	static struct frame in, out;

	put("s2", upf_session(2));
	for (unsigned i = 0; i < RTE_DIM(ours); i++)
		expect_drop("ran", uplink_of(&in, strchr(ours[i], ':') ? UE6 : UE4, ours[i], 0x102, 0xff),
			"subscriber-to-gateway");
	expect_drop("ran", uplink_of(&in, UE4, "224.0.0.5", 0x102, 0xff), "tunnel-multicast");
	expect_drop("ran", uplink_of(&in, UE4, "255.255.255.255", 0x102, 0xff), "tunnel-multicast");
	expect_drop("ran", uplink_of(&in, UE6, "ff02::2", 0x102, 0xff), "tunnel-multicast");
	expect_drop("ran", uplink_of(&in, UE4, "127.0.0.1", 0x102, 0xff), "gtpu-inner-martian");
	ip_packet(&in, UE4, FAR4, 40); // GTP-U to ourselves within GTP-U
	tunnel(&in, UE4, "10.1.0.1", 0x102, 0xff, 0);
	tunnel(&in, "10.1.0.2", "10.1.0.1", 0x102, 0xff, 0);
	link_layer(&in, "ran", 1);
	expect_drop("ran", &in, "subscriber-to-gateway");
	ip_packet(&in, FAR4, UE4, 40);
	tunnel(&in, FAR4, UE4, 0x102, 0xff, 0);
	link_layer(&in, "internet", 1);
	ip_packet(&out, FAR4, UE4, 40);
	tunnel(&out, FAR4, UE4, 0x102, 0xff, 0);
	tunnel(&out, "10.1.0.1", "10.1.0.2", 0x202, 0xff, 0);
	link_layer(&out, "ran", 0);
	expect("internet", &in, "ran", &out);
	gone("s2");
}

// Rows G14, G15, G16, G20: unknown TEIDs are answered; TEID 0 and known ones without a PDR are not. Other interfaces
// have no endpoint.
static void unknown(void **state)
{
	static struct frame in, out;
	struct kit_mobile *k = upf_session(2);

	put("s2", k);
	send_frame("ran", uplink_of(&in, UE4, FAR4, 0x999, 0xff));
	assert_int_equal(kit_count("ran"), 1); // Error Indication
	expect_drop("ran", uplink_of(&in, UE4, FAR4, 0, 0xff), "gtpu-teid-zero");
	expect_drop("internet", downlink_of(&in, FAR4, "10.45.0.99"), "ue-unknown");
	expect_drop("internet", downlink_of(&in, FAR6, "2001:db8:1:99::1"), "ue-unknown");
	ip_packet(&in, UE4, FAR4, 80);
	tunnel(&in, "10.9.0.2", "10.1.0.1", 0x102, 0xff, 0);
	link_layer(&in, "peers", 1);
	expect_drop("peers", &in, "gtpu-not-endpoint");
	// Not a UE's, not of a pool: a router's work.
	ip_packet(&in, FAR4, "10.9.0.2", 80);
	link_layer(&in, "internet", 1);
	ip_packet(&out, FAR4, "10.9.0.2", 80);
	hop(&out);
	link_layer(&out, "peers", 0);
	expect("internet", &in, "peers", &out);
	gone("s2");
	expect_drop("internet", downlink_of(&in, FAR4, UE4), "ue-unknown");
}

// A CP function may remove all PDRs and create others later (TS 29.244 §7.5.4.6 requires none to stay). Meanwhile
// packets find no session, and the URR keeps its counts.
static void no_rules(void **state)
{
	static struct frame in, out;
	struct kit_mobile *k = upf_session(2);

	kit_urr(k, 7);
	kit_pdr_urr(&k->pdr[0], 7);
	put("s2", k);
	expect("ran", uplink_of(&in, UE4, FAR4, 0x102, 0xff), "internet", routed_out(&out, UE4, FAR4));
	k->s.pdrs = 0;
	put("s2", k);
	expect_drop("internet", downlink_of(&in, FAR4, UE4), "ue-unknown");
	send_frame("ran", uplink_of(&in, UE4, FAR4, 0x102, 0xff));
	assert_int_equal(kit_count("ran"), 1); // Error Indication
	k = upf_session(2);
	kit_urr(k, 7);
	kit_pdr_urr(&k->pdr[0], 7);
	put("s2", k);
	expect("ran", uplink_of(&in, UE4, FAR4, 0x102, 0xff), "internet", routed_out(&out, UE4, FAR4));
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	gone("s2");
}

// Row G13.
static void pinned_peer(void **state)
{
	static struct frame in, out;

	put("s2", upf_session(2));
	ip_packet(&in, UE4, FAR4, 80);
	tunnel(&in, "10.1.0.77", "10.1.0.1", 0x102, 0xff, 0);
	link_layer(&in, "ran", 1);
	expect("ran", &in, "internet", routed_out(&out, UE4, FAR4));
	kit_begin();
	fixture_instances(0, API_INSTANCE_PIN_PEER);
	kit_put_mobile("s2", upf_session(2));
	commit();
	expect_drop("ran", &in, "tunnel-peer");
	expect("ran", uplink_of(&in, UE4, FAR4, 0x102, 0xff), "internet", routed_out(&out, UE4, FAR4));
	kit_begin();
	fixture_instances(0, 0);
	commit();
	gone("s2");
}

static void framed_routes(void **state)
{
	static struct frame in, out;
	struct kit_mobile *k = upf_session(2);

	kit_framed_route(k, "172.16.8.0/24");
	kit_framed_route(k, "172.16.8.128/25");
	kit_framed_route(k, "2001:db8:8000::/36");
	put("s2", k);
	expect_drop("ran", uplink_of(&in, "172.16.8.9", FAR4, 0x102, 0xff), "source-spoofed");
	k->pdr[0].match |= API_PDR_FRAMED;
	k->pdr[1].match |= API_PDR_FRAMED;
	put("s2", k);
	expect("ran", uplink_of(&in, "172.16.8.9", FAR4, 0x102, 0xff), "internet",
		routed_out(&out, "172.16.8.9", FAR4));
	expect("internet", downlink_of(&in, FAR4, "172.16.8.9"), "ran",
		tunnelled_out(&out, FAR4, "172.16.8.9", 0x202, 0xff));
	expect("internet", downlink_of(&in, FAR6, "2001:db8:8fff::1"), "ran",
		tunnelled_out(&out, FAR6, "2001:db8:8fff::1", 0x202, 0xff));
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	// Another session may have a longer prefix within it, not the same one.
	struct kit_mobile other = *upf_session(3);
	kit_framed_route(&other, "172.16.8.0/24");
	other.pdr[1].match |= API_PDR_FRAMED;
	assert_int_equal(refused("s3", &other), EEXIST);
	other.route[0] = kit_address("172.16.8.64/26");
	put("s3", &other);
	expect("internet", downlink_of(&in, FAR4, "172.16.8.70"), "ran",
		tunnelled_out(&out, FAR4, "172.16.8.70", 0x203, 0xff));
	gone("s3");
	expect("internet", downlink_of(&in, FAR4, "172.16.8.70"), "ran",
		tunnelled_out(&out, FAR4, "172.16.8.70", 0x202, 0xff));
	gone("s2");
}

// Row G21.
static void ue_to_ue(void **state)
{
	static struct frame in, out;

	put("s2", upf_session(2));
	put("s3", upf_session(3));
	ip_packet(&out, UE4, "10.45.0.3", 80);
	hop(&out);
	tunnel(&out, "10.1.0.1", "10.1.0.2", 0x203, 0xff, 0);
	link_layer(&out, "ran", 0);
	expect("ran", uplink_of(&in, UE4, "10.45.0.3", 0x102, 0xff), "ran", &out);
	ip_packet(&out, UE6, "2001:db8:1:2::99", 80); // to itself
	hop(&out);
	tunnel(&out, "10.1.0.1", "10.1.0.2", 0x202, 0xff, 0);
	link_layer(&out, "ran", 0);
	expect("ran", uplink_of(&in, UE6, "2001:db8:1:2::99", 0x102, 0xff), "ran", &out);
	expect_drop("ran", uplink_of(&in, UE4, "10.45.0.9", 0x102, 0xff), "ue-unknown");
	kit_begin();
	fixture_instances(API_INSTANCE_NO_UE_TO_UE, 0);
	commit();
	expect_drop("ran", uplink_of(&in, UE4, "10.45.0.3", 0x102, 0xff), "ue-to-ue");
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	kit_begin();
	fixture_instances(0, 0);
	commit();
	gone("s2");
	gone("s3");
}

// Out by N6, where the route leads, and in again like other packets: filters and counters there see them.
static void ue_to_ue_out(void **state)
{
	static const char *const from[] = {UE4, UE6}, *const to[] = {"10.45.0.3", "2001:db8:1:3::9"};
	static struct frame in, out;

	put("s2", upf_session(2));
	put("s3", upf_session(3));
	kit_begin();
	fixture_instances(API_INSTANCE_UE_OUT, 0);
	commit();
	for (int six = 0; six < 2; six++) {
		for (int n = 0; n < 3; n++)
			expect("ran", uplink_of(&in, from[six], to[six], 0x102, 0xff), "internet",
				routed_out(&out, from[six], to[six]));
		expect("ran", uplink_of(&in, from[six], from[six], 0x102, 0xff), "internet",
			routed_out(&out, from[six], from[six])); // to itself
		for (int n = 0; n < 3; n++)
			expect("internet", downlink_of(&in, from[six], to[six]), "ran",
				tunnelled_out(&out, from[six], to[six], 0x203, 0xff));
	}
	kit_begin();
	fixture_instances(API_INSTANCE_UE_OUT | API_INSTANCE_NO_UE_TO_UE, 0);
	assert_int_equal(kit_commit(), EINVAL);
	kit_begin();
	fixture_instances(0, 0);
	commit();
	gone("s2");
	gone("s3");
}

// A FAR that sends downlink packets back to the core, where they find the same session: ends after some rounds.
static void circles_end(void **state)
{
	static struct frame in;
	struct kit_mobile *k = upf_session(2);

	k->far[1] = k->far[0];
	k->far[1].id = 2;
	put("s2", k);
	expect_drop("internet", downlink_of(&in, FAR4, UE4), "forward-hops");
	gone("s2");
	// A tunnel whose other end is its own beginning.
	kit_mobile(k, 8, NULL, NULL);
	kit_pdr_fteid(k, API_FROM_CORE, "10.9.0.1", 0x800, 1);
	kit_far_gtpu(k, 1, API_FROM_CORE, "self9", 0x800);
	put("s8", k);
	ip_packet(&in, FAR4, UE4, 80);
	tunnel(&in, "10.9.0.2", "10.9.0.1", 0x800, 0xff, 0);
	link_layer(&in, "peers", 1);
	expect_drop("peers", &in, "output-hops");
	gone("s8");
}

// SGW-U and PGW-U in one process: the tunnel between them never leaves it.
static void combined(void **state)
{
	static struct frame in, out;
	struct kit_mobile k;

	kit_mobile(&k, 1, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x10, 1);
	kit_pdr_fteid(&k, API_FROM_CORE, "10.1.0.1", 0x11, 2);
	kit_far_gtpu(&k, 1, API_FROM_CORE, "self9", 0x20);
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x12);
	put("sgw", &k);
	kit_mobile(&k, 2, UE4, UE6_PREFIX);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.9.0.1", 0x20, 1)->match |= API_PDR_UE_IP;
	kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "self3", 0x11);
	put("pgw", &k);
	expect("ran", uplink_of(&in, UE4, FAR4, 0x10, 0xff), "internet", routed_out(&out, UE4, FAR4));
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x12, 0xff));
	expect("internet", downlink_of(&in, FAR6, UE6), "ran", tunnelled_out(&out, FAR6, UE6, 0x12, 0xff));
	gone("sgw");
	gone("pgw");
}

// Uplink classifier (TS 23.501 §5.6.4.2): some traffic breaks out here, the rest continues over N9; both return into
// one tunnel.
static void classifier(void **state)
{
	static struct frame in, out;
	struct kit_mobile *k = upf_session(2);
	struct api_pdr *rest;
	struct api_sdf *f = kit_sdf(k, &k->pdr[0]);

	f->remote = kit_address("198.51.100.0/24");
	k->pdr[0].precedence = 10;
	rest = kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1", 0x102, 3);
	rest->match |= API_PDR_UE_IP;
	kit_pdr_fteid(k, API_FROM_CORE, "10.9.0.1", 0x302, 2);
	kit_far_gtpu(k, 3, API_FROM_CORE, "peer", 0x902);
	put("ulcl", k);
	expect("ran", uplink_of(&in, UE4, FAR4, 0x102, 0xff), "internet", routed_out(&out, UE4, FAR4));
	uplink_of(&in, UE4, "203.0.113.5", 0x102, 0xff);
	ip_packet(&out, UE4, "203.0.113.5", 80);
	tunnel(&out, "10.9.0.1", "10.9.0.2", 0x902, 0xff, 0);
	link_layer(&out, "peers", 0);
	expect("ran", &in, "peers", &out);
	expect("ran", &in, "peers", &out); // by its flow
	ip_packet(&in, "203.0.113.5", UE4, 80);
	tunnel(&in, "10.9.0.2", "10.9.0.1", 0x302, 0xff, 0);
	link_layer(&in, "peers", 1);
	expect("peers", &in, "ran", tunnelled_out(&out, "203.0.113.5", UE4, 0x202, 0xff));
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	gone("ulcl");
}

// The radio side of an emulated gNB: IP from a UE by its source, IP to it out of a tunnel.
static void emulated_radio(void **state)
{
	static struct frame in, out;
	struct kit_mobile k;
	struct api_instance radio = kit_instance_body("n6", NULL, API_LOOKUP_SOURCE, "10.45.0.0/16");

	kit_begin();
	kit_put(API_INSTANCE, "core", &radio, sizeof(radio));
	commit();
	kit_mobile(&k, 2, UE4, NULL);
	kit_pdr_ue(&k, API_FROM_ACCESS, "core", 1);
	kit_pdr_fteid(&k, API_FROM_CORE, "10.1.0.1", 0x202, 2)->match |= API_PDR_UE_IP;
	kit_far_gtpu(&k, 1, API_FROM_CORE, "gnb", 0x102);
	kit_far_ip(&k, 2, API_FROM_ACCESS, "core");
	kit_qer(&k, 1, 5);
	kit_pdr_qer(&k.pdr[0], 1);
	put("radio", &k);
	ip_packet(&in, UE4, FAR4, 80);
	link_layer(&in, "internet", 1);
	ip_packet(&out, UE4, FAR4, 80);
	tunnel(&out, "10.1.0.1", "10.1.0.2", 0x102, 5, API_PDU_UL);
	link_layer(&out, "ran", 0);
	expect("internet", &in, "ran", &out);
	expect_drop("internet", downlink_of(&in, "10.45.0.3", FAR4), "ue-unknown");
	ip_packet(&in, FAR4, UE4, 80);
	tunnel(&in, "10.1.0.2", "10.1.0.1", 0x202, 0xff, 0);
	link_layer(&in, "ran", 1);
	ip_packet(&out, FAR4, UE4, 80);
	hop(&out);
	link_layer(&out, "internet", 0);
	expect("ran", &in, "internet", &out);
	kit_begin();
	kit_delete(API_SESSION, "radio");
	fixture_instances(0, 0);
	commit();
}

// Outer header removal 0: the whole tunnel packet enters the next tunnel; as IP it would return to us and is refused.
static void outer_header_kept(void **state)
{
	static struct frame in, out;
	struct kit_mobile *k = upf_session(2);

	k->pdr[0].outer_header_removal = 0;
	assert_int_equal(refused("s2", k), EINVAL);
	assert_non_null(strstr(kit_error(), "outer header"));
	kit_far_gtpu(k, 3, API_FROM_CORE, "peer", 0x902);
	k->pdr[0].far = 3;
	put("s2", k);
	uplink_of(&in, UE4, FAR4, 0x102, 9);
	ip_packet(&out, UE4, FAR4, 80);
	tunnel(&out, "10.1.0.2", "10.1.0.1", 0x102, 9, API_PDU_UL);
	tunnel(&out, "10.9.0.1", "10.9.0.2", 0x902, 0xff, 0);
	link_layer(&out, "peers", 0);
	expect("ran", &in, "peers", &out);
	gone("s2");
}

// Rows A5: F-TEIDs and UE addresses of live sessions; and that a refused transaction leaves everything as it was.
static void claims(void **state)
{
	static struct frame in, out;
	struct kit_mobile *k;

	put("s2", upf_session(2));
	k = upf_session(3);
	k->s.ue_ip4 = kit_address(UE4);
	assert_int_equal(refused("s3", k), EEXIST);
	assert_non_null(strstr(kit_error(), "UE address"));
	k = upf_session(3);
	k->pdr[0].teid = 0x102;
	assert_int_equal(refused("s3", k), EEXIST);
	assert_non_null(strstr(kit_error(), "F-TEID"));
	kit_begin();
	kit_put_mobile("s3", upf_session(3));
	k = upf_session(4);
	k->s.ue_ip4 = kit_address("10.45.0.3");
	kit_put_mobile("s4", k);
	assert_int_equal(kit_commit(), EEXIST);
	// Within one transaction an address may move between sessions.
	kit_begin();
	kit_put_mobile("s2", upf_session(5));
	kit_put_mobile("s3", upf_session(2));
	commit();
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	expect("internet", downlink_of(&in, FAR4, "10.45.0.5"), "ran",
		tunnelled_out(&out, FAR4, "10.45.0.5", 0x205, 0xff));
	gone("s2");
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	gone("s3");
}

// A key without a place in a table that has room: the commit is refused and changes nothing. A key that moves to
// another session keeps its place.
static void no_place(void **state)
{
	static struct frame in, out;
	struct narrow *t = session_tables.key, was = *t;
	uint64_t junk = 1;

	put("s2", upf_session(2));
	uint32_t before = narrow_count(t);
	t->capacity = UINT32_MAX;
	while (narrow_add(t, ++junk, 0) == 0) // until both blocks of one key are full, and the overflow too
		;
	uint32_t full = narrow_count(t);
	int refusals = 0;
	for (int i = 3; i < 40; i++) {
		int error = refused("s3", upf_session((uint8_t)i));

		if (error == 0) {
			gone("s3");
			continue;
		}
		assert_int_equal(error, ENOSPC);
		assert_non_null(strstr(kit_error(), "session s3: no place in the table for the key of PDR "));
		assert_int_equal(narrow_count(t), full);
		refusals++;
	}
	assert_true(refusals > 0);
	// Both commits go through, and packets go by the keys that moved.
	kit_begin();
	kit_delete(API_SESSION, "s2");
	kit_put_mobile("s4", upf_session(2));
	commit();
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	put("s4", upf_session(2));
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	for (; junk > 1; junk--)
		narrow_delete(t, junk);
	t->capacity = was.capacity;
	assert_int_equal(narrow_count(t), before);
	gone("s4");
	assert_int_equal(narrow_count(t), was.count);
	upf(state);
}

// The refusal names the rule by numbers, for the Failed Rule ID (TS 29.244 §8.2.80).
static void refusal_names(const struct kit_mobile *k, int error, uint32_t rule_kind, uint32_t rule)
{
	assert_int_equal(refused("s2", k), error);
	assert_int_equal(kit_status()->kind, API_SESSION);
	assert_string_equal(kit_status()->key, "s2");
	assert_int_equal(kit_status()->rule_kind, rule_kind);
	assert_int_equal(kit_status()->rule, rule);
}

static void refusals(void **state)
{
	struct kit_mobile *k = upf_session(2);

	k->pdr[0].far = 99;
	refusal_names(k, EINVAL, API_RULE_PDR, k->pdr[0].id);
	k = upf_session(2);
	k->pdr[0].local = kit_address("192.0.2.1");
	refusal_names(k, ENOENT, API_RULE_PDR, k->pdr[0].id);
	k = upf_session(2);
	strcpy(k->s.instance[0], "nowhere");
	refusal_names(k, ENOENT, API_RULE_NONE, 0);
	k = upf_session(2);
	k->far[0].action = API_FAR_FORWARD | API_FAR_BUFFER;
	refusal_names(k, EINVAL, API_RULE_FAR, k->far[0].id);
	k = upf_session(2);
	k->far[1].dscp = 64;
	refusal_names(k, EINVAL, API_RULE_FAR, k->far[1].id);
	k = upf_session(2);
	k->far[0].outer = API_OUTER_ENDPOINT;
	refusal_names(k, EINVAL, API_RULE_FAR, k->far[0].id);
	k = upf_session(2);
	k->pdr[0].match = 0;
	refusal_names(k, EINVAL, API_RULE_PDR, k->pdr[0].id);
	k = upf_session(2);
	k->pdr[1].id = 1;
	refusal_names(k, EEXIST, API_RULE_PDR, 1);
	k = upf_session(2);
	kit_sdf(k, &k->pdr[0])->remote_port[0] = 9;
	k->sdf[0].remote_port[1] = 8;
	refusal_names(k, EINVAL, API_RULE_NONE, 0);
	k = upf_session(2);
	k->pdr[0].teid = 0;
	refusal_names(k, EINVAL, API_RULE_PDR, k->pdr[0].id);
	k = upf_session(2);
	k->s.qers = 1;
	k->qer[0] = (struct api_qer){.id = 0x80000001, .qfi = 64};
	refusal_names(k, EINVAL, API_RULE_QER, 0x80000001);
	k = upf_session(2);
	k->s.urrs = 1;
	k->urr[0] = (struct api_urr){.id = 7};
	refusal_names(k, EINVAL, API_RULE_URR, 7);
}

// Objects in use cannot be deleted; formerly used ones can, also with the session in one transaction.
static void users(void **state)
{
	struct kit_mobile *k = upf_session(2);

	kit_begin();
	kit_path("other", "10.1.0.1", "10.1.0.3");
	commit();
	strcpy(k->far[1].path, "other");
	put("s2", k);
	kit_begin();
	kit_delete(API_PATH, "other");
	assert_int_equal(kit_commit(), EBUSY);
	assert_non_null(strstr(kit_error(), "s2"));
	kit_begin();
	kit_delete(API_INSTANCE, "core");
	assert_int_equal(kit_commit(), EBUSY);
	struct api_instance n = kit_instance_body("n3", NULL, API_LOOKUP_NONE, NULL);
	assert_int_equal(kit_change(API_INSTANCE, "access", &n, sizeof(n)), EBUSY);
	kit_begin();
	kit_delete(API_INTERFACE, "n3");
	assert_int_not_equal(kit_commit(), 0);
	kit_begin();
	kit_put_mobile("s2", upf_session(2));
	kit_delete(API_PATH, "other");
	commit();
	put("s2", upf_session(2));
	kit_begin();
	kit_delete(API_SESSION, "s2");
	kit_delete(API_PATH, "gnb6");
	commit();
	kit_begin();
	kit_path("gnb6", "fd00:1::1", "fd00:1::2");
	commit();
}

static uint64_t reported[2];

static void add_rows(const struct api_urr_row *row)
{
	reported[0] = row->bytes[API_UPLINK];
	reported[1] = row->bytes[API_DOWNLINK];
}

static void urr_rows(const char *key)
{
	uint32_t count;
	const struct api_urr_row *row = kit_rows(API_TABLE_URR, key, sizeof(*row), &count);

	assert_int_equal(count, 1);
	add_rows(row);
}

// A URR counts what is forwarded, to the byte; when its quota is used up, packets follow the quota FAR.
static void quota_far(void **state)
{
	static struct frame in, out;
	struct kit_mobile *k = upf_session(2);
	struct api_urr *u = kit_urr(k, 1);

	u->flags = API_URR_HAS_VOLUME_QUOTA;
	u->triggers = API_URR_VOLQU;
	u->volume_quota[API_TOTAL] = 250; // of packets of 108 bytes
	u->quota_far = 3;
	kit_pdr_urr(&k->pdr[0], 1);
	kit_pdr_urr(&k->pdr[1], 1);
	kit_far_gtpu(k, 3, API_FROM_CORE, "peer", 0x903);
	put("s2", k);
	expect("ran", uplink_of(&in, UE4, FAR4, 0x102, 0xff), "internet", routed_out(&out, UE4, FAR4));
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	urr_rows("s2");
	assert_int_equal(reported[0], 108);
	assert_int_equal(reported[1], 108);
	uplink_of(&in, UE4, FAR4, 0x102, 0xff);
	for (int i = 0; i < 3; i++) {
		send_frame("ran", &in);
		kit_advance(20000);
	}
	ip_packet(&out, UE4, FAR4, 80);
	tunnel(&out, "10.9.0.1", "10.9.0.2", 0x903, 0xff, 0);
	link_layer(&out, "peers", 0);
	expect("ran", &in, "peers", &out);
	gone("s2");
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(upf),
		cmocka_unit_test(sgwu),
		cmocka_unit_test(iupf),
		cmocka_unit_test(qfi),
		cmocka_unit_test(reflective_qos),
		cmocka_unit_test(spoofing),
		cmocka_unit_test(infrastructure),
		cmocka_unit_test(unknown),
		cmocka_unit_test(no_rules),
		cmocka_unit_test(pinned_peer),
		cmocka_unit_test(framed_routes),
		cmocka_unit_test(ue_to_ue),
		cmocka_unit_test(ue_to_ue_out),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(combined),
		cmocka_unit_test(classifier),
		cmocka_unit_test(emulated_radio),
		cmocka_unit_test(outer_header_kept),
		cmocka_unit_test(claims),
		cmocka_unit_test(no_place),
		cmocka_unit_test(refusals),
		cmocka_unit_test(users),
		cmocka_unit_test(quota_far),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
