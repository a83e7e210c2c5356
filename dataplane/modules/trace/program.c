// SPDX-License-Identifier: Apache-2.0
// Programs of classic BPF. An accepted program ends and reads only the packet. libpcap's check: jumps stay inside, the
// last instruction is a return, memory words exist. Our check: instructions are those of bpf_filter(), and jumps go
// forward. libpcap ignores bits of the code for which bpf_filter() calls abort(), and takes jumps that wrap around.
#include "trace/program.h"
#include "core/object.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct bpf_insn) == sizeof(struct api_trace_instruction), "as libpcap has it");

// Of bpf_filter().
static const uint16_t known[] = {BPF_LD | BPF_W | BPF_ABS, BPF_LD | BPF_H | BPF_ABS, BPF_LD | BPF_B | BPF_ABS,
	BPF_LD | BPF_W | BPF_IND, BPF_LD | BPF_H | BPF_IND, BPF_LD | BPF_B | BPF_IND, BPF_LD | BPF_W | BPF_LEN,
	BPF_LD | BPF_IMM, BPF_LD | BPF_MEM, BPF_LDX | BPF_W | BPF_LEN, BPF_LDX | BPF_MSH | BPF_B, BPF_LDX | BPF_IMM,
	BPF_LDX | BPF_MEM, BPF_ST, BPF_STX, BPF_JMP | BPF_JA, BPF_ALU | BPF_NEG, BPF_RET | BPF_K, BPF_RET | BPF_A,
	BPF_MISC | BPF_TAX, BPF_MISC | BPF_TXA};
// With a constant, or with X.
static const uint16_t of_two[] = {BPF_JMP | BPF_JEQ, BPF_JMP | BPF_JGT, BPF_JMP | BPF_JGE, BPF_JMP | BPF_JSET,
	BPF_ALU | BPF_ADD, BPF_ALU | BPF_SUB, BPF_ALU | BPF_MUL, BPF_ALU | BPF_DIV, BPF_ALU | BPF_MOD, BPF_ALU | BPF_OR,
	BPF_ALU | BPF_AND, BPF_ALU | BPF_XOR, BPF_ALU | BPF_LSH, BPF_ALU | BPF_RSH};

// Without a result: a division by 0, a shift by more bits than there are.
static int is_undefined(const struct api_trace_instruction *i)
{
	return ((i->code == (BPF_ALU | BPF_DIV) || i->code == (BPF_ALU | BPF_MOD)) && i->k == 0) ||
	       ((i->code == (BPF_ALU | BPF_LSH) || i->code == (BPF_ALU | BPF_RSH)) && i->k > 31);
}

static int is_known(const struct api_trace_instruction *i)
{
	for (uint32_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
		if (i->code == known[k])
			return 1;
	for (uint32_t k = 0; k < sizeof(of_two) / sizeof(of_two[0]); k++)
		if (i->code == of_two[k] || i->code == (of_two[k] | BPF_X))
			return !is_undefined(i);
	return 0;
}

static int has_unknown(const struct api_trace_instruction *code, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!is_known(&code[i]))
			return 1;
	return 0;
}

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
	if (has_unknown(code, count) || jumps_back(code, count) ||
		!bpf_validate((const struct bpf_insn *)(const void *)code, (int)count))
		return object_error(EINVAL, "a filter that is no program of classic BPF");
	*to = malloc(count * sizeof(**to));
	if (*to == NULL)
		return object_error(ENOMEM, "no memory for a filter");
	memcpy(*to, code, count * sizeof(**to));
	return 0;
}
