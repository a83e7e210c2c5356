// SPDX-License-Identifier: Apache-2.0
// Valid and invalid jobs, and the sentences about impossible stacks and sizes.
#include "traffic/engine/work_kit.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct work_kit kit;
static struct work_faults faults;
static char error[JOB_SENTENCE];

static struct work *parse(size_t n)
{
	error[0] = 0;
	return work_parse((const uint8_t *)&kit, n, &faults, error, sizeof(error));
}

static void a_good_job(void **state)
{
	work_kit(&kit);
	struct work *w = parse(sizeof(kit));

	assert_non_null(w);
	assert_int_equal(faults.n, 0);
	assert_int_equal(w->stream[1].send.length, 14 + 20 + 8);
	assert_int_equal(w->stream[1].job.answers, 0);
	work_free(w);
}

static void every_byte_too_few_or_too_many(void **state)
{
	uint8_t more[sizeof(kit) + 1];

	work_kit(&kit);
	for (size_t n = 0; n < sizeof(kit); n += n < 2000 ? 1 : 509)
		assert_null(parse(n));
	memcpy(more, &kit, sizeof(kit));
	more[sizeof(kit)] = 0;
	assert_null(work_parse(more, sizeof(more), &faults, error, sizeof(error)));
	assert_string_equal(error, "a bad job: more follows than it says");
}

// Each field that the engine counts on, out of its bounds.
#define REFUSED(field, value)                                                                                          \
	do {                                                                                                           \
		work_kit(&kit);                                                                                        \
		(field) = (value);                                                                                     \
		assert_null(parse(sizeof(kit)));                                                                       \
		assert_string_not_equal(error, "");                                                                    \
	} while (0)

static void fields_out_of_bounds(void **state)
{
	REFUSED(kit.job.number, JOB_VERSION + 1);
	REFUSED(kit.job.bytes, kit.job.bytes + 1);
	REFUSED(kit.job.ports, 0);
	REFUSED(kit.job.ports, JOB_PORTS + 1);
	REFUSED(kit.job.streams, JOB_STREAMS + 1);
	REFUSED(kit.job.cpus, JOB_CPUS + 1);
	REFUSED(kit.job.gateway_cpu, 0x10000); // cut to 16 bits it would be CPU 0
	REFUSED(kit.job.drain, NAN);
	REFUSED(kit.job.link_wait, INFINITY);
	REFUSED(kit.job.steal_max, 1.5);
	REFUSED(kit.port[0].mtu, FRAME_MAX + 1);
	REFUSED(kit.port[0].descriptors, 1);
	REFUSED(kit.port[0].queues, 0);
	REFUSED(kit.port[1].addresses, JOB_ADDRESSES + 1);
	REFUSED(kit.stream[0].job.port, 2);
	REFUSED(kit.stream[0].job.sink, 2);
	REFUSED(kit.stream[1].job.answers, 2);
	REFUSED(kit.stream[1].job.answers, 1);
	REFUSED(kit.stream[1].job.flows, 5);
	REFUSED(kit.stream[1].job.share, 1);
	REFUSED(kit.stream[0].job.share, 0);
	REFUSED(kit.stream[0].job.own_pps, NAN);
	REFUSED(kit.stream[0].job.own_pps, -1);
	REFUSED(kit.stream[0].job.flows, 0);
	REFUSED(kit.stream[0].job.flows, TAG_FLOWS + 1);
	REFUSED(kit.stream[0].job.block, 0);
	REFUSED(kit.stream[0].job.order, 3);
	REFUSED(kit.stream[0].job.zipf, 0);
	REFUSED(kit.stream[0].job.sizes, JOB_SIZES + 1);
	REFUSED(kit.stream[0].job.size[0].bytes, 63);
	REFUSED(kit.stream[0].job.size[0].weight, 0);
	REFUSED(kit.stream[0].stack[0].layers, JOB_LAYERS + 1);
	REFUSED(kit.stream[0].stack[0].layer[0].kind, LAYER_KINDS);
	REFUSED(kit.stream[0].stack[1].layer[0].extensions, JOB_EXTENSIONS + 1);
	REFUSED(kit.stream[0].stack[1].layer[0].extension[3].length, 31);
	REFUSED(kit.stream[0].stack[1].layer[0].field[0].word, 4);
	REFUSED(kit.stream[0].stack[1].layer[0].field[0].each, 0);
	work_kit(&kit);
	memset(kit.port[0].device, 'x', sizeof(kit.port[0].device));
	assert_null(parse(sizeof(kit)));
}

static void fault_is(uint32_t at, enum job_part part, uint32_t line, const char *text)
{
	assert_true(at < faults.n);
	assert_int_equal(faults.fault[at].part, part);
	assert_int_equal(faults.fault[at].line, line);
	assert_string_equal(faults.fault[at].text, text);
}

static void stacks_and_sizes_that_cannot_be(void **state)
{
	work_kit(&kit);
	kit_value(&kit.stream[0].stack[0].layer[0], "source")->given = false;
	kit_any(&kit.stream[1].stack[0].layer[2], "source");
	work_free(parse(sizeof(kit)));
	fault_is(0, JOB_PART_SEND, 10, "ethernet.source: must be given");
	fault_is(1, JOB_PART_SEND, 30, "udp.source: `any` is for what is received");
	assert_int_equal(faults.n, 2);

	work_kit(&kit);
	kit.stream[0].stack[0].layer[2].kind = LAYER_TCP;
	kit.stream[0].job.size[0].bytes = 64;
	kit.stream[1].job.size[0].bytes = 1519;
	work_free(parse(sizeof(kit)));
	fault_is(0, JOB_PART_SIZE, 0, "64 bytes are too few: headers 54, the tester's tag 16 and FCS 4 take 74");
	fault_is(1, JOB_PART_SIZE, 0, "a frame sent with 1519 bytes needs an mtu of 1501, and port \"b\" has 1500");
	fault_is(2, JOB_PART_SIZE, 0, "a frame received with 1519 bytes needs an mtu of 1501, and port \"a\" has 1500");

	work_kit(&kit);
	kit.port[0].mtu = kit.port[1].mtu = kit.stream[0].job.size[0].bytes = FRAME_MAX;
	kit.stream[0].stack[1].layer[2].kind = LAYER_TCP;
	work_free(parse(sizeof(kit)));
	fault_is(0, JOB_PART_SIZE, 0,
		"a frame sent with 9216 bytes would arrive with 9228, and at most 9216 are possible");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_job),
		cmocka_unit_test(every_byte_too_few_or_too_many),
		cmocka_unit_test(fields_out_of_bounds),
		cmocka_unit_test(stacks_and_sizes_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
