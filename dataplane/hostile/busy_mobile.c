// SPDX-License-Identifier: Apache-2.0
// Mobile sessions of every kind on the busy gateway.
#include "hostile/busy_mobile.h"
#include "hostile/busy_gateway.h"
#include "testkit/gateway.h"
#include "testkit/mobile.h"
#include "wire/bytes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN, GONE, BUFFERS, CLOSED, DROPS, OTHER_WORKER, QUERY, REGRANT, CHANGES };

static uint8_t is_now[BUSY_MOBILE + 1]; // PLAIN, ...
static uint32_t count; // for values that must differ

static void interface(const char *name, const char *port, uint16_t vlan, const char *const *addresses)
{
	struct api_interface i = {.outer_vlan = vlan};

	snprintf(i.port, sizeof(i.port), "%s", port);
	while (*addresses != NULL)
		i.address[i.count++] = kit_address(*addresses++);
	kit_put(API_INTERFACE, name, &i, sizeof(i));
}

static void instances(void)
{
	struct api_instance access = kit_instance_body("n3", "10.0.0.11", API_LOOKUP_NONE, NULL);
	struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");

	access.endpoint[access.endpoints++] = kit_address("fd00::11");
	access.endpoint[access.endpoints++] = kit_address("10.0.0.12");
	core.pool[core.pools++] = kit_address("2001:db8:45::/48");
	core.udp_port = 5555;
	kit_put(API_INSTANCE, "access", &access, sizeof(access));
	kit_put(API_INSTANCE, "core", &core, sizeof(core));
	kit_instance("radio", "radio", NULL, API_LOOKUP_SOURCE, NULL);
}

static void urrs(struct kit_mobile *k)
{
	struct api_urr *u = kit_urr(k, 1);

	u->method = API_URR_VOLUME | API_URR_DURATION | API_URR_EVENT;
	u->triggers = API_URR_VOLTH | API_URR_VOLQU | API_URR_TIMTH | API_URR_TIMQU | API_URR_START | API_URR_STOPT |
		      API_URR_QUHTI | API_URR_DROTH | API_URR_EVETH | API_URR_PERIO;
	u->flags = API_URR_HAS_VOLUME_QUOTA | API_URR_HAS_TIME_QUOTA;
	u->volume_threshold[API_TOTAL] = 500;
	u->volume_quota[API_TOTAL] = 3000;
	u->volume_quota[API_DOWNLINK] = 2000;
	u->time_threshold = 1;
	u->time_quota = 7;
	u->holding_time = 5;
	u->inactivity = 1;
	u->period = 2;
	u->event_threshold = 2;
	u->dropped_packets = 2;
	u->quota_far = 3;
	u->monitoring_time = 1704067203; // three seconds into the tests' clock
	u = kit_urr(k, 2);
	u->triggers = API_URR_LIUSA;
	u->linked[0] = 1;
	u->flags = API_URR_BEFORE_QOS | API_URR_COUNT_PACKETS;
	u = kit_urr(k, 3);
	u->triggers = API_URR_VOLQU;
	u->flags = API_URR_HAS_VOLUME_QUOTA;
	u->volume_quota[API_UPLINK] = 1500;
	kit_far(k, 3, API_FAR_DROP | API_FAR_NOTIFY, API_FROM_CORE);
	for (uint16_t i = 0; i < k->s.pdrs; i++)
		for (uint32_t id = 1; id <= 3; id++)
			kit_pdr_urr(&k->pdr[i], id);
	k->s.inactivity = 3;
}

static void filters(struct kit_mobile *k)
{
	for (int i = 0; i < 3; i++) {
		struct api_pdr *up = kit_pdr_fteid(k, API_FROM_ACCESS, "10.0.0.11", k->pdr[0].teid, 1);

		up->precedence = 10 + (uint32_t)i;
		for (int n = 0; n < 3; n++) {
			struct api_sdf *f = kit_sdf(k, up);

			f->remote_port[0] = (uint16_t)(5000 + 10 * i + n);
			f->remote_port[1] = (uint16_t)(f->remote_port[0] + i);
			f->flags = n == 0 ? API_SDF_DENY : n == 1 ? API_SDF_PROTOCOL : 0;
			f->protocol = 17;
			if (i == 2 && n == 2) { // no flows for this chain
				f->flags = API_SDF_SPI | API_SDF_TOS | API_SDF_FLOW_LABEL;
				f->spi = 0x01020304;
			}
		}
	}
	kit_framed_route(k, "172.16.0.0/24");
	kit_framed_route(k, "2001:db8:99::/56");
	k->pdr[0].match |= API_PDR_FRAMED;
	k->pdr[1].match |= API_PDR_FRAMED;
}

static void far_specials(struct kit_mobile *k, uint32_t n)
{
	struct api_far_more *more;

	switch (n) {
	case 2: // copies of both directions
		for (int i = 0; i < 2; i++) {
			k->far[i].action |= API_FAR_DUPLICATE;
			more = kit_far_more(k, &k->far[i]);
			more->duplicate_outer = i ? API_OUTER_GTPU : API_OUTER_NONE;
			more->duplicate_teid = 0x7777;
			strcpy(more->duplicate_path, i ? "mobile6" : "");
		}
		return;
	case 3:
		more = kit_far_more(k, &k->far[0]);
		more->redirect = API_REDIRECT_URL;
		strcpy(more->redirect_to, "http://portal.example/?ue=3");
		return;
	case 4: // N9, the whole tunnel packet inside
		k->pdr[0].outer_header_removal = 0;
		k->pdr[0].match &= (uint16_t)~API_PDR_UE_IP;
		k->far[0].outer = API_OUTER_GTPU;
		strcpy(k->far[0].path, "mobile6");
		return;
	case 5: // to ourselves, and round again
		k->far[0].outer = API_OUTER_GTPU;
		k->far[0].teid = 0x2005;
		strcpy(k->far[0].path, "self");
		return;
	case 6:
		k->far[1].outer = API_OUTER_UDP;
		k->far[1].port = 6666;
		return;
	default:
		return;
	}
}

static void mobile(struct kit_mobile *k, uint32_t n, uint8_t how)
{
	char ue4[32], ue6[48];

	snprintf(ue4, sizeof(ue4), "10.45.0.%u", n);
	snprintf(ue6, sizeof(ue6), "2001:db8:45:%x::/64", n);
	kit_mobile(k, 0x100 + n, ue4, ue6);
	k->s.worker = (uint16_t)((n + (how == OTHER_WORKER)) % 2);
	kit_pdr_fteid(k, API_FROM_ACCESS, "10.0.0.11", 0x1000 + n, 1)->match |= n % 3 || n == 9 ? API_PDR_UE_IP : 0;
	if (n == 7) // the radio's side of a UE: IP in, GTP-U out
		kit_pdr_ue(k, API_FROM_ACCESS, "radio", 2);
	else
		kit_pdr_ue(k, API_FROM_CORE, n % 2 ? "core" : NULL, 2);
	struct api_pdr *down = kit_pdr_fteid(k, API_FROM_CORE, "10.0.0.12", 0x2000 + n, 2);
	if (n == 8) {
		down->match |= API_PDR_QFI;
		down->qfis = 0xff00;
	}
	kit_far_ip(k, 1, API_FROM_CORE, n % 2 ? "core" : NULL);
	struct api_far *to =
		kit_far_gtpu(k, 2, n == 7 ? API_FROM_CORE : API_FROM_ACCESS, n % 2 ? "mobile4" : "mobile6", 0x3000 + n);
	to->buffer_packets = (uint16_t)(n == 10 ? 3 : 0);
	to->notify_delay = (uint16_t)(n % 2 * 20);
	to->buffer_ms = 300; // nothing waits for ever here
	struct api_qer *q = kit_qer(k, 1, (uint8_t)(n % 4));
	q->gate_downlink = how == CLOSED;
	if (n % 2) {
		strcpy(q->uplink_policer, "single");
		strcpy(q->downlink_policer, "two");
		q->share = n % 4 == 1 ? 77 : 0;
	}
	for (uint16_t i = 0; i < k->s.pdrs; i++)
		kit_pdr_qer(&k->pdr[i], 1);
	far_specials(k, n);
	if (n == 9)
		filters(k);
	if (n == 1 || n >= 10)
		urrs(k);
	if (how == DROPS)
		to->action = API_FAR_DROP | API_FAR_NOTIFY;
	if (how == BUFFERS || (how == PLAIN && n == 11))
		to->action = API_FAR_BUFFER | API_FAR_NOTIFY;
	to->end_marker = how == BUFFERS ? ++count : 0;
	for (uint16_t i = 0; i < k->s.urrs; i++) {
		k->urr[i].query = how == QUERY ? ++count : 0;
		k->urr[i].grant = how == REGRANT ? ++count : 0;
	}
}

static void put(uint32_t n, uint8_t how)
{
	static struct kit_mobile k;
	char name[16];

	snprintf(name, sizeof(name), "mobile-%u", n);
	is_now[n] = how;
	if (how == GONE) {
		kit_delete(API_SESSION, name);
		return;
	}
	mobile(&k, n, how);
	kit_put_mobile(name, &k);
}

void busy_mobile_objects(void)
{
	interface("n3", "core", 0,
		(const char *const[]){
			"10.0.0.1/24", "fd00::1/64", "10.0.0.11/24", "fd00::11/64", "10.0.0.12/24", NULL});
	interface("radio", "core", 7, (const char *const[]){"10.7.0.1/24", NULL});
	kit_path("mobile4", "10.0.0.11", "10.0.0.2");
	kit_path("mobile6", "fd00::11", "fd00::2");
	kit_path("self", "10.0.0.11", "10.0.0.12");
	instances();
	for (uint32_t n = 1; n <= BUSY_MOBILE; n++)
		put(n, PLAIN);
}

void busy_mobile_change(uint8_t session, uint8_t how)
{
	kit_begin();
	put(1 + session % BUSY_MOBILE, how % CHANGES);
	busy_gateway_check(kit_commit() == 0, kit_error());
}

void busy_mobile_restore(void)
{
	for (uint32_t n = 1; n <= BUSY_MOBILE; n++)
		if (is_now[n] != PLAIN)
			busy_mobile_change((uint8_t)(n - 1), PLAIN);
}

// The IP header gets the fields that the bytes do not set: the session's addresses, the length.
static void inner(struct frame *f, uint32_t n, int six, int up, uint8_t protocol)
{
	char ue[48];
	const char *far = six ? "2001:db8:ffff::9" : "198.51.100.9";

	snprintf(ue, sizeof(ue), six ? "2001:db8:45:%x::5" : "10.45.0.%u", n);
	frame_ip(f, up ? ue : far, up ? far : ue, protocol);
}

// bytes: session, QFI, protocol, payload (with the transport header).
const char *busy_mobile_frame(struct frame *f, uint8_t kind, const uint8_t *bytes, uint32_t length)
{
	uint8_t head[3] = {0};
	int six = kind & 1, up = kind & 2, from = kind >> 2 & 3;

	memcpy(head, bytes, length < 3 ? length : 3);
	bytes += length < 3 ? length : 3;
	length -= length < 3 ? length : 3;
	uint32_t n = 1 + head[0] % BUSY_MOBILE;
	frame_payload(f, 0);
	frame_append(f, bytes, length < FRAME_MAX - 400 ? length : FRAME_MAX - 400);
	inner(f, n, six, up, head[2]);
	if (from == 3) { // as it is, to the radio's side or the core's
		frame_ethernet(f, gateway_mac[up ? 1 : 2], up ? gateway_upf : gateway_router, six ? 0x86dd : 0x0800);
		if (up)
			frame_tag(f, 0x8100, 7);
		return up ? "core" : "internet";
	}
	if (from == 2) { // UDP tunnel
		frame_udp(f, 6666, 5555);
		frame_ip(f, "192.0.2.2", "192.0.2.1", 17);
		frame_ethernet(f, gateway_mac[2], gateway_router, 0x0800);
		return "internet";
	}
	frame_gtpu(f, (from ? 0x2000 : 0x1000) + n, head[1] & 0x80 ? 0xff : head[1] & 0x3f);
	if (head[0] & 0x80)
		f->at[1] = 254; // End Marker
	frame_udp(f, 2152, 2152);
	frame_ip(f, "10.0.0.2", from ? "10.0.0.12" : "10.0.0.11", 17);
	frame_ethernet(f, gateway_mac[1], gateway_upf, 0x0800);
	return "core";
}
