// SPDX-License-Identifier: Apache-2.0
// The contract between programs of different age: longer and shorter structs, false sizes, versions, layouts, and peers
// that stop within a message.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/contract.h"
#include "core/engine.h"
#include "layout.h"
#include "testkit/socket.h"
#include <rte_cycles.h>
#include <stdlib.h>

static const uint8_t home[6] = {2, 0, 0, 0, 0, 1};

static int start(void **state)
{
	struct api_engine e = kit_engine();

	if (engine_eal_init("contract-test", 0, 512, 0, NULL) != 0)
		return -1;
	engine_mode.virtual_now = rte_get_tsc_hz() * 1000;
	kit_begin();
	kit_put(API_ENGINE, "engine", &e, sizeof(e));
	kit_port("access", API_ROLE_ACCESS);
	kit_port("core", API_ROLE_CORE);
	kit_interface("n3", "core", "10.0.0.1/24", NULL);
	kit_path("upf", "10.0.0.1", "10.0.0.2");
	return kit_commit();
}

static struct {
	uint8_t bytes[1 << 17];
	uint32_t used;
} message;

static void clear(void)
{
	message.used = 0;
}

static void add(uint16_t number, uint32_t size, uint32_t count, const void *rows, uint32_t bytes)
{
	struct api_part_head head = {.part = number, .size = (uint16_t)size, .count = count};
	uint32_t whole = (uint32_t)(sizeof(head) + part_padded(bytes));

	assert_true(message.used + whole <= sizeof(message.bytes));
	memset(message.bytes + message.used, 0, whole);
	memcpy(message.bytes + message.used, &head, sizeof(head));
	memcpy(message.bytes + message.used + sizeof(head), rows, bytes);
	message.used += whole;
}

// Rows of `size` bytes from a sender with `more` bytes in each, or fewer; `tail` is the last additional byte.
static void add_sized(uint16_t number, uint32_t size, uint32_t count, const uint8_t *rows, int more, uint8_t tail)
{
	uint32_t other = (uint32_t)((int)size + more);
	uint8_t *list = calloc(count, other);

	assert_non_null(list);
	for (uint32_t i = 0; i < count; i++) {
		memcpy(list + i * other, rows + i * size, RTE_MIN(size, other));
		if (more > 0)
			list[(i + 1) * other - 1] = tail;
	}
	add(number, other, count, list, other * count);
	free(list);
}

static struct {
	struct reply_sink sink; // first
	struct api_status status;
	struct api_hello hello;
	uint32_t layouts, replies, digests;
	uint16_t flags; // of the last reply
	uint64_t order[1024]; // of the digests' keys
} client;

// As isthmus_api.h says it.
static uint64_t order_of(const char *key)
{
	uint64_t x = 0xcbf29ce484222325ull;

	for (; *key != 0; key++)
		x = (x ^ (uint8_t)*key) * 0x100000001b3ull;
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

static int answer(struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	const struct api_digest *d = rows;

	client.replies++;
	client.flags = h->flags;
	for (uint32_t i = 0; part->part == API_PART_DIGEST && i < part->count; i++)
		client.order[client.digests++] = order_of(d[i].key);
	if (part->part == API_PART_STATUS)
		memcpy(&client.status, rows, sizeof(client.status));
	if (part->part == API_PART_HELLO)
		memcpy(&client.hello, rows, sizeof(client.hello));
	if (part->part == API_PART_LAYOUT)
		client.layouts = part->count;
	return 0;
}

// Sends the added parts in memory of exactly their size, so that reading past it is detected.
static uint32_t request(uint16_t type)
{
	struct api_header h = {.magic = API_MAGIC, .type = type, .length = message.used};
	uint8_t *bytes = malloc(message.used + (message.used == 0));

	assert_non_null(bytes);
	memcpy(bytes, message.bytes, message.used);
	memset(&client, 0, sizeof(client));
	client.sink = (struct reply_sink){.send = answer, .owner = 5};
	request_handle(&client.sink, &h, bytes);
	free(bytes);
	return client.status.code;
}

static void add_head(uint32_t kind, const char *key, int more, uint8_t tail)
{
	struct api_object_head head = {.kind = kind};

	snprintf(head.key, sizeof(head.key), "%s", key);
	clear();
	add_sized(API_PART_OBJECT_HEAD, sizeof(head), 1, (const uint8_t *)&head, more, tail);
}

// Commits the added change; client.status has the refusal.
static uint32_t commit(uint16_t type)
{
	static uint8_t copy[sizeof(message.bytes)];
	uint32_t used = message.used;

	memcpy(copy, message.bytes, used);
	clear();
	assert_int_equal(request(API_BEGIN), 0);
	memcpy(message.bytes, copy, used);
	message.used = used;
	request(type);
	clear();
	return request(API_COMMIT);
}

static uint8_t body[8192];
static uint32_t body_length;

static void take_digest(const struct api_digest *d, void *arg)
{
	*(uint64_t *)arg = d->digest;
}

static uint64_t digest_of(uint32_t kind)
{
	const struct api_list all = {.kind = kind, .limit = UINT32_MAX, .last = UINT64_MAX};
	uint64_t found = 0;

	assert_int_equal(kit_list(&all, take_digest, &found), 0);
	return found;
}

static uint64_t digest(void)
{
	return digest_of(API_SESSION);
}

// A session in our sizes, kept as bytes and taken away again.
static uint64_t make_session(void)
{
	struct kit_session k = kit_session("access", home, 100, 1, 0, "100.64.0.1", NULL, "upf", 0x201);
	uint32_t length = 0;

	kit_begin();
	kit_put_session("s", &k);
	assert_int_equal(kit_commit(), 0);
	const void *held = object_find(API_SESSION, "s", &length);
	assert_non_null(held);
	assert_true(length <= sizeof(body));
	memcpy(body, held, length);
	body_length = length;
	uint64_t d = digest();
	kit_begin();
	kit_delete(API_SESSION, "s");
	assert_int_equal(kit_commit(), 0);
	return d;
}

static const struct {
	uint16_t part, size;
} arrays[] = {{API_PART_PDR, sizeof(struct api_pdr)}, {API_PART_FAR, sizeof(struct api_far)},
	{API_PART_QER, sizeof(struct api_qer)}};

// The session as another program sends it.
static uint32_t put_session(int more, uint8_t tail, uint16_t only)
{
	const struct api_session *s = (const struct api_session *)body;
	const uint16_t count[] = {s->pdrs, s->fars, s->qers};
	const uint8_t *at = body + sizeof(*s);

	add_head(API_SESSION, "s", 0, 0);
	add_sized(API_PART_SESSION, sizeof(*s), 1, body, only == 0 || only == API_PART_SESSION ? more : 0, tail);
	for (int i = 0; i < 3; at += arrays[i].size * count[i], i++)
		if (count[i] != 0)
			add_sized(arrays[i].part, arrays[i].size, count[i], at,
				only == 0 || only == arrays[i].part ? more : 0, tail);
	assert_ptr_equal(at, body + body_length);
	return commit(API_PUT);
}

// Control planes with further, unused fields and without the last ones: the object is the same, and so is its digest.
static void other_sizes(void **state)
{
	static const int more[] = {0, 8, 64, -8};
	uint64_t want = make_session();

	for (int i = 0; i < 4; i++) {
		uint32_t length = 0;

		assert_int_equal(put_session(more[i], 0, 0), 0);
		assert_int_equal(digest(), want);
		const void *held = object_find(API_SESSION, "s", &length);
		assert_int_equal(length, body_length);
		assert_memory_equal(held, body, length);
	}
	add_head(API_SESSION, "s", 8, 0);
	assert_int_equal(commit(API_DELETE), 0);
	assert_int_equal(digest(), 0);
}

// The control plane computes the same (api/parts_test.go has the same number).
static void digest_of_arrays(void **state)
{
	struct {
		struct api_acl head;
		struct api_acl_rule rule[2];
	} list = {{API_PERMIT, 2}, {{.source_port = {0, 65535}, .action = API_PERMIT},
					   {.protocol = 6, .protocol_mask = 255, .priority = 7}}};

	assert_int_equal(kit_change(API_ACL, "uplink", &list, sizeof(list)), 0);
	assert_int_equal(digest_of(API_ACL), 0xa9a2dadf3f9293b3ull);
}

// An order that this data plane cannot carry out as a whole is refused by name.
static void unknown_tails(void **state)
{
	make_session();
	assert_int_equal(put_session(8, 1, API_PART_FAR), ENOTSUP);
	assert_int_equal(client.status.kind, API_SESSION);
	assert_string_equal(client.status.key, "s");
	assert_non_null(strstr(client.status.text, "s: api_far 1 says something"));
	assert_int_equal(put_session(8, 1, API_PART_SESSION), ENOTSUP);
	assert_non_null(strstr(client.status.text, "api_session 1"));
	add_head(API_SESSION, "s", 8, 1);
	assert_int_equal(commit(API_DELETE), ENOTSUP);
	assert_int_equal(digest(), 0);
}

static void refused_with(uint32_t code, const char *words)
{
	assert_int_equal(commit(API_PUT), code);
	if (strstr(client.status.text, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", client.status.text, words);
	assert_int_equal(digest(), 0);
}

static void sizes_that_lie(void **state)
{
	const struct api_session *s = (const struct api_session *)body;
	const uint8_t *pdr = body + sizeof(*s);
	uint8_t other[sizeof(*s)];

	make_session();
	clear();
	refused_with(EPROTO, "does not begin with one api_object_head");
	add_head(API_SESSION, "s", 0, 0);
	refused_with(EPROTO, "does not begin with one api_session");
	add_head(API_SESSION, "s", 0, 0);
	add(API_PART_SESSION, sizeof(*s), 2, body, sizeof(*s));
	refused_with(EPROTO, "does not fit into its message");
	add_head(API_SESSION, "s", 0, 0);
	add(API_PART_SESSION, 0, 1, body, 0);
	refused_with(EPROTO, "does not fit into its message");
	add_head(API_SESSION, "s", 0, 0);
	add(API_PART_SESSION, 0xffff, UINT32_MAX, body, sizeof(*s));
	refused_with(EPROTO, "does not fit into its message");
	add_head(API_SESSION, "s", 0, 0);
	add(API_PART_SESSION, sizeof(*s), 1, body, sizeof(*s));
	refused_with(EPROTO, "session s says 2 of api_pdr, and 0 came");
	add_head(API_SESSION, "s", 0, 0);
	add(API_PART_SESSION, sizeof(*s), 1, body, sizeof(*s));
	add(API_PART_PDR, sizeof(struct api_pdr), 1, pdr, sizeof(struct api_pdr));
	refused_with(EPROTO, "session s says 2 of api_pdr, and 1 came");
	add_head(API_SESSION, "s", 0, 0);
	add(API_PART_SESSION, sizeof(*s), 1, body, sizeof(*s));
	add(API_PART_PDR, sizeof(struct api_pdr), 2, pdr, 2 * sizeof(struct api_pdr));
	add(API_PART_PDR, sizeof(struct api_pdr), 2, pdr, 2 * sizeof(struct api_pdr));
	refused_with(EPROTO, "says 2 of api_far, and 0 came");
	memcpy(other, body, sizeof(other));
	((struct api_session *)other)->fars = ((struct api_session *)other)->qers = 0;
	add_head(API_SESSION, "s", 0, 0);
	add(API_PART_SESSION, sizeof(*s), 1, other, sizeof(*s));
	add(API_PART_PDR, sizeof(struct api_pdr), 2, pdr, 2 * sizeof(struct api_pdr));
	add(API_PART_ACL_RULE, 48, 1, body, 48);
	refused_with(EPROTO, "has a part 74 (api_acl_rule) that is not known there");
	// Few bytes that would become many.
	((struct api_session *)other)->pdrs = 0xffff;
	add_head(API_SESSION, "s", 0, 0);
	add(API_PART_SESSION, sizeof(*s), 1, other, sizeof(*s));
	static const uint8_t zeros[0xffff];
	add(API_PART_PDR, 1, 0xffff, zeros, 0xffff);
	assert_int_equal(commit(API_PUT), EINVAL); // more PDRs than a session may have
	add_head(API_SESSION, "s", 0, 0);
	message.used -= 3;
	refused_with(EPROTO, "does not fit into its message");
	add_head(API_SESSION, "s", 0, 0);
	add(API_PART_SESSION, 4, 1, body, 4);
	message.bytes[message.used - 1] = 1;
	refused_with(EPROTO, "padding");
	add_head(77, "s", 0, 0);
	refused_with(EINVAL, "object kind 77 is not known");
}

#define PATHS 300

static uint32_t list(uint32_t kind, uint64_t first, uint64_t last, uint32_t limit)
{
	struct api_list l = {.kind = kind, .limit = limit, .first = first, .last = last};

	clear();
	add(API_PART_LIST, sizeof(l), 1, &l, sizeof(l));
	return request(API_LIST);
}

static void lists(void **state)
{
	uint32_t seen = 0;
	uint64_t first = 0;

	kit_begin();
	for (int i = 0; i < PATHS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "p%d", i);
		kit_path(name, "10.0.0.1", "10.0.0.2");
	}
	assert_int_equal(kit_commit(), 0);
	// Page by page every object comes once, in ascending order.
	for (int more = 1; more;) {
		assert_int_equal(list(API_PATH, first, UINT64_MAX, 7), 0);
		assert_in_range(client.digests, 1, 7);
		for (uint32_t i = 0; i < client.digests; i++) {
			assert_true(client.order[i] >= first);
			assert_true(i == 0 || client.order[i] > client.order[i - 1]);
		}
		more = (client.flags & API_F_MORE) != 0;
		assert_int_equal(client.flags & API_F_LAST, API_F_LAST);
		first = client.order[client.digests - 1] + 1;
		seen += client.digests;
	}
	assert_int_equal(seen, PATHS + 1);
	// Ranges that overlap, each answered by itself.
	assert_int_equal(list(API_PATH, 0, UINT64_MAX / 2, 0), 0);
	seen = client.digests;
	assert_int_equal(list(API_PATH, UINT64_MAX / 4, UINT64_MAX, 0), 0);
	seen += client.digests;
	assert_int_equal(list(API_PATH, UINT64_MAX / 4, UINT64_MAX / 2, UINT32_MAX), 0);
	assert_int_equal(seen - client.digests, PATHS + 1);
	uint64_t one = client.order[0];
	assert_int_equal(list(API_PATH, one, one, 1), 0);
	assert_int_equal(client.digests, 1);
	assert_int_equal(client.flags & API_F_MORE, 0);
	// None, and what is refused.
	assert_int_equal(list(API_SCHEDULER, 0, UINT64_MAX, 1), 0);
	assert_int_equal(client.digests, 0);
	assert_int_equal(list(API_PATH, 1, 0, 1), EINVAL);
	assert_non_null(strstr(client.status.text, "runs backwards"));
	assert_int_equal(list(0, 0, UINT64_MAX, 1), EINVAL);
	assert_int_equal(list(API_KIND_COUNT, 0, UINT64_MAX, 1), EINVAL);
	clear();
	assert_int_equal(request(API_LIST), EPROTO);
	kit_begin();
	for (int i = 0; i < PATHS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "p%d", i);
		kit_delete(API_PATH, name);
	}
	assert_int_equal(kit_commit(), 0);
}

static void versions(void **state)
{
	static const struct {
		uint32_t oldest, newest, peer_oldest, peer_newest, want;
	} row[] = {{3, 3, 3, 3, 3}, {3, 5, 4, 9, 5}, {3, 5, 1, 4, 4}, {3, 5, 1, 3, 3}, {3, 5, 6, 9, 0}, {3, 5, 1, 2, 0},
		{3, 3, 5, 2, 0}, {3, 3, 0, UINT32_MAX, 3}, {3, 3, 0, 0, 0}};

	for (size_t i = 0; i < RTE_DIM(row); i++)
		assert_int_equal(contract_version(row[i].oldest, row[i].newest, row[i].peer_oldest, row[i].peer_newest),
			row[i].want);
}

static uint32_t hello(uint32_t oldest, uint32_t newest, const struct api_layout *layout, uint32_t count)
{
	struct api_hello me = {.version = newest, .oldest = oldest};

	clear();
	add_sized(
		API_PART_HELLO, sizeof(me), 1, (const uint8_t *)&me, 16, 9); // who says more of itself commands nothing
	if (count != 0)
		add(API_PART_LAYOUT, sizeof(*layout), count, layout, count * sizeof(*layout));
	return request(API_HELLO);
}

static void hellos(void **state)
{
	static struct api_layout peer[256];
	uint32_t count;
	const struct api_layout *mine = contract_layouts(&count);

	memcpy(peer, mine, count * sizeof(*mine));
	assert_int_equal(hello(API_VERSION, API_VERSION, peer, count), 0);
	assert_int_equal(client.hello.version, API_VERSION);
	assert_int_equal(client.hello.oldest, API_VERSION_OLDEST);
	assert_int_equal(client.layouts, count);
	assert_int_equal(client.sink.version, API_VERSION);
	assert_int_equal(hello(API_VERSION, API_VERSION + 7, peer, count), 0);
	assert_int_equal(client.sink.version, API_VERSION);
	assert_int_equal(hello(API_VERSION + 1, API_VERSION + 7, peer, count), EPROTO);
	assert_int_equal(client.sink.version, 0);
	assert_non_null(
		strstr(client.status.text, "data plane speaks contract versions 1 to 1 and the control plane 2 to 8"));
	// A control plane of before the first release.
	assert_int_equal(hello(3, 3, peer, count), EPROTO);
	assert_int_equal(client.sink.version, 0);
	assert_non_null(
		strstr(client.status.text, "data plane speaks contract versions 1 to 1 and the control plane 3 to 3"));
	// Another layout in the same version is refused; one of another version is ignored.
	peer[10].digest ^= 1;
	assert_int_equal(hello(API_VERSION, API_VERSION, peer, count), EPROTO);
	assert_non_null(strstr(client.status.text, "struct api_session is laid out otherwise"));
	peer[10].version++;
	assert_int_equal(hello(API_VERSION, API_VERSION + 1, peer, count), 0);
	// The peer compares a longer part; an unknown part is skipped.
	peer[10].version--;
	peer[10].size += 8;
	assert_int_equal(hello(API_VERSION, API_VERSION, peer, count), 0);
	peer[11].part = 4711;
	peer[11].digest = 1;
	assert_int_equal(hello(API_VERSION, API_VERSION, peer, count), 0);
	// A size in the middle of a field belongs to no former version.
	peer[10].size = 5;
	assert_int_equal(hello(API_VERSION, API_VERSION, peer, count), EPROTO);
	clear();
	assert_int_equal(request(API_HELLO), EPROTO);
	assert_non_null(strstr(client.status.text, "this HELLO is not of contract version 1 or later"));
}

// A struct that ends earlier on the other side is known by the digest of the fields that both have.
static void prefixes(void **state)
{
	for (size_t i = 0; i < RTE_DIM(api_layout_parts); i++)
		for (uint16_t k = 0; k < api_layout_parts[i].steps; k++) {
			const struct api_layout_step *step = &api_layout_parts[i].step[k];
			struct api_layout shorter = {.version = API_VERSION,
				.part = api_layout_parts[i].part,
				.size = step->size,
				.digest = step->digest};

			assert_int_equal(contract_compare(&shorter, 1, API_VERSION), 0);
			shorter.digest++;
			assert_int_equal(contract_compare(&shorter, 1, API_VERSION), EPROTO);
		}
}

static void write_message(int fd, uint16_t type, uint32_t bytes)
{
	struct api_header h = {.magic = API_MAGIC, .type = type, .length = message.used};
	uint8_t all[sizeof(h) + 4096];

	assert_true(message.used <= 4096);
	memcpy(all, &h, sizeof(h));
	memcpy(all + sizeof(h), message.bytes, message.used);
	if (bytes == 0)
		bytes = (uint32_t)sizeof(h) + message.used;
	assert_int_equal(write(fd, all, bytes), bytes);
	socket_poll(0);
}

static void hello_comes_first(void **state)
{
	int fd = kit_dial();

	clear();
	write_message(fd, API_BEGIN, 0);
	assert_true(kit_is_closed(fd));
	close(fd);
	fd = kit_dial_hello();
	clear();
	write_message(fd, API_BEGIN, 0);
	assert_false(kit_is_closed(fd));
	kit_hang_up(fd);
}

// One byte a second is treated like no HELLO.
static void endless_hello(void **state)
{
	struct api_header h = {.magic = API_MAGIC, .type = API_HELLO, .length = 32 << 10};
	int fd = kit_dial();
	int seconds = 0;

	assert_int_equal(write(fd, &h, sizeof(h)), sizeof(h));
	for (; seconds < 60 && !kit_is_closed(fd); seconds++) {
		ssize_t k = send(fd, "x", 1, MSG_NOSIGNAL);
		(void)k;
		kit_advance(1000000);
		socket_poll(0);
	}
	assert_in_range(seconds, 9, 12);
	close(fd);
}

// A peer dies within a message of an open transaction: it leaves nothing, and the next one may begin.
static void dies_mid_frame(void **state)
{
	make_session();
	int fd = kit_dial_hello();

	clear();
	write_message(fd, API_BEGIN, 0);
	add_head(API_PATH, "later", 0, 0);
	struct api_path p = {.local = kit_address("10.0.0.1"), .peer = kit_address("10.0.0.7")};
	add(API_PART_PATH, sizeof(p), 1, &p, sizeof(p));
	write_message(fd, API_PUT, 0);
	add_head(API_PATH, "last", 0, 0);
	add(API_PART_PATH, sizeof(p), 1, &p, sizeof(p));
	write_message(fd, API_PUT, 60);
	kit_hang_up(fd);
	uint32_t length;
	assert_null(object_find(API_PATH, "later", &length));
	clear();
	assert_int_equal(request(API_BEGIN), 0);
	assert_int_equal(request(API_ABORT), 0);
}

static int open_socket(void **state)
{
	return kit_socket_open();
}

static int shut_socket(void **state)
{
	socket_close();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_sizes),
		cmocka_unit_test(digest_of_arrays),
		cmocka_unit_test(unknown_tails),
		cmocka_unit_test(sizes_that_lie),
		cmocka_unit_test(lists),
		cmocka_unit_test(versions),
		cmocka_unit_test(hellos),
		cmocka_unit_test(prefixes),
		cmocka_unit_test_setup_teardown(hello_comes_first, open_socket, shut_socket),
		cmocka_unit_test_setup_teardown(endless_hello, open_socket, shut_socket),
		cmocka_unit_test_setup_teardown(dies_mid_frame, open_socket, shut_socket),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
