// SPDX-License-Identifier: Apache-2.0
// A device for tests, in place of DPDK's rte_flow, rte_mtr and links. It records its rules, refuses those that the test
// says, and applies its flows to frames. It has its own device numbers.
#ifndef OFFLOAD_RECORDER_TEST_H
#define OFFLOAD_RECORDER_TEST_H

#include "wire/bytes.h"
#include "wire/checksum.h"
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_mtr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDER_DEVICES 8

struct rte_flow_action_handle {
	uint64_t packets, bytes;
};

struct rte_flow {
	struct rte_flow *next;
	uint16_t device, out, queue;
	struct rte_flow_attr attr;
	char items[64], actions[64]; // a letter each
	uint8_t spec[160], mask[160], integrity; // headers without gaps; levels that must be good
	uint32_t length, decap, encap, meter, mark;
	uint8_t goes[128];
	struct rte_flow_action_handle *count;
};

static struct {
	struct rte_flow *first;
	uint32_t flows, room; // that the device has, and may have
	uint32_t created; // since the start
	uint32_t counters, meters, profiles, policies;
	uint8_t refuses[256]; // by type of action
	uint8_t down[RECORDER_DEVICES];
	uint8_t red; // meters drop
	uint64_t dropped; // by meters
	struct rte_mtr_meter_profile profile; // the last
	char colours[RTE_COLORS + 1]; // of the last policy: p passes, d drops
	rte_eth_dev_cb_fn reset;
	// what left the device, past the software
	uint8_t frame[2048];
	uint32_t frame_length;
	uint16_t frame_out;
	uint32_t mark; // of what is left to the software; 0: none
} recorder = {.room = UINT32_MAX};

// ---- rte_flow -------------------------------------------------------------------------------------------------------

static inline int recorder_fails(struct rte_flow_error *error, const char *why)
{
	*error = (struct rte_flow_error){.message = why};
	return -ENOTSUP;
}

static inline void recorder_header(struct rte_flow *f, const struct rte_flow_item *i, uint32_t at, uint32_t n)
{
	memcpy(f->spec + at, i->spec, n);
	memcpy(f->mask + at, i->mask, n);
	f->length = at + n;
}

static inline void recorder_item(struct rte_flow *f, const struct rte_flow_item *i)
{
	static const struct {
		enum rte_flow_item_type type;
		char letter;
		uint32_t bytes, skip;
	} known[] = {{RTE_FLOW_ITEM_TYPE_ETH, 'E', 14, 0}, {RTE_FLOW_ITEM_TYPE_VLAN, 'V', 4, 0},
		{RTE_FLOW_ITEM_TYPE_IPV4, '4', 20, 0}, {RTE_FLOW_ITEM_TYPE_IPV6, '6', 40, 0},
		{RTE_FLOW_ITEM_TYPE_UDP, 'U', 8, 0}, {RTE_FLOW_ITEM_TYPE_TCP, 'T', 20, 0},
		{RTE_FLOW_ITEM_TYPE_GTP, 'G', 8, 0}, {RTE_FLOW_ITEM_TYPE_GTP_PSC, 'C', 3, 4}};
	char letter = '?';

	for (uint32_t k = 0; k < RTE_DIM(known); k++)
		if (known[k].type == i->type) {
			letter = known[k].letter;
			recorder_header(f, i, f->length + known[k].skip, known[k].bytes);
			f->length += letter == 'C'; // the next extension's type
		}
	if (i->type == RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT) {
		letter = 'P';
		f->device = ((const struct rte_flow_item_ethdev *)i->spec)->port_id;
	}
	if (i->type == RTE_FLOW_ITEM_TYPE_INTEGRITY) {
		const struct rte_flow_item_integrity *good = i->spec;

		letter = 'I';
		f->integrity |= good->l3_ok && good->ipv4_csum_ok && good->l3_len_ok ? (uint8_t)(1 << good->level) : 0;
	}
	f->items[strlen(f->items)] = letter;
}

static inline void recorder_action(struct rte_flow *f, const struct rte_flow_action *a)
{
	char letter = '?';

	switch ((int)a->type) {
	case RTE_FLOW_ACTION_TYPE_METER:
		letter = 'm';
		f->meter = ((const struct rte_flow_action_meter *)a->conf)->mtr_id;
		break;
	case RTE_FLOW_ACTION_TYPE_INDIRECT:
		letter = 'c';
		f->count = (struct rte_flow_action_handle *)(uintptr_t)a->conf;
		break;
	case RTE_FLOW_ACTION_TYPE_RAW_DECAP:
		letter = 'd';
		f->decap = (uint32_t)((const struct rte_flow_action_raw_decap *)a->conf)->size;
		break;
	case RTE_FLOW_ACTION_TYPE_RAW_ENCAP:
		letter = 'e';
		f->encap = (uint32_t)((const struct rte_flow_action_raw_encap *)a->conf)->size;
		memcpy(f->goes, ((const struct rte_flow_action_raw_encap *)a->conf)->data, f->encap);
		break;
	case RTE_FLOW_ACTION_TYPE_DEC_TTL:
		letter = 't';
		break;
	case RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT:
		letter = 'o';
		f->out = ((const struct rte_flow_action_ethdev *)a->conf)->port_id;
		break;
	case RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR:
		letter = 's';
		f->out = ((const struct rte_flow_action_ethdev *)a->conf)->port_id;
		break;
	case RTE_FLOW_ACTION_TYPE_MARK:
		letter = 'k';
		f->mark = ((const struct rte_flow_action_mark *)a->conf)->id;
		break;
	case RTE_FLOW_ACTION_TYPE_QUEUE:
		letter = 'q';
		f->queue = ((const struct rte_flow_action_queue *)a->conf)->index;
		break;
	}
	f->actions[strlen(f->actions)] = letter;
}

int rte_flow_validate(uint16_t device, const struct rte_flow_attr *attr, const struct rte_flow_item item[],
	const struct rte_flow_action action[], struct rte_flow_error *error)
{
	for (; action->type != RTE_FLOW_ACTION_TYPE_END; action++)
		if (recorder.refuses[action->type])
			return recorder_fails(error, "the action is not supported");
	return 0;
}

struct rte_flow *rte_flow_create(uint16_t device, const struct rte_flow_attr *attr, const struct rte_flow_item item[],
	const struct rte_flow_action action[], struct rte_flow_error *error)
{
	if (rte_flow_validate(device, attr, item, action, error) != 0)
		return NULL;
	if (recorder.flows == recorder.room) {
		recorder_fails(error, "the table is full");
		return NULL;
	}
	struct rte_flow *f = calloc(1, sizeof(*f));
	*f = (struct rte_flow){.next = recorder.first, .device = device, .attr = *attr};
	for (; item->type != RTE_FLOW_ITEM_TYPE_END; item++)
		recorder_item(f, item);
	for (; action->type != RTE_FLOW_ACTION_TYPE_END; action++)
		recorder_action(f, action);
	recorder.first = f;
	recorder.flows++;
	recorder.created++;
	return f;
}

int rte_flow_destroy(uint16_t device, struct rte_flow *flow, struct rte_flow_error *error)
{
	struct rte_flow **at = &recorder.first;

	while (*at != NULL && *at != flow)
		at = &(*at)->next;
	if (*at == NULL)
		return recorder_fails(error, "there is no such flow");
	*at = flow->next;
	recorder.flows--;
	free(flow);
	return 0;
}

struct rte_flow_action_handle *rte_flow_action_handle_create(uint16_t device,
	const struct rte_flow_indir_action_conf *conf, const struct rte_flow_action *action,
	struct rte_flow_error *error)
{
	if (recorder.refuses[action->type]) {
		recorder_fails(error, "not implemented");
		return NULL;
	}
	recorder.counters++;
	return calloc(1, sizeof(struct rte_flow_action_handle));
}

int rte_flow_action_handle_destroy(uint16_t device, struct rte_flow_action_handle *handle, struct rte_flow_error *error)
{
	recorder.counters--;
	free(handle);
	return 0;
}

int rte_flow_action_handle_query(
	uint16_t device, const struct rte_flow_action_handle *handle, void *data, struct rte_flow_error *error)
{
	*(struct rte_flow_query_count *)data = (struct rte_flow_query_count){
		.hits_set = 1, .bytes_set = 1, .hits = handle->packets, .bytes = handle->bytes};
	return 0;
}

// ---- rte_mtr, links -------------------------------------------------------------------------------------------------

int rte_mtr_meter_profile_add(
	uint16_t device, uint32_t id, struct rte_mtr_meter_profile *profile, struct rte_mtr_error *error)
{
	if (recorder.refuses[RTE_FLOW_ACTION_TYPE_METER])
		return -ENOTSUP;
	recorder.profile = *profile;
	recorder.profiles++;
	return 0;
}

int rte_mtr_meter_profile_delete(uint16_t device, uint32_t id, struct rte_mtr_error *error)
{
	recorder.profiles -= recorder.profiles != 0;
	return 0;
}

int rte_mtr_meter_policy_add(
	uint16_t device, uint32_t id, struct rte_mtr_meter_policy_params *policy, struct rte_mtr_error *error)
{
	for (int c = 0; c < RTE_COLORS; c++)
		recorder.colours[c] = policy->actions[c]->type == RTE_FLOW_ACTION_TYPE_DROP ? 'd' : 'p';
	recorder.policies++;
	return 0;
}

int rte_mtr_meter_policy_delete(uint16_t device, uint32_t id, struct rte_mtr_error *error)
{
	recorder.policies -= recorder.policies != 0;
	return 0;
}

int rte_mtr_create(uint16_t device, uint32_t id, struct rte_mtr_params *params, int shared, struct rte_mtr_error *error)
{
	recorder.meters++;
	return 0;
}

int rte_mtr_destroy(uint16_t device, uint32_t id, struct rte_mtr_error *error)
{
	recorder.meters -= recorder.meters != 0;
	return 0;
}

int rte_mtr_stats_read(uint16_t device, uint32_t id, struct rte_mtr_stats *stats, uint64_t *mask, int clear,
	struct rte_mtr_error *error)
{
	*stats = (struct rte_mtr_stats){.n_pkts_dropped = recorder.dropped};
	return 0;
}

int rte_eth_link_get_nowait(uint16_t device, struct rte_eth_link *link)
{
	*link = (struct rte_eth_link){.link_status = device < RECORDER_DEVICES && !recorder.down[device]};
	return 0;
}

int rte_eth_dev_callback_register(uint16_t device, enum rte_eth_event_type event, rte_eth_dev_cb_fn fn, void *arg)
{
	recorder.reset = fn;
	return 0;
}

// The device forgets all that it had.
static inline void recorder_reset(uint16_t device)
{
	while (recorder.first != NULL) {
		struct rte_flow *f = recorder.first;

		recorder.first = f->next;
		free(f->count);
		free(f);
	}
	recorder.flows = recorder.counters = recorder.meters = recorder.profiles = recorder.policies = 0;
	recorder.reset(device, RTE_ETH_EVENT_INTR_RESET, NULL, NULL);
}

// ---- frames ---------------------------------------------------------------------------------------------------------

static inline const struct rte_flow *recorder_match(uint16_t device, const uint8_t *frame, uint32_t length)
{
	const struct rte_flow *best = NULL;

	for (const struct rte_flow *f = recorder.first; f != NULL; f = f->next) {
		int differs = f->device != device || f->length > length;

		for (uint32_t i = 0; !differs && i < f->length; i++)
			differs = ((frame[i] ^ f->spec[i]) & f->mask[i]) != 0;
		if (!differs && (best == NULL || f->attr.priority < best->attr.priority))
			best = f;
	}
	return best;
}

// A device's writes to the added header: lengths, and the checksum.
static inline void recorder_finish(uint8_t *frame, uint32_t encap, uint32_t length)
{
	uint32_t at = 14;

	while (load16(frame + at - 2) == 0x8100 || load16(frame + at - 2) == 0x88a8)
		at += 4;
	if (load16(frame + at - 2) == 0x8864)
		store16(frame + at + 4, (uint16_t)(length - at - 6));
	if (encap < at + 36 || load16(frame + at - 2) != 0x0800)
		return;
	store16(frame + at + 2, (uint16_t)(length - at));
	store16(frame + at + 24, (uint16_t)(length - at - 20));
	store16(frame + at + 30, (uint16_t)(length - at - 36));
	ip4_checksum_set(frame + at);
}

// A frame enters the device. 1: it left, as recorder.frame; 0: a meter dropped it; -1: to the software unchanged; -2:
// to the software as recorder.frame, with recorder.mark.
static inline int recorder_receive(uint16_t device, const uint8_t *frame, uint32_t length)
{
	const struct rte_flow *f = recorder_match(device, frame, length);
	uint8_t *to = recorder.frame;

	if (f == NULL || strchr(f->actions, 's') != NULL)
		return -1;
	if (f->meter != 0 && recorder.red) {
		recorder.dropped++;
		return 0;
	}
	if (f->count != NULL) {
		f->count->packets++;
		f->count->bytes += length;
	}
	memcpy(to, f->goes, f->encap);
	memcpy(to + f->encap, frame + f->decap, length - f->decap);
	uint8_t *ip = to + f->encap;
	if (strchr(f->actions, 't') != NULL && ip[0] >> 4 == 4)
		ip4_decrement_ttl(ip);
	else if (strchr(f->actions, 't') != NULL)
		ip[7]--;
	recorder.frame_length = length - f->decap + f->encap;
	recorder.frame_out = f->out;
	recorder_finish(to, f->encap, recorder.frame_length);
	recorder.mark = f->mark;
	return f->mark != 0 ? -2 : 1;
}

#endif
