// SPDX-License-Identifier: Apache-2.0
// HTTP of redirected UEs: a whole connection, what is no HTTP, hostile segments (row G25).
#include "redirect/http.h"
#include "session/mobile_world.h"
#include <errno.h>

#define URL "http://portal.example/top-up?ue=1"
#define FIN 1
#define SYN 2
#define RST 4
#define ACK 16

static int setup(void **state)
{
	struct kit_mobile *k;

	world_start(NULL);
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
		segment(&f, six, 1000, 0, SYN, "", 0);
		send_frame("ran", &f);
		const uint8_t *tcp = answered(six, &data);
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
	}
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

// Random headers and lengths through the pure part: it reads and writes in bounds (ASan), and answers are sound packets.
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
		cmocka_unit_test(everything_else),
		cmocka_unit_test(refusals),
		cmocka_unit_test(reference_hash),
		cmocka_unit_test(random_segments),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
