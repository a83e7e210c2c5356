// SPDX-License-Identifier: Apache-2.0
// PDR selection against a slow, simple model: random rules and packets, flows that outlive changes, and thousands of
// short-lived sessions.
#include "session/mobile_fixture.h"

#define SESSIONS 6
#define FARS 6

static uint32_t state = 0x12345678;

static uint32_t random_below(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

static struct kit_mobile model[SESSIONS];
static int held[SESSIONS];

static int setup(void **s)
{
	struct api_engine e = kit_engine();

	e.workers = 2; // packets enter by the first; half of the sessions live on the second
	e.max_sessions = 4096;
	e.max_flows = 256; // so that flows are evicted too
	fixture_start(&e);
	return 0;
}

static void random_filter(struct api_sdf *f)
{
	if (random_below(2)) {
		f->flags |= API_SDF_PROTOCOL;
		f->protocol = random_below(2) ? 17 : 6;
	}
	if (random_below(3) == 0)
		f->flags |= API_SDF_DENY;
	if (random_below(3) == 0) {
		f->flags |= API_SDF_TOS;
		f->tos = (uint8_t)(random_below(4) << 6);
		f->tos_mask = 0xc0;
	}
	if (random_below(2)) {
		f->remote_port[0] = (uint16_t)(5000 + random_below(4));
		f->remote_port[1] = (uint16_t)(f->remote_port[0] + random_below(3));
	}
	if (random_below(3) == 0)
		f->local_port[0] = f->local_port[1] = (uint16_t)(4000 + random_below(4));
	if (random_below(2))
		f->remote = kit_address(random_below(2) ? "198.51.100.0/30" : "198.51.100.2/32");
	else if (random_below(4) == 0)
		f->local = kit_address("10.45.0.0/30");
}

static void random_session(uint32_t n)
{
	struct kit_mobile *k = &model[n];
	char ue[32];
	uint32_t pdrs = 1 + random_below(6);

	snprintf(ue, sizeof(ue), "10.45.0.%u", n + 1);
	kit_mobile(k, n + 1, ue, NULL);
	k->s.worker = (uint16_t)random_below(2);
	for (uint32_t i = 0; i < pdrs; i++) {
		int tunnel = random_below(2) == 0;
		struct api_pdr *pdr = tunnel ? kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1",
						       0x100 + n * 2 + random_below(2), 1 + random_below(FARS))
					     : kit_pdr_ue(k, API_FROM_CORE, "core", 1 + random_below(FARS));

		pdr->precedence = random_below(4) * 100 + i; // precedences differ: the order of equal ones is undefined
		if (tunnel && random_below(2))
			pdr->match |= API_PDR_UE_IP;
		if (tunnel && random_below(3) == 0) {
			pdr->match |= API_PDR_QFI;
			pdr->qfis = random_below(16);
		}
		for (uint32_t f = random_below(4); f > 0; f--)
			random_filter(kit_sdf(k, pdr));
	}
	for (uint32_t f = 1; f <= FARS; f++)
		kit_far_gtpu(k, f, API_FROM_CORE, "peer", (n << 8 | f) + 0x10000);
}

struct test_packet {
	uint32_t teid; // 0: not in a tunnel, to the UE
	uint8_t qfi; // 0xff: none
	uint32_t source, destination; // host order
	uint16_t source_port, destination_port;
	uint8_t protocol, tos;
};

static void random_packet(struct test_packet *p)
{
	uint32_t ue = 0x0a2d0000 + 1 + random_below(SESSIONS), far = 0xc6336400 + random_below(5);
	uint16_t near_port = (uint16_t)(4000 + random_below(4)), far_port = (uint16_t)(5000 + random_below(6));
	int up = (int)random_below(2);

	*p = (struct test_packet){.teid = up ? 0x100 + random_below(2 * SESSIONS) : 0,
		.qfi = up && random_below(2) ? (uint8_t)random_below(4) : 0xff,
		.source = up ? ue : far,
		.destination = up ? far : ue,
		.source_port = up ? near_port : far_port,
		.destination_port = up ? far_port : near_port,
		.protocol = random_below(2) ? 17 : 6,
		.tos = (uint8_t)(random_below(4) << 6)};
}

static const char *text_of(uint32_t a)
{
	static char text[2][32];
	static int next;
	char *t = text[next++ & 1];

	snprintf(t, 32, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
	return t;
}

static void build(struct frame *f, const struct test_packet *p)
{
	frame_payload(f, 20);
	if (p->protocol == 17)
		frame_udp(f, p->source_port, p->destination_port);
	else
		frame_tcp(f, p->source_port, p->destination_port);
	frame_ip(f, text_of(p->source), text_of(p->destination), p->protocol);
	f->at[1] = p->tos;
	frame_ip4_sum(f);
	if (p->teid != 0)
		tunnel(f, "10.1.0.2", "10.1.0.1", p->teid, p->qfi, API_PDU_UL);
	link_layer(f, p->teid != 0 ? "ran" : "internet", 1);
}

static int in_prefix4(const struct api_address *a, uint32_t address)
{
	uint32_t mask = a->prefix == 0 ? 0 : UINT32_MAX << (32 - a->prefix);

	return a->family == 0 || (load32(a->bytes) & mask) == (address & mask);
}

static int filter_says(const struct api_sdf *f, const struct test_packet *p)
{
	uint32_t ue = p->teid ? p->source : p->destination, far = p->teid ? p->destination : p->source;
	uint16_t near_port = p->teid ? p->source_port : p->destination_port;
	uint16_t far_port = p->teid ? p->destination_port : p->source_port;

	return in_prefix4(&f->remote, far) && in_prefix4(&f->local, ue) &&
	       (!(f->flags & API_SDF_PROTOCOL) || f->protocol == p->protocol) &&
	       (!(f->flags & API_SDF_TOS) || (p->tos & f->tos_mask) == (f->tos & f->tos_mask)) &&
	       far_port >= f->remote_port[0] && far_port <= f->remote_port[1] && near_port >= f->local_port[0] &&
	       near_port <= f->local_port[1];
}

static int pdr_matches(const struct kit_mobile *k, const struct api_pdr *pdr, const struct test_packet *p)
{
	uint32_t ue = load32(k->s.ue_ip4.bytes);
	int accepted = pdr->sdf_count == 0;

	if (p->teid != 0 ? !(pdr->match & API_PDR_FTEID) || pdr->teid != p->teid : (pdr->match & API_PDR_FTEID) != 0)
		return 0;
	if ((pdr->match & API_PDR_UE_IP) && (p->teid ? p->source : p->destination) != ue)
		return 0;
	if ((pdr->match & API_PDR_QFI) && (p->qfi == 0xff || !(pdr->qfis >> p->qfi & 1)))
		return 0;
	for (uint16_t i = 0; i < pdr->sdf_count; i++)
		if (filter_says(&k->sdf[pdr->sdf_first + i], p)) {
			accepted = !(k->sdf[pdr->sdf_first + i].flags & API_SDF_DENY);
			break;
		}
	return accepted;
}

// TEID that the packet must leave with; 0: it must not leave by a tunnel.
static uint32_t expected_teid(const struct test_packet *p)
{
	const struct kit_mobile *owner = NULL;
	const struct api_pdr *best = NULL;

	for (uint32_t n = 0; n < SESSIONS; n++)
		for (uint16_t i = 0; held[n] && i < model[n].s.pdrs; i++) {
			const struct api_pdr *pdr = &model[n].pdr[i];

			if (!pdr_matches(&model[n], pdr, p) || (best != NULL && best->precedence <= pdr->precedence))
				continue;
			owner = &model[n];
			best = pdr;
		}
	return best == NULL ? 0 : (uint32_t)((owner->s.seid - 1) << 8 | best->far) + 0x10000;
}

static uint32_t leaves_with(const struct test_packet *p)
{
	static struct frame f;

	build(&f, p);
	send_frame(p->teid ? "ran" : "internet", &f);
	return kit_count("peers") == 1 ? load32(kit_frame("peers", 0)->bytes + 14 + 20 + 8 + 4) : 0;
}

static void selection(void **s)
{
	uint32_t forwarded = 0;

	for (uint32_t round = 0; round < 1500; round++) {
		uint32_t n = random_below(SESSIONS);

		kit_begin();
		held[n] = random_below(5) != 0;
		if (held[n]) {
			random_session(n);
			kit_put_mobile(text_of(n), &model[n]);
		} else {
			kit_delete(API_SESSION, text_of(n));
		}
		commit();
		for (int i = 0; i < 24; i++) {
			struct test_packet p;

			random_packet(&p);
			uint32_t want = expected_teid(&p), got = leaves_with(&p), again = leaves_with(&p);
			forwarded += want != 0;
			if (got != want || again != want)
				fail_msg("round %u: left with %#x, then %#x, expected %#x (in by %#x)", round, got,
					again, want, p.teid);
		}
	}
	assert_true(forwarded > 2000);
	assert_true(kit_balance());
	for (uint32_t n = 0; n < SESSIONS; n++)
		gone(text_of(n));
}

// Fields that only some packets have.

static uint32_t with_filter(const struct api_sdf *f, struct frame *in)
{
	struct kit_mobile *k = upf_session(2);
	struct api_sdf *own = kit_sdf(k, &k->pdr[1]);

	*own = *f;
	put("s2", k);
	send_frame("internet", in);
	return kit_count("ran");
}

static void esp_and_flow_label(void **s)
{
	static struct frame in;
	struct api_sdf f = {
		.remote_port = {0, 65535}, .local_port = {0, 65535}, .flags = API_SDF_SPI, .spi = 0x04050607};

	frame_payload(&in, 64); // bytes 0, 1, 2, ...: the SPI is 0x00010203
	frame_ip(&in, FAR4, UE4, 50);
	link_layer(&in, "internet", 1);
	assert_int_equal(with_filter(&f, &in), 0);
	f.spi = 0x00010203;
	assert_int_equal(with_filter(&f, &in), 1);
	frame_payload(&in, 64);
	frame_ip(&in, FAR4, UE4, 51); // authentication header: the SPI is behind its first word
	link_layer(&in, "internet", 1);
	assert_int_equal(with_filter(&f, &in), 0);
	f.spi = 0x04050607;
	assert_int_equal(with_filter(&f, &in), 1);
	f = (struct api_sdf){.remote_port = {0, 65535},
		.local_port = {0, 65535},
		.flags = API_SDF_FLOW_LABEL,
		.flow_label = 0x12345};
	ip_packet(&in, FAR6, UE6, 40);
	link_layer(&in, "internet", 1);
	assert_int_equal(with_filter(&f, &in), 0);
	store32(in.at + 14, 0x60012345);
	assert_int_equal(with_filter(&f, &in), 1);
	gone("s2");
	assert_true(kit_balance());
}

static void name_of(char *name, uint32_t n)
{
	snprintf(name, API_NAME, "n4.%016x", n);
}

// Through all changes, a remaining session loses nothing, and pools get everything back.
static void churn(void **s)
{
	static struct frame up, down, up_out, down_out;
	char name[API_NAME];

	put("stays", upf_session(2));
	uplink_of(&up, UE4, FAR4, 0x102, 0xff);
	routed_out(&up_out, UE4, FAR4);
	downlink_of(&down, FAR4, UE4);
	tunnelled_out(&down_out, FAR4, UE4, 0x202, 0xff);
	for (uint32_t round = 0; round < 300; round++) {
		kit_begin();
		for (uint32_t i = 0; i < 200; i++) {
			uint32_t n = 10 + (round * 200 + i) % 3000;
			struct kit_mobile *k = upf_session(n);

			name_of(name, n);
			if ((round / 15) % 3 == 2) {
				kit_delete(API_SESSION, name);
				continue;
			}
			k->pdr[1].precedence = round;
			k->s.worker = (uint16_t)(round & 1);
			kit_put_mobile(name, k);
		}
		commit();
		expect("ran", &up, "internet", &up_out);
		expect("internet", &down, "ran", &down_out);
	}
	kit_begin();
	for (uint32_t n = 10; n < 3010; n++) {
		name_of(name, n);
		kit_delete(API_SESSION, name);
	}
	kit_delete(API_SESSION, "stays");
	commit();
	// All of the pool is there again: as many sessions as the engine has.
	kit_begin();
	for (uint32_t n = 2; n < 4096; n++) {
		name_of(name, n);
		kit_put_mobile(name, upf_session(n));
	}
	commit();
	expect("ran", &up, "internet", &up_out);
	kit_begin();
	for (uint32_t n = 2; n < 4096; n++) {
		name_of(name, n);
		kit_delete(API_SESSION, name);
	}
	commit();
	assert_true(kit_balance());
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(selection),
		cmocka_unit_test(esp_and_flow_label),
		cmocka_unit_test(churn),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
