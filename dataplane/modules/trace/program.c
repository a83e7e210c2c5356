// SPDX-License-Identifier: Apache-2.0
// Programs of classic BPF. What is let through ends, and reads nothing but the packet: jumps stay inside, the last
// instruction is a return, words of memory are there (libpcap's check), and jumps go forward (ours: libpcap takes
// those that wrap around).
#include "trace/program.h"
#include "core/object.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct bpf_insn) == sizeof(struct api_trace_instruction), "as libpcap has it");

static int jumps_back(const struct api_trace_instruction *code, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (BPF_CLASS(code[i].code) == BPF_JMP && BPF_OP(code[i].code) == BPF_JA && code[i].k >= count - i - 1)
			return 1;
	return 0;
}

int program_load(struct bpf_insn **to, const struct api_trace_instruction *code, uint32_t count)
{
	*to = NULL;
	if (count == 0)
		return 0;
	if (count > API_TRACE_INSTRUCTIONS)
		return object_error(
			EINVAL, "a filter of %u instructions, at most %u are possible", count, API_TRACE_INSTRUCTIONS);
	if (jumps_back(code, count) || !bpf_validate((const struct bpf_insn *)(const void *)code, (int)count))
		return object_error(EINVAL, "a filter that is no program of classic BPF");
	*to = malloc(count * sizeof(**to));
	if (*to == NULL)
		return object_error(ENOMEM, "no memory for a filter");
	memcpy(*to, code, count * sizeof(**to));
	return 0;
}
