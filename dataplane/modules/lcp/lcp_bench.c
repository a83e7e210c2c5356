// SPDX-License-Identifier: Apache-2.0
// Cost of LCP echo for 65,536 subscribers: each sends a request in 10 seconds and answers one of ours, for a minute of
// virtual time. The figure is the share of one CPU's time, less that of the same walks without LCP. lcp-bench [SECONDS]
#include "testkit/frame.h"
#include "testkit/mobile.h"
#include "wire/bytes.h"
#include "wire/pppoe.h"
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBSCRIBERS 65536u
#define INTERVAL 10u // seconds
#define STEP_US 1000u

static void commit(void)
{
	if (kit_commit() == 0)
		return;
	fprintf(stderr, "refused: %s\n", kit_error());
	exit(1);
}

static void mac_of(uint8_t mac[6], uint32_t n)
{
	memcpy(mac, (const uint8_t[6]){2}, 6);
	store32(mac + 2, n);
}

static void put(uint32_t n, uint16_t interval)
{
	static struct kit_mobile k;
	char name[API_NAME], ue[32];

	snprintf(ue, sizeof(ue), "100.64.%u.%u", n >> 8, n & 255);
	snprintf(name, sizeof(name), "home-%u", n);
	kit_mobile(&k, n + 1, ue, NULL);
	k.s.encap = API_ENCAP_QINQ_PPPOE;
	k.s.outer_tpid = 0x88a8;
	k.s.s_tag = (uint16_t)(1 + n / 4000);
	k.s.c_tag = (uint16_t)(1 + n % 4000);
	k.s.pppoe_session = (uint16_t)(1 + n % 65535);
	mac_of(k.s.mac, n);
	snprintf(k.s.port, API_NAME, "access");
	kit_pdr_ue(&k, API_FROM_ACCESS, NULL, 1)->match |= API_PDR_ENDPOINT;
	kit_pdr_ue(&k, API_FROM_CORE, "internet", 2);
	kit_far_ip(&k, 1, API_FROM_CORE, "internet");
	kit_far(&k, 2, API_FAR_FORWARD, API_FROM_ACCESS)->outer = API_OUTER_ENDPOINT;
	k.s.lcp_magic = 0x01000000 + n;
	k.s.lcp_interval = interval;
	k.s.lcp_opened = 1;
	kit_put_mobile(name, &k);
}

static void put_all(uint16_t interval)
{
	for (uint32_t n = 0; n < SUBSCRIBERS; n++) {
		if (n % 1024 == 0)
			kit_begin();
		put(n, interval);
		if (n % 1024 == 1023)
			commit();
	}
}

static void send(uint32_t n, uint8_t code, uint32_t *sent)
{
	static struct frame f;
	uint8_t mac[6];

	mac_of(mac, n);
	frame_payload(&f, 4);
	uint8_t *p = frame_push(&f, 4);
	p[0] = code;
	store16(p + 2, LCP_ECHO_HEADER);
	frame_pppoe(&f, (uint16_t)(1 + n % 65535), PPP_LCP);
	frame_ethernet(&f, port_by_name("access")->mac.addr_bytes, mac, 0x8864);
	frame_tag(&f, 0x8100, (uint16_t)(1 + n % 4000));
	frame_tag(&f, 0x88a8, (uint16_t)(1 + n / 4000));
	kit_send("access", f.at, f.length);
	++*sent;
}

// Seconds of CPU for `seconds` of virtual time; with `echo`, including the subscribers' packets.
static double run(uint32_t seconds, int echo, uint32_t *received)
{
	uint64_t ticks = 0;
	uint32_t next = 0, sent = 0;
	double due = 0;

	for (uint32_t step = 0; step < seconds * (1000000 / STEP_US); step++) {
		for (due += (double)SUBSCRIBERS / INTERVAL * STEP_US / 1e6; echo && due >= 1; due--) {
			send(next, LCP_ECHO_REQUEST, &sent);
			send(next, LCP_ECHO_REPLY, &sent);
			next = (next + 1) % SUBSCRIBERS;
		}
		uint64_t begin = rte_rdtsc();
		kit_advance(STEP_US);
		ticks += rte_rdtsc() - begin;
		*received += kit_count("access");
		kit_clear();
	}
	return (double)ticks / (double)rte_get_tsc_hz();
}

int main(int argc, char **argv)
{
	uint32_t seconds = argc > 1 ? (uint32_t)atoi(argv[1]) : 60, idle = 0, out = 0;
	struct api_engine e = kit_engine();

	e.max_sessions = SUBSCRIBERS;
	kit_start(&e);
	kit_begin();
	kit_port("access", API_ROLE_ACCESS);
	kit_port("core", API_ROLE_CORE);
	kit_interface("n6", "core", "192.0.2.1/24", NULL);
	kit_instance("internet", "n6", NULL, API_LOOKUP_DESTINATION, "100.64.0.0/16");
	commit();
	put_all(0);
	double without = run(seconds, 0, &idle);
	put_all(INTERVAL);
	double with = run(seconds, 1, &out);
	printf("%u subscribers, %u s: %u frames to them; CPU %.2f %% with LCP echo, %.2f %% without\n", SUBSCRIBERS,
		seconds, out, 100 * with / seconds, 100 * without / seconds);
	return 0;
}
