// SPDX-License-Identifier: Apache-2.0
// Access lists: from api_acl to rte_acl tries, and the classification of a vector.
//
// A key is an IP header without options or extension headers, followed by the two ports. Most packets have this form,
// so rte_acl reads them in place; others are copied. IPv4 and IPv6 differ in a row of `layouts`.
#include "core/object.h"
#include "core/packet.h"
#include "firewall/firewall.h"
#include "reassembly/follow.h"
#include "wire/cache_line.h"
#include "wire/ip.h"
#include <errno.h>
#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_vect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TRIE_BYTES (512u << 20)
#define MAX_ADDRESS_WORDS 4
#define MAX_FIELDS (1 + 2 * MAX_ADDRESS_WORDS + 2)
#define PORT_BYTES 4 // source and destination

// Where the fields lie in an option-less header.
struct layout {
	uint8_t family;
	uint8_t protocol; // offset
	uint8_t source; // offset; the destination and then the ports follow
	uint8_t address_words; // of 32 bits
	uint8_t header; // bytes
};
static const struct layout layouts[2] = {
	{.family = 4, .protocol = 9, .source = 12, .address_words = 1, .header = 20},
	{.family = 6, .protocol = 6, .source = 8, .address_words = 4, .header = 40},
};

RTE_ACL_RULE_DEF(acl_rule, MAX_FIELDS);

static uint32_t field_count(const struct layout *l)
{
	return 1 + 2 * l->address_words + 2;
}

// rte_acl reads its input as one byte (the protocol) and then groups of four bytes, numbered by input_index.
static void define_fields(const struct layout *l, struct rte_acl_config *config)
{
	uint8_t words = 2 * l->address_words, f = 0;

	config->num_categories = 1;
	config->num_fields = field_count(l);
	config->max_size = MAX_TRIE_BYTES;
	config->defs[f++] =
		(struct rte_acl_field_def){.type = RTE_ACL_FIELD_TYPE_BITMASK, .size = 1, .offset = l->protocol};
	for (uint8_t i = 0; i < words; i++, f++)
		config->defs[f] = (struct rte_acl_field_def){.type = RTE_ACL_FIELD_TYPE_MASK,
			.size = 4,
			.field_index = f,
			.input_index = f,
			.offset = l->source + 4u * i};
	for (uint8_t i = 0; i < 2; i++)
		config->defs[f + i] = (struct rte_acl_field_def){.type = RTE_ACL_FIELD_TYPE_RANGE,
			.size = 2,
			.field_index = f + i,
			.input_index = f,
			.offset = l->header + 2u * i};
}

static int any_port(const uint16_t range[2])
{
	return range[0] == 0 && range[1] == UINT16_MAX;
}

static int prefix_ok(const struct api_address *a)
{
	return a->family == 0 || (a->family == 4 && a->prefix <= 32) || (a->family == 6 && a->prefix <= 128);
}

static int check_rule(const struct api_acl_rule *r, uint32_t i)
{
	if (!prefix_ok(&r->source) || !prefix_ok(&r->destination))
		return object_error(EINVAL, "rule %u: not an address prefix", i);
	if (r->source.family && r->destination.family && r->source.family != r->destination.family)
		return object_error(EINVAL, "rule %u: source and destination are of different IP versions", i);
	if (r->source_port[0] > r->source_port[1] || r->destination_port[0] > r->destination_port[1])
		return object_error(EINVAL, "rule %u: a port range ends before it begins", i);
	if (r->protocol_mask != 0 && r->protocol_mask != 0xff)
		return object_error(EINVAL, "rule %u: protocol mask is 0x%02x, must be 0 or 0xff", i, r->protocol_mask);
	if (r->protocol_mask && !ip_has_ports(r->protocol) &&
		!(any_port(r->source_port) && any_port(r->destination_port)))
		return object_error(EINVAL, "rule %u: protocol %u has no ports", i, r->protocol);
	if (r->action != API_DENY && r->action != API_PERMIT)
		return object_error(EINVAL, "rule %u: action %u is not known", i, r->action);
	return 0;
}

int acl_check(const void *body, uint32_t length)
{
	const struct api_acl *want = body;
	const struct api_acl_rule *rule = (const struct api_acl_rule *)(want + 1);

	if (want->default_action != API_DENY && want->default_action != API_PERMIT)
		return object_error(EINVAL, "default action %u is not known", want->default_action);
	if (want->count > ACL_MAX_RULES)
		return object_error(E2BIG, "%u rules, at most %u are possible", want->count, ACL_MAX_RULES);
	if (length != sizeof(*want) + (uint64_t)want->count * sizeof(*rule))
		return object_error(EINVAL, "%u bytes do not hold %u rules", length, want->count);
	for (uint32_t i = 0; i < want->count; i++) {
		int error = check_rule(&rule[i], i);
		if (error != 0)
			return error;
	}
	return 0;
}

static int matches_family(const struct api_acl_rule *r, uint8_t family)
{
	return (r->source.family == 0 || r->source.family == family) &&
	       (r->destination.family == 0 || r->destination.family == family);
}

static void fill_address(struct rte_acl_field *field, const struct layout *l, const struct api_address *a)
{
	uint32_t bits = a->family ? a->prefix : 0;

	for (uint32_t i = 0; i < l->address_words; i++) {
		uint32_t word;
		memcpy(&word, &a->bytes[4 * i], sizeof(word));
		field[i].mask_range.u32 = RTE_MIN(bits, 32u);
		field[i].value.u32 = bits ? rte_be_to_cpu_32(word) : 0;
		bits -= field[i].mask_range.u32;
	}
}

static void fill_rule(struct acl_rule *to, const struct layout *l, const struct api_acl_rule *r)
{
	struct rte_acl_field *f = to->field;

	f[0].value.u8 = r->protocol & r->protocol_mask;
	f[0].mask_range.u8 = r->protocol_mask;
	fill_address(&f[1], l, &r->source);
	fill_address(&f[1 + l->address_words], l, &r->destination);
	f += 1 + 2 * l->address_words;
	f[0].value.u16 = r->source_port[0];
	f[0].mask_range.u16 = r->source_port[1];
	f[1].value.u16 = r->destination_port[0];
	f[1].mask_range.u16 = r->destination_port[1];
}

// The widest search that the CPU has and EAL allows (--force-max-simd-bitwidth=512 for the first two).
static void choose_search(struct rte_acl_ctx *trie)
{
	static const enum rte_acl_classify_alg best_first[] = {
		RTE_ACL_CLASSIFY_AVX512X32, RTE_ACL_CLASSIFY_AVX512X16, RTE_ACL_CLASSIFY_AVX2};
	for (uint32_t i = 0; i < RTE_DIM(best_first); i++)
		if (rte_acl_set_ctx_classify(trie, best_first[i]) == 0)
			return;
}

// Rank of each rule: 1 is the last choice. Higher priority wins, then the earlier rule.
struct ranked {
	uint32_t priority, index;
};

static int compare_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	return x->index < y->index ? 1 : -1;
}

static uint32_t *rank_rules(const struct api_acl_rule *rule, uint32_t count)
{
	struct ranked *sorted = calloc(count, sizeof(*sorted));
	uint32_t *rank = calloc(count, sizeof(*rank));

	if (sorted != NULL && rank != NULL) {
		for (uint32_t i = 0; i < count; i++)
			sorted[i] = (struct ranked){rule[i].priority, i};
		qsort(sorted, count, sizeof(*sorted), compare_rank);
		for (uint32_t i = 0; i < count; i++)
			rank[sorted[i].index] = i + 1;
	} else {
		free(rank);
		rank = NULL;
	}
	free(sorted);
	return rank;
}

static int add_rules(struct rte_acl_ctx *trie, const struct layout *l, const struct api_acl *body, const uint32_t *rank)
{
	const struct api_acl_rule *rule = (const struct api_acl_rule *)(body + 1);
	int error = 0;

	for (uint32_t i = 0; i < body->count && error == 0; i++) {
		struct acl_rule add = {.data = {.category_mask = 1, .priority = (int32_t)rank[i]}};
		if (!matches_family(&rule[i], l->family))
			continue;
		add.data.userdata = (i + 1) << 1 | rule[i].action;
		fill_rule(&add, l, &rule[i]);
		error = rte_acl_add_rules(trie, (struct rte_acl_rule *)&add, 1);
	}
	return error;
}

// Leaves *out NULL when no rule is of this family.
static int build_trie(
	struct rte_acl_ctx **out, const struct layout *l, const struct api_acl *body, const uint32_t *rank)
{
	static uint32_t serial; // rte_acl wants a name of its own for each list; control thread only
	const struct api_acl_rule *rule = (const struct api_acl_rule *)(body + 1);
	struct rte_acl_config config = {0};
	uint32_t count = 0;
	char name[RTE_ACL_NAMESIZE];

	for (uint32_t i = 0; i < body->count; i++)
		count += (uint32_t)matches_family(&rule[i], l->family);
	if (count == 0)
		return 0;
	snprintf(name, sizeof(name), "firewall-%u", serial++);
	struct rte_acl_param parameters = {.name = name,
		.socket_id = SOCKET_ID_ANY,
		.rule_size = RTE_ACL_RULE_SZ(MAX_FIELDS),
		.max_rule_num = count};
	*out = rte_acl_create(&parameters);
	if (*out == NULL)
		return object_error(ENOMEM, "no memory for %u rules", count);
	define_fields(l, &config);
	int error = add_rules(*out, l, body, rank);
	if (error == 0)
		error = rte_acl_build(*out, &config);
	if (error != 0)
		return object_error(
			-error, "the rules for IPv%u cannot be compiled: %s", l->family, rte_strerror(-error));
	choose_search(*out);
	return 0;
}

static uint8_t looks_at_ports(const struct api_acl_rule *r)
{
	return r->source_port[0] != 0 || r->source_port[1] != UINT16_MAX || r->destination_port[0] != 0 ||
	       r->destination_port[1] != UINT16_MAX;
}

static int fill_list(struct acl *a, const struct api_acl *body)
{
	const struct api_acl_rule *rule = (const struct api_acl_rule *)(body + 1);
	uint32_t *rank = body->count ? rank_rules(rule, body->count) : NULL;
	int error = 0;

	if (a->hits == NULL || a->permits == NULL || (body->count && rank == NULL))
		error = object_error(ENOMEM, "no memory for %u rules", body->count);
	for (uint32_t i = 0; i < body->count && error == 0; i++) {
		a->permits[i] = rule[i].action == API_PERMIT;
		a->asks |= looks_at_ports(&rule[i]);
	}
	for (uint32_t i = 0; i < RTE_DIM(layouts) && error == 0; i++)
		error = build_trie(&a->trie[i], &layouts[i], body, rank);
	free(rank);
	return error;
}

struct acl *acl_build(const struct api_acl *body, uint32_t workers, int *error)
{
	static uint32_t generations; // control thread only
	struct acl *a = rte_zmalloc("acl", sizeof(*a), CACHE_LINE);

	if (a == NULL) {
		*error = object_error(ENOMEM, "no memory");
		return NULL;
	}
	a->default_verdict = body->default_action == API_PERMIT;
	a->rules = body->count;
	a->generation = ++generations;
	a->workers = workers;
	a->stride = RTE_ALIGN_CEIL(body->count + 1, CACHE_LINE / sizeof(uint64_t));
	a->hits = rte_zmalloc("acl-hits", (size_t)workers * a->stride * sizeof(uint64_t), CACHE_LINE);
	a->permits = calloc(body->count + 1, 1);
	*error = fill_list(a, body);
	if (*error != 0) {
		acl_free(a);
		return NULL;
	}
	return a;
}

void acl_free(struct acl *a)
{
	if (a == NULL)
		return;
	for (uint32_t i = 0; i < RTE_DIM(a->trie); i++)
		rte_acl_free(a->trie[i]);
	rte_free(a->hits);
	free(a->permits);
	rte_free(a);
}

// Of a later fragment, in units of 8 bytes. ip6_extensions_parse() read the IPv6 fragment header last.
static uint32_t fragment_offset(const struct layout *l, const uint8_t *header, const uint8_t *l4)
{
	return l->family == 4 ? load16(header + 6) & 0x1fffu : load16(l4 - 6) >> 3;
}

// A later IPv6 fragment may hide its protocol behind further extension headers. Then the first fragment of any protocol
// is looked up too, so that it is known (RFC 8200 §4.5: all have the same next header).
static int asks(const struct acl *a, const struct packet *p, const uint8_t *header)
{
	return p->fragment != 0 && a->asks && !(p->fragment & IP_FRAGMENT_FOLLOWS) &&
	       (ip_has_ports(p->protocol) || ip6_is_extension(p->protocol) ||
		       (p->ip_version == 6 && ip6_is_extension(*ip6_fragment_header(header))));
}

// Makes the key of a packet that is not its own key. NULL and *verdict when it has no key yet or must not pass. A first
// fragment that ends before the ports gets them past a filter. So does a TCP fragment at offset 1, which overwrites the
// flags (RFC 1858 §3, §4, RFC 3128).
static const uint8_t *copy_key(const struct acl *a, const struct rte_mbuf *m, const struct packet *p,
	const struct layout *l, uint8_t *key, uint32_t *verdict)
{
	uint32_t have = rte_pktmbuf_data_len(m);
	const uint8_t *header = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l3);
	const uint8_t *l4 = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l4);

	*verdict = ACL_TOO_SHORT;
	if (have < (uint32_t)p->l3 + l->header || have < p->l4)
		return NULL;
	have = RTE_MIN(have, p->l3 + p->length); // what follows the IP packet is padding
	memcpy(key, header, l->header);
	memset(key + l->header, 0, PORT_BYTES);
	key[l->protocol] = p->protocol;
	int later = p->fragment & IP_FRAGMENT_LATER, has_ports = ip_has_ports(p->protocol);
	if (later ? p->protocol == IP_PROTOCOL_TCP && fragment_offset(l, header, l4) == 1
		  : has_ports && have < (uint32_t)p->l4 + PORT_BYTES)
		return NULL;
	*verdict = ACL_FRAGMENT;
	if (asks(a, p, header))
		return NULL;
	if (has_ports && (!later || p->fragment & IP_FRAGMENT_FOLLOWS))
		memcpy(key + l->header, later ? follow_head(m) : l4, PORT_BYTES);
	return key;
}

// The packet itself when it is a plain header with ports behind it, else a copy in `key`, or NULL and *verdict.
static inline const uint8_t *find_key(const struct acl *a, const struct rte_mbuf *m, const struct packet *p,
	const struct layout *l, uint8_t *key, uint32_t *verdict)
{
	if (likely((uint32_t)p->l4 == (uint32_t)p->l3 + l->header && p->fragment == 0 && ip_has_ports(p->protocol) &&
		    p->length >= (uint32_t)l->header + PORT_BYTES &&
		    rte_pktmbuf_data_len(m) >= (uint32_t)p->l4 + PORT_BYTES))
		return rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l3);
	return copy_key(a, m, p, l, key, verdict);
}

// Packets of one IP version for one call of rte_acl.
struct batch {
	const uint8_t *key[ACL_VECTOR];
	uint32_t result[ACL_VECTOR];
	uint8_t packet[ACL_VECTOR]; // index in the vector
	uint32_t count;
};

static void run_batch(const struct acl *a, const struct rte_acl_ctx *trie, struct batch *b, uint32_t *verdict)
{
	rte_acl_classify(trie, b->key, b->result, b->count, 1);
	for (uint32_t i = 0; i < b->count; i++)
		verdict[b->packet[i]] = b->result[i] ? b->result[i] : a->default_verdict;
}

void acl_classify(const struct acl *a, struct rte_mbuf **pkts, uint32_t n, uint32_t *verdict)
{
	uint8_t copy[ACL_VECTOR][ACL_KEY_SIZE];
	struct batch batch[2];

	batch[0].count = batch[1].count = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct packet *p = packet_of(pkts[i]);
		uint32_t version = p->ip_version == 6;
		struct batch *b = &batch[version];

		verdict[i] = a->default_verdict;
		if (unlikely(p->ip_version == 0) || a->trie[version] == NULL)
			continue;
		const uint8_t *key = find_key(a, pkts[i], p, &layouts[version], copy[i], &verdict[i]);
		if (unlikely(key == NULL))
			continue;
		b->key[b->count] = key;
		b->packet[b->count++] = (uint8_t)i;
	}
	for (uint32_t i = 0; i < RTE_DIM(batch); i++)
		if (batch[i].count > 0)
			run_batch(a, a->trie[i], &batch[i], verdict);
}
