// SPDX-License-Identifier: Apache-2.0
// See units.h.
#include "traffic/profile/units.h"
#include <arpa/inet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 40

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

int whole_parse(const char *text, uint64_t *to)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *p = hex ? text + 2 : text;
	uint64_t sum = 0, base = hex ? 16 : 10;

	if (*p == 0)
		return -1;
	for (; *p != 0; p++) {
		uint64_t next;

		if (digit(*p))
			next = (uint64_t)(*p - '0');
		else if (hex && ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'f'))
			next = (uint64_t)((*p | 0x20) - 'a') + 10;
		else
			return -1;
		if (sum > (UINT64_MAX - next) / base)
			return -1;
		sum = sum * base + next;
	}
	*to = sum;
	return 0;
}

// Bytes of the decimal number that `text` begins with: digits [. digits] [e [+-] digits]; 0 none.
static size_t number_length(const char *text)
{
	size_t n = 0, digits = 0;

	for (; digit(text[n]); n++)
		digits++;
	if (text[n] == '.')
		for (n++; digit(text[n]); n++)
			digits++;
	if (digits == 0)
		return 0;
	if (text[n] == 'e' || text[n] == 'E') {
		size_t e = n + 1;

		if (text[e] == '+' || text[e] == '-')
			e++;
		if (digit(text[e])) {
			while (digit(text[e]))
				e++;
			n = e;
		}
	}
	return n;
}

// Splits "1.5 Mpps" into a number and what follows it. Returns what follows, or NULL.
static const char *number_and_unit(const char *text, double *number)
{
	char copy[NUMBER_BYTES];
	size_t n = number_length(text);

	if (n == 0 || n >= sizeof(copy))
		return NULL;
	memcpy(copy, text, n);
	copy[n] = 0;
	*number = strtod(copy, NULL); // LC_NUMERIC is C's: no program here calls setlocale()
	if (!isfinite(*number))
		return NULL;
	return text + n + strspn(text + n, " ");
}

struct unit {
	const char *name;
	double factor;
	enum rate_unit rate;
};

static int with_unit(const char *text, const struct unit *units, uint32_t n, double *to, const struct unit **found)
{
	double number;
	const char *unit = number_and_unit(text, &number);

	for (uint32_t i = 0; unit != NULL && i < n; i++) {
		if (strcmp(unit, units[i].name) == 0) {
			*to = number * units[i].factor;
			*found = &units[i];
			return 0;
		}
	}
	return -1;
}

int real_parse(const char *text, double *to)
{
	static const struct unit none[] = {{"", 1, RATE_NONE}};
	const struct unit *found;

	return with_unit(text, none, 1, to, &found);
}

int part_parse(const char *text, double *to)
{
	static const struct unit parts[] = {{"", 1, RATE_NONE}, {"%", 0.01, RATE_NONE}};
	const struct unit *found;

	return with_unit(text, parts, 2, to, &found);
}

int seconds_parse(const char *text, double *to)
{
	static const struct unit times[] = {
		{"", 1, RATE_NONE}, {"s", 1, RATE_NONE}, {"ms", 1e-3, RATE_NONE}, {"us", 1e-6, RATE_NONE}};
	const struct unit *found;

	return with_unit(text, times, 4, to, &found);
}

int mac_parse(const char *text, uint8_t to[6])
{
	uint8_t bytes[6];

	for (int i = 0; i < 6; i++, text += 3) {
		uint64_t value;
		char two[] = {'0', 'x', text[0], text[0] != 0 ? text[1] : 0, 0};

		if (two[3] == 0 || whole_parse(two, &value) != 0 || text[2] != (i < 5 ? ':' : 0))
			return -1;
		bytes[i] = (uint8_t)value;
	}
	memcpy(to, bytes, 6);
	return 0;
}

int address_parse(const char *text, struct profile_address *to)
{
	struct profile_address a = {.version = strchr(text, ':') != NULL ? 6 : 4};

	if (inet_pton(a.version == 6 ? AF_INET6 : AF_INET, text, a.bytes) != 1)
		return -1;
	*to = a;
	return 0;
}

int rate_scan(const char *text, struct rate *to)
{
	static const struct unit rates[] = {{"", 1, RATE_PPS}, {"pps", 1, RATE_PPS}, {"kpps", 1e3, RATE_PPS},
		{"Mpps", 1e6, RATE_PPS}, {"bit", 1, RATE_BIT}, {"kbit", 1e3, RATE_BIT}, {"Mbit", 1e6, RATE_BIT},
		{"Gbit", 1e9, RATE_BIT}, {"%", 0.01, RATE_PART}};
	const struct unit *found;
	double value;

	if (strcmp(text, "max") == 0) {
		*to = (struct rate){.unit = RATE_MAX};
		return 0;
	}
	if (with_unit(text, rates, sizeof(rates) / sizeof(rates[0]), &value, &found) != 0)
		return -1;
	*to = (struct rate){.unit = found->rate, .value = value};
	return 0;
}

const char *rate_fault(const struct rate *r)
{
	if (r->unit == RATE_NONE || r->unit == RATE_MAX)
		return NULL;
	if (!(r->value > 0))
		return "must be above 0";
	if (r->unit == RATE_PPS && r->value > RATE_PPS_MAX)
		return "is above 200 Mpps, more than a tester can send";
	if (r->unit == RATE_BIT && r->value > RATE_BIT_MAX)
		return "is above 400 Gbit, more than a tester can send";
	if (r->unit == RATE_PART && r->value > RATE_PART_MAX)
		return "is above 1000%";
	return NULL;
}

int rate_parse(const char *text, struct rate *r)
{
	struct rate scanned;

	if (rate_scan(text, &scanned) != 0 || rate_fault(&scanned) != NULL)
		return -1;
	*r = scanned;
	return 0;
}
