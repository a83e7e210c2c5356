// SPDX-License-Identifier: Apache-2.0
// isthmus-traffic-engine: takes a job from isthmus-traffic, opens its ports and runs the requested trials.
#include "traffic/engine/machine.h"
#include "traffic/engine/tester.h"
#include <errno.h>
#include <rte_eal.h>
#include <rte_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_INCOMPLETE = 2 };

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

// Returns 0, or -1 when the office is gone.
static int take(void *to, size_t n)
{
	for (uint8_t *at = to; n > 0;) {
		ssize_t got = read(JOB_DESCRIPTOR, at, n);

		if (got == 0 || (got < 0 && errno != EINTR))
			return -1;
		if (got > 0) {
			at += got;
			n -= (size_t)got;
		}
	}
	return 0;
}

static int give(const void *from, size_t n)
{
	for (const uint8_t *at = from; n > 0;) {
		ssize_t put = write(JOB_DESCRIPTOR, at, n);

		if (put < 0 && errno != EINTR)
			return -1;
		if (put > 0) {
			at += put;
			n -= (size_t)put;
		}
	}
	return 0;
}

// An answer of two parts; `more` may be empty.
static int answer(enum job_answer kind, const void *body, size_t n, const void *more, size_t m)
{
	const struct job_head head = {.kind = kind, .bytes = (uint32_t)(n + m)};

	return give(&head, sizeof(head)) | give(body, n) | give(more, m);
}

static int failed(const char *sentence)
{
	answer(JOB_ANSWER_FAILED, sentence, strlen(sentence), NULL, 0);
	return EXIT_INCOMPLETE;
}

// Returns the job, or NULL after an answer that says why not.
static struct work *read_work(struct work_faults *faults)
{
	char error[JOB_SENTENCE];
	struct job_head head;
	struct work *w = NULL;

	if (take(&head, sizeof(head)) != 0)
		return NULL;
	uint8_t *bytes = head.bytes <= WORK_BYTES ? malloc(head.bytes + 1) : NULL;

	if (bytes == NULL)
		failed("the job is too large");
	else if (take(bytes, head.bytes) == 0 &&
		 (w = work_parse(bytes, head.bytes, faults, error, sizeof(error))) == NULL)
		failed(error);
	free(bytes);
	return w;
}

static int hello(const struct work_faults *faults)
{
	struct job_hello h = {.faults = faults->n};

	snprintf(h.dpdk, sizeof(h.dpdk), "%s", rte_version());
	machine_describe(h.cpu, sizeof(h.cpu), h.kernel, sizeof(h.kernel));
	return answer(JOB_ANSWER_HELLO, &h, sizeof(h), faults->fault, faults->n * sizeof(faults->fault[0]));
}

// Answers requests until the office has enough. Returns the exit status.
static int serve(struct tester *t, const struct work *w, struct stream_count *count)
{
	char error[JOB_SENTENCE] = "";
	struct job_request asked;
	struct trial trial = {.lost = 0};

	while (take(&asked, sizeof(asked)) == 0) {
		if (asked.kind == JOB_ASK_END) {
			const struct job_end end = {
				.stray = tester_end(t, trial.lost), .clock_ghz = machine_clock_ghz(tester_tsc_hz(t))};

			answer(JOB_ANSWER_END, &end, sizeof(end), NULL, 0);
		} else if (!(asked.rate >= 0) || !(asked.seconds > 0 && asked.seconds <= 86400)) {
			return failed("a trial out of bounds");
		} else if (tester_trial(t, &asked, &trial, count, error, sizeof(error)) != 0) {
			return failed(error);
		} else {
			answer(JOB_ANSWER_TRIAL, &trial, sizeof(trial), count, w->job.streams * sizeof(*count));
		}
	}
	return 0;
}

static int run(const struct work *w, int argc, char **argv)
{
	char error[JOB_SENTENCE] = "";
	struct job_ready ready = {.pad = 0};
	struct stream_count *count = calloc(w->job.streams, sizeof(*count));
	struct tester *t = NULL;
	int status;

	catch_signals();
	if (count != NULL)
		t = tester_open(w, argc, argv, &stopped, error, sizeof(error));
	else
		snprintf(error, sizeof(error), "no memory for the counters of a trial");
	if (t == NULL || tester_wait_links(t, error, sizeof(error)) != 0) {
		status = failed(error);
	} else {
		ready.tsc_hz = tester_tsc_hz(t);
		ready.huge_pages = rte_eal_has_hugepages() != 0;
		tester_speeds(t, ready.speed_mbps);
		answer(JOB_ANSWER_READY, &ready, sizeof(ready), NULL, 0);
		status = serve(t, w, count);
	}
	if (t != NULL)
		tester_close(t);
	free(count);
	return status;
}

// The arguments are DPDK's.
int main(int argc, char **argv)
{
	struct work_faults *faults = calloc(1, sizeof(*faults));
	struct work *w = NULL;
	int status = EXIT_INCOMPLETE;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		status = printf("isthmus-traffic-engine %s, %s\n", ISTHMUS_VERSION, rte_version()) < 0;
	else if (faults == NULL || (w = read_work(faults)) == NULL)
		fprintf(stderr, "isthmus-traffic-engine takes its job from isthmus-traffic\n");
	else if (hello(faults) == 0 && faults->n == 0)
		status = w->job.check ? 0 : run(w, argc - 1, argv + 1);
	work_free(w);
	free(faults);
	return status;
}
