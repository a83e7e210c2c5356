// SPDX-License-Identifier: Apache-2.0
// G-PDUs of every action: the headers in front of a packet, read back.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "forward/tunnel.h"

static struct worker w;

// TS 23.501 §5.7.1.1, TS 29.244 §8.2.64, in as many words.
static int goes_on(uint8_t qer, uint8_t far, int deleted, struct container came, struct container *goes)
{
	int came_one = came.pdu_type != API_PDU_NONE;

	goes->qfi = qer != GTPU_NO_QFI ? qer : !deleted && came_one ? came.qfi : GTPU_NO_QFI;
	goes->pdu_type = !deleted && came_one ? came.pdu_type : far;
	return goes->qfi != GTPU_NO_QFI && goes->pdu_type != API_PDU_NONE;
}

static void containers(void **state)
{
	static const uint8_t qfi[] = {GTPU_NO_QFI, 0, 9, 63};

	for (uint32_t i = 0; i < 4 * 3 * 2 * 4 * 3; i++) {
		uint8_t qer = qfi[i % 4], far = (uint8_t)(i / 4 % 3);
		int deleted = i / 12 % 2 != 0 || far == API_PDU_NONE;
		struct container came = {.qfi = qfi[i / 24 % 4], .pdu_type = (uint8_t)(i / 96)}, goes, want;
		struct action a = {.qfi = qer, .flags = (uint8_t)(ACTION_TUNNEL | far << ACTION_PDU_SHIFT)};

		if ((came.qfi == GTPU_NO_QFI) != (came.pdu_type == API_PDU_NONE))
			continue;
		a.flags |= deleted ? ACTION_WITHOUT_CONTAINER : 0;
		assert_int_equal(tunnel_container(&a, came, &goes), goes_on(qer, far, deleted, came, &want));
		if (goes_on(qer, far, deleted, came, &want))
			assert_memory_equal(&goes, &want, sizeof(want));
	}
}

static void make_path(struct path *p)
{
	static const uint8_t ip4[20] = {0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 1, 0, 2};

	memset(p, 0, sizeof(*p));
	p->want.dscp = 12;
	p->want.qfi_dscp[9] = 1 + 34;
	p->outer =
		(struct outer){.version = 4, .class = 12 << 2, .by_qfi = 1, .ip4_sum = checksum_fold(ip4_sum20(ip4))};
	for (int i = 0; i < 2; i++) {
		uint32_t gtpu = i ? GTPU_HEADER_CONTAINER : GTPU_HEADER;
		uint8_t *h = p->outer.header[i] + OUTER_BYTES - 28 - gtpu;

		p->outer.length[i] = (uint8_t)(28 + gtpu);
		memcpy(h, ip4, sizeof(ip4));
		gtpu_put_gpdu(h + 28, 0, i ? 0 : GTPU_NO_QFI, GTPU_PDU_UL, 0);
	}
}

static void headers(void **state)
{
	uint8_t room[256], *end = room + 128;
	struct path p;

	make_path(&p);
	worker_identify_from(&w, 0x1234, 1);
	for (int i = 0; i < 4; i++) {
		struct container c = {
			.qfi = (uint8_t)(i & 1 ? 9 : 5), .pdu_type = (uint8_t)(i & 1 ? API_PDU_DL : API_PDU_UL)};
		const struct action a = {
			.teid = 0x89abcdef, .dscp = i == 3 ? 46 : ACTION_NO_DSCP, .rqi = 1, .flags = ACTION_TUNNEL};
		uint32_t container = i != 2, length = p.outer.length[container] + 100;
		uint8_t *ip = end - p.outer.length[container];
		uint8_t class = tunnel_class(&a, &p.outer, &p, c.qfi);
		struct gtpu_info g;

		assert_int_equal(class >> 2, i == 3 ? 46 : c.qfi == 9 ? 34 : 12);
		memset(room, 0x5a, sizeof(room));
		tunnel_put(end, &p.outer, i & 1 ? OUTER_BYTES : OUTER_LENGTH_MAX, &a, (int)container, c);
		tunnel_finish(&w, NULL, ip, &p.outer, &a, length, class | ECN_CE);
		assert_int_equal(end[0], 0x5a);
		assert_true(ip4_checksum_ok(ip));
		assert_int_equal(load16(ip + 2), length);
		assert_int_equal(ip[1], class | ECN_CE);
		assert_int_equal(load16(ip + 24), length - 20);
		assert_int_equal(gtpu_parse(ip + 28, end - ip - 28, length - 28, &g), GTPU_OK);
		assert_int_equal(g.teid, 0x89abcdef);
		assert_int_equal(g.qfi, container ? c.qfi : GTPU_NO_QFI);
		if (container) // TS 38.415 §5.5.2.1: downlink alone has the RQI
			assert_int_equal(end[-2], c.pdu_type == API_PDU_DL ? 0x40 | c.qfi : c.qfi);
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test(containers), cmocka_unit_test(headers)};

	return cmocka_run_group_tests(list, NULL, NULL);
}
