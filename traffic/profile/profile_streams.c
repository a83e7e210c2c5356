// SPDX-License-Identifier: Apache-2.0
// See profile.h: streams, and whether their packets fit.
#include "traffic/profile/profile.h"
#include "traffic/profile/profile_read.h"
#include "traffic/profile/units.h"
#include <stdlib.h>
#include <string.h>

static void add_size(struct yaml_file *f, const yaml_node_t *bytes, const yaml_node_t *weight, struct profile_stream *s)
{
	static const struct yaml_key size_key = {.low = FRAME_MIN, .high = FRAME_MAX};
	static const struct yaml_key weight_key = {.low = 1, .high = UINT16_MAX};
	uint32_t before = f->faults, b = 0, w = 1;

	yaml_u32(f, bytes, &size_key, &b);
	if (weight != NULL)
		yaml_u32(f, weight, &weight_key, &w);
	if (f->faults != before)
		return;
	for (uint32_t i = 0; i < s->sizes; i++)
		if (s->size[i].bytes == b)
			yaml_fault(f, bytes, "%u bytes are given twice", b);
	s->size[s->sizes++] = (struct profile_size){.bytes = (uint16_t)b, .weight = (uint16_t)w};
}

static void read_size(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	const yaml_node_t *bytes, *weight;

	if (n->type == YAML_SCALAR_NODE) {
		add_size(f, n, NULL, to);
		return;
	}
	if (n->type != YAML_MAPPING_NODE || yaml_pairs(n) == 0 || yaml_pairs(n) > PROFILE_SIZES) {
		yaml_fault(f, n, "must be a size in bytes, or a mix of 1 to %d sizes: {64: 7, 594: 4, 1518: 1}",
			PROFILE_SIZES);
		return;
	}
	for (uint32_t i = 0; yaml_pair(f, n, i, &bytes, &weight); i++)
		add_size(f, bytes, weight, to);
}

#define AT(member) offsetof(struct profile_expect, member)
static const char *const expect_layers[] = {"l2", "l3", NULL};

static void read_expect_layer(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	int layer = 0;

	yaml_word(f, n, k, &layer);
	*(bool *)to = layer == 1;
}

static const struct yaml_key expect_keys[] = {
	{.name = "rate", .read = read_rate_expected, .offset = AT(rate)},
	{.name = "layer", .read = read_expect_layer, .offset = AT(rate_l3), .words = expect_layers},
	{.name = "tolerance", .read = yaml_part, .offset = AT(tolerance), .high = 1},
	{.name = "loss", .read = yaml_part, .offset = AT(loss_max), .high = 1},
	{.name = "p99_us", .read = yaml_real, .offset = AT(p99_us_max), .low = 0.001, .high = 60e6},
};
#undef AT

static void read_expect(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	struct profile_expect *e = to;

	e->given = true;
	if (yaml_decode(f, n, expect_keys, KEYS(expect_keys), e) && e->rate.unit == RATE_NONE &&
		(yaml_get(f, n, "layer") != NULL || yaml_get(f, n, "tolerance") != NULL) &&
		yaml_get(f, n, "rate") == NULL)
		yaml_fault(f, n, "layer and tolerance belong to a rate, and there is none");
}

#define AT(member) offsetof(struct profile_stream, member)
static const char *const orders[] = {[ORDER_TURN] = "turn", [ORDER_RANDOM] = "random", [ORDER_ZIPF] = "zipf", NULL};
static const struct yaml_key stream_keys[] = {
	{.name = "name", .read = yaml_name, .offset = AT(name), .high = NAME_BYTES, .required = true},
	{.name = "port", .required = true},
	{.name = "sink", .required = true},
	{.name = "share", .read = yaml_u32, .offset = AT(share), .low = 1, .high = 65535},
	{.name = "rate", .read = read_rate_own, .offset = AT(rate)},
	{.name = "answers"},
	{.name = "flows", .read = yaml_u32, .offset = AT(flows), .low = 1, .high = TAG_FLOWS},
	{.name = "block", .read = yaml_u32, .offset = AT(block), .low = 1, .high = TAG_FLOWS},
	{.name = "order", .read = yaml_word, .offset = AT(order), .words = orders},
	{.name = "zipf", .read = yaml_real, .offset = AT(zipf), .low = 0.01, .high = 4},
	{.name = "seed", .read = yaml_u64, .offset = AT(seed), .high = 1e18},
	{.name = "size", .read = read_size, .required = true},
	{.name = "check_payload", .read = yaml_u32, .offset = AT(check_payload), .high = UINT32_MAX},
	{.name = "send", .required = true},
	{.name = "receive"},
	{.name = "expect", .read = read_expect, .offset = AT(expect)},
};
#undef AT

const struct profile_form stream_forms[] = {
	{"streams", stream_keys, KEYS(stream_keys)},
	{"expect", expect_keys, KEYS(expect_keys)},
	{NULL, NULL, 0},
};

// What a stream refers to.

// The index of the port or stream that the key `key` names, or -1 after a fault.
static int32_t named(struct yaml_file *f, const yaml_node_t *map, const char *key, const char *kind, const void *first,
	size_t size, uint32_t n)
{
	const yaml_node_t *at = yaml_get(f, map, key);
	const char *words[PROFILE_STREAMS + 1];
	char near[YAML_FAULT_BYTES], quote[YAML_QUOTE];

	if (at == NULL || n == 0) // told already
		return -1;
	const char *name = yaml_single(f, at);
	if (name == NULL)
		return -1;
	profile_words(first, size, n, PROFILE_STREAMS, words);
	for (uint32_t i = 0; name[0] != 0 && words[i] != NULL; i++)
		if (strcmp(words[i], name) == 0)
			return (int32_t)i;
	yaml_fault(f, at, "there is no %s \"%s\"%s", kind, yaml_quote(name, quote),
		yaml_suggest(name, words, near, sizeof(near)));
	return -1;
}

static int32_t named_port(struct yaml_file *f, const yaml_node_t *map, const char *key, const struct profile *p)
{
	return named(f, map, key, "port", p->port[0].name, sizeof(p->port[0]), p->ports);
}

// Once all streams are read.
static void resolve_answers(struct yaml_file *f, const yaml_node_t *map, struct profile *p, struct profile_stream *s)
{
	const yaml_node_t *at = yaml_get(f, map, "answers");

	s->answers = named(f, map, "answers", "stream", p->stream[0].name, sizeof(p->stream[0]), p->streams);
	if (s->answers < 0)
		return;
	const struct profile_stream *of = &p->stream[s->answers];
	if (of == s) {
		yaml_fault(f, at, "a stream cannot answer itself");
		return;
	}
	if (of->flows != s->flows)
		yaml_fault(f, at, "stream \"%s\" has %u flows and this one %u; answers need as many", of->name,
			of->flows, s->flows);
	if (of->sink != s->port)
		yaml_fault(f, at, "stream \"%s\" arrives at port \"%s\", and this one is sent from \"%s\"", of->name,
			p->port[of->sink].name, p->port[s->port].name);
}

static void check_chains(struct yaml_file *f, const yaml_node_t *map, struct profile *p, const struct profile_stream *s)
{
	const yaml_node_t *at = yaml_get(f, map, "answers");

	if (s->answers < 0)
		return;
	if (p->stream[s->answers].answers >= 0 && &p->stream[s->answers] != s)
		yaml_fault(f, at, "stream \"%s\" answers another one itself", p->stream[s->answers].name);
	for (const struct profile_stream *o = p->stream; o < s; o++)
		if (o->answers == s->answers)
			yaml_fault(f, at, "stream \"%s\" answers it already", o->name);
}

// Bytes in front of what an MTU limits: Ethernet and VLAN tags. PPPoE is inside (RFC 2516 §7).
static uint32_t l2_bytes(const struct template *t)
{
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < t->stack.layers; i++) {
		enum layer_kind kind = t->stack.layer[i].kind;

		if (kind != LAYER_ETHERNET && kind != LAYER_VLAN)
			break;
		bytes += layer_form(kind)->bytes;
	}
	return bytes;
}

static void check_mtu(struct yaml_file *f, const yaml_node_t *at, const struct profile_port *port,
	const struct template *t, uint32_t frame, const char *how)
{
	uint32_t need = frame - FCS - l2_bytes(t);

	if (need > port->mtu)
		yaml_fault(f, at, "a frame %s with %u bytes needs an mtu of %u, and port \"%s\" has %u", how, frame,
			need, port->name, port->mtu);
}

static void check_sizes(
	struct yaml_file *f, const yaml_node_t *map, const struct profile *p, const struct profile_stream *s)
{
	const yaml_node_t *at = yaml_get(f, map, "size");
	uint32_t most = 0;

	for (uint32_t i = 0; i < s->sizes; i++) {
		uint32_t least = (uint32_t)s->send.length + TAG_BYTES + FCS;

		if (s->size[i].bytes < least)
			yaml_fault(f, at, "%u bytes are too few: headers %u, the tester's tag %d and FCS %d take %u",
				s->size[i].bytes, s->send.length, TAG_BYTES, FCS, least);
		if (s->size[i].bytes > most)
			most = s->size[i].bytes;
	}
	if (most < (uint32_t)s->send.length + TAG_BYTES + FCS)
		return;
	check_mtu(f, at, &p->port[s->port], &s->send, most, "sent");
	if (s->receive_any)
		return;
	uint32_t arriving = most - s->send.length + s->receive.length;
	if (arriving > FRAME_MAX)
		yaml_fault(f, at, "a frame sent with %u bytes would arrive with %u, and at most %d are possible", most,
			arriving, FRAME_MAX);
	else
		check_mtu(f, at, &p->port[s->sink], &s->receive, arriving, "received");
}

static bool read_template(struct yaml_file *f, const yaml_node_t *list, struct stack *stack, bool received,
	uint32_t flows, struct template *t)
{
	char error[TEXT_BYTES];
	int line = 0;

	memset(stack, 0, sizeof(*stack));
	if (!profile_read_stack(f, list, stack))
		return false;
	if (stack_compile(stack, flows, received, t, error, sizeof(error), &line) == 0)
		return true;
	yaml_fault_line(f, list, line, "%s", error);
	return false;
}

// `stack`: room to read one to.
static void read_stream(struct yaml_file *f, const yaml_node_t *map, struct profile *p, struct stack *stack)
{
	struct profile_stream *s = &p->stream[p->streams++];
	const yaml_node_t *send = yaml_get(f, map, "send"), *receive = yaml_get(f, map, "receive");

	*s = (struct profile_stream){.line = yaml_line(map),
		.answers = -1,
		.flows = 1,
		.block = 1,
		.zipf = 1,
		.seed = 1,
		.check_payload = 1,
		.receive_any = receive == NULL,
		.expect = {.tolerance = 0.01, .loss_max = -1}};
	if (!yaml_decode(f, map, stream_keys, KEYS(stream_keys), s))
		return;
	uint32_t given = (yaml_get(f, map, "share") != NULL) + (yaml_get(f, map, "rate") != NULL) +
			 (yaml_get(f, map, "answers") != NULL);
	if (given > 1)
		yaml_fault(f, map, "has more than one of share, rate and answers");
	if (given == 0)
		s->share = 1;
	if (yaml_get(f, map, "zipf") != NULL && s->order != ORDER_ZIPF)
		yaml_fault(f, yaml_get(f, map, "zipf"), "is an exponent for order: zipf, and the order is %s",
			orders[s->order]);
	for (const struct profile_stream *o = p->stream; o < s; o++)
		if (s->name[0] != 0 && strcmp(o->name, s->name) == 0)
			yaml_fault(f, yaml_get(f, map, "name"), "there is a stream \"%s\" in line %d already", s->name,
				o->line);
	int32_t port = named_port(f, map, "port", p), sink = named_port(f, map, "sink", p);
	s->port = (uint16_t)(port < 0 ? 0 : port);
	s->sink = (uint16_t)(sink < 0 ? 0 : sink);
	bool good = send != NULL && read_template(f, send, stack, false, s->flows, &s->send);
	if (receive != NULL && !read_template(f, receive, stack, true, s->flows, &s->receive))
		good = false;
	if (good && port >= 0 && sink >= 0)
		check_sizes(f, map, p, s);
}

void profile_read_streams(struct yaml_file *f, const yaml_node_t *list, struct profile *p)
{
	uint32_t n = yaml_entries(list), before = f->faults;
	uint64_t flows = 0;

	if (list == NULL)
		return;
	if (n == 0 || n > PROFILE_STREAMS) {
		yaml_fault(f, list, "must be a list of 1 to %d streams", PROFILE_STREAMS);
		return;
	}
	struct stack *stack = malloc(sizeof(*stack));
	p->stream = calloc(n, sizeof(*p->stream));
	if (p->stream == NULL || stack == NULL) {
		yaml_fault(f, list, "no memory");
		free(stack);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		read_stream(f, yaml_entry(f, list, i), p, stack);
		flows += p->stream[i].flows;
	}
	free(stack);
	if (flows > PROFILE_FLOWS)
		yaml_fault(f, list, "the streams have %llu flows together, and at most %u are possible",
			(unsigned long long)flows, PROFILE_FLOWS);
	// What answers refers to is looked at only in streams that were read well, or faults would follow from faults.
	if (f->faults != before)
		return;
	for (uint32_t i = 0; i < n; i++)
		resolve_answers(f, yaml_entry(f, list, i), p, &p->stream[i]);
	for (uint32_t i = 0; i < n; i++)
		check_chains(f, yaml_entry(f, list, i), p, &p->stream[i]);
}
