// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any received frame; an answer fits its room, keeps the tags and is no question itself.
#include "traffic/engine/neighbour.h"
#include <stdlib.h>
#include <string.h>

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// First byte: the room that the answer has. The rest is the frame.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 1, 0};
	const struct job_port p = {.addresses = 2,
		.address = {{.version = 4, .bytes = {192, 0, 2, 2}}, {.version = 6, .bytes = {0xfd, [15] = 2}}}};

	if (size < 1 || size > FRAME_MAX)
		return 0;
	uint16_t room = data[0] < NEIGHBOUR_ANSWER_BYTES ? data[0] : NEIGHBOUR_ANSWER_BYTES,
		 length = (uint16_t)(size - 1);
	// Copies of exact size: the sanitizer sees every byte read or written beyond.
	uint8_t *frame = malloc(length ? length : 1), *to = malloc(room ? room : 1),
		*again = malloc(NEIGHBOUR_ANSWER_BYTES);
	if (frame != NULL && to != NULL && again != NULL) {
		memcpy(frame, data + 1, length);
		uint16_t n = neighbour_answer(&p, mac, frame, length, to, room);
		must(n <= room);
		if (n != 0) {
			must(n >= 60 && (to[0] & 1 || memcmp(to, mac, 6) != 0) && memcmp(to + 6, mac, 6) == 0);
			must(memcmp(to + 12, frame + 12, 2) == 0);
			must(neighbour_answer(&p, mac, to, n, again, NEIGHBOUR_ANSWER_BYTES) == 0);
		}
	}
	free(frame);
	free(to);
	free(again);
	return 0;
}
