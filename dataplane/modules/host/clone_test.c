// SPDX-License-Identifier: Apache-2.0
// Clones: frames up to the kernel's device, frames down, refused frames. A pair of sockets replaces the TAP.
#include "core/engine.h"
#include "host/clone_table.h"
#include "host/host.h"
#include "ip/router_test.h"
#include "testkit/reasons.h"
#include "wire/eth.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int kernel = -1; // the other end

static uint32_t index_of(const char *interface)
{
	return interfaces_by_name(interfaces_now(), interface)->index;
}

static int put_clone(const char *interface, const char *device, const char *netns)
{
	struct api_clone c = {.device = ""};

	memcpy(c.device, device, RTE_MIN(strlen(device), sizeof(c.device)));
	snprintf(c.netns, sizeof(c.netns), "%s", netns);
	kit_begin();
	kit_put(API_CLONE, interface, &c, sizeof(c));
	return router_commit();
}

static void remove_clone(const char *interface)
{
	kit_begin();
	kit_delete(API_CLONE, interface);
	assert_int_equal(router_commit(), 0);
}

// With a device, whose other end is `kernel`.
static void make_clone(const char *interface)
{
	int pair[2];

	assert_int_equal(put_clone(interface, "tap0", ""), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	clone_of(index_of(interface))->tap.fd = pair[0];
	kernel = pair[1];
}

static int end_clones(void **state)
{
	if (kernel >= 0)
		close(kernel);
	kernel = -1;
	kit_clear();
	return 0;
}

static uint8_t got[4096];

static ssize_t kernel_gets(void)
{
	return recv(kernel, got, sizeof(got), 0);
}

static void group_frame(struct router_frame *f, uint16_t vlan, const uint8_t mac[6], uint16_t type)
{
	router_ethernet(f, "north", peer_north, vlan, 0, type);
	memcpy(f->bytes, mac, 6);
}

static const uint8_t group_mac[6] = {1, 0, 0x5e, 0, 0, 5}, isis_mac[6] = {1, 0x80, 0xc2, 0, 0, 0x14};

static void protocol(struct router_frame *f, const char *to, uint8_t protocol)
{
	uint8_t *p = router_udp(f, "10.1.0.5", to, 1, 20);

	p[9] = protocol;
	ip4_checksum_set(p);
}

static void routing_protocols_go_up(void **state)
{
	struct router_frame f;
	uint64_t routing = kit_reason("routing"), groups = kit_reason("ip-multicast");

	make_clone("north");
	group_frame(&f, 0, group_mac, 0x0800);
	protocol(&f, "224.0.0.5", 89); // OSPF
	router_receive("north", &f);
	assert_int_equal(kernel_gets(), f.length);
	assert_memory_equal(got, f.bytes, f.length);
	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	protocol(&f, "10.1.0.1", 89);
	router_receive("north", &f);
	assert_int_equal(kernel_gets(), f.length);
	group_frame(&f, 0, group_mac, 0x0800);
	protocol(&f, "224.0.0.18", 112); // VRRP
	router_receive("north", &f);
	assert_int_equal(kernel_gets(), f.length);
	assert_int_equal(kit_reason("routing"), routing + 3);
	// Groups beyond the link have no receiver.
	group_frame(&f, 0, group_mac, 0x0800);
	protocol(&f, "239.1.1.1", 17);
	router_receive("north", &f);
	assert_int_equal(kernel_gets(), -1);
	assert_int_equal(kit_reason("ip-multicast"), groups + 1);
	remove_clone("north");
	assert_true(kit_balance());
}

static void without_a_clone_they_are_dropped(void **state)
{
	uint64_t groups = kit_reason("ip-multicast"), types = kit_reason("ethertype-unknown"),
		 protocols = kit_reason("ip-protocol-unreachable");
	struct router_frame f;

	group_frame(&f, 0, group_mac, 0x0800);
	protocol(&f, "224.0.0.5", 89);
	router_receive("north", &f);
	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	protocol(&f, "10.1.0.1", 89);
	router_receive("north", &f);
	group_frame(&f, 0, isis_mac, 46);
	router_append(&f, (const uint8_t[46]){0xfe, 0xfe, 3, 0x83}, 46);
	router_receive("north", &f);
	assert_int_equal(kit_reason("ip-multicast"), groups + 1);
	assert_int_equal(kit_reason("ip-protocol-unreachable"), protocols + 1);
	assert_int_equal(kit_reason("ethertype-unknown"), types + 1);
}

// IS-IS has no ethertype; LLDP has. The tag is the interface's, and not the device's.
static void link_protocols_go_up(void **state)
{
	static const uint8_t lldp_mac[6] = {1, 0x80, 0xc2, 0, 0, 0x0e};
	uint64_t link = kit_reason("link-protocol"), unknown = kit_reason("ethertype-unknown");
	struct router_frame f;

	make_clone("north.7");
	group_frame(&f, 7, isis_mac, 46);
	router_append(&f, (const uint8_t[46]){0xfe, 0xfe, 3, 0x83}, 46);
	router_receive("north", &f);
	assert_int_equal(kernel_gets(), 14 + 46);
	assert_memory_equal(got, isis_mac, 6);
	assert_int_equal(load16(got + 12), 46);
	assert_int_equal(load16(got + 14), 0xfefe);
	group_frame(&f, 7, lldp_mac, 0x88cc);
	router_append(&f, (const uint8_t[46]){2, 7, 4}, 46);
	router_receive("north", &f);
	assert_int_equal(kernel_gets(), 14 + 46);
	assert_int_equal(kit_reason("link-protocol"), link + 2);
	group_frame(&f, 7, isis_mac, 0x8847); // MPLS
	router_append(&f, (const uint8_t[46]){0}, 46);
	router_receive("north", &f);
	group_frame(&f, 7, isis_mac, 2); // ends within the LLC header
	router_append(&f, (const uint8_t[2]){0xfe, 0xfe}, 2);
	router_receive("north", &f);
	assert_int_equal(kernel_gets(), -1);
	assert_int_equal(kit_reason("ethertype-unknown"), unknown + 2);
	remove_clone("north.7");
}

static void host_packets_go_up(void **state)
{
	uint64_t host = kit_reason("host");
	struct kit_reasons before;
	struct router_frame f;

	make_clone("north");
	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	router_udp(&f, "10.1.0.5", "10.1.0.1", 64, 20);
	router_receive("north", &f);
	assert_int_equal(kernel_gets(), f.length);
	assert_memory_equal(got, f.bytes, f.length);
	// Also those to addresses of other interfaces; not those received elsewhere.
	router_ethernet(&f, "south", peer_south, 0, 0, 0x0800);
	router_udp(&f, "10.2.0.5", "10.1.0.1", 64, 20);
	router_receive("south", &f);
	assert_int_equal(kernel_gets(), -1);
	assert_int_equal(kit_reason("host"), host + 2);
	close(kernel); // the device is down
	kernel = -1;
	before = kit_reasons();
	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	router_udp(&f, "10.1.0.5", "10.1.0.1", 64, 20);
	router_receive("north", &f);
	kit_only_dropped(&before, "clone-refused", 1);
	assert_int_equal(clone_of(index_of("north"))->refused, 1);
	remove_clone("north");
	assert_null(clone_of(index_of("north")));
	assert_true(kit_balance());
}

static void arp(struct router_frame *f, uint16_t operation, const char *sender, const char *target)
{
	struct api_address s = router_address(sender), t = router_address(target);
	uint8_t p[28] = {0, 1, 8, 0, 6, 4};

	router_ethernet(f, "north", peer_north, 0, 0, 0x0806);
	store16(p + 6, operation);
	memcpy(p + 8, peer_north, 6);
	memcpy(p + 14, s.bytes, 4);
	memcpy(p + 18, f->bytes, 6);
	memcpy(p + 24, t.bytes, 4);
	router_append(f, p, sizeof(p));
}

// The kernel gets the answers to its questions; questions to us are answered once, by us.
static void arp_goes_up(void **state)
{
	uint64_t unsolicited = kit_reason("arp-unsolicited");
	struct router_frame f;

	make_clone("north");
	arp(&f, 2, "10.1.0.77", "10.1.0.1");
	router_receive("north", &f);
	assert_int_equal(kernel_gets(), f.length);
	assert_int_equal(kit_reason("arp-unsolicited"), unsolicited);
	kit_clear();
	arp(&f, 1, "10.1.0.77", "10.1.0.1");
	router_receive("north", &f);
	assert_int_equal(kernel_gets(), -1);
	assert_int_equal(kit_count("north"), 1);
	remove_clone("north");
	arp(&f, 2, "10.1.0.77", "10.1.0.1");
	router_receive("north", &f);
	assert_int_equal(kit_reason("arp-unsolicited"), unsolicited + 1);
}

static void kernel_sends(const char *interface, const void *frame, uint32_t length)
{
	const struct interface *i = interface_get(index_of(interface));

	assert_int_equal(send(kernel, frame, length, 0), length);
	clone_down(clone_of(i->index), i);
	kit_run();
}

static void frames_come_down(void **state)
{
	static uint8_t frame[3000] = {2, 0x11, 0, 0, 0, 1, 0, 0, 0x5e, 0, 1, 9, 8, 0, 0x45};
	struct kit_reasons before;

	struct api_interface i = router_interface("north", 8, 9, "10.8.0.1/24", NULL);

	make_clone("north.8.9");
	kit_clear();
	kernel_sends("north.8.9", frame, 100);
	assert_int_equal(kit_count("north"), 1);
	const struct kit_frame *out = kit_frame("north", 0);
	assert_int_equal(out->length, 108);
	assert_memory_equal(out->bytes, frame, 12); // the sender is the kernel's: a virtual router's
	assert_memory_equal(out->bytes + 12, ((const uint8_t[]){0x88, 0xa8, 0, 8, 0x81, 0, 0, 9, 8, 0, 0x45}), 11);
	kernel_sends("north.8.9", frame, 1514);
	assert_int_equal(kit_count("north"), 2);
	before = kit_reasons();
	kernel_sends("north.8.9", frame, 1515);
	kernel_sends("north.8.9", frame, 13);
	assert_int_equal(kit_count("north"), 2);
	kit_only_rose(&before, "clone-too-long", 1);
	i.mtu = 1400;
	kit_begin();
	kit_put(API_INTERFACE, "north.8.9", &i, sizeof(i));
	assert_int_equal(router_commit(), 0);
	kernel_sends("north.8.9", frame, 1415);
	kit_only_rose(&before, "clone-too-long", 2);
	i.flags = API_INTERFACE_DOWN;
	kit_begin();
	kit_put(API_INTERFACE, "north.8.9", &i, sizeof(i));
	assert_int_equal(router_commit(), 0);
	before = kit_reasons();
	kernel_sends("north.8.9", frame, 100);
	kit_only_rose(&before, "clone-interface-down", 1);
	assert_int_equal(clone_of(index_of("north.8.9"))->dropped, 4);
	assert_int_equal(clone_of(index_of("north.8.9"))->from_kernel, 2);
	i = router_interface("north", 8, 9, "10.8.0.1/24", NULL);
	kit_begin();
	kit_put(API_INTERFACE, "north.8.9", &i, sizeof(i));
	kit_delete(API_CLONE, "north.8.9");
	assert_int_equal(router_commit(), 0);
	assert_true(kit_balance());
}

static void buffers_run_out(void **state)
{
	static uint8_t frame[3000] = {2, 0x11, 0, 0, 0, 1}; // more than one buffer holds
	uint32_t taken = 0, most = rte_mempool_avail_count(engine_pool());
	struct rte_mbuf **all = calloc(most, sizeof(*all));

	assert_non_null(all);
	make_clone("north");
	while (taken + 1 < most && (all[taken] = rte_pktmbuf_alloc(engine_pool())) != NULL)
		taken++;
	struct kit_reasons before = kit_reasons();
	kernel_sends("north", frame, sizeof(frame));
	kit_only_rose(&before, "clone-no-buffer", 1);
	while (taken > 0)
		rte_pktmbuf_free(all[--taken]);
	free(all);
	remove_clone("north");
}

static void route_is(const char *via, int there)
{
	kit_begin();
	router_put_route("10.9.0.0/16", "10.9.0.0/16", via, "");
	assert_int_equal(router_commit(), 0);
	assert_int_equal(ip_route_lookup(0, 4, router_address("10.9.1.1").bytes) != NEXT_HOP_NONE, there);
}

static void routes_by_a_down_interface(void)
{
	route_is("10.1.0.9", 1);
	route_is("10.2.0.9", 0);
	kit_begin();
	kit_delete(API_ROUTE, "10.9.0.0/16");
	assert_int_equal(router_commit(), 0);
	route_is("10.2.0.8", 0);
	route_is("10.1.0.9", 1);
	route_is("10.2.0.9", 0);
}

// A down interface takes nothing in, and no route leads there.
static void interfaces_go_down(void **state)
{
	struct api_interface i = router_interface("south", 0, 0, "10.2.0.1/24", NULL);
	struct kit_reasons before;
	struct router_frame f;

	kit_begin();
	router_put_route("10.9.0.0/16", "10.9.0.0/16", "10.2.0.9", "");
	assert_int_equal(router_commit(), 0);
	assert_int_not_equal(ip_route_lookup(0, 4, router_address("10.9.1.1").bytes), NEXT_HOP_NONE);
	i.flags = API_INTERFACE_DOWN;
	kit_begin();
	kit_put(API_INTERFACE, "south", &i, sizeof(i));
	assert_int_equal(router_commit(), 0);
	assert_int_equal(ip_route_lookup(0, 4, router_address("10.9.1.1").bytes), NEXT_HOP_NONE);
	assert_int_equal(ip_route_lookup(0, 4, router_address("10.2.0.77").bytes), NEXT_HOP_NONE);
	router_ethernet(&f, "south", peer_south, 0, 0, 0x0800);
	router_udp(&f, "10.2.0.5", "10.1.0.1", 64, 20);
	before = kit_reasons();
	router_receive("south", &f);
	kit_only_rose(&before, "interface-down", 1);
	// A route may change meanwhile, lead elsewhere and back.
	routes_by_a_down_interface();
	i.flags = 0;
	kit_begin();
	kit_put(API_INTERFACE, "south", &i, sizeof(i));
	assert_int_equal(router_commit(), 0);
	assert_int_not_equal(ip_route_lookup(0, 4, router_address("10.9.1.1").bytes), NEXT_HOP_NONE);
	router_receive("south", &f);
	kit_only_dropped(&before, "interface-down", 1);
	kit_begin();
	kit_delete(API_ROUTE, "10.9.0.0/16");
	assert_int_equal(router_commit(), 0);
}

static void bad_clones_are_refused(void **state)
{
	struct api_interface i = router_interface("south", 0, 0, "10.2.0.1/24", NULL);

	assert_int_equal(put_clone("nowhere", "tap0", ""), ENOENT);
	assert_int_equal(put_clone("homes", "tap0", ""), EINVAL); // access
	assert_int_equal(put_clone("north", "", ""), EINVAL);
	assert_int_equal(put_clone("north", "a/b", ""), EINVAL);
	assert_int_equal(put_clone("north", "..", ""), EINVAL);
	assert_int_equal(put_clone("north", "sixteen-letters-", ""), EINVAL);
	assert_int_equal(put_clone("north", "tap0", "relative"), EINVAL);
	assert_int_equal(put_clone("north", "tap0", "/run/netns/a"), 0);
	assert_int_equal(put_clone("south", "tap0", "/run/netns/a"), EEXIST);
	assert_int_equal(put_clone("south", "tap0", "/run/netns/b"), 0);
	kit_begin();
	kit_delete(API_INTERFACE, "south");
	assert_int_equal(router_commit(), ENOENT);
	remove_clone("north");
	remove_clone("south");
	i.flags = 0x80000000; // unknown
	kit_begin();
	kit_put(API_INTERFACE, "south", &i, sizeof(i));
	assert_int_equal(router_commit(), EINVAL);
	i.flags = 0;
	i.mtu = 9000; // above the port's
	kit_begin();
	kit_put(API_INTERFACE, "south", &i, sizeof(i));
	assert_int_equal(router_commit(), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(routing_protocols_go_up, end_clones),
		cmocka_unit_test_teardown(without_a_clone_they_are_dropped, end_clones),
		cmocka_unit_test_teardown(link_protocols_go_up, end_clones),
		cmocka_unit_test_teardown(host_packets_go_up, end_clones),
		cmocka_unit_test_teardown(arp_goes_up, end_clones),
		cmocka_unit_test_teardown(frames_come_down, end_clones),
		cmocka_unit_test_teardown(buffers_run_out, end_clones),
		cmocka_unit_test_teardown(interfaces_go_down, end_clones),
		cmocka_unit_test_teardown(bad_clones_are_refused, end_clones),
	};

	return cmocka_run_group_tests(tests, router_start, NULL);
}
