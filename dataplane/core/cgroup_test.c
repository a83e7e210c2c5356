// SPDX-License-Identifier: Apache-2.0
// The memory limit of a cgroup: both versions, of the groups above, and in a container.
#include "core/cgroup.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[] = "/tmp/cgroup-test-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int start(void **state)
{
	strcpy(root + strlen(root) - 6, "XXXXXX");
	return mkdtemp(root) == NULL;
}

static int finish(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void version_2(void **state)
{
	put("proc/self/cgroup", "0::/system.slice/isthmus-dp.service\n");
	assert_true(cgroup_memory(root) == UINT64_MAX);
	put("sys/fs/cgroup/system.slice/isthmus-dp.service/memory.max", "max\n");
	assert_true(cgroup_memory(root) == UINT64_MAX);
	put("sys/fs/cgroup/system.slice/isthmus-dp.service/memory.max", "300000000\n");
	assert_int_equal(cgroup_memory(root), 300000000);
	put("sys/fs/cgroup/system.slice/memory.max", "200000000\n");
	assert_int_equal(cgroup_memory(root), 200000000);
}

// The group of the container is the top of what it sees.
static void container_2(void **state)
{
	put("proc/self/cgroup", "0::/\n");
	put("sys/fs/cgroup/memory.max", "134217728\n");
	assert_int_equal(cgroup_memory(root), 134217728);
}

static void version_1(void **state)
{
	put("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/a\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_true(cgroup_memory(root) == UINT64_MAX);
	put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "67108864\n");
	put("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(cgroup_memory(root), 67108864);
}

// The path is the host's, and not there.
static void container_1(void **state)
{
	put("proc/self/cgroup", "4:memory:/machine/libpod-0123\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n");
	assert_int_equal(cgroup_memory(root), 67108864);
}

static void unreadable(void **state)
{
	assert_true(cgroup_memory(root) == UINT64_MAX);
	put("proc/self/cgroup", "\nnothing\n1:\n4:memory\n0::\n4:memory:/\n");
	put("sys/fs/cgroup/memory.max", "");
	assert_true(cgroup_memory(root) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(version_2, start, finish),
		cmocka_unit_test_setup_teardown(container_2, start, finish),
		cmocka_unit_test_setup_teardown(version_1, start, finish),
		cmocka_unit_test_setup_teardown(container_1, start, finish),
		cmocka_unit_test_setup_teardown(unreadable, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
