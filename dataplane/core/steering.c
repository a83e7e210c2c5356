// SPDX-License-Identifier: Apache-2.0
// Subscribers differ in inner fields: TEID or inner address on core ports, PPPoE session or VLANs on access ports. A
// hash of the outer IP header sends all packets of a gNB or UPF to one queue.
#include "core/steering.h"
#include "isthmus_api.h"
#include <rte_common.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#define LEVEL_INNERMOST 2 // of rte_flow_action_rss
#define ITEMS 5
#define RULES 2

uint64_t steering_hash(uint64_t offered, int access)
{
	uint64_t level = offered & RTE_ETH_RSS_LEVEL_MASK;

	if (access)
		return offered & (RTE_ETH_RSS_PPPOE | RTE_ETH_RSS_VLAN | RTE_ETH_RSS_IP);
	return (offered & (RTE_ETH_RSS_GTPU | RTE_ETH_RSS_IP)) | (level & RTE_ETH_RSS_LEVEL_INNERMOST);
}

uint8_t steering_of_hash(uint64_t hash, int access)
{
	uint64_t inner = access ? RTE_ETH_RSS_PPPOE | RTE_ETH_RSS_VLAN : RTE_ETH_RSS_GTPU | RTE_ETH_RSS_LEVEL_INNERMOST;

	return hash & inner ? API_STEERING_RSS_INNER : hash != 0 ? API_STEERING_RSS : API_STEERING_SOFTWARE;
}

struct rule {
	enum rte_flow_item_type item[ITEMS]; // up to END, which is 0
	uint64_t types;
	uint32_t level;
};

#define OVER(ip, hash, at)                                                                                             \
	{                                                                                                              \
		{RTE_FLOW_ITEM_TYPE_ETH, ip, RTE_FLOW_ITEM_TYPE_UDP, RTE_FLOW_ITEM_TYPE_GTPU}, hash, at                \
	}

// By TEID, where the device knows it; else by the addresses behind it.
static const struct rule core_rules[][RULES] = {
	{OVER(RTE_FLOW_ITEM_TYPE_IPV4, RTE_ETH_RSS_GTPU, 0), OVER(RTE_FLOW_ITEM_TYPE_IPV6, RTE_ETH_RSS_GTPU, 0)},
	{OVER(RTE_FLOW_ITEM_TYPE_IPV4, RTE_ETH_RSS_IP, LEVEL_INNERMOST),
		OVER(RTE_FLOW_ITEM_TYPE_IPV6, RTE_ETH_RSS_IP, LEVEL_INNERMOST)},
};
static const struct rule access_rules[][RULES] = {
	{{{RTE_FLOW_ITEM_TYPE_ETH, RTE_FLOW_ITEM_TYPE_VLAN, RTE_FLOW_ITEM_TYPE_VLAN, RTE_FLOW_ITEM_TYPE_PPPOES},
		 RTE_ETH_RSS_PPPOE, 0},
		{{RTE_FLOW_ITEM_TYPE_ETH, RTE_FLOW_ITEM_TYPE_VLAN, RTE_FLOW_ITEM_TYPE_VLAN}, RTE_ETH_RSS_VLAN, 0}},
};

// A rule with all that it points to.
struct words {
	struct rte_flow_attr attr;
	struct rte_flow_item item[ITEMS];
	struct rte_flow_action action[2];
	struct rte_flow_action_rss rss;
	uint16_t queue[STEERING_QUEUES];
};

static void say(struct words *w, const struct rule *r, uint16_t queues, uint32_t priority)
{
	*w = (struct words){.attr = {.ingress = 1, .priority = priority},
		.rss = {.types = r->types, .level = r->level, .queue_num = queues, .queue = w->queue}};
	for (uint16_t q = 0; q < queues; q++)
		w->queue[q] = q;
	for (uint32_t i = 0; i < ITEMS; i++)
		w->item[i].type = r->item[i];
	w->action[0] = (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &w->rss};
	w->action[1].type = RTE_FLOW_ACTION_TYPE_END;
}

static int put(uint16_t device, uint16_t queues, const struct rule *rule, uint32_t priority)
{
	struct rte_flow *flow[RULES];
	struct rte_flow_error error;
	struct words w[RULES];

	for (uint32_t i = 0; i < RULES; i++) {
		say(&w[i], &rule[i], queues, priority);
		if (rte_flow_validate(device, &w[i].attr, w[i].item, w[i].action, &error) != 0)
			return 0;
	}
	for (uint32_t i = 0; i < RULES; i++) {
		flow[i] = rte_flow_create(device, &w[i].attr, w[i].item, w[i].action, &error);
		if (flow[i] != NULL)
			continue;
		while (i-- > 0)
			rte_flow_destroy(device, flow[i], &error);
		return 0;
	}
	return 1;
}

int steering_rules(uint16_t device, uint16_t queues, int access, uint32_t priority)
{
	const struct rule(*choice)[RULES] = access ? access_rules : core_rules;
	uint32_t choices = access ? RTE_DIM(access_rules) : RTE_DIM(core_rules);

	for (uint32_t i = 0; i < choices; i++)
		if (put(device, queues, choice[i], priority))
			return 1;
	return 0;
}
