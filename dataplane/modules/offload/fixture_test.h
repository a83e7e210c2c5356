// SPDX-License-Identifier: Apache-2.0
// The fixture of tunnels, with the recording device behind its ports.
#ifndef OFFLOAD_FIXTURE_TEST_H
#define OFFLOAD_FIXTURE_TEST_H

#include "core/port.h"
#include "gtpu/tunnel_fixture.h"
#include "offload/recorder_test.h"

#define RAN 0
#define PEERS 1
#define INTERNET 2
#define HOMES 3
#define SPARE 4

// Ports of the fixture become devices; received frames have room for another header.
static inline void set_offload(uint32_t want)
{
	static const char *const name[] = {"ran", "peers", "internet", "homes"};

	for (int i = 0; i < 4; i++) {
		struct port *p = port_by_name(name[i]);

		p->device = i;
		p->want.offload = want;
		p->offload.asked = 0;
		p->offload.level = API_OFFLOAD_NONE;
		p->mtu = i == INTERNET || i == HOMES ? 1400 : 1444;
	}
	kit_advance(20000);
}

// Time enough for all entries to be looked at.
static inline void settle_entries(void)
{
	kit_advance(20000);
}

static inline const struct port *port(const char *name)
{
	return port_by_name(name);
}

// The frame passes the software, which installs its flow in the device.
static inline void teach(const char *name, const struct frame *f)
{
	kit_clear();
	assert_int_equal(kit_send(name, f->at, f->length), 0);
	kit_run();
	settle_entries();
}

static inline void nothing_left(void)
{
	settle_entries();
	assert_int_equal(recorder.flows + recorder.counters + recorder.meters, 0);
	assert_int_equal(recorder.profiles + recorder.policies, 0);
	for (const char *const *p = (const char *const[]){"ran", "peers", "internet", NULL}; *p != NULL; p++)
		assert_int_equal(port(*p)->offload.entries, 0);
}

static inline void expect_out(uint16_t in, const struct frame *f, uint16_t out, const struct frame *want)
{
	static uint8_t got[2048];

	assert_int_equal(recorder_receive(in, f->at, f->length), 1);
	assert_int_equal(recorder.frame_out, out);
	assert_int_equal(recorder.frame_length, want->length);
	memcpy(got, recorder.frame, want->length);
	settle(got, want);
	assert_memory_equal(got, want->at, want->length);
}

static inline const struct rte_flow *entry_flow_of(uint16_t device)
{
	for (const struct rte_flow *f = recorder.first; f != NULL; f = f->next)
		if (f->device == device && f->attr.priority == 1)
			return f;
	fail_msg("device %u has no entry", device);
	return NULL;
}

static inline struct kit_mobile *counted_session(void)
{
	struct kit_mobile *k = upf_session(0x21);

	kit_urr(k, 1);
	for (int i = 0; i < 2; i++)
		kit_pdr_urr(&k->pdr[i], 1);
	return k;
}

#endif
