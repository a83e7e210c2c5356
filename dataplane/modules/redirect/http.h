// SPDX-License-Identifier: Apache-2.0
// A stateless web server with one answer: a redirect (RFC 9110 §15.4.3). Pure code.
//
// A SYN is answered with a sequence number that is a keyed hash of addresses and ports. Data that acknowledges it and
// begins as an HTTP request is answered with 302 and FIN, in one segment. The client's FIN is acknowledged. Each packet
// has one answer or none, so retransmissions get the same answer.
#ifndef REDIRECT_HTTP_H
#define REDIRECT_HTTP_H

#include "wire/ip.h"
#include <stdint.h>

#define HTTP_PORT 80
#define HTTP_LOCATION_MAX 128
#define HTTP_ANSWER_MAX (IP6_HEADER + 20 + 160 + HTTP_LOCATION_MAX)

enum http_status {
	HTTP_ANSWERED,
	HTTP_OTHER, // not TCP to port 80, or a fragment
	HTTP_SILENT, // needs no answer: a bare acknowledgement, a reset
	HTTP_STRANGE, // belongs to no connection of ours, or is no HTTP request
};

struct http_key {
	uint64_t word[2];
};

struct http_server {
	struct http_key key;
	const char *location; // no line ends (far_more_compile)
	uint16_t location_length; // at most HTTP_LOCATION_MAX
};

// Makes the answer to the packet at p, which ip_parse() accepted as *info; `readable` bytes are contiguous, and the
// caller has checked the TCP checksum. After HTTP_ANSWERED, `out` (room for HTTP_ANSWER_MAX bytes) has an IP packet of
// *length bytes with checksums and identification 0.
enum http_status http_answer(const struct http_server *s, const uint8_t *p, uint32_t readable,
	const struct ip_info *info, uint8_t *out, uint32_t *length);

uint64_t siphash(const struct http_key *key, const uint8_t *p, uint32_t n);

#endif
