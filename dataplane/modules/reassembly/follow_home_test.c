// SPDX-License-Identifier: Apache-2.0
// Later fragments follow their first one: wireline subscribers, by QinQ and PPPoE, with QoS rules and lists on ports.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "reassembly/split_test.h"
#include "testkit/gateway.h"
#include "testkit/mobile.h"
#include "testkit/reasons.h"

#define DNS 53

static uint32_t next_id = 1;

// QFI 5 and URR 2 are DNS's, QFI 9 and URR 1 all other packets'.
static void put_home(uint32_t home)
{
	struct kit_session as = gateway_home(home);
	static struct kit_mobile k;

	memset(&k, 0, sizeof(k));
	k.s = as.s;
	k.s.pdrs = k.s.fars = k.s.qers = 0;
	for (uint32_t i = 0; i < 4; i++) {
		struct api_pdr *p = i % 2 ? kit_pdr_fteid(&k, API_FROM_CORE, "10.0.0.1", as.pdr[1].teid, 2)
					  : kit_pdr_ue(&k, API_FROM_ACCESS, NULL, 1);

		if (i % 2)
			p->local = as.pdr[1].local;
		else
			p->match = API_PDR_ENDPOINT | API_PDR_UE_IP;
		if (i >= 2) {
			struct api_sdf *f = kit_sdf(&k, p);

			p->precedence = 10;
			f->flags = API_SDF_PROTOCOL;
			f->protocol = 17;
			f->remote_port[0] = f->remote_port[1] = DNS;
		}
		kit_pdr_qer(p, 1 + i / 2);
		kit_pdr_urr(p, 1 + i / 2);
	}
	kit_far_gtpu(&k, 1, API_FROM_CORE, as.far[0].path, as.far[0].teid);
	kit_far(&k, 2, API_FAR_FORWARD, API_FROM_ACCESS)->outer = API_OUTER_ENDPOINT;
	for (uint32_t i = 1; i <= 2; i++) {
		kit_qer(&k, i, i == 2 ? 5 : 9);
		kit_urr(&k, i)->flags = API_URR_COUNT_PACKETS;
	}
	kit_begin();
	kit_put_mobile(gateway_home_name(home), &k);
	if (kit_commit() != 0)
		fail_msg("refused: %s", kit_error());
}

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.max_fragments = 256; // 128 of packets that pass through, of a line 32
	gateway_start(&e);
	put_home(HOME_QINQ);
	put_home(HOME_PPPOE);
	return 0;
}

struct flow {
	uint32_t home;
	int family, up;
	uint16_t port; // of the far side
};

static void make_piece(struct frame *f, const struct flow *x, int i, int out)
{
	const char *ue = gateway_ue(x->home, x->family), *far = x->family == 4 ? "198.51.100.9" : "2001:db8:ffff::9";
	static struct frame all;

	frame_payload(&all, 90);
	frame_udp(&all, x->up ? 4000 : x->port, x->up ? x->port : 4000);
	frame_ip(&all, x->up ? ue : far, x->up ? far : ue, 17);
	piece(f, all.at, i, next_id);
	if (!out)
		x->up ? gateway_from_home(f, x->home) : gateway_from_upf(f, x->home);
	else if (!x->up)
		gateway_to_home(f, x->home);
	else {
		frame_gtpu(f, 0x10200 + x->home, x->port == DNS ? 5 : 9);
		f->at[13] = 1 << 4; // PDU type: uplink
		gateway_outer(f, x->home == HOME_PPPOE ? 6 : 4, 1);
	}
}

static void send_pieces(const struct flow *x, const int *order)
{
	static struct frame f;

	kit_clear();
	for (int i = 0; i < PIECES; i++) {
		make_piece(&f, x, order[i], 0);
		assert_int_equal(kit_send(x->up ? "access" : "core", f.at, f.length), 0);
		kit_run();
	}
	assert_int_equal(kit_totals().held, 0);
	assert_true(kit_balance());
}

static void all_pass(const struct flow *x, const int *order)
{
	const char *to = x->up ? "core" : "access";
	static struct frame want;

	send_pieces(x, order);
	assert_int_equal(kit_count(to), PIECES);
	for (int i = 0; i < PIECES; i++) {
		make_piece(&want, x, leaves(order, i), 1);
		assert_true(gateway_same(to, (uint32_t)i, &want));
	}
	next_id++;
}

static uint64_t counted(uint32_t home, uint32_t urr)
{
	uint32_t count;
	const struct api_urr_row *row = kit_rows(API_TABLE_URR, gateway_home_name(home), sizeof(*row), &count);

	for (uint32_t i = 0; i < count; i++)
		if (row[i].urr == urr)
			return row[i].packets[API_TOTAL];
	fail_msg("no URR %u", urr);
	return 0;
}

// Both homes, families, directions, all orders.
static void each(void (*fn)(struct flow *x, const int *order))
{
	for (uint32_t n = 0; n < 8; n++)
		for (int k = 0; k < ORDERS_OF_PIECES; k++) {
			struct flow x = {n & 1 ? HOME_PPPOE : HOME_QINQ, n & 2 ? 6 : 4, (int)(n >> 2), DNS};

			fn(&x, orders[k]);
		}
}

static void by_rule(struct flow *x, const int *order)
{
	uint64_t dns = counted(x->home, 2), rest = counted(x->home, 1);

	all_pass(x, order);
	assert_int_equal(counted(x->home, 2), dns + PIECES);
	assert_int_equal(counted(x->home, 1), rest);
	x->port = 5000;
	all_pass(x, order);
	assert_int_equal(counted(x->home, 2), dns + PIECES);
	assert_int_equal(counted(x->home, 1), rest + PIECES);
}

static void by_the_rule_of_the_ports(void **state)
{
	each(by_rule);
}

static void permit(const char *key, int up)
{
	struct {
		struct api_acl head;
		struct api_acl_rule rule;
	} l = {{API_DENY, 1}, {.protocol = 17, .protocol_mask = 0xff, .action = API_PERMIT}};
	uint16_t *far = up ? l.rule.destination_port : l.rule.source_port;
	uint16_t *ue = up ? l.rule.source_port : l.rule.destination_port;

	ue[1] = UINT16_MAX;
	far[0] = far[1] = DNS;
	assert_int_equal(kit_change(API_ACL, key, &l, sizeof(l)), 0);
}

static void delete_lists(void)
{
	kit_begin();
	kit_delete(API_ACL, "uplink");
	kit_delete(API_ACL, "downlink");
	assert_int_equal(kit_commit(), 0);
}

static void by_list(struct flow *x, const int *order)
{
	uint64_t dns = counted(x->home, 2);

	all_pass(x, order);
	assert_int_equal(counted(x->home, 2), dns + PIECES);
	struct kit_reasons before = kit_reasons();
	x->port = 54;
	send_pieces(x, order);
	next_id++;
	assert_int_equal(kit_count(x->up ? "core" : "access"), 0);
	kit_only_rose(&before, x->up ? "firewall-uplink-default" : "firewall-downlink-default", PIECES);
}

static void by_the_list(void **state)
{
	permit("uplink", 1);
	permit("downlink", 0);
	each(by_list);
	delete_lists();
}

// A line has one share for all its MAC addresses and PPPoE sessions; another line's fragments keep waiting.
static void a_line_keeps_to_its_share(void **state)
{
	const struct flow good = {HOME_PPPOE_OTHER, 4, 1, DNS};
	static struct frame f;

	permit("uplink", 1);
	for (uint32_t home = HOME_QINQ; home <= HOME_PPPOE; home++) {
		const struct flow flood = {home, 4, 1, DNS};
		struct kit_reasons before = kit_reasons();

		make_piece(&f, &good, 1, 0);
		assert_int_equal(kit_send("access", f.at, f.length), 0);
		for (uint32_t i = 0; i < 500; i++, next_id++) {
			make_piece(&f, &flood, 1, 0);
			f.at[11] = (uint8_t)(i & 127); // of the source address
			if (home == HOME_PPPOE)
				store16(f.at + 24,
					(uint16_t)(1 + i)); // session, behind the tags' type, version and code
			assert_int_equal(kit_send("access", f.at, f.length), 0);
			kit_run();
		}
		assert_int_equal(kit_totals().held, 32 + 1);
		kit_only_rose(&before, "reassembly-source", 500 - 32);
		kit_advance(1200000);
	}
	delete_lists();
}

static int clean(void **state)
{
	kit_advance(1200000);
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(kit_buffers_in_use(), 0);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(by_the_rule_of_the_ports, clean),
		cmocka_unit_test_teardown(by_the_list, clean),
		cmocka_unit_test_teardown(a_line_keeps_to_its_share, clean),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
