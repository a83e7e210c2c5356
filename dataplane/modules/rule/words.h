// SPDX-License-Identifier: Apache-2.0
// How stages speak of a rule, in traces.
#ifndef RULE_WORDS_H
#define RULE_WORDS_H

#include "core/trace.h"
#include "rule/rule.h"

// "session NAME". Workers, within a walk.
void rule_say_session(struct trace_text *to, const struct rule *r);
// Its PDR and FAR by their PFCP ids, and the FAR's action.
void rule_say(struct trace_text *to, const struct rule *r);

#endif
