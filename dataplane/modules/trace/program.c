// SPDX-License-Identifier: Apache-2.0
// Programs of classic BPF: checked here as the kernel does, made eBPF by rte_bpf_convert(), verified by rte_bpf_load().
#include "trace/program.h"
#include "core/object.h"
#include <errno.h>
#include <pcap/bpf.h>
#include <rte_bpf.h>
#include <rte_errno.h>
#include <stdlib.h>

static_assert(sizeof(struct bpf_insn) == sizeof(struct api_trace_instruction), "as libpcap has it");

int program_load(struct rte_bpf **to, const struct api_trace_instruction *code, uint32_t count)
{
	struct bpf_program classic = {.bf_len = count, .bf_insns = (struct bpf_insn *)(uintptr_t)code};

	*to = NULL;
	if (count == 0)
		return 0;
	if (count > API_TRACE_INSTRUCTIONS)
		return object_error(EINVAL, "a filter of %u instructions, at most %u are possible", count,
			API_TRACE_INSTRUCTIONS);
	// Jumps go forward and stay inside, the end is a return, words of memory are there.
	if (!bpf_validate(classic.bf_insns, (int)count))
		return object_error(EINVAL, "a filter that is no program of classic BPF");
	struct rte_bpf_prm *prm = rte_bpf_convert(&classic);
	if (prm == NULL)
		return object_error(EINVAL, "a filter that cannot be run: %s", rte_strerror(rte_errno));
	struct rte_bpf *p = rte_bpf_load(prm);
	int error = rte_errno;
	rte_free(prm);
	if (p == NULL)
		return object_error(EINVAL, "a filter that does not pass the check: %s", rte_strerror(error));
	*to = p;
	return 0;
}

void program_free(struct rte_bpf *p)
{
	rte_bpf_destroy(p);
}

int program_takes(const struct rte_bpf *p, struct rte_mbuf *m, uint32_t offset)
{
	struct rte_bpf_jit jit;
	uint64_t result;

	// The program sees an mbuf that begins there.
	if (rte_pktmbuf_adj(m, (uint16_t)offset) == NULL)
		return 0;
	result = rte_bpf_get_jit(p, &jit) == 0 && jit.func != NULL ? jit.func(m) : rte_bpf_exec(p, m);
	m->data_off = (uint16_t)(m->data_off - offset);
	m->data_len = (uint16_t)(m->data_len + offset);
	m->pkt_len += offset;
	return result != 0;
}
