// SPDX-License-Identifier: Apache-2.0
// `isthmus-dp replay`: capture files in, capture files out, through the same graph. No threads, root or huge pages. The
// captures are the clock, so the same input gives the same output.
#include "core/replay.h"
#include "core/contract.h"
#include "core/eal.h"
#include "core/log.h"
#include "core/module.h"
#include "core/port_inject.h"
#include "core/reason.h"
#include "core/reply.h"
#include "core/request.h"
#include "core/walk.h"
#include <errno.h>
#include <getopt.h>
#include <pcap/pcap.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILES 32
#define DRAIN_SECONDS 60 // of virtual time after the last packet, at most, for what is still held
#define STEPS_PER_SECOND 10000 // of the clock while packets are held
#define MAX_PAUSE_NS (3600 * (int64_t)NS_PER_S)

struct file_argument {
	char port[API_NAME];
	const char *file;
};

struct capture {
	char port[API_NAME];
	const char *file; // for the log
	pcap_t *in;
	pcap_dumper_t *out;
	struct pcap_pkthdr *head; // next packet, or NULL
	const u_char *data;
};

static struct {
	struct capture in[MAX_FILES], out[MAX_FILES];
	int ins, outs;
	pcap_t *format; // of output files: Ethernet, nanoseconds
	uint64_t epoch_ns; // what the captures' clock is ahead of ours; may wrap, when they start near 1970
	uint64_t cut, unfit, unbuffered; // frames left out
	uint32_t damaged; // captures of which the rest is left out
	uint32_t steps; // small ones left to this run
} replay;

static uint64_t virtual_ns(void)
{
	return control_now_ns() + replay.epoch_ns;
}

static int64_t held(void)
{
	struct api_total_row all = {0};

	workers_sum(&all);
	return (int64_t)all.held;
}

static int add_file(struct file_argument *list, int *count, const char *arg)
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

struct state_client {
	struct reply_sink sink; // first
	uint32_t refused;
};

static int state_reply(
	struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	const struct api_status *status = rows;

	(void)part;

	if ((h->flags & API_F_ERROR) != 0) {
		LOG(ERR, "the state is refused: %s %s\n", status->key, status->text);
		((struct state_client *)s)->refused++;
	}
	return 0;
}

// Devices become memory queues, all else is as in the daemon. The port has its writer's sizes.
static void adapt(const struct api_header *h, uint8_t *body)
{
	struct part_reader r = {.at = body, .left = h->length};
	struct part p;

	while (h->type == API_PUT && part_next(&r, &p) == 1) {
		uint8_t *port = body + (p.rows - body);

		if (p.number != API_PART_PORT || p.count != 1)
			continue;
		memset(port, 0, RTE_MIN(p.size, (uint32_t)offsetof(struct api_port, role)));
		memcpy(port, "inject", RTE_MIN(p.size, (uint32_t)sizeof("inject")));
		for (uint32_t i = offsetof(struct api_port, members); i < RTE_MIN(p.size, sizeof(struct api_port)); i++)
			port[i] = 0;
	}
}

// Returns 1 after a message, 0 at the end of the file, or -1.
static int load_message(FILE *f, const char *name, struct reply_sink *sink)
{
	struct api_header h;
	size_t n = fread(&h, 1, sizeof(h), f);

	if (n == 0 && !ferror(f))
		return 0;
	if (n == sizeof(h) && (h.magic != API_MAGIC || h.length > API_MAX_BODY)) {
		LOG(ERR, "%s is not a state file\n", name);
		return -1;
	}
	// Exactly as long as the message: sanitizers catch reads past its end.
	uint8_t *body = n == sizeof(h) ? malloc(h.length ? h.length : 1) : NULL;
	if (body == NULL || fread(body, 1, h.length, f) != h.length) {
		LOG(ERR, "%s ends in the middle of a message\n", name);
		free(body);
		return -1;
	}
	adapt(&h, body);
	request_handle(sink, &h, body);
	free(body);
	return 1;
}

int replay_load_state(FILE *f, const char *name)
{
	struct state_client client = {.sink = {.send = state_reply, .owner = 1}};
	int more;

	do
		more = load_message(f, name, &client.sink);
	while (more > 0);
	request_client_gone(client.sink.owner); // a transaction without its COMMIT
	if (more == 0 && client.refused == 0 && engine_get() == NULL)
		LOG(ERR, "%s holds no engine\n", name);
	return more < 0 || client.refused != 0 || engine_get() == NULL ? -1 : 0;
}

static void next_packet(struct capture *c)
{
	int k = pcap_next_ex(c->in, &c->head, &c->data);

	if (k == 1)
		return;
	if (k == PCAP_ERROR) {
		LOG(ERR, "%s: %s; what follows is left out\n", c->file, pcap_geterr(c->in));
		replay.damaged++;
	}
	c->head = NULL;
}

// The input files were opened with nanosecond precision: tv_usec holds nanoseconds. Neither part was checked. Seconds
// are valid until 2106; differences of stamps fit into 64 bits with a sign.
static uint64_t stamp_ns(const struct capture *c)
{
	int64_t s = c->head->ts.tv_sec, ns = c->head->ts.tv_usec;

	s = RTE_MAX((int64_t)0, RTE_MIN(s, (int64_t)UINT32_MAX));
	ns = RTE_MAX((int64_t)0, RTE_MIN(ns, (int64_t)NS_PER_S - 1));
	return (uint64_t)s * NS_PER_S + (uint64_t)ns;
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

static struct capture *add_capture(struct capture *list, int count, const char *port, const char *name)
{
	struct capture *c = &list[count];

	if (count == MAX_FILES || port_by_name(port) == NULL) {
		LOG(ERR, "%s: %s %s\n", name,
			count == MAX_FILES ? "too many captures, this one is of port" : "the configuration has no port",
			port);
		return NULL;
	}
	*c = (struct capture){.file = name};
	snprintf(c->port, sizeof(c->port), "%s", port);
	return c;
}

int replay_input(const char *port, const char *name, FILE *f)
{
	char text[PCAP_ERRBUF_SIZE];
	struct capture *c = add_capture(replay.in, replay.ins, port, name);

	if (c == NULL) {
		fclose(f);
		return -1;
	}
	c->in = pcap_fopen_offline_with_tstamp_precision(f, PCAP_TSTAMP_PRECISION_NANO, text);
	if (c->in == NULL) {
		LOG(ERR, "%s: %s\n", name, text);
		fclose(f);
		return -1;
	}
	if (pcap_datalink(c->in) != DLT_EN10MB) {
		LOG(ERR, "%s: not an Ethernet capture\n", name);
		pcap_close(c->in);
		return -1;
	}
	replay.ins++;
	next_packet(c);
	return 0;
}

int replay_output(const char *port, const char *name, FILE *f)
{
	struct capture *c = add_capture(replay.out, replay.outs, port, name);

	if (replay.format == NULL)
		replay.format = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, 65535, PCAP_TSTAMP_PRECISION_NANO);
	if (c == NULL || replay.format == NULL) {
		fclose(f);
		return -1;
	}
	c->out = pcap_dump_fopen(replay.format, f); // closes f when it fails
	if (c->out == NULL) {
		LOG(ERR, "%s: %s\n", name, pcap_geterr(replay.format));
		return -1;
	}
	if (inject_on_output(port_by_name(port), write_frame, c) != 0) {
		LOG(ERR, "%s: port %s is no memory queue\n", name, port);
		pcap_dump_close(c->out);
		return -1;
	}
	replay.outs++;
	return 0;
}

int replay_close(void)
{
	int error = 0;

	for (int i = 0; i < replay.ins; i++)
		pcap_close(replay.in[i].in);
	for (int i = 0; i < replay.outs; i++) {
		struct capture *c = &replay.out[i];

		inject_on_output(port_by_name(c->port), NULL, NULL);
		if (pcap_dump_flush(c->out) != 0 || ferror(pcap_dump_file(c->out))) {
			LOG(ERR, "%s: %s\n", c->file, strerror(errno));
			error = -1;
		}
		pcap_dump_close(c->out);
	}
	if (replay.format != NULL)
		pcap_close(replay.format);
	replay.format = NULL;
	replay.ins = replay.outs = 0;
	return error;
}

static struct capture *earliest(void)
{
	struct capture *first = NULL;

	for (int i = 0; i < replay.ins; i++)
		if (replay.in[i].head != NULL && (first == NULL || stamp_ns(&replay.in[i]) < stamp_ns(first)))
			first = &replay.in[i];
	return first;
}

// Moves our clock to `ns`, in steps while packets are held, so that shaped traffic leaves on time.
static void advance_to(uint64_t ns)
{
	const uint64_t step = NS_PER_S / STEPS_PER_SECOND, hz = rte_get_tsc_hz();
	uint32_t steps = DRAIN_SECONDS * STEPS_PER_SECOND; // of one pause: something may be held for ever

	while (control_now_ns() < ns) {
		uint64_t gap = ns - control_now_ns();

		if (gap > step && steps != 0 && replay.steps != 0 && held() > 0) {
			gap = step;
			steps--;
			if (--replay.steps == 0)
				LOG(WARNING, "too long a capture for small steps: shaping is coarse from here on\n");
		}
		engine_advance(gap / NS_PER_S * hz + gap % NS_PER_S * hz / NS_PER_S + 1);
		engine_run();
	}
}

// Waits for a stamp of the captures' clock.
static void wait_until(uint64_t stamp)
{
	int64_t ahead = (int64_t)(stamp - virtual_ns());

	if (ahead <= 0)
		return; // the file's own order counts
	advance_to(control_now_ns() + (uint64_t)RTE_MIN(ahead, MAX_PAUSE_NS));
	if (ahead > MAX_PAUSE_NS)
		replay.epoch_ns += (uint64_t)(ahead - MAX_PAUSE_NS);
}

// Gives the next packet to its port, or counts it as left out.
static void give(const struct capture *c)
{
	int error = c->head->caplen < c->head->len ? EMSGSIZE
						   : inject_packet(port_by_name(c->port), c->data, c->head->caplen);

	replay.cut += error == EMSGSIZE;
	replay.unfit += error == EINVAL;
	replay.unbuffered += error == ENOBUFS || error == ENOMEM;
}

void replay_run(uint32_t steps)
{
	struct capture *c = earliest();

	replay.cut = replay.unfit = replay.unbuffered = 0;
	replay.steps = steps;
	replay.epoch_ns = c ? stamp_ns(c) - control_now_ns() : 0;
	for (; c != NULL; c = earliest()) {
		wait_until(stamp_ns(c));
		give(c);
		engine_run();
		next_packet(c);
	}
	advance_to(control_now_ns() + NS_PER_S);
	for (int i = 0; i < DRAIN_SECONDS * 10 && held() > 0; i++)
		advance_to(control_now_ns() + NS_PER_S / 10);
}

static void write_counters(FILE *f)
{
	struct api_total_row all = {0};
	const char *comma = "";
	uint64_t total;

	workers_sum(&all);
	fprintf(f,
		"{\"in\": %lu, \"originated\": %lu, \"out\": %lu, \"punted\": %lu, \"held\": %ld, \"dropped\": %lu, "
		"\"merged\": %lu, \"skipped\": %lu,\n \"reasons\": {",
		all.in, all.originated, all.out, all.punted, (int64_t)all.held, all.dropped, all.merged,
		replay.cut + replay.unfit + replay.unbuffered);
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
	fprintf(stderr, "usage: isthmus-dp replay --state FILE --in PORT=FILE... --out PORT=FILE... [--counters FILE] "
			"[--skip]\n"
			"`isthmus replay` makes the state file from a configuration and calls this.\n");
	return 2;
}

static FILE *open_file(const char *file, const char *how)
{
	FILE *f = strcmp(file, "-") != 0 ? fopen(file, how) : how[0] == 'r' ? stdin : stdout;

	if (f == NULL)
		LOG(ERR, "%s: %s\n", file, strerror(errno));
	return f;
}

static int load_state(const char *file)
{
	FILE *f = open_file(file, "rb");
	int error = f == NULL ? -1 : replay_load_state(f, file);

	if (f != NULL)
		fclose(f);
	return error;
}

static int open_files(const struct file_argument *list, int count, const char *how,
	int (*add)(const char *port, const char *name, FILE *f))
{
	for (int i = 0; i < count; i++) {
		FILE *f = open_file(list[i].file, how);

		if (f == NULL || add(list[i].port, list[i].file, f) != 0)
			return -1;
	}
	return 0;
}

static void append_left_out(char *text, size_t room, uint64_t n, const char *what)
{
	size_t at = strlen(text);

	if (n != 0)
		snprintf(text + at, room - at, "%s %lu frames %s", at != 0 ? "," : "", n, what);
}

// Says which packets were not replayed. Returns 1 when there are any.
static int left_out(void)
{
	char text[256] = "", unfit[64];

	snprintf(unfit, sizeof(unfit), "of no or more than %d bytes", INJECT_FRAME_MAX);
	append_left_out(text, sizeof(text), replay.cut, "that were cut when they were captured");
	append_left_out(text, sizeof(text), replay.unfit, unfit);
	append_left_out(text, sizeof(text), replay.unbuffered, "without a buffer");
	if (text[0] != 0)
		LOG(ERR, "left out:%s\n", text);
	return text[0] != 0 || replay.damaged != 0;
}

static int write_counters_to(const char *file)
{
	FILE *f = fopen(file, "w");

	if (f != NULL)
		write_counters(f);
	if (f != NULL && (ferror(f) | fclose(f)) == 0)
		return 0;
	LOG(ERR, "%s: %s\n", file, strerror(errno));
	return -1;
}

int replay_main(int argc, char **argv)
{
	static const struct option options[] = {{"state", 1, NULL, 's'}, {"in", 1, NULL, 'i'}, {"out", 1, NULL, 'o'},
		{"counters", 1, NULL, 'c'}, {"memory", 1, NULL, 'm'}, {"skip", 0, NULL, 'k'}, {NULL, 0, NULL, 0}};
	const char *state = NULL, *counters = NULL;
	static struct file_argument in[MAX_FILES], out[MAX_FILES];
	uint32_t memory = 1024;
	int k, ins = 0, outs = 0, skip = 0;

	while ((k = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (k == 's')
			state = optarg;
		else if (k == 'c')
			counters = optarg;
		else if (k == 'm')
			memory = (uint32_t)strtoul(optarg, NULL, 10);
		else if (k == 'k')
			skip = 1;
		else if (k == 'i' && add_file(in, &ins, optarg) == 0)
			continue;
		else if (k == 'o' && add_file(out, &outs, optarg) == 0)
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
	if (load_state(state) != 0 || open_files(in, ins, "rb", replay_input) != 0 ||
		open_files(out, outs, "wb", replay_output) != 0)
		return 1;
	replay_run(REPLAY_STEPS);
	int error = replay_close();
	if (counters != NULL && write_counters_to(counters) != 0)
		error = -1;
	return (left_out() && !skip) || error != 0;
}
