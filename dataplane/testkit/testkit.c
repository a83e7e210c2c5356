// SPDX-License-Identifier: Apache-2.0
// The test harness around the graph.
#include "testkit/testkit.h"
#include "core/engine.h"
#include "core/object.h"
#include "core/port_inject.h"
#include <arpa/inet.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIT_FRAMES 8192
#define KIT_PATHS 16

static struct {
	struct kit_frame frame[MAX_PORTS][KIT_FRAMES];
	uint32_t count[MAX_PORTS];
	struct api_status status;
	int failed;
	struct {
		char name[API_NAME];
		struct api_address local;
	} path[KIT_PATHS];
} kit;

__rte_noreturn static void fatal(const char *what, const char *why)
{
	fprintf(stderr, "testkit: %s: %s\n", what, why);
	exit(99);
}

struct api_engine kit_engine(void)
{
	struct api_engine e = {
		.workers = 1,
		.packet_buffers = 4096,
		.max_sessions = 256,
		.max_flows = 1024,
		.max_held = 64,
		.max_fragments = 128, // half of them of packets to us
		.max_handed_over = 512,
		.max_punted = 512,
		.max_scheduled = 512,
		.icmp_error_rate = 100,
		.error_indication_rate = 100,
		.echo_rate = 100,
		.punt_rate = 10000,
	};

	for (int i = 0; i < API_MAX_WORKERS; i++)
		e.cpu[i] = -1;
	return e;
}

// A device leaves the last packet's metadata in the buffer: unwritten fields are never 0, as in a new one.
static void dirty(struct rte_mbuf *m)
{
	memset(packet_of(m), 0xa5, sizeof(struct packet));
}

static void dirty_each(struct rte_mempool *pool, void *arg, void *m, unsigned index)
{
	dirty(m);
}

void kit_start(const struct api_engine *engine)
{
	struct api_engine e = engine ? *engine : kit_engine();

	if (engine_eal_init("testkit", 0, 512, 0, NULL) != 0)
		fatal("EAL", "does not start");
	engine_mode.virtual_now = rte_get_tsc_hz() * 1000;
	engine_advance(1);
	kit_begin();
	kit_put(API_ENGINE, "engine", &e, sizeof(e));
	if (kit_commit() != 0)
		fatal("engine", kit_error());
	rte_mempool_obj_iter(engine_pool(), dirty_each, NULL);
}

void kit_begin(void)
{
	object_begin();
	kit.failed = 0;
}

static void change(uint32_t kind, const char *key, const void *body, uint32_t length)
{
	struct api_object_head head = {.kind = kind};

	snprintf(head.key, sizeof(head.key), "%s", key);
	int error = body ? object_put(&head, body, length) : object_delete(&head);
	if (error != 0 && !kit.failed) {
		kit.failed = error;
		object_error_status(&kit.status);
	}
}

void kit_put(uint32_t kind, const char *key, const void *body, uint32_t length)
{
	change(kind, key, body, length);
}

void kit_delete(uint32_t kind, const char *key)
{
	change(kind, key, NULL, 0);
}

static void keep_frame(struct port *p, struct rte_mbuf *m, void *arg)
{
	uint32_t length = rte_pktmbuf_pkt_len(m);

	if (kit.count[p->index] == KIT_FRAMES)
		return;
	struct kit_frame *f = &kit.frame[p->index][kit.count[p->index]++];
	f->length = length;
	f->bytes = malloc(length); // exact size, so that a test that reads past it is caught
	const void *data = rte_pktmbuf_read(m, 0, length, f->bytes);
	if (data != f->bytes && data != NULL)
		memcpy(f->bytes, data, length);
	dirty(m);
}

int kit_commit(void)
{
	if (kit.failed) {
		object_abort();
		return kit.failed;
	}
	object_commit(&kit.status);
	for (uint16_t i = 0; i < MAX_PORTS; i++)
		if (port_get(i) != NULL)
			inject_on_output(port_get(i), keep_frame, NULL);
	return (int)kit.status.code;
}

int kit_change(uint32_t kind, const char *key, const void *body, uint32_t length)
{
	kit_begin();
	kit_put(kind, key, body, length);
	return kit_commit();
}

const char *kit_error(void)
{
	return kit.status.text;
}

const struct api_status *kit_status(void)
{
	return &kit.status;
}

void kit_request(struct reply_sink *sink, uint16_t type, uint16_t part, const void *body, uint32_t size)
{
	const struct api_part_head head = {.part = part, .size = (uint16_t)size, .count = 1};
	struct api_header h = {.magic = API_MAGIC, .type = type, .sequence = 7};
	uint8_t *bytes = calloc(1, sizeof(head) + part_padded(size));

	if (bytes == NULL)
		fatal("request", "no memory");
	if (part != 0) {
		h.length = (uint32_t)(sizeof(head) + part_padded(size));
		memcpy(bytes, &head, sizeof(head));
		memcpy(bytes + sizeof(head), body, size);
	}
	request_handle(sink, &h, bytes);
	free(bytes);
}

struct api_address kit_address(const char *text)
{
	struct api_address a = {0};
	char copy[64];

	snprintf(copy, sizeof(copy), "%s", text);
	char *slash = strchr(copy, '/');
	if (slash != NULL)
		*slash++ = 0;
	a.family = strchr(copy, ':') ? 6 : 4;
	if (inet_pton(a.family == 6 ? AF_INET6 : AF_INET, copy, a.bytes) != 1)
		fatal("not an address", text);
	a.prefix = (uint8_t)(slash ? atoi(slash) : a.family == 6 ? 128 : 32);
	return a;
}

struct api_nat kit_nat(const char *inside, const char *outside)
{
	struct api_nat n = {.mode = API_NAT_BLOCKS,
		.inside = 1,
		.addresses = 1,
		.port = {1024, 65535},
		.block = 64,
		.blocks = 4,
		.udp = 300,
		.tcp = 7440,
		.tcp_transitory = 240,
		.icmp = 60};

	n.inside_prefix[0] = kit_address(inside);
	n.address[0] = kit_address(outside);
	return n;
}

void kit_port(const char *name, uint32_t role)
{
	struct api_port p = {.role = role, .mtu = 1500};

	strcpy(p.driver, "inject");
	kit_put(API_PORT, name, &p, sizeof(p));
}

void kit_interface(const char *name, const char *port, const char *address4, const char *address6)
{
	struct api_interface i = {0};

	snprintf(i.port, sizeof(i.port), "%s", port);
	if (address4 != NULL)
		i.address[i.count++] = kit_address(address4);
	if (address6 != NULL)
		i.address[i.count++] = kit_address(address6);
	kit_put(API_INTERFACE, name, &i, sizeof(i));
}

void kit_neighbour(const char *interface, const char *address, const uint8_t mac[6])
{
	struct api_neighbour n = {.address = kit_address(address)};
	char key[API_NAME];

	snprintf(n.interface, sizeof(n.interface), "%s", interface);
	memcpy(n.mac, mac, 6);
	snprintf(key, sizeof(key), "%.8s|%.20s", interface, address);
	kit_put(API_NEIGHBOUR, key, &n, sizeof(n));
}

void kit_path(const char *name, const char *local, const char *peer)
{
	struct api_path p = {.local = kit_address(local), .peer = kit_address(peer)};
	int slot = 0;

	// Remembered for sessions of the same transaction, which the object store does not show yet.
	while (slot < KIT_PATHS - 1 && kit.path[slot].name[0] != 0 && strcmp(kit.path[slot].name, name) != 0)
		slot++;
	snprintf(kit.path[slot].name, API_NAME, "%s", name);
	kit.path[slot].local = p.local;
	kit_put(API_PATH, name, &p, sizeof(p));
}

static void set_rules(struct kit_session *k, const char *path, uint32_t teid)
{
	k->pdr[0] = (struct api_pdr){.precedence = 100,
		.id = 1,
		.source = API_FROM_ACCESS,
		.match = API_PDR_ENDPOINT | API_PDR_UE_IP,
		.outer_header_removal = 1,
		.qers = 1,
		.far = 1,
		.qer = {1}};
	k->pdr[1] = (struct api_pdr){.precedence = 100,
		.id = 2,
		.source = API_FROM_CORE,
		.match = API_PDR_FTEID | API_PDR_UE_IP,
		.teid = teid,
		.outer_header_removal = 1,
		.qers = 1,
		.far = 2,
		.qer = {2}};
	k->far[0] = (struct api_far){.id = 1,
		.pdu_type = API_PDU_UL,
		.action = API_FAR_FORWARD,
		.destination = API_FROM_CORE,
		.outer = API_OUTER_GTPU,
		.dscp = 0xff,
		.teid = teid + 0x10000};
	snprintf(k->far[0].path, API_NAME, "%s", path);
	k->far[1] = (struct api_far){.id = 2,
		.action = API_FAR_FORWARD,
		.destination = API_FROM_ACCESS,
		.outer = API_OUTER_ENDPOINT,
		.dscp = 0xff};
	k->qer[0] = (struct api_qer){.id = 1, .qfi = 9};
	k->qer[1] = (struct api_qer){.id = 2, .qfi = 9};
}

struct kit_session kit_session(const char *port, const uint8_t mac[6], uint16_t s_tag, uint16_t c_tag, uint16_t pppoe,
	const char *ue4, const char *ue6, const char *path, uint32_t teid)
{
	struct kit_session k = {0};
	uint32_t length;

	k.s.seid = teid;
	k.s.encap = pppoe ? API_ENCAP_QINQ_PPPOE : API_ENCAP_QINQ;
	k.s.outer_tpid = 0x88a8;
	k.s.s_tag = s_tag;
	k.s.c_tag = c_tag;
	k.s.pppoe_session = pppoe;
	memcpy(k.s.mac, mac, 6);
	snprintf(k.s.port, API_NAME, "%s", port);
	if (ue4 != NULL)
		k.s.ue_ip4 = kit_address(ue4);
	if (ue6 != NULL)
		k.s.ue_ip6 = kit_address(ue6);
	k.s.pdrs = k.s.fars = k.s.qers = 2;
	set_rules(&k, path, teid);
	const struct api_path *p = object_find(API_PATH, path, &length);
	if (p != NULL)
		k.pdr[1].local = p->local;
	for (int i = 0; p == NULL && i < KIT_PATHS; i++)
		if (strcmp(kit.path[i].name, path) == 0)
			k.pdr[1].local = kit.path[i].local;
	return k;
}

void kit_put_session(const char *name, const struct kit_session *k)
{
	kit_put(API_SESSION, name, k, sizeof(*k));
}

int kit_send(const char *port, const void *frame, uint32_t length)
{
	struct port *p = port_by_name(port);

	if (p == NULL)
		fatal("no port", port);
	return inject_packet(p, frame, length);
}

void kit_run(void)
{
	engine_run();
}

// At least so many, for what is due then. A clock need not count whole ticks in a microsecond: arm64's may have
// 62.5 MHz.
static int64_t ticks_of(int64_t microseconds)
{
	return (int64_t)(((__int128)microseconds * (int64_t)rte_get_tsc_hz() + 999999) / 1000000);
}

void kit_advance(uint64_t microseconds)
{
	engine_advance((uint64_t)ticks_of((int64_t)microseconds));
	engine_run();
}

void kit_step(int64_t microseconds)
{
	engine_step(ticks_of(microseconds));
}

static uint16_t index_of(const char *port)
{
	const struct port *p = port_by_name(port);

	if (p == NULL)
		fatal("no port", port);
	return p->index;
}

uint32_t kit_count(const char *port)
{
	return kit.count[index_of(port)];
}

const struct kit_frame *kit_frame(const char *port, uint32_t i)
{
	if (i >= kit_count(port))
		fatal("fewer frames left by port", port);
	return &kit.frame[index_of(port)][i];
}

void kit_clear(void)
{
	for (int p = 0; p < MAX_PORTS; p++) {
		for (uint32_t i = 0; i < kit.count[p]; i++)
			free(kit.frame[p][i].bytes);
		kit.count[p] = 0;
	}
}

uint64_t kit_reason_of(uint16_t reason)
{
	uint64_t sum = 0;

	for (uint32_t w = 0; w < worker_total(); w++)
		sum += worker_any(w)->reason[reason];
	return sum;
}

uint64_t kit_reason(const char *name)
{
	for (uint16_t r = 0; r < reason_count(); r++)
		if (strcmp(reason_get(r)->name, name) == 0)
			return kit_reason_of(r);
	fatal("no reason of that name", name);
	return 0;
}

struct api_total_row kit_totals(void)
{
	struct api_total_row t = {0};

	for (uint32_t i = 0; i < worker_total(); i++) {
		const struct worker *w = worker_any(i);

		t.in += w->in, t.originated += w->originated, t.out += w->out, t.punted += w->punted;
		t.dropped += w->dropped, t.merged += w->merged, t.held += w->held;
	}
	return t;
}

int kit_balance(void)
{
	struct api_total_row t = kit_totals();

	if (t.in + t.originated == t.out + t.punted + t.held + t.dropped + t.merged)
		return 1;
	fprintf(stderr, "in %lu + originated %lu != out %lu + punted %lu + held %lu + dropped %lu + merged %lu\n", t.in,
		t.originated, t.out, t.punted, t.held, t.dropped, t.merged);
	return 0;
}

struct row_sink {
	struct reply_sink sink;
	uint8_t *bytes;
	uint32_t length;
};

static int keep_rows(
	struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	struct row_sink *r = (struct row_sink *)s;
	uint32_t bytes = part->size * part->count;

	r->bytes = realloc(r->bytes, r->length + bytes + 1);
	if (r->bytes == NULL)
		fatal("rows", "no memory");
	if (bytes != 0)
		memcpy(r->bytes + r->length, rows, bytes);
	r->length += bytes;
	return 0;
}

const void *kit_rows(uint32_t table, const char *key, uint32_t row_length, uint32_t *count)
{
	static uint8_t *last;
	struct row_sink r = {.sink = {.send = keep_rows}};
	struct api_stats_request q = {.table = table};

	snprintf(q.key, sizeof(q.key), "%s", key);
	kit_request(&r.sink, API_STATS, API_PART_STATS_REQUEST, &q, sizeof(q));
	free(last);
	last = r.bytes;
	*count = r.length / row_length;
	return last;
}

struct trace_sink {
	struct reply_sink sink; // first
	void (*fn)(const struct api_trace_row *row);
	struct api_trace_state *to;
	int error;
};

static int take_trace(
	struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	struct trace_sink *t = (struct trace_sink *)s;
	const struct api_trace_row *row = rows;

	for (uint32_t i = 0; part->part == API_PART_TRACE_ROW && i < part->count; i++)
		t->fn(&row[i]);
	if (part->part == API_PART_TRACE_STATE)
		memcpy(t->to, rows, sizeof(*t->to));
	if (part->part == API_PART_STATUS)
		t->error = (int)((const struct api_status *)rows)->code;
	return 0;
}

int kit_trace_poll(uint32_t trace, int stop, void (*fn)(const struct api_trace_row *row), struct api_trace_state *to)
{
	struct trace_sink t = {.sink = {.send = take_trace}, .fn = fn, .to = to};
	struct api_trace_poll p = {.trace = trace, .stop = (uint32_t)stop};

	kit_request(&t.sink, API_TRACE_POLL, API_PART_TRACE_POLL, &p, sizeof(p));
	return t.error;
}

int kit_list(const struct api_list *l, void (*fn)(const struct api_digest *d, void *arg), void *arg)
{
	uint32_t room = l->limit;
	uint64_t from = l->first;
	int more = 0;

	do
		from = object_list(l, from, &room, &more, fn, arg);
	while (from != 0);
	return more;
}

uint32_t kit_buffers_in_use(void)
{
	return rte_mempool_in_use_count(engine_pool());
}

struct api_session_row kit_session_row(const char *name)
{
	uint32_t count;
	const struct api_session_row *r = kit_rows(API_TABLE_SESSION, name, sizeof(*r), &count);

	if (count != 1)
		fatal("no session of that name", name);
	return *r;
}

uint64_t kit_node_packets(const char *node)
{
	uint32_t count;
	const struct api_node_row *r = kit_rows(API_TABLE_NODE, node, sizeof(*r), &count);
	uint64_t packets = 0;

	for (uint32_t i = 0; i < count; i++)
		packets += r[i].packets;
	if (count == 0)
		fatal("no such node", node);
	return packets;
}

uint32_t kit_count_words(uint64_t *words, uint32_t most, uint64_t sign)
{
	static const struct {
		uint32_t table, length;
	} tables[] = {
		{API_TABLE_PORT, sizeof(struct api_port_row)},
		{API_TABLE_RULE, sizeof(struct api_rule_row)},
		{API_TABLE_INSTANCE, sizeof(struct api_instance_row)},
		{API_TABLE_ACL, sizeof(struct api_acl_row)},
		{API_TABLE_PATH, sizeof(struct api_path_row)},
	};
	struct api_total_row t = kit_totals();
	const uint64_t totals[KIT_TOTALS] = {t.in, t.originated, t.out, t.punted, t.dropped, t.merged, t.held};
	uint32_t at = 0, rows;

	for (uint16_t r = 0; r < reason_count(); r++)
		words[at++] += sign * kit_reason_of(r);
	for (uint32_t i = 0; i < KIT_TOTALS; i++)
		words[at++] += sign * totals[i];
	for (uint32_t i = 0; i < RTE_DIM(tables); i++) {
		const uint8_t *bytes = kit_rows(tables[i].table, "", tables[i].length, &rows);

		if (at + (uint64_t)rows * tables[i].length / 8 > most)
			fatal("too many counters", "");
		for (uint32_t b = 0; b < rows * tables[i].length; b += 8, at++) {
			uint64_t word;

			memcpy(&word, bytes + b, 8);
			words[at] += sign * word;
		}
	}
	return at;
}

void kit_print(void)
{
	for (uint16_t r = 0; r < reason_count(); r++)
		if (kit_reason_of(r) != 0)
			fprintf(stderr, "%s %lu\n", reason_get(r)->name, kit_reason_of(r));
}
