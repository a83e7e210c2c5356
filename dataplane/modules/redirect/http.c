// SPDX-License-Identifier: Apache-2.0
#include "redirect/http.h"
#include "wire/checksum.h"

#define TCP_HEADER 20
#define FIN 1u
#define SYN 2u
#define RST 4u
#define ACK 16u
#define MSS 1220u // that we accept: fits a tunnel over any link (RFC 8200 §5)
#define WINDOW 16384u

// SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF").

static uint64_t rotate(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	sip_round(v);
	sip_round(v);
	v[0] ^= m;
}

uint64_t siphash(const struct http_key *key, const uint8_t *p, uint32_t n)
{
	uint64_t v[4] = {key->word[0] ^ 0x736f6d6570736575ull, key->word[1] ^ 0x646f72616e646f6dull,
		key->word[0] ^ 0x6c7967656e657261ull, key->word[1] ^ 0x7465646279746573ull};
	uint64_t m = 0;

	for (uint32_t i = 0; i + 8 <= n; i += 8) {
		memcpy(&m, p + i, 8);
		sip_word(v, m);
	}
	m = (uint64_t)n << 56;
	for (uint32_t i = n & ~7u; i < n; i++)
		m |= (uint64_t)p[i] << (i % 8 * 8);
	sip_word(v, m);
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct segment {
	uint32_t sequence, acknowledged;
	uint8_t flags;
	uint32_t length; // of data
	const uint8_t *data;
	uint32_t readable; // of data
};

// Our first sequence number of the connection (RFC 6528, without the clock: the answer must be the same again).
static uint32_t first_sequence(const struct http_key *key, const struct ip_info *info)
{
	uint32_t n = info->version == 4 ? 4 : 16;
	uint8_t tuple[36];

	memcpy(tuple, info->source, n);
	memcpy(tuple + n, info->destination, n);
	store16(tuple + 2 * n, info->source_port);
	store16(tuple + 2 * n + 2, info->destination_port);
	return (uint32_t)siphash(key, tuple, 2 * n + 4);
}

// The headers in front of `data` bytes that are in place behind them, from the server to the client.
static uint32_t put_headers(uint8_t *out, const struct ip_info *info, uint32_t options, uint32_t data,
	uint32_t sequence, uint32_t acknowledged, uint8_t flags)
{
	uint32_t ip = info->version == 4 ? IP4_HEADER : IP6_HEADER, n = info->version == 4 ? 4 : 16;
	uint32_t tcp_length = TCP_HEADER + options + data;
	uint8_t *tcp = out + ip;
	uint16_t sum;

	memset(out, 0, ip + TCP_HEADER);
	out[0] = info->version == 4 ? 0x45 : 0x60;
	out[info->version == 4 ? 8 : 7] = 64;
	out[info->version == 4 ? 9 : 6] = IP_PROTOCOL_TCP;
	memcpy(out + ip - 2 * n, info->destination, n);
	memcpy(out + ip - n, info->source, n);
	store16(tcp, info->destination_port);
	store16(tcp + 2, info->source_port);
	store32(tcp + 4, sequence);
	store32(tcp + 8, acknowledged);
	tcp[12] = (uint8_t)((TCP_HEADER + options) / 4 << 4);
	tcp[13] = flags;
	store16(tcp + 14, WINDOW);
	sum = checksum_finish(checksum_add(
		checksum_pseudo(info->version, info->destination, info->source, IP_PROTOCOL_TCP, tcp_length), tcp,
		tcp_length));
	memcpy(tcp + 16, &sum, 2);
	if (info->version == 4) {
		store16(out + 2, (uint16_t)(ip + tcp_length));
		store16(out + 6, 0x4000); // DF: it is small, and its identification is no one's
		ip4_checksum_set(out);
	} else {
		store16(out + 4, (uint16_t)tcp_length);
	}
	return ip + tcp_length;
}

static uint32_t put_text(uint8_t *to, const char *text, uint32_t n)
{
	memcpy(to, text, n);
	return n;
}

// The answer to any request, the same each time.
static uint32_t put_found(uint8_t *to, const struct http_server *s)
{
	static const char head[] = "HTTP/1.1 302 Found\r\nLocation: ";
	static const char tail[] = "\r\nContent-Length: 0\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n";
	uint32_t n = put_text(to, head, sizeof(head) - 1);

	n += put_text(to + n, s->location, s->location_length);
	return n + put_text(to + n, tail, sizeof(tail) - 1);
}

static uint32_t found_length(const struct http_server *s)
{
	uint8_t text[HTTP_ANSWER_MAX];

	return put_found(text, s);
}

// RFC 9112 §3: a request begins with a method and a space.
static int is_request(const struct segment *g)
{
	static const char *const method[] = {"GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "OPTIONS ", "PATCH "};

	for (unsigned i = 0; i < sizeof(method) / sizeof(method[0]); i++) {
		size_t n = strlen(method[i]);

		if (g->readable >= n && memcmp(g->data, method[i], n) == 0)
			return 1;
	}
	return 0;
}

static void read_segment(const uint8_t *p, uint32_t readable, const struct ip_info *info, struct segment *g)
{
	const uint8_t *tcp = p + info->l4;
	uint32_t begin = info->l4 + (tcp[12] >> 4) * 4u; // ip_parse: at least 20, and within the packet

	g->sequence = load32(tcp + 4);
	g->acknowledged = load32(tcp + 8);
	g->flags = tcp[13] & (FIN | SYN | RST | ACK);
	g->length = info->length - begin;
	g->data = p + begin;
	g->readable = readable > begin ? (readable - begin < g->length ? readable - begin : g->length) : 0;
}

static uint32_t answer_syn(uint8_t *out, const struct ip_info *info, const struct segment *g, uint32_t first)
{
	uint32_t ip = info->version == 4 ? IP4_HEADER : IP6_HEADER;
	uint8_t *option = out + ip + TCP_HEADER;

	option[0] = 2; // RFC 9293 §3.7.1
	option[1] = 4;
	store16(option + 2, MSS);
	// Data of a SYN is not accepted (RFC 7413 §4.2): it is sent again.
	return put_headers(out, info, 4, 0, first, g->sequence + 1, SYN | ACK);
}

enum http_status http_answer(const struct http_server *s, const uint8_t *p, uint32_t readable,
	const struct ip_info *info, uint8_t *out, uint32_t *length)
{
	uint32_t ip = info->version == 4 ? IP4_HEADER : IP6_HEADER, first;
	struct segment g;

	if (info->protocol != IP_PROTOCOL_TCP || info->fragment != 0 || info->destination_port != HTTP_PORT)
		return HTTP_OTHER;
	read_segment(p, readable, info, &g);
	first = first_sequence(&s->key, info);
	if (g.flags == SYN) {
		*length = answer_syn(out, info, &g, first);
		return HTTP_ANSWERED;
	}
	if (g.flags & RST)
		return HTTP_SILENT;
	if ((g.flags & (SYN | ACK)) != ACK)
		return HTTP_STRANGE;
	if (g.length != 0 && g.acknowledged == first + 1) {
		if (!is_request(&g))
			return HTTP_STRANGE;
		uint32_t data = put_found(out + ip + TCP_HEADER, s);
		*length =
			put_headers(out, info, 0, data, first + 1, g.sequence + g.length + (g.flags & FIN), ACK | FIN);
		return HTTP_ANSWERED;
	}
	uint32_t end = first + 1 + found_length(s) + 1; // behind our FIN
	if ((g.flags & FIN) && (g.acknowledged == end || g.acknowledged == first + 1)) {
		// The client is done: after the answer, or without having asked.
		*length = put_headers(out, info, 0, 0, g.acknowledged, g.sequence + g.length + 1,
			g.acknowledged == end ? ACK : ACK | FIN);
		return HTTP_ANSWERED;
	}
	return g.length == 0 && !(g.flags & FIN) ? HTTP_SILENT : HTTP_STRANGE;
}
