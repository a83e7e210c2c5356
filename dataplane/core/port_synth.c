// SPDX-License-Identifier: Apache-2.0
// Port driver `synth`: packets made and checked inside the graph, for cost measurements. Object kind SYNTH: a stream.
//
// A stream enters at one port and must leave at another. Few flows: headers are made once and copied. Many flows:
// headers are computed, which costs 10 ticks more than a copy from L2 and less than one from memory. Flows are chosen
// at random, so tables are hit in random order. One packet in `check_every` has a patterned payload and is compared
// byte by byte when it leaves. A packet carries its stream in mbuf.vlan_tci_outer and "compare me" as a dynamic mbuf
// flag. The gateway handles tags in software and touches neither.
//
//   written by: the control thread (stream, published with release); each worker its own streams
#include "core/ethdev.h"
#include "core/object.h"
#include "core/packet.h"
#include "core/port.h"
#include "core/reply.h"
#include "core/request.h"
#include "core/synth.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>
#include <string.h>

#define MAX_STREAMS 16
#define PATTERN 64
#define TABLE_BYTES_MAX (256ull << 10)
static_assert(VECTOR <= SYNTH_PACKETS, "headers of a vector are made together");

// What one worker does of a stream.
struct stream_worker {
	uint64_t offered; // packets made; also the next one's sequence number
	uint64_t received, received_bytes, checked, wrong;
	uint64_t stray; // left by a port that is not the stream's sink
	uint64_t random;
	uint64_t due; // ticks: next packet at a fixed rate
	uint32_t turn; // flow, when in turn
	uint32_t until_check;
} cache_aligned;

struct stream {
	char name[API_NAME];
	struct api_synth want;
	struct synth_template in, out;
	uint8_t *table; // made headers, `stride` bytes per flow, or NULL: made on the fly
	uint32_t stride;
	uint16_t slot; // in streams.live
	uint16_t port, sink;
	uint32_t running; // read by workers
	uint32_t wrong_length, wrong_offset;
	uint8_t wrong_frame[256];
	uint32_t wrong_taken; // first wrong frame is kept; set with compare-and-swap
	struct stream_worker worker[API_MAX_WORKERS];
};

// Streams of one port by their shares, shuffled so that neighbours in a vector differ.
struct pattern {
	uint16_t count;
	uint8_t slot[PATTERN];
};

struct synth_port {
	struct pattern *pattern; // published; NULL or one of `room`
	struct pattern room[2]; // a commit ends with a grace period: then the other one has no reader
	struct {
		uint32_t at; // place in the pattern
	} cache_aligned cursor[API_MAX_WORKERS]; // each its worker's
};

static struct {
	struct stream *live[MAX_STREAMS];
	struct stream *staged[MAX_STREAMS];
	uint64_t check_flag; // mbuf ol_flags bit
	uint64_t rearm; // first fields of a fresh mbuf
} streams;

// A counter and a mix (wyrand): unlike a shift register, a number does not depend on its predecessor.
static inline uint32_t next_random(struct stream_worker *l)
{
	l->random += 0xa0761d6478bd642full;
	unsigned __int128 product = (unsigned __int128)l->random * (l->random ^ 0xe7037ed1a0b428dbull);

	return (uint32_t)((uint64_t)product ^ (uint64_t)(product >> 64));
}

static inline uint32_t next_flow(const struct stream *s, struct stream_worker *l, uint32_t worker)
{
	const struct api_synth *w = &s->want;
	uint32_t flow;

	if (w->random_order)
		flow = (uint32_t)((uint64_t)next_random(l) * w->flows >> 32);
	else
		flow = l->turn = l->turn + 1 < w->flows ? l->turn + 1 : 0;
	if (w->worker_modulo > 1) { // as RSS would deliver: move to the block of flows that this worker owns
		uint32_t divide = RTE_MAX(w->worker_divide, 1u);
		uint32_t block = flow / divide, mine = block - block % w->worker_modulo + worker;

		flow = (uint32_t)(flow % divide + (uint64_t)mine * divide);
		if (flow >= w->flows)
			flow = worker * divide < w->flows ? worker * divide : 0;
	}
	return flow;
}

static inline int may_send(const struct stream *s, struct stream_worker *l, const struct worker *w)
{
	if (!__atomic_load_n(&s->running, __ATOMIC_RELAXED))
		return 0;
	if (likely((s->want.limit | s->want.rate) == 0))
		return 1;
	if (s->want.limit != 0 && l->offered >= (s->want.limit + w->id) / worker_count())
		return 0;
	if (s->want.rate == 0)
		return 1;
	if (w->now < l->due)
		return 0;
	uint64_t gap = w->tsc_hz * worker_count() / s->want.rate;
	l->due = RTE_MAX(l->due, w->now - w->tsc_hz / 1000) + gap; // at most a millisecond of arrears
	return 1;
}

// Table headers are padded to whole cache lines and copied whole: the room behind a header is payload.
static inline void copy_lines(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	for (uint32_t at = 0; at < bytes; at += 64)
		memcpy(to + at, from + at, 64);
}

static void mark_for_check(struct stream *s, struct stream_worker *l, struct rte_mbuf *m, uint32_t flow)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t header = s->in.want.length, size = s->want.size[0];
	struct synth_tag tag = {.magic = SYNTH_TAG_MAGIC, .flow = flow, .sequence = l->offered};

	l->until_check = s->want.check_every - 1;
	synth_payload_fill(p + header, size - header - sizeof(tag), tag.sequence);
	memcpy(p + size - sizeof(tag), &tag, sizeof(tag));
	m->ol_flags |= streams.check_flag;
}

static inline void make(struct stream *s, struct stream_worker *l, struct rte_mbuf *m, uint32_t flow)
{
	// As a NIC driver's receive path: buffers of a pool have no chain, so the mbuf's second line stays untouched.
	memcpy(&m->rearm_data, &streams.rearm, sizeof(streams.rearm));
	m->ol_flags = 0;
	m->packet_type = 0;
	m->data_len = s->want.size[0];
	m->pkt_len = s->want.size[0];
	m->vlan_tci_outer = s->slot;
	if (likely(s->table != NULL))
		copy_lines(rte_pktmbuf_mtod(m, uint8_t *), s->table + (size_t)flow * s->stride, s->stride);
	if (unlikely(s->want.check_every != 0 && l->until_check-- == 0))
		mark_for_check(s, l, m, flow);
	l->offered++;
}

// Writes the headers of a vector that are in no table, those of each stream together.
static void make_headers(struct stream *const *from, struct rte_mbuf *const *pkts, const uint32_t *flow, uint32_t count)
{
	uint32_t done = 0; // streams, by slot

	for (uint32_t first = 0; first < count; first++) {
		const struct stream *s = from[first];
		uint32_t flows[VECTOR], n = 0;
		uint8_t *to[VECTOR];

		if (s->table != NULL || (done >> s->slot & 1))
			continue;
		done |= 1u << s->slot;
		for (uint32_t i = first; i < count; i++)
			if (from[i] == s) {
				flows[n] = flow[i];
				to[n++] = (uint8_t *)pkts[i]->buf_addr + RTE_PKTMBUF_HEADROOM;
			}
		synth_template_fill(&s->in, flows, to, n);
	}
}

static uint16_t synth_rx(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct synth_port *sp = p->private;
	const struct pattern *pattern = __atomic_load_n(&sp->pattern, __ATOMIC_ACQUIRE);
	struct worker *w = worker_self();
	struct stream *from[VECTOR];
	uint32_t flow[VECTOR];
	uint16_t count = 0;

	if (pattern == NULL || pattern->count != PATTERN)
		return 0;
	uint32_t at = sp->cursor[w->id].at;
	sp->cursor[w->id].at += n;
	for (uint16_t i = 0; i < n; i++) {
		struct stream *s = __atomic_load_n(&streams.live[pattern->slot[at++ % PATTERN]], __ATOMIC_ACQUIRE);

		if (unlikely(s == NULL) || !may_send(s, &s->worker[w->id], w))
			continue;
		from[count] = s;
		flow[count] = next_flow(s, &s->worker[w->id], w->id);
		if (s->table != NULL)
			rte_prefetch0(s->table + (size_t)flow[count] * s->stride);
		count++;
	}
	if (count == 0)
		return 0;
	if (unlikely(rte_mempool_get_bulk(w->pool, (void **)pkts, count) != 0)) {
		port_no_buffer(p, w, count);
		return 0;
	}
	make_headers(from, pkts, flow, count);
	for (uint16_t i = 0; i < count; i++)
		make(from[i], &from[i]->worker[w->id], pkts[i], flow[i]);
	return count;
}

static void keep_wrong(struct stream *s, const uint8_t *frame, uint32_t length, uint32_t offset)
{
	uint32_t expected = 0;

	if (!__atomic_compare_exchange_n(&s->wrong_taken, &expected, 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	memcpy(s->wrong_frame, frame, RTE_MIN(length, sizeof(s->wrong_frame)));
	s->wrong_length = length;
	s->wrong_offset = offset;
}

static int frame_differs(const struct stream *s, const struct port *entered, const uint8_t *frame, uint32_t length)
{
	// Cross-connected ports do no gateway work: output equals input.
	const struct synth_template *t = entered != NULL && entered->xconnect != PORT_NONE ? &s->in : &s->out;
	uint32_t payload = s->want.size[0] - s->in.want.length;
	struct synth_tag tag;

	if (length != t->want.length + payload)
		return (int)RTE_MIN(length, t->want.length + payload);
	memcpy(&tag, frame + length - sizeof(tag), sizeof(tag));
	if (tag.magic != SYNTH_TAG_MAGIC)
		return (int)(length - sizeof(tag));
	int at = synth_template_differs(t, tag.flow, frame, length);
	if (at >= 0)
		return at;
	at = synth_payload_differs(frame + t->want.length, (uint32_t)(payload - sizeof(tag)), tag.sequence);
	return at < 0 ? -1 : (int)t->want.length + at;
}

static void check(struct stream *s, struct stream_worker *l, struct port *p, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	int at;

	l->checked++;
	if (m->nb_segs != 1 || strncmp(s->want.sink, p->name, API_NAME) != 0)
		at = 0;
	else
		at = frame_differs(s, port_get(s->port), frame, rte_pktmbuf_data_len(m));
	if (at >= 0) {
		l->wrong++;
		keep_wrong(s, frame, rte_pktmbuf_data_len(m), (uint32_t)at);
	}
}

// Like a NIC driver's transmit path with MBUF_FAST_FREE: one segment, one owner, our pool.
static inline void give_back(struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t plain = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		if (likely(m->nb_segs == 1 && rte_mbuf_refcnt_read(m) == 1 && RTE_MBUF_DIRECT(m) && m->pool == pool))
			pkts[plain++] = m;
		else
			rte_pktmbuf_free(m);
	}
	rte_mempool_put_bulk(pool, (void **)pkts, plain);
}

static uint16_t synth_tx(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t worker = worker_self()->id, packets[MAX_STREAMS] = {0}, bytes[MAX_STREAMS] = {0};

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		uint32_t slot = m->vlan_tci_outer % MAX_STREAMS;

		if (unlikely(packet_of(m)->port_in == PORT_NONE)) // made by the gateway itself
			continue;
		packets[slot]++;
		bytes[slot] += rte_pktmbuf_pkt_len(m);
		if (unlikely((m->ol_flags & streams.check_flag) != 0) && streams.live[slot] != NULL)
			check(streams.live[slot], &streams.live[slot]->worker[worker], p, m);
	}
	for (uint32_t slot = 0; slot < MAX_STREAMS; slot++)
		if (packets[slot] != 0 && streams.live[slot] != NULL) {
			if (unlikely(streams.live[slot]->sink != p->index))
				streams.live[slot]->worker[worker].stray += packets[slot];
			streams.live[slot]->worker[worker].received += packets[slot];
			streams.live[slot]->worker[worker].received_bytes += bytes[slot];
		}
	give_back(worker_self()->pool, pkts, n);
	return n;
}

static int synth_open(struct port *p, const struct api_port *want)
{
	static const struct rte_mbuf_dynflag flag = {.name = "isthmus_synth_check"};

	if (streams.check_flag == 0) {
		int bit = rte_mbuf_dynflag_register(&flag);

		if (bit < 0)
			return object_error(ENOMEM, "no mbuf flag is free for synth ports");
		streams.check_flag = 1ull << bit;
		struct rte_mbuf fresh = {.nb_segs = 1, .data_off = RTE_PKTMBUF_HEADROOM, .port = RTE_MBUF_PORT_INVALID};
		rte_mbuf_refcnt_set(&fresh, 1);
		memcpy(&streams.rearm, &fresh.rearm_data, sizeof(streams.rearm));
	}
	p->private = rte_zmalloc("synth", sizeof(struct synth_port), CACHE_LINE);
	if (p->private == NULL)
		return object_error(ENOMEM, "no memory for port %s", p->name);
	p->rx_queues = p->tx_queues = (uint16_t)worker_count();
	p->mac = (struct rte_ether_addr){{0x02, 0, 0, 0, 0x5e, (uint8_t)p->index}};
	mac_given(&p->mac, want->mac);
	p->up = 1;
	return 0;
}

static void synth_close(struct port *p)
{
	rte_free(p->private);
}

static const struct port_driver synth_driver = {
	.name = "synth",
	.open = synth_open,
	.close = synth_close,
	.rx = synth_rx,
	.tx = synth_tx,
};

static int stream_check(const char *key, const struct api_synth *w)
{
	const char *error = synth_template_check(&w->in);

	if (error == NULL)
		error = synth_template_check(&w->out);
	if (error == NULL && (w->flows == 0 || w->share == 0))
		error = "flows and share are at least 1";
	if (error == NULL && w->sizes != 1)
		error = "a stream has one frame size; a mix is several streams";
	if (error == NULL &&
		(w->size[0] < w->in.length + sizeof(struct synth_tag) || w->size[0] > RTE_MBUF_DEFAULT_DATAROOM))
		error = "the frame size does not hold the template and a tag of 16 bytes, or no single buffer holds it";
	const struct port *p = error == NULL ? port_by_name(w->port) : NULL;
	const struct port *sink = error == NULL ? port_by_name(w->sink) : NULL;
	if (error == NULL && (p == NULL || p->driver != &synth_driver || sink == NULL || sink->driver != &synth_driver))
		error = "port and sink are synth ports";
	return error == NULL ? 0 : object_error(EINVAL, "stream %s: %s", key, error);
}

static int make_table(struct stream *s)
{
	s->stride = RTE_ALIGN(s->in.want.length, 64);
	uint64_t bytes = (uint64_t)s->stride * s->want.flows;
	if (bytes > TABLE_BYTES_MAX)
		return 0; // headers are made on the fly
	s->table = rte_malloc("synth-table", bytes, CACHE_LINE);
	if (s->table == NULL)
		return object_error(ENOMEM, "no memory for the headers of stream %s", s->name);
	for (uint32_t i = 0; i < s->want.flows; i++) {
		uint8_t *to = s->table + (size_t)i * s->stride;

		synth_template_fill(&s->in, &i, &to, 1);
	}
	return 0;
}

static struct stream *stream_by_name(const char *name)
{
	for (int i = 0; i < MAX_STREAMS; i++)
		if (streams.staged[i] != NULL && strncmp(streams.staged[i]->name, name, API_NAME) == 0)
			return streams.staged[i];
	return NULL;
}

static void stream_free(struct stream *s)
{
	if (s != NULL)
		rte_free(s->table);
	rte_free(s);
}

static int stage(struct object_change *c)
{
	struct stream *old = stream_by_name(c->key);
	uint16_t slot = 0;

	c->replaced = old;
	if (c->body == NULL) {
		if (old != NULL)
			streams.staged[old->slot] = NULL;
		return 0;
	}
	int error = stream_check(c->key, c->body);
	if (error != 0)
		return error;
	while (slot < MAX_STREAMS && old == NULL && (streams.staged[slot] != NULL || streams.live[slot] != NULL))
		slot++;
	if (slot == MAX_STREAMS)
		return object_error(ENOSPC, "more than %d streams", MAX_STREAMS);
	struct stream *s = rte_zmalloc("stream", sizeof(*s), CACHE_LINE);
	if (s == NULL)
		return object_error(ENOMEM, "no memory for stream %s", c->key);
	memcpy(s->name, c->key, API_NAME - 1);
	s->want = *(const struct api_synth *)c->body;
	s->slot = old ? old->slot : slot;
	s->port = port_by_name(s->want.port)->index;
	s->sink = port_by_name(s->want.sink)->index;
	synth_template_prepare(&s->in, &s->want.in);
	synth_template_prepare(&s->out, &s->want.out);
	for (uint32_t w = 0; w < API_MAX_WORKERS; w++)
		s->worker[w].random = (s->want.seed + 1) * 0x9e3779b97f4a7c15ull + w * 0xd1342543de82ef95ull + 1;
	error = make_table(s);
	if (error != 0) {
		stream_free(s);
		return error;
	}
	c->staged = s;
	streams.staged[s->slot] = s;
	return 0;
}

static void discard(struct object_change *c)
{
	struct stream *s = c->staged, *old = c->replaced;

	if (s != NULL)
		streams.staged[s->slot] = NULL;
	if (old != NULL)
		streams.staged[old->slot] = old;
	stream_free(s);
}

static void commit(struct object_change *c)
{
	const struct stream *s = c->staged, *old = c->replaced;

	if (s != NULL || old != NULL)
		__atomic_store_n(&streams.live[s ? s->slot : old->slot], c->staged, __ATOMIC_RELEASE);
}

static void release(struct object_change *c)
{
	stream_free(c->replaced);
}

static void build_pattern(struct pattern *pattern, uint16_t port)
{
	uint32_t total = 0, random = 12345;

	for (int i = 0; i < MAX_STREAMS; i++)
		if (streams.live[i] != NULL && streams.live[i]->port == port)
			total += streams.live[i]->want.share;
	for (int i = 0; i < MAX_STREAMS && total > 0; i++) {
		const struct stream *s = streams.live[i];

		if (s == NULL || s->port != port)
			continue;
		uint32_t n = RTE_MAX((s->want.share * PATTERN + total / 2) / total, 1u);
		while (n-- > 0 && pattern->count < PATTERN)
			pattern->slot[pattern->count++] = (uint8_t)i;
	}
	// Rounding may leave places: the first stream takes them.
	while (pattern->count > 0 && pattern->count < PATTERN)
		pattern->slot[pattern->count++] = pattern->slot[0];
	for (uint32_t i = pattern->count; i-- > 1;) {
		random = random * 1103515245 + 12345;
		uint32_t j = (random >> 16) % (i + 1);
		uint8_t t = pattern->slot[i];

		pattern->slot[i] = pattern->slot[j];
		pattern->slot[j] = t;
	}
}

static void finish_commit(void)
{
	for (uint16_t i = 0; i < MAX_PORTS; i++) {
		struct port *p = port_get(i);

		if (p == NULL || p->driver != &synth_driver)
			continue;
		struct synth_port *sp = p->private;
		struct pattern *pattern = &sp->room[sp->pattern == &sp->room[0]];

		pattern->count = 0;
		build_pattern(pattern, i);
		__atomic_store_n(&sp->pattern, pattern, __ATOMIC_RELEASE);
	}
}

static int stream_verify(const char *key, const void *body, uint32_t length)
{
	return stream_check(key, body);
}

// Only ports are counted: sessions come and go by the thousand beside streams.
static int counts(uint32_t kind)
{
	return kind != API_PORT;
}

static const struct object_ops synth_ops = {
	OBJECT_OF_ONE(API_SYNTH, "stream", struct api_synth),
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
	.finish_commit = finish_commit,
	.verify = stream_verify,
	.counts = counts,
};
OBJECT_REGISTER(synth_ops)

static int stream_command(const struct api_stream_command *c)
{
	int found = c->name[0] == 0;

	for (int i = 0; i < MAX_STREAMS; i++) {
		struct stream *s = streams.live[i];

		if (s == NULL || (c->name[0] != 0 && strncmp(c->name, s->name, API_NAME) != 0))
			continue;
		found = 1;
		__atomic_store_n(&s->running, c->start ? 1 : 0, __ATOMIC_RELEASE);
	}
	return found ? 0 : object_error(ENOENT, "no stream %s", c->name);
}

static uint64_t synth_rows(struct stats_sink *sink, const char *key, uint64_t place)
{
	for (int i = 0; i < MAX_STREAMS; i++) {
		const struct stream *s = streams.live[i];
		struct api_synth_row row = {0};

		if (s == NULL || (key[0] != 0 && strcmp(key, s->name) != 0))
			continue;
		memcpy(row.name, s->name, sizeof(row.name));
		for (uint32_t w = 0; w < API_MAX_WORKERS; w++) {
			const struct stream_worker *l = &s->worker[w];

			row.offered += l->offered;
			row.offered_bytes += l->offered * s->want.size[0];
			row.received += l->received;
			row.received_bytes += l->received_bytes;
			row.checked += l->checked;
			row.wrong += l->wrong;
			row.stray += l->stray;
		}
		row.lost = row.offered > row.received ? row.offered - row.received : 0;
		memcpy(row.wrong_frame, s->wrong_frame, sizeof(row.wrong_frame));
		row.wrong_length = s->wrong_length;
		row.wrong_offset = s->wrong_offset;
		stats_row(sink, &row, sizeof(row));
	}
	return 0;
}

RTE_INIT(synth_register)
{
	port_driver_register(&synth_driver);
	stats_table_register(API_TABLE_SYNTH, sizeof(struct api_synth_row), synth_rows);
	stream_handler_register(stream_command);
}
