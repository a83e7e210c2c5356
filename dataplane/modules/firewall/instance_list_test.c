// SPDX-License-Identifier: Apache-2.0
// Access lists of network instances: which packets they look at, in a UPF's graph, and their life beside the
// instances'.
#include "firewall/firewall.h"
#include "instance/instance.h"
#include "session/mobile_fixture.h"
#include "testkit/reasons.h"
#include <errno.h>

#define FAR_DENIED "203.0.113.7"
#define FAR6_DENIED "2001:db8:dead::7"

struct list {
	struct api_acl head;
	struct api_acl_rule rule[2];
};

static int setup(void **state)
{
	fixture_start(NULL);
	put("a", upf_session(2));
	return 0;
}

// Denies packets from the two hosts above, or to them (outbound); nothing else.
static struct list blocklist(int outbound)
{
	static const char *const host[2] = {FAR_DENIED "/32", FAR6_DENIED "/128"};
	struct list l = {.head = {API_PERMIT, 2}};

	for (int i = 0; i < 2; i++) {
		struct api_acl_rule *r = &l.rule[i];

		*(outbound ? &r->destination : &r->source) = kit_address(host[i]);
		r->source_port[1] = r->destination_port[1] = UINT16_MAX;
		r->action = API_DENY;
	}
	return l;
}

static int put_list(const char *key, const struct list *l)
{
	return kit_change(API_ACL, key, l, (uint32_t)(sizeof(l->head) + l->head.count * sizeof(l->rule[0])));
}

static void delete_list(const char *key)
{
	kit_begin();
	kit_delete(API_ACL, key);
	commit();
}

static void denied(const char *port, const struct frame *f, const char *reason)
{
	struct kit_reasons before = kit_reasons();

	expect_drop(port, f, reason);
	kit_only_rose(&before, reason, 1);
}

// A G-PDU with a sequence number, which takes the full parse; the others are plain.
static struct frame *numbered(struct frame *f, const char *ue, const char *far)
{
	ip_packet(f, ue, far, 80);
	frame_push(f, 4);
	frame_gtpu(f, 0x102, 0xff);
	f->at[0] |= 2;
	frame_udp(f, 2152, 2152);
	frame_ip(f, "10.1.0.2", "10.1.0.1", 17);
	link_layer(f, "ran", 1);
	return f;
}

static void out_of_tunnels(void **state)
{
	static struct frame in, out, other;
	struct list l = blocklist(1);

	assert_int_equal(put_list("in/access", &l), 0);
	denied("ran", uplink_of(&in, UE4, FAR_DENIED, 0x102, 0xff), "firewall-instance-deny");
	denied("ran", uplink_of(&in, UE4, FAR_DENIED, 0x102, 9), "firewall-instance-deny");
	denied("ran", numbered(&in, UE4, FAR_DENIED), "firewall-instance-deny");
	expect("ran", numbered(&in, UE4, FAR4), "internet", routed_out(&out, UE4, FAR4));
	ip_packet(&other, UE6, FAR6_DENIED, 80);
	tunnel(&other, "10.1.0.2", "10.1.0.1", 0x102, 9, API_PDU_UL);
	link_layer(&other, "ran", 1);
	denied("ran", &other, "firewall-instance-deny");
	expect("ran", uplink_of(&in, UE4, FAR4, 0x102, 9), "internet", routed_out(&out, UE4, FAR4));
	// Packets into another instance are not looked at, nor is our own reverse direction.
	expect("internet", downlink_of(&in, FAR_DENIED, UE4), "ran", tunnelled_out(&out, FAR_DENIED, UE4, 0x202, 0xff));
	delete_list("in/access");
	expect("ran", uplink_of(&in, UE4, FAR_DENIED, 0x102, 9), "internet", routed_out(&out, UE4, FAR_DENIED));
}

static void to_ues(void **state)
{
	static struct frame in, out;
	struct list l = blocklist(0);

	assert_int_equal(put_list("in/core", &l), 0);
	denied("internet", downlink_of(&in, FAR_DENIED, UE4), "firewall-instance-deny");
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	l.head = (struct api_acl){API_DENY, 1};
	l.rule[0].source = kit_address(FAR4 "/32");
	l.rule[0].action = API_PERMIT;
	assert_int_equal(put_list("in/core", &l), 0);
	expect("internet", downlink_of(&in, FAR4, UE4), "ran", tunnelled_out(&out, FAR4, UE4, 0x202, 0xff));
	denied("internet", downlink_of(&in, "198.51.100.10", UE4), "firewall-instance-default");
	assert_int_equal(firewall_instance_list((uint16_t)instance_index("core"))->hits[1], 1);
	delete_list("in/core");
}

// RFC 1858, RFC 3128: the ports of a first fragment count; a TCP fragment at offset 8 would overwrite the flags.
static void fragments(void **state)
{
	static const char *const ends[2][2] = {{UE4, FAR4}, {UE6, FAR6}};
	static struct frame f;
	struct list l = {.head = {API_PERMIT, 1},
		.rule = {{.source_port = {0, UINT16_MAX},
			.destination_port = {5000, 5000},
			.protocol = 17,
			.protocol_mask = 0xff,
			.action = API_DENY}}};

	assert_int_equal(put_list("in/core", &l), 0);
	assert_int_equal(put_list("in/access", &l), 0);
	for (int i = 0; i < 8; i++) {
		int six = i & 1, up = i >> 1 & 1, later = i >> 2;

		ip_packet(&f, ends[six][!up], ends[six][up], 80);
		f.at[six ? 6 : 9] = later ? 6 : 17;
		frame_fragment(&f, (uint16_t)later, 1);
		if (up)
			tunnel(&f, "10.1.0.2", "10.1.0.1", 0x102, 9, API_PDU_UL);
		link_layer(&f, up ? "ran" : "internet", 1);
		denied(up ? "ran" : "internet", &f,
			later ? "firewall-instance-tiny-fragment" : "firewall-instance-deny");
	}
	delete_list("in/core");
	delete_list("in/access");
}

// Two instances by turns in one vector: each packet has the list of its own.
static void mixed_vector(void **state)
{
	static struct frame up, down;
	struct list l = blocklist(1);

	assert_int_equal(put_list("in/access", &l), 0);
	l = blocklist(0);
	assert_int_equal(put_list("in/core", &l), 0);
	struct kit_reasons before = kit_reasons();
	kit_clear();
	for (int i = 0; i < 60; i++) {
		uplink_of(&up, UE4, i % 3 ? FAR4 : FAR_DENIED, 0x102, 9);
		downlink_of(&down, i % 4 ? FAR4 : FAR_DENIED, UE4);
		assert_int_equal(kit_send("ran", up.at, up.length), 0);
		assert_int_equal(kit_send("internet", down.at, down.length), 0);
	}
	kit_run();
	assert_true(kit_balance());
	assert_int_equal(kit_count("internet"), 40);
	assert_int_equal(kit_count("ran"), 45);
	kit_only_rose(&before, "firewall-instance-deny", 20 + 15);
	delete_list("in/access");
	delete_list("in/core");
}

// A list may be there before its instance, and after it.
static void without_the_instance(void **state)
{
	static struct frame in, out;
	struct list l = blocklist(0);

	gone("a");
	assert_int_equal(put_list("in/core", &l), 0);
	kit_begin();
	kit_delete(API_INSTANCE, "core");
	commit();
	assert_null(firewall_instance_list(0));
	assert_false(firewall_instances());
	kit_begin();
	fixture_instances(0, 0);
	commit();
	put("a", upf_session(2));
	denied("internet", downlink_of(&in, FAR_DENIED, UE4), "firewall-instance-deny");
	delete_list("in/core");
	expect("internet", downlink_of(&in, FAR_DENIED, UE4), "ran", tunnelled_out(&out, FAR_DENIED, UE4, 0x202, 0xff));
}

static void refused_keys(void **state)
{
	struct list l = blocklist(0);
	char key[API_NAME];

	assert_int_equal(put_list("in/", &l), EINVAL);
	assert_int_equal(put_list("out/core", &l), EINVAL);
	for (int i = 0; i < MAX_INSTANCES; i++) {
		snprintf(key, sizeof(key), "in/n%d", i);
		assert_int_equal(put_list(key, &l), 0);
	}
	assert_int_equal(put_list("in/core", &l), ENOSPC);
	assert_int_equal(put_list("in/n3", &l), 0); // replaced
	delete_list("in/n3");
	assert_int_equal(put_list("in/core", &l), 0);
	delete_list("in/core");
	for (int i = 0; i < MAX_INSTANCES; i++) {
		snprintf(key, sizeof(key), "in/n%d", i);
		if (i != 3)
			delete_list(key);
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(out_of_tunnels),
		cmocka_unit_test(to_ues),
		cmocka_unit_test(fragments),
		cmocka_unit_test(mixed_vector),
		cmocka_unit_test(without_the_instance),
		cmocka_unit_test(refused_keys),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
