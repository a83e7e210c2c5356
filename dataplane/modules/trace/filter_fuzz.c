// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a program of classic BPF that may be anything, over frames that may be anything; and expressions.
#include "core/trace_inside.h"
#include "trace/compile.h"
#include "trace/program.h"
#include <pcap/dlt.h>
#include <stdlib.h>
#include <string.h>

#define TEXT 200

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
	program_takes(p, data, (uint32_t)size, (uint32_t)size);
	free(p);
	return 0;
}
