// SPDX-License-Identifier: Apache-2.0
// Mobile sessions for tests: add rules one by one, then put the whole.
//
//	kit_instance("access", "n3", "10.1.0.1", API_LOOKUP_NONE, NULL);
//	kit_instance("core", "n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
//	struct kit_mobile k;
//	kit_mobile(&k, 1, "10.45.0.2", NULL);
//	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x100, 1);       // uplink, FAR 1
//	kit_far_ip(&k, 1, API_FROM_CORE, "core");
//	kit_pdr_ue(&k, API_FROM_CORE, "core", 2);                       // downlink, FAR 2
//	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x200);
//	kit_put_mobile("s1", &k);
#ifndef TESTKIT_MOBILE_H
#define TESTKIT_MOBILE_H

#include "testkit/testkit.h"

#define KIT_MOBILE_SDF 64

// Pointers that the functions below give are into it: more may be changed before kit_put_mobile().
struct kit_mobile {
	struct api_session s;
	struct api_pdr pdr[API_MAX_PDR];
	struct api_far far[API_MAX_FAR];
	struct api_qer qer[API_MAX_QER];
	struct api_urr urr[API_MAX_URR];
	struct api_sdf sdf[KIT_MOBILE_SDF];
	struct api_far_more more[API_MAX_FAR];
	struct api_address route[API_MAX_ROUTES];
};

// interface, endpoint, pool may be NULL. For more of them, change the body of kit_instance_body().
void kit_instance(const char *name, const char *interface, const char *endpoint, uint32_t lookup, const char *pool);
struct api_instance kit_instance_body(const char *interface, const char *endpoint, uint32_t lookup, const char *pool);

void kit_mobile(struct kit_mobile *k, uint64_t seid, const char *ue4, const char *ue6); // NULL: none
// PDRs get the ids 1, 2, ... and precedence 100, and remove the outer header.
struct api_pdr *kit_pdr_fteid(
	struct kit_mobile *k, enum api_source source, const char *local, uint32_t teid, uint32_t far);
struct api_pdr *kit_pdr_ue(struct kit_mobile *k, enum api_source source, const char *instance, uint32_t far);
struct api_far *kit_far(struct kit_mobile *k, uint32_t id, uint8_t action, enum api_source destination); // no header
struct api_far *kit_far_ip(struct kit_mobile *k, uint32_t id, enum api_source destination, const char *instance);
struct api_far *kit_far_gtpu(
	struct kit_mobile *k, uint32_t id, enum api_source destination, const char *path, uint32_t teid);
struct api_far_more *kit_far_more(struct kit_mobile *k, struct api_far *far);
struct api_qer *kit_qer(struct kit_mobile *k, uint32_t id, uint8_t qfi);
struct api_urr *kit_urr(struct kit_mobile *k, uint32_t id); // counts volume, reports when asked
void kit_pdr_qer(struct api_pdr *pdr, uint32_t qer);
void kit_pdr_urr(struct api_pdr *pdr, uint32_t urr);
// A further filter of the PDR, which must be the last one with filters so far. Matches everything until changed.
struct api_sdf *kit_sdf(struct kit_mobile *k, struct api_pdr *pdr);
void kit_framed_route(struct kit_mobile *k, const char *prefix);
void kit_put_mobile(const char *name, const struct kit_mobile *k);

#endif
