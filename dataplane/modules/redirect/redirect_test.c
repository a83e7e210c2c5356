// SPDX-License-Identifier: Apache-2.0
// HTTP of redirected UEs: a whole connection, other traffic, hostile segments (row G25).
#include "redirect/http.h"
#include "session/mobile_fixture.h"
#include "testkit/reasons.h"
#include <errno.h>

#define URL "http://portal.example/top-up?ue=1"
#define FIN 1
#define SYN 2
#define RST 4
#define ACK 16

static int setup(void **state)
{
	struct kit_mobile *k;

	fixture_start(NULL);
	k = upf_session(1);
	struct api_far_more *more = kit_far_more(k, &k->far[0]);
	more->redirect = API_REDIRECT_URL;
	strcpy(more->redirect_to, URL);
	put("s1", k);
	return 0;
}

static const char *const client[2] = {"10.45.0.1", "2001:db8:1:1::7"}, *const server[2] = {FAR4, FAR6};

// A segment from the UE in its tunnel, right checksums unless `spoil`.
static void segment(
	struct frame *f, int six, uint32_t sequence, uint32_t acknowledged, uint8_t flags, const char *data, int spoil)
{
	struct api_address from = kit_address(client[six]), to = kit_address(server[six]);
	uint16_t sum;

	frame_payload(f, 0);
	frame_append(f, data, (uint32_t)strlen(data));
	frame_tcp(f, 40000, 80);
	store32(f->at + 4, sequence);
	store32(f->at + 8, acknowledged);
	f->at[13] = flags;
	sum = checksum_finish(
		checksum_add(checksum_pseudo(six ? 6 : 4, from.bytes, to.bytes, 6, f->length), f->at, f->length));
	memcpy(f->at + 16, &sum, 2);
	f->at[17] ^= (uint8_t)spoil;
	frame_ip(f, client[six], server[six], 6);
	tunnel(f, "10.1.0.2", "10.1.0.1", 0x101, 0xff, API_PDU_UL);
	link_layer(f, "ran", 1);
}

// The TCP header of the answer to the UE: checked.
static const uint8_t *answered(int six, uint32_t *data)
{
	assert_int_equal(all_out(), 1);
	assert_int_equal(kit_count("ran"), 1);
	const uint8_t *ip = kit_frame("ran", 0)->bytes + 14 + 20 + 8 + 8;
	uint32_t header = six ? 40 : 20, length = kit_frame("ran", 0)->length - 50;
	assert_int_equal(load32(kit_frame("ran", 0)->bytes + 14 + 28 + 4), 0x201);
	assert_int_equal(ip[0], six ? 0x60 : 0x45);
	assert_true(six || ip4_checksum_ok(ip));
	assert_int_equal(six ? load16(ip + 4) + 40u : load16(ip + 2), length);
	uint64_t pseudo = checksum_pseudo(six ? 6 : 4, ip + (six ? 8 : 12), ip + (six ? 24 : 16), 6, length - header);
	assert_int_equal(checksum_finish(checksum_add(pseudo, ip + header, length - header)), 0);
	*data = length - header - (ip[header + 12] >> 4) * 4u;
	assert_true(kit_balance());
	return ip + header;
}

static void connection(void **state)
{
	static const char get[] = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
	static struct frame f;
	uint32_t data;

	for (int six = 0; six < 2; six++) {
		struct kit_reasons before = kit_reasons();
		struct api_session_row was = kit_session_row("s1"), is;
		segment(&f, six, 1000, 0, SYN, "", 0);
		send_frame("ran", &f);
		const uint8_t *tcp = answered(six, &data);
		kit_only_rose(&before, "redirect-answered", 1);
		uint32_t ours = load32(tcp + 4);
		assert_int_equal(tcp[13], SYN | ACK);
		assert_int_equal(load32(tcp + 8), 1001);
		assert_int_equal(data, 0);
		uint64_t silent = kit_reason("redirect-silent");
		segment(&f, six, 1001, ours + 1, ACK, "", 0);
		send_frame("ran", &f);
		assert_int_equal(all_out(), 0);
		assert_int_equal(kit_reason("redirect-silent") - silent, 1);
		for (int again = 0; again < 2; again++) { // what is sent again is answered again
			segment(&f, six, 1001, ours + 1, ACK | 8, get, 0);
			send_frame("ran", &f);
			tcp = answered(six, &data);
			assert_int_equal(tcp[13], ACK | FIN);
			assert_int_equal(load32(tcp + 4), ours + 1);
			assert_int_equal(load32(tcp + 8), 1001 + strlen(get));
			assert_memory_equal(tcp + 20, "HTTP/1.1 302 Found\r\nLocation: " URL "\r\n",
				strlen("HTTP/1.1 302 Found\r\nLocation: " URL "\r\n"));
			assert_memory_equal(tcp + 20 + data - 4, "\r\n\r\n", 4);
		}
		uint32_t end = ours + 1 + data + 1;
		segment(&f, six, (uint32_t)(1001 + strlen(get)), end, ACK | FIN, "", 0);
		send_frame("ran", &f);
		tcp = answered(six, &data);
		assert_int_equal(tcp[13], ACK);
		assert_int_equal(load32(tcp + 4), end);
		assert_int_equal(load32(tcp + 8), 1001 + strlen(get) + 1);
		// Another port has another sequence.
		segment(&f, six, 1000, ours + 7, ACK, get, 0);
		expect_drop("ran", &f, "redirect-strange");
		segment(&f, six, 1001, ours + 1, ACK, "\x16\x03\x01 not HTTP", 0);
		expect_drop("ran", &f, "redirect-strange");
		segment(&f, six, 1001, ours + 1, ACK, get, 1);
		expect_drop("ran", &f, "redirect-strange");
		segment(&f, six, 1001, ours + 1, RST, "", 0);
		expect_drop("ran", &f, "redirect-silent");
		is = kit_session_row("s1");
		assert_int_equal(is.uplink_packets - was.uplink_packets, 6); // served
		assert_int_equal(is.uplink_dropped - was.uplink_dropped, 3);
	}
}

// RFC 8200 §8.1: TCP's checksum does not cover extension headers.
static void behind_extension_headers(void **state)
{
	static struct frame f;
	struct api_address from = kit_address(client[1]), to = kit_address(server[1]);
	uint32_t data;

	for (int spoil = 0; spoil < 2; spoil++) {
		frame_payload(&f, 0);
		frame_tcp(&f, 40000, 80);
		f.at[13] = SYN;
		uint16_t sum = checksum_finish(
			checksum_add(checksum_pseudo(6, from.bytes, to.bytes, 6, f.length), f.at, f.length));
		memcpy(f.at + 16, &sum, 2);
		f.at[17] ^= (uint8_t)spoil;
		uint8_t *options = frame_push(&f, 8);

		options[0] = 6; // destination options: PadN
		options[2] = 1;
		options[3] = 4;
		frame_ip(&f, client[1], server[1], 60);
		tunnel(&f, "10.1.0.2", "10.1.0.1", 0x101, 0xff, API_PDU_UL);
		link_layer(&f, "ran", 1);
		if (spoil) {
			expect_drop("ran", &f, "redirect-strange");
			continue;
		}
		send_frame("ran", &f);
		assert_int_equal(answered(1, &data)[13], SYN | ACK);
	}
}

static void session_with(uint64_t quota, uint16_t flags)
{
	struct kit_mobile *k = upf_session(1);
	struct api_far_more *more = kit_far_more(k, &k->far[0]);

	more->redirect = API_REDIRECT_URL;
	strcpy(more->redirect_to, URL);
	struct api_urr *u = kit_urr(k, 1);
	u->flags = flags | (quota ? API_URR_HAS_VOLUME_QUOTA : 0);
	u->volume_quota[API_TOTAL] = quota;
	kit_pdr_urr(&k->pdr[0], 1);
	kit_pdr_urr(&k->pdr[1], 1);
	put("s1", k);
}

static void counts_are(uint64_t up, uint64_t up_packets, uint64_t down, uint64_t down_packets)
{
	uint32_t rows;
	const struct api_urr_row *row = kit_rows(API_TABLE_URR, "s1", sizeof(*row), &rows);

	assert_int_equal(rows, 1);
	assert_int_equal(row->bytes[API_UPLINK], up);
	assert_int_equal(row->packets[API_UPLINK], up_packets);
	assert_int_equal(row->bytes[API_DOWNLINK], down);
	assert_int_equal(row->packets[API_DOWNLINK], down_packets);
	struct api_session_row s = kit_session_row("s1");
	assert_int_equal(s.uplink_bytes, up);
	assert_int_equal(s.downlink_bytes, down);
}

// TS 29.244 §5.2.2.2, to the byte: the UE's served packets and their answers count; drops do not.
static void usage_is_counted(void **state)
{
	static const char get[] = "GET / HTTP/1.1\r\n\r\n";
	static const uint16_t measured[] = {0, API_URR_BEFORE_QOS};
	static struct frame f;
	uint32_t data;

	for (int i = 0; i < 4; i++) {
		int six = i & 1;
		uint64_t header = six ? 60 : 40, up = header;

		gone("s1");
		session_with(0, measured[i / 2]);
		segment(&f, six, 1000, 0, SYN, "", 0);
		send_frame("ran", &f);
		uint32_t ours = load32(answered(six, &data) + 4);
		uint64_t down = kit_frame("ran", 0)->length - 50;
		counts_are(up, 1, down, 1);
		segment(&f, six, 1001, ours + 1, ACK, "", 0);
		send_frame("ran", &f);
		counts_are(up += header, 2, down, 1);
		segment(&f, six, 1001, ours + 1, ACK, get, 0);
		send_frame("ran", &f);
		answered(six, &data);
		down += kit_frame("ran", 0)->length - 50;
		counts_are(up += header + strlen(get), 3, down, 2);
		segment(&f, six, 1001, ours + 1, ACK, get, 1);
		expect_drop("ran", &f, "redirect-strange");
		expect_drop("ran", uplink_of(&f, client[six], server[six], 0x101, 0xff), "redirect-not-http");
		counts_are(up, 3, down, 2);
	}
}

// A used-up quota stops the request, and so the answer; a request that uses it up stops the answer.
static void quota_stops(void **state)
{
	static struct frame f;

	segment(&f, 0, 1000, 0, SYN, "", 0);
	gone("s1");
	session_with(40, 0);
	uint64_t stopped = kit_reason("usage-quota");
	send_frame("ran", &f);
	assert_int_equal(all_out(), 0);
	assert_int_equal(kit_reason("usage-quota") - stopped, 1);
	counts_are(40, 1, 0, 0);
	expect_drop("ran", &f, "usage-quota");
	counts_are(40, 1, 0, 0);
	gone("s1");
	session_with(0, 0);
}

// A quota FAR that redirects: neither direction of the session forwards now, and the FAR itself has the way to the UE.
static void by_its_own_tunnel(void **state)
{
	struct kit_mobile *k = upf_session(1);
	static struct frame f;
	uint32_t data;

	struct api_far_more *more = kit_far_more(k, &k->far[0]);
	more->redirect = API_REDIRECT_URL;
	strcpy(more->redirect_to, URL);
	k->pdr[1].far = 1;
	gone("s1");
	put("s1", k);
	segment(&f, 0, 1000, 0, SYN, "", 0);
	expect_drop("ran", &f, "redirect-no-way");
	struct api_far own = k->far[0];
	k->far[0] = k->far[1];
	k->far[0].id = 1;
	k->far[0].more = own.more;
	put("s1", k);
	send_frame("ran", &f);
	answered(0, &data);
	gone("s1");
	session_with(0, 0);
}

static void everything_else(void **state)
{
	static struct frame f;

	expect_drop("ran", uplink_of(&f, client[0], FAR4, 0x101, 0xff), "redirect-not-http");
	segment(&f, 0, 1, 0, SYN, "", 0);
	store16(f.at + 14 + 36 + 20 + 2, 443);
	expect_drop("ran", &f, "redirect-not-http");
	for (int offset = 0; offset < 5; offset++) { // row G25
		segment(&f, 0, 1, 0, SYN, "", 0);
		f.at[14 + 36 + 20 + 12] = (uint8_t)(offset << 4);
		expect_drop("ran", &f, "gtpu-inner-malformed");
	}
	segment(&f, 0, 1, 0, SYN, "", 0);
	f.at[14 + 36 + 20 + 12] = 0xf0;
	expect_drop("ran", &f, "gtpu-inner-malformed");
}

static void refusals(void **state)
{
	static const struct {
		uint8_t type;
		const char *to;
		int error;
	} row[] = {{API_REDIRECT_IP4, "192.0.2.9", ENOTSUP}, {API_REDIRECT_IP6, "2001:db8::9", ENOTSUP},
		{API_REDIRECT_URL, "", EINVAL}, {API_REDIRECT_URL, "http://x/\r\nSet-Cookie: a", EINVAL},
		{9, "x", EINVAL}};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct kit_mobile *k = upf_session(2);
		struct api_far_more *more = kit_far_more(k, &k->far[0]);

		more->redirect = row[i].type;
		strcpy(more->redirect_to, row[i].to);
		assert_int_equal(refused("s2", k), row[i].error);
	}
}

static void reference_hash(void **state)
{
	// Appendix A of the SipHash paper: key 00..0f, input 00..0e.
	struct http_key key = {{0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull}};
	uint8_t input[15];

	for (uint8_t i = 0; i < 15; i++)
		input[i] = i;
	assert_true(siphash(&key, input, 15) == 0xa129ca6149be45e5ull);
}

// Random headers and lengths through the pure part: it reads and writes in bounds (ASan), and answers are sound
// packets.
static void random_segments(void **state)
{
	struct http_server s = {.location = URL, .location_length = sizeof(URL) - 1};
	uint64_t seed = 88172645463325252ull;

	for (int round = 0; round < 200000; round++) {
		uint32_t length = 20 + (uint32_t)(seed >> 32) % 60, n;
		uint8_t *p = malloc(length), out[HTTP_ANSWER_MAX];
		struct ip_info info, back;

		for (uint32_t i = 0; i < length; i++) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			p[i] = (uint8_t)(seed >> 40);
		}
		p[0] = 0x45;
		store16(p + 2, (uint16_t)length);
		memset(p + 6, 0, 2);
		p[9] = 6;
		if (length >= 40)
			p[22] = 0, p[23] = 80, p[32] = (uint8_t)(0x50 | (p[32] & 0x20));
		if (ip_parse(p, length, length, &info) == IP_OK &&
			http_answer(&s, p, length, &info, out, &n) == HTTP_ANSWERED) {
			assert_true(n <= sizeof(out));
			assert_int_equal(ip_parse(out, n, n, &back), IP_OK);
		}
		free(p);
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(connection),
		cmocka_unit_test(behind_extension_headers),
		cmocka_unit_test(usage_is_counted),
		cmocka_unit_test(quota_stops),
		cmocka_unit_test(by_its_own_tunnel),
		cmocka_unit_test(everything_else),
		cmocka_unit_test(refusals),
		cmocka_unit_test(reference_hash),
		cmocka_unit_test(random_segments),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
