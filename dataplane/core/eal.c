// SPDX-License-Identifier: Apache-2.0
// Starts DPDK's environment: one EAL thread (the control thread, not pinned); only the devices that PORT objects name.
#include "core/eal.h"
#include "core/cgroup.h"
#include "core/log.h"
#include "core/worker.h"
#include <glob.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_vect.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define MAX_ARGS 48
#define MEMORY_MB 2048u // without huge pages; only what is used becomes resident
// Of a cgroup's memory: of the process beside DPDK's, with the control plane's in the same container; the least that
// DPDK starts with.
#define OTHER_MB 64u
#define LEAST_MB 32u
#define HUGE_PAGES_WANTED 128 // of 2 MB; 1,000 subscribers take 70, tables of 64 K about 200

// "0@(0,1)": the control thread floats over the CPUs that this process may use.
static void lcores(char *to, size_t n)
{
	cpu_set_t set;
	size_t used = (size_t)snprintf(to, n, "--lcores=0@(");
	int first = 1;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		CPU_ZERO(&set);
	for (int cpu = 0; cpu < CPU_SETSIZE && used + 8 < n; cpu++)
		if (CPU_ISSET(cpu, &set)) {
			used += (size_t)snprintf(to + used, n - used, first ? "%d" : ",%d", cpu);
			first = 0;
		}
	snprintf(to + used, n - used, ")");
}

// Of the sizes that a pattern of /sys names.
static unsigned long free_huge_pages(const char *sizes)
{
	char path[96];
	unsigned long n, sum = 0;
	glob_t found;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%s/free_hugepages", sizes);
	if (glob(path, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *f = fopen(found.gl_pathv[i], "r");

		if (f != NULL && fscanf(f, "%lu", &n) == 1)
			sum += n;
		if (f != NULL)
			fclose(f);
	}
	globfree(&found);
	return sum;
}

// What DPDK may take without huge pages, in MB: what was asked for, as far as the cgroup leaves it. So an allocation is
// refused in words, before the kernel ends the process. 0: it is too little to start.
static uint32_t memory_within(uint32_t wanted_mb)
{
	uint64_t limit_mb = cgroup_memory("") >> 20;

	if (limit_mb >= wanted_mb + OTHER_MB)
		return wanted_mb;
	if (limit_mb < OTHER_MB + LEAST_MB) {
		LOG(ERR, "the memory limit of this cgroup is %lu MB, at least %u MB are needed\n", limit_mb,
			OTHER_MB + LEAST_MB);
		return 0;
	}
	engine_memory_limit_mb = (uint32_t)limit_mb;
	LOG(NOTICE, "takes up to %lu MB of memory for packets and tables: the limit of its cgroup is %lu MB\n",
		limit_mb - OTHER_MB, limit_mb);
	return (uint32_t)limit_mb - OTHER_MB;
}

// A card that a uio driver has knows physical addresses alone, as no IOMMU translates for it.
static int uio_cards(void)
{
	glob_t found;
	int there = glob("/sys/bus/pci/drivers/{uio_pci_generic,igb_uio}/*:*", GLOB_BRACE, NULL, &found) == 0;

	globfree(&found);
	return there;
}

uint32_t engine_memory_limit_mb;

// huge: 1 yes, 0 no, -1 when at least HUGE_PAGES_WANTED are free.
int engine_eal_init(const char *program, int huge, uint32_t memory_mb, int argc, char **argv)
{
	static char cores[512], memory[32], name[64];
	char *args[MAX_ARGS];
	int n = 0;

	if (log_open(program) != 0) {
		LOG(ERR, "%s: no memory for the log\n", program);
		return -1;
	}
	if (huge < 0)
		huge = free_huge_pages("2048kB") >= HUGE_PAGES_WANTED;
	if (huge && free_huge_pages("*") == 0) {
		LOG(ERR,
			"huge pages are asked for, and none is free: sysctl vm.nr_hugepages=%d, or "
			"engine.huge_pages: \"off\"\n",
			HUGE_PAGES_WANTED);
		return -1;
	}
	memory_mb = huge ? 0 : memory_within(memory_mb ? memory_mb : MEMORY_MB);
	if (!huge && memory_mb == 0)
		return -1;
	lcores(cores, sizeof(cores));
	snprintf(name, sizeof(name), "%s", program);
	args[n++] = name;
	args[n++] = cores;
	args[n++] = "--no-telemetry";
	args[n++] = huge && uio_cards() ? "--iova-mode=pa" : "--iova-mode=va";
	args[n++] = "--log-level=*:notice"; // vhost logs each of its messages
	args[n++] = "--log-level=lib.eal:4";
	args[n++] = "--allow=0000:00:00.0"; // an allow-list that no device meets: PCI ports are added by name
	if (huge) {
		args[n++] = "--in-memory";
		args[n++] = "--single-file-segments"; // memif hands its memory over by file descriptor
	} else {
		snprintf(memory, sizeof(memory), "%u", memory_mb);
		args[n++] = "--no-huge";
		args[n++] = "--no-shconf";
		args[n++] = "-m";
		args[n++] = memory;
	}
	for (int i = 0; i < argc && n < MAX_ARGS - 1; i++)
		args[n++] = argv[i];
	args[n] = NULL;
	if (rte_eal_init(n, args) < 0) {
		LOG(ERR, "DPDK does not start: %s\n", rte_strerror(rte_errno));
		return -1;
	}
	log_drivers();
	// rte_acl and rte_fib choose their widest variant within this limit.
	rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512);
	worker_current = &control_worker;
	control_worker.id = UINT32_MAX;
	control_worker.tsc_hz = rte_get_tsc_hz();
	return 0;
}
