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

// Ports of the fixture become devices; frames that come in fit with another header.
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

// The frame passes the software, which tells the device.
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

#endif
