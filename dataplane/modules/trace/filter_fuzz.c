// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a program of classic BPF that may be anything, over frames that may be anything, and its sieve; and
// expressions.
#include "core/trace_inside.h"
#include "trace/compile.h"
#include "trace/program.h"
#include "trace/sieve.h"
#include <pcap/dlt.h>
#include <stdlib.h>
#include <string.h>

#define TEXT 200
#define FRAME 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compile(const uint8_t *data, size_t size)
{
	char text[TEXT + 1] = {0}, error[256];
	FILE *null = fopen("/dev/null", "w");

	memcpy(text, data, RTE_MIN(size, (size_t)TEXT));
	if (null == NULL)
		return;
	filter_compile(text, DLT_RAW, null, error, sizeof(error));
	fclose(null);
}

// The first byte says how many instructions follow; the rest is a packet.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct api_trace_instruction code[255];
	struct bpf_insn *p;
	uint32_t count = size > 0 ? data[0] : 0;

	if (size < 1 || size - 1 < count * sizeof(code[0])) {
		compile(data, size);
		return 0;
	}
	memcpy(code, data + 1, count * sizeof(code[0]));
	if (program_load(&p, code, count) != 0 || p == NULL)
		return 0;
	data += 1 + count * sizeof(code[0]);
	size -= 1 + count * sizeof(code[0]);
	uint8_t frame[FRAME] = {0};
	struct sieve s;
	uint32_t length = (uint32_t)RTE_MIN(size, (size_t)FRAME);

	memcpy(frame, data, length);
	sieve_make(&s, NULL, 0, p, NULL);
	if (program_takes(p, frame, length, length) && !sieve_passes(&s, frame))
		abort();
	free(p);
	return 0;
}
