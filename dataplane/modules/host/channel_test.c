// SPDX-License-Identifier: Apache-2.0
// Frames of subscribers to the control plane and back.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "core/channel.h"
#include "core/object.h"
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

// net_af_packet receives what the kernel sends by the device, too.
static void own_frames_are_no_newcomer(void **state)
{
	struct kit_reasons before = kit_reasons();
	static struct frame f;

	frame_payload(&f, 8);
	f.at[0] = 133, f.at[1] = 0;
	frame_ip(&f, "fe80::1", "ff02::2", 58);
	put_tags(&f, (const uint8_t[]){0x33, 0x33, 0, 0, 0, 2}, gateway_mac[0], ETH_TYPE_IP6, 0, 0);
	send(&f);
	kit_only_dropped(&before, "punt-own-mac", 1);
	before = kit_reasons();
	frame_payload(&f, 50);
	memcpy(f.at, padi, sizeof(padi));
	put_tags(&f, broadcast, gateway_mac[0], ETH_TYPE_PPPOE_DISCOVERY, 7, 0);
	send(&f);
	kit_only_dropped(&before, "punt-own-mac", 1);
	assert_int_equal(kit_channel.frames, 0);
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
	// The first that finds no room, alone.
	struct kit_reasons before;
	kit_channel.busy = 1;
	for (uint32_t i = 0; kit_reason("channel-full") == full || i == 0; i++) {
		before = kit_reasons();
		full = i == 0 ? kit_reason("channel-full") : full;
		send(&f);
		kit_advance(30000);
	}
	kit_only_dropped(&before, "channel-full", 1);
	kit_channel.busy = 0;
	kit_advance(2000);
}

static void long_frames_stay_here(void **state)
{
	static struct frame f;

	frame_payload(&f, API_FRAME_MOST - 27);
	frame_udp(&f, 68, 67);
	frame_ip(&f, "0.0.0.0", "255.255.255.255", 17);
	put_tags(&f, broadcast, stranger, ETH_TYPE_IP4, 100, 200);
	struct kit_reasons before = kit_reasons();
	send(&f);
	kit_only_dropped(&before, "channel-too-long", 1);
	assert_int_equal(kit_channel.frames, 0);
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

static void put_discovery(struct frame *f, const uint8_t *from, uint16_t s, uint16_t c)
{
	frame_payload(f, 0);
	frame_append(f, padi, sizeof(padi));
	put_tags(f, broadcast, from, ETH_TYPE_PPPOE_DISCOVERY, s, c);
}

static uint32_t came_from(uint16_t s, uint16_t c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < kit_channel.frames; i++)
		n += kit_channel.frame[i].h.s_tag == s && kit_channel.frame[i].h.c_tag == c;
	return n;
}

// Rows B2, B17: 2,000 PADIs a second from random MAC addresses on one line. Its share is punted; so are all PADIs of
// other lines and all packets of the line's subscribers.
static void one_line_starves_nobody(void **state)
{
	static const uint8_t echo[] = {9, 1, 0, 8, 1, 2, 3, 4};
	uint64_t limited = kit_reason("punt-line-limit"), others = 0;
	static struct frame f;
	uint32_t seconds = 5;

	kit_channel.frames = 0;
	for (uint32_t ms = 0; ms < seconds * 1000; ms++) {
		for (uint32_t i = 0; i < 2; i++) {
			uint8_t random[6] = {2, 7, (uint8_t)i, (uint8_t)(ms >> 8), (uint8_t)ms, 1};

			put_discovery(&f, random, 100, HOME_PPPOE);
			assert_int_equal(kit_send("access", f.at, f.length), 0);
		}
		if (ms % 100 == 50) {
			put_discovery(&f, stranger, 100, (uint16_t)(1000 + ms / 100));
			assert_int_equal(kit_send("access", f.at, f.length), 0);
			frame_payload(&f, 0);
			frame_append(&f, echo, sizeof(echo));
			frame_pppoe(&f, HOME_PPPOE, 0xc021);
			put_tags(&f, gateway_mac[0], gateway_home_mac(HOME_PPPOE), ETH_TYPE_PPPOE_SESSION, 100,
				HOME_PPPOE);
			assert_int_equal(kit_send("access", f.at, f.length), 0);
		}
		kit_run();
		kit_advance(1000);
	}
	for (uint32_t c = 1000; c < 1000 + seconds * 10; c++)
		others += came_from(100, (uint16_t)c);
	uint64_t lost = seconds * 10 - others; // a line of thousands has the flood's bucket
	assert_in_range(lost, 0, 1);
	uint32_t flood = came_from(100, HOME_PPPOE) - seconds * 10; // but the subscriber's own
	assert_in_range(flood, API_PUNT_LINE * seconds - 5, API_PUNT_LINE * (seconds + 1) + 5);
	assert_int_equal(kit_reason("punt-line-limit") - limited, 2000 * seconds - flood + lost);
}

#define QUIET 4u

// 100 lines that use up their buckets exceed their S-tag's. A quiet line still gets its packets, unless it shares a
// flooding line's bucket: one in forty does.
static void many_lines_starve_nobody(void **state)
{
	uint64_t limited = kit_reason("punt-s-tag-limit");
	static struct frame f;
	uint32_t quiet[QUIET] = {0}, served = 0;

	for (uint32_t ms = 0; ms < 3000; ms++) {
		for (uint32_t line = 1; line <= 100; line++) {
			uint8_t mac[6] = {2, 9, 0, (uint8_t)(ms >> 8), (uint8_t)ms, (uint8_t)line};

			put_discovery(&f, mac, 100, (uint16_t)line);
			assert_int_equal(kit_send("access", f.at, f.length), 0);
			if (line % 32 == 0)
				kit_run();
		}
		for (uint16_t i = 0; ms % 100 == 99 && i < QUIET; i++) {
			put_discovery(&f, stranger, 100, (uint16_t)(1000 + i));
			assert_int_equal(kit_send("access", f.at, f.length), 0);
		}
		kit_run();
		for (uint32_t i = 0; i < kit_channel.frames; i++)
			if (kit_channel.frame[i].h.c_tag >= 1000)
				quiet[kit_channel.frame[i].h.c_tag - 1000]++;
		kit_channel.frames = 0;
		kit_advance(1000);
	}
	for (uint32_t i = 0; i < QUIET; i++)
		served += quiet[i] == 30;
	assert_in_range(served, QUIET / 2, QUIET);
	assert_true(kit_reason("punt-s-tag-limit") > limited);
}

// VLANs of the port as access.ports has them: 100.1 to 100.99 are subscribers', behind the others are many.
static void put_lines(uint32_t many)
{
	struct {
		struct api_lines head;
		struct api_line_range range[2];
	} lines = {.head = {.count = 2},
		.range = {{.s_tag = {100, 100}, .c_tag = {1, 99}, .flags = API_LINE_ONE}, {.flags = many}}};

	assert_int_equal(kit_change(API_LINES, "access", &lines, sizeof(lines)), 0);
}

static void put_option82(struct frame *f, const uint8_t *from, uint16_t c, uint8_t circuit)
{
	const uint8_t options[] = {99, 130, 83, 99, 53, 1, 1, 82, 6, 1, 4, 'e', '0', '/', circuit, 255};

	frame_payload(f, 236);
	f->at[0] = 1;
	frame_append(f, options, sizeof(options));
	frame_udp(f, 68, 67);
	frame_ip(f, "0.0.0.0", "255.255.255.255", 17);
	put_tags(f, broadcast, from, ETH_TYPE_IP4, 100, c);
}

// A line is one subscriber's, or it has no limit of its own. 500 homes behind one pair of tags come at once, and the
// rest a second later; all are served. Where a VLAN is one subscriber's, its line limit applies.
static void many_homes_behind_two_tags(void **state)
{
	static struct frame f;

	put_lines(0);
	for (uint16_t c = 7; c <= 207; c += 200) {
		uint32_t served = 0;
		static uint8_t done[500];

		memset(done, 0, sizeof(done));
		kit_advance(2000000);
		for (uint32_t second = 0; second < 2; second++) {
			for (uint32_t i = 0; i < RTE_DIM(done); i++) {
				uint8_t mac[6] = {2, 5, 0, 0, (uint8_t)(i >> 8), (uint8_t)i};

				if (done[i])
					continue;
				put_discovery(&f, mac, 100, c);
				kit_channel.frames = 0;
				send(&f);
				done[i] = kit_channel.frames == 1;
				served += done[i];
			}
			kit_advance(1000000);
		}
		if (c == 7)
			assert_in_range(served, 2 * API_PUNT_LINE, 2 * API_PUNT_LINE + 5);
		else
			assert_int_equal(served, RTE_DIM(done));
	}
}

// A flood of MAC addresses behind one shared pair of tags gets three quarters of its S-tag's share. Other lines keep
// theirs; so do neighbours on the same tags if the access node names the circuit.
static void floods_among_many(void **state)
{
	for (int circuits = 0; circuits < 2; circuits++) {
		uint32_t flood = 0, quiet = 0, seconds = 3, asked = 0;
		static struct frame f;

		put_lines(circuits ? API_LINE_TRUSTED : 0);
		kit_advance(2000000);
		kit_channel.frames = 0;
		for (uint32_t ms = 0; ms < seconds * 1000; ms++) {
			for (uint32_t i = 0; i < 20; i++) {
				uint8_t random[6] = {2, 7, (uint8_t)i, (uint8_t)(ms >> 8), (uint8_t)ms, 1};

				put_option82(&f, random, 207, 'x');
				assert_int_equal(kit_send("access", f.at, f.length), 0);
			}
			if (ms % 100 == 50) { // on the same tags where circuits are known, else on others
				uint8_t mac[6] = {2, 6, 0, 0, (uint8_t)(ms >> 8), (uint8_t)ms};

				put_option82(&f, mac, circuits ? 207 : (uint16_t)(1000 + ms / 100), 'q');
				assert_int_equal(kit_send("access", f.at, f.length), 0);
				asked++;
			}
			kit_run();
			for (uint32_t i = 0; i < kit_channel.frames; i++) {
				quiet += kit_channel.frame[i].h.mac[1] == 6;
				flood += kit_channel.frame[i].h.mac[1] == 7;
			}
			kit_channel.frames = 0;
			kit_advance(1000);
		}
		assert_in_range(quiet, asked - 1, asked); // two that share a bucket
		uint32_t rate = circuits ? API_PUNT_LINE : API_PUNT_S_TAG;
		assert_in_range(flood, rate * seconds / 2, rate * (seconds + 1));
	}
}

static void lines_that_cannot_be(void **state)
{
	struct {
		struct api_lines head;
		struct api_line_range range;
	} lines = {.head = {.count = 1}, .range = {.s_tag = {5, 4}}};

	assert_int_equal(kit_change(API_LINES, "access", &lines, sizeof(lines)), EINVAL);
	lines.range = (struct api_line_range){.c_tag = {1, 4095}};
	assert_int_equal(kit_change(API_LINES, "access", &lines, sizeof(lines)), EINVAL);
	lines.range = (struct api_line_range){.flags = 4};
	assert_int_equal(kit_change(API_LINES, "access", &lines, sizeof(lines)), EINVAL);
	lines.range.flags = 0;
	assert_int_equal(kit_change(API_LINES, "core", &lines, sizeof(lines)), ENOENT);
	put_lines(0);
	assert_int_equal(kit_change(API_LINES, "access", NULL, 0), 0);
}

struct flood {
	const char *what, *reason;
	uint8_t macs; // that it comes from
	uint16_t lines; // C-tags; 0: no C-tag
	uint16_t s_tags; // 0: no tags
	uint32_t most; // that come up at once
};

// Each level by itself: at one moment as many are punted as its bucket holds.
static void each_level_is_limited(void **state)
{
	static const struct flood row[] = {
		{"one MAC address", "punt-subscriber-limit", 1, 1, 1, API_PUNT_SUBSCRIBER},
		{"one line", "punt-line-limit", 200, 1, 1, API_PUNT_LINE},
		{"one S-tag", "punt-s-tag-limit", 2, 2000, 1, API_PUNT_S_TAG / 10},
		{"one S-tag without C-tags", "punt-s-tag-limit", 200, 0, 1, API_PUNT_S_TAG / 10},
		{"without tags", "punt-subscriber-limit", 1, 0, 0, API_PUNT_SUBSCRIBER},
	};
	static struct frame f;

	for (uint32_t r = 0; r < RTE_DIM(row); r++) {
		uint32_t sent = row[r].most * 2 + 100;
		uint64_t limited = kit_reason(row[r].reason);

		kit_advance(2000000);
		kit_channel.frames = 0;
		for (uint32_t i = 0; i < sent; i++) {
			uint8_t mac[6] = {2, 8, 0, 0, (uint8_t)r, (uint8_t)(i % row[r].macs)};
			uint16_t c = row[r].lines != 0 ? (uint16_t)(1 + i / row[r].macs % row[r].lines) : 0;

			put_discovery(&f, mac, row[r].s_tags, c);
			send(&f);
		}
		if (kit_channel.frames != row[r].most || kit_reason(row[r].reason) - limited != sent - row[r].most)
			fail_msg("%s: %u came up, %lu were limited", row[r].what, kit_channel.frames,
				kit_reason(row[r].reason) - limited);
	}
}

static void a_port_is_limited(void **state)
{
	struct kit_reasons before = kit_reasons();
	static struct frame f;

	for (uint32_t i = 0; i < API_PUNT_PORT / 10 + 500; i++) {
		// So many S-tags that none is limited where some share a bucket.
		put_discovery(&f, stranger, (uint16_t)(1 + i % 100), (uint16_t)(1 + i / 100));
		assert_int_equal(kit_send("access", f.at, f.length), 0);
		if (i % 32 == 31)
			kit_run();
	}
	kit_run();
	kit_only_dropped(&before, "punt-port-limit", 500);
}

static void send_ppp(const uint8_t *mac, uint16_t c, uint16_t id)
{
	static struct frame f;

	frame_payload(&f, 0);
	frame_append(&f, (const uint8_t[]){1, 1, 0, 4}, 4); // LCP Configure-Request
	frame_pppoe(&f, id, 0xc021);
	put_tags(&f, gateway_mac[0], mac, ETH_TYPE_PPPOE_SESSION, 100, c);
	send(&f);
}

// A router solicitation in PPP.
static void send_solicitation(const uint8_t *mac, uint16_t id)
{
	static struct frame f;

	frame_payload(&f, 8);
	f.at[0] = 133, f.at[1] = 0;
	frame_ip(&f, "fe80::1", "ff02::2", 58);
	frame_pppoe(&f, id, PPP_IP6);
	put_tags(&f, gateway_mac[0], mac, ETH_TYPE_PPPOE_SESSION, 100, 200);
	send(&f);
}

static void say(uint8_t code, uint16_t ethertype, uint16_t id)
{
	uint8_t pppoe[] = {0x11, code, (uint8_t)(id >> 8), (uint8_t)id, 0, 4, 1, 1, 0, 0};
	struct api_frame h = {.port = "access",
		.length = sizeof(pppoe),
		.ethertype = ethertype,
		.tpid = 0x88a8,
		.s_tag = 100,
		.c_tag = 200,
		.mac = {2, 0, 0, 0, 9, 9}};

	kit_channel_send(NULL, &h, pppoe);
	kit_run();
}

// Between PADS and SESSION object only that subscriber's PPP frames are punted; row B4 holds for all others.
static void sessions_begin_with_pads(void **state)
{
	static const uint8_t other[6] = {2, 0, 0, 0, 9, 8};
	uint64_t unknown = kit_reason("ppp-unknown-subscriber");

	send_ppp(stranger, 200, 77);
	assert_int_equal(kit_channel.frames, 0);
	say(PPPOE_PADS, ETH_TYPE_PPPOE_DISCOVERY, 77);
	send_ppp(stranger, 200, 77);
	assert_int_equal(came(0)->reason, API_FRAME_PPP_CONTROL);
	assert_int_equal(came(0)->seid, 0);
	send_solicitation(stranger, 77);
	assert_int_equal(came(1)->reason, API_FRAME_ROUTER_SOLICITATION);
	assert_int_equal(came(1)->ethertype, ETH_TYPE_PPPOE_SESSION);
	kit_channel.frames = 1;
	send_ppp(other, 200, 77);
	send_ppp(stranger, 201, 77);
	send_solicitation(other, 77);
	send_ppp(stranger, 200, 78);
	assert_int_equal(kit_channel.frames, 1);
	// A refusal (RFC 2516 §5.4) begins none.
	say(PPPOE_PADS, ETH_TYPE_PPPOE_DISCOVERY, 0);
	send_ppp(stranger, 200, 0);
	assert_int_equal(kit_channel.frames, 1);
	say(PPPOE_PADT, ETH_TYPE_PPPOE_DISCOVERY, 77);
	send_ppp(stranger, 200, 77);
	assert_int_equal(kit_channel.frames, 1);
	assert_int_equal(kit_reason("ppp-unknown-subscriber") - unknown, 7);
}

static void wait_seconds(uint32_t seconds)
{
	for (uint32_t i = 0; i < seconds * 20; i++)
		kit_advance(50000);
}

static void sessions_that_go_nowhere_are_forgotten(void **state)
{
	say(PPPOE_PADS, ETH_TYPE_PPPOE_DISCOVERY, 77);
	wait_seconds(50);
	say(0, ETH_TYPE_PPPOE_SESSION, 77); // the control plane goes on
	wait_seconds(50);
	send_ppp(stranger, 200, 77);
	assert_int_equal(kit_channel.frames, 1);
	wait_seconds(30);
	send_ppp(stranger, 200, 77);
	assert_int_equal(kit_channel.frames, 1);
}

static int try_port(const char *name, uint32_t sign_in)
{
	uint32_t length;
	struct api_port p = *(const struct api_port *)object_find(API_PORT, name, &length);

	p.sign_in = sign_in;
	return kit_change(API_PORT, name, &p, sizeof(p));
}

static void put_port(uint32_t sign_in)
{
	assert_int_equal(try_port("access", sign_in), 0);
}

static void sign_in_is_of_access_ports(void **state)
{
	assert_int_equal(try_port("core", API_SIGN_IN_PACKET), EINVAL);
	assert_int_equal(try_port("access", API_SIGN_IN_PACKET << 1), EINVAL);
}

static void send_signs_of_life(uint16_t s, uint16_t c)
{
	static const uint8_t arp[28] = {0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 9, 9, 100, 64, 0, 77, [24] = 100, 64, 0, 1};
	static struct frame f;

	frame_payload(&f, 20);
	frame_udp(&f, 4000, 5000);
	frame_ip(&f, "100.64.0.77", "198.51.100.9", 17);
	put_tags(&f, gateway_mac[0], stranger, ETH_TYPE_IP4, s, c);
	send(&f);
	frame_payload(&f, 20);
	frame_udp(&f, 4000, 5000);
	frame_ip(&f, "2001:db8:1:77::1", "2001:db8:ffff::9", 17);
	put_tags(&f, gateway_mac[0], stranger, ETH_TYPE_IP6, s, c);
	send(&f);
	frame_payload(&f, 0);
	frame_append(&f, arp, sizeof(arp));
	put_tags(&f, broadcast, stranger, ETH_TYPE_ARP, s, c);
	send(&f);
}

static void first_packets_come_up(void **state)
{
	static const uint16_t tags[][2] = {{0, 0}, {7, 0}, {100, 200}},
			      type[] = {ETH_TYPE_IP4, ETH_TYPE_IP6, ETH_TYPE_ARP};
	uint64_t unknown = kit_reason("subscriber-unknown"), arp = kit_reason("neighbour-unknown-subscriber");

	send_signs_of_life(100, 200);
	assert_int_equal(kit_channel.frames, 0);
	assert_int_equal(kit_reason("subscriber-unknown") - unknown, 2);
	assert_int_equal(kit_reason("neighbour-unknown-subscriber") - arp, 1);
	put_port(API_SIGN_IN_PACKET);
	for (uint32_t i = 0; i < RTE_DIM(tags); i++) {
		send_signs_of_life(tags[i][0], tags[i][1]);
		for (uint32_t k = 0; k < RTE_DIM(type); k++) {
			const struct api_frame *h = came(3 * i + k);

			assert_int_equal(h->reason, API_FRAME_FIRST_PACKET);
			assert_int_equal(h->ethertype, type[k]);
			assert_int_equal(h->s_tag, tags[i][0]);
			assert_int_equal(h->c_tag, tags[i][1]);
			assert_memory_equal(h->mac, stranger, 6);
		}
	}
	assert_int_equal(kit_channel.frame[0].octets[0], 0x45);
	assert_true(gateway_undisturbed());
	put_port(0);
	send_signs_of_life(100, 200);
	assert_int_equal(kit_channel.frames, 9);
}

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

// Frames wait in their connection while the inbox is full; no other messages wait.
static void room_is_waited_for(void **state)
{
	const uint8_t pado[] = {0x11, PPPOE_PADO, 0, 0, 0, 4, 1, 1, 0, 0};
	struct api_frame h = {.port = "access", .length = sizeof(pado), .ethertype = ETH_TYPE_PPPOE_DISCOVERY};
	struct reply_sink other = {0};
	uint64_t full = kit_reason("inject-full");
	uint32_t sent = 0;

	for (; !channel_holds(&kit_channel.sink); sent++)
		kit_channel_send(NULL, &h, pado);
	assert_true(sent > kit_engine().max_handed_over / 2);
	assert_false(channel_holds(&other));
	// Not for long: the worker that is behind is not everybody's.
	engine_mode.virtual_now += rte_get_tsc_hz() / 40;
	assert_false(channel_holds(&kit_channel.sink));
	kit_run();
	assert_false(channel_holds(&kit_channel.sink));
	assert_int_equal(kit_count("access"), sent);
	assert_int_equal(kit_reason("inject-full"), full);
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
		cmocka_unit_test_setup_teardown(own_frames_are_no_newcomer, open_channel, check),
		cmocka_unit_test_setup_teardown(slow_reader_costs_frames_alone, open_channel, check),
		cmocka_unit_test_setup_teardown(long_frames_stay_here, open_channel, check),
		cmocka_unit_test_setup_teardown(another_takes_over, open_channel, check),
		cmocka_unit_test_setup_teardown(one_line_starves_nobody, open_channel, check),
		cmocka_unit_test_setup_teardown(many_lines_starve_nobody, open_channel, check),
		cmocka_unit_test_setup_teardown(many_homes_behind_two_tags, open_channel, check),
		cmocka_unit_test_setup_teardown(floods_among_many, open_channel, check),
		cmocka_unit_test_setup_teardown(lines_that_cannot_be, open_channel, check),
		cmocka_unit_test_setup_teardown(each_level_is_limited, open_channel, check),
		cmocka_unit_test_setup_teardown(a_port_is_limited, open_channel, check),
		cmocka_unit_test_setup_teardown(sessions_begin_with_pads, open_channel, check),
		cmocka_unit_test_setup_teardown(sessions_that_go_nowhere_are_forgotten, open_channel, check),
		cmocka_unit_test_setup_teardown(sign_in_is_of_access_ports, open_channel, check),
		cmocka_unit_test_setup_teardown(first_packets_come_up, open_channel, check),
		cmocka_unit_test_setup_teardown(answers_go_down, open_channel, check),
		cmocka_unit_test_setup_teardown(room_is_waited_for, open_channel, check),
		cmocka_unit_test_setup_teardown(impossible_frames_stay_here, open_channel, check),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
