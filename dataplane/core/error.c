// SPDX-License-Identifier: Apache-2.0
// The last refusal.
#include "core/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct {
	char text[API_TEXT];
	uint32_t rule_kind, rule; // that it is about
} last;

void object_explain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last.text, sizeof(last.text), format, args);
	va_end(args);
	last.rule_kind = API_RULE_NONE;
	last.rule = 0;
}

void object_explain_also(const char *format, ...)
{
	size_t used = strlen(last.text);
	va_list args;

	va_start(args, format);
	vsnprintf(last.text + used, sizeof(last.text) - used, format, args);
	va_end(args);
}

int object_blame(int error, uint32_t rule_kind, uint32_t rule)
{
	if (error != 0 && last.rule_kind == API_RULE_NONE) {
		last.rule_kind = rule_kind;
		last.rule = rule;
	}
	return error;
}

void object_error_status(struct api_status *to)
{
	snprintf(to->text, sizeof(to->text), "%s", last.text);
	to->rule_kind = last.rule_kind;
	to->rule = last.rule;
}
