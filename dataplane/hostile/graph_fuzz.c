// SPDX-License-Identifier: Apache-2.0
// Arbitrary packets through the whole graph: subscribers, tunnels, firewall, policers, scheduler, neighbours,
// fragments, mobile sessions.
//
// An input is a sequence of packets: port (1 byte), time before it (1 byte, units of 4 ms), length (2 bytes, big
// endian), frame. A port from 0xc0 on: the frame is only the inner packet for a mobile session; from 0xe0 on: a session
// changes (busy_mobile.h). After each input the counters must add up, and when time has passed no buffer may be in use.
#include "core/engine.h"
#include "hostile/busy_gateway.h"
#include "hostile/busy_mobile.h"
#include "wire/bytes.h"

#define MAX_PACKETS 64
#define HEAD 4
#define MOBILE 0xc0
#define CHANGE 0xe0

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void packet(uint8_t op, const uint8_t *bytes, uint32_t length)
{
	static const char *const ports[] = {"access", "core", "internet"};
	static struct frame f;

	if (op >= CHANGE) {
		busy_mobile_change(op & 0x1f, length ? bytes[0] : 0);
		return;
	}
	if (op >= MOBILE) {
		const char *port = busy_mobile_frame(&f, op & 0x1f, bytes, length);

		if (kit_send(port, f.at, f.length) == 0)
			kit_run();
	} else if (length != 0 && kit_send(ports[op % 3], bytes, length) == 0) {
		kit_run();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 0;

	busy_gateway_start();
	for (int n = 0; n < MAX_PACKETS && size - at > HEAD; n++) {
		uint8_t op = data[at];
		uint32_t pause = data[at + 1], length = load16(data + at + 2);

		at += HEAD;
		length = length > size - at ? (uint32_t)(size - at) : length;
		if (pause != 0)
			kit_advance(pause * 4000);
		packet(op, data + at, length);
		at += length;
	}
	busy_mobile_restore();
	busy_gateway_rest();
	return 0;
}
