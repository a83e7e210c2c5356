// SPDX-License-Identifier: Apache-2.0
// A port: where frames enter and leave the graph, with one small interface for all drivers.
//
// The control thread makes a port, then publishes it; it withdraws it and frees it after a grace period. Workers call
// rx and tx with their own queue number, so a driver needs no lock. Counters are per worker; the control thread adds
// them up.
#ifndef CORE_PORT_H
#define CORE_PORT_H

#include "core/worker.h"
#include "isthmus_api.h"
#include "wire/cache_line.h"
#include <rte_ether.h>
#include <rte_mbuf.h>

#define MAX_PORTS 64
#define MAX_QUEUES (MAX_PORTS * API_MAX_WORKERS) // of one worker: all of them, at worst

// Receive queues of one worker; immutable once a worker can see it.
struct port_queues {
	uint16_t count;
	struct {
		uint16_t port, queue;
	} entry[MAX_QUEUES];
};

struct port;

struct port_counters {
	uint64_t rx_packets, rx_bytes, rx_no_buffer, tx_packets, tx_bytes, tx_dropped;
} cache_aligned;

enum {
	PORT_POLLED = -1, // it has no descriptor
	PORT_READY = -2, // it has frames now
	PORT_SILENT = -3, // none can come; when that changes, the driver wakes the worker
};

struct port_driver {
	const char *name; // what api_port.driver says; "*" takes the rest
	// Control thread; no worker sees the port then. Returns 0 or a positive errno after object_error().
	int (*open)(struct port *p, const struct api_port *want);
	void (*close)(struct port *p);
	// Worker. Fills at most VECTOR mbufs; each has a clean packet_of() head except what port-rx writes.
	uint16_t (*rx)(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
	// Worker. Sends; returns how many were taken, the caller keeps the rest.
	uint16_t (*tx)(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
	// Worker, before it sleeps: a descriptor that can be read (poll(2)) as soon as the queue has frames, or one of
	// these. NULL: PORT_POLLED.
	int (*rx_fd)(struct port *p, uint16_t queue);
	// Control thread: 1 while the device has a link. NULL: always.
	int (*link)(struct port *p);
	// Control thread: counters that only the device has. May be NULL.
	void (*stats)(struct port *p, struct api_port_row *row);
	// Control thread: how often the device found no buffer since it was opened. NULL: rx reports it by
	// port_no_buffer().
	uint64_t (*no_buffer)(struct port *p);
};

// The device's part of the sessions (modules/offload). Written by the control thread.
struct port_offload {
	uint8_t level; // enum api_offload, in force; workers
	uint8_t asked; // the device was
	uint32_t entries;
	uint64_t refused;
	char why[API_OFFLOAD_WHY];
};

struct port {
	char name[API_NAME];
	uint16_t index; // in the port table; struct packet refers to it
	uint16_t xconnect; // index of the port that takes all frames, or PORT_NONE
	uint32_t role; // enum api_role
	uint32_t mtu;
	uint16_t rx_queues, tx_queues;
	struct rte_ether_addr mac;
	uint8_t up;
	uint8_t steering; // enum api_steering; of the driver, 0: SOFTWARE
	uint8_t marks; // the device marks frames (modules/offload)
	uint8_t gone; // the device was taken away; written by the control thread
	uint8_t sign_in; // API_SIGN_IN_*; written by the control thread
	int32_t device; // rte_ethdev's number; -1: none
	const struct port_driver *driver; // another one, without a device, once that is gone
	void *private; // of the driver
	struct api_port want;
	uint64_t no_buffer_seen; // of the driver's no_buffer(), by the control thread
	struct port_offload offload;
	struct port_counters counters[API_MAX_WORKERS];
};

// The worker that receives: frames for which there was no packet buffer. They were not received, so they
// are no part of the sum of packets; show drop names them receive-no-buffer.
void port_no_buffer(struct port *p, struct worker *w, uint64_t frames);

// fn is called for a port that no worker uses any more and that is about to be closed. From a constructor; one
// function.
void port_closing_watch(void (*fn)(struct port *p));
void port_closing(struct port *p); // calls that function
void port_driver_register(const struct port_driver *d); // from constructors
// The node that gets the frames of ports of this role. From constructors; without one for each role the engine does
// not start.
void port_input_register(enum api_role role, const char *node);
// The node that gets the frames of core ports whose device marks some of them. From a constructor.
void port_marks_register(const char *node);
// Published ports; entries are replaced by the control thread and freed after a grace period.
extern struct port *port_table[MAX_PORTS];
// NULL when there is none; workers and control thread.
static inline struct port *port_get(uint16_t index)
{
	return likely(index < MAX_PORTS) ? __atomic_load_n(&port_table[index], __ATOMIC_ACQUIRE) : NULL;
}
int port_linked(struct port *p); // control thread: 1 while its device has a link; NULL has none
struct port *port_by_name(const char *name); // control thread; sees ports of the open transaction

#endif
