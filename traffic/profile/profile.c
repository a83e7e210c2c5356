// SPDX-License-Identifier: Apache-2.0
// See profile.h: the file as a whole, ports, capture.
#include "traffic/profile/profile.h"
#include "traffic/profile/profile_read.h"
#include "traffic/profile/units.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CPU_MAX 1023
#define SOCKET_PATH 107 // sun_path of unix(7), without its end
#define MEMIF_RING 16384
#define MTU_MIN 256

static void read_driver(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	static const char *const known[] = {"share", "pci", "net_memif", "net_af_packet", "net_af_xdp", "net_tap",
		"net_ring", "net_pcap", "net_null", "net_vhost", "net_virtio_user", NULL};
	char *driver = to, near[YAML_FAULT_BYTES];

	yaml_name(f, n, k, to);
	if (driver[0] != 0 && strcmp(driver, "pci") != 0 && strcmp(driver, "share") != 0 &&
		strncmp(driver, "net_", 4) != 0)
		yaml_fault(f, n, "\"%s\" is no driver of DPDK (pci, net_memif, net_af_xdp, ...)%s", driver,
			yaml_suggest(driver, known, near, sizeof(near)));
}

static void read_mac(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	static const uint8_t zeros[6];
	uint8_t mac[6];
	const char *text = yaml_single(f, n);

	if (text == NULL)
		return;
	if (mac_parse(text, mac) != 0)
		yaml_refuse(f, n, text, "a MAC address (02:00:00:00:00:01)");
	else if (mac[0] & 1 || memcmp(mac, zeros, 6) == 0)
		yaml_fault(f, n, "%s is no address of a single station", text);
	else
		memcpy(to, mac, 6);
}

// An address that a host can have: not unspecified, not a group (RFC 1122 §3.2.1.3, RFC 4291 §2.7).
static bool host_address(const struct profile_address *a)
{
	static const uint8_t zeros[16];

	if (memcmp(a->bytes, zeros, 16) == 0)
		return false;
	return a->version == 4 ? a->bytes[0] < 224 && a->bytes[0] != 0 : a->bytes[0] != 0xff;
}

static void read_addresses(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	struct profile_port *port = to;

	if (n->type != YAML_SEQUENCE_NODE || yaml_entries(n) > PROFILE_ADDRESSES) {
		yaml_fault(f, n, "must be a list of at most %d addresses", PROFILE_ADDRESSES);
		return;
	}
	for (uint32_t i = 0; i < yaml_entries(n); i++) {
		const yaml_node_t *one = yaml_entry(f, n, i);
		const char *text = yaml_single(f, one);
		struct profile_address a;

		if (text == NULL)
			continue;
		if (address_parse(text, &a) != 0) {
			yaml_refuse(f, one, text, "an IPv4 or IPv6 address");
			continue;
		}
		if (!host_address(&a))
			yaml_fault(f, one, "%s is no address of a single host", text);
		for (uint32_t j = 0; j < port->addresses; j++)
			if (memcmp(&port->address[j], &a, sizeof(a)) == 0)
				yaml_fault(f, one, "%s stands here twice", text);
		port->address[port->addresses++] = a;
	}
}

#define AT(member) offsetof(struct profile_port, member)
static const struct yaml_key port_keys[] = {
	{.name = "name", .read = yaml_name, .offset = AT(name), .high = NAME_BYTES, .required = true},
	{.name = "driver", .read = read_driver, .offset = AT(driver), .high = NAME_BYTES, .required = true},
	{.name = "device", .read = yaml_text, .offset = AT(device), .low = 1, .high = TEXT_BYTES},
	{.name = "args", .read = yaml_text, .offset = AT(args), .high = TEXT_BYTES},
	{.name = "mtu", .read = yaml_u32, .offset = AT(mtu), .low = MTU_MIN, .high = FRAME_MAX},
	{.name = "descriptors", .read = yaml_u32, .offset = AT(descriptors), .low = 64, .high = 32768},
	{.name = "queues", .read = yaml_u32, .offset = AT(queues), .low = 1, .high = 16},
	{.name = "mac", .read = read_mac, .offset = AT(mac)},
	{.name = "addresses", .read = read_addresses},
};
#undef AT

static void check_device(struct yaml_file *f, const yaml_node_t *map, const struct profile_port *p)
{
	static const char *const needy[] = {
		"share", "pci", "net_memif", "net_af_packet", "net_af_xdp", "net_tap", "net_vhost", "net_virtio_user"};

	for (uint32_t i = 0; i < KEYS(needy) && p->device[0] == 0; i++)
		if (strcmp(p->driver, needy[i]) == 0 && yaml_get(f, map, "device") == NULL)
			yaml_fault(f, map, "driver %s needs a device", p->driver);
	if (strcmp(p->driver, "net_memif") == 0 && strlen(p->device) > SOCKET_PATH)
		yaml_fault(f, yaml_get(f, map, "device"), "the path of a socket has at most %d bytes", SOCKET_PATH);
	if (strcmp(p->driver, "share") == 0 && p->args[0] != 0)
		yaml_fault(f, yaml_get(f, map, "args"), "driver share takes none");
	if (strchr(p->device, ',') != NULL)
		yaml_fault(f, yaml_get(f, map, "device"), "has a comma; further arguments belong in args");
	if (strcmp(p->driver, "net_memif") == 0 &&
		((p->descriptors & (p->descriptors - 1)) != 0 || p->descriptors > MEMIF_RING))
		yaml_fault(f, yaml_get(f, map, "descriptors"),
			"a ring of net_memif has a power of two up to %d, not %u", MEMIF_RING, p->descriptors);
}

static void read_ports(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	struct profile *p = to;

	if (n->type != YAML_SEQUENCE_NODE || yaml_entries(n) == 0 || yaml_entries(n) > PROFILE_PORTS) {
		yaml_fault(f, n, "must be a list of 1 to %d ports", PROFILE_PORTS);
		return;
	}
	for (uint32_t i = 0; i < yaml_entries(n); i++) {
		const yaml_node_t *map = yaml_entry(f, n, i);
		struct profile_port *port = &p->port[p->ports++];

		*port = (struct profile_port){.line = yaml_line(map), .mtu = 1500, .descriptors = 1024, .queues = 1};
		if (!yaml_decode(f, map, port_keys, KEYS(port_keys), port))
			continue;
		check_device(f, map, port);
		for (const struct profile_port *o = p->port; o < port; o++) {
			if (port->name[0] != 0 && strcmp(o->name, port->name) == 0)
				yaml_fault(f, yaml_get(f, map, "name"), "there is a port \"%s\" in line %d already",
					port->name, o->line);
			if (port->device[0] != 0 && strcmp(o->driver, port->driver) == 0 &&
				strcmp(o->device, port->device) == 0 && strcmp(o->args, port->args) == 0)
				yaml_fault(f, map, "has the same device and args as port \"%s\"", o->name);
		}
	}
}

// The rest of the top.

static void read_cpus(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	static const struct yaml_key cpu = {.high = CPU_MAX};
	struct profile *p = to;

	if (n->type != YAML_SEQUENCE_NODE || yaml_entries(n) > PROFILE_CPUS) {
		yaml_fault(f, n, "must be a list of at most %d CPUs", PROFILE_CPUS);
		return;
	}
	for (uint32_t i = 0; i < yaml_entries(n); i++) {
		const yaml_node_t *one = yaml_entry(f, n, i);
		uint32_t value = UINT32_MAX;

		yaml_u32(f, one, &cpu, &value);
		for (uint32_t j = 0; j < p->cpus; j++)
			if (p->cpu[j] == value)
				yaml_fault(f, one, "CPU %u stands here twice", value);
		if (value <= CPU_MAX)
			p->cpu[p->cpus++] = (uint16_t)value;
	}
}

#define AT(member) offsetof(struct profile_capture, member)
static const struct yaml_key capture_keys[] = {
	{.name = "file", .read = yaml_text, .offset = AT(file), .low = 1, .high = TEXT_BYTES, .required = true},
	{.name = "every", .read = yaml_u32, .offset = AT(every), .low = 1, .high = UINT32_MAX},
	{.name = "count", .read = yaml_u32, .offset = AT(count), .low = 1, .high = 10e6},
};
#undef AT

static void read_capture(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	struct profile_capture *c = to;
	char folder[TEXT_BYTES];
	struct stat st;

	if (!yaml_decode(f, n, capture_keys, KEYS(capture_keys), c) || c->file[0] == 0)
		return;
	memcpy(folder, c->file, sizeof(folder));
	char *slash = strrchr(folder, '/');
	if (slash == NULL)
		memcpy(folder, ".", 2);
	else
		slash[slash == folder] = 0;
	if (stat(folder, &st) != 0)
		yaml_fault(f, yaml_get(f, n, "file"), "folder %s: %s", folder, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		yaml_fault(f, yaml_get(f, n, "file"), "%s is no folder", folder);
	else if (stat(c->file, &st) == 0 && S_ISDIR(st.st_mode))
		yaml_fault(f, yaml_get(f, n, "file"), "%s is a folder", c->file);
}

#define AT(member) offsetof(struct profile, member)
static const struct yaml_key profile_keys[] = {
	{.name = "name", .read = yaml_name, .offset = AT(name), .high = NAME_BYTES, .required = true},
	{.name = "title", .read = yaml_text, .offset = AT(title), .high = TEXT_BYTES},
	{.name = "cpus", .read = read_cpus},
	{.name = "gateway_cpu", .read = yaml_u32, .offset = AT(gateway_cpu), .high = CPU_MAX},
	{.name = "huge_pages", .read = yaml_bool, .offset = AT(huge_pages)},
	{.name = "memory_mb", .read = yaml_u32, .offset = AT(memory_mb), .low = 64, .high = 1048576},
	{.name = "ports", .read = read_ports, .required = true},
	{.name = "streams", .required = true},
	{.name = "run"},
	{.name = "capture", .read = read_capture, .offset = AT(capture)},
};
#undef AT

const struct profile_form profile_forms[] = {
	{"profile", profile_keys, KEYS(profile_keys)},
	{"ports", port_keys, KEYS(port_keys)},
	{"capture", capture_keys, KEYS(capture_keys)},
	{NULL, NULL, 0},
};

void profile_words(const void *first, size_t size, uint32_t n, uint32_t max, const char **words)
{
	uint32_t i = 0;

	for (; i < n && i < max; i++)
		words[i] = (const char *)first + i * size;
	words[i] = NULL;
}

struct profile *profile_parse(const char *file, const char *text, size_t n, FILE *errors)
{
	struct yaml_file *f = yaml_file_open(file, text, n, errors);
	struct profile *p = f != NULL ? calloc(1, sizeof(*p)) : NULL;

	if (f != NULL && p == NULL)
		yaml_fault(f, NULL, "no memory");
	if (p != NULL) {
		snprintf(p->file, sizeof(p->file), "%s", file);
		p->huge_pages = true;
		p->gateway_cpu = PROFILE_NO_CPU;
		p->memory_mb = 1024;
		p->capture = (struct profile_capture){.every = 1024, .count = 1000};
		if (yaml_decode(f, f->root, profile_keys, KEYS(profile_keys), p)) {
			// Streams name ports, and the run refers to streams: in this order, whatever the file's is.
			profile_read_streams(f, yaml_get(f, f->root, "streams"), p);
			profile_read_run(f, yaml_get(f, f->root, "run"), p);
		}
	}
	if (f != NULL && f->faults != 0) {
		profile_free(p);
		p = NULL;
	}
	yaml_file_close(f);
	return p;
}

struct profile *profile_load(const char *file, FILE *errors)
{
	size_t n;
	char *text = yaml_file_text(file, &n, errors);
	struct profile *p = text != NULL ? profile_parse(file, text, n, errors) : NULL;

	free(text);
	return p;
}

void profile_free(struct profile *p)
{
	if (p != NULL)
		free(p->stream);
	free(p);
}
