// SPDX-License-Identifier: Apache-2.0
// Follows the paths of programs. Registers are numbers, bits of the packet, or unknown; a passed comparison makes the
// compared bits known. Whatever cannot be followed is unknown, so too many packets meet the conditions, never too few.
#include "trace/conditions.h"
#include <string.h>

#define STEPS 20000u // of all ways together: more make a condition that always holds
#define DEPTH 64u // of comparisons on a way whose other side is still to be walked

enum kind { UNKNOWN, NUMBER, BITS };

struct value {
	enum kind kind;
	uint32_t number; // BITS: those of a load that are left
	uint32_t at, size; // of the load
};

struct way {
	const struct bpf_insn *at;
	struct known known;
	struct value a, x, memory[BPF_MEMWORDS];
};

struct walk {
	struct conditions *to;
	const struct known *given;
	uint32_t common, shift, steps;
};

static const struct condition always, never = {.value = 1};

void conditions_clear(struct conditions *c)
{
	c->n = 0;
	for (uint32_t i = 0; i < CONDITIONS_MOST; i++)
		c->of[i] = never;
}

void known_byte(struct known *k, uint32_t at, uint8_t mask, uint8_t value)
{
	k->mask[at] = mask;
	k->value[at] = value;
}

static int always_holds(const struct conditions *c)
{
	return c->n == 1 && c->of[0].mask == 0;
}

void conditions_add(struct conditions *to, struct condition c)
{
	if (always_holds(to))
		return;
	for (uint32_t i = 0; i < to->n; i++)
		if (to->of[i].at == c.at && to->of[i].mask == c.mask && to->of[i].value == c.value)
			return;
	if (to->n == CONDITIONS_MOST || c.mask == 0) {
		conditions_clear(to);
		c = always;
	}
	to->of[to->n++] = c;
}

static struct value number(uint32_t n)
{
	return (struct value){.kind = NUMBER, .number = n};
}

static uint32_t bits_known(const struct known *k, const struct value *v, const uint8_t *of)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < v->size; i++)
		bits = bits << 8 | (of[v->at + i] & k->mask[v->at + i]);
	return bits & v->number;
}

// A load whose bits are known is a number.
static struct value resolve(const struct known *k, struct value v)
{
	if (v.kind == BITS && bits_known(k, &v, k->mask) == v.number)
		return number(bits_known(k, &v, k->value));
	return v;
}

static struct value load(const struct known *k, uint64_t at, uint32_t size)
{
	const uint32_t all = size == 4 ? UINT32_MAX : (1u << 8 * size) - 1;

	if (at + size > CONDITIONS_REACH)
		return (struct value){0};
	return resolve(k, (struct value){.kind = BITS, .number = all, .at = (uint32_t)at, .size = size});
}

static struct value alu(uint16_t op, struct value a, struct value with)
{
	if (a.kind == BITS && op == BPF_AND && with.kind == NUMBER) {
		a.number &= with.number;
		return a;
	}
	if (a.kind != NUMBER || with.kind != NUMBER)
		return (struct value){0};
	switch (op) {
	case BPF_ADD:
		return number(a.number + with.number);
	case BPF_SUB:
		return number(a.number - with.number);
	case BPF_AND:
		return number(a.number & with.number);
	case BPF_OR:
		return number(a.number | with.number);
	case BPF_LSH:
		return with.number < 32 ? number(a.number << with.number) : (struct value){0};
	case BPF_RSH:
		return with.number < 32 ? number(a.number >> with.number) : (struct value){0};
	default:
		return (struct value){0};
	}
}

// The bits `mask` of a load are those of `number`. Returns 0 when they cannot be.
static int learn(struct known *k, const struct value *v, uint32_t mask, uint32_t number)
{
	struct value of = *v;

	of.number = mask;
	if ((number & ~mask) != 0 || ((bits_known(k, &of, k->value) ^ number) & bits_known(k, &of, k->mask)) != 0)
		return 0;
	for (uint32_t i = v->size; i-- > 0; mask >>= 8, number >>= 8) {
		k->value[v->at + i] = (uint8_t)((k->value[v->at + i] & k->mask[v->at + i] & ~mask) | (number & mask));
		k->mask[v->at + i] |= (uint8_t)mask;
	}
	return 1;
}

static int compare(uint16_t op, uint32_t a, uint32_t b)
{
	return op == BPF_JEQ ? a == b : op == BPF_JGT ? a > b : op == BPF_JGE ? a >= b : (a & b) != 0;
}

static int is_one_bit(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

// Adds to the known bits what `holds` means. Returns 0 when it is impossible.
static int learn_comparison(struct way *w, uint16_t op, const struct value *with, int holds)
{
	const struct value a = resolve(&w->known, w->a);

	if (with->kind != NUMBER)
		return 1;
	if (a.kind == NUMBER)
		return compare(op, a.number, with->number) == holds;
	if (a.kind != BITS)
		return 1;
	const uint32_t mask = op == BPF_JSET ? a.number & with->number : a.number;

	if (op == BPF_JEQ && holds)
		return learn(&w->known, &a, mask, with->number);
	if (op == BPF_JSET && !holds)
		return learn(&w->known, &a, mask, 0);
	if (op == BPF_JSET && mask == 0)
		return 0;
	if (op == BPF_JSET && is_one_bit(mask))
		return learn(&w->known, &a, mask, mask);
	if (op == BPF_JEQ && is_one_bit(mask) && (with->number & ~mask) == 0)
		return learn(&w->known, &a, mask, with->number ^ mask);
	return 1;
}

// The word with the most bits, those behind the common bytes first.
static void taken(struct walk *walk, const struct way *w)
{
	struct condition best = always, c;
	uint32_t most = 0;

	for (uint32_t at = 0; at + sizeof(c.mask) <= CONDITIONS_REACH; at++) {
		uint8_t mask[8], value[8];
		uint32_t worth = 0;

		for (uint32_t i = 0; i < sizeof(mask); i++) {
			mask[i] = w->known.mask[at + i] & (uint8_t)~walk->given->mask[at + i];
			value[i] = w->known.value[at + i] & mask[i];
			worth += (uint32_t)__builtin_popcount(mask[i]) * (at + i < walk->common ? 1 : 32);
		}
		if (worth <= most)
			continue;
		most = worth;
		c.at = at + walk->shift;
		memcpy(&c.mask, mask, sizeof(mask));
		memcpy(&c.value, value, sizeof(value));
		best = c;
	}
	conditions_add(walk->to, best);
}

static struct value loaded(const struct way *w, const struct bpf_insn *i)
{
	const uint32_t size = BPF_SIZE(i->code) == BPF_W ? 4 : BPF_SIZE(i->code) == BPF_H ? 2 : 1;
	const struct value x = resolve(&w->known, w->x);

	switch (BPF_MODE(i->code)) {
	case BPF_ABS:
		return load(&w->known, i->k, size);
	case BPF_IND:
		return x.kind == NUMBER ? load(&w->known, (uint64_t)x.number + i->k, size) : (struct value){0};
	case BPF_IMM:
		return number(i->k);
	case BPF_MEM:
		return w->memory[i->k % BPF_MEMWORDS];
	case BPF_MSH: {
		struct value v = load(&w->known, i->k, 1);

		v = resolve(&w->known, alu(BPF_AND, v, number(15)));
		return alu(BPF_LSH, v, number(2));
	}
	default: // BPF_LEN
		return (struct value){0};
	}
}

static void step(struct way *w, const struct bpf_insn *i)
{
	const struct value with = resolve(&w->known, BPF_SRC(i->code) == BPF_X ? w->x : number(i->k));

	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
		w->a = loaded(w, i);
		break;
	case BPF_LDX:
		w->x = loaded(w, i);
		break;
	case BPF_ST:
		w->memory[i->k % BPF_MEMWORDS] = w->a;
		break;
	case BPF_STX:
		w->memory[i->k % BPF_MEMWORDS] = w->x;
		break;
	case BPF_ALU:
		w->a = alu(BPF_OP(i->code), resolve(&w->known, w->a), with);
		break;
	case BPF_MISC:
		if (BPF_MISCOP(i->code) == BPF_TAX)
			w->x = w->a;
		else
			w->a = w->x;
		break;
	}
}

static void follow(struct walk *walk, struct way w, uint32_t depth)
{
	while (!always_holds(walk->to)) {
		const struct bpf_insn *i = w.at++;

		if (walk->steps++ == STEPS || depth == DEPTH) {
			conditions_add(walk->to, always);
			return;
		}
		if (BPF_CLASS(i->code) == BPF_RET) {
			const struct value v = BPF_RVAL(i->code) == BPF_A ? resolve(&w.known, w.a) : number(i->k);

			if (v.kind != NUMBER || v.number != 0)
				taken(walk, &w);
			return;
		}
		if (BPF_CLASS(i->code) != BPF_JMP) {
			step(&w, i);
			continue;
		}
		if (BPF_OP(i->code) == BPF_JA) {
			w.at += i->k;
			continue;
		}
		const struct value with = resolve(&w.known, BPF_SRC(i->code) == BPF_X ? w.x : number(i->k));
		struct way yes = w;

		yes.at += i->jt;
		if (learn_comparison(&yes, BPF_OP(i->code), &with, 1))
			follow(walk, yes, depth + 1);
		w.at += i->jf;
		if (!learn_comparison(&w, BPF_OP(i->code), &with, 0))
			return;
	}
}

void conditions_of_program(
	struct conditions *to, const struct bpf_insn *p, const struct known *known, uint32_t common, uint32_t shift)
{
	struct walk walk = {.to = to, .given = known, .common = common, .shift = shift};

	follow(&walk, (struct way){.at = p, .known = *known, .a = number(0), .x = number(0)}, 0);
}
