// SPDX-License-Identifier: Apache-2.0
// What a good profile becomes: numbers with units, presets, values, streams; and that docs/traffic.md and the examples
// are true.
#include "traffic/profile/profile.h"
#include "traffic/profile/profile_read.h"
#include "traffic/profile/units.h"
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DOCUMENT "docs/traffic.md"

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-12 * fabs(b);
}

static void test_rates(void **state)
{
	static const struct {
		const char *text;
		enum rate_unit unit;
		double value;
	} good[] = {{"100kpps", RATE_PPS, 100e3}, {"1.5Mpps", RATE_PPS, 1.5e6}, {"1.5 Mpps", RATE_PPS, 1.5e6},
		{"7", RATE_PPS, 7}, {"7pps", RATE_PPS, 7}, {"1e+06", RATE_PPS, 1e6}, {".5kpps", RATE_PPS, 500},
		{"64kbit", RATE_BIT, 64e3}, {"10Mbit", RATE_BIT, 10e6}, {"2.5Gbit", RATE_BIT, 2.5e9},
		{"9bit", RATE_BIT, 9}, {"50%", RATE_PART, 0.5}, {"0.001%", RATE_PART, 1e-5}, {"max", RATE_MAX, 0},
		{"200Mpps", RATE_PPS, 200e6}, {"400Gbit", RATE_BIT, 400e9}, {"1000%", RATE_PART, 10}};
	static const char *const bad[] = {"", "x", "0", "0bit", "0%", "-1", "1k", "1mpps", "1 gbit", "1.2.3", "1e",
		"0x10", "nan", "inf", "1e999", "maximum", "%", ".", "200.1Mpps", "401Gbit", "1001%", "1 2",
		"11111111111111111111111111111111111111111111"};
	struct rate r;

	for (size_t i = 0; i < KEYS(good); i++) {
		assert_int_equal(rate_parse(good[i].text, &r), 0);
		assert_int_equal(r.unit, good[i].unit);
		assert_true(near(r.value, good[i].value));
	}
	for (size_t i = 0; i < KEYS(bad); i++) {
		r = (struct rate){.unit = RATE_BIT, .value = 5};
		if (rate_parse(bad[i], &r) == 0)
			fail_msg("\"%s\" was taken for a rate", bad[i]);
		assert_int_equal(r.unit, RATE_BIT);
	}
}

static void test_units(void **state)
{
	uint64_t whole = 1;
	double d = 0;
	uint8_t mac[6] = {0};
	struct profile_address a;

	assert_int_equal(whole_parse("0xfF", &whole), 0);
	assert_int_equal(whole, 255);
	assert_int_equal(whole_parse("18446744073709551615", &whole), 0);
	assert_true(whole == UINT64_MAX);
	for (const char **bad = (const char *[]){"", "0x", "-1", "1.5", "1 ", "18446744073709551616", "0xg", NULL};
		*bad; bad++)
		assert_int_equal(whole_parse(*bad, &whole), -1);
	assert_int_equal(seconds_parse("500ms", &d), 0);
	assert_true(near(d, 0.5));
	assert_int_equal(seconds_parse("100us", &d), 0);
	assert_true(near(d, 1e-4));
	assert_int_equal(seconds_parse("2s", &d), 0);
	assert_true(near(d, 2));
	assert_int_equal(seconds_parse("2m", &d), -1);
	assert_int_equal(part_parse("0.5", &d), 0);
	assert_true(near(d, 0.5));
	assert_int_equal(part_parse("5%", &d), 0);
	assert_true(near(d, 0.05));
	assert_int_equal(part_parse("5ppm", &d), -1);
	assert_int_equal(mac_parse("02:00:5e:Ab:00:ff", mac), 0);
	assert_memory_equal(mac, "\x02\x00\x5e\xab\x00\xff", 6);
	for (const char **bad = (const char *[]){"", "02", "02:00:00:00:00:0", "02:00:00:00:00:001",
		     "02-00-00-00-00-01", "02:00:00:00:00:0g", "02:00:00:00:00:01:02", NULL};
		*bad; bad++)
		assert_int_equal(mac_parse(*bad, mac), -1);
	assert_int_equal(address_parse("192.0.2.1", &a), 0);
	assert_int_equal(a.version, 4);
	assert_memory_equal(a.bytes, "\xc0\x00\x02\x01\x00", 5);
	assert_int_equal(address_parse("fd00::1%eth0", &a), -1);
}

static struct profile *good(const char *text)
{
	struct profile *p = profile_parse("test.yaml", text, strlen(text), stderr);

	assert_non_null(p);
	return p;
}

#define PORTS "ports: [{name: a, driver: net_ring}]\n"
#define FRAME "[{ethernet: {destination: 02:00:00:00:00:01, source: 02:00:00:00:00:02}}]"

static void test_presets(void **state)
{
	struct profile *p = good("name: x\n" PORTS "streams: [{name: s, port: a, sink: a, size: 64, send: " FRAME
				 "}]\nrun: {rate: 1kpps}\n");
	const struct profile_stream *s = p->stream;

	assert_true(p->huge_pages && p->memory_mb == 1024 && p->cpus == 0 && p->capture.file[0] == 0);
	assert_true(p->capture.every == 1024 && p->capture.count == 1000);
	assert_true(p->port[0].mtu == 1500 && p->port[0].descriptors == 1024 && p->port[0].addresses == 0);
	assert_true(s->answers == -1 && s->rate.unit == RATE_NONE && s->share == 1 && s->flows == 1);
	assert_true(s->order == ORDER_TURN && s->zipf == 1 && s->seed == 1 && s->check_payload == 1);
	assert_true(s->receive_any && !s->expect.given && s->line == 3);
	assert_true(p->run.mode == RUN_FIXED && p->run.seconds == 10 && p->run.warmup == 0.2 && p->run.drain == 0.5);
	assert_true(p->run.link_wait == 10 && p->run.repeats == 3 && p->run.steal_max == 0.001);
	assert_true(p->run.search_min.value == 1000 && p->run.search_max.unit == RATE_NONE && p->run.goals == 1);
	assert_true(p->run.goal[0].loss == 0 && p->run.goal[0].exceed == 0.5 && p->run.goal[0].width == 0.005);
	assert_true(p->run.goal[0].initial_seconds == 0.5 && p->run.goal[0].final_seconds == 1);
	assert_true(p->run.goal[0].sum_seconds == 3 && p->run.confirm_seconds == 2 && p->run.latency_points == 3);
	assert_true(p->run.latency_at[1] == 0.5 && p->run.latency_seconds == 1);
	profile_free(p);
}

static void test_streams(void **state)
{
	struct profile *p =
		good("name: x\ncpus: [3, 0x1]\nports:\n"
		     "  - {name: a, driver: net_memif, device: /x, args: id=0, mtu: 9000, descriptors: 2048}\n"
		     "  - {name: b, driver: pci, device: '0000:01:00.0', mac: 02:00:00:00:00:07, addresses: [10.0.0.1, "
		     "'fd00::1']}\n"
		     "streams:\n"
		     "  - {name: pong, port: b, sink: a, answers: ping, flows: 9, size: 100, send: " FRAME "}\n"
		     "  - {name: ping, port: a, sink: b, rate: 8Mbit, flows: 9, size: 100, send: " FRAME ",\n"
		     "     expect: {rate: 1kpps, layer: l3, tolerance: 2%, loss: 10%, p99_us: 250}}\n"
		     "  - {name: mix, port: a, sink: a, share: 3, order: zipf, zipf: 0.9, seed: 12345678901, "
		     "check_payload: 0,\n"
		     "     size: {64: 7, 594: 4, 1518: 1}, send: " FRAME ", receive: " FRAME "}\n"
		     "  - {name: big, port: a, sink: a, order: random, size: 9000, send: " FRAME "}\n"
		     "run: {mode: steps, rate: 1Mbit, steps: [50%, 2Mbit, 10kpps, max], search: {width: 1%, goals: "
		     "[{loss: 1%},\n"
		     "  {loss: 2%, width: 2%, final: 2}]}, latency: {at: [], seconds: 0}, disturbed: {repeats: 0, "
		     "steal: 1}}\n"
		     "capture: {file: x.pcap, every: 1, count: 2}\n");
	const struct profile_stream *ping = &p->stream[1], *mix = &p->stream[2];

	assert_true(p->cpus == 2 && p->cpu[0] == 3 && p->cpu[1] == 1);
	assert_true(p->port[0].mtu == 9000 && p->port[0].descriptors == 2048 && p->port[1].addresses == 2);
	assert_true(
		p->port[1].mac[5] == 7 && p->port[1].address[1].version == 6 && p->port[1].address[1].bytes[15] == 1);
	assert_true(p->stream[0].answers == 1 && p->stream[0].share == 0 && p->stream[0].port == 1);
	assert_true(
		ping->share == 0 && near(stream_own_pps(ping), 10000) && ping->expect.given && ping->expect.rate_l3);
	assert_true(ping->expect.tolerance == 0.02 && ping->expect.loss_max == 0.1 && ping->expect.p99_us_max == 250);
	assert_true(
		mix->order == ORDER_ZIPF && mix->zipf == 0.9 && mix->seed == 12345678901 && mix->check_payload == 0);
	assert_true(mix->sizes == 3 && mix->size[2].bytes == 1518 && mix->size[1].weight == 4 && !mix->receive_any);
	assert_true(near(stream_mean_bytes(mix), (64 * 7 + 594 * 4 + 1518) / 12.0));
	assert_true(stream_own_pps(mix) == 0 && p->stream[3].share == 1);
	// Rates of the run: 1 Mbit/s of frames that are (3 mix + 9000) / 4 bytes on average.
	double pps = 1e6 / 8 / ((3 * stream_mean_bytes(mix) + 9000) / 4);
	assert_true(near(profile_pps(p, &p->run.rate), pps) && near(profile_pps(p, &p->run.step[0]), pps / 2));
	assert_true(near(profile_pps(p, &p->run.step[1]), 2 * pps) && isinf(profile_pps(p, &p->run.step[3])));
	assert_true(p->run.seconds == 1 && p->run.steps == 4 && p->run.goals == 2 && p->run.latency_points == 0);
	assert_true(p->run.goal[0].width == 0.01 && p->run.goal[1].width == 0.02 && p->run.goal[1].final_seconds == 2);
	assert_true(p->run.repeats == 0 && p->run.steal_max == 1 && p->capture.every == 1 && p->capture.count == 2);
	profile_free(p);
}

// One stream's layers with values of every form.
static void test_values(void **state)
{
	struct profile *p =
		good("name: x\n" PORTS "streams:\n- name: s\n  port: a\n  sink: a\n  size: 300\n  flows: 256\n  send:\n"
		     "  - ethernet: {destination: 02:00:00:00:00:01, source: {base: 02:00:00:00:00:80, step: 2}}\n"
		     "  - ipv6: {source: {base: \"fd00::1\", step: \"0:0:0:1::\", each: 4, count: 3}, destination: "
		     "\"fd00::2\"}\n"
		     "  - udp:\n"
		     "  - gtpu: {teid: {base: 0x10000000}, extensions: [{pdu-session: {type: uplink, qfi: 9}},\n"
		     "           {raw: {type: 0x40, content: '0102a3B4c5d6'}}]}\n"
		     "  - ipv4: {source: {base: 10.0.0.0, each: 4}, destination: 10.1.0.1, ttl: 7}\n"
		     "run: {rate: 1}\n");
	const struct layer *l = p->stream[0].send.stack.layer;
	const struct value *mac = &l[0].field[layer_field(LAYER_ETHERNET, "source")];
	const struct value *v6 = &l[1].field[layer_field(LAYER_IPV6, "source")];
	const struct value *v4 = &l[4].field[layer_field(LAYER_IPV4, "source")];
	const struct value *ttl = &l[4].field[layer_field(LAYER_IPV4, "ttl")];

	assert_int_equal(p->stream[0].send.stack.layers, 5);
	assert_true(l[0].line == 10 && l[4].line == 15);
	assert_memory_equal(mac->bytes, "\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\x80", 16);
	assert_true(mac->given && mac->word == 3 && mac->step == 2 && mac->each == 1 && mac->count == 0);
	assert_true(v6->word == 1 && v6->step == 1 && v6->each == 4 && v6->count == 3 && v6->bytes[0] == 0xfd);
	assert_true(v4->word == 3 && v4->step == 1 && v4->each == 4 && v4->bytes[12] == 10);
	assert_true(ttl->given && ttl->step == 0 && ttl->bytes[15] == 7);
	assert_false(l[2].field[0].given);
	assert_int_equal(l[3].extensions, 2);
	assert_true(l[3].extension[0].type == 0x85 && l[3].extension[0].length == 2);
	assert_memory_equal(l[3].extension[0].content, "\x10\x09", 2);
	assert_true(l[3].extension[1].type == 0x40 && l[3].extension[1].length == 6);
	assert_memory_equal(l[3].extension[1].content, "\x01\x02\xa3\xb4\xc5\xd6", 6);
	profile_free(p);
}

// What the command line changes is looked at again.
static void test_check_run(void **state)
{
	struct profile *p = good("name: x\n" PORTS "streams: [{name: s, port: a, sink: a, size: 64, send: " FRAME
				 "}]\nrun: {rate: 1kpps}\n");
	char error[TEXT_BYTES];
	const char *key;

	p->run.mode = RUN_STEPS;
	assert_int_equal(profile_check_run(p, &key, error, sizeof(error)), -1);
	assert_string_equal(error, "mode steps needs a list of steps");
	assert_string_equal(key, "steps");
	p->run.mode = RUN_SEARCH;
	assert_int_equal(profile_check_run(p, &key, error, sizeof(error)), 0);
	p->run.mode = RUN_FIXED;
	p->run.rate = (struct rate){.unit = RATE_NONE};
	assert_int_equal(profile_check_run(p, &key, error, sizeof(error)), -1);
	assert_string_equal(key, "rate");
	profile_free(p);
}

static void test_examples(void **state)
{
	glob_t found;

	assert_int_equal(glob("traffic/profiles/*.yaml", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 6);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct profile *p = profile_load(found.gl_pathv[i], stderr);

		if (p == NULL)
			fail_msg("%s is not good", found.gl_pathv[i]);
		profile_free(p);
	}
	globfree(&found);
}

static char *document(const char *name)
{
	size_t n;
	char *text = yaml_file_text(name, &n, stderr);

	assert_non_null(text);
	text[n] = 0;
	return text;
}

static void test_document_examples(void **state)
{
	char *text = document(DOCUMENT), *at = text;
	uint32_t blocks = 0;

	while ((at = strstr(at, "\n```yaml\n")) != NULL) {
		char *begin = at + strlen("\n```yaml\n"), *end = strstr(begin, "\n```\n");

		assert_non_null(end);
		struct profile *p = profile_parse(DOCUMENT, begin, (size_t)(end + 1 - begin), stderr);
		if (p == NULL)
			fail_msg("example %u of %s is not good", blocks, DOCUMENT);
		profile_free(p);
		blocks++;
		at = end;
	}
	assert_true(blocks >= 3);
	free(text);
}

// The section "### name" of the document, ended at the next heading; the caller frees it.
static char *section(const char *text, const char *name)
{
	char heading[64];

	snprintf(heading, sizeof(heading), "\n### %s\n", name);
	const char *begin = strstr(text, heading);
	if (begin == NULL)
		fail_msg("%s has no section \"%s\"", DOCUMENT, name);
	begin += strlen(heading);
	const char *end = strstr(begin, "\n#");
	return strndup(begin, end != NULL ? (size_t)(end - begin) : strlen(begin));
}

// Takes the next `word` in backquotes of *text. Returns false at the end.
static bool next_word(const char **text, char *word, size_t n)
{
	const char *begin = strchr(*text, '`'), *end = begin != NULL ? strchr(begin + 1, '`') : NULL;

	if (end == NULL)
		return false;
	snprintf(word, n, "%.*s", (int)(end - begin - 1), begin + 1);
	*text = end + 1;
	return true;
}

// Every key has a row in the table of its section, bold when it must be given, and every row a key.
static void check_table(const char *text, const struct profile_form *form)
{
	char *part = section(text, form->where), row[80];
	uint32_t rows = 0;

	for (uint32_t i = 0; i < form->n; i++) {
		snprintf(
			row, sizeof(row), form->keys[i].required ? "\n| **`%s`** |" : "\n| `%s` |", form->keys[i].name);
		if (strstr(part, row) == NULL)
			fail_msg("%s, \"%s\": no row%s", DOCUMENT, form->where, row);
	}
	for (const char *p = part; (p = strstr(p, "\n| ")) != NULL; p += 3)
		rows += p[3] == '`' || p[3] == '*';
	if (rows != form->n)
		fail_msg("%s, \"%s\": %u rows and %u keys", DOCUMENT, form->where, rows, form->n);
	free(part);
}

static void test_document_keys(void **state)
{
	const struct profile_form *const all[] = {profile_forms, run_forms, stream_forms, layer_forms};
	char *text = document(DOCUMENT);
	uint32_t tables = 0;

	for (uint32_t i = 0; i < KEYS(all); i++)
		for (const struct profile_form *f = all[i]; f->where != NULL; f++, tables++)
			check_table(text, f);
	assert_true(tables >= 14);
	free(text);
}

static void test_document_layers(void **state)
{
	char *text = document(DOCUMENT), *part = section(text, "layers"), want[80], word[40];

	for (int kind = 0; kind < LAYER_KINDS; kind++) {
		const struct layer_form *form = layer_form((enum layer_kind)kind);
		uint32_t words = 0;

		snprintf(want, sizeof(want), "\n| `%s` | ", form->name);
		const char *row = strstr(part, want);
		if (row == NULL)
			fail_msg("%s: no row for layer %s", DOCUMENT, form->name);
		row += strlen(want);
		char *line = strndup(row, strcspn(row, "\n"));
		for (const char *p = line; next_word(&p, word, sizeof(word)); words++)
			if (layer_field((enum layer_kind)kind, word) < 0 &&
				(kind != LAYER_GTPU || strcmp(word, "extensions") != 0))
				fail_msg("%s: layer %s has no field %s", DOCUMENT, form->name, word);
		assert_int_equal(words, form->fields + (kind == LAYER_GTPU));
		free(line);
	}
	free(part);
	free(text);
}

// Every name that follows `before` in a source file stands, with `prefix`, in backquotes in the document.
static void check_names(const char *text, const char *source, const char *before, const char *prefix, uint32_t least)
{
	char *code = document(source), want[80];
	uint32_t names = 0;

	for (const char *p = code; (p = strstr(p, before)) != NULL; names++) {
		p += strlen(before);
		snprintf(want, sizeof(want), "`%s%.*s", prefix, (int)strcspn(p, "\" ,"), p);
		if (strstr(text, want) == NULL)
			fail_msg("%s says nothing of %s`, which is in %s", DOCUMENT, want, source);
	}
	assert_true(names >= least);
	free(code);
}

static void test_document_output(void **state)
{
	char *text = document(DOCUMENT);

	check_names(text, "traffic/run/result_json.c", "json_object_set_new(o, \"", "", 30);
	check_names(text, "traffic/run/result_json.c", "json_object_set_new(goal, \"", "", 8);
	check_names(text, "traffic/run/result_json.c", "json_object_set_new(stream, \"", "", 6);
	check_names(text, "traffic/main.c", "\"  --", "--", 9);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_check_run),
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_document_examples),
		cmocka_unit_test(test_document_keys),
		cmocka_unit_test(test_document_layers),
		cmocka_unit_test(test_document_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
