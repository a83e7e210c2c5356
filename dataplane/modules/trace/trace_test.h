// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of traces: orders, rows and their words, a session and its packets.
#ifndef TRACE_TRACE_TEST_H
#define TRACE_TRACE_TEST_H

#include "core/trace_inside.h"
#include "session/mobile_fixture.h"

#define ROWS 512

static struct api_trace_row rows[ROWS];
static uint32_t count, taken; // taken: also those beyond ROWS
static struct api_trace_state state;

static inline void take(const struct api_trace_row *row)
{
	taken++;
	if (count < ROWS)
		rows[count++] = *row;
}

static inline struct trace_order *order(uint32_t flags)
{
	static struct trace_order o;

	memset(&o, 0, sizeof(o));
	o.want = (struct api_trace){.flags = flags, .seconds = 30, .snap = 128};
	return &o;
}

static inline void begin(const struct trace_order *o)
{
	if (trace_begin(o, &state) != 0)
		fail_msg("refused: %s", kit_error());
}

static inline void poll_it(int stop)
{
	count = taken = 0;
	assert_int_equal(kit_trace_poll(state.trace, stop, take, &state), 0);
}

static inline const struct api_trace_row *row_of(const char *node, enum api_trace_what what)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(rows[i].node, node) == 0 && rows[i].what == what)
			return &rows[i];
	return NULL;
}

static inline void says(const char *node, enum api_trace_what what, const char *words)
{
	const struct api_trace_row *r = row_of(node, what);

	for (uint32_t i = 0; r == NULL && i < count; i++)
		print_message("%u %s > %s: %.*s\n", rows[i].what, rows[i].node, rows[i].next, rows[i].length,
			rows[i].what == API_TRACE_DATA ? "" : (const char *)rows[i].data);
	if (r == NULL)
		fail_msg("%s is not in the trace", node);
	else if (memmem(r->data, r->length, words, strlen(words)) == NULL)
		fail_msg("%s says \"%.*s\", and not \"%s\"", node, r->length, (const char *)r->data, words);
}

static inline void uplink(struct frame *f, uint32_t teid, const char *from)
{
	ip_packet(f, from, FAR4, 64);
	tunnel(f, "10.1.0.2", "10.1.0.1", teid, 9, API_PDU_UL);
	link_layer(f, "ran", 1);
}

static inline void put_udp_to(struct frame *f, const char *to, uint16_t port)
{
	frame_payload(f, 64);
	frame_udp(f, 4001, port);
	frame_ip(f, UE4, to, 17);
	tunnel(f, "10.1.0.2", "10.1.0.1", 0x100, 9, API_PDU_UL);
	link_layer(f, "ran", 1);
}

static inline void put_udp(struct frame *f, uint16_t port)
{
	put_udp_to(f, FAR4, port);
}

static inline void downlink(struct frame *f)
{
	ip_packet(f, FAR4, UE4, 64);
	link_layer(f, "internet", 1);
}

static uint8_t downlink_action = API_FAR_FORWARD;

// A second PDR for one remote port: the fast path knows the session's flows, and not its key.
static inline void put_session_of(uint8_t gates, int several)
{
	struct kit_mobile k;

	kit_begin();
	kit_mobile(&k, 1, UE4, NULL);
	struct api_pdr *up = kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x100, 1);
	up->match |= API_PDR_UE_IP;
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	struct api_pdr *down = kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x200)->action = downlink_action;
	struct api_qer *q = kit_qer(&k, 1, 9);
	q->gate_uplink = gates;
	kit_pdr_qer(up, 1);
	kit_urr(&k, 1);
	kit_pdr_urr(up, 1);
	kit_pdr_urr(down, 1);
	if (several) {
		struct api_pdr *other = kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x100, 1);

		other->match |= API_PDR_UE_IP;
		other->precedence = 10;
		struct api_sdf *sdf = kit_sdf(&k, other);
		sdf->remote_port[0] = sdf->remote_port[1] = 9;
	}
	kit_put_mobile("s1", &k);
	commit();
}

static inline void put_session(uint8_t gates)
{
	put_session_of(gates, 0);
}

static inline void key_of_ue(struct trace_order *o)
{
	o->want.keys = 1;
	o->key[0] = (struct api_trace_key){.by = API_TRACE_BY_ADDRESS, .address = kit_address(UE4)};
}

static inline uint64_t urr_bytes(void)
{
	uint32_t n;
	const struct api_urr_row *r = kit_rows(API_TABLE_URR, "s1", sizeof(*r), &n);

	assert_int_equal(n, 1);
	return r->bytes[0];
}

static inline int setup(void **unused)
{
	struct api_engine e = kit_engine();

	e.max_buffered = 64;
	fixture_start(&e);
	put_session(0);
	return 0;
}

#endif
