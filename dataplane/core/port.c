// SPDX-License-Identifier: Apache-2.0
// The PORT object, the port table, and the workers' receive queues.
#include "core/port.h"
#include "core/module.h"
#include "core/object.h"
#include "core/packet.h"
#include "core/reason.h"
#include "core/reply.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DRIVERS 8
#define MTU_MIN 256
#define MTU_MAX 9216

static struct {
	const struct port_driver *driver[MAX_DRIVERS];
	uint32_t drivers;
	struct port *staged[MAX_PORTS]; // as it will be after the open transaction
	struct port_queues *queues[API_MAX_WORKERS];
	struct port_queues *old_queues[API_MAX_WORKERS];
	void (*closing)(struct port *p);
} ports;

struct port *port_table[MAX_PORTS];

DROP_REASON(no_buffer, "receive-no-buffer",
	"no packet buffer was free for a frame; it is counted beside the sum of packets. See engine.packet_buffers, "
	"show total: who holds them")

void port_closing_watch(void (*fn)(struct port *p))
{
	ports.closing = fn;
}

void port_closing(struct port *p)
{
	if (ports.closing != NULL)
		ports.closing(p);
}

void port_driver_register(const struct port_driver *d)
{
	if (ports.drivers == MAX_DRIVERS)
		rte_panic("more than %d port drivers\n", MAX_DRIVERS);
	ports.driver[ports.drivers++] = d;
}

int port_linked(struct port *p)
{
	return p != NULL && (p->driver->link == NULL || p->driver->link(p));
}

struct port *port_by_name(const char *name)
{
	for (int i = 0; i < MAX_PORTS; i++)
		if (ports.staged[i] != NULL && strncmp(ports.staged[i]->name, name, API_NAME) == 0)
			return ports.staged[i];
	return NULL;
}

static const struct port_driver *driver_of(const char *name)
{
	const struct port_driver *rest = NULL;

	for (uint32_t i = 0; i < ports.drivers; i++) {
		if (strcmp(ports.driver[i]->name, name) == 0)
			return ports.driver[i];
		if (strcmp(ports.driver[i]->name, "*") == 0)
			rest = ports.driver[i];
	}
	return rest;
}

static int check(const char *key, const struct api_port *want)
{
	if (engine_get() == NULL)
		return object_error(EINVAL, "port %s comes before the engine", key);
	if (memchr(want->driver, 0, API_NAME) == NULL || memchr(want->devargs, 0, API_TEXT) == NULL ||
		memchr(want->xconnect, 0, API_NAME) == NULL || want->driver[0] == 0)
		return object_error(EINVAL, "port %s has a text without end or no driver", key);
	if (want->role != API_ROLE_ACCESS && want->role != API_ROLE_CORE)
		return object_error(EINVAL, "port %s has role %u, must be access or core", key, want->role);
	if (want->sign_in > (want->role == API_ROLE_ACCESS ? API_SIGN_IN_PACKET : 0))
		return object_error(EINVAL, "port %s has sign_in %u, which its role has not", key, want->sign_in);
	if (want->mtu < MTU_MIN || want->mtu > MTU_MAX)
		return object_error(EINVAL, "port %s has mtu %u, must be %d..%d", key, want->mtu, MTU_MIN, MTU_MAX);
	if (want->members > API_MAX_MEMBERS)
		return object_error(EINVAL, "port %s has %u members, at most %d", key, want->members, API_MAX_MEMBERS);
	for (uint32_t i = 0; i < want->members; i++)
		if (memchr(want->member[i].driver, 0, API_NAME) == NULL ||
			memchr(want->member[i].devargs, 0, API_TEXT) == NULL)
			return object_error(EINVAL, "port %s has a member whose text does not end", key);
	if (want->offload > API_OFFLOAD_AUTO)
		return object_error(
			EINVAL, "port %s has offload %u, must be 0..%d", key, want->offload, API_OFFLOAD_AUTO);
	if (want->queues > API_MAX_WORKERS)
		return object_error(EINVAL, "port %s has %u queues, at most %d", key, want->queues, API_MAX_WORKERS);
	return 0;
}

// The cross-connect of a port is found when its packets need it, because the two name each other.
static uint16_t xconnect_of(const struct port *p)
{
	if (p->want.xconnect[0] == 0)
		return PORT_NONE;
	struct port *to = port_by_name(p->want.xconnect);
	return to ? to->index : PORT_NONE;
}

static int index_for(const char *name, uint16_t *index)
{
	struct port *same = port_by_name(name);

	if (same != NULL) {
		*index = same->index;
		return 0;
	}
	for (uint16_t i = 0; i < MAX_PORTS; i++)
		if (ports.staged[i] == NULL && port_table[i] == NULL) {
			*index = i;
			return 0;
		}
	return object_error(ENOSPC, "more than %d ports", MAX_PORTS);
}

// Whether a change can be made without opening the device again.
static int only_live_differs(const struct api_port *a, const struct api_port *b)
{
	struct api_port x = *a;

	memcpy(x.xconnect, b->xconnect, sizeof(x.xconnect));
	x.sign_in = b->sign_in;
	return memcmp(&x, b, sizeof(x)) == 0;
}

static int stage(struct object_change *c)
{
	const struct api_port *want = c->body;
	struct port *old = port_by_name(c->key);
	uint16_t index = 0;

	if (want == NULL) {
		c->staged = NULL;
		c->replaced = old;
		if (old != NULL)
			ports.staged[old->index] = NULL;
		return 0;
	}
	int error = check(c->key, want);
	if (error == 0)
		error = index_for(c->key, &index);
	if (error != 0)
		return error;
	c->replaced = old;
	if (old != NULL && only_live_differs(want, &old->want)) {
		c->staged = old; // same device; commit() updates the rest
		return 0;
	}
	if (old != NULL)
		return object_error(EBUSY,
			"port %s: only xconnect and sign_in can change while it exists; give the new settings a new "
			"name",
			c->key);
	struct port *p = rte_zmalloc("port", sizeof(*p), CACHE_LINE);
	if (p == NULL)
		return object_error(ENOMEM, "no memory for port %s", c->key);
	snprintf(p->name, sizeof(p->name), "%s", c->key);
	p->index = index;
	p->role = want->role;
	p->mtu = want->mtu;
	p->want = *want;
	p->xconnect = PORT_NONE;
	p->device = -1;
	p->driver = driver_of(want->driver);
	error = p->driver ? p->driver->open(p, want) : object_error(ENODEV, "no driver %s", want->driver);
	if (error != 0) {
		rte_free(p);
		return error;
	}
	ports.staged[index] = p;
	c->staged = p;
	return 0;
}

static int finish_stage(void)
{
	for (int i = 0; i < MAX_PORTS; i++) {
		struct port *p = ports.staged[i];
		uint32_t length;

		if (p == NULL)
			continue;
		const struct api_port *want = object_find(API_PORT, p->name, &length);
		if (want != NULL && want->xconnect[0] != 0 && port_by_name(want->xconnect) == NULL)
			return object_error(ENOENT, "port %s is cross-connected to %s, which does not exist", p->name,
				want->xconnect);
	}
	return 0;
}

static void discard(struct object_change *c)
{
	struct port *p = c->staged, *old = c->replaced;

	if (p != NULL && p != old) {
		ports.staged[p->index] = NULL;
		p->driver->close(p);
		rte_free(p);
	}
	if (old != NULL)
		ports.staged[old->index] = old;
}

static void commit(struct object_change *c)
{
	struct port *p = c->staged, *old = c->replaced;

	if (p == NULL && old != NULL)
		__atomic_store_n(&port_table[old->index], NULL, __ATOMIC_RELEASE);
	if (p != NULL) {
		p->want = *(const struct api_port *)c->body;
		p->sign_in = (uint8_t)p->want.sign_in;
		__atomic_store_n(&port_table[p->index], p, __ATOMIC_RELEASE);
	}
}

// Queue q of port p belongs to worker (p + q) mod workers: ports with one queue spread over the workers.
static void assign_queues(void)
{
	uint32_t n = worker_count();

	for (uint32_t w = 0; w < n; w++) {
		struct port_queues *q = calloc(1, sizeof(*q));

		if (q == NULL)
			return; // the old assignment stays
		for (uint16_t i = 0; i < MAX_PORTS; i++) {
			struct port *p = port_table[i];

			for (uint16_t r = 0; p != NULL && r < p->rx_queues; r++)
				if ((p->rx_queues == n ? r : (uint32_t)(i + r) % n) == w && q->count < MAX_QUEUES) {
					q->entry[q->count].port = i;
					q->entry[q->count++].queue = r;
				}
		}
		free(ports.old_queues[w]);
		ports.old_queues[w] = ports.queues[w];
		ports.queues[w] = q;
		__atomic_store_n(&worker_get(w)->queues, q, __ATOMIC_RELEASE);
		worker_wake(w); // it may sleep on other descriptors
	}
}

static void finish_commit(void)
{
	for (int i = 0; i < MAX_PORTS; i++)
		if (port_table[i] != NULL)
			port_table[i]->xconnect = xconnect_of(port_table[i]);
	assign_queues();
}

static void release(struct object_change *c)
{
	struct port *p = c->staged, *old = c->replaced;

	if (old != NULL && old != p) {
		port_closing(old);
		old->driver->close(old);
		rte_free(old);
	}
	for (uint32_t w = 0; w < API_MAX_WORKERS; w++) {
		free(ports.old_queues[w]);
		ports.old_queues[w] = NULL;
	}
}

static const struct object_ops port_ops = {
	OBJECT_OF_ONE(API_PORT, "port", struct api_port),
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
	.finish_stage = finish_stage,
	.finish_commit = finish_commit,
};
OBJECT_REGISTER(port_ops)

static void port_row(struct stats_sink *s, struct port *p)
{
	struct api_port_row row = {0};

	snprintf(row.name, sizeof(row.name), "%s", p->name);
	snprintf(row.driver, sizeof(row.driver), "%s", p->want.driver);
	row.role = p->role;
	row.mtu = p->mtu;
	row.up = p->up;
	row.gone = p->gone;
	memcpy(row.mac, p->mac.addr_bytes, 6);
	for (uint32_t w = 0; w < worker_count(); w++) {
		row.rx_packets += p->counters[w].rx_packets;
		row.rx_bytes += p->counters[w].rx_bytes;
		row.tx_packets += p->counters[w].tx_packets;
		row.tx_bytes += p->counters[w].tx_bytes;
		row.tx_dropped += p->counters[w].tx_dropped;
		row.rx_no_buffer += p->counters[w].rx_no_buffer;
	}
	row.steering = worker_count() == 1 ? API_STEERING_NONE : RTE_MAX(p->steering, API_STEERING_SOFTWARE);
	row.offload = p->offload.level;
	row.offload_entries = p->offload.entries;
	row.offload_refused = p->offload.refused;
	snprintf(row.offload_why, sizeof(row.offload_why), "%s", p->offload.why);
	if (p->driver->stats != NULL)
		p->driver->stats(p, &row);
	stats_row(s, &row, sizeof(row));
}

// One step each: a device may be slow to report its counters.
static uint64_t port_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	struct port *p = place < MAX_PORTS ? port_table[place] : NULL;

	if (p != NULL && (key[0] == 0 || strcmp(key, p->name) == 0))
		port_row(s, p);
	return stats_next(place, MAX_PORTS);
}

void port_no_buffer(struct port *p, struct worker *w, uint64_t frames)
{
	p->counters[w->id].rx_no_buffer += frames;
	w->reason[no_buffer.id] += frames;
}

// Devices count by themselves; the reason follows.
static void follow_devices(uint64_t now_ns)
{
	for (int i = 0; i < MAX_PORTS; i++) {
		struct port *p = port_table[i];

		if (p == NULL || p->driver->no_buffer == NULL)
			continue;
		uint64_t count = p->driver->no_buffer(p);
		if (count > p->no_buffer_seen)
			control_worker.reason[no_buffer.id] += count - p->no_buffer_seen;
		p->no_buffer_seen = count;
	}
}

RTE_INIT(port_show)
{
	timer_register(100, follow_devices);
	stats_table_register(API_TABLE_PORT, sizeof(struct api_port_row), port_rows);
}
