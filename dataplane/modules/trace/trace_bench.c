// SPDX-License-Identifier: Apache-2.0
// What traces cost packets that none of them follows: MODE off, edges, late, ue (of another session), flow (the same,
// and a filter), host (nobody's address), filter. Under valgrind --tool=callgrind it counts instructions: the
// difference between two modes, divided by packets, is a trace's. usage: trace-bench MODE [ROUNDS]
#include "core/trace_inside.h"
#include "session/mobile_fixture.h"
#include <rte_cycles.h>

#define VECTORS 64u // packets of a round

static void put_session(const char *name, uint64_t seid, const char *ue, uint32_t teid)
{
	struct kit_mobile k;

	kit_begin();
	kit_mobile(&k, seid, ue, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", teid, 1)->match |= API_PDR_UE_IP;
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x200);
	kit_put_mobile(name, &k);
	commit();
}

static void begin(const char *mode)
{
	// udp port 53, of IPv4
	static const struct api_trace_instruction port[] = {{48, 0, 0, 9}, {21, 0, 6, 17}, {177, 0, 0, 0},
		{72, 0, 0, 0}, {21, 2, 0, 53}, {72, 0, 0, 2}, {21, 0, 1, 53}, {6, 0, 0, 65535}, {6, 0, 0, 0}};
	static struct trace_order o;
	struct api_trace_state s;

	o.want = (struct api_trace){.seconds = 3600, .flags = API_TRACE_STEPS};
	if (strcmp(mode, "off") == 0)
		return;
	if (strcmp(mode, "edges") == 0)
		o.want.flags = API_TRACE_EDGES;
	if (strcmp(mode, "late") == 0)
		o.want.flags |= API_TRACE_LATE;
	if (strcmp(mode, "ue") == 0 || strcmp(mode, "flow") == 0 || strcmp(mode, "host") == 0) {
		const char *address = mode[0] == 'h' ? "10.45.9.9" : "10.45.0.3";

		o.want.keys = 1;
		o.key[0] = (struct api_trace_key){.by = API_TRACE_BY_ADDRESS, .address = kit_address(address)};
	}
	if (strcmp(mode, "filter") == 0 || strcmp(mode, "flow") == 0) {
		o.want.packet_code = RTE_DIM(port);
		memcpy(o.packet, port, sizeof(port));
	}
	if (trace_begin(&o, &s) != 0)
		fail_msg("refused: %s", kit_error());
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 20000;
	struct frame f;

	fixture_start(NULL);
	put_session("s1", 1, UE4, 0x100);
	put_session("s2", 2, "10.45.0.3", 0x101);
	ip_packet(&f, UE4, FAR4, 64);
	tunnel(&f, "10.1.0.2", "10.1.0.1", 0x100, 9, API_PDU_UL);
	link_layer(&f, "ran", 1);
	send_frame("ran", &f);
	begin(argc > 1 ? argv[1] : "off");
	uint64_t start = rte_rdtsc();
	for (uint32_t i = 0; i < rounds; i++) {
		kit_clear();
		for (uint32_t k = 0; k < VECTORS; k++)
			kit_send("ran", f.at, f.length);
		kit_run();
	}
	printf("%-8s %7.1f ticks a packet, with what makes it and takes it\n", argc > 1 ? argv[1] : "off",
		(double)(rte_rdtsc() - start) / (rounds * (double)VECTORS));
	return kit_count("internet") == VECTORS ? 0 : 1;
}
