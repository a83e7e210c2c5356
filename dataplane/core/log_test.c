// SPDX-License-Identifier: Apache-2.0
// The form of log lines, of ours and of DPDK's.
#include "core/log.h"
#include "share/share.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int ends[2], driver;

static int setup(void **state)
{
	driver = rte_log_register_type_and_pick_level("pmd.test", RTE_LOG_NOTICE);
	return pipe(ends) != 0 || driver < 0 || log_open("isthmus-dp") != 0;
}

// Output of `say` on standard error.
static void becomes(const char *want, void (*say)(void))
{
	char got[1024];
	int kept = dup(STDERR_FILENO);

	dup2(ends[1], STDERR_FILENO);
	say();
	(void)!write(STDERR_FILENO, "", 1); // so that there is something to read
	dup2(kept, STDERR_FILENO);
	close(kept);
	ssize_t n = read(ends[0], got, sizeof(got) - 1);
	assert_true(n > 0);
	got[n] = 0;
	assert_string_equal(got, want);
}

static void our_words(void)
{
	LOG(NOTICE, "port %s: up\n", "core");
	rte_log(RTE_LOG_WARNING, (uint32_t)share_logtype, "share: no room\n");
	LOG(INFO, "too fine\n");
}

static void drivers_words(void)
{
	rte_log(RTE_LOG_ERR, (uint32_t)driver, "probe(): no device\n\nagain\n");
	rte_log(RTE_LOG_ERR, (uint32_t)driver, "half ");
	rte_log(RTE_LOG_ERR, (uint32_t)driver, "a line\n");
	rte_log(RTE_LOG_ERR, (uint32_t)driver, "tap_mp_req_on_rxtx(): Failed to send start req to secondary 95\n");
	rte_log(RTE_LOG_ERR, (uint32_t)driver, "rte_pmd_memif_probe(): Failed to register mp action callback: no\n");
}

static void hushed(void)
{
	log_hush(1);
	rte_log(RTE_LOG_ERR, (uint32_t)driver, "Frame size (1526) > device max frame size (1518) for port_id 0\n");
	LOG(WARNING, "ours\n");
	log_hush(0);
	rte_log(RTE_LOG_ERR, (uint32_t)driver, "theirs\n");
}

// The first line of others, whole; not ours.
static void heard(void)
{
	log_listen();
	LOG(WARNING, "ours\n");
	assert_string_equal(log_heard(), "");
	rte_log(RTE_LOG_ERR, (uint32_t)driver, "tap_mp_req_on_rxtx(): Failed to send\n");
	rte_log(RTE_LOG_ERR, (uint32_t)driver, "the cause\nwhat follows\n");
	assert_string_equal(log_heard(), "the cause");
	rte_log(RTE_LOG_ERR, (uint32_t)driver, "more\n");
	assert_string_equal(log_heard(), "the cause");
	log_listen();
	assert_string_equal(log_heard(), "");
}

static void listen(void **state)
{
	becomes("isthmus-dp: ours\nisthmus-dp: DPDK: the cause\nisthmus-dp: DPDK: what follows\nisthmus-dp: DPDK: "
		"more\n",
		heard);
}

static void form(void **state)
{
	becomes("isthmus-dp: port core: up\nisthmus-dp: share: no room\n", our_words);
	becomes("isthmus-dp: DPDK: probe(): no device\nisthmus-dp: DPDK: again\nisthmus-dp: DPDK: half a line\n",
		drivers_words);
}

static void hush(void **state)
{
	becomes("isthmus-dp: ours\nisthmus-dp: DPDK: theirs\n", hushed);
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test(form), cmocka_unit_test(hush), cmocka_unit_test(listen)};

	return cmocka_run_group_tests(list, setup, NULL);
}
