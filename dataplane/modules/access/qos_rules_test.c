// SPDX-License-Identifier: Apache-2.0
// QoS rules of a home's uplink (TS 23.501 §5.7.1.4): a packet's QFI by 5-tuple, DSCP and VLAN priority. Packets share a
// flow except for the row's field, so no 5-tuple entry may answer for another row.
#include "access/agf_test.h"
#include "testkit/mobile.h"
#include <errno.h>

#define ANY 0xff

// In the order of precedence; without a match the default QFI.
static const struct {
	uint8_t qfi, dscp, s_pcp, c_pcp; // ANY: not asked for
	uint16_t port;
} rules[] = {
	{1, 46, ANY, ANY, 0}, {2, ANY, 3, 5, 0}, {3, ANY, ANY, 5, 0}, {4, 10, 3, ANY, 0}, {6, ANY, ANY, ANY, 5060}};
#define DEFAULT_QFI 9

static const struct {
	uint8_t dscp, s_pcp, c_pcp;
	uint16_t port;
	uint8_t qfi;
} rows[] = {
	{0, 0, 0, 80, 9},
	{46, 0, 0, 80, 1},
	{46, 3, 5, 80, 1}, // the lower precedence
	{0, 3, 5, 80, 2},
	{0, 0, 5, 80, 3},
	{10, 0, 5, 80, 3},
	{10, 3, 0, 80, 4},
	{10, 0, 0, 80, 9},
	{0, 3, 0, 80, 9},
	{0, 0, 0, 5060, 6},
	{46, 0, 0, 5060, 1},
	{0, 7, 7, 80, 9},
};

static struct kit_mobile *home(void)
{
	static struct kit_mobile k;
	struct kit_session as = gateway_home(1);

	memset(&k, 0, sizeof(k));
	k.s = as.s;
	k.s.pdrs = k.s.fars = k.s.qers = 0;
	kit_pdr_ue(&k, API_FROM_ACCESS, NULL, 1)->match = API_PDR_ENDPOINT | API_PDR_UE_IP;
	kit_qer(&k, 20, DEFAULT_QFI);
	kit_pdr_qer(&k.pdr[0], 20);
	for (uint32_t i = 0; i < RTE_DIM(rules); i++) {
		struct api_pdr *p = kit_pdr_ue(&k, API_FROM_ACCESS, NULL, 1);

		p->match = API_PDR_ENDPOINT | API_PDR_UE_IP;
		p->precedence = 10 + i;
		kit_qer(&k, 1 + i, rules[i].qfi);
		kit_pdr_qer(p, 20); // as a subscriber's policer: the later QFI counts
		kit_pdr_qer(p, 1 + i);
		struct api_sdf *f = kit_sdf(&k, p);
		if (rules[i].dscp != ANY) {
			f->flags = API_SDF_TOS;
			f->tos = (uint8_t)(rules[i].dscp << 2);
			f->tos_mask = 0xfc;
		}
		f->s_pcp = rules[i].s_pcp == ANY ? 0 : (uint8_t)(1 << rules[i].s_pcp);
		f->c_pcp = rules[i].c_pcp == ANY ? 0 : (uint8_t)(1 << rules[i].c_pcp);
		if (rules[i].port != 0)
			f->remote_port[0] = f->remote_port[1] = rules[i].port;
	}
	kit_far_gtpu(&k, 1, API_FROM_CORE, as.far[0].path, as.far[0].teid);
	return &k;
}

static int put_mobile(const struct kit_mobile *k)
{
	kit_begin();
	kit_put_mobile("home-1", k);
	return kit_commit();
}

static void send_row(uint32_t i)
{
	static struct frame f;

	frame_payload(&f, 60);
	frame_udp(&f, 4000, rows[i].port);
	frame_ip(&f, gateway_ue(1, 4), FAR4, 17);
	f.at[1] = (uint8_t)(rows[i].dscp << 2);
	frame_ip4_sum(&f);
	gateway_from_home(&f, 1);
	f.at[14] |= (uint8_t)(rows[i].s_pcp << 5);
	f.at[18] |= (uint8_t)(rows[i].c_pcp << 5);
	kit_clear();
	assert_int_equal(kit_send("access", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count("core"), 1);
	uint8_t qfi = kit_frame("core", 0)->bytes[14 + 20 + 8 + 14] & 63;
	if (qfi != rows[i].qfi)
		fail_msg("row %u: QFI %u", i, qfi);
}

static void chosen(void **state)
{
	struct kit_mobile *k = home();

	assert_int_equal(put_mobile(k), 0);
	for (uint32_t i = 0; i < 4 * RTE_DIM(rows); i++)
		send_row(i % RTE_DIM(rows));
	for (uint32_t i = 0; i < 4 * RTE_DIM(rows); i++) // one after the same
		send_row(i / 4);
}

// If no filter needs more than a 5-tuple, one entry may answer for all classes.
static void changed(void **state)
{
	struct kit_mobile *k = home();

	for (uint16_t i = 0; i < k->s.sdfs; i++)
		k->sdf[i].s_pcp = k->sdf[i].c_pcp = k->sdf[i].flags = 0;
	for (uint16_t i = 0; i + 1 < k->s.sdfs; i++)
		k->sdf[i].remote_port[0] = k->sdf[i].remote_port[1] = 1;
	assert_int_equal(put_mobile(k), 0);
	for (int i = 0; i < 4; i++)
		send_row(0);
	assert_int_equal(put_mobile(home()), 0);
	for (uint32_t i = 0; i < RTE_DIM(rows); i++)
		send_row(i);
}

// A filter on priority and nothing else beyond the 5-tuple: no entry of the one class answers for the other.
static void priority_alone(void **state)
{
	struct kit_mobile *k = home();

	for (uint16_t i = 0; i < k->s.sdfs; i++)
		if (k->sdf[i].c_pcp == 0 || k->sdf[i].s_pcp != 0) {
			k->sdf[i].flags = k->sdf[i].s_pcp = k->sdf[i].c_pcp = 0;
			k->sdf[i].remote_port[0] = k->sdf[i].remote_port[1] = 1;
		}
	assert_int_equal(put_mobile(k), 0);
	for (uint32_t i = 0; i < 24; i++)
		send_row(i / 4 % 2 ? 4 : 0);
}

static void refused_without_endpoint(void **state)
{
	static struct kit_mobile k;

	kit_mobile(&k, 77, "10.45.0.7", NULL);
	kit_pdr_ue(&k, API_FROM_CORE, NULL, 1);
	kit_sdf(&k, &k.pdr[0])->c_pcp = 1;
	kit_far(&k, 1, API_FAR_DROP, API_FROM_CORE);
	kit_begin();
	kit_put_mobile("n4.77", &k);
	assert_int_equal(kit_commit(), EINVAL);
	assert_non_null(strstr(kit_error(), "VLAN tags"));
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test(chosen), cmocka_unit_test(changed),
		cmocka_unit_test(priority_alone), cmocka_unit_test(refused_without_endpoint)};

	return cmocka_run_group_tests(list, setup, NULL);
}
