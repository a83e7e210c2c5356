// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a profile. A refused one has told why, in lines that begin with file and line; an
// accepted one keeps every limit that profile.h promises, and its headers can be written.
#include "traffic/profile/profile.h"
#include <stdlib.h>
#include <string.h>

#define NEED(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			abort();                                                                                       \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_headers(const struct profile_stream *s)
{
	static const uint8_t payload[FRAME_MAX];
	uint8_t header[TEMPLATE_BYTES];
	uint32_t flow[] = {0, s->flows / 2, s->flows - 1};

	for (uint32_t f = 0; f < 3; f++) {
		for (uint32_t i = 0; i < s->sizes; i++) {
			uint32_t frame = s->size[i].bytes - FCS;

			NEED((uint32_t)s->send.length + TAG_BYTES <= frame);
			template_write(&s->send, flow[f], frame, payload, header);
			if (s->receive_any)
				continue;
			frame = frame - s->send.length + s->receive.length;
			NEED(frame + FCS <= FRAME_MAX);
			template_write(&s->receive, flow[f], frame, payload, header);
		}
	}
}

static void check_stream(const struct profile *p, const struct profile_stream *s)
{
	NEED(s->name[0] != 0 && memchr(s->name, 0, NAME_BYTES) != NULL);
	NEED(s->port < p->ports && s->sink < p->ports);
	NEED(s->flows >= 1 && s->flows <= TAG_FLOWS);
	NEED(s->sizes >= 1 && s->sizes <= PROFILE_SIZES);
	NEED(stream_mean_bytes(s) >= FRAME_MIN && stream_mean_bytes(s) <= FRAME_MAX);
	NEED((s->share > 0) + (s->rate.unit != RATE_NONE) + (s->answers >= 0) == 1);
	NEED(s->share > 0 || s->answers >= 0 || stream_own_pps(s) > 0);
	if (s->answers >= 0) {
		NEED((uint32_t)s->answers < p->streams);
		NEED(p->stream[s->answers].flows == s->flows && p->stream[s->answers].answers < 0);
	}
	check_headers(s);
}

static void check_profile(const struct profile *p)
{
	const char *key;
	char why[TEXT_BYTES];

	NEED(p->ports >= 1 && p->ports <= PROFILE_PORTS && p->cpus <= PROFILE_CPUS);
	NEED(p->streams >= 1 && p->streams <= PROFILE_STREAMS);
	for (uint32_t i = 0; i < p->ports; i++)
		NEED(p->port[i].name[0] != 0 && p->port[i].driver[0] != 0 && p->port[i].addresses <= PROFILE_ADDRESSES);
	for (uint32_t i = 0; i < p->streams; i++)
		check_stream(p, &p->stream[i]);
	NEED(p->run.steps <= PROFILE_STEPS && p->run.latency_points <= PROFILE_STEPS);
	NEED(p->run.goals >= 1 && p->run.goals <= PROFILE_GOALS && p->run.seconds > 0);
	NEED(profile_check_run(p, &key, why, sizeof(why)) == 0);
	for (uint32_t i = 0; i < p->run.steps && p->run.mode == RUN_STEPS; i++)
		NEED(profile_pps(p, &p->run.step[i]) > 0 || p->run.step[i].unit == RATE_PART);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = NULL;
	size_t n = 0;
	FILE *errors = open_memstream(&text, &n);

	NEED(errors != NULL);
	struct profile *p = profile_parse("fuzz", (const char *)data, size, errors);
	fclose(errors);
	NEED((p != NULL) == (n == 0));
	for (const char *line = text; *line != 0; line = strchr(line, '\n') + 1)
		NEED(strncmp(line, "fuzz:", 5) == 0 && strchr(line, '\n') != NULL);
	if (p != NULL)
		check_profile(p);
	profile_free(p);
	free(text);
	return 0;
}
