// SPDX-License-Identifier: Apache-2.0
// What the node gtsm costs a packet to us, all in cache: with no guard, and with one. gtsm-bench [ROUNDS]
#include "testkit/bench.h"
#include "testkit/frame.h"
#include "testkit/testkit.h"
#include <stdio.h>
#include <stdlib.h>

#define PACKETS 64

static struct frame f;

static void commit(void)
{
	if (kit_commit() == 0)
		return;
	fprintf(stderr, "refused: %s\n", kit_error());
	exit(1);
}

static void send_vector(const void *argument)
{
	for (int i = 0; i < PACKETS; i++)
		kit_send("core", f.at, f.length);
}

int main(int argc, char **argv)
{
	static const uint8_t peer[6] = {2, 0x11, 0, 0, 0, 1};
	uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
	struct api_gtsm want = {.hops = 1};

	kit_start(NULL);
	kit_begin();
	kit_port("core", API_ROLE_CORE);
	kit_interface("core", "core", "10.1.0.1/24", NULL);
	commit();
	frame_payload(&f, 0);
	frame_tcp(&f, 33000, 179);
	frame_ip(&f, "10.1.0.2", "10.1.0.1", 6);
	frame_ethernet(&f, port_by_name("core")->mac.addr_bytes, peer, 0x0800);
	kit_bench("no guard", "gtsm", NULL, rounds, PACKETS, send_vector, NULL);
	kit_begin();
	kit_put(API_GTSM, "core", &want, sizeof(want));
	commit();
	kit_bench("guard", "gtsm", NULL, rounds, PACKETS, send_vector, NULL);
	return 0;
}
