// SPDX-License-Identifier: Apache-2.0
// Expressions of pcap-filter(7).
#ifndef TRACE_COMPILE_H
#define TRACE_COMPILE_H

#include <stddef.h>
#include <stdio.h>

#define FILTER_TEXT 4096 // characters

// Writes the program for a link type (DLT_*): the number of its instructions, then a line of four numbers each.
// Returns 0, or -1 and why not.
int filter_compile(const char *text, int link, FILE *to, char *error, size_t room);
int filter_main(const char *text); // exit status

#endif
