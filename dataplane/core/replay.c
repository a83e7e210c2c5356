// SPDX-License-Identifier: Apache-2.0
// `isthmus-dp replay`: capture files in, capture files out, through the same graph. No threads, no root, no huge pages, and
// the captures' own clock, so the same input gives the same output every time.
#include "core/engine.h"
#include "core/log.h"
#include "core/port_inject.h"
#include <errno.h>
#include <getopt.h>
#include <pcap/pcap.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILES 32
#define DRAIN_SECONDS 60 // of virtual time after the last packet, at most, for what is still held

struct capture {
	char port[API_NAME];
	const char *file;
	pcap_t *in;
	pcap_dumper_t *out;
	struct pcap_pkthdr *head; // next packet, or NULL
	const u_char *data;
};

static struct {
	struct capture in[MAX_FILES], out[MAX_FILES];
	int ins, outs;
	pcap_t *format; // of output files: Ethernet, nanoseconds
	uint64_t epoch_ns; // of the first packet
	uint64_t skipped;
} replay;

static uint64_t virtual_ns(void)
{
	return control_now_ns() + replay.epoch_ns;
}

static int add_file(struct capture *list, int *count, const char *arg)
{
	const char *eq = strchr(arg, '=');

	if (eq == NULL || eq == arg || eq - arg >= API_NAME || *count == MAX_FILES) {
		LOG(ERR, "\"%s\" is not PORT=FILE\n", arg);
		return -1;
	}
	memcpy(list[*count].port, arg, (size_t)(eq - arg));
	list[(*count)++].file = eq + 1;
	return 0;
}

// ---- state file ------------------------------------------------------------------------------------------------------

static int state_reply(struct reply_sink *s, const struct api_header *h, const void *body)
{
	const struct api_status *status = body;

	if ((h->flags & API_F_ERROR) != 0) {
		LOG(ERR, "the state is refused: %s %s\n", status->key, status->text);
		return -1;
	}
	return 0;
}

// Devices become memory queues, everything else is as in the daemon.
static void adapt(const struct api_header *h, uint8_t *body)
{
	struct api_object_head *head = (struct api_object_head *)body;

	if (h->type != API_PUT || h->length < sizeof(*head))
		return;
	if (head->kind == API_PORT && h->length == sizeof(*head) + sizeof(struct api_port)) {
		struct api_port *p = (struct api_port *)(head + 1);

		memset(p->driver, 0, sizeof(p->driver));
		memset(p->devargs, 0, sizeof(p->devargs));
		strcpy(p->driver, "inject");
	}
}

static int load_state(const char *file)
{
	struct reply_sink sink = {.send = state_reply, .owner = 1};
	struct api_header h;
	FILE *f = fopen(file, "rb");
	int error = 0;

	if (f == NULL) {
		LOG(ERR, "%s: %s\n", file, strerror(errno));
		return -1;
	}
	while (error == 0 && fread(&h, sizeof(h), 1, f) == 1) {
		if (h.magic != API_MAGIC || h.length > API_MAX_BODY) {
			LOG(ERR, "%s is not a state file\n", file);
			error = -1;
			break;
		}
		uint8_t *body = malloc(h.length + 1);
		if (body == NULL || fread(body, 1, h.length, f) != h.length) {
			LOG(ERR, "%s ends in the middle of a message\n", file);
			error = -1;
		} else {
			adapt(&h, body);
			request_handle(&sink, &h, body);
		}
		free(body);
	}
	fclose(f);
	if (error == 0 && (object_totals.refused != 0 || !engine_started()))
		error = -1;
	return error;
}

// ---- captures --------------------------------------------------------------------------------------------------------

static void next_packet(struct capture *c)
{
	int k = pcap_next_ex(c->in, &c->head, &c->data);

	if (k == 1)
		return;
	if (k == PCAP_ERROR)
		LOG(WARNING, "%s: %s; what follows is not replayed\n", c->file, pcap_geterr(c->in));
	c->head = NULL;
}

// The in files were opened with nanosecond precision: tv_usec holds nanoseconds.
static uint64_t stamp_ns(const struct capture *c)
{
	return (uint64_t)c->head->ts.tv_sec * NS_PER_S + (uint64_t)c->head->ts.tv_usec;
}

static void write_frame(struct port *p, struct rte_mbuf *m, void *arg)
{
	static u_char frame[INJECT_FRAME_MAX + 256];
	struct capture *c = arg;
	uint64_t now = virtual_ns();
	uint32_t length = RTE_MIN(rte_pktmbuf_pkt_len(m), (uint32_t)sizeof(frame));
	const void *data = rte_pktmbuf_read(m, 0, length, frame);
	struct pcap_pkthdr h = {
		.caplen = length,
		.len = rte_pktmbuf_pkt_len(m),
		.ts = {.tv_sec = (time_t)(now / NS_PER_S), .tv_usec = (suseconds_t)(now % NS_PER_S)},
	};

	pcap_dump((u_char *)c->out, &h, data);
}

static int open_files(void)
{
	char text[PCAP_ERRBUF_SIZE];

	replay.format = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, 65535, PCAP_TSTAMP_PRECISION_NANO);
	for (int i = 0; i < replay.ins; i++) {
		struct capture *c = &replay.in[i];

		c->in = pcap_open_offline_with_tstamp_precision(c->file, PCAP_TSTAMP_PRECISION_NANO, text);
		if (c->in == NULL || pcap_datalink(c->in) != DLT_EN10MB) {
			LOG(ERR, "%s: %s\n", c->file, c->in ? "not an Ethernet capture" : text);
			return -1;
		}
		if (port_by_name(c->port) == NULL) {
			LOG(ERR, "the configuration has no port %s\n", c->port);
			return -1;
		}
		next_packet(c);
	}
	for (int i = 0; i < replay.outs; i++) {
		struct capture *c = &replay.out[i];

		c->out = pcap_dump_open(replay.format, c->file);
		if (c->out == NULL || port_by_name(c->port) == NULL) {
			LOG(ERR, "%s: %s\n", c->file,
				c->out ? "the configuration has no port of that name" : pcap_geterr(replay.format));
			return -1;
		}
		inject_on_output(port_by_name(c->port), write_frame, c);
	}
	return 0;
}

static struct capture *earliest(void)
{
	struct capture *first = NULL;

	for (int i = 0; i < replay.ins; i++)
		if (replay.in[i].head != NULL && (first == NULL || stamp_ns(&replay.in[i]) < stamp_ns(first)))
			first = &replay.in[i];
	return first;
}

// Moves the clock to `ns` after the first packet, in steps, so that shaped traffic leaves when its time comes.
static void advance_to(uint64_t ns)
{
	const uint64_t step = NS_PER_S / 10000, hz = rte_get_tsc_hz();

	while (control_now_ns() < ns) {
		uint64_t gap = ns - control_now_ns();
		int64_t held = 0;

		for (uint32_t i = 0; i < worker_total(); i++)
			held += worker_any(i)->held;
		if (held > 0 && gap > step)
			gap = step;
		engine_advance(gap * (hz / 1000) / (NS_PER_S / 1000) + 1);
		engine_run();
	}
}

static void run(void)
{
	struct capture *c = earliest();
	uint64_t start = control_now_ns();

	replay.epoch_ns = c ? stamp_ns(c) - start : 0;
	for (; c != NULL; c = earliest()) {
		uint64_t at = stamp_ns(c) - replay.epoch_ns;

		if (at > control_now_ns())
			advance_to(at);
		if (c->head->caplen < c->head->len ||
			inject_packet(port_by_name(c->port), c->data, c->head->caplen) != 0)
			replay.skipped++;
		engine_run();
		next_packet(c);
	}
	advance_to(control_now_ns() + NS_PER_S);
	for (int i = 0; i < DRAIN_SECONDS * 10; i++) {
		int64_t held = 0;

		for (uint32_t k = 0; k < worker_total(); k++)
			held += worker_any(k)->held;
		if (held <= 0)
			break;
		advance_to(control_now_ns() + NS_PER_S / 10);
	}
}

static void write_counters(FILE *f)
{
	uint64_t in = 0, out = 0, originated = 0, punted = 0, dropped = 0, merged = 0, total;
	int64_t held = 0;
	const char *comma = "";

	for (uint32_t i = 0; i < worker_total(); i++) {
		const struct worker *w = worker_any(i);

		in += w->in, out += w->out, originated += w->originated, punted += w->punted;
		dropped += w->dropped, merged += w->merged, held += w->held;
	}
	fprintf(f,
		"{\"in\": %lu, \"originated\": %lu, \"out\": %lu, \"punted\": %lu, \"held\": %ld, \"dropped\": %lu, "
		"\"merged\": %lu, \"skipped\": %lu,\n \"reasons\": {",
		in, originated, out, punted, held, dropped, merged, replay.skipped);
	for (uint16_t r = 0; r < reason_count(); r++) {
		total = 0;
		for (uint32_t i = 0; i < worker_total(); i++)
			total += worker_any(i)->reason[r];
		if (total != 0) {
			fprintf(f, "%s\"%s\": %lu", comma, reason_get(r)->name, total);
			comma = ", ";
		}
	}
	fprintf(f, "},\n \"ports\": {");
	comma = "";
	for (uint16_t i = 0; i < MAX_PORTS; i++) {
		const struct port *p = port_get(i);
		struct port_counters c = {0};

		if (p == NULL)
			continue;
		for (uint32_t w = 0; w < worker_count(); w++) {
			c.rx_packets += p->counters[w].rx_packets;
			c.tx_packets += p->counters[w].tx_packets;
			c.rx_bytes += p->counters[w].rx_bytes;
			c.tx_bytes += p->counters[w].tx_bytes;
		}
		fprintf(f, "%s\"%s\": {\"rx_packets\": %lu, \"rx_bytes\": %lu, \"tx_packets\": %lu, \"tx_bytes\": %lu}",
			comma, p->name, c.rx_packets, c.rx_bytes, c.tx_packets, c.tx_bytes);
		comma = ", ";
	}
	fprintf(f, "}}\n");
}

static int usage(void)
{
	fprintf(stderr, "usage: isthmus-dp replay --state FILE --in PORT=FILE... --out PORT=FILE... [--counters FILE]\n"
			"`isthmus replay` makes the state file from a configuration and calls this.\n");
	return 2;
}

int replay_main(int argc, char **argv)
{
	static const struct option options[] = {{"state", 1, NULL, 's'}, {"in", 1, NULL, 'i'}, {"out", 1, NULL, 'o'},
		{"counters", 1, NULL, 'c'}, {"memory", 1, NULL, 'm'}, {NULL, 0, NULL, 0}};
	const char *state = NULL, *counters = NULL;
	uint32_t memory = 1024;
	int k;

	while ((k = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (k == 's')
			state = optarg;
		else if (k == 'c')
			counters = optarg;
		else if (k == 'm')
			memory = (uint32_t)strtoul(optarg, NULL, 10);
		else if (k == 'i' && add_file(replay.in, &replay.ins, optarg) == 0)
			continue;
		else if (k == 'o' && add_file(replay.out, &replay.outs, optarg) == 0)
			continue;
		else
			return usage();
	}
	if (state == NULL || optind != argc)
		return usage();
	if (engine_eal_init("isthmus-dp", 0, memory, 0, NULL) != 0)
		return 1;
	// A clock that starts well above zero: "never" is in the past of every timer and token bucket.
	engine_mode.virtual_now = rte_get_tsc_hz() * 1000;
	if (load_state(state) != 0 || open_files() != 0)
		return 1;
	run();
	for (int i = 0; i < replay.outs; i++)
		pcap_dump_close(replay.out[i].out);
	if (counters != NULL) {
		FILE *f = fopen(counters, "w");

		if (f == NULL) {
			LOG(ERR, "%s: %s\n", counters, strerror(errno));
			return 1;
		}
		write_counters(f);
		fclose(f);
	}
	return 0;
}
