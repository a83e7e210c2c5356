// SPDX-License-Identifier: Apache-2.0
// What traces cost packets that they do not follow. MODE: off, edges, late, ue (of another session), flow (the same,
// and a filter), host (an unused address), filter. Modes full-up, full-down: no trace, packets take the full nodes.
// Under valgrind --tool=callgrind it counts instructions. The difference of two modes per packet is a trace's cost;
// that of two builds (meson -Dtrace=false) the cost of packets' marks.
//
// usage: trace-bench MODE [ROUNDS]
#include "core/trace_inside.h"
#include "session/mobile_fixture.h"
#include <rte_cycles.h>

#define VECTORS 64u // packets of a round

static void by_tos(struct kit_mobile *k, struct api_pdr *pdr) // which the fast path does not learn
{
	struct api_sdf *sdf = kit_sdf(k, pdr);

	sdf->flags = API_SDF_TOS;
	sdf->tos_mask = 0xfc;
}

static void put_session(const char *name, uint64_t seid, const char *ue, uint32_t teid, int full)
{
	struct kit_mobile k;

	kit_begin();
	kit_mobile(&k, seid, ue, NULL);
	struct api_pdr *up = kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", teid, 1);
	up->match |= API_PDR_UE_IP;
	if (full)
		by_tos(&k, up);
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	struct api_pdr *down = kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	if (full)
		by_tos(&k, down);
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
	const char *mode = argc > 1 ? argv[1] : "off";
	int full = strncmp(mode, "full", 4) == 0, down = strcmp(mode, "full-down") == 0;
	const char *from = down ? "internet" : "ran", *to = down ? "ran" : "internet";
	uint32_t rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 20000;
	struct frame f;

	fixture_start(NULL);
	put_session("s1", 1, UE4, 0x100, full);
	put_session("s2", 2, "10.45.0.3", 0x101, full);
	ip_packet(&f, down ? FAR4 : UE4, down ? UE4 : FAR4, 64);
	if (!down)
		tunnel(&f, "10.1.0.2", "10.1.0.1", 0x100, 9, API_PDU_UL);
	link_layer(&f, from, 1);
	send_frame(from, &f);
	if (!full)
		begin(mode);
	uint64_t start = rte_rdtsc();
	for (uint32_t i = 0; i < rounds; i++) {
		kit_clear();
		for (uint32_t k = 0; k < VECTORS; k++)
			kit_send(from, f.at, f.length);
		kit_run();
	}
	printf("%-9s %7.1f ticks a packet, with what makes it and takes it\n", mode,
		(double)(rte_rdtsc() - start) / (rounds * (double)VECTORS));
	return kit_count(to) == VECTORS ? 0 : 1;
}
