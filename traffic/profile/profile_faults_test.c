// SPDX-License-Identifier: Apache-2.0
// Faults of a profile and what is written about them: those of testdata/profile_faults.txt, one edit of a good file
// each, and those of a file as a whole.
#include "traffic/profile/profile.h"
#include "traffic/profile/yaml_file.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE "traffic/profile/testdata/profile_base.yaml"
#define CASES "traffic/profile/testdata/profile_faults.txt"
#define ROOM 16384

// Reads a text. Returns what was written about it, which the caller frees; "" when it is good.
static char *faults_of(const char *text, size_t n)
{
	char *printed = NULL;
	size_t bytes = 0;
	FILE *errors = open_memstream(&printed, &bytes);

	assert_non_null(errors);
	struct profile *p = profile_parse("x.yaml", text, n, errors);
	fclose(errors);
	assert_int_equal(p == NULL, bytes > 0);
	profile_free(p);
	return printed;
}

static void faults_are(const char *text, size_t n, const char *want)
{
	char *printed = faults_of(text, n);

	if (strcmp(printed, want) != 0)
		fail_msg("of\n%.*s\nwanted\n%sbut got\n%s", (int)(n < 1500 ? n : 1500), text, want, printed);
	free(printed);
}

// Edits of a good file.

static char *base_text(void)
{
	size_t n;
	char *text = yaml_file_text(BASE, &n, stderr);

	assert_non_null(text);
	text[n] = 0; // there is room: the file is smaller than the largest
	return text;
}

// The text behind "- ", "+ " or "! ", with \n as new lines.
static void line_text(const char *line, char *to)
{
	const char *p = line + (line[1] == ' ' ? 2 : 1);

	for (; *p != 0 && *p != '\n'; p++) {
		if (p[0] == '\\' && p[1] == 'n') {
			*to++ = '\n';
			p++;
		} else {
			*to++ = *p;
		}
	}
	*to = 0;
}

// Puts `to` in the place of the first `from`.
static void edit(char text[ROOM], const char *from, const char *to)
{
	char *at = strstr(text, from), *rest;

	if (at == NULL)
		fail_msg("the good file has no \"%s\"", from);
	rest = strdup(at + strlen(from));
	assert_non_null(rest);
	size_t room = ROOM - (size_t)(at - text);
	assert_true((size_t)snprintf(at, room, "%s%s", to, rest) < room);
	free(rest);
}

static void test_base(void **state)
{
	char *text = base_text();

	faults_are(text, strlen(text), "");
	free(text);
}

static void test_edits(void **state)
{
	char *base = base_text(), *line = NULL, text[ROOM], from[1024] = "", to[1024], want[ROOM] = "";
	FILE *cases = fopen(CASES, "re");
	uint32_t done = 0;
	size_t n = 0;

	assert_non_null(cases);
	assert_true(strlen(base) < ROOM);
	memcpy(text, base, strlen(base) + 1);
	for (bool more = true; more;) {
		more = getline(&line, &n, cases) > 0;
		if (more && line[0] == '-') {
			line_text(line, from);
		} else if (more && line[0] == '+') {
			line_text(line, to);
			edit(text, from, to);
		} else if (more && line[0] == '!') {
			size_t at = strlen(want);

			line_text(line, to);
			snprintf(want + at, sizeof(want) - at, "x.yaml:%s\n", to);
		} else if (from[0] != 0) { // the end of a block
			assert_string_not_equal(want, "");
			faults_are(text, strlen(text), want);
			done++;
			memcpy(text, base, strlen(base) + 1);
			from[0] = want[0] = 0;
		}
	}
	assert_true(done > 180);
	free(line);
	free(base);
	fclose(cases);
}

// The file as a whole.

static void test_texts(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", "x.yaml:1: the file is empty\n"},
		{"# nothing\n", "x.yaml:1: the file is empty\n"},
		{"--- \n", "x.yaml:1: the file is empty\n"},
		{"- a\n- b\n", "x.yaml:1: must be a mapping (key: value)\n"},
		{"name: a\nports: {\n",
			"x.yaml:3: no YAML: did not find expected node content while parsing a flow node\n"},
		{"name: a\n b: c\n", "x.yaml:2: no YAML: mapping values are not allowed in this context\n"},
		{"a: 1\n---\nb: 2\n", "x.yaml:2: a second document; a profile has one\n"},
		{"a: 1\nb: \"\\0\"\n", "x.yaml:2: a text has a NUL byte\n"},
		{"a: 1\nb: \xff\n", "x.yaml:2: no YAML: invalid leading UTF-8 octet\n"},
		{"a: *b\n", "x.yaml:1: no YAML: found undefined alias\n"},
		{"a: &a [*a]\n",
			"x.yaml:1: an alias stands within what it stands for, or aliases are more than 16 deep\n"},
		{"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n",
			"x.yaml:1: mappings and lists stand in each other more than 16 deep\n"},
		{"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
		 "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
		 "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
			"x.yaml:1: more than 65536 values when aliases are written out\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		faults_are(cases[i].text, strlen(cases[i].text), cases[i].want);
}

// A text made of a beginning and `n` times the same.
static char *repeated(const char *begin, const char *part, uint32_t n, size_t *length)
{
	size_t b = strlen(begin), one = strlen(part);
	char *text = malloc(b + n * one + 1);

	assert_non_null(text);
	memcpy(text, begin, b + 1);
	for (uint32_t i = 0; i < n; i++)
		memcpy(text + b + i * one, part, one + 1);
	*length = b + n * one;
	return text;
}

static void test_large(void **state)
{
	static const struct {
		const char *begin, *part;
		uint32_t n;
		const char *want;
	} cases[] = {
		{"a: 1\nb:\n", "- 1\n", 65536, "x.yaml:65534: more than 65536 values\n"},
		{"a:\n", "- &x 1\n", 257, "x.yaml:258: more than 256 anchors\n"},
		{"", "#\n", 600000, "x.yaml:1: is larger than 1 MB\n"},
		{"name: a\nports: [{name: r, driver: net_ring}]\nstreams:\n", "- {}\n", 257,
			"x.yaml:4: streams: must be a list of 1 to 256 streams\n"},
		{"name: a\nstreams: []\nports:\n", "- {}\n", 97,
			"x.yaml:2: streams: must be a list of 1 to 256 streams\nx.yaml:4: ports: must be a list of 1 "
			"to 96 ports\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n;
		char *text = repeated(cases[i].begin, cases[i].part, cases[i].n, &n);

		faults_are(text, n, cases[i].want);
		free(text);
	}
}

// More faults than are written out are counted.
static void test_many(void **state)
{
	size_t n;
	char *text = repeated("name: a\nstreams: [{}]\nports: []\n", "x: 1\n", 60, &n), *printed = faults_of(text, n);
	uint32_t lines = 0;

	for (const char *p = printed; *p != 0; p = strchr(p, '\n') + 1)
		lines++;
	assert_int_equal(lines, YAML_FAULTS + 1);
	assert_non_null(strstr(printed, "x.yaml: and 16 more faults\n"));
	free(printed);
	free(text);
}

// Quotations are short and carry no control characters to a terminal.
static void test_quotation(void **state)
{
	static const char text[] =
		"name: \"a\\e[31m0123456789012345678901234567890123456789012345678901234567890123456789\"\n"
		"ports: [{name: r, driver: net_ring}]\nstreams: []\n";

	faults_are(text, strlen(text),
		"x.yaml:1: name: \"a?[31m01234567890123456789012345678901234567...\" must be a name of 1 to 31 "
		"letters, digits, "
		"and . _ : -\nx.yaml:3: streams: must be a list of 1 to 256 streams\n");
}

// The sum of flows is bounded, too.
static void test_flows(void **state)
{
	char text[ROOM] = "name: a\nports: [{name: r, driver: net_ring}]\nrun: {rate: 1}\nstreams:\n";

	for (int i = 0; i < 5; i++) {
		if (i == 4)
			faults_are(text, strlen(text), "");
		size_t at = strlen(text);
		snprintf(text + at, ROOM - at,
			"- {name: s%d, port: r, sink: r, flows: 16777216, size: 64, send: [{ethernet: {destination: "
			"02:00:00:00:00:01, source: 02:00:00:00:00:02}}]}\n",
			i);
	}
	faults_are(text, strlen(text),
		"x.yaml:5: streams: the streams have 83886080 flows together, and at most 67108864 are possible\n");
}

static void test_load(void **state)
{
	char *printed = NULL, folder[] = "/tmp/profile-test-XXXXXX", path[64], want[200];
	size_t bytes;
	FILE *errors = open_memstream(&printed, &bytes);

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/none.yaml", folder);
	snprintf(want, sizeof(want), "%s:1: No such file or directory\n%s:1: is a folder, not a file\n", path, folder);
	assert_null(profile_load(path, errors));
	assert_null(profile_load(folder, errors));
	fclose(errors);
	assert_string_equal(printed, want);
	free(printed);
	rmdir(folder);

	struct profile *p = profile_load(BASE, stderr);
	assert_non_null(p);
	assert_string_equal(p->file, BASE);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base),
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_quotation),
		cmocka_unit_test(test_flows),
		cmocka_unit_test(test_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
