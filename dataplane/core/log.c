// SPDX-License-Identifier: Apache-2.0
// One form for all lines of the log: PROGRAM: text, PROGRAM: DPDK: text. DPDK itself would write raw lines, and copy
// each to syslog.
#include "core/log.h"
#include "share/share.h"
#include <dlfcn.h>
#include <errno.h>
#include <rte_common.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Of drivers that look for secondary processes, which there are none of.
static const char *const secondary[] = {"tap_mp_", "mp action callback", "IPC callback"};

int core_logtype;
RTE_LOG_REGISTER_DEFAULT(core_logtype, NOTICE)

// The stream's lock admits one writer at a time.
static struct {
	const char *program;
	int begun; // the last text had no end of its line
	int listens;
	char heard[160];
} out;
static __thread int hushed;

static int is_of_secondary(const char *line, size_t n)
{
	for (uint32_t i = 0; i < RTE_DIM(secondary); i++)
		if (memmem(line, n, secondary[i], strlen(secondary[i])) != NULL)
			return 1;
	return 0;
}

static void write_line(const char *line, size_t n, int foreign, int ends)
{
	if (!out.begun && foreign && (n == 0 || is_of_secondary(line, n)))
		return;
	if (!out.begun && foreign && out.listens) {
		snprintf(out.heard, sizeof(out.heard), "%.*s", (int)n, line);
		out.listens = 0;
	}
	if (out.begun)
		fprintf(stderr, "%.*s%s", (int)n, line, ends ? "\n" : "");
	else
		fprintf(stderr, "%s: %s%.*s%s", out.program, foreign ? "DPDK: " : "", (int)n, line, ends ? "\n" : "");
	out.begun = !ends;
}

static ssize_t write_text(void *cookie, const char *text, size_t size)
{
	int type = rte_log_cur_msg_logtype(), foreign = type != core_logtype && type != share_logtype;
	const char *end = text + size;

	if (foreign && hushed)
		return (ssize_t)size;
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((stop != NULL ? stop : end) - text);

		write_line(text, n, foreign, stop != NULL);
		text += n + (stop != NULL);
	}
	return (ssize_t)size;
}

int log_open(const char *program)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_text});

	if (f == NULL)
		return errno;
	out.program = program;
	return rte_openlog_stream(f);
}

// As libbpf_print_fn_t and libxdp_print_fn_t: 0 warns.
static int say(int level, const char *format, va_list list)
{
	return rte_vlog(level == 0 ? RTE_LOG_WARNING : RTE_LOG_INFO, RTE_LOGTYPE_USER1, format, list);
}

void log_drivers(void)
{
	static const struct {
		const char *library, *function;
	} other[] = {{"libbpf.so.1", "libbpf_set_print"}, {"libxdp.so.1", "libxdp_set_print"}};

	for (uint32_t i = 0; i < RTE_DIM(other); i++) {
		void *library = dlopen(other[i].library, RTLD_NOW | RTLD_NOLOAD);
		void (*set_print)(int (*fn)(int, const char *, va_list)) = NULL;

		if (library != NULL)
			*(void **)&set_print = dlsym(library, other[i].function);
		if (set_print != NULL)
			set_print(say);
	}
}

void log_hush(int on)
{
	hushed = on;
}

void log_listen(void)
{
	out.listens = 1;
	out.heard[0] = 0;
}

const char *log_heard(void)
{
	return out.heard;
}
