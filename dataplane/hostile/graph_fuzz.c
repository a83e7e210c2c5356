// SPDX-License-Identifier: Apache-2.0
// Anything at all through the whole graph: subscribers, tunnels, firewall, policers, scheduler, neighbours, fragments.
//
// An input is a sequence of packets: port (1 byte), time that passes before it (1 byte, units of 4 ms), length (2 bytes, big
// endian), frame. After each input the counters must add up, and when time has passed no buffer may still be in use.
#include "core/engine.h"
#include "hostile/busy_gateway.h"
#include "wire/bytes.h"
#include <stdio.h>
#include <stdlib.h>

#define MAX_PACKETS 64
#define HEAD 4
#define SETTLE_STEPS 8
#define SCHEDULER_STEPS 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const ports[] = {"access", "core", "internet"};
static uint32_t idle_buffers;

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "broken: %s\n", what);
	kit_print();
	abort();
}

// Longer than reassembly (1 s) and neighbours (4 s) hold packets; then until the scheduler, which sends a burst of each pipe
// at every step of the clock, has nothing left.
static void settle(void)
{
	for (int i = 0; i < SETTLE_STEPS; i++)
		kit_advance(1000003);
	for (int i = 0; i < SCHEDULER_STEPS && kit_totals().held != 0; i++)
		kit_advance(10007);
	kit_clear();
}

static void start(void)
{
	static int started;

	if (started)
		return;
	started = 1;
	busy_gateway_start();
	settle();
	idle_buffers = kit_buffers_in_use();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 0;

	start();
	for (int n = 0; n < MAX_PACKETS && size - at > HEAD; n++) {
		const char *port = ports[data[at] % 3];
		uint32_t pause = data[at + 1], length = load16(data + at + 2);

		at += HEAD;
		length = length > size - at ? (uint32_t)(size - at) : length;
		if (pause != 0)
			kit_advance(pause * 4000);
		if (length != 0 && kit_send(port, data + at, length) == 0)
			kit_run();
		at += length;
	}
	check(kit_balance(), "the counters do not add up");
	settle();
	check(kit_balance(), "the counters do not add up after time passed");
	check(kit_totals().held == 0, "packets are still held after time passed");
	check(kit_buffers_in_use() == idle_buffers, "buffers are lost");
	return 0;
}
