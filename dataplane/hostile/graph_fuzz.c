// SPDX-License-Identifier: Apache-2.0
// Anything at all through the whole graph: subscribers, tunnels, firewall, policers, scheduler, neighbours, fragments.
//
// An input is a sequence of packets: port (1 byte), time that passes before it (1 byte, units of 4 ms), length (2 bytes, big
// endian), frame. After each input the counters must add up, and when time has passed no buffer may still be in use.
#include "core/engine.h"
#include "hostile/busy_gateway.h"
#include "wire/bytes.h"

#define MAX_PACKETS 64
#define HEAD 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const ports[] = {"access", "core", "internet"};
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 0;

	busy_gateway_start();
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
	busy_gateway_rest();
	return 0;
}
