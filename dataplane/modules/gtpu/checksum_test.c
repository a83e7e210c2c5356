// SPDX-License-Identifier: Apache-2.0
// UDP checksums around tunnels and header checksums in them: accepted and dropped packets by engine setting, before and
// after the flow was learnt. Settings hold for a process: one each.
#include "core/node.h"
#include "gtpu/tunnel_fixture.h"
#include "path/udp_sum.h"
#include "wire/ip.h"
#include <sys/wait.h>
#include <unistd.h>

enum field { NONE, RIGHT, LEFT_TO_DEVICE, WRONG, FIELDS };

static const char *const field_name[FIELDS] = {"none", "right", "left to a device", "wrong"};
static uint32_t flags; // of the engine

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.flags |= flags;
	start_fixture(&e);
	return 0;
}

static uint32_t l3_of(const struct tunnel_case *c)
{
	return c->vlan != 0 ? 18 : 14;
}

static void put_field(struct frame *f, const struct tunnel_case *c, enum field field)
{
	uint8_t *ip = f->at + l3_of(c), version = ip[0] >> 4, *udp = ip + (version == 4 ? 20 : 40);
	uint32_t n = version == 4 ? 4 : 16, length = load16(udp + 4);
	const uint8_t *from = ip + (version == 4 ? 12 : 8);
	uint64_t pseudo = checksum_pseudo(version, from, from + n, 17, length);
	uint16_t sum = 0;

	memset(udp + 6, 0, 2);
	if (field == LEFT_TO_DEVICE)
		sum = checksum_fold(pseudo);
	else if (field != NONE)
		sum = checksum_finish(checksum_add(pseudo, udp, length));
	if (field == WRONG)
		sum ^= 0x0100;
	memcpy(udp + 6, &sum, 2);
}

static int is_taken(const struct tunnel_case *c, enum field field)
{
	int six = strchr(c->local, ':') != NULL;

	if (flags & API_ENGINE_UDP_SUM_IGNORED)
		return 1;
	if (field == NONE)
		return !six || (flags & API_ENGINE_UDP_SUM_ZERO6);
	return field != WRONG;
}

// Sends it four times; 1 when all left, 0 when all were dropped for `reason`.
static int passes(const struct tunnel_case *c, const struct frame *f, const char *reason)
{
	uint64_t before = kit_reason(reason);

	kit_clear();
	for (int i = 0; i < 4; i++)
		assert_int_equal(kit_send("ran", f->at, f->length), 0);
	kit_run();
	uint32_t out = kit_count(c->mobile ? "internet" : "homes");
	assert_int_equal(out + (kit_reason(reason) - before), 4);
	assert_true(out == 0 || out == 4);
	return out == 4;
}

static void learn(const struct tunnel_case *c, int family)
{
	static struct frame f;

	gpdu(&f, c, family, 9, 1, 41);
	for (int i = 0; i < 2; i++)
		assert_true(passes(c, &f, "gtpu-udp-checksum"));
	uint64_t full = kit_node_packets("core-input");
	assert_true(passes(c, &f, "gtpu-udp-checksum"));
	assert_int_equal(kit_node_packets("core-input"), full);
}

static void around_tunnels(void **state)
{
	static struct frame f;

	for (int learnt = 0; learnt < 2; learnt++)
		for (uint32_t i = 0; i < RTE_DIM(cases); i++)
			for (int k = 0; k < 2 * FIELDS; k++) {
				int family = k % 2 ? 6 : 4;

				if (learnt)
					learn(&cases[i], family);
				gpdu(&f, &cases[i], family, 9, 1, 41);
				put_field(&f, &cases[i], k / 2);
				if (passes(&cases[i], &f, "gtpu-udp-checksum") != is_taken(&cases[i], k / 2))
					fail_msg("%s, IPv%d in it, checksum %s, learnt %d", cases[i].name, family,
						field_name[k / 2], learnt);
			}
}

// For every setting: the header checksum of the packet in the tunnel (RFC 1812 §5.2.2).
static void in_tunnels(void **state)
{
	static struct frame f;

	for (int learnt = 0; learnt < 2; learnt++)
		for (uint32_t i = 0; i < RTE_DIM(cases); i++)
			for (int k = 0; k < 2; k++) {
				uint8_t qfi = k ? NO_QFI : 9; // two forms of the GTP-U header
				uint32_t gtpu = l3_of(&cases[i]) + (i < 4 ? 28 : 48);

				if (learnt)
					learn(&cases[i], 4);
				gpdu(&f, &cases[i], 4, qfi, 1, 41);
				f.at[gtpu + (k ? 8 : 16) + 10] ^= 4;
				put_field(&f, &cases[i], RIGHT);
				assert_false(passes(&cases[i], &f, "gtpu-inner-checksum"));
			}
}

// The device's word, and a datagram in several buffers.
static void by_the_device(void **state)
{
	static struct frame f;
	const struct tunnel_case *c = &cases[0];
	struct rte_mbuf rest = {.next = NULL}, m = {.next = &rest, .nb_segs = 2};

	gpdu(&f, c, 4, 9, 1, 41);
	put_field(&f, c, RIGHT);
	m.buf_addr = f.at;
	m.data_len = 14 + 28 + 7; // odd
	rest.buf_addr = f.at + m.data_len;
	rest.data_len = (uint16_t)(f.length - m.data_len);
	m.pkt_len = f.length;
	assert_true(udp_sum_good(&m, 4, 14, 34));
	put_field(&f, c, WRONG);
	int ignored = (flags & API_ENGINE_UDP_SUM_IGNORED) != 0;
	assert_int_equal(udp_sum_good(&m, 4, 14, 34), ignored);
	m.ol_flags = RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	assert_true(udp_sum_good(&m, 4, 14, 34));
	m.packet_type = RTE_PTYPE_TUNNEL_GTPU; // it speaks of the packet in the tunnel
	assert_int_equal(udp_sum_good(&m, 4, 14, 34), ignored);
	m.ol_flags |= RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD;
	assert_true(udp_sum_good(&m, 4, 14, 34));
}

static int with_flags(uint32_t f)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(around_tunnels), cmocka_unit_test(in_tunnels), cmocka_unit_test(by_the_device)};

	flags = f;
	return cmocka_run_group_tests(tests, setup, NULL);
}

int main(void)
{
	static const uint32_t settings[] = {0, API_ENGINE_UDP_SUM_ZERO6, API_ENGINE_UDP_SUM_IGNORED};

	for (uint32_t i = 0; i < RTE_DIM(settings); i++) {
		int status = -1;
		pid_t child = fork();

		if (child == 0)
			exit(with_flags(settings[i]));
		if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
			return 1;
	}
	return 0;
}
