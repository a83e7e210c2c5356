// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: a good job with some bytes changed, each by four of the input: place and value. An accepted job is
// usable: the headers of its streams are written.
#include "traffic/engine/work_kit.h"

#define NEED(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			abort();                                                                                       \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_headers(const struct work_stream *s)
{
	static const uint8_t payload[FRAME_MAX];
	uint8_t header[TEMPLATE_BYTES];

	for (uint32_t i = 0; i < s->job.sizes; i++) {
		uint32_t frame = s->job.size[i].bytes - FCS;

		NEED((uint32_t)s->send.length + TAG_BYTES <= frame);
		template_write(&s->send, s->job.flows - 1, frame, payload, header);
		if (s->job.receive_any)
			continue;
		frame = frame - s->send.length + s->receive.length;
		NEED(frame + FCS <= FRAME_MAX);
		template_write(&s->receive, s->job.flows - 1, frame, payload, header);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct work_kit kit;
	static struct work_faults faults;
	char error[JOB_SENTENCE] = "";

	work_kit(&kit);
	for (size_t i = 0; i + 4 <= size; i += 4)
		((uint8_t *)&kit)[((uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2]) % sizeof(kit)] =
			data[i + 3];
	struct work *w = work_parse((const uint8_t *)&kit, sizeof(kit), &faults, error, sizeof(error));

	NEED((w == NULL) == (error[0] != 0) && faults.n <= JOB_FAULTS);
	for (uint32_t i = 0; w != NULL && faults.n == 0 && i < w->job.streams; i++)
		write_headers(&w->stream[i]);
	work_free(w);
	return 0;
}
