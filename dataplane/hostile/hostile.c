// SPDX-License-Identifier: Apache-2.0
// What the rows of hostile input have in common.
#include "hostile/hostile.h"

uint32_t all_out(void)
{
	return kit_count("access") + kit_count("core") + kit_count("internet");
}

void send_one(const char *port, const struct frame *f)
{
	assert_int_equal(kit_send(port, f->at, f->length), 0);
	kit_run();
}

static void one_variant(const struct bad *row, uint32_t variant)
{
	static struct frame f;
	struct snapshot b;

	kit_advance(1000003); // limits are fresh
	snapshot_take(&b);
	for (uint32_t i = 0; i < row->count; i++) {
		kit_clear();
		row->build(&f, i, variant);
		send_one(row->port, &f);
		if (all_out() != 0)
			fail_msg("%s, variant %u: packet %u made %u frames leave", row->row, variant, i, all_out());
		if (i % 16 == 0 && !gateway_undisturbed())
			fail_msg("%s, variant %u: others were disturbed", row->row, variant);
	}
	print_message("  %s, variant %u\n", row->row, variant);
	snapshot_compare(&b, row->reason, row->count);
	assert_true(gateway_undisturbed());
}

void bad_rows(const struct bad *list, uint32_t rows)
{
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t variant = 0; variant < VARIANTS; variant++)
			if (!(variant & INNER6) || !list[r].only4)
				one_variant(&list[r], variant);
}

void inner_udp(struct frame *f, uint32_t variant, int uplink)
{
	frame_payload(f, 60);
	frame_udp(f, 4000, 5000);
	frame_ip(f, uplink ? ue_of(variant) : far_of(variant), uplink ? far_of(variant) : ue_of(variant), 17);
}

const uint8_t *out_ip(const char *port, uint32_t i, struct ip_info *info)
{
	const struct kit_frame *k = kit_frame(port, i);
	struct eth_info eth = {0};

	assert_int_equal(eth_parse(k->bytes, k->length, &eth), ETH_OK);
	uint32_t at = eth.length + (eth.ethertype == ETH_TYPE_PPPOE_SESSION ? 8 : 0);
	assert_int_equal(ip_parse(k->bytes + at, k->length - at, k->length - at, info), IP_OK);
	assert_true(info->version == 6 || ip4_checksum_ok(k->bytes + at));
	return k->bytes + at;
}
