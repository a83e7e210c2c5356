// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: the decoder on any bytes, any stack through the compiler, and its templates' output through the
// decoder.
#include "traffic/wire/decode.h"
#include "traffic/wire/stack_kit.h"

#define FRAME_ROOM 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

// In memory of its own, so that a look past the end is seen.
static void any_frame(const uint8_t *data, uint16_t length)
{
	uint8_t *frame = malloc(length ? length : 1);
	struct decoded d;

	memcpy(frame, data, length);
	memset(&d, 0xff, sizeof(d));
	check(decode_frame(frame, length, &d) == (d.fault != NULL ? -1 : 0), "the result is not the fault");
	check(d.end <= length && d.at <= length && d.inner_l3 <= length, "an offset beyond the frame");
	check(d.layers >= 1 && d.layers <= DECODE_LAYERS, "the number of layers");
	free(frame);
}

struct bytes {
	const uint8_t *next;
	size_t left;
};

static uint32_t take(struct bytes *b)
{
	if (b->left == 0)
		return 0;
	b->left--;
	return *b->next++;
}

static void any_value(struct bytes *b, struct value *v)
{
	uint32_t how = take(b), n = take(b) % 17;

	v->given = how & 1;
	v->any = (how & 0x1e) == 0x1e;
	for (uint32_t i = 16 - n; i < 16; i++)
		v->bytes[i] = (uint8_t)take(b);
	if (how & 0x20) {
		v->word = (uint8_t)take(b);
		v->step = take(b) << (how >> 6) * 8;
		v->each = take(b);
		v->count = take(b);
	}
}

// An unchecked stack: it is refused, or its headers are written.
static void any_stack(struct bytes b)
{
	static struct stack s;
	static struct template t;
	char text[64];
	int line;

	memset(&s, 0, sizeof(s));
	s.layers = (uint8_t)(take(&b) % (JOB_LAYERS + 2));
	for (uint32_t i = 0; i < s.layers && i < JOB_LAYERS; i++) {
		struct layer *l = &s.layer[i];
		uint32_t fields = take(&b) % 8;

		l->kind = (enum layer_kind)(take(&b) % LAYER_KINDS);
		for (uint32_t k = 0; k < layer_form(l->kind)->fields; k++)
			l->field[k].given = layer_form(l->kind)->field[k].role == ROLE_REQUIRED;
		while (fields-- > 0)
			any_value(&b, &l->field[take(&b) % JOB_FIELDS]);
		l->extensions = (uint8_t)(take(&b) < 200 ? 0 : take(&b));
		for (uint32_t k = 0; k < JOB_EXTENSIONS; k++) {
			l->extension[k].type = (uint8_t)(l->extensions ? take(&b) : 0);
			l->extension[k].length = (uint8_t)(l->extensions ? take(&b) : 0);
		}
	}
	uint32_t flows = 1 + take(&b) * take(&b), length = take(&b) * 8;

	if (stack_compile(&s, flows, take(&b) & 1, &t, text, sizeof(text), &line) != 0) {
		check(strlen(text) > 0 && strlen(text) < sizeof(text), "no reason");
		return;
	}
	length += t.length;
	uint8_t *header = malloc(t.length), *payload = calloc(1, length - t.length + 1);

	template_write(&t, flows - 1, length, payload, header);
	any_frame(header, t.length);
	for (uint32_t i = 0; i <= t.length; i++)
		template_name(&t, (uint16_t)i, text, sizeof(text));
	free(header);
	free(payload);
}

// A valid combination, any flow at any size: the decoder finds only the requested faults.
static void good_stack(struct bytes b)
{
	static struct stack s;
	static struct template t;
	static uint8_t frame[FRAME_ROOM];
	uint32_t index = (take(&b) << 8 | take(&b)) % KIT_STACKS, flow = take(&b) % 200;
	uint32_t length = take(&b) << 8 | take(&b);
	struct decoded d;

	kit_stack(index, &s);
	kit_compile(&s, 200, false, &t);
	length = t.length + length % (FRAME_ROOM - t.length);
	for (uint32_t i = t.length; i < length; i++)
		frame[i] = (uint8_t)(i + TAG_BYTES < length ? take(&b) : 0);
	template_write(&t, flow, length, frame + t.length, frame);
	if (decode_frame(frame, (uint16_t)length, &d) != 0 && strcmp(d.fault, "udp: no checksum over IPv6") != 0) {
		fprintf(stderr, "stack %u, flow %u, %u bytes\n", index, flow, length);
		check(false, d.fault);
	}
	check(d.inner_l3 == t.inner_l3, "another innermost packet");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	any_frame(data, (uint16_t)(size < FRAME_ROOM ? size : FRAME_ROOM));
	any_stack((struct bytes){data, size});
	good_stack((struct bytes){data, size});
	return 0;
}
