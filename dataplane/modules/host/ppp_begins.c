// SPDX-License-Identifier: Apache-2.0
// PPPoE sessions between PADS and SESSION object: the subscriber negotiates and signs in, so its PPP frames must be
// punted.
//
// The entries follow the control plane's frames: its PADS makes an entry, its PADT ends it, its PPP frames keep it.
// Only these sessions' frames pass row B4; guessed session ids match nothing. An entry without a frame of the control
// plane for a minute goes.
#include "host/ppp_begins.h"
#include "core/control.h"
#include "core/object.h"
#include "host/host.h"
#include "rule/tables.h"
#include "rule/view.h"
#include "wire/eth.h"
#include "wire/pppoe.h"
#include <errno.h>
#include <stdlib.h>

#define LIFE_NS 60000000000ull
#define MOST (1u << 18) // at once
#define VISIT_MS 100
#define VISITS 64 // until all have been looked at

struct entry {
	struct exact_key key;
	uint32_t next_free; // UINT32_MAX: none
	uint64_t kept_ns; // when the control plane last sent to it; 0: free
};

// The table is read by workers, all else is the control thread's.
static struct {
	struct exact *table; // key: index of entry
	struct entry *entry;
	uint32_t count, free, at;
} begins;

static int find(const struct exact_key *k, uint64_t *index)
{
	return exact_lookup(begins.table, exact_hash(begins.table, k), k, index);
}

int host_ppp_begins(uint16_t port, const struct endpoint_view *e, const uint8_t mac[6])
{
	struct exact_key k;
	uint64_t index;

	if (e->pppoe_session == 0)
		return 0;
	endpoint_key(&k, port, e->s_tag, e->c_tag, e->pppoe_session, mac);
	return find(&k, &index);
}

uint32_t host_secret_hash(const struct exact_key *k)
{
	return exact_hash(begins.table, k);
}

static void begin(const struct exact_key *k)
{
	uint32_t i = begins.free;

	// Without room its frames are dropped like an unknown subscriber's, and it begins again later.
	if (i == UINT32_MAX || exact_add(begins.table, exact_hash(begins.table, k), k, i) != 0)
		return;
	begins.free = begins.entry[i].next_free;
	begins.entry[i].key = *k;
	begins.entry[i].kept_ns = control_now_ns();
}

static void end(uint32_t i)
{
	struct entry *e = &begins.entry[i];

	exact_delete(begins.table, exact_hash(begins.table, &e->key), &e->key);
	e->kept_ns = 0;
	e->next_free = begins.free;
	begins.free = i;
}

void host_ppp_sent(uint16_t port, const struct api_frame *h, const uint8_t *pppoe)
{
	int discovery = h->ethertype == ETH_TYPE_PPPOE_DISCOVERY;
	uint16_t id = load16(pppoe + 2);
	struct exact_key k;
	uint64_t index;

	endpoint_key(&k, port, h->s_tag, h->c_tag, id, h->mac);
	if (!find(&k, &index)) {
		if (discovery && pppoe[1] == PPPOE_PADS && id != 0)
			begin(&k);
	} else if (discovery && pppoe[1] == PPPOE_PADT) {
		end((uint32_t)index);
	} else {
		begins.entry[index].kept_ns = control_now_ns();
	}
}

static void forget(uint64_t now_ns)
{
	for (uint32_t n = (begins.count + VISITS - 1) / VISITS; n != 0; n--) {
		begins.at = begins.at + 1 < begins.count ? begins.at + 1 : 0;
		uint64_t kept = begins.entry[begins.at].kept_ns;
		if (kept != 0 && now_ns > kept && now_ns - kept > LIFE_NS)
			end(begins.at);
	}
}

static int start(const struct api_engine *e)
{
	// Twice: after a power cut all homes come again before their former sessions are known to be dead.
	begins.count = RTE_MIN(RTE_MAX(2 * RTE_MIN(e->max_sessions, MOST), 64u), MOST);
	begins.table = exact_create("ppp-begins", begins.count, SOCKET_ID_ANY);
	begins.entry = calloc(begins.count, sizeof(*begins.entry));
	if (begins.table == NULL || begins.entry == NULL)
		return object_error(ENOMEM, "no memory for %u PPPoE sessions that begin", begins.count);
	for (uint32_t i = 0; i < begins.count; i++)
		begins.entry[i].next_free = i + 1 < begins.count ? i + 1 : UINT32_MAX;
	return 0;
}

RTE_INIT(ppp_begins)
{
	module_register(start);
	timer_register(VISIT_MS, forget);
}
