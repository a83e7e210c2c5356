// SPDX-License-Identifier: Apache-2.0
// The identification of outer IPv4 headers (RFC 6864 §4.3), so that receivers reassemble the right fragments (RFC
// 4963). Three workers, two peers, the fast path and the full nodes.
#include "core/worker.h"
#include "session/mobile_fixture.h"

#define WORKERS 3u // which share the space as four would
#define EACH (65536 / 4) // packets of a worker to a peer

static int start(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = WORKERS;
	for (uint32_t i = 0; i < WORKERS; i++)
		e.cpu[i] = -1;
	fixture_start(&e);
	kit_begin();
	kit_neighbour("n3", "10.1.0.3", mac_gnb);
	kit_path("gnb2", "10.1.0.1", "10.1.0.3");
	for (uint32_t n = 1; n <= 2 * WORKERS; n++) {
		struct kit_mobile *k = upf_session(n);
		char name[8];

		k->s.worker = n % WORKERS;
		if (n > WORKERS)
			snprintf(k->far[1].path, sizeof(k->far[1].path), "gnb2");
		snprintf(name, sizeof(name), "s%u", n);
		kit_put_mobile(name, k);
	}
	commit();
	return 0;
}

static uint8_t seen[2][65536];

static void look(void)
{
	for (uint32_t i = 0; i < kit_count("ran"); i++) {
		const uint8_t *ip = kit_frame("ran", i)->bytes + 14;
		int peer = ip[19] == 3;

		assert_true(ip4_checksum_ok(ip));
		assert_int_equal(ip[6] & 0x40, 0); // TS 29.281 §4.2.2
		assert_int_equal(seen[peer][load16(ip + 4)]++, 0);
	}
	kit_clear();
}

// As many as there are, to either peer, each once.
static void each_once_a_peer(void **state)
{
	static struct frame f;
	uint64_t full = kit_node_packets("gtpu-encap");

	kit_clear();
	for (uint32_t n = 0; n < EACH; n++) {
		for (uint32_t ue = 1; ue <= 2 * WORKERS; ue++) {
			char address[16];

			snprintf(address, sizeof(address), "10.45.0.%u", ue);
			ip_packet(&f, FAR4, address, 20);
			if (n % 8 == 7) // a fragment: the full nodes
				store16(f.at + 6, 0x2000), frame_ip4_sum(&f);
			link_layer(&f, "internet", 1);
			assert_int_equal(kit_send("internet", f.at, f.length), 0);
		}
		if (n % 8 == 7) {
			kit_run();
			look();
		}
	}
	full = kit_node_packets("gtpu-encap") - full;
	assert_in_range(full, EACH / 8 * 2 * WORKERS, EACH * WORKERS);
	for (int peer = 0; peer < 2; peer++) {
		uint32_t sum = 0;

		for (uint32_t i = 0; i < 65536; i++)
			sum += seen[peer][i];
		assert_int_equal(sum, EACH * WORKERS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_once_a_peer)};

	return cmocka_run_group_tests(tests, start, NULL);
}
