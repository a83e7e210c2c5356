// SPDX-License-Identifier: Apache-2.0
// Workers as threads, beside transactions: sessions come and go by the thousand, FARs buffer and forward, URRs are
// removed under traffic. Other sessions lose no packet and no byte of usage. CHURN_SECONDS makes it longer.
//
//   group       sessions   streams                  changes.
//   `bystander` 64         uplink, downlink         none.
//   `churn`     4096       uplink                   100 made and 100 deleted in each of 100 transactions/s.
//   `held`      16         downlink                 its FAR buffers, forwards 20 ms later.
//   `changed`   16         uplink, with filters     rules made again, its URR replaced
#include "core/engine.h"
#include "hostile/hostile.h"
#include "testkit/mobile.h"
#include <rte_cycles.h>
#include <stdlib.h>
#include <time.h>

#define BYSTANDERS 64u
#define CHURNED 4096u
#define FEW 16u
#define BATCH 100u // sessions of a transaction, each way
#define TICK_NS 10000000u
#define RATE 10000u // packets per second of a stream
#define PAYLOAD 122u
#define LOSSES_SEEN 2000 // ms until what is not there is lost

enum group { BYSTANDER, CHURN, HELD, CHANGED };

static const uint8_t gnb[6] = {2, 0, 0, 0, 0xee, 1}, router[6] = {2, 0, 0, 0, 0xee, 2};
static const uint8_t ours[2][6] = {{2, 0, 0, 0, 0x5e, 0}, {2, 0, 0, 0, 0x5e, 1}};

static const char *name_of(enum group g, uint32_t i)
{
	static char name[32];

	snprintf(name, sizeof(name), "s%u.%u", g, i);
	return name;
}

static void filters(struct kit_mobile *k)
{
	for (uint16_t port = 5000; port < 5003; port++) {
		struct api_pdr *pdr = kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1", k->pdr[0].teid, 1);

		pdr->match |= API_PDR_UE_IP;
		pdr->precedence = 10;
		kit_pdr_urr(pdr, k->urr[0].id);
		struct api_sdf *f = kit_sdf(k, pdr);
		f->remote_port[0] = f->remote_port[1] = port;
	}
}

static void put(enum group g, uint32_t i, uint8_t action, uint32_t urr)
{
	static struct kit_mobile k;
	uint32_t teid = 0x10000u * (g + 1) + i;
	char ue[32];

	snprintf(ue, sizeof(ue), "10.%u.%u.%u", 64 + g, i >> 8, i & 255);
	kit_mobile(&k, teid, ue, NULL);
	k.s.worker = (uint16_t)(i % 2);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", teid, 1)->match |= API_PDR_UE_IP;
	kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	struct api_far *down = kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", teid);
	down->action = action;
	down->buffer_packets = 1024;
	kit_qer(&k, 1, 0);
	kit_urr(&k, urr);
	for (int p = 0; p < 2; p++) {
		kit_pdr_qer(&k.pdr[p], 1);
		kit_pdr_urr(&k.pdr[p], urr);
	}
	if (g == CHANGED)
		filters(&k);
	kit_put_mobile(name_of(g, i), &k);
}

static void take(enum group g, uint32_t i)
{
	kit_delete(API_SESSION, name_of(g, i));
}

static void field(struct api_synth_template *t, uint16_t offset, uint8_t width)
{
	t->field[t->fields++] = (struct api_synth_field){
		.offset = offset, .width = width, .type = API_FIELD_ADD, .divide = 1, .step = 1};
}

static void checksum(struct api_synth_template *t, uint16_t offset)
{
	t->field[t->fields++] = (struct api_synth_field){.offset = offset, .type = API_FIELD_IP4_SUM};
}

static void keep(struct api_synth_template *t, const struct frame *f)
{
	t->length = (uint16_t)(f->length - PAYLOAD);
	memcpy(t->bytes, f->at, t->length);
	memset(t->mask, 0xff, sizeof(t->mask));
}

// The UE's packet as it is beyond the gateway (IP), or in its tunnel. The last two bytes of the UE's address count the
// flows.
static void plain(struct api_synth_template *t, const char *from, const char *to, int up, int in)
{
	static struct frame f;

	frame_payload(&f, PAYLOAD);
	frame_udp(&f, 4000, 5001);
	frame_ip(&f, from, to, 17);
	if (!in)
		f.at[8]--, frame_ip4_sum(&f);
	frame_ethernet(&f, in ? ours[1] : router, in ? router : ours[1], 0x0800);
	keep(t, &f);
	field(t, up ? 28 : 32, 2);
	checksum(t, 14);
}

static void tunnelled(struct api_synth_template *t, uint32_t teid, const char *from, const char *to, int up, int in)
{
	static struct frame f;

	frame_payload(&f, PAYLOAD);
	frame_udp(&f, 4000, 5001);
	frame_ip(&f, from, to, 17);
	frame_gtpu(&f, teid, 0xff);
	frame_udp(&f, 2152, 2152);
	frame_ip(&f, in ? "10.1.0.2" : "10.1.0.1", in ? "10.1.0.1" : "10.1.0.2", 17);
	frame_ethernet(&f, in ? ours[0] : gnb, in ? gnb : ours[0], 0x0800);
	keep(t, &f);
	field(t, 46, 4);
	field(t, up ? 64 : 68, 2);
	checksum(t, 50);
	memset(t->mask + 18, 0, 2); // identification, and with it the checksum, are our choice
	memset(t->mask + 24, 0, 2);
}

static void stream(const char *name, enum group g, uint32_t flows, int up)
{
	static struct api_synth s;
	char ue[32];

	memset(&s, 0, sizeof(s));
	snprintf(ue, sizeof(ue), "10.%u.0.0", 64 + g);
	snprintf(s.port, sizeof(s.port), "%s", up ? "ran" : "internet");
	snprintf(s.sink, sizeof(s.sink), "%s", up ? "internet" : "ran");
	s.flows = flows;
	s.share = s.check_every = s.random_order = s.sizes = 1;
	s.rate = RATE;
	s.seed = g;
	s.worker_modulo = 2;
	s.worker_divide = 1;
	tunnelled(up ? &s.in : &s.out, 0x10000u * (g + 1), up ? ue : FAR4, up ? FAR4 : ue, up, up);
	plain(up ? &s.out : &s.in, up ? ue : FAR4, up ? FAR4 : ue, up, !up);
	s.size[0] = (uint16_t)(s.in.length + PAYLOAD);
	kit_put(API_SYNTH, name, &s, sizeof(s));
}

static int ignore(struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	assert_false(h->flags & API_F_ERROR);
	return 0;
}

static void streams_run(uint32_t start)
{
	struct reply_sink sink = {.send = ignore, .owner = 1};
	struct api_stream_command c = {.start = start};

	kit_request(&sink, API_STREAM, API_PART_STREAM_COMMAND, &c, sizeof(c));
}

static struct api_synth_row row_of(const char *stream)
{
	uint32_t count;
	const struct api_synth_row *row = kit_rows(API_TABLE_SYNTH, stream, sizeof(*row), &count);

	assert_int_equal(count, 1);
	return *row;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void serve_until(uint64_t end)
{
	static const struct timespec pause = {.tv_nsec = 200000};

	do {
		control_worker.now = rte_rdtsc();
		host_path_poll();
		control_run_timers();
		nanosleep(&pause, NULL);
	} while (now_ns() < end);
}

static uint64_t reported; // bytes, by URRs of the group CHANGED

static void commit(void)
{
	uint32_t count;

	if (kit_commit() != 0)
		fail_msg("refused: %s", kit_error());
	const struct api_usage *row = event_commit_rows(&count);
	for (uint32_t i = 0; i < count; i++)
		if (row[i].seid >> 16 == CHANGED + 1)
			reported += row[i].bytes[API_UPLINK];
}

static int setup(void **state)
{
	struct api_engine e = kit_engine();
	struct api_route r = {.prefix = kit_address("0.0.0.0/0"), .via = kit_address("192.0.2.2")};

	engine_mode.threads = 1;
	e.workers = 2;
	e.packet_buffers = 16384;
	e.max_sessions = 8192;
	e.max_buffered = 8192;
	e.flags = API_ENGINE_IDLE_SLEEP; // machines that run tests are small
	kit_start(&e);
	kit_begin();
	for (int i = 0; i < 2; i++) {
		struct api_port p = {.driver = "synth", .role = API_ROLE_CORE, .mtu = 1500};

		memcpy(p.mac, ours[i], 6);
		kit_put(API_PORT, i ? "internet" : "ran", &p, sizeof(p));
	}
	kit_interface("n3", "ran", "10.1.0.1/24", NULL);
	kit_interface("n6", "internet", "192.0.2.1/24", NULL);
	kit_neighbour("n3", "10.1.0.2", gnb);
	kit_neighbour("n6", "192.0.2.2", router);
	kit_put(API_ROUTE, "0.0.0.0/0", &r, sizeof(r));
	kit_path("gnb", "10.1.0.1", "10.1.0.2");
	kit_instance("access", "n3", "10.1.0.1", API_LOOKUP_NONE, NULL);
	kit_instance("core", "n6", NULL, API_LOOKUP_DESTINATION, "10.64.0.0/14");
	commit();
	kit_begin();
	for (uint32_t i = 0; i < BYSTANDERS; i++)
		put(BYSTANDER, i, API_FAR_FORWARD, 1);
	for (uint32_t i = 0; i < FEW; i++) {
		put(HELD, i, API_FAR_FORWARD, 1);
		put(CHANGED, i, API_FAR_FORWARD, 1);
	}
	stream("bystander-up", BYSTANDER, BYSTANDERS, 1);
	stream("bystander-down", BYSTANDER, BYSTANDERS, 0);
	stream("churn", CHURN, CHURNED, 1);
	stream("held", HELD, FEW, 0);
	stream("changed", CHANGED, FEW, 1);
	commit();
	return 0;
}

static int teardown(void **state)
{
	engine_stop_workers();
	return 0;
}

// Transaction number n.
static void one_tick(uint32_t n)
{
	uint32_t half = CHURNED / 2;

	kit_begin();
	for (uint32_t b = 0; b < BATCH; b++) {
		uint64_t made = (uint64_t)n * BATCH + b;

		put(CHURN, (uint32_t)(made % CHURNED), API_FAR_FORWARD, 1);
		if (made >= half)
			take(CHURN, (uint32_t)((made - half) % CHURNED));
	}
	for (uint32_t i = 0; i < FEW; i++) {
		if (n % 4 == i % 4)
			put(HELD, i, n / 4 % 2 ? API_FAR_FORWARD : API_FAR_BUFFER | API_FAR_NOTIFY, 1);
		if (n % 4 == (i + 1) % 4)
			put(CHANGED, i, API_FAR_FORWARD, 1 + n / 4 % 2);
	}
	commit();
}

static void all_there(const char *stream)
{
	struct api_synth_row row = row_of(stream);
	uint64_t end = now_ns() + LOSSES_SEEN * 1000000ull;

	while (row.lost != 0 && now_ns() < end) {
		serve_until(0);
		row = row_of(stream);
	}
	print_message("  %-14s offered %lu, lost %lu, wrong %lu\n", stream, row.offered, row.lost, row.wrong);
	if (row.lost != 0)
		kit_print();
	assert_true(row.offered > 0);
	assert_int_equal(row.checked, row.received);
	assert_int_equal(row.lost, 0);
	assert_int_equal(row.wrong, 0);
	assert_int_equal(row.stray, 0);
}

static void sessions_come_and_go(void **state)
{
	const char *text = getenv("CHURN_SECONDS");
	uint32_t ticks = 100 * (text ? (uint32_t)atoi(text) : 2);
	uint64_t begin = now_ns();

	streams_run(1);
	for (uint32_t n = 0; n < ticks; n++) {
		one_tick(n);
		serve_until(begin + (n + 1ull) * TICK_NS);
	}
	uint64_t took = now_ns() - begin;
	kit_begin();
	for (uint32_t i = 0; i < FEW; i++)
		put(HELD, i, API_FAR_FORWARD, 1);
	commit();
	streams_run(0);
	print_message("  %lu sessions a second made, as many deleted, in %u transactions\n",
		(uint64_t)ticks * BATCH * 1000000000ul / took, ticks);
	all_there("bystander-up");
	all_there("bystander-down");
	all_there("held");
	all_there("changed");
	kit_begin();
	for (uint32_t i = 0; i < FEW; i++)
		take(CHANGED, i);
	commit();
	assert_int_equal(reported, row_of("changed").received * (20 + 8 + PAYLOAD));
}

static void all_go(void **state)
{
	kit_begin();
	for (uint32_t i = 0; i < CHURNED; i++)
		take(CHURN, i);
	for (uint32_t i = 0; i < BYSTANDERS; i++)
		take(BYSTANDER, i);
	for (uint32_t i = 0; i < FEW; i++)
		take(HELD, i);
	commit();
	serve_until(now_ns() + TICK_NS);
	assert_true(kit_balance());
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(kit_totals().sessions, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sessions_come_and_go), cmocka_unit_test(all_go)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
