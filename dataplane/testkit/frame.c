// SPDX-License-Identifier: Apache-2.0
// Frames for tests.
#include "testkit/frame.h"
#include "testkit/testkit.h"
#include "wire/bytes.h"
#include "wire/checksum.h"
#include "wire/ip.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void no_room(void)
{
	fprintf(stderr, "testkit: a frame has no room\n");
	exit(99);
}

void frame_payload(struct frame *f, uint32_t length)
{
	if (length > FRAME_MAX)
		no_room();
	f->at = f->room + FRAME_ROOM;
	f->length = length;
	for (uint32_t i = 0; i < length; i++)
		f->at[i] = (uint8_t)i;
}

uint8_t *frame_push(struct frame *f, uint32_t length)
{
	if ((uint32_t)(f->at - f->room) < length)
		no_room();
	f->at -= length;
	f->length += length;
	return memset(f->at, 0, length);
}

void frame_append(struct frame *f, const void *bytes, uint32_t length)
{
	if (f->at + f->length + length > f->room + sizeof(f->room))
		no_room();
	if (bytes != NULL)
		memcpy(f->at + f->length, bytes, length);
	else
		memset(f->at + f->length, 0, length);
	f->length += length;
}

void frame_udp(struct frame *f, uint16_t source, uint16_t destination)
{
	uint8_t *p = frame_push(f, 8);

	store16(p, source);
	store16(p + 2, destination);
	store16(p + 4, (uint16_t)f->length);
}

void frame_tcp(struct frame *f, uint16_t source, uint16_t destination)
{
	uint8_t *p = frame_push(f, 20);

	store16(p, source);
	store16(p + 2, destination);
	p[12] = 5 << 4;
	p[13] = 2;
}

void frame_ip4_sum(struct frame *f)
{
	uint16_t sum;

	memset(f->at + 10, 0, 2);
	sum = checksum_finish(checksum_add(0, f->at, (f->at[0] & 15) * 4u));
	memcpy(f->at + 10, &sum, 2);
}

void frame_udp6_sum(uint8_t *ip)
{
	uint8_t *udp = ip + IP6_HEADER;
	uint16_t length = load16(udp + 4), sum;

	memset(udp + 6, 0, 2);
	sum = checksum_finish(checksum_add(checksum_pseudo(6, ip + 8, ip + 24, IP_PROTOCOL_UDP, length), udp, length));
	sum = sum == 0 ? UINT16_MAX : sum;
	memcpy(udp + 6, &sum, 2);
}

void frame_ip(struct frame *f, const char *source, const char *destination, uint8_t protocol)
{
	struct api_address s = kit_address(source), d = kit_address(destination);
	uint32_t payload = f->length;
	uint8_t *p = frame_push(f, s.family == 4 ? 20 : 40);

	if (s.family == 6) {
		p[0] = 0x60;
		store16(p + 4, (uint16_t)payload);
		p[6] = protocol;
		p[7] = 64;
		memcpy(p + 8, s.bytes, 16);
		memcpy(p + 24, d.bytes, 16);
		if (protocol == IP_PROTOCOL_UDP && payload >= 8 && load16(p + IP6_HEADER + 4) <= payload)
			frame_udp6_sum(p); // RFC 8200 §8.1
		return;
	}
	p[0] = 0x45;
	store16(p + 2, (uint16_t)(payload + 20));
	p[8] = 64;
	p[9] = protocol;
	memcpy(p + 12, s.bytes, 4);
	memcpy(p + 16, d.bytes, 4);
	frame_ip4_sum(f);
}

void frame_options(struct frame *f, uint32_t length)
{
	uint32_t header = f->at[0] >> 4 == 6 ? 40 : 20;

	frame_push(f, length);
	memmove(f->at, f->at + length, header);
	if (header == 20) {
		memset(f->at + header, 1, length); // no operation (RFC 791 §3.1)
		f->at[0] += (uint8_t)(length / 4);
		store16(f->at + 2, (uint16_t)f->length);
		frame_ip4_sum(f);
		return;
	}
	memset(f->at + header, 0, length); // Pad1 (RFC 8200 §4.2)
	f->at[header] = f->at[6];
	f->at[header + 1] = (uint8_t)(length / 8 - 1);
	f->at[6] = 60;
	store16(f->at + 4, (uint16_t)(f->length - header));
}

void frame_fragment(struct frame *f, uint16_t offset, int more)
{
	if (f->at[0] >> 4 == 4) {
		store16(f->at + 6, (uint16_t)(offset | (more ? 0x2000 : 0)));
		frame_ip4_sum(f);
		return;
	}
	frame_options(f, 8);
	uint8_t *p = f->at + 40; // RFC 8200 §4.5
	f->at[6] = 44;
	p[1] = 0;
	store16(p + 2, (uint16_t)(offset << 3 | (more != 0)));
	store32(p + 4, 0x4711);
}

void frame_icmp_echo(struct frame *f, const char *source, const char *destination)
{
	struct api_address s = kit_address(source), d = kit_address(destination);
	uint64_t sum = 0;
	uint8_t *p = frame_push(f, 8);

	p[0] = s.family == 4 ? 8 : 128;
	store16(p + 4, 77);
	if (s.family == 6)
		sum = checksum_pseudo(6, s.bytes, d.bytes, 58, f->length);
	uint16_t check = checksum_finish(checksum_add(sum, p, f->length));
	memcpy(p + 2, &check, 2);
	frame_ip(f, source, destination, s.family == 4 ? 1 : 58);
}

void frame_gtpu(struct frame *f, uint32_t teid, uint8_t qfi)
{
	uint32_t payload = f->length;
	uint8_t *p = frame_push(f, qfi == 0xff ? 8 : 16);

	p[0] = qfi == 0xff ? 0x30 : 0x34;
	p[1] = 255;
	store16(p + 2, (uint16_t)(payload + (qfi == 0xff ? 0 : 8)));
	store32(p + 4, teid);
	if (qfi == 0xff)
		return;
	p[11] = 0x85;
	p[12] = 1;
	p[14] = qfi;
}

void frame_ethernet(struct frame *f, const uint8_t to[6], const uint8_t from[6], uint16_t type)
{
	uint8_t *p = frame_push(f, 14);

	memcpy(p, to, 6);
	memcpy(p + 6, from, 6);
	store16(p + 12, type);
}

void frame_tag(struct frame *f, uint16_t tpid, uint16_t vlan)
{
	uint8_t *p = frame_push(f, 4);

	memmove(p, p + 4, 12);
	store16(p + 12, tpid);
	store16(p + 14, vlan);
}

void frame_pppoe(struct frame *f, uint16_t session, uint16_t protocol)
{
	uint32_t payload = f->length;
	uint8_t *p = frame_push(f, 8);

	p[0] = 0x11;
	store16(p + 2, session);
	store16(p + 4, (uint16_t)(payload + 2));
	store16(p + 6, protocol);
}
