// SPDX-License-Identifier: Apache-2.0
#include "core/cgroup.h"
#include <rte_common.h>
#include <stdio.h>
#include <string.h>

#define NO_LIMIT (1ull << 60) // version 1 says almost 2^63

static uint64_t number_of(const char *file)
{
	unsigned long long n;
	FILE *f = fopen(file, "r");

	if (f == NULL)
		return UINT64_MAX;
	int found = fscanf(f, "%llu", &n); // "max": no number
	fclose(f);
	return found == 1 && n < NO_LIMIT ? n : UINT64_MAX;
}

// In a container the path may be the host's, while the file system begins at the container's group: its top counts too.
static uint64_t least(const char *root, const char *mount, char *path, const char *file)
{
	uint64_t least = UINT64_MAX;
	char name[1024];

	for (;;) {
		if (snprintf(name, sizeof(name), "%s%s%s/%s", root, mount, path, file) < (int)sizeof(name))
			least = RTE_MIN(least, number_of(name));
		char *slash = strrchr(path, '/');
		if (slash == NULL)
			return least;
		*slash = 0;
	}
}

uint64_t cgroup_memory(const char *root)
{
	uint64_t limit = UINT64_MAX;
	char line[1024];

	snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
	FILE *f = fopen(line, "r");
	if (f == NULL)
		return limit;
	while (fgets(line, sizeof(line), f) != NULL) { // NUMBER:CONTROLLERS:PATH
		char *controllers = strchr(line, ':');
		char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');

		if (path == NULL)
			continue;
		*path++ = 0;
		path[strcspn(path, "\n")] = 0;
		if (controllers[1] == 0)
			limit = RTE_MIN(limit, least(root, "/sys/fs/cgroup", path, "memory.max"));
		else if (strstr(controllers, "memory") != NULL)
			limit = RTE_MIN(limit, least(root, "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
	}
	fclose(f);
	return limit;
}
