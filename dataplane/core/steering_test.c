// SPDX-License-Identifier: Apache-2.0
// What a port makes of what its device says: steering, errors. DPDK's net_null and net_ring, whose words this program
// changes.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "testkit/testkit.h"
#include <dlfcn.h>
#include <errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <string.h>

#define RULES 8

// The device's answers and settings, in place of DPDK's functions of the same names.
static struct {
	uint64_t offers; // hashes, beside its own
	uint64_t bad, unsent; // frames
	uint64_t hash; // that it was configured with
	uint64_t takes; // types of RSS actions
	uint32_t level; // at most, of RSS actions
	uint32_t room; // rules that it makes; it validates more
	uint32_t rules, made, priority; // now, since the start; of the last
	char item[RULES][64]; // of each rule that it made
} device;

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

int rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info)
{
	int (*real)(uint16_t, struct rte_eth_dev_info *) = next("rte_eth_dev_info_get");
	int error = real(id, info);

	info->flow_type_rss_offloads |= device.offers;
	return error;
}

int rte_eth_stats_get(uint16_t id, struct rte_eth_stats *s)
{
	int (*real)(uint16_t, struct rte_eth_stats *) = next("rte_eth_stats_get");
	int error = real(id, s);

	s->ierrors += device.bad;
	s->oerrors += device.unsent;
	return error;
}

int rte_eth_dev_configure(uint16_t id, uint16_t rx, uint16_t tx, const struct rte_eth_conf *want)
{
	int (*real)(uint16_t, uint16_t, uint16_t, const struct rte_eth_conf *) = next("rte_eth_dev_configure");
	struct rte_eth_conf conf = *want;

	device.hash = want->rxmode.mq_mode == RTE_ETH_MQ_RX_RSS ? want->rx_adv_conf.rss_conf.rss_hf : 0;
	conf.rx_adv_conf.rss_conf.rss_hf &= ~device.offers;
	return real(id, rx, tx, &conf);
}

int rte_flow_validate(uint16_t id, const struct rte_flow_attr *attr, const struct rte_flow_item item[],
	const struct rte_flow_action action[], struct rte_flow_error *error)
{
	const struct rte_flow_action_rss *rss = action[0].conf;

	assert_true(attr->ingress && action[0].type == RTE_FLOW_ACTION_TYPE_RSS);
	assert_int_equal(action[1].type, RTE_FLOW_ACTION_TYPE_END);
	assert_int_equal(rss->queue_num, 2);
	assert_true(rss->queue[0] == 0 && rss->queue[1] == 1);
	device.priority = attr->priority;
	return (rss->types & device.takes) == rss->types && rss->level <= device.level ? 0 : -ENOTSUP;
}

struct rte_flow *rte_flow_create(uint16_t id, const struct rte_flow_attr *attr, const struct rte_flow_item item[],
	const struct rte_flow_action action[], struct rte_flow_error *error)
{
	assert_int_equal(rte_flow_validate(id, attr, item, action, error), 0);
	if (device.rules == device.room)
		return NULL;
	char *text = device.item[device.rules++];

	for (device.made++; item->type != RTE_FLOW_ITEM_TYPE_END; item++)
		*text++ = item->type == RTE_FLOW_ITEM_TYPE_ETH      ? 'E'
			  : item->type == RTE_FLOW_ITEM_TYPE_VLAN   ? 'V'
			  : item->type == RTE_FLOW_ITEM_TYPE_PPPOES ? 'P'
			  : item->type == RTE_FLOW_ITEM_TYPE_IPV4   ? '4'
			  : item->type == RTE_FLOW_ITEM_TYPE_IPV6   ? '6'
			  : item->type == RTE_FLOW_ITEM_TYPE_UDP    ? 'U'
			  : item->type == RTE_FLOW_ITEM_TYPE_GTPU   ? 'G'
								    : '?';
	*text = 0;
	return (struct rte_flow *)&device;
}

int rte_flow_destroy(uint16_t id, struct rte_flow *flow, struct rte_flow_error *error)
{
	device.rules--;
	return 0;
}

// Opens a port of the device as it is now, closes it, and returns what its row says.
static struct api_port_row row_of(const char *driver, uint32_t role, uint32_t queues, uint32_t offload)
{
	struct api_port port = {.role = role, .mtu = 1500, .queues = queues, .offload = offload};
	const struct api_port_row *row;
	struct api_port_row kept;
	uint32_t count;

	snprintf(port.driver, sizeof(port.driver), "%s", driver);
	if (strcmp(driver, "net_null") == 0)
		snprintf(port.devargs, sizeof(port.devargs), "no-rx=1");
	kit_begin();
	kit_put(API_PORT, "p", &port, sizeof(port));
	if (kit_commit() != 0)
		fail_msg("%s: %s", driver, kit_error());
	row = kit_rows(API_TABLE_PORT, "p", sizeof(*row), &count);
	assert_int_equal(count, 1);
	kept = *row;
	kit_begin();
	kit_delete(API_PORT, "p");
	assert_int_equal(kit_commit(), 0);
	return kept;
}

static uint32_t steering_of(const char *driver, uint32_t role, uint32_t queues, uint32_t offload)
{
	return row_of(driver, role, queues, offload).steering;
}

static uint32_t of_null(uint32_t role)
{
	return steering_of("net_null", role, 0, API_OFFLOAD_NONE);
}

static int forget(void **state)
{
	memset(&device, 0, sizeof(device));
	device.room = RULES;
	return 0;
}

static void by_software(void **state)
{
	assert_int_equal(steering_of("net_ring", API_ROLE_CORE, 0, 0), API_STEERING_SOFTWARE);
	assert_int_equal(device.hash, 0);
	assert_int_equal(steering_of("synth", API_ROLE_CORE, 0, 0), API_STEERING_SOFTWARE);
	// One queue has nothing to spread, with any device.
	device.offers = RTE_ETH_RSS_GTPU;
	device.takes = UINT64_MAX;
	assert_int_equal(steering_of("net_null", API_ROLE_CORE, 1, 0), API_STEERING_SOFTWARE);
	assert_int_equal(device.hash, 0);
	assert_int_equal(device.made, 0);
}

static void by_the_outer_header(void **state)
{
	assert_int_equal(of_null(API_ROLE_CORE), API_STEERING_RSS);
	assert_true(device.hash != 0 && (device.hash & ~RTE_ETH_RSS_IP) == 0);
	assert_int_equal(of_null(API_ROLE_ACCESS), API_STEERING_RSS);
	// What is of the other side does not help.
	device.offers = RTE_ETH_RSS_PPPOE | RTE_ETH_RSS_VLAN;
	assert_int_equal(of_null(API_ROLE_CORE), API_STEERING_RSS);
	device.offers = RTE_ETH_RSS_GTPU | RTE_ETH_RSS_LEVEL_INNERMOST;
	assert_int_equal(of_null(API_ROLE_ACCESS), API_STEERING_RSS);
	device.offers = RTE_ETH_RSS_LEVEL_OUTERMOST;
	assert_int_equal(of_null(API_ROLE_CORE), API_STEERING_RSS);
}

static void by_what_is_inside(void **state)
{
	static const struct {
		uint64_t offers;
		uint32_t role;
	} can[] = {{RTE_ETH_RSS_GTPU, API_ROLE_CORE}, {RTE_ETH_RSS_LEVEL_INNERMOST, API_ROLE_CORE},
		{RTE_ETH_RSS_PPPOE, API_ROLE_ACCESS}, {RTE_ETH_RSS_S_VLAN | RTE_ETH_RSS_C_VLAN, API_ROLE_ACCESS}};

	device.takes = UINT64_MAX;
	for (uint32_t i = 0; i < RTE_DIM(can); i++) {
		device.offers = can[i].offers;
		assert_int_equal(of_null(can[i].role), API_STEERING_RSS_INNER);
		assert_int_equal(device.hash & can[i].offers, can[i].offers);
	}
	device.offers = RTE_ETH_RSS_LEVEL_MASK; // both levels
	assert_int_equal(of_null(API_ROLE_CORE), API_STEERING_RSS_INNER);
	assert_int_equal(device.hash & RTE_ETH_RSS_LEVEL_MASK, RTE_ETH_RSS_LEVEL_INNERMOST);
	assert_int_equal(device.made, 0); // its own hash comes first
}

static void by_rules(void **state)
{
	device.takes = RTE_ETH_RSS_GTPU;
	assert_int_equal(of_null(API_ROLE_CORE), API_STEERING_FLOW_RULES);
	assert_string_equal(device.item[0], "E4UG");
	assert_string_equal(device.item[1], "E6UG");
	assert_int_equal(device.priority, 0);
	forget(NULL);
	device.takes = RTE_ETH_RSS_IP;
	assert_int_equal(of_null(API_ROLE_CORE), API_STEERING_RSS); // it does not look behind the tunnel's header
	device.level = 2;
	assert_int_equal(of_null(API_ROLE_CORE), API_STEERING_FLOW_RULES);
	assert_string_equal(device.item[1], "E6UG");
	forget(NULL);
	device.takes = RTE_ETH_RSS_PPPOE;
	assert_int_equal(of_null(API_ROLE_ACCESS), API_STEERING_RSS);
	assert_int_equal(device.made, 0); // not for some subscribers alone
	device.takes |= RTE_ETH_RSS_VLAN;
	assert_int_equal(steering_of("net_null", API_ROLE_ACCESS, 0, API_OFFLOAD_AUTO), API_STEERING_FLOW_RULES);
	assert_string_equal(device.item[0], "EVVP");
	assert_string_equal(device.item[1], "EVV");
	assert_int_equal(device.priority, 2); // behind those of offload
}

// A device that takes fewer rules than it promised keeps none.
static void all_rules_or_none(void **state)
{
	device.takes = RTE_ETH_RSS_GTPU;
	device.room = 1;
	assert_int_equal(of_null(API_ROLE_CORE), API_STEERING_RSS);
	assert_int_equal(device.made, 1);
	assert_int_equal(device.rules, 0);
}

// A bad cable or transceiver is seen here alone: such frames never reach the software.
static void errors_are_counted(void **state)
{
	device.bad = 7;
	device.unsent = 3;
	struct api_port_row row = row_of("net_null", API_ROLE_CORE, 0, 0);

	assert_int_equal(row.rx_errors, 7);
	assert_int_equal(row.tx_errors, 3);
}

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	kit_start(&e);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(by_software, forget),
		cmocka_unit_test_setup(by_the_outer_header, forget),
		cmocka_unit_test_setup(by_what_is_inside, forget),
		cmocka_unit_test_setup(by_rules, forget),
		cmocka_unit_test_setup(all_rules_or_none, forget),
		cmocka_unit_test_setup(errors_are_counted, forget),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
