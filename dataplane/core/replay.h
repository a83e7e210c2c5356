// SPDX-License-Identifier: Apache-2.0
// The parts of `isthmus-dp replay`: a state and captures from open files, through the graph, by the captures' clock.
// One thread, which also walks the graph; the engine has no threads. Reasons of failures go to the log.
#ifndef CORE_REPLAY_H
#define CORE_REPLAY_H

#include <stdint.h>
#include <stdio.h>

// Small steps of the clock (100 us each) that a run of the command may make: an hour of traffic that is shaped all
// the time.
#define REPLAY_STEPS (3600u * 10000u)

// Applies the messages of the contract up to the end of the file, with every port's driver replaced by `inject`.
// `name` is for the log. The caller closes f. Returns 0, or -1 when the file is broken, something in it was refused,
// or no engine runs afterwards; transactions before that stay applied.
int replay_load_state(FILE *f, const char *name);

// Adds a capture to replay into a port, or a capture to write from a port's output. `name` is for the log and must live
// until replay_close. Owns f, on failure too. Returns 0 or -1.
int replay_input(const char *port, const char *name, FILE *f);
int replay_output(const char *port, const char *name, FILE *f);

// Replays the inputs in the order of their time stamps, until the gateway holds nothing or a minute after the last
// packet. A packet stamped earlier than its predecessor in the file enters at once. A pause longer than an hour is an
// hour for the gateway; output stamps follow those of the input. While the gateway holds packets, the clock takes small
// steps: at most `steps` in all and a minute of each pause.
void replay_run(uint32_t steps);
int replay_close(void); // closes and forgets all captures; -1: some output could not be written

int replay_main(int argc, char **argv); // the command

#endif
