// SPDX-License-Identifier: Apache-2.0
// ARP and neighbour discovery on core interfaces: questions, answers, trust, and waiting packets.
#include "ip/router_test.h"
#include "neighbour/table.h"
#include "testkit/reasons.h"
#include "wire/arp.h"
#include "wire/nd.h"

// Messages of the other side.

static void arp_frame(
	struct router_frame *f, uint16_t operation, const uint8_t *mac, const char *sender, const char *target)
{
	router_ethernet(f, "north", mac, 0, 0, 0x0806);
	arp_put(f->bytes + f->length, operation, mac, router_address(sender).bytes, NULL, router_address(target).bytes);
	f->length += ARP_LENGTH + 18;
}

static void arp_arrives(uint16_t operation, const uint8_t *mac, const char *sender, const char *target)
{
	struct router_frame f;

	memset(&f, 0, sizeof(f));
	arp_frame(&f, operation, mac, sender, target);
	router_receive("north", &f);
}

static void ns_arrives(const uint8_t *mac, const char *source, const char *target)
{
	struct router_frame f;

	router_ethernet(&f, "north", mac, 0, 0, 0x86dd);
	f.length +=
		nd_put_ns(f.bytes + f.length, router_address(source).bytes, NULL, router_address(target).bytes, mac);
	router_receive("north", &f);
}

static void na_arrives(const uint8_t *mac, const char *target, const char *to, uint8_t flags)
{
	struct router_frame f;

	router_ethernet(&f, "north", mac, 0, 0, 0x86dd);
	f.length += nd_put_na(f.bytes + f.length, router_address(target).bytes, router_address(to).bytes,
		router_address(target).bytes, mac, flags);
	router_receive("north", &f);
}

static void packet_to(const char *destination)
{
	struct router_frame f;
	int six = strchr(destination, ':') != NULL;

	router_ethernet(&f, "south", peer_south, 0, 0, six ? 0x86dd : 0x0800);
	router_udp(&f, six ? "2001:db8:2::5" : "10.2.0.5", destination, 64, 30);
	router_receive("south", &f);
}

static const uint8_t everyone[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static void assert_arp_left(uint32_t n, const uint8_t *to, uint16_t operation, const char *sender, const char *target)
{
	struct arp_info arp;

	assert_true(n < router_count());
	assert_memory_equal(router_out(n)->bytes, to, 6);
	assert_int_equal(load16(router_out(n)->bytes + 12), 0x0806);
	assert_int_equal(arp_parse(router_out(n)->bytes + 14, router_out(n)->length - 14, &arp), ARP_OK);
	assert_int_equal(arp.operation, operation);
	assert_memory_equal(arp.sender_mac, &port_by_name("north")->mac, 6);
	assert_memory_equal(arp.sender, router_address(sender).bytes, 4);
	assert_memory_equal(arp.target, router_address(target).bytes, 4);
}

static struct nd_info nd_left(uint32_t n)
{
	struct nd_info nd = {0};

	assert_true(n < router_count());
	assert_int_equal(load16(router_out(n)->bytes + 12), 0x86dd);
	assert_int_equal(
		nd_parse(router_out(n)->bytes + 14, router_out(n)->length - 14, router_out(n)->length - 14, &nd),
		ND_OK);
	return nd;
}

static struct neighbour *neighbour_at(const char *address)
{
	struct api_address a = router_address(address);

	for (uint32_t i = 0; i < interface_count(); i++)
		if (interface_get(i) != NULL && strcmp(interface_get(i)->name, "north") == 0)
			return neighbour_find(i, a.family, a.bytes);
	return NULL;
}

static void remove_one(struct neighbour *n, void *arg)
{
	neighbour_remove(n);
}

static int clean(void **state)
{
	neighbour_each(remove_one, NULL);
	kit_advance(200000); // the host path's rate limit recovers
	kit_clear();
	return 0;
}

static void we_answer_for_our_addresses(void **state)
{
	struct kit_reasons others = kit_reasons();

	arp_arrives(ARP_REQUEST, peer_north, "10.1.0.5", "10.1.0.1");
	assert_int_equal(router_count(), 1);
	assert_arp_left(0, peer_north, ARP_REPLY, "10.1.0.1", "10.1.0.5");
	arp_arrives(ARP_REQUEST, peer_north, "0.0.0.0", "10.1.0.1"); // RFC 5227 probe
	assert_int_equal(router_count(), 2);
	arp_arrives(ARP_REQUEST, peer_north, "10.1.0.5", "10.1.0.99");
	arp_arrives(ARP_REQUEST, peer_north, "10.1.0.5", "10.2.0.1"); // ours, but not on this interface
	assert_int_equal(router_count(), 2);
	kit_only_dropped(&others, "arp-not-for-us", 2);
	assert_null(neighbour_at("10.1.0.5")); // questions make no entries
	kit_clear();
	ns_arrives(peer_north, "2001:db8:1::5", "2001:db8:1::1");
	assert_int_equal(router_count(), 1);
	struct nd_info nd = nd_left(0);
	assert_int_equal(nd.type, ND_ADVERT);
	assert_int_equal(nd.flags, ND_ROUTER | ND_SOLICITED | ND_OVERRIDE);
	assert_memory_equal(nd.target, router_address("2001:db8:1::1").bytes, 16);
	assert_memory_equal(nd.destination, router_address("2001:db8:1::5").bytes, 16);
	assert_memory_equal(nd.mac, &port_by_name("north")->mac, 6);
	struct kit_reasons before = kit_reasons();
	ns_arrives(peer_north, "2001:db8:1::5", "2001:db8:1::77");
	assert_int_equal(router_count(), 1);
	kit_only_dropped(&before, "nd-not-for-us", 1);
	assert_true(kit_balance());
}

// 1,000 a second in all, requests and solicitations together.
static void answers_are_bounded(void **state)
{
	router_wait(1.1);
	kit_clear();
	struct kit_reasons before = kit_reasons();
	for (int i = 0; i < 500; i++) {
		arp_arrives(ARP_REQUEST, peer_north, "10.1.0.5", "10.1.0.1");
		ns_arrives(peer_north, "2001:db8:1::5", "2001:db8:1::1");
	}
	assert_int_equal(router_count(), 1000);
	arp_arrives(ARP_REQUEST, peer_north, "10.1.0.5", "10.1.0.1");
	ns_arrives(peer_north, "2001:db8:1::5", "2001:db8:1::1");
	assert_int_equal(router_count(), 1000);
	kit_only_dropped(&before, "neighbour-rate-limit", 2);
	router_wait(1.1);
	arp_arrives(ARP_REQUEST, peer_north, "10.1.0.5", "10.1.0.1");
	assert_int_equal(router_count(), 1001);
	kit_clear();
}

static void packets_wait_for_arp(void **state)
{
	packet_to("10.1.0.20");
	packet_to("10.1.0.20");
	assert_int_equal(router_count(), 1);
	assert_arp_left(0, everyone, ARP_REQUEST, "10.1.0.1", "10.1.0.20");
	assert_int_equal(neighbour_at("10.1.0.20")->held, 2);
	assert_true(kit_balance());
	kit_clear();
	arp_arrives(ARP_REPLY, peer_north, "10.1.0.20", "10.1.0.1");
	assert_int_equal(router_count(), 2);
	assert_memory_equal(router_out(0)->bytes, peer_north, 6);
	assert_int_equal(load16(router_out(0)->bytes + 12), 0x0800);
	assert_int_equal(neighbour_at("10.1.0.20")->state, REACHABLE);
	packet_to("10.1.0.20");
	assert_int_equal(router_count(), 3);
	assert_true(kit_balance());
}

static void packets_wait_for_nd(void **state)
{
	packet_to("2001:db8:1::20");
	assert_int_equal(router_count(), 1);
	struct nd_info nd = nd_left(0);
	assert_int_equal(nd.type, ND_SOLICIT);
	assert_memory_equal(nd.target, router_address("2001:db8:1::20").bytes, 16);
	assert_memory_equal(nd.source, router_address("2001:db8:1::1").bytes, 16);
	assert_memory_equal(router_out(0)->bytes, "\x33\x33\xff\x00\x00\x20", 6);
	kit_clear();
	na_arrives(peer_north, "2001:db8:1::20", "2001:db8:1::1", ND_SOLICITED | ND_OVERRIDE);
	assert_int_equal(router_count(), 1);
	assert_memory_equal(router_out(0)->bytes, peer_north, 6);
	assert_int_equal(load16(router_out(0)->bytes + 12), 0x86dd);
	assert_true(kit_balance());
}

static void silence_is_asked_three_times(void **state)
{
	struct kit_reasons before = kit_reasons();

	packet_to("10.1.0.21");
	router_wait(2.5);
	assert_int_equal(router_count(), 3);
	assert_int_equal(neighbour_at("10.1.0.21")->held, 1);
	router_wait(1.0);
	assert_int_equal(router_count(), 3);
	kit_only_dropped(&before, "neighbour-unresolved", 1);
	packet_to("10.1.0.21"); // not asked again so soon
	assert_int_equal(router_count(), 3);
	kit_only_dropped(&before, "neighbour-unresolved", 2);
	router_wait(5.5);
	assert_null(neighbour_at("10.1.0.21"));
	packet_to("10.1.0.21");
	assert_int_equal(router_count(), 4);
	assert_true(kit_balance());
}

static void waiting_is_bounded(void **state)
{
	struct kit_reasons before = kit_reasons();
	char address[32];

	for (int i = 0; i < 12; i++)
		packet_to("10.1.0.30");
	assert_int_equal(neighbour_at("10.1.0.30")->held, NEIGHBOUR_HELD);
	kit_only_dropped(&before, "neighbour-queue-full", 4);
	for (int i = 31; i < 51; i++) {
		snprintf(address, sizeof(address), "10.1.0.%d", i);
		packet_to(address);
	}
	// 20 may wait in all: 8 and 12 of the 20.
	kit_only_dropped(&before, "neighbour-queue-full", 4 + 8);
	assert_true(kit_balance());
}

// A network scan makes failing entries; it neither grows without end nor displaces answering neighbours.
static void scans_are_bounded(void **state)
{
	uint64_t full = kit_reason("neighbour-table-full");
	struct api_interface i = router_interface("north", 44, 0, "10.44.0.1/16", NULL);
	char address[32];

	kit_begin();
	kit_put(API_INTERFACE, "wide", &i, sizeof(i));
	assert_int_equal(router_commit(), 0);
	packet_to("10.1.0.20");
	arp_arrives(ARP_REPLY, peer_north, "10.1.0.20", "10.1.0.1");
	for (int k = 0; k < NEIGHBOURS + 500; k++) {
		snprintf(address, sizeof(address), "10.44.%d.%d", 1 + k / 250, 1 + k % 250);
		packet_to(address);
		kit_advance(110); // within the rate of the host path
	}
	assert_int_equal(kit_reason("neighbour-table-full") - full, NEIGHBOURS + 500 - NEIGHBOURS / 8);
	// One entry more has no place and no effect.
	struct kit_reasons before = kit_reasons();
	packet_to("10.44.99.1");
	kit_only_dropped(&before, "neighbour-table-full", 1);
	router_wait(4);
	packet_to("10.1.0.22"); // those of the scan have failed and make room
	assert_non_null(neighbour_at("10.1.0.22"));
	assert_int_equal(neighbour_at("10.1.0.20")->state, REACHABLE);
	kit_begin();
	kit_delete(API_INTERFACE, "wide");
	assert_int_equal(router_commit(), 0);
	assert_true(kit_balance());
}

static void broadcast_is_nobody(void **state)
{
	struct kit_reasons before = kit_reasons();

	packet_to("10.1.0.255");
	packet_to("10.1.0.0");
	assert_int_equal(router_count(), 0);
	kit_only_dropped(&before, "neighbour-no-host", 2);
	assert_true(kit_balance());
}

static void reachable_neighbours_are_asked_again(void **state)
{
	packet_to("10.1.0.20");
	arp_arrives(ARP_REPLY, peer_north, "10.1.0.20", "10.1.0.1");
	kit_clear();
	router_wait(30.2);
	assert_int_equal(neighbour_at("10.1.0.20")->state, STALE);
	assert_int_equal(router_count(), 1);
	assert_arp_left(0, peer_north, ARP_REQUEST, "10.1.0.1", "10.1.0.20"); // to itself, not to everyone
	packet_to("10.1.0.20");
	assert_int_equal(router_count(), 2); // still used
	arp_arrives(ARP_REPLY, peer_north, "10.1.0.20", "10.1.0.1");
	assert_int_equal(neighbour_at("10.1.0.20")->state, REACHABLE);
	router_wait(34);
	assert_int_equal(neighbour_at("10.1.0.20")->state, FAILED);
	packet_to("10.1.0.20");
	assert_int_equal(neighbour_at("10.1.0.20")->held, 0);
	assert_true(kit_balance());
}

static void only_what_was_asked_is_believed(void **state)
{
	static const uint8_t thief[6] = {0x02, 0x66, 0x66, 0x66, 0x66, 0x66};
	struct kit_reasons before = kit_reasons();

	arp_arrives(ARP_REPLY, thief, "10.1.0.40", "10.1.0.1");
	assert_null(neighbour_at("10.1.0.40"));
	kit_only_dropped(&before, "arp-unsolicited", 1);
	packet_to("10.1.0.40");
	arp_arrives(ARP_REPLY, peer_north, "10.1.0.40", "10.1.0.1");
	arp_arrives(ARP_REPLY, thief, "10.1.0.40", "10.1.0.1");
	kit_only_dropped(&before, "arp-unsolicited", 2);
	assert_memory_equal(&neighbour_at("10.1.0.40")->mac, peer_north, 6);
	// An announcement by a known neighbour is how a gateway moves to its standby (RFC 5944 §4.6).
	arp_arrives(ARP_REQUEST, peer_south, "10.1.0.40", "10.1.0.40");
	assert_memory_equal(&neighbour_at("10.1.0.40")->mac, peer_south, 6);
	kit_clear();
	packet_to("10.1.0.40");
	assert_memory_equal(router_out(0)->bytes, peer_south, 6);
	before = kit_reasons();
	na_arrives(thief, "2001:db8:1::40", "2001:db8:1::1", ND_SOLICITED | ND_OVERRIDE);
	assert_null(neighbour_at("2001:db8:1::40"));
	kit_only_dropped(&before, "nd-unsolicited", 1);
	before = kit_reasons();
	arp_arrives(ARP_REQUEST, thief, "10.1.0.1", "10.1.0.1");
	na_arrives(thief, "2001:db8:1::1", "ff02::1", ND_OVERRIDE);
	kit_only_dropped(&before, "address-conflict", 2);
	assert_true(kit_balance());
}

static void malformed_messages_are_dropped(void **state)
{
	uint64_t arp = kit_reason("arp-malformed"), nd = kit_reason("nd-malformed");
	struct router_frame f;

	for (uint32_t cut = 0; cut < ARP_LENGTH; cut++) {
		arp_frame(&f, ARP_REQUEST, peer_north, "10.1.0.5", "10.1.0.1");
		f.length = 14 + cut;
		router_receive("north", &f);
	}
	static const struct {
		uint32_t offset;
		uint8_t value;
	} row[] = {{1, 6}, {2, 9}, {4, 8}, {5, 16}, {7, 9}, {8, 0xff}, {14, 224}, {14, 127}, {24, 255}};
	for (size_t i = 0; i < RTE_DIM(row); i++) {
		arp_frame(&f, ARP_REQUEST, peer_north, "10.1.0.5", "10.1.0.1");
		f.bytes[14 + row[i].offset] = row[i].value;
		router_receive("north", &f);
	}
	assert_int_equal(kit_reason("arp-malformed"), arp + ARP_LENGTH + RTE_DIM(row));
	// Hop limit, code, checksum, option of length 0, option past the end.
	static const uint32_t change[] = {14 + 7, 14 + 42, 14 + 40 + 25};
	for (size_t i = 0; i < RTE_DIM(change); i++) {
		router_ethernet(&f, "north", peer_north, 0, 0, 0x86dd);
		f.length += nd_put_ns(f.bytes + f.length, router_address("2001:db8:1::5").bytes, NULL,
			router_address("2001:db8:1::1").bytes, peer_north);
		f.bytes[change[i]] ^= 1;
		router_receive("north", &f);
	}
	assert_int_equal(kit_reason("nd-malformed"), nd + RTE_DIM(change));
	assert_int_equal(router_count(), 0);
	assert_true(kit_balance());
}

static void static_neighbours_stay(void **state)
{
	static const uint8_t group[6] = {1, 0, 0, 0, 0, 1};

	kit_begin();
	kit_neighbour("north", "10.1.0.50", peer_north);
	assert_int_equal(router_commit(), 0);
	assert_int_equal(neighbour_at("10.1.0.50")->state, STATIC);
	arp_arrives(ARP_REQUEST, peer_south, "10.1.0.50", "10.1.0.50");
	kit_clear();
	router_wait(40);
	packet_to("10.1.0.50");
	assert_int_equal(router_count(), 1);
	assert_memory_equal(router_out(0)->bytes, peer_north, 6);
	static const struct {
		const char *interface, *address;
		const uint8_t *mac;
	} bad[] = {
		{"west", "10.1.0.51", peer_north}, {"north", "224.0.0.5", peer_north}, {"north", "10.1.0.51", group}};
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		kit_begin();
		kit_neighbour(bad[i].interface, bad[i].address, bad[i].mac);
		assert_int_not_equal(router_commit(), 0);
	}
	kit_begin();
	kit_delete(API_INTERFACE, "north");
	assert_int_not_equal(router_commit(), 0); // a static neighbour is on it
	kit_begin();
	kit_delete(API_NEIGHBOUR, "north|10.1.0.50");
	assert_int_equal(router_commit(), 0);
	// It is used as before, but has to answer from now on.
	assert_int_equal(neighbour_at("10.1.0.50")->state, STALE);
	kit_clear();
	packet_to("10.1.0.50");
	assert_memory_equal(router_out(0)->bytes, peer_north, 6);
	router_wait(5);
	assert_int_equal(neighbour_at("10.1.0.50")->state, FAILED);
}

static const char *numbered(const char *prefix, uint32_t n)
{
	static char text[64];

	snprintf(text, sizeof(text), "2001:db8:1::%s:%x", prefix, n);
	return text;
}

static void static_ones(const char *prefix, uint32_t count, int there)
{
	char key[80];

	for (uint32_t n = 1; n <= count; n++) {
		if (there)
			kit_neighbour("north", numbered(prefix, n), peer_north);
		snprintf(key, sizeof(key), "north|%s", numbered(prefix, n));
		if (!there)
			kit_delete(API_NEIGHBOUR, key);
	}
}

// As many as there is room for, half of them replaced. One more is refused by its name.
static void static_neighbours_have_room(void **state)
{
	uint32_t room = neighbour_room(), half = room / 2;

	kit_begin();
	static_ones("a", room, 1);
	assert_int_equal(router_commit(), 0);
	kit_begin();
	static_ones("a", half, 0);
	static_ones("b", half, 1);
	assert_int_equal(router_commit(), 0);
	for (uint32_t n = 1; n <= half; n++) {
		assert_null(neighbour_at(numbered("a", n)));
		assert_non_null(neighbour_at(numbered("b", n)));
		assert_int_equal(neighbour_at(numbered("b", n))->state, STATIC);
	}
	kit_begin();
	kit_neighbour("north", "2001:db8:1::c", peer_north);
	assert_int_equal(router_commit(), ENOSPC);
	assert_non_null(strstr(kit_error(), "neighbour north|2001:db8:1::"));
	assert_null(neighbour_at("2001:db8:1::c"));
	kit_begin();
	static_ones("a", room, 0);
	static_ones("b", half, 0);
	assert_int_equal(router_commit(), 0);
}

// Routes use nearly all next hops: a neighbour without one is refused with its whole transaction.
static void static_neighbours_need_next_hops(void **state)
{
	struct api_route r = {.interface = "north"};
	uint32_t routes = 8100;
	char key[API_NAME];

	for (int round = 0; round < 2; round++) {
		kit_begin();
		for (uint32_t n = 1; n <= routes; n++) {
			snprintf(key, sizeof(key), "2001:db8:%x::/48", 0x1000 + n);
			r.prefix = kit_address(key);
			r.via = kit_address(numbered("d", n));
			if (round == 0)
				kit_put(API_ROUTE, key, &r, sizeof(r));
			else
				kit_delete(API_ROUTE, key);
		}
		assert_int_equal(router_commit(), 0);
		kit_begin();
		static_ones("e", 200, 1);
		if (round == 0) {
			assert_int_equal(router_commit(), ENOSPC);
			assert_non_null(strstr(kit_status()->key, "north|2001:db8:1::e:"));
			assert_null(neighbour_at(numbered("e", 1)));
			kit_begin(); // what was held for them is free again
			static_ones("e", 50, 1);
		}
		assert_int_equal(router_commit(), 0);
		for (uint32_t n = 1; n <= (round == 0 ? 50u : 200u); n++)
			assert_int_equal(neighbour_at(numbered("e", n))->state, STATIC);
	}
	kit_begin();
	static_ones("e", 200, 0);
	assert_int_equal(router_commit(), 0);
}

static void new_interfaces_announce_themselves(void **state)
{
	struct api_interface i = router_interface("north", 33, 0, "10.33.0.1/24", "2001:db8:33::1/64");

	kit_begin();
	kit_put(API_INTERFACE, "north.33", &i, sizeof(i));
	assert_int_equal(router_commit(), 0);
	assert_int_equal(router_count(), 2);
	assert_memory_equal(router_out(0)->bytes, everyone, 6);
	assert_int_equal(load16(router_out(0)->bytes + 12), 0x8100);
	assert_int_equal(load16(router_out(0)->bytes + 14), 33);
	assert_memory_equal(router_out(0)->bytes + 18 + 14, router_address("10.33.0.1").bytes, 4);
	assert_memory_equal(router_out(1)->bytes, "\x33\x33\x00\x00\x00\x01", 6);
	// A neighbour on it is removed with it, and so are its waiting packets.
	uint64_t before = kit_reason("neighbour-unresolved");
	packet_to("10.33.0.9");
	kit_begin();
	kit_delete(API_INTERFACE, "north.33");
	assert_int_equal(router_commit(), 0);
	assert_int_equal(kit_reason("neighbour-unresolved"), before + 1);
	assert_true(kit_balance());
}

static void set_north33(uint32_t flags)
{
	struct api_interface i = router_interface("north", 33, 0, "10.33.0.1/24", "2001:db8:33::1/64");

	i.flags = flags;
	kit_clear();
	assert_int_equal(kit_change(API_INTERFACE, "north.33", &i, sizeof(i)), 0);
	kit_run();
}

// Neither announcements nor questions; they are made up for.
static void nothing_by_what_is_down(void **state)
{
	uint64_t before = kit_reason("neighbour-unresolved");

	set_north33(API_INTERFACE_DOWN);
	assert_int_equal(kit_count("north"), 0);
	set_north33(0);
	assert_int_equal(kit_count("north"), 2);
	packet_to("10.33.0.9");
	assert_int_equal(kit_count("north"), 3);
	set_north33(API_INTERFACE_DOWN);
	router_wait(10);
	assert_int_equal(kit_count("north"), 0);
	assert_int_equal(kit_reason("neighbour-unresolved") - before, 1);
	set_north33(0);
	assert_int_equal(kit_count("north"), 2);
	kit_begin();
	kit_delete(API_INTERFACE, "north.33");
	assert_int_equal(router_commit(), 0);
}

// A packet that the gateway made itself (a GTP-U echo request, say).
static void own_packet(const char *from, const char *to)
{
	struct router_frame f = {.length = 0};
	struct rte_mbuf *m = control_originate();

	assert_non_null(m);
	router_udp(&f, from, to, 64, 20);
	memcpy(rte_pktmbuf_append(m, (uint16_t)f.length), f.bytes, f.length);
	packet_of(m)->ip_version = 4;
	packet_of(m)->length = f.length;
	control_inject(0, "ip-output", m);
	kit_run();
}

static void our_own_packets_wait_too(void **state)
{
	own_packet("10.1.0.1", "10.1.0.60");
	assert_int_equal(neighbour_at("10.1.0.60")->held, 1);
	arp_arrives(ARP_REPLY, peer_north, "10.1.0.60", "10.1.0.1");
	assert_int_equal(router_count(), 2);
	assert_true(kit_balance());
}

// RFC 6583: a scan of a /64 costs other hosts nothing. A neighbour that answers keeps its entry, also when unused for a
// while; gateways and tunnel peers get one. Unknown hosts are asked for at a bounded rate, and other interfaces keep
// their share.
static void scans_cost_others_nothing(void **state)
{
	struct router_frame f;
	char to[64];

	kit_begin();
	router_put_route("scan-a", "10.60.0.0/16", "10.1.0.9", "");
	router_put_route("scan-b", "2001:db8:60::/48", "2001:db8:1::9", "");
	kit_path("scan", "10.1.0.1", "10.1.0.10");
	assert_int_equal(router_commit(), 0);
	packet_to("10.60.0.1");
	arp_arrives(ARP_REPLY, peer_north, "10.1.0.9", "10.1.0.1");
	packet_to("10.1.0.22");
	arp_arrives(ARP_REPLY, peer_north, "10.1.0.22", "10.1.0.1");
	router_wait(30.2);
	assert_int_equal(neighbour_at("10.1.0.9")->state, STALE);
	assert_int_equal(neighbour_at("10.1.0.22")->state, STALE);
	uint64_t full = kit_reason("neighbour-table-full");
	for (int k = 0; k < 3 * NEIGHBOURS; k++) {
		snprintf(to, sizeof(to), "2001:db8:1::a:%x", k);
		router_ethernet(&f, "south", peer_south, 0, 0, 0x86dd);
		router_udp(&f, "2001:db8:2::5", to, 64, 20);
		kit_clear();
		router_receive("south", &f);
		kit_advance(110); // within the rate of the host path
	}
	assert_non_null(neighbour_at("10.1.0.9"));
	assert_non_null(neighbour_at("10.1.0.22"));
	assert_true(kit_reason("neighbour-table-full") - full > 2 * NEIGHBOURS);
	// Others still get an entry: a gateway, a tunnel's peer, a host of another interface.
	packet_to("2001:db8:60::1");
	assert_non_null(neighbour_at("2001:db8:1::9"));
	assert_int_equal(neighbour_at("2001:db8:1::9")->probes, 1);
	own_packet("10.1.0.1", "10.1.0.10");
	assert_non_null(neighbour_at("10.1.0.10"));
	full = kit_reason("neighbour-table-full");
	kit_clear();
	packet_to("10.7.0.30"); // its questions have the rate of the scan's, for which they wait their turn
	assert_int_equal(kit_reason("neighbour-table-full"), full);
	assert_true(kit_balance());
	kit_begin();
	kit_delete(API_ROUTE, "scan-a");
	kit_delete(API_ROUTE, "scan-b");
	kit_delete(API_PATH, "scan");
	assert_int_equal(router_commit(), 0);
}

// Questions for unknown hosts are limited per second; unasked ones fail in their time.
static void questions_are_bounded(void **state)
{
	struct api_engine e = kit_engine();
	char to[32];

	e.max_held = 20;
	e.icmp_error_rate = 1000;
	e.solicitation_rate = 50;
	kit_begin();
	kit_put(API_ENGINE, "engine", &e, sizeof(e));
	router_put_route("far", "10.60.0.0/16", "10.1.0.9", "");
	assert_int_equal(router_commit(), 0);
	router_wait(1);
	kit_clear();
	for (int k = 60; k < 240; k++) {
		snprintf(to, sizeof(to), "10.1.0.%d", k);
		packet_to(to);
	}
	assert_int_equal(router_count(), 50);
	packet_to("10.60.0.1"); // a gateway is asked for in any case
	assert_int_equal(router_count(), 51);
	router_wait(5);
	assert_in_range(router_count(), 52, 51 + 6 * 50 + 3);
	assert_int_equal(neighbour_at("10.1.0.239")->state, FAILED);
	e.solicitation_rate = 0;
	kit_begin();
	kit_put(API_ENGINE, "engine", &e, sizeof(e));
	kit_delete(API_ROUTE, "far");
	assert_int_equal(router_commit(), 0);
}

static uint32_t shown(const char *key)
{
	uint32_t n;

	kit_rows(API_TABLE_NEIGHBOUR, key, sizeof(struct api_neighbour_row), &n);
	return n;
}

// All, or those of an interface, or the one with an address.
static void those_that_are_asked_for_are_shown(void **state)
{
	packet_to("10.1.0.5");
	packet_to("10.1.0.6");
	packet_to("2001:db8:1::6");
	assert_true(shown("") >= 3);
	assert_int_equal(shown("10.1.0.6"), 1);
	assert_int_equal(shown("2001:db8:1::6"), 1);
	assert_int_equal(shown("10.1.0.7"), 0);
	assert_int_equal(shown("north"), 3);
	assert_int_equal(shown("nowhere"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(we_answer_for_our_addresses, clean),
		cmocka_unit_test_setup(answers_are_bounded, clean),
		cmocka_unit_test_setup(packets_wait_for_arp, clean),
		cmocka_unit_test_setup(packets_wait_for_nd, clean),
		cmocka_unit_test_setup(silence_is_asked_three_times, clean),
		cmocka_unit_test_setup(waiting_is_bounded, clean),
		cmocka_unit_test_setup(scans_are_bounded, clean),
		cmocka_unit_test_setup(broadcast_is_nobody, clean),
		cmocka_unit_test_setup(reachable_neighbours_are_asked_again, clean),
		cmocka_unit_test_setup(only_what_was_asked_is_believed, clean),
		cmocka_unit_test_setup(malformed_messages_are_dropped, clean),
		cmocka_unit_test_setup(static_neighbours_stay, clean),
		cmocka_unit_test_setup(static_neighbours_have_room, clean),
		cmocka_unit_test_setup(static_neighbours_need_next_hops, clean),
		cmocka_unit_test_setup(new_interfaces_announce_themselves, clean),
		cmocka_unit_test_setup(nothing_by_what_is_down, clean),
		cmocka_unit_test_setup(our_own_packets_wait_too, clean),
		cmocka_unit_test_setup(scans_cost_others_nothing, clean),
		cmocka_unit_test_setup(questions_are_bounded, clean),
		cmocka_unit_test_setup(those_that_are_asked_for_are_shown, clean),
	};

	return cmocka_run_group_tests(tests, router_start, NULL);
}
