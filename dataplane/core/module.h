// SPDX-License-Identifier: Apache-2.0
// What the control thread does for modules: start, the engine's rates, timers.
#ifndef CORE_MODULE_H
#define CORE_MODULE_H

#include "core/error.h"
#include <rte_common.h>
#include <stddef.h>

// fn runs on the control thread about every `interval_ms`; while neither workers nor the control thread have done
// anything for a while, every 20 ms if that is more. From constructors only. now_ns is CLOCK_MONOTONIC, or the
// replay's clock.
void timer_register(uint32_t interval_ms, void (*fn)(uint64_t now_ns));
// Timers have their own intervals for a while from now on: one of them has something to do. Control thread.
void control_stir(void);
// Called on the control thread after the ENGINE object was applied, before the first walk: allocate tables here.
// Returns 0, or a positive errno after object_error(). From constructors only.
void module_register(int (*start)(const struct api_engine *engine));
const struct api_engine *engine_get(void); // NULL before the ENGINE object was applied
// fn gets the rates when an ENGINE object was committed: at the start and at each change. From constructors only.
void engine_watch(void (*fn)(const struct api_engine *engine));

// Allowed values of an ENGINE field beside 0, whose meaning its module defines: others are refused before anything
// starts.
struct engine_limit {
	const char *name;
	size_t field; // of struct api_engine, 32 bits
	uint32_t least, most;
};
void engine_limit_register(const struct engine_limit *l);

#define ENGINE_LIMIT(engine_field, lowest, highest)                                                                    \
	RTE_INIT(engine_limit_##engine_field)                                                                          \
	{                                                                                                              \
		static const struct engine_limit l = {                                                                 \
			#engine_field, offsetof(struct api_engine, engine_field), lowest, highest};                    \
		engine_limit_register(&l);                                                                             \
	}

// Of core.
int modules_check(const struct api_engine *e); // its fields against ENGINE_LIMIT
int modules_start(const struct api_engine *e); // both: 0, or a positive errno after object_error()
void modules_tell(const struct api_engine *e); // who watches
void control_run_timers(void);
uint64_t control_rest(void); // the control thread listens from here on; how long it may sleep, ns

#endif
