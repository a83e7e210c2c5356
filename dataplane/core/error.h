// SPDX-License-Identifier: Apache-2.0
// Why a request or a change is refused, in words for the operator. Control thread.
#ifndef CORE_ERROR_H
#define CORE_ERROR_H

#include "isthmus_api.h"

// Sets the text that the refused request answers, printf-like; the value is `code`, so that stage() can return it. (A
// macro, so that compilers and analysers see which value that is.)
void object_explain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline int object_refusal(int code)
{
	return code;
}
#define object_error(code, ...) (object_explain(__VA_ARGS__), object_refusal(code))
// Adds to the text of the last object_error().
void object_explain_also(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Names the rule (enum api_rule) that the last object_error() is about, unless one was named already. Returns
// `error`; 0: does nothing.
int object_blame(int error, uint32_t rule_kind, uint32_t rule);

// Text and rule of the last object_error().
void object_error_status(struct api_status *to);

#endif
