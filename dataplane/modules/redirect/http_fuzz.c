// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any IP packet to the web server of redirected UEs. An answer is a whole packet that fits its room,
// has correct checksums and swaps the connection's ends. The same packet gets the same answer.
#include "redirect/http.h"
#include "wire/checksum.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int good)
{
	if (!good)
		abort();
}

static void check_answer(const struct ip_info *to, const uint8_t *answer, uint32_t length)
{
	uint32_t n = to->version == 4 ? 4 : 16;
	struct ip_info info;

	must(length <= HTTP_ANSWER_MAX);
	must(ip_parse(answer, length, length, &info) == IP_OK);
	must(info.length == length && info.version == to->version && info.protocol == IP_PROTOCOL_TCP);
	must(memcmp(info.source, to->destination, n) == 0 && memcmp(info.destination, to->source, n) == 0);
	must(info.source_port == HTTP_PORT && info.destination_port == to->source_port);
	must(info.version == 6 || ip4_checksum_ok(answer));
	uint64_t sum = checksum_pseudo(info.version, info.source, info.destination, IP_PROTOCOL_TCP, length - info.l4);
	must(checksum_finish(checksum_add(sum, answer + info.l4, length - info.l4)) == 0);
	must(!(answer[info.l4 + 13] & 4)); // never a reset
}

// The first byte: how much of the packet is in the first segment, in eighths; 0xf8 and more: all.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char location[HTTP_LOCATION_MAX + 1] =
		"http://portal.example/01234567890123456789012345678901234567890123456789012345678901234567890123456789"
		"01234567890123456789012345";
	struct http_server s = {.key = {{1, 2}}, .location = location};
	uint8_t answer[HTTP_ANSWER_MAX], again[HTTP_ANSWER_MAX];
	uint32_t length, length_again, total, readable;
	struct ip_info info;

	if (size < 2)
		return 0;
	s.location_length = (uint16_t)(1 + data[0] % HTTP_LOCATION_MAX);
	total = (uint32_t)size - 1;
	readable = data[0] >= 0xf8 ? total : (uint32_t)((uint64_t)total * (data[0] >> 5) / 8);
	uint8_t *packet = malloc(readable + 1);
	memcpy(packet, data + 1, readable);
	if (ip_parse(packet, readable, total, &info) == IP_OK &&
		http_answer(&s, packet, readable, &info, answer, &length) == HTTP_ANSWERED) {
		check_answer(&info, answer, length);
		must(http_answer(&s, packet, readable, &info, again, &length_again) == HTTP_ANSWERED);
		must(length == length_again && memcmp(answer, again, length) == 0);
	}
	free(packet);
	return 0;
}
