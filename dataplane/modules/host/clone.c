// SPDX-License-Identifier: Apache-2.0
// CLONE objects: opens the kernel devices of interfaces and keeps them open. A failed device is retried every second:
// its namespace may not exist yet, and no packet waits for it.
#include "core/control.h"
#include "core/object.h"
#include "core/port.h"
#include "core/socket.h"
#include "host/clone_table.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MAX_CLONES 256
#define DEVICES_PER_VISIT 4 // of a vector of frames each; epoll gives others the next time
#define RETRY_NS 1000000000ull
#define LINKS_MS 10
#define ALIVE_NS 200000000ull

uint8_t clone_interfaces[CLONE_INTERFACES];

static struct {
	struct clone clone[MAX_CLONES];
	struct clone *of[CLONE_INTERFACES]; // by interface
	int epoll; // of all devices; 0: not yet
	uint64_t alive_ns; // next look
} table;

static uint32_t count; // while a set is checked

struct clone *clone_of(uint32_t interface)
{
	return interface < CLONE_INTERFACES ? table.of[interface] : NULL;
}

static void ready(void)
{
	struct epoll_event event[DEVICES_PER_VISIT];
	int n = epoll_wait(table.epoll, event, DEVICES_PER_VISIT, 0);

	for (int k = 0; k < n; k++) {
		struct clone *c = event[k].data.ptr;
		const struct interface *i = interface_get(c->index);

		if (event[k].events & (EPOLLERR | EPOLLHUP))
			table.alive_ns = 0; // deleted by hand
		if (c->tap.fd >= 0 && i != NULL)
			clone_down(c, i);
	}
}

static int listen_to(struct clone *c)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};

	if (table.epoll == 0) {
		table.epoll = epoll_create1(EPOLL_CLOEXEC);
		if (table.epoll > 0)
			control_listen(table.epoll, ready);
		else
			table.epoll = 0;
	}
	return table.epoll == 0 ? -1 : epoll_ctl(table.epoll, EPOLL_CTL_ADD, c->tap.fd, &event);
}

static void open_clone(struct clone *c, const struct interface *i, uint64_t now)
{
	if (now < c->retry_ns || engine_without_threads())
		return;
	c->retry_ns = now + RETRY_NS;
	c->tap.device = c->device;
	c->tap.netns = c->netns;
	if (tap_open(&c->tap, &i->mac, i->mtu, c->why, sizeof(c->why)) != 0)
		return;
	if (listen_to(c) != 0) {
		snprintf(c->why, sizeof(c->why), "epoll: %s", strerror(errno));
		tap_close(&c->tap);
		return;
	}
	c->why[0] = 0;
	c->linked = 2; // neither
}

static void look_after(struct clone *c, int check_alive, uint64_t now)
{
	const struct interface *i = interface_get(c->index);

	if (i == NULL)
		return;
	if (c->tap.fd >= 0 && check_alive && !tap_alive(&c->tap, &i->mac, c->why, sizeof(c->why)))
		tap_close(&c->tap);
	if (c->tap.fd < 0)
		open_clone(c, i, now);
	int link = port_linked(port_get(i->port));
	if (c->tap.fd >= 0 && link != c->linked)
		tap_link(&c->tap, link);
	c->linked = (uint8_t)link;
}

static void tick(uint64_t now)
{
	int check_alive = now >= table.alive_ns;

	if (check_alive)
		table.alive_ns = now + ALIVE_NS;
	for (uint32_t k = 0; k < MAX_CLONES; k++)
		if (table.clone[k].interface[0] != 0)
			look_after(&table.clone[k], check_alive, now);
}

static int check(const char *key, const void *body, uint32_t length)
{
	const struct api_clone *want = body;
	const struct interface *i = interfaces_by_name(interfaces_next(), key);

	if (i == NULL)
		return object_error(ENOENT, "clone %s: there is no such interface", key);
	if (i->role != API_ROLE_CORE)
		return object_error(EINVAL, "clone %s: the interface is on an access port", key);
	if (want->device[0] == 0 || memchr(want->device, 0, sizeof(want->device)) == NULL ||
		strpbrk(want->device, "/ \t\n:%") != NULL || strcmp(want->device, ".") == 0 ||
		strcmp(want->device, "..") == 0)
		return object_error(EINVAL, "clone %s: that is no name of a network device", key);
	if (memchr(want->netns, 0, sizeof(want->netns)) == NULL || (want->netns[0] != 0 && want->netns[0] != '/'))
		return object_error(EINVAL, "clone %s: the network namespace is named by its file", key);
	return 0;
}

static int stage(struct object_change *c)
{
	return c->body == NULL ? 0 : check(c->key, c->body, c->length);
}

static void commit(struct object_change *c)
{
}

struct pair {
	const char *key;
	const struct api_clone *want;
};

static int compare_one(const char *key, const void *body, uint32_t length, void *arg)
{
	const struct api_clone *one = body;
	const struct pair *p = arg;

	if (strcmp(key, p->key) == 0 || strcmp(one->device, p->want->device) != 0 ||
		strcmp(one->netns, p->want->netns) != 0)
		return 0;
	return object_error(EEXIST, "clones %s and %s have one device", p->key, key);
}

static int check_one(const char *key, const void *body, uint32_t length, void *arg)
{
	struct pair p = {key, body};

	if (++count > MAX_CLONES)
		return object_error(ENOSPC, "clone %s: more than %d clones", key, MAX_CLONES);
	return object_each(API_CLONE, compare_one, &p);
}

static int finish_stage(void)
{
	count = 0;
	return object_each(API_CLONE, check_one, NULL);
}

static struct clone *find(const char *interface)
{
	for (uint32_t k = 0; k < MAX_CLONES; k++)
		if (strcmp(table.clone[k].interface, interface) == 0)
			return &table.clone[k];
	return NULL;
}

static int want_one(const char *key, const void *body, uint32_t length, void *arg)
{
	const struct api_clone *want = body;
	struct clone *c = find(key);

	if (c != NULL)
		c->wanted = memcmp(c->device, want->device, sizeof(c->device)) == 0 &&
			    memcmp(c->netns, want->netns, sizeof(c->netns)) == 0;
	return 0;
}

// There is room: finish_stage() has counted.
static int make_one(const char *key, const void *body, uint32_t length, void *arg)
{
	const struct api_clone *want = body;
	struct clone *c = find(key) == NULL ? find("") : NULL;

	if (c == NULL)
		return 0;
	*c = (struct clone){.tap = {.fd = -1, .inet = -1}, .index = UINT32_MAX};
	memcpy(c->interface, key, sizeof(c->interface));
	memcpy(c->device, want->device, sizeof(c->device));
	memcpy(c->netns, want->netns, sizeof(c->netns));
	return 0;
}

// Indices of interfaces are what packets know.
static void index_all(void)
{
	memset(table.of, 0, sizeof(table.of));
	for (uint32_t k = 0; k < MAX_CLONES; k++) {
		struct clone *c = &table.clone[k];
		const struct interface *i =
			c->interface[0] != 0 ? interfaces_by_name(interfaces_now(), c->interface) : NULL;

		c->index = i != NULL ? i->index : UINT32_MAX;
		if (c->index < CLONE_INTERFACES)
			table.of[c->index] = c;
	}
	for (uint32_t k = 0; k < CLONE_INTERFACES; k++)
		__atomic_store_n(&clone_interfaces[k], table.of[k] != NULL, __ATOMIC_RELAXED);
}

static void finish_commit(void)
{
	for (uint32_t k = 0; k < MAX_CLONES; k++)
		table.clone[k].wanted = 0;
	object_each(API_CLONE, want_one, NULL);
	for (uint32_t k = 0; k < MAX_CLONES; k++)
		if (table.clone[k].interface[0] != 0 && !table.clone[k].wanted) {
			tap_delete(&table.clone[k].tap);
			table.clone[k].interface[0] = 0;
		}
	object_each(API_CLONE, make_one, NULL);
	index_all();
	tick(control_now_ns());
}

static const struct object_ops clone_ops = {
	OBJECT_OF_ONE(API_CLONE, "clone", struct api_clone),
	.stage = stage,
	.commit = commit,
	.finish_stage = finish_stage,
	.finish_commit = finish_commit,
	.verify = check,
};
OBJECT_REGISTER(clone_ops)

static uint64_t rows(struct stats_sink *s, const char *key, uint64_t place)
{
	for (uint32_t k = 0; k < MAX_CLONES; k++) {
		const struct clone *c = &table.clone[k];
		const struct interface *i = interface_get(c->index);
		struct api_clone_row row = {
			.attached = c->tap.fd >= 0,
			.link = c->linked == 1,
			.mtu = i != NULL ? i->mtu : 0,
			.to_kernel = c->to_kernel,
			.from_kernel = c->from_kernel,
			.refused = c->refused,
			.dropped = c->dropped,
		};

		if (c->interface[0] == 0 || (key[0] != 0 && strcmp(key, c->interface) != 0))
			continue;
		memcpy(row.name, c->interface, sizeof(row.name));
		memcpy(row.device, c->device, sizeof(row.device));
		memcpy(row.netns, c->netns, sizeof(row.netns));
		memcpy(row.why, c->why, sizeof(row.why));
		stats_row(s, &row, sizeof(row));
	}
	return 0;
}

RTE_INIT(clone_start)
{
	interface_watch(index_all);
	timer_register(LINKS_MS, tick);
	stats_table_register(API_TABLE_CLONE, sizeof(struct api_clone_row), rows);
}
