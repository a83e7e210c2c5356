// SPDX-License-Identifier: Apache-2.0
// QFI to DSCP: outer headers on N3 and N9, the packet itself on N6; the FAR's Transport Level Marking comes first (TS
// 29.244 §8.2.12). Each packet passes twice: by the full nodes, and by the fast path.
#include "session/mobile_fixture.h"
#include "wire/ecn.h"
#include <errno.h>

#define NO_QFI 0xff
#define ECT0 2

enum direction { UP, DOWN, N9 };

static const struct {
	const char *name;
	enum direction direction;
	uint8_t qer, container; // QFIs; NO_QFI: none
	uint8_t marking; // of the FAR; 0xff: none
	uint8_t dscp; // that leaves; the packet comes with 10
	uint8_t six;
} rows[] = {
	{"N3, the QER's QFI", DOWN, 1, NO_QFI, 0xff, 46, 0},
	{"N3, DSCP 0 of the map", DOWN, 9, NO_QFI, 0xff, 0, 0},
	{"N3, the last QFI", DOWN, 63, NO_QFI, 0xff, 63, 0},
	{"N3, a QFI without", DOWN, 2, NO_QFI, 0xff, 26, 0},
	{"N3, no QFI", DOWN, NO_QFI, NO_QFI, 0xff, 26, 0},
	{"N3, marked by the FAR", DOWN, 1, NO_QFI, 0, 0, 0},
	{"N3 over IPv6", DOWN, 1, NO_QFI, 0xff, 46, 1},
	{"N9, the QFI that came", N9, NO_QFI, 1, 0xff, 46, 0},
	{"N9, the QER's comes first", N9, 9, 1, 0xff, 0, 0},
	{"N9, marked by the FAR", N9, NO_QFI, 1, 18, 18, 0},
	{"N6, the QFI that came", UP, NO_QFI, 1, 0xff, 34, 0},
	{"N6, the QER's comes first", UP, 9, 1, 0xff, 0, 0},
	{"N6, a QFI without", UP, NO_QFI, 2, 0xff, 10, 0},
	{"N6, no QFI", UP, NO_QFI, NO_QFI, 0xff, 10, 0},
	{"N6, marked by the FAR", UP, 1, 1, 12, 12, 0},
	{"N6, IPv6", UP, NO_QFI, 1, 0xff, 34, 1},
	{"N6, IPv6, marked by the FAR", UP, NO_QFI, NO_QFI, 12, 12, 1},
};

static int put_map(const char *path, const char *local, const char *peer, uint8_t first)
{
	struct api_path p = {.local = kit_address(local), .peer = kit_address(peer), .dscp = 26};

	p.qfi_dscp[1] = first;
	p.qfi_dscp[9] = 1 + 0;
	p.qfi_dscp[63] = 1 + 63;
	return kit_change(API_PATH, path, &p, sizeof(p));
}

static int put_instance(uint8_t first)
{
	struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");

	core.pool[core.pools++] = kit_address("2001:db8:1::/48");
	core.qfi_dscp[1] = first;
	core.qfi_dscp[9] = 1 + 0;
	return kit_change(API_INSTANCE, "core", &core, sizeof(core));
}

static int setup(void **state)
{
	fixture_start(NULL);
	assert_int_equal(put_map("gnb", "10.1.0.1", "10.1.0.2", 1 + 46), 0);
	assert_int_equal(put_map("gnb6", "fd00:1::1", "fd00:1::2", 1 + 46), 0);
	assert_int_equal(put_map("peer", "10.9.0.1", "10.9.0.2", 1 + 46), 0);
	assert_int_equal(put_instance(1 + 34), 0);
	return 0;
}

static void put_row(uint32_t i)
{
	struct kit_mobile *k = upf_session(2);

	if (rows[i].six)
		snprintf(k->far[1].path, sizeof(k->far[1].path), "gnb6");
	if (rows[i].direction == N9) {
		k->pdr[0].match = API_PDR_FTEID;
		k->far[0] = *kit_far_gtpu(k, 3, API_FROM_CORE, "peer", 0x700);
		k->far[0].id = 1;
		k->s.fars = 2;
	}
	k->far[rows[i].direction == DOWN].dscp = rows[i].marking;
	if (rows[i].qer != NO_QFI) {
		kit_qer(k, 1, rows[i].qer);
		kit_pdr_qer(&k->pdr[rows[i].direction == DOWN], 1);
	}
	put("s", k);
}

static const char *make(struct frame *f, uint32_t i)
{
	const char *ue = rows[i].six ? UE6 : UE4, *away = rows[i].six ? FAR6 : FAR4;
	int down = rows[i].direction == DOWN;

	ip_packet(f, down ? away : ue, down ? ue : away, 80);
	ip_traffic_class_set(rows[i].six ? 6 : 4, f->at, 10 << 2 | ECT0);
	if (!down)
		tunnel(f, "10.1.0.2", "10.1.0.1", 0x102, rows[i].container, API_PDU_UL);
	link_layer(f, down ? "internet" : "ran", 1);
	return down ? "internet" : "ran";
}

static void marked(void **state)
{
	static const char *const out[] = {[UP] = "internet", [DOWN] = "ran", [N9] = "peers"};

	for (uint32_t i = 0; i < RTE_DIM(rows); i++) {
		struct frame f;
		const char *port = make(&f, i);

		put_row(i);
		for (int times = 0; times < 2; times++) {
			send_frame(port, &f);
			assert_int_equal(kit_count(out[rows[i].direction]), 1);
			const uint8_t *ip = kit_frame(out[rows[i].direction], 0)->bytes + 14;
			uint8_t class = ip_traffic_class(ip[0] >> 4, ip);
			if (class != (rows[i].dscp << 2 | ECT0))
				fail_msg("%s, %s time: DSCP %u, ECN %u", rows[i].name, times ? "second" : "first",
					class >> 2, class & 3);
			assert_true(ip[0] >> 4 == 6 || ip4_checksum_ok(ip));
		}
		gone("s");
	}
}

// A map that changes holds for the next packet of a session that is there.
static void changed(void **state)
{
	struct frame f;

	put("s", upf_session(2));
	for (uint8_t dscp = 0; dscp < 64; dscp += 9) {
		assert_int_equal(put_instance(1 + dscp), 0);
		send_frame("ran", uplink_of(&f, UE4, FAR4, 0x102, 1));
		assert_int_equal(kit_frame("internet", 0)->bytes[15] >> 2, dscp);
	}
	gone("s");
}

static void refused_maps(void **state)
{
	assert_int_equal(put_map("gnb", "10.1.0.1", "10.1.0.2", 65), EINVAL);
	assert_int_equal(put_instance(65), EINVAL);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(marked), cmocka_unit_test(changed), cmocka_unit_test(refused_maps)};

	return cmocka_run_group_tests(list, setup, NULL);
}
