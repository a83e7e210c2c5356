// SPDX-License-Identifier: Apache-2.0
// Subscribers flood the host path with every kind of packet, as fast as the graph takes them. Packets of routers and
// other neighbours on core ports arrive complete: BGP and BFD depend on it.
#include "core/engine.h"
#include "core/node.h"
#include "host/host.h"
#include "hostile/hostile.h"
#include "wire/arp.h"

#define ROOM 64 // packets that may wait for the control thread
#define WALKS 400

static struct frame f;

static void from_access(void)
{
	assert_int_equal(kit_send("access", f.at, f.length), 0);
}

static void pppoe_discovery(void)
{
	static const uint8_t padi[10] = {0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0};

	frame_payload(&f, 0);
	frame_append(&f, padi, sizeof(padi));
	frame_ethernet(&f, gateway_mac[0], gateway_home_mac(HOME_PPPOE), 0x8863);
	frame_tag(&f, 0x8100, HOME_PPPOE);
	frame_tag(&f, 0x88a8, 100);
	from_access();
}

static void udp_of_home(const char *from, const char *to, uint16_t port)
{
	frame_payload(&f, 20);
	frame_udp(&f, 68, port);
	frame_ip(&f, from, to, 17);
	gateway_from_home(&f, HOME_QINQ);
	from_access();
}

static void router_solicitation(void)
{
	frame_payload(&f, 8);
	memset(f.at, 0, 8);
	f.at[0] = 133;
	frame_ip(&f, "fe80::1234", "ff02::2", 58);
	f.at[7] = 255;
	gateway_from_home(&f, HOME_QINQ);
	from_access();
}

static void arp_of_home(void)
{
	uint8_t message[ARP_LENGTH];

	arp_put(message, ARP_REQUEST, gateway_home_mac(HOME_QINQ), kit_address(gateway_ue(HOME_QINQ, 4)).bytes, NULL,
		kit_address("100.64.0.1").bytes);
	frame_payload(&f, 0);
	frame_append(&f, message, sizeof(message));
	frame_ethernet(&f, gateway_mac[0], gateway_home_mac(HOME_QINQ), 0x0806);
	frame_tag(&f, 0x8100, HOME_QINQ);
	frame_tag(&f, 0x88a8, 100);
	from_access();
}

static void protocol_of_home(uint8_t protocol)
{
	frame_payload(&f, 20);
	frame_ip(&f, gateway_ue(HOME_QINQ, 4), "100.64.0.1", protocol);
	gateway_from_home(&f, HOME_QINQ);
	from_access();
}

static void flood(uint32_t i)
{
	switch (i % 8) {
	case 0:
		return pppoe_discovery();
	case 1:
		return udp_of_home("0.0.0.0", "255.255.255.255", 67);
	case 2:
		return udp_of_home(gateway_ue(HOME_QINQ, 6), "ff02::1:2", 547);
	case 3:
		return router_solicitation();
	case 4:
		return arp_of_home();
	case 5:
		return protocol_of_home(1);
	case 6:
		return protocol_of_home((uint8_t)(200 + i % 50));
	default:
		return udp_of_home(gateway_ue(HOME_QINQ, 4), "100.64.0.1", 179);
	}
}

static void from_core(const char *from, const char *to, uint8_t protocol, uint16_t port)
{
	int family = strchr(to, ':') != NULL ? 6 : 4;

	frame_payload(&f, 20);
	if (protocol == 6)
		frame_tcp(&f, 40000, port);
	else
		frame_udp(&f, 49152, port);
	frame_ip(&f, from, to, protocol);
	f.at[family == 4 ? 8 : 7] = 255;
	if (family == 4)
		frame_ip4_sum(&f);
	frame_ethernet(&f, gateway_mac[1], gateway_upf, family == 4 ? 0x0800 : 0x86dd);
	assert_int_equal(kit_send("core", f.at, f.length), 0);
}

static void arp_of_router(void)
{
	uint8_t message[ARP_LENGTH];

	arp_put(message, ARP_REQUEST, gateway_upf, kit_address("10.0.0.2").bytes, NULL, kit_address("10.0.0.1").bytes);
	frame_payload(&f, 0);
	frame_append(&f, message, sizeof(message));
	frame_ethernet(&f, gateway_mac[1], gateway_upf, 0x0806);
	assert_int_equal(kit_send("core", f.at, f.length), 0);
}

static uint32_t arrived;

static void arrive(struct rte_mbuf *m)
{
	arrived++;
	rte_pktmbuf_free(m);
}

static void subscribers_do_not_starve_routers(void **state)
{
	uint64_t full = kit_reason("punt-control-full"), limited = kit_reason("punt-rate-limit");

	punt_handler_register(&punt_routing, arrive);
	kit_advance(1000003);
	kit_clear();
	arrived = 0;
	for (uint32_t walk = 1; walk <= WALKS; walk++) {
		for (uint32_t i = 0; i < VECTOR; i++)
			flood(i);
		from_core("10.0.0.2", "10.0.0.1", 17, 3784);
		from_core("fd00::2", "fd00::1", 17, 3784);
		from_core("10.0.0.2", "10.0.0.1", 6, 179);
		from_core("fd00::2", "fd00::1", 6, 179);
		arp_of_router();
		kit_advance(500); // 8,000 routing packets a second, below engine.rates.punt
		assert_int_equal(arrived, 4 * walk);
		assert_int_equal(kit_count("core"), walk); // answers
	}
	punt_handler_register(&punt_routing, NULL);
	assert_true(kit_reason("punt-control-full") > full); // by the flood
	assert_true(kit_reason("punt-rate-limit") > limited);
	assert_true(kit_balance());
	assert_true(gateway_undisturbed());
}

static int start(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = 2; // the access port's frames are the first worker's
	e.max_punted = ROOM;
	gateway_start(&e);
	gateway_homes(1, GATEWAY_HOMES);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(subscribers_do_not_starve_routers),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
