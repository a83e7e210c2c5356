// SPDX-License-Identifier: Apache-2.0
// `isthmus-dp filter`: compiles an expression of pcap-filter(7) and prints the programs. A process of its own, with
// little memory and time, so that a hostile expression harms nothing else.
#include "trace/compile.h"
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define SNAP 65535
#define MEMORY (256u << 20)
#define SECONDS 2

int filter_compile(const char *text, int link, FILE *to, char *error, size_t room)
{
	pcap_t *p = pcap_open_dead(link, SNAP);
	struct bpf_program program;

	if (p == NULL || strlen(text) > FILTER_TEXT || pcap_compile(p, &program, text, 1, PCAP_NETMASK_UNKNOWN) != 0) {
		snprintf(error, room, "%s",
			p == NULL                    ? "no memory"
			: strlen(text) > FILTER_TEXT ? "the expression is too long"
						     : pcap_geterr(p));
		if (p != NULL)
			pcap_close(p);
		return -1;
	}
	fprintf(to, "%u\n", program.bf_len);
	for (u_int i = 0; i < program.bf_len; i++)
		fprintf(to, "%u %u %u %u\n", program.bf_insns[i].code, program.bf_insns[i].jt, program.bf_insns[i].jf,
			program.bf_insns[i].k);
	pcap_freecode(&program);
	pcap_close(p);
	return 0;
}

// One program for Ethernet frames and one for IP packets; where the expression does not apply there is none.
int filter_main(const char *text)
{
	char ethernet[PCAP_ERRBUF_SIZE], ip[PCAP_ERRBUF_SIZE];
	const struct rlimit memory = {MEMORY, MEMORY}, seconds = {SECONDS, SECONDS};

	setrlimit(RLIMIT_AS, &memory);
	setrlimit(RLIMIT_CPU, &seconds);
	int first = filter_compile(text, DLT_EN10MB, stdout, ethernet, sizeof(ethernet));
	if (first != 0)
		puts("0");
	if (filter_compile(text, DLT_RAW, stdout, ip, sizeof(ip)) == 0)
		return 0;
	puts("0");
	if (first != 0)
		fprintf(stderr, "%s\n", ethernet);
	return first == 0 ? 0 : 1;
}
