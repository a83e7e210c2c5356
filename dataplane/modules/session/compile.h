// SPDX-License-Identifier: Apache-2.0
// Inside of the session module: from the SESSION object to rules and keys. Control thread.
#ifndef SESSION_COMPILE_H
#define SESSION_COMPILE_H

#include "rule/far_more.h"
#include "rule/tables.h"

// A session object in work: the arrays that follow its head.
struct parts {
	const struct api_session *s;
	const struct api_pdr *pdr;
	const struct api_far *far;
	const struct api_qer *qer;
	const struct api_urr *urr;
	const struct api_sdf *sdf;
	const struct api_far_more *more;
	const struct api_address *route;
	const char *name;
};
void session_parts(struct parts *p, const struct api_session *s, const char *name);
const struct api_far *parts_far(const struct parts *p, uint32_t id);
const struct api_qer *parts_qer(const struct parts *p, uint32_t id);
// The instance (its index) at this place of the session's list, INSTANCE_NONE: none is there.
uint16_t parts_instance(const struct parts *p, uint8_t place);

// check.c: checks that need no other session. 0, or errno after object_error().
int session_check(const struct api_session *want, uint32_t length, const char *name);
// compile.c: fills the rules of a session from its object. 0, or errno after object_error(). `old` may be NULL.
int session_compile(struct session *s, const struct parts *p, const struct session *old);
// far.c: the FAR `id` and the QERs of a PDR into its rule and match.
int session_set_far(
	const struct parts *p, const struct api_pdr *pdr, struct rule *r, struct rule_match *m, uint32_t id);
int session_set_qers(const struct parts *p, const struct api_pdr *pdr, struct rule *r);
// far_more.c: The compiled form of a FAR's rare parts, to be put into rule_match.more; *out is NULL when the FAR has
// none. `more` is the FAR's api_far_more, or NULL. Returns 0, or an errno after object_error().
int far_more_compile(
	const char *session, const struct api_far *far, const struct api_far_more *more, const struct far_more **out);
void far_more_free(const struct far_more *m); // NULL is fine
// keys.c: chains and keys of a compiled session. 0, or errno after object_error().
int session_keys(struct session *s, const struct parts *p);
// claims.c: a session that the open transaction makes or changes; its keys are compared with all others' when the
// transaction ends. 0, or errno after object_error().
int session_claim(struct session *s);
int session_claims_check(void); // and takes places for the keys
void session_claims_forget(void);
// Version `old` gives up its keys at the commit, except those that another session or its next version takes. 0, or
// ENOMEM after object_error().
int session_leaves(const struct session *old);
void session_leave_all(void); // commit: after every new key was published
void session_reservations_undo(void);
// depend.c: counts the object's dependencies by name, up (1) or down (-1); whether kinds are counted; verify()'s check.
void session_use(const void *body, int difference);
int session_counts_use(uint32_t kind);
int session_verify(const char *key, const void *body, uint32_t length);
// The tables, for any key. Control thread, but for the look-up.
int session_key_find(const struct session_key *k, uint64_t *value);
int session_key_reserve(const struct session_key *k); // 1: took a place for it; 0: it is there; -1: there is none
void session_key_publish(const struct session_key *k, uint64_t value); // of a key that has a place, so it cannot fail
void session_key_delete(const struct session_key *k);
void session_lengths_add(const struct session *s, int difference); // its keys come (1) or go (-1)
void session_lengths_publish(void);
// After the grace period of the session's keys, in place of `old` or NULL: fast paths forget old facts about its
// addresses.
void session_homes_renew(const struct session *s, const struct session *old);

#endif
