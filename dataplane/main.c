// SPDX-License-Identifier: Apache-2.0
// isthmus-dp: the data plane process. A control plane configures it (api/isthmus_api.h). It goes on forwarding when the
// control plane goes away.
#include "core/engine.h"
#include "core/log.h"
#include "core/replay.h"
#include "trace/compile.h"
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_SOCKET "/run/isthmus/dp.sock"

static volatile sig_atomic_t stopping;

static void on_signal(int signal)
{
	stopping = signal;
}

static int usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: isthmus-dp [--socket PATH] [--huge auto|yes|no] [--memory MB] [-- EAL OPTIONS]\n"
		"       isthmus-dp replay --state FILE --in PORT=FILE... --out PORT=FILE...\n"
		"       isthmus-dp filter EXPRESSION   prints programs of classic BPF: for frames, for IP packets\n"
		"  --socket PATH  control socket (default " DEFAULT_SOCKET ")\n"
		"  --huge         use huge pages: auto (default) takes them when 256 MB are free\n"
		"  --memory MB    memory without huge pages (default 2048; only what is used becomes resident)\n"
		"  --version\n");
	return status;
}

// The directory of the default socket is ours to make; others must exist.
static void make_directory(const char *path)
{
	if (strcmp(path, DEFAULT_SOCKET) == 0)
		mkdir("/run/isthmus", 0750);
}

static int serve(const char *path, int huge, uint32_t memory, int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};

	engine_mode.threads = 1;
	if (engine_eal_init("isthmus-dp", huge, memory, argc, argv) != 0)
		return 1;
	make_directory(path);
	if (sleeper_open(&control_sleeper) != 0 || socket_open(path) != 0)
		return 1;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	LOG(NOTICE, "%s (%s) listens on %s, %s huge pages\n", ISTHMUS_VERSION, ISTHMUS_LEVEL, path,
		rte_eal_has_hugepages() ? "with" : "without");
	while (!stopping && !engine_failed()) {
		socket_poll(control_rest());
		control_worker.now = worker_time(&control_worker, rte_rdtsc());
		host_path_poll();
		if (engine_get() != NULL)
			control_run_timers();
	}
	if (engine_failed())
		LOG(ERR, "ends without an engine, to be started afresh\n");
	else
		LOG(NOTICE, "stops on signal %d\n", (int)stopping);
	engine_stop_workers();
	socket_close();
	return engine_failed();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"socket", 1, NULL, 's'}, {"huge", 1, NULL, 'H'},
		{"memory", 1, NULL, 'm'}, {"version", 0, NULL, 'v'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
	const char *path = DEFAULT_SOCKET;
	uint32_t memory = 0;
	int huge = -1, k;

	if (argc > 1 && strcmp(argv[1], "replay") == 0)
		return replay_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "filter") == 0)
		return argc == 3 ? filter_main(argv[2]) : usage(2);
	while ((k = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (k == 's')
			path = optarg;
		else if (k == 'm')
			memory = (uint32_t)strtoul(optarg, NULL, 10);
		else if (k == 'H' && strcmp(optarg, "auto") == 0)
			huge = -1;
		else if (k == 'H' && (strcmp(optarg, "yes") == 0 || strcmp(optarg, "no") == 0))
			huge = optarg[0] == 'y';
		else if (k == 'v')
			return puts(ISTHMUS_VERSION " (" ISTHMUS_LEVEL ")") < 0;
		else
			return usage(k == 'h' ? 0 : 2);
	}
	// EAL options follow "--". Any other word is a mistake, for which no server starts.
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0) {
		fprintf(stderr, "isthmus-dp: there is no command \"%s\"\n", argv[optind]);
		return usage(2);
	}
	return serve(path, huge, memory, argc - optind, argv + optind);
}
