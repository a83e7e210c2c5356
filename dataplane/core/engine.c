// SPDX-License-Identifier: Apache-2.0
// The ENGINE object: starts workers, the packet pool and the modules, once in the life of the process.
#include "core/engine.h"
#include "core/hold.h"
#include "core/log.h"
#include <errno.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <string.h>

#define MIN_BUFFERS 512

static int failed;

int engine_failed(void)
{
	return failed;
}

ENGINE_LIMIT(buffer_size, 512, 16384)

// Whether a worker may be pinned to its CPU: tried, as isolated CPUs are allowed, but in no list of the process.
static int check_cpus(const struct api_engine *e)
{
	cpu_set_t ours, one;
	int error = 0;

	if (!engine_mode.threads || sched_getaffinity(0, sizeof(ours), &ours) != 0)
		return 0;
	for (uint32_t i = 0; i < e->workers && error == 0; i++) {
		if (e->cpu[i] < 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET((uint32_t)e->cpu[i], &one);
		if (sched_setaffinity(0, sizeof(one), &one) != 0)
			error = object_error(EINVAL,
				"engine.cpus: worker %u may not run on CPU %d: it is not there, or not in the cpuset "
				"of ours",
				i, e->cpu[i]);
	}
	sched_setaffinity(0, sizeof(ours), &ours);
	return error;
}

static int check(const struct api_engine *e)
{
	if (e->workers < 1 || e->workers > API_MAX_WORKERS)
		return object_error(EINVAL, "workers is %u, must be 1..%d", e->workers, API_MAX_WORKERS);
	if (e->packet_buffers < MIN_BUFFERS || e->packet_buffers > 1u << 22)
		return object_error(
			EINVAL, "packet_buffers is %u, must be %d..%u", e->packet_buffers, MIN_BUFFERS, 1u << 22);
	if (e->max_sessions < 1 || e->max_sessions > 1u << 24)
		return object_error(EINVAL, "max_sessions is %u, must be 1..%u", e->max_sessions, 1u << 24);
	if (e->max_flows < 1 || e->max_flows > 1u << 26)
		return object_error(EINVAL, "max_flows is %u, must be 1..%u", e->max_flows, 1u << 26);
	int error = check_cpus(e);
	return error != 0 ? error : hold_start(e);
}

#define LIFETIME_ROUNDS 15u // of flow_idle: as many as an entry counts (flow/tuple.h)

static int check_times(const struct api_engine *e)
{
	uint32_t idle = e->flow_idle ? e->flow_idle : API_FLOW_IDLE;

	if (e->flow_lifetime > (uint64_t)idle * LIFETIME_ROUNDS)
		return object_error(EINVAL, "flow_lifetime is %u, at most %u times flow_idle, %u, are possible",
			e->flow_lifetime, LIFETIME_ROUNDS, idle);
	return 0;
}

// The rates and times, which may change while the engine runs; everything else is decided once, since tables are
// sized by it.
static struct api_engine without_rates(const struct api_engine *e)
{
	struct api_engine fixed = *e;

	fixed.icmp_error_rate = fixed.error_indication_rate = fixed.echo_rate = fixed.punt_rate = 0;
	fixed.punt_subscriber_rate = fixed.punt_line_rate = fixed.punt_s_tag_rate = fixed.punt_port_rate = 0;
	fixed.solicitation_rate = fixed.event_rate = fixed.buffer_seconds = 0;
	fixed.flow_rate = fixed.subscriber_flow_rate = fixed.flow_idle = fixed.flow_lifetime = 0;
	return fixed;
}

static int stage(struct object_change *c)
{
	if (c->body == NULL)
		return engine_get() != NULL ? object_error(EBUSY, "the engine cannot be deleted while it runs") : 0;
	int error = modules_check(c->body);
	if (error == 0)
		error = check_times(c->body);
	if (error != 0 || engine_get() == NULL)
		return error != 0 ? error : check(c->body);
	// Also after a refused first transaction, which has started the engine.
	struct api_engine have = without_rates(engine_get()), want = without_rates(c->body);
	if (memcmp(&have, &want, sizeof(have)) != 0)
		return object_error(EBUSY,
			"engine settings other than rates and times are fixed until the data plane is restarted");
	return 0;
}

static int start_pool(const struct api_engine *e)
{
	uint32_t room = (e->buffer_size ? e->buffer_size : 2048) + RTE_PKTMBUF_HEADROOM;
	// Buffers in one thread's cache are lost to others: at most a sixteenth of all, and half as many again while it
	// drains.
	uint32_t cache = e->packet_buffers / (16 * (e->workers + 1));

	control_worker.pool = rte_pktmbuf_pool_create(
		"packets", e->packet_buffers, RTE_MIN(cache, 256u), PACKET_PRIVATE, (uint16_t)room, SOCKET_ID_ANY);
	if (control_worker.pool == NULL)
		return object_error(ENOMEM, "no memory for %u packet buffers of %u bytes: %s", e->packet_buffers, room,
			rte_strerror(rte_errno));
	return 0;
}

// Runs at the end of staging, because every other object of the transaction needs its results. It stays even if another
// object is refused. After a failure here only a restart of the process helps; the error says what was short.
static int start(const struct api_engine *e)
{
	int error = start_pool(e);

	if (error == 0 && (host_path_start(e) != 0 || nodes_io_start() != 0 || graph_register_nodes() != 0))
		error = object_error(ENOMEM, "the packet graph cannot be set up (see the data plane's log)");
	if (error == 0)
		error = worker_create_all(e);
	return error != 0 ? error : modules_start(e);
}

static int finish_stage(void)
{
	uint32_t length;
	const struct api_engine *e = object_find(API_ENGINE, "engine", &length);

	if (engine_get() != NULL || e == NULL)
		return 0;
	int error = start(e);
	if (error == 0)
		error = worker_start_all();
	if (error == ENOMEM && engine_memory_limit_mb != 0)
		object_explain_also("; the memory limit of its cgroup is %u MB", engine_memory_limit_mb);
	failed = error != 0;
	if (failed) {
		struct api_status why = {0};

		object_error_status(&why);
		LOG(ERR, "the engine does not start: %s\n", why.text);
	}
	return error;
}

static void commit(struct object_change *c)
{
	if (c->body != NULL)
		modules_tell(c->body);
}

static const struct object_ops engine_ops = {
	OBJECT_OF_ONE(API_ENGINE, "engine", struct api_engine),
	.stage = stage,
	.commit = commit,
	.finish_stage = finish_stage,
};
OBJECT_REGISTER(engine_ops)
