// SPDX-License-Identifier: Apache-2.0
// Subscribers with an IP core side, for tests: the homes of testkit/gateway.h in network instance "internet", which
// looks UEs up on interface n6. Home n also has 2001:db8:f00n::/48 delegated and 203.0.113.(8n)/29 routed to it.
//
// The encapsulation is the fixture's, not the home's number's: S-tag 100 and C-tag n, the S-tag 200 + n alone, or
// none; with PPPoE or without.
#ifndef ACCESS_BNG_TEST_H
#define ACCESS_BNG_TEST_H

#include "access/agf_test.h"
#include "testkit/mobile.h"
#include "wire/checksum.h"

enum bng_tags { BNG_QINQ, BNG_SINGLE, BNG_UNTAGGED, BNG_TAGS };

struct bng {
	uint32_t home;
	enum bng_tags tags;
	int pppoe;
};

enum { BNG_UP = 1, BNG_DOWN = 2 }; // ids of PDRs and FARs
enum { BNG_ALL = 1, BNG_IP6 = 2 }; // ids of URRs

static inline void bng_session(struct kit_mobile *k, const struct bng *b)
{
	char text[64];

	snprintf(text, sizeof(text), "2001:db8:1:%x::/64", b->home);
	kit_mobile(k, 0x500 + b->home, gateway_ue(b->home, 4), text);
	k->s.encap = b->pppoe ? API_ENCAP_QINQ_PPPOE : API_ENCAP_QINQ;
	k->s.outer_tpid = 0x88a8;
	k->s.s_tag = b->tags == BNG_QINQ ? 100 : b->tags == BNG_SINGLE ? (uint16_t)(200 + b->home) : 0;
	k->s.c_tag = b->tags == BNG_QINQ ? (uint16_t)b->home : 0;
	k->s.pppoe_session = b->pppoe ? (uint16_t)b->home : 0;
	memcpy(k->s.mac, gateway_home_mac(b->home), 6);
	snprintf(k->s.port, API_NAME, "access");
	struct api_pdr *up = kit_pdr_ue(k, API_FROM_ACCESS, NULL, BNG_UP);
	struct api_pdr *down = kit_pdr_ue(k, API_FROM_CORE, "internet", BNG_DOWN);
	up->match |= API_PDR_ENDPOINT | API_PDR_FRAMED;
	down->match |= API_PDR_FRAMED;
	down->outer_header_removal = API_REMOVAL_NOTHING;
	kit_far_ip(k, BNG_UP, API_FROM_CORE, "internet");
	kit_far(k, BNG_DOWN, API_FAR_FORWARD, API_FROM_ACCESS)->outer = API_OUTER_ENDPOINT;
	snprintf(text, sizeof(text), "2001:db8:f00%x::/48", b->home);
	kit_framed_route(k, text);
	snprintf(text, sizeof(text), "203.0.113.%u/29", 8 * b->home);
	kit_framed_route(k, text);
}

// Usage of all packets, and of IPv6.
static inline void bng_urrs(struct kit_mobile *k)
{
	for (int i = 0; i < 2; i++) {
		kit_pdr_urr(&k->pdr[i], BNG_ALL);
		kit_pdr_urr(&k->pdr[i], BNG_IP6);
	}
	kit_urr(k, BNG_ALL);
	kit_urr(k, BNG_IP6)->flags = API_URR_IP6;
}

static inline void bng_commit(const char *name, const struct kit_mobile *k)
{
	kit_begin();
	kit_put_mobile(name, k);
	commit();
}

static inline void bng_put(const struct bng *b)
{
	static struct kit_mobile k;

	bng_session(&k, b);
	bng_commit(gateway_home_name(b->home), &k);
}

static inline void bng_delete(uint32_t home)
{
	kit_begin();
	kit_delete(API_SESSION, gateway_home_name(home));
	commit();
}

// Ethernet, tags and PPPoE in front of the IP packet at f->at.
static inline void bng_access(struct frame *f, const struct bng *b, int from_home)
{
	int six = f->at[0] >> 4 == 6;
	const uint8_t *home = gateway_home_mac(b->home);
	uint16_t type = six ? 0x86dd : 0x0800;

	if (b->pppoe) {
		frame_pppoe(f, (uint16_t)b->home, six ? 0x57 : 0x21);
		type = 0x8864;
	}
	frame_ethernet(f, from_home ? gateway_mac[0] : home, from_home ? home : gateway_mac[0], type);
	if (b->tags == BNG_QINQ)
		frame_tag(f, 0x8100, (uint16_t)b->home);
	if (b->tags != BNG_UNTAGGED)
		frame_tag(f, 0x88a8, b->tags == BNG_QINQ ? 100 : (uint16_t)(200 + b->home));
}

static inline void bng_internet(struct frame *f, int from_us)
{
	frame_ethernet(f, from_us ? gateway_router : gateway_mac[2], from_us ? gateway_mac[2] : gateway_router,
		f->at[0] >> 4 == 6 ? 0x86dd : 0x0800);
}

// The hop limit of the IP packet at f->at.
static inline void bng_ttl(struct frame *f, uint8_t ttl)
{
	f->at[f->at[0] >> 4 == 6 ? 7 : 8] = ttl;
	if (f->at[0] >> 4 == 4)
		frame_ip4_sum(f);
}

// The frame of a home or the router, and its expected output.
static inline void bng_way(struct frame *in, struct frame *out, const struct bng *b, int uplink, const char *from,
	const char *to, uint32_t payload)
{
	inner(in, from, to, payload);
	inner(out, from, to, payload);
	bng_ttl(out, 63);
	if (uplink) {
		bng_access(in, b, 1);
		bng_internet(out, 1);
	} else {
		bng_internet(in, 0);
		bng_access(out, b, 0);
	}
}

// Three times, so that the fast path has the flow, or would have it.
static inline void bng_expect(const struct bng *b, int uplink, const char *from, const char *to, uint32_t payload)
{
	static struct frame in, out;

	bng_way(&in, &out, b, uplink, from, to, payload);
	if (uplink && in.length < 60)
		frame_append(&in, NULL, 60 - in.length);
	for (int i = 0; i < 3; i++)
		expect(uplink ? "access" : "internet", &in, uplink ? "internet" : "access", &out);
}

static inline void bng_start(const struct api_engine *e)
{
	struct api_route r = {.prefix = kit_address("0.0.0.0/0"), .via = kit_address("192.0.2.2")};

	gateway_start(e);
	kit_begin();
	kit_put(API_ROUTE, "0.0.0.0/0", &r, sizeof(r));
	r = (struct api_route){.prefix = kit_address("::/0"), .via = kit_address("2001:db8:6::2")};
	kit_put(API_ROUTE, "::/0", &r, sizeof(r));
	kit_instance("internet", "n6", NULL, API_LOOKUP_DESTINATION, "100.64.0.0/16");
	commit();
	kit_run();
	kit_clear();
}

static inline int bng_setup(void **state)
{
	bng_start(NULL);
	return 0;
}

#endif
