// SPDX-License-Identifier: Apache-2.0
// isthmus-dp of a build with variants (meson: variants): executes the program for this processor,
// isthmus-dp-LEVEL beside it or in ../lib/isthmus. ISTHMUS_DP_CPU=LEVEL in the environment chooses another.
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

// The highest level that processor and system have; NULL: not even what DPDK needs.
static const char *best(void)
{
#ifdef __x86_64__
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt"))
		return NULL;
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") ||
		!__builtin_cpu_supports("fma"))
		return "x86-64-v2";
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
		!__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
		!__builtin_cpu_supports("avx512vl"))
		return "x86-64-v3";
	return "x86-64-v4";
#else
	unsigned long has = getauxval(AT_HWCAP);

	if (!(has & HWCAP_CRC32))
		return NULL;
	return (has & HWCAP_ATOMICS) && (has & HWCAP_ASIMDRDM) ? "armv8.2-a" : "armv8-a";
#endif
}

int main(int argc, char **argv)
{
	const char *level = getenv("ISTHMUS_DP_CPU");
	char self[PATH_MAX] = "", path[2 * PATH_MAX];

	if (level == NULL || *level == 0)
		level = best();
	if (level == NULL) {
		fprintf(stderr, "isthmus-dp: this processor has not what DPDK needs (x86-64-v2: SSE4.2, POPCNT; arm64: "
				"CRC32)\n");
		return 1;
	}
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
		fprintf(stderr, "isthmus-dp: /proc/self/exe: %s\n", strerror(errno));
		return 1;
	}
	const char *folder = dirname(self);
	static const char *const below[] = {"", "/../lib/isthmus"};
	for (size_t i = 0; i < sizeof(below) / sizeof(*below); i++) {
		snprintf(path, sizeof(path), "%s%s/isthmus-dp-%s", folder, below[i], level);
		execv(path, argv);
	}
	fprintf(stderr, "isthmus-dp: no program for the level %s: %s: %s\n", level, path, strerror(errno));
	return 1;
}
