// SPDX-License-Identifier: Apache-2.0
// isthmus-traffic: reads a profile, runs it against a gateway, tells what came of it as text, JSON and events.
#include "traffic/profile/units.h"
#include "traffic/run/run.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <rte_eal.h>
#include <rte_version.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_INCOMPLETE = 2, EXIT_INTERRUPTED = 130 };

struct options {
	const char *profile, *json, *capture;
	bool events, paced, check, no_huge, mode_given, help, version;
	enum run_mode mode;
	struct rate rate; // RATE_NONE: not given
	double seconds; // 0: not given
	int eal_argc;
	char **eal_argv;
};

static volatile sig_atomic_t stopped; // by which signal; 0: none

static void on_signal(int signal)
{
	stopped = signal;
}

// The second signal of a kind ends the program at once.
static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static int usage(void)
{
	printf("usage: isthmus-traffic [OPTIONS] PROFILE.yaml [-- EAL OPTIONS]\n"
	       "  --check                    only read and check the profile\n"
	       "  --mode fixed|search|steps  instead of the profile's\n"
	       "  --rate RATE                100kpps, 1.5Mpps, 10Gbit, max; means --mode fixed unless that is given\n"
	       "  --seconds SECONDS          of a fixed trial or a step\n"
	       "  --json FILE                result as JSON; -: standard output, and the text goes to standard error\n"
	       "  --events                   a line of JSON on standard output as each trial begins and ends;\n"
	       "                             the text goes to standard error\n"
	       "  --paced                    with --events: each trial waits for a line on standard input\n"
	       "  --capture FILE             a sample of what arrives, as pcap\n"
	       "  --no-huge                  without huge pages\n"
	       "  --version, --help\n"
	       "exit status: 0 good; 1 something was wrong or lost, or an expectation failed; 2 not complete, or a "
	       "bad profile;\n"
	       "130 interrupted (what was measured is kept)\n");
	return 0;
}

static int parse_mode(const char *word, struct options *o)
{
	static const char *const modes[] = {[RUN_FIXED] = "fixed", [RUN_SEARCH] = "search", [RUN_STEPS] = "steps"};

	for (uint32_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(word, modes[i]) == 0) {
			o->mode = (enum run_mode)i;
			o->mode_given = true;
			return 0;
		}
	}
	fprintf(stderr, "--mode %s: must be fixed, search or steps\n", word);
	return -1;
}

static int parse_option(int key, const char *value, struct options *o)
{
	switch (key) {
	case 'j':
		o->json = value;
		return 0;
	case 'C':
		o->capture = value;
		return 0;
	case 'e':
		o->events = true;
		return 0;
	case 'p':
		o->paced = true;
		return 0;
	case 'c':
		o->check = true;
		return 0;
	case 'n':
		o->no_huge = true;
		return 0;
	case 'm':
		return parse_mode(value, o);
	case 'v':
		o->version = true;
		return 0;
	case 'h':
		o->help = true;
		return 0;
	case 'r':
		if (rate_parse(value, &o->rate) == 0 && o->rate.unit != RATE_PART)
			return 0;
		fprintf(stderr, "--rate %s: must be a rate like 100kpps, 1.5Mpps, 10Gbit or max\n", value);
		return -1;
	case 's':
		if (seconds_parse(value, &o->seconds) == 0 && o->seconds >= 0.01 && o->seconds <= 86400)
			return 0;
		fprintf(stderr, "--seconds %s: must be from 0.01 to 86400\n", value);
		return -1;
	default:
		return -1; // getopt has told why
	}
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {{"json", 1, NULL, 'j'}, {"events", 0, NULL, 'e'}, {"paced", 0, NULL, 'p'},
		{"check", 0, NULL, 'c'}, {"rate", 1, NULL, 'r'}, {"seconds", 1, NULL, 's'}, {"mode", 1, NULL, 'm'},
		{"capture", 1, NULL, 'C'}, {"no-huge", 0, NULL, 'n'}, {"version", 0, NULL, 'v'}, {"help", 0, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	int key, own = 1;

	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	if (own < argc) {
		o->eal_argc = argc - own - 1;
		o->eal_argv = argv + own + 1;
	}
	while ((key = getopt_long(own, argv, "h", names, NULL)) != -1)
		if (parse_option(key, optarg, o) != 0)
			return -1;
	if (o->help || o->version)
		return 0;
	if (optind != own - 1) {
		fprintf(stderr, optind == own ? "no profile is given\n" : "more than one profile is given\n");
		return -1;
	}
	o->profile = argv[optind];
	if (o->paced && !o->events) {
		fprintf(stderr, "--paced needs --events\n");
		return -1;
	}
	if (o->events && o->json && strcmp(o->json, "-") == 0) {
		fprintf(stderr, "--events and --json - both need standard output\n");
		return -1;
	}
	return 0;
}

// Options override the file. Returns 0, or -1 after a sentence.
static int apply(const struct options *o, struct profile *p)
{
	char error[TEXT_BYTES];
	const char *key = "";

	if (o->mode_given)
		p->run.mode = o->mode;
	if (o->rate.unit != RATE_NONE) {
		p->run.rate = o->rate;
		if (!o->mode_given)
			p->run.mode = RUN_FIXED;
	}
	if (o->seconds > 0)
		p->run.seconds = o->seconds;
	if (o->no_huge)
		p->huge_pages = false;
	if (o->capture)
		snprintf(p->capture.file, sizeof(p->capture.file), "%s", o->capture);
	if (profile_check_run(p, &key, error, sizeof(error)) == 0)
		return 0;
	fprintf(stderr, "%s, with the options given: run.%s: %s\n", p->file, key, error);
	return -1;
}

struct session {
	const struct options *o;
	struct profile *p;
	struct tester *tester;
	double tsc_hz;
	uint32_t speed_mbps[PROFILE_PORTS];
	FILE *text;
};

// Until a line came on standard input, its end, or a signal.
static void wait_for_line(void)
{
	char c = 0;

	while (c != '\n' && read(STDIN_FILENO, &c, 1) == 1)
		;
}

static void on_progress(
	void *arg, enum trial_purpose why, const struct trial_request *asked, const struct run_trial *ended)
{
	const struct session *s = arg;

	if (s->o->events) {
		result_event(stdout, s->p, why, asked, ended, s->tsc_hz);
		if (s->o->paced && !ended)
			wait_for_line();
	} else if (ended)
		fprintf(stderr, "%-8s %9.4f Mpps offered for %.3g s: lost %" PRIu64 " of %" PRIu64 "%s%s\n",
			trial_purpose_name[why], ended->trial.offered_pps / 1e6, ended->trial.seconds,
			ended->trial.lost, ended->trial.sent, ended->trial.wrong ? ", wrong contents" : "",
			ended->used                ? ""
			: ended->trial.interrupted ? ", interrupted"
						   : ", disturbed: once more");
}

static int run_trial(void *arg, const struct trial_request *asked, struct trial *result, char *error, size_t n)
{
	return tester_trial(((struct session *)arg)->tester, asked, result, error, n);
}

static void start(struct session *s, struct run_result *r)
{
	char error[SENTENCE_BYTES] = "";

	s->tester = tester_open(s->p, s->o->eal_argc, s->o->eal_argv, &stopped, error, sizeof(error));
	if (!s->tester) {
		snprintf(r->error, sizeof(r->error), "%s", error);
		r->interrupted = stopped != 0;
		return;
	}
	s->tsc_hz = tester_tsc_hz(s->tester);
	s->p->huge_pages = rte_eal_has_hugepages() != 0;
	if (tester_wait_links(s->tester, error, sizeof(error)) != 0) {
		snprintf(r->error, sizeof(r->error), "%s", error);
		r->interrupted = stopped != 0;
		return;
	}
	tester_speeds(s->tester, s->speed_mbps);
	r->speed_mbps = s->speed_mbps;
	if (s->o->events) {
		puts("{\"event\":\"ready\"}");
		fflush(stdout);
	}
	run_profile(s->p, &(struct trial_source){.trial = run_trial, .arg = s, .tsc_hz = s->tsc_hz}, on_progress, s, r);
	if (r->trials > 0)
		tester_end(s->tester, &r->trial[r->trials - 1].trial);
}

static double now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Tells the result on every way asked for. Returns the exit status.
static int tell(const struct session *s, const struct run_result *r)
{
	char why[SENTENCE_BYTES];
	int status = r->interrupted ? EXIT_INTERRUPTED : result_status(s->p, r, s->tsc_hz, why, sizeof(why));

	result_print(s->text, s->p, r, s->tsc_hz);
	fflush(s->text);
	if (s->o->json && result_write_json(s->o->json, s->p, r, s->tsc_hz) != 0) {
		fprintf(stderr, "%s: the result cannot be written: %s\n", s->o->json, strerror(errno));
		status = EXIT_INCOMPLETE;
	}
	if (s->o->events) {
		printf("{\"event\":\"done\",\"complete\":%s,\"status\":%d}\n", r->complete ? "true" : "false", status);
		fflush(stdout);
	}
	return status;
}

static int run(const struct options *o, struct profile *p, int argc, char **argv)
{
	bool stdout_taken = o->events || (o->json && strcmp(o->json, "-") == 0);
	struct session s = {.o = o, .p = p, .text = stdout_taken ? stderr : stdout};
	struct run_result *r = calloc(1, sizeof(*r)); // too large for the stack
	double begin = now_seconds();
	int status;

	if (!r)
		return EXIT_INCOMPLETE;
	r->argc = argc;
	r->argv = argv;
	r->started = time(NULL);
	snprintf(r->dpdk, sizeof(r->dpdk), "%s", rte_version());
	catch_signals();
	start(&s, r);
	r->seconds = now_seconds() - begin;
	status = tell(&s, r);
	if (s.tester)
		tester_close(s.tester);
	run_free(r);
	free(r);
	return status;
}

// `command`: argv as it was given, because getopt sorts it.
static int work(int argc, char **argv, char **command)
{
	struct options o = {0};
	struct profile *p;
	int status;

	if (parse(argc, argv, &o) != 0) {
		fprintf(stderr, "isthmus-traffic --help lists the options\n");
		return EXIT_INCOMPLETE;
	}
	if (o.help)
		return usage();
	if (o.version) {
		printf("isthmus-traffic %s, %s\n", ISTHMUS_VERSION, rte_version());
		return 0;
	}
	p = profile_load(o.profile, stderr);
	if (!p)
		return EXIT_INCOMPLETE;
	if (apply(&o, p) != 0)
		status = EXIT_INCOMPLETE;
	else if (o.check)
		status = printf("%s: good, %u ports, %u streams\n", o.profile, p->ports, p->streams) < 0;
	else
		status = run(&o, p, argc, command);
	profile_free(p);
	return status;
}

int main(int argc, char **argv)
{
	char **command = calloc((size_t)argc + 1, sizeof(*command));
	int status;

	if (!command)
		return EXIT_INCOMPLETE;
	memcpy(command, argv, (size_t)argc * sizeof(*command));
	status = work(argc, argv, command);
	free(command);
	return status;
}
