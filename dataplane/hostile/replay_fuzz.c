// SPDX-License-Identifier: Apache-2.0
// Arbitrary files for `isthmus-dp replay`: a state file and a capture, to a running gateway.
//
// An input is the length of the state file (2 bytes, big endian), the state file, the capture. The state only adds
// objects under names of its own ("~..."), which are deleted afterwards, so that every input finds the same gateway.
// The capture is replayed into the access and the core port at once. After each input the counters must add up, and
// when time has passed nothing may be held and no buffer may still be in use.
#include "core/engine.h"
#include "core/replay.h"
#include "hostile/busy_gateway.h"
#include "wire/bytes.h"
#include <rte_log.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_STEPS 2000
#define MAX_OWN 1024
#define MAX_TICKS (1ull << 63) // of the engine's clock, which never goes back: about a million pauses of an hour

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct own {
	uint32_t kind, count;
	struct {
		uint32_t kind;
		char key[API_NAME];
	} object[MAX_OWN];
};

static void start(void)
{
	busy_gateway_start();
	rte_log_set_global_level(RTE_LOG_EMERG); // what is wrong with each file
}

// Renames every object of the state; the engine's settings are not for change.
static void rename_objects(uint8_t *bytes, size_t size)
{
	struct api_header h;
	struct api_object_head head;

	for (size_t at = 0; size - at >= sizeof(h); at += sizeof(h) + h.length) {
		memcpy(&h, bytes + at, sizeof(h));
		if (h.magic != API_MAGIC || h.length > size - at - sizeof(h))
			return;
		struct part_reader r = {.at = bytes + at + sizeof(h), .left = h.length};
		struct part p;
		if ((h.type != API_PUT && h.type != API_DELETE) || part_next(&r, &p) != 1 || p.count == 0)
			continue;
		uint32_t known = RTE_MIN(p.size, (uint32_t)sizeof(head));
		memset(&head, 0, sizeof(head));
		memcpy(&head, p.rows, known);
		head.key[0] = '~';
		if (head.kind == API_ENGINE)
			head.kind = UINT32_MAX;
		memcpy(bytes + (p.rows - bytes), &head, known);
	}
}

static void load(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size);

	memcpy(bytes, data, size);
	rename_objects(bytes, size);
	FILE *f = fmemopen(bytes, size, "rb");
	if (f != NULL) {
		replay_load_state(f, "state");
		fclose(f);
	}
	free(bytes);
}

static void run(const uint8_t *data, size_t size)
{
	static const char *const ports[] = {"access", "core"};
	uint8_t *bytes = malloc(size);

	memcpy(bytes, data, size);
	for (int i = 0; i < 2; i++) {
		FILE *in = fmemopen(bytes, size, "rb"), *out = fopen("/dev/null", "wb");

		if (in != NULL)
			replay_input(ports[i], "capture", in);
		busy_gateway_check(
			out != NULL && replay_output(ports[i], "output", out) == 0, "an output does not open");
	}
	replay_run(MAX_STEPS);
	replay_close();
	free(bytes);
}

static int note_own(const char *key, const void *body, uint32_t length, void *arg)
{
	struct own *own = arg;

	if (key[0] != '~' || own->count == MAX_OWN)
		return 0;
	own->object[own->count].kind = own->kind;
	memcpy(own->object[own->count++].key, key, API_NAME);
	return 0;
}

static void forget(void)
{
	static struct own own;

	own.count = 0;
	for (own.kind = API_PORT; own.kind < API_KIND_COUNT; own.kind++)
		object_each(own.kind, note_own, &own);
	if (own.count == 0)
		return;
	kit_begin();
	for (uint32_t i = 0; i < own.count; i++)
		kit_delete(own.object[i].kind, own.object[i].key);
	busy_gateway_check(kit_commit() == 0, kit_error());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t state;

	start();
	if (size < 2)
		return 0;
	if (engine_mode.virtual_now > MAX_TICKS) {
		fprintf(stderr, "the clock is used up: start again\n");
		_exit(0);
	}
	state = load16(data);
	data += 2, size -= 2;
	state = state > size ? size : state;
	load(data, state);
	run(data + state, size - state);
	busy_gateway_check(
		kit_totals().held <= kit_engine().packet_buffers, "more packets are held than there are buffers");
	forget();
	busy_gateway_rest();
	return 0;
}
