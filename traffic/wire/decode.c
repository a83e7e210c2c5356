// SPDX-License-Identifier: Apache-2.0
// Walks a received frame: one function per header, which checks it, moves behind it and names the next one.
#include "traffic/wire/decode.h"
#include <string.h>

#define FRAME_SHORTEST 60 // IEEE 802.3 §4A.4.2: minFrameSize without FCS
#define PORT_GTPU 2152 // TS 29.281 §4.4.2.3
#define IPV6_EXTENSIONS 8 // headers of a packet; more are a fault
#define GTPU_EXTENSIONS 16

enum next { DONE, ETHERNET, VLAN, PPPOE, IPV4, IPV6, UDP, TCP, ICMP, ICMPV6, GTPU };

struct walk {
	const uint8_t *frame;
	uint32_t length; // of the frame
	uint32_t at; // the header at work
	uint32_t end; // of what encloses it
	bool bounded; // some header's length has set `end`
	uint32_t tags;
	uint32_t addresses, address_bytes; // of the IP header before: both addresses, for pseudo headers
	struct decoded *d;
};

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static enum next fault(struct walk *w, const char *what)
{
	w->d->fault = what;
	w->d->at = (uint16_t)w->at;
	return DONE;
}

static enum next control(struct walk *w)
{
	w->d->control = true;
	return DONE;
}

// The packet at work ends at `end`. Checks that its enclosing one ends there too, but for padding.
static bool ends(struct walk *w, uint32_t end, const char *beyond, const char *before)
{
	bool padded = !w->bounded && w->length == FRAME_SHORTEST;

	if (end > w->end) {
		fault(w, beyond);
		return false;
	}
	if (end < w->end && !padded) {
		fault(w, before);
		return false;
	}
	w->end = end;
	w->bounded = true;
	return true;
}

// One's complement sum (RFC 1071 §1), folded: 0xffff over bytes that hold their good checksum.
static uint32_t add_up(uint32_t sum, const uint8_t *p, uint32_t n)
{
	for (; n >= 2; n -= 2, p += 2)
		sum += get16(p);
	if (n == 1)
		sum += (uint32_t)*p << 8;
	while (sum >> 16)
		sum = (sum >> 16) + (sum & 0xffff);
	return sum;
}

// From the header at work to the end of the packet, with the pseudo header (RFC 768, RFC 9293 §3.1, RFC 8200 §8.1).
static bool l4_sum_good(const struct walk *w, uint32_t protocol)
{
	uint32_t n = w->end - w->at;
	uint32_t sum = add_up(protocol + n, w->frame + w->addresses, w->address_bytes);

	return add_up(sum, w->frame + w->at, n) == 0xffff;
}

// Options of IPv4 and TCP (RFC 791 §3.1, RFC 9293 §3.2): kinds 0 and 1 are one byte, others have a length.
static bool options_good(const uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n && p[i] != 0;) {
		if (p[i] == 1) {
			i++;
			continue;
		}
		if (n - i < 2 || p[i + 1] < 2 || p[i + 1] > n - i)
			return false;
		i += p[i + 1];
	}
	return true;
}

// What an EtherType announces; `at` stands behind it.
static enum next ethertype(struct walk *w, uint32_t type)
{
	switch (type) {
	case 0x8100:
	case 0x88a8:
	case 0x9100:
		return VLAN;
	case 0x8864:
		return PPPOE;
	case 0x0800:
		return IPV4;
	case 0x86dd:
		return IPV6;
	case 0x0806: // ARP
	case 0x8808: // MAC control: pause
	case 0x8809: // slow protocols: LACP, OAM
	case 0x8863: // PPPoE discovery
	case 0x88cc: // LLDP
		return control(w);
	}
	if (type >= 0x600)
		return DONE;
	if (type > 1500)
		return fault(w, "ethernet: neither a type nor a length"); // IEEE 802.3 §3.2.6
	return type <= w->end - w->at ? control(w) : fault(w, "ethernet: 802.3 length beyond the frame");
}

static enum next ethernet(struct walk *w)
{
	const uint8_t *p = w->frame;

	if (w->length < 14)
		return fault(w, "ethernet: too short");
	w->at = 14;
	return ethertype(w, get16(p + 12));
}

static enum next vlan(struct walk *w)
{
	const uint8_t *p = w->frame + w->at;

	if (w->end - w->at < 4)
		return fault(w, "vlan: too short");
	if (++w->tags > DECODE_TAGS)
		return fault(w, "vlan: more than 4 tags");
	w->at += 4;
	return ethertype(w, get16(p + 2));
}

// RFC 2516 §4, and the PPP protocol behind it (RFC 1661 §2).
static enum next pppoe(struct walk *w)
{
	const uint8_t *p = w->frame + w->at;
	uint32_t protocol;

	if (w->end - w->at < 8)
		return fault(w, "pppoe: too short");
	if (p[0] != 0x11)
		return fault(w, "pppoe: version or type");
	if (p[1] != 0)
		return fault(w, "pppoe: code");
	if (get16(p + 2) == 0 || get16(p + 2) == 0xffff)
		return fault(w, "pppoe: reserved session id");
	if (get16(p + 4) < 2)
		return fault(w, "pppoe: length below the PPP protocol");
	if (!ends(w, w->at + 6 + get16(p + 4), "pppoe: length beyond the frame", "pppoe: length ends before the frame"))
		return DONE;
	protocol = get16(p + 6);
	if (protocol & 0x8000) // network and link control protocols (RFC 1661 §2)
		return control(w);
	if (protocol != 0x0021 && protocol != 0x0057)
		return fault(w, "pppoe: unknown PPP protocol");
	w->at += 8;
	return protocol == 0x0021 ? IPV4 : IPV6;
}

static enum next ipv4_protocol(struct walk *w, uint32_t protocol)
{
	switch (protocol) {
	case 1:
		return ICMP;
	case 2: // IGMP
		return control(w);
	case 6:
		return TCP;
	case 17:
		return UDP;
	}
	return DONE;
}

// RFC 791 §3.1
static enum next ipv4(struct walk *w)
{
	const uint8_t *p = w->frame + w->at;
	uint32_t room = w->end - w->at, header;

	if (room < 20)
		return fault(w, "ipv4: too short");
	if (p[0] >> 4 != 4)
		return fault(w, "ipv4: version");
	w->d->inner_l3 = (uint16_t)w->at;
	header = (p[0] & 15u) * 4;
	if (header < 20 || header > room)
		return fault(w, "ipv4: header length");
	if (add_up(0, p, header) != 0xffff)
		return fault(w, "ipv4: header checksum");
	if (get16(p + 2) < header)
		return fault(w, "ipv4: length below the header");
	if (!ends(w, w->at + get16(p + 2), "ipv4: length beyond the packet", "ipv4: length ends before the packet"))
		return DONE;
	if (!options_good(p + 20, header - 20))
		return fault(w, "ipv4: options");
	if (p[6] & 0x80)
		return fault(w, "ipv4: reserved flag");
	w->addresses = w->at + 12;
	w->address_bytes = 8;
	if (get16(p + 6) & 0x3fff)
		return DONE;
	w->at += header;
	return ipv4_protocol(w, p[9]);
}

// Extension headers of IPv6 (RFC 8200 §4), from `at` on. True: *next is the header at `at`. False: a fault, or the rest
// does not matter.
static bool ipv6_extensions(struct walk *w, uint32_t *next)
{
	for (uint32_t i = 0; *next == 0 || *next == 43 || *next == 44 || *next == 51 || *next == 60; i++) {
		const uint8_t *p = w->frame + w->at;
		uint32_t room = w->end - w->at, bytes;

		if (i == IPV6_EXTENSIONS) {
			fault(w, "ipv6: more than 8 extension headers");
			return false;
		}
		if (*next == 0 && i > 0) {
			fault(w, "ipv6: hop-by-hop options not first");
			return false;
		}
		bytes = room < 8 ? 8 : *next == 44 ? 8 : *next == 51 ? (p[1] + 2u) * 4 : (p[1] + 1u) * 8;
		if (bytes > room) {
			fault(w, "ipv6: extension header beyond the packet");
			return false;
		}
		if (*next == 44 && (get16(p + 2) & 0xfff9)) // a true fragment
			return false;
		if (*next == 43 && p[3] != 0) // on its way: checksums hold for another destination
			return false;
		*next = p[0];
		w->at += bytes;
	}
	return true;
}

// RFC 8200 §3
static enum next ipv6(struct walk *w)
{
	const uint8_t *p = w->frame + w->at;
	uint32_t next;

	if (w->end - w->at < 40)
		return fault(w, "ipv6: too short");
	if (p[0] >> 4 != 6)
		return fault(w, "ipv6: version");
	w->d->inner_l3 = (uint16_t)w->at;
	if (!ends(w, w->at + 40 + get16(p + 4), "ipv6: length beyond the packet",
		    "ipv6: length ends before the packet"))
		return DONE;
	next = p[6];
	w->addresses = w->at + 8;
	w->address_bytes = 32;
	w->at += 40;
	if (!ipv6_extensions(w, &next))
		return DONE;
	return next == 6 ? TCP : next == 17 ? UDP : next == 58 ? ICMPV6 : DONE;
}

static enum next udp(struct walk *w)
{
	const uint8_t *p = w->frame + w->at;
	uint32_t destination;

	if (w->end - w->at < 8)
		return fault(w, "udp: too short");
	if (get16(p + 4) < 8)
		return fault(w, "udp: length below the header");
	if (!ends(w, w->at + get16(p + 4), "udp: length beyond the packet", "udp: length ends before the packet"))
		return DONE;
	destination = get16(p + 2);
	if (get16(p + 6) != 0 && !l4_sum_good(w, 17))
		return fault(w, "udp: checksum");
	// RFC 8200 §8.1; RFC 6935 §5 lets tunnels do without.
	if (get16(p + 6) == 0 && w->address_bytes == 32 && destination != PORT_GTPU)
		return fault(w, "udp: no checksum over IPv6");
	w->at += 8;
	return destination == PORT_GTPU ? GTPU : DONE;
}

// RFC 9293 §3.1
static enum next tcp(struct walk *w)
{
	const uint8_t *p = w->frame + w->at;
	uint32_t room = w->end - w->at, header;

	if (room < 20)
		return fault(w, "tcp: too short");
	header = (p[12] >> 4) * 4u;
	if (header < 20 || header > room)
		return fault(w, "tcp: data offset");
	if (!l4_sum_good(w, 6))
		return fault(w, "tcp: checksum");
	if (!options_good(p + 20, header - 20))
		return fault(w, "tcp: options");
	w->at += header;
	return DONE;
}

// RFC 792
static enum next icmp(struct walk *w)
{
	const uint8_t *p = w->frame + w->at;
	uint32_t room = w->end - w->at;

	if (room < 8)
		return fault(w, "icmp: too short");
	if (add_up(0, p, room) != 0xffff)
		return fault(w, "icmp: checksum");
	return DONE;
}

// RFC 4443 §2.1
static enum next icmpv6(struct walk *w)
{
	const uint8_t *p = w->frame + w->at;

	if (w->end - w->at < 8)
		return fault(w, "icmpv6: too short");
	if (!l4_sum_good(w, 58))
		return fault(w, "icmpv6: checksum");
	// MLD (RFC 3810 §5), neighbour discovery (RFC 4861 §4).
	if ((p[0] >= 130 && p[0] <= 137) || p[0] == 143)
		return control(w);
	return DONE;
}

// The chain of extension headers (TS 29.281 §5.2.1): a length in units of 4 octets, content, the next one's type. `at`
// is the first length.
static bool gtpu_extensions(struct walk *w, uint32_t type)
{
	for (uint32_t i = 0; type != 0; i++) {
		uint32_t room = w->end - w->at, bytes = room > 0 ? w->frame[w->at] * 4u : 0;

		if (i == GTPU_EXTENSIONS) {
			fault(w, "gtpu: more than 16 extension headers");
			return false;
		}
		if (room > 0 && bytes == 0) {
			fault(w, "gtpu: extension header of length 0");
			return false;
		}
		if (room == 0 || bytes > room) {
			fault(w, "gtpu: extension header beyond the packet");
			return false;
		}
		type = w->frame[w->at + bytes - 1];
		w->at += bytes;
	}
	return true;
}

// TS 29.281 §5.1 and §6.1
static enum next gtpu(struct walk *w)
{
	const uint8_t *p = w->frame + w->at;
	uint32_t type;

	if (w->end - w->at < 8)
		return fault(w, "gtpu: too short");
	if (p[0] >> 4 != 3) // version 1, protocol type GTP
		return fault(w, "gtpu: version or protocol type");
	if (p[0] & 8)
		return fault(w, "gtpu: spare bit");
	if (!ends(w, w->at + 8 + get16(p + 2), "gtpu: length beyond the packet", "gtpu: length ends before the packet"))
		return DONE;
	type = p[1];
	// Echo, error indication, supported extension headers, tunnel status, end marker.
	if (type != 255 && type != 1 && type != 2 && type != 26 && type != 31 && type != 253 && type != 254)
		return fault(w, "gtpu: message type");
	if (p[0] & 7) {
		if (w->end - w->at < 12)
			return fault(w, "gtpu: length below the optional octets");
		w->at += 12;
		if (p[0] & 4 && !gtpu_extensions(w, p[11]))
			return DONE;
	} else {
		w->at += 8;
	}
	if (type != 255)
		return control(w);
	if (w->at == w->end || (w->frame[w->at] >> 4 != 4 && w->frame[w->at] >> 4 != 6))
		return fault(w, "gtpu: no IP packet in a G-PDU");
	return w->frame[w->at] >> 4 == 4 ? IPV4 : IPV6;
}

static void walk(struct walk *w)
{
	static enum next (*const header[])(struct walk *) = {
		[ETHERNET] = ethernet,
		[VLAN] = vlan,
		[PPPOE] = pppoe,
		[IPV4] = ipv4,
		[IPV6] = ipv6,
		[UDP] = udp,
		[TCP] = tcp,
		[ICMP] = icmp,
		[ICMPV6] = icmpv6,
		[GTPU] = gtpu,
	};
	enum next next = ETHERNET;

	memset(w->d, 0, sizeof(*w->d));
	while (next != DONE) {
		if (w->d->layers == DECODE_LAYERS) {
			fault(w, "frame: more than 32 headers");
			break;
		}
		w->d->layers++;
		next = header[next](w);
	}
	w->d->end = (uint16_t)w->end;
}

int decode_frame(const uint8_t *frame, uint16_t length, struct decoded *d)
{
	struct walk w = {.frame = frame, .length = length, .end = length, .d = d};

	walk(&w);
	return d->fault != NULL ? -1 : 0;
}
