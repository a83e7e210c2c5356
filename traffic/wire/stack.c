// SPDX-License-Identifier: Apache-2.0
// The compiler that makes a template of header bytes, counted fields, lengths and checksums out of a stack.
#include "traffic/wire/stack.h"
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PORT_GTPU 2152 // TS 29.281 §4.4.2.3
#define GTPU_GPDU 255 // TS 29.281 §6.1
#define ETHERTYPE_LOCAL 0x88b5 // IEEE 802 local experimental: a frame that ends with Ethernet or a tag
#define IPV4_BYTES 20 // its checksum covers them; templates have no options
#define PROTOCOL_TEST 253 // RFC 3692: an IP packet without a layer above

// Layers that may follow a layer, and the number for its ROLE_NEXT field.
static const struct {
	enum layer_kind layer, next;
	uint16_t number;
} orders[] = {
	{LAYER_ETHERNET, LAYER_VLAN, 0x8100},
	{LAYER_ETHERNET, LAYER_PPPOE, 0x8864},
	{LAYER_ETHERNET, LAYER_IPV4, 0x0800},
	{LAYER_ETHERNET, LAYER_IPV6, 0x86dd},
	{LAYER_VLAN, LAYER_VLAN, 0x8100},
	{LAYER_VLAN, LAYER_PPPOE, 0x8864},
	{LAYER_VLAN, LAYER_IPV4, 0x0800},
	{LAYER_VLAN, LAYER_IPV6, 0x86dd},
	{LAYER_PPPOE, LAYER_IPV4, 0x0021},
	{LAYER_PPPOE, LAYER_IPV6, 0x0057},
	{LAYER_IPV4, LAYER_UDP, 17},
	{LAYER_IPV4, LAYER_TCP, 6},
	{LAYER_IPV4, LAYER_ICMP, 1},
	{LAYER_IPV6, LAYER_UDP, 17},
	{LAYER_IPV6, LAYER_TCP, 6},
	{LAYER_IPV6, LAYER_ICMPV6, 58},
	{LAYER_UDP, LAYER_GTPU, 0},
	{LAYER_GTPU, LAYER_IPV4, 0},
	{LAYER_GTPU, LAYER_IPV6, 0},
};

// A stack on its way to a template.
struct compiler {
	const struct stack *s;
	struct template *t;
	uint32_t flows;
	bool received;
	char *error;
	size_t n;
	int *line;
	uint32_t index; // of the layer at work
	uint16_t start[JOB_LAYERS + 1]; // where each layer begins
};

static uint32_t word(const struct value *v, uint32_t index)
{
	uint32_t number;

	memcpy(&number, v->bytes + index * 4, 4);
	return ntohl(number);
}

static uint32_t low_word(const struct value *v)
{
	return word(v, 3);
}

__attribute__((format(printf, 3, 4))) static int fail(struct compiler *c, const char *field, const char *format, ...)
{
	const struct layer *l = &c->s->layer[c->index];
	va_list list;
	int used = snprintf(c->error, c->n, "%s%s%s%s: ", layer_rank(c->s, c->index), layer_form(l->kind)->name,
		field ? "." : "", field ? field : "");

	*c->line = l->line;
	if (used < 0 || (size_t)used >= c->n)
		return -1;
	va_start(list, format);
	vsnprintf(c->error + used, c->n - (size_t)used, format, list);
	va_end(list);
	return -1;
}

static void put_bits(uint8_t *to, uint32_t bit, uint32_t bits, const uint8_t value[16])
{
	for (uint32_t i = 0; i < bits; i++) {
		uint32_t from = 128 - bits + i, at = bit + i;
		uint8_t one = (uint8_t)(0x80 >> at % 8);

		if (value[from / 8] & 0x80 >> from % 8)
			to[at / 8] |= one;
		else
			to[at / 8] &= (uint8_t)~one;
	}
}

static void put_number(uint8_t *to, uint32_t bit, uint32_t bits, uint32_t number)
{
	uint8_t value[16] = {0};

	number = htonl(number);
	memcpy(value + 12, &number, 4);
	put_bits(to, bit, bits, value);
}

// How often a counted value is stepped at most.
static uint32_t last_count(const struct value *v, uint32_t flows)
{
	uint32_t last = (flows ? flows - 1 : 0) / v->each;

	return v->count && v->count - 1 < last ? v->count - 1 : last;
}

// Adds the template field for a value that counts. `bit`: of the field in the template.
static int count_field(struct compiler *c, const struct field_form_of *f, const struct value *v, uint32_t bit)
{
	struct template *t = c->t;
	uint32_t above = 32 * (3 - v->word); // bits of the field below the word that is stepped
	uint32_t width, last, first_byte, last_byte, base;
	uint64_t max;

	if (v->each == 0)
		return fail(c, f->name, "counts with each 0; it must be at least 1");
	last = last_count(v, c->flows);
	if (last == 0)
		return 0;
	if (v->word > 3 || above >= f->bits)
		return fail(c, f->name, "the step does not fit in %u bits", f->bits);
	width = f->bits - above < 32 ? f->bits - above : 32;
	max = (1ull << width) - 1;
	base = word(v, v->word);
	if (base + (uint64_t)v->step * last > max) {
		uint64_t flow = ((max - base) / v->step + 1) * v->each;

		return fail(c, f->name, "leaves its %u bits at flow %llu", width, (unsigned long long)flow);
	}
	if (t->fields == TEMPLATE_FIELDS)
		return fail(c, f->name, "more than %u fields that count", TEMPLATE_FIELDS);
	bit += f->bits - above - width;
	first_byte = bit / 8;
	last_byte = (bit + width - 1) / 8;
	if (last_byte - first_byte == 2)
		first_byte--; // three bytes (flow_label): taken as four, the first unchanged
	t->field[t->fields++] = (struct template_field){
		.offset = (uint16_t)first_byte,
		.width = (uint8_t)(last_byte - first_byte + 1),
		.step = v->step << (7 - (bit + width - 1) % 8),
		.each = v->each,
		.count = v->count,
	};
	return 0;
}

static int given_field(struct compiler *c, const struct field_form_of *f, const struct value *v, uint32_t bit)
{
	uint8_t ones[16];

	if (v->any) {
		if (!c->received)
			return fail(c, f->name, "`any` is for what is received");
		memset(ones, 0, sizeof(ones));
		put_bits(c->t->mask, bit, f->bits, ones);
		return 0;
	}
	for (uint32_t i = 0; i < 128u - f->bits; i++)
		if (v->bytes[i / 8] & 0x80 >> i % 8)
			return fail(c, f->name, "does not fit in %u bits", f->bits);
	put_bits(c->t->bytes, bit, f->bits, v->bytes);
	return v->step ? count_field(c, f, v, bit) : 0;
}

static int add_length(struct compiler *c, const struct field_form_of *f, uint16_t at)
{
	struct template *t = c->t;

	if (t->lengths == TEMPLATE_LENGTHS)
		return fail(c, f->name, "more than %u lengths", TEMPLATE_LENGTHS);
	t->size[t->lengths++] = (struct template_length){at, (uint16_t)(c->start[c->index] + f->preset)};
	return 0;
}

// The number of the layer behind the one at work.
static int next_number(struct compiler *c, uint32_t *number)
{
	const struct layer *l = &c->s->layer[c->index];
	bool end = c->index + 1 == c->s->layers;

	if (end && l->kind == LAYER_PPPOE)
		return fail(c, NULL, "ipv4 or ipv6 must follow");
	if (end) {
		*number = l->kind == LAYER_IPV4 || l->kind == LAYER_IPV6 ? PROTOCOL_TEST : ETHERTYPE_LOCAL;
		return 0;
	}
	for (uint32_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (orders[i].layer == l->kind && orders[i].next == l[1].kind)
			*number = orders[i].number;
	return 0;
}

// A receiver takes UDP to that port for GTP-U: no flow may reach it by counting.
static int check_port(struct compiler *c, const struct field_form_of *f, const struct value *v)
{
	uint32_t base = low_word(v), step = v->word == 3 && v->each ? v->step : 0;
	uint32_t k = step && PORT_GTPU >= base ? (PORT_GTPU - base) / step : 0;

	if (v->any || base + (uint64_t)step * k != PORT_GTPU || (k && k > last_count(v, c->flows)))
		return 0;
	return fail(c, f->name, "%u is the port of GTP-U, and no gtpu follows (flow %llu)", PORT_GTPU,
		(unsigned long long)k * v->each);
}

static bool has_checksum(const struct compiler *c)
{
	const struct layer *l = &c->s->layer[c->index];
	const struct value *v = layer_given(l, "checksum");

	if (l->kind != LAYER_UDP)
		return !v;
	if (v)
		return !v->any && low_word(v) != 0;
	return l[-1].kind == LAYER_IPV6; // RFC 8200 §8.1
}

static int compile_field(struct compiler *c, uint32_t index)
{
	const struct layer *l = &c->s->layer[c->index];
	const struct field_form_of *f = &layer_form(l->kind)->field[index];
	const struct value *v = &l->field[index];
	uint32_t bit = (uint32_t)(c->start[c->index] * 8 + f->bit), number = f->preset;
	bool udp_sum = l->kind == LAYER_UDP && f->role == ROLE_CHECKSUM, end = c->index + 1 == c->s->layers;
	bool given = v->given || v->any;

	if (f->bit >= layer_bytes(l) * 8)
		return 0; // GTP-U without its optional octets
	if (given && f->role == ROLE_NEXT && !end && l[1].kind == LAYER_VLAN)
		return fail(c, f->name, "the vlan that follows says it, as its tpid");
	if (given && f->role == ROLE_PORT && index == 1 && end && check_port(c, f, v))
		return -1;
	if (given && udp_sum && !v->any && (low_word(v) > 1 || v->step))
		return fail(c, f->name, "0 (none) or 1 (computed)");
	if (given && (!udp_sum || v->any))
		return given_field(c, f, v, bit);
	switch (f->role) {
	case ROLE_PLAIN:
		break;
	case ROLE_REQUIRED:
		return fail(c, f->name, "must be given");
	case ROLE_NEXT:
		if (next_number(c, &number))
			return -1;
		break;
	case ROLE_LENGTH:
		return add_length(c, f, (uint16_t)(bit / 8));
	case ROLE_CHECKSUM:
		return 0; // compile_sum()
	case ROLE_TPID:
		// IEEE 802.1ad: the outer of two is a service tag.
		number = !end && l[1].kind == LAYER_VLAN && l[-1].kind != LAYER_VLAN ? 0x88a8 : 0x8100;
		break;
	case ROLE_PORT:
		number = !end ? PORT_GTPU : f->preset;
		break;
	case ROLE_FLAGS:
		number = 0x30u | layer_gtpu_flags(l);
		break;
	case ROLE_EXTENSION:
		number = l->extensions ? l->extension[0].type : 0;
		break;
	}
	put_number(c->t->bytes, bit, f->bits, number);
	return 0;
}

static int check_extensions(struct compiler *c)
{
	const struct layer *l = &c->s->layer[c->index];

	if (l->extensions && l->kind != LAYER_GTPU)
		return fail(c, NULL, "has no extensions");
	if (l->extensions > JOB_EXTENSIONS)
		return fail(c, NULL, "more than %u extensions", JOB_EXTENSIONS);
	for (uint32_t i = 0; i < l->extensions; i++) {
		const struct extension *e = &l->extension[i];

		if (e->type == 0)
			return fail(c, "extensions", "type 0 says that there is none");
		if (e->length % 4 != 2 || e->length > sizeof(e->content))
			return fail(c, "extensions", "content of %u bytes; it must be 2, 6, 10, … up to %zu", e->length,
				sizeof(e->content));
	}
	return 0;
}

// Extension headers behind the optional octets (TS 29.281 §5.2.1): length in units of 4 octets, content, next type.
static void put_extensions(struct compiler *c)
{
	const struct layer *l = &c->s->layer[c->index];
	uint8_t *to;

	if (l->extensions == 0)
		return;
	to = c->t->bytes + c->start[c->index] + layer_form(LAYER_GTPU)->bytes + 4;
	for (uint32_t i = 0; i < l->extensions; i++) {
		const struct extension *e = &l->extension[i];

		*to++ = (uint8_t)((e->length + 2) / 4);
		memcpy(to, e->content, e->length);
		to += e->length;
		*to++ = i + 1 < l->extensions ? e[1].type : 0;
	}
}

static int check_order(struct compiler *c)
{
	const struct layer *l = &c->s->layer[c->index];
	const struct value *type = l->kind == LAYER_GTPU ? layer_given(l, "type") : NULL;
	bool end = c->index + 1 == c->s->layers, gpdu = !type || type->any || low_word(type) == GTPU_GPDU;
	bool good = end;

	if (c->index == 0 && l->kind != LAYER_ETHERNET)
		return fail(c, NULL, "a stack begins with ethernet");
	for (uint32_t i = 0; !end && i < sizeof(orders) / sizeof(orders[0]); i++)
		good |= orders[i].layer == l->kind && orders[i].next == l[1].kind;
	if (!good) {
		c->index++;
		return fail(c, NULL, "cannot follow %s", layer_form(l->kind)->name);
	}
	if (l->kind == LAYER_GTPU && gpdu == end)
		return fail(c, NULL,
			end ? "ipv4 or ipv6 must follow, this is a G-PDU (type 255)"
			    : "nothing can follow, this is no G-PDU (type 255)");
	return 0;
}

// Where layers begin, and whether they may stand there.
static int place_layers(struct compiler *c)
{
	const struct stack *s = c->s;

	for (c->index = 0; c->index < s->layers; c->index++) {
		if (check_order(c) || check_extensions(c))
			return -1;
		c->start[c->index + 1] = (uint16_t)(c->start[c->index] + layer_bytes(&s->layer[c->index]));
		if (c->start[c->index + 1] > TEMPLATE_BYTES)
			return fail(c, NULL, "more than %u bytes of headers", TEMPLATE_BYTES);
	}
	c->t->length = c->start[s->layers];
	return 0;
}

static bool masked(const struct template *t, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (t->mask[i] != 0xff)
			return true;
	return false;
}

// The checksum of the layer at work, if it has one.
static int compile_sum(struct compiler *c)
{
	const struct layer *l = &c->s->layer[c->index];
	struct template *t = c->t;
	uint16_t start = c->start[c->index], outer = c->index ? c->start[c->index - 1] : 0;
	int field = layer_field(l->kind, "checksum");
	struct template_sum *sum = &t->sum[t->sums];
	bool hidden;

	if (field < 0 || !has_checksum(c))
		return 0;
	if (t->sums == TEMPLATE_SUMS)
		return fail(c, "checksum", "more than %u checksums", TEMPLATE_SUMS);
	t->sums++;
	*sum = (struct template_sum){.kind = l->kind == LAYER_IPV4 ? SUM_IPV4_HEADER : SUM_L4,
		.offset = (uint16_t)(start + layer_form(l->kind)->field[field].bit / 8),
		.start = start,
		.udp = l->kind == LAYER_UDP};
	if (sum->kind == SUM_IPV4_HEADER) {
		hidden = masked(t, start, start + IPV4_BYTES);
	} else {
		if (l->kind != LAYER_ICMP) {
			bool v6 = l[-1].kind == LAYER_IPV6;

			sum->addresses = (uint16_t)(outer + (v6 ? 8 : 12));
			sum->address_bytes = v6 ? 32 : 8;
			sum->protocol = l->kind == LAYER_UDP ? 17 : l->kind == LAYER_TCP ? 6 : 58;
		}
		hidden = masked(t, start, t->length) || masked(t, sum->addresses, sum->addresses + sum->address_bytes);
	}
	if (hidden)
		memset(t->mask + sum->offset, 0, 2);
	return 0;
}

int stack_compile(
	const struct stack *s, uint32_t flows, bool received, struct template *t, char *error, size_t n, int *line)
{
	struct compiler c = {
		.s = s, .t = t, .flows = flows, .received = received, .error = error, .n = n, .line = line};

	memset(t, 0, sizeof(*t));
	*line = 0;
	if (s->layers == 0 || s->layers > JOB_LAYERS) {
		snprintf(error, n, s->layers ? "more than %u layers" : "no layers", JOB_LAYERS);
		return -1;
	}
	t->stack = *s;
	if (place_layers(&c))
		return -1;
	memset(t->mask, 0xff, t->length);
	for (c.index = 0; c.index < s->layers; c.index++) {
		for (uint32_t i = 0; i < layer_form(s->layer[c.index].kind)->fields; i++)
			if (compile_field(&c, i))
				return -1;
		put_extensions(&c);
		if (s->layer[c.index].kind == LAYER_IPV4 || s->layer[c.index].kind == LAYER_IPV6)
			t->inner_l3 = c.start[c.index];
	}
	for (c.index = s->layers; c.index-- > 0;)
		if (compile_sum(&c))
			return -1;
	return 0;
}
