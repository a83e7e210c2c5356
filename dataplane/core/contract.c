// SPDX-License-Identifier: Apache-2.0
// A part carries the sender's size of its structs. A shorter struct than ours ends in zeros, which mean the behaviour
// before the field existed. Of a longer one the unknown tail must be zero: an order that we cannot carry out whole is
// refused.
#include "core/contract.h"
#include "core/error.h"
#include "core/kind.h"
#include "layout.h"
#include <errno.h>
#include <rte_common.h>
#include <stdlib.h>
#include <string.h>

int part_next(struct part_reader *r, struct part *p)
{
	struct api_part_head h;

	if (r->left == 0)
		return 0;
	if (r->left < sizeof(h)) {
		object_explain("a message ends within the head of a part");
		return EPROTO;
	}
	memcpy(&h, r->at, sizeof(h));
	uint64_t bytes = (uint64_t)h.size * h.count, whole = sizeof(h) + part_padded(bytes);
	if (h.size == 0 || whole > r->left) {
		object_explain("a part of %u structs of %u bytes (%s) does not fit into its message", h.count, h.size,
			part_name(h.part));
		return EPROTO;
	}
	*p = (struct part){.number = h.part, .size = h.size, .count = h.count, .rows = r->at + sizeof(h)};
	for (uint64_t i = bytes; i < part_padded(bytes); i++)
		if (p->rows[i] != 0) {
			object_explain("the padding of a part (%s) is not zero", part_name(h.part));
			return EPROTO;
		}
	r->at += whole;
	r->left -= (uint32_t)whole;
	return 1;
}

static int all_zero(const uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (p[i] != 0)
			return 0;
	return 1;
}

int part_fit(const struct part *p, uint32_t size, void *to, const char *what)
{
	uint32_t common = RTE_MIN(p->size, size);
	uint8_t *out = to;

	for (uint32_t i = 0; i < p->count; i++) {
		const uint8_t *in = p->rows + (size_t)i * p->size;

		if (!all_zero(in + common, p->size - common))
			return object_error(ENOTSUP, "%s: %s %u says something that this data plane is too old to know",
				what, part_name(p->number), i + 1);
		memcpy(out + (size_t)i * size, in, common);
		memset(out + (size_t)i * size + common, 0, size - common);
	}
	return 0;
}

int part_only(const void *body, uint32_t length, uint16_t number, void *to, uint32_t size, const char *what)
{
	struct part_reader r = {.at = body, .left = length};
	struct part p;
	int more = part_next(&r, &p);

	if (more == EPROTO)
		return EPROTO;
	if (more == 0 || p.number != number || p.count != 1 || r.left != 0)
		return object_error(EPROTO, "%s is not made of one %s", what, part_name(number));
	return part_fit(&p, size, to, what);
}

static const struct object_array no_arrays[] = {{0}};

static const struct object_array *arrays_of(const struct object_ops *ops)
{
	return ops->arrays != NULL ? ops->arrays : no_arrays;
}

static uint32_t count_in(const void *head, const struct object_array *a)
{
	uint16_t two;
	uint32_t four;

	if (a->count_size == sizeof(two)) {
		memcpy(&two, (const uint8_t *)head + a->count_at, sizeof(two));
		return two;
	}
	memcpy(&four, (const uint8_t *)head + a->count_at, sizeof(four));
	return four;
}

// Appends a part to the body that is being read.
static int take(const struct part *p, uint32_t size, const char *key, uint8_t **body, uint32_t *length)
{
	static struct {
		uint8_t *bytes;
		uint64_t room;
	} scratch;
	uint64_t need = *length + (uint64_t)p->count * size;

	if (need > API_MAX_BODY)
		return object_error(E2BIG, "%s has %u of %s, which are too many", key, p->count, part_name(p->number));
	if (need > scratch.room) {
		uint8_t *bytes = realloc(scratch.bytes, need * 2);

		if (bytes == NULL)
			return object_error(ENOMEM, "no memory");
		scratch.bytes = bytes;
		scratch.room = need * 2;
	}
	int error = part_fit(p, size, scratch.bytes + *length, key);
	*body = scratch.bytes;
	*length = (uint32_t)need;
	return error;
}

int object_read(const struct object_ops *ops, const char *key, struct part_reader *r, const void **to, uint32_t *length)
{
	const struct object_array *a = arrays_of(ops);
	struct part p = {0};
	uint8_t *body = NULL;
	int more = part_next(r, &p);

	*length = 0;
	if (more == EPROTO)
		return EPROTO;
	if (more == 0 || p.number != ops->kind || p.count != 1)
		return object_error(EPROTO, "%s %s does not begin with one %s", ops->name, key, part_name(ops->kind));
	int error = take(&p, ops->min_length, key, &body, length);
	if (error == 0)
		more = part_next(r, &p);
	// A missing array has no structs; each array occurs once, in its place.
	for (; error == 0 && more == 1 && a->part != 0; a++) {
		int here = p.number == a->part;

		if (count_in(body, a) != (here ? p.count : 0))
			return object_error(EPROTO, "%s %s says %u of %s, and %u came", ops->name, key,
				count_in(body, a), part_name(a->part), here ? p.count : 0);
		if (here)
			error = take(&p, a->size, key, &body, length);
		if (here && error == 0)
			more = part_next(r, &p);
	}
	if (error == 0 && more == 1)
		error = object_error(EPROTO, "%s %s has a part %u (%s) that is not known there", ops->name, key,
			p.number, part_name(p.number));
	for (; error == 0 && more == 0 && a->part != 0; a++)
		if (count_in(body, a) != 0)
			error = object_error(EPROTO, "%s %s says %u of %s, and 0 came", ops->name, key,
				count_in(body, a), part_name(a->part));
	*to = body;
	return error != 0 ? error : more;
}

static uint64_t digest_rows(uint64_t h, uint16_t number, const uint8_t *rows, uint32_t size, uint32_t count)
{
	if (count == 0)
		return h;
	h = fnv1a(fnv1a(h, &number, sizeof(number)), &count, sizeof(count));
	for (uint32_t i = 0; i < count; i++, rows += size) {
		uint16_t used = (uint16_t)size;

		while (used > 0 && rows[used - 1] == 0)
			used--;
		h = fnv1a(fnv1a(h, &used, sizeof(used)), rows, used);
	}
	return h;
}

uint64_t object_digest(const struct object_ops *ops, const void *body, uint32_t length)
{
	uint64_t h = digest_rows(FNV_START, (uint16_t)ops->kind, body, ops->min_length, 1);
	uint64_t at = ops->min_length;

	for (const struct object_array *a = arrays_of(ops); a->part != 0; a++) {
		uint32_t count = count_in(body, a);
		uint64_t bytes = (uint64_t)count * a->size;

		if (at + bytes > length)
			break; // no object that a module accepted
		h = digest_rows(h, a->part, (const uint8_t *)body + at, a->size, count);
		at += bytes;
	}
	return h;
}

static const struct api_layout_part *layout_of(uint32_t part)
{
	for (size_t i = 0; i < RTE_DIM(api_layout_parts); i++)
		if (api_layout_parts[i].part == part)
			return &api_layout_parts[i];
	return NULL;
}

const char *part_name(uint32_t number)
{
	const struct api_layout_part *p = layout_of(number);

	return p != NULL ? p->name : "unknown";
}

uint32_t contract_version(uint32_t oldest, uint32_t newest, uint32_t peer_oldest, uint32_t peer_newest)
{
	uint32_t highest = RTE_MIN(newest, peer_newest);

	return highest >= oldest && highest >= peer_oldest ? highest : 0;
}

const struct api_layout *contract_layouts(uint32_t *count)
{
	static struct api_layout mine[RTE_DIM(api_layout_parts)];

	for (size_t i = 0; i < RTE_DIM(mine); i++) {
		const struct api_layout_part *p = &api_layout_parts[i];
		const struct api_layout_step *whole = &p->step[p->steps - 1];

		mine[i] = (struct api_layout){
			.version = API_VERSION, .part = p->part, .size = whole->size, .digest = whole->digest};
	}
	*count = RTE_DIM(mine);
	return mine;
}

int contract_compare(const struct api_layout *peer, uint32_t count, uint32_t version)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct api_layout_part *p = layout_of(peer[i].part);
		int known = 0;

		// Of a struct that the peer knows more of, the peer compares.
		if (peer[i].version != version || p == NULL || peer[i].size > p->step[p->steps - 1].size)
			continue;
		for (uint16_t k = 0; k < p->steps; k++)
			known |= p->step[k].size == peer[i].size && p->step[k].digest == peer[i].digest;
		if (!known)
			return object_error(EPROTO,
				"struct %s is laid out otherwise on the other side, in the same contract version %u: "
				"install both programs from releases",
				p->name, version);
	}
	return 0;
}
