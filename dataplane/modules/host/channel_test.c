// SPDX-License-Identifier: Apache-2.0
// Frames of subscribers to the control plane and back.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "testkit/channel.h"
#include "testkit/gateway.h"
#include "testkit/reasons.h"
#include "wire/bytes.h"
#include "wire/eth.h"
#include "wire/pppoe.h"

static const uint8_t stranger[6] = {2, 0, 0, 0, 9, 9}, broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t padi[] = {0x11, PPPOE_PADI, 0, 0, 0, 4, 1, 1, 0, 0};

static int setup(void **state)
{
	gateway_start(NULL);
	gateway_homes(1, GATEWAY_HOMES);
	return 0;
}

static int open_channel(void **state)
{
	kit_advance(2000000); // limits are as if nothing had come
	kit_clear();
	kit_channel_open();
	return 0;
}

static int check(void **state)
{
	kit_run();
	assert_int_equal(kit_channel.wrong, 0);
	assert_true(kit_balance());
	return 0;
}

// Behind Ethernet and none, one or two tags.
static void put_tags(struct frame *f, const uint8_t *to, const uint8_t *from, uint16_t type, uint16_t s, uint16_t c)
{
	frame_ethernet(f, to, from, type);
	if (c != 0)
		frame_tag(f, 0x8100, c);
	if (s != 0)
		frame_tag(f, 0x88a8, s);
}

static void send(const struct frame *f)
{
	assert_int_equal(kit_send("access", f->at, f->length), 0);
	kit_run();
}

static const struct api_frame *came(uint32_t i)
{
	assert_true(kit_channel.frames > i);
	return &kit_channel.frame[i].h;
}

// ---- up --------------------------------------------------------------------------------------------------------------

static void discovery_comes_up(void **state)
{
	static const uint16_t tags[][2] = {{0, 0}, {7, 0}, {100, 200}};
	static struct frame f;

	assert_int_equal(kit_channel.ports, 1);
	assert_string_equal(kit_channel.port[0].name, "access");
	assert_memory_equal(kit_channel.port[0].mac, gateway_mac[0], 6);
	for (uint32_t i = 0; i < RTE_DIM(tags); i++) {
		frame_payload(&f, 0);
		frame_append(&f, padi, sizeof(padi));
		put_tags(&f, broadcast, stranger, ETH_TYPE_PPPOE_DISCOVERY, tags[i][0], tags[i][1]);
		frame_append(&f, NULL, 60 - f.length); // as Ethernet pads it
		send(&f);
		const struct api_frame *h = came(i);
		assert_string_equal(h->port, "access");
		assert_int_equal(h->reason, API_FRAME_PPPOE_DISCOVERY);
		assert_int_equal(h->ethertype, ETH_TYPE_PPPOE_DISCOVERY);
		assert_int_equal(h->tpid, tags[i][0] != 0 ? 0x88a8 : 0);
		assert_int_equal(h->s_tag, tags[i][0]);
		assert_int_equal(h->c_tag, tags[i][1]);
		assert_memory_equal(h->mac, stranger, 6);
		assert_int_equal(h->seid, 0);
		assert_int_equal(h->length, sizeof(padi));
		assert_memory_equal(kit_channel.frame[i].octets, padi, sizeof(padi));
	}
}

static void subscribers_are_known(void **state)
{
	static const uint8_t echo[] = {9, 1, 0, 8, 1, 2, 3, 4};
	static struct frame f;

	frame_payload(&f, 0);
	frame_append(&f, echo, sizeof(echo));
	frame_pppoe(&f, HOME_PPPOE, 0xc021);
	put_tags(&f, gateway_mac[0], gateway_home_mac(HOME_PPPOE), ETH_TYPE_PPPOE_SESSION, 100, HOME_PPPOE);
	send(&f);
	assert_int_equal(came(0)->reason, API_FRAME_PPP_CONTROL);
	assert_int_equal(came(0)->seid, kit_session_row(gateway_home_name(HOME_PPPOE)).seid);
	assert_int_not_equal(came(0)->seid, 0);
	assert_int_equal(came(0)->length, PPPOE_HEADER + sizeof(echo));

	frame_payload(&f, 250);
	frame_udp(&f, 68, 67);
	frame_ip(&f, "0.0.0.0", "255.255.255.255", 17);
	put_tags(&f, broadcast, gateway_home_mac(HOME_QINQ), ETH_TYPE_IP4, 100, HOME_QINQ);
	send(&f);
	assert_int_equal(came(1)->reason, API_FRAME_DHCP);
	assert_int_equal(came(1)->seid, kit_session_row(gateway_home_name(HOME_QINQ)).seid);
	assert_int_equal(came(1)->length, 20 + 8 + 250);
	assert_int_equal(kit_channel.frame[1].octets[0], 0x45);

	frame_payload(&f, 100);
	frame_udp(&f, 546, 547);
	frame_ip(&f, "fe80::1", "ff02::1:2", 17);
	put_tags(&f, (const uint8_t[]){0x33, 0x33, 0, 1, 0, 2}, stranger, ETH_TYPE_IP6, 0, 0);
	send(&f);
	assert_int_equal(came(2)->reason, API_FRAME_DHCP6);
	assert_int_equal(came(2)->seid, 0);

	frame_payload(&f, 8);
	f.at[0] = 133, f.at[1] = 0;
	frame_ip(&f, "fe80::1", "ff02::2", 58);
	put_tags(&f, (const uint8_t[]){0x33, 0x33, 0, 0, 0, 2}, stranger, ETH_TYPE_IP6, 7, 0);
	send(&f);
	assert_int_equal(came(3)->reason, API_FRAME_ROUTER_SOLICITATION);
}

static void slow_reader_costs_frames_alone(void **state)
{
	uint64_t full = kit_reason("channel-full");
	uint32_t in_use = kit_buffers_in_use();
	static struct frame f;

	kit_channel.busy = 1;
	for (uint32_t i = 0; i < 40; i++)
		for (uint32_t c = 1; c <= 100; c++) {
			frame_payload(&f, 1200);
			frame_udp(&f, 68, 67);
			frame_ip(&f, "0.0.0.0", "255.255.255.255", 17);
			put_tags(&f, broadcast, stranger, ETH_TYPE_IP4, 100, (uint16_t)(1000 + c));
			send(&f);
			kit_advance(1000);
		}
	assert_true(kit_reason("channel-full") - full > 0);
	assert_int_equal(kit_buffers_in_use(), in_use);
	kit_channel.busy = 0;
	kit_advance(2000);
	// 25 frames of about 1,300 bytes in each message.
	assert_int_equal(kit_channel.frames, 4000 - (kit_reason("channel-full") - full));
	assert_true(kit_channel.frames > 3000);
}

static void another_takes_over(void **state)
{
	struct reply_sink other = kit_channel.sink;
	static struct frame f;

	other.owner = 9;
	kit_request(&other, API_CHANNEL, 0, NULL, 0);
	assert_int_equal(kit_channel.status.code, ECANCELED);
	request_client_gone(kit_channel.sink.owner); // who has it no more
	frame_payload(&f, 0);
	frame_append(&f, padi, sizeof(padi));
	put_tags(&f, broadcast, stranger, ETH_TYPE_PPPOE_DISCOVERY, 0, 0);
	send(&f);
	assert_int_equal(kit_channel.frames, 1);
	request_client_gone(other.owner);
	send(&f); // counted, and freed
	assert_int_equal(kit_channel.frames, 1);
}

// ---- down ------------------------------------------------------------------------------------------------------------

static const struct api_frame answer = {.port = "access",
	.length = sizeof(padi),
	.ethertype = ETH_TYPE_PPPOE_DISCOVERY,
	.tpid = 0x88a8,
	.s_tag = 100,
	.c_tag = 200,
	.mac = {2, 0, 0, 0, 9, 9}};

static void answers_go_down(void **state)
{
	static const uint16_t tags[][2] = {{0, 0}, {7, 0}, {100, 200}};
	static struct frame f;

	for (uint32_t i = 0; i < RTE_DIM(tags); i++) {
		struct api_frame h = answer;

		h.s_tag = tags[i][0], h.c_tag = tags[i][1], h.tpid = h.s_tag != 0 ? 0x88a8 : 0;
		frame_payload(&f, 0);
		frame_append(&f, padi, sizeof(padi));
		put_tags(&f, stranger, gateway_mac[0], ETH_TYPE_PPPOE_DISCOVERY, tags[i][0], tags[i][1]);
		kit_channel_send(NULL, &h, padi);
		kit_run();
		assert_int_equal(kit_count("access"), i + 1);
		assert_true(gateway_same("access", i, &f));
	}
}

static void impossible_frames_stay_here(void **state)
{
	static const uint8_t octets[API_FRAME_MOST + 8];
	struct api_frame row[11];
	uint32_t n = 0;

	for (uint32_t i = 0; i < RTE_DIM(row); i++)
		row[i] = answer;
	strcpy(row[n++].port, "core");
	strcpy(row[n++].port, "none");
	row[n++].ethertype = 0x88cc;
	row[n++].length = 0;
	row[n++].length = 1509;
	row[n++].s_tag = 4095;
	row[n++].c_tag = 5000;
	row[n++].s_tag = 0;
	row[n++].tpid = 0x1234;
	row[n++].tpid = 0;
	row[n].s_tag = row[n].c_tag = 0, n++; // a TPID without tags
	for (uint32_t i = 0; i < n; i++) {
		kit_channel_send(NULL, &row[i], octets);
		assert_int_equal(kit_channel.status.code, 0);
	}
	kit_run();
	assert_int_equal(kit_count("access") + kit_count("core"), 0);
	// Malformed messages are answered.
	row[0] = answer, row[0].length = API_FRAME_MOST + 1;
	kit_channel_send(NULL, &row[0], octets);
	assert_int_equal(kit_channel.status.code, EINVAL);
	row[0] = answer, memset(row[0].port, 'x', API_NAME);
	kit_channel.status.code = 0;
	kit_channel_send(NULL, &row[0], octets);
	assert_int_equal(kit_channel.status.code, EINVAL);
	// Who does not have the channel sends nothing.
	struct reply_sink other = kit_channel.sink;
	other.owner = 9;
	kit_channel_send(&other, &answer, padi);
	kit_run();
	assert_int_equal(kit_count("access"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(discovery_comes_up, open_channel, check),
		cmocka_unit_test_setup_teardown(subscribers_are_known, open_channel, check),
		cmocka_unit_test_setup_teardown(slow_reader_costs_frames_alone, open_channel, check),
		cmocka_unit_test_setup_teardown(another_takes_over, open_channel, check),
		cmocka_unit_test_setup_teardown(answers_go_down, open_channel, check),
		cmocka_unit_test_setup_teardown(impossible_frames_stay_here, open_channel, check),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
