// SPDX-License-Identifier: Apache-2.0
// Opens and closes one DPDK device: probe by name, queues, offloads, MTU, MAC address, start.
#include "core/ethdev.h"
#include "core/fanout.h"
#include "core/log.h"
#include "core/steering.h"
#include "isthmus_api.h"
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <net/if.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define L2_ROOM 26 // Ethernet, two tags and FCS
#define ARGS_BYTES 1024
#define RULES_PRIORITY 2 // behind those of modules/offload

// Where a refusal is explained.
struct refusal {
	const char *name; // of the port
	char *text;
	size_t n;
};

static int __attribute__((format(printf, 3, 4))) refuse(const struct refusal *r, int code, const char *format, ...)
{
	int used = snprintf(r->text, r->n, "port %s: ", r->name);
	va_list list;

	if (used > 0 && (size_t)used < r->n) {
		va_start(list, format);
		vsnprintf(r->text + used, r->n - (size_t)used, format, list);
		va_end(list);
	}
	return code;
}

// Writes the device's arguments. net_af_packet takes its queue count here; its default frame room is 2 KB. A bonding
// device takes the names of its open members. Returns the length; `n` or more when it did not fit.
static int device_args(const struct ethdev *e, const struct ethdev_source *source, const struct ethdev_want *want,
	char *args, size_t n)
{
	int packet = strcmp(source->driver, "net_af_packet") == 0;
	int count = packet && strstr(source->args, "qpairs=") == NULL;
	int large = packet && want->mtu > 1900 && strstr(source->args, "framesz=") == NULL;
	char queue_pairs[24] = "";

	if (count)
		snprintf(queue_pairs, sizeof(queue_pairs), ",qpairs=%u", want->rx_queues);
	int used = snprintf(args, n, "%s%s%s", source->args, queue_pairs, large ? ",framesz=16384,blocksz=65536" : "");

	for (uint32_t i = 0; source == &want->source && i < e->handles && used < (int)n; i++)
		used += snprintf(args + used, n - (size_t)used, ",slave=%s", e->handle[i].device);
	return used;
}

// A killed memif server leaves its socket file, and the driver does not bind over it. The file is removed unless
// /proc/net/unix lists a listener. connect() would disturb a live server.
static void remove_stale_socket(const struct ethdev_source *want)
{
	const char *at = strstr(want->args, "socket=");
	char path[ARGS_BYTES], line[2 * ARGS_BYTES];
	struct stat file;
	int alive = 0;

	if (strcmp(want->driver, "net_memif") != 0 || at == NULL || strstr(want->args, "role=server") == NULL ||
		strstr(want->args, "socket-abstract=no") == NULL)
		return;
	at += strlen("socket=");
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(at, ","), at);
	if (lstat(path, &file) != 0 || !S_ISSOCK(file.st_mode))
		return;
	FILE *f = fopen("/proc/net/unix", "r");

	if (f == NULL)
		return;
	while (!alive && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = 0;
		// The name, as it was bound, ends the line behind a blank; it may be relative.
		size_t all = strlen(line), n = strlen(path);

		alive = all > n && line[all - n - 1] == ' ' && strcmp(line + all - n, path) == 0;
	}
	fclose(f);
	if (!alive && unlink(path) == 0)
		LOG(NOTICE, "removed %s, which a dead memif server left behind\n", path);
}

// DPDK's driver is found by how the device's name begins.
static const char *pmd_of(const char *driver)
{
	return strcmp(driver, "net_bond") == 0 ? "net_bonding" : driver;
}

// Without it the driver cannot work; empty when this process has it.
static const char *lacks(const char *driver)
{
	static const struct {
		const char *driver, *name;
		uint32_t bit;
	} needs[] = {{"net_af_packet", "CAP_NET_RAW", CAP_NET_RAW}, {"net_af_xdp", "CAP_NET_RAW", CAP_NET_RAW},
		{"net_pcap", "CAP_NET_RAW", CAP_NET_RAW}, {"net_tap", "CAP_NET_ADMIN", CAP_NET_ADMIN}};
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &head, has) != 0)
		return "";
	for (size_t i = 0; i < RTE_DIM(needs); i++)
		if (strcmp(driver, needs[i].driver) == 0 && (has[0].effective >> needs[i].bit & 1) == 0)
			return needs[i].name;
	return "";
}

// The kernel's driver of a PCI device, by its folder in /sys. DPDK opens it under few of them.
static void kernel_driver(const char *path, char *driver, size_t n)
{
	char link[PATH_MAX], to[PATH_MAX];

	snprintf(link, sizeof(link), "%s/driver", path);
	ssize_t length = readlink(link, to, sizeof(to) - 1);
	to[length < 0 ? 0 : length] = 0;
	const char *slash = strrchr(to, '/');
	snprintf(driver, n, "%s", slash != NULL ? slash + 1 : "none");
}

// DPDK returns EPERM (-1) for most failures: this finds the real cause.
static int not_taken(const struct ethdev_source *source, const struct ethdev_handle *h, const char *args, int error,
	const struct refusal *r)
{
	char path[sizeof("/sys/bus/pci/devices/") + sizeof(h->device)], name[64] = "";
	int packet = strcmp(source->driver, "net_af_packet") == 0 || strcmp(source->driver, "net_af_xdp") == 0;
	const char *iface = packet ? strstr(args, "iface=") : NULL;

	if (iface != NULL)
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(iface + 6, ","), iface + 6);
	if (name[0] != 0 && if_nametoindex(name) == 0)
		return refuse(r, ENODEV, "there is no network device %s here", name);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", h->device);
	if (strcmp(h->bus, "pci") == 0 && access(path, F_OK) != 0)
		return refuse(r, ENODEV, "there is no PCI device %s here", h->device);
	const char *why = log_heard()[0] != 0 ? log_heard() : rte_strerror(abs(error));
	if (strcmp(h->bus, "pci") == 0) {
		kernel_driver(path, name, sizeof(name));
		return refuse(r, ENODEV,
			"PCI device %s cannot be opened, its driver in the kernel is %s (dpdk-devbind.py -s): %s",
			h->device, name, why);
	}
	if (lacks(source->driver)[0] != 0)
		return refuse(r, EPERM, "%s needs %s, which this process has not: %s", source->driver,
			lacks(source->driver), why);
	return refuse(r, ENODEV, "%s does not take \"%s\": %s", source->driver, args, why);
}

// `number` distinguishes the members of one device.
static int probe(struct ethdev *e, const struct ethdev_source *source, const char *number,
	const struct ethdev_want *want, const struct refusal *r)
{
	struct ethdev_handle *h = &e->handle[e->handles];
	char args[ARGS_BYTES];
	int error;

	remove_stale_socket(source);
	if (strcmp(source->driver, "pci") == 0) {
		snprintf(h->bus, sizeof(h->bus), "pci");
		snprintf(h->device, sizeof(h->device), "%.*s", (int)strcspn(source->args, ","), source->args);
		const char *comma = strchr(source->args, ',');
		snprintf(args, sizeof(args), "%s", comma ? comma + 1 : "");
	} else {
		snprintf(h->bus, sizeof(h->bus), "vdev");
		snprintf(h->device, sizeof(h->device), "%s_%s%s", pmd_of(source->driver), r->name, number);
		if (device_args(e, source, want, args, sizeof(args)) >= (int)sizeof(args))
			return refuse(r, E2BIG, "device and arguments take more than %zu bytes", sizeof(args) - 1);
	}
	if (rte_eth_dev_get_port_by_name(h->device, &h->id) == 0)
		return refuse(r, EBUSY, "device %s serves another port", h->device);
	log_listen();
	error = rte_eal_hotplug_add(h->bus, h->device, args);
	if (error != 0)
		return not_taken(source, h, args, error, r);
	if (rte_eth_dev_get_port_by_name(h->device, &h->id) != 0) {
		rte_eal_hotplug_remove(h->bus, h->device);
		return refuse(r, ENODEV, "device %s is not a network port", h->device);
	}
	e->handles++;
	e->id = h->id;
	return 0;
}

// A bonding device polls members without link interrupts every 10 ms and waits for the others' interrupt. That of an
// e1000e (82574L) never came (test/vm/bond_e1000e_test.sh), so all are polled.
static void poll_link(uint16_t member)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(member, &info) == 0)
		*(uint32_t *)(uintptr_t)info.dev_flags &= ~RTE_ETH_DEV_INTR_LSC;
}

static int probe_all(struct ethdev *e, const struct ethdev_want *want, const struct refusal *r)
{
	char number[12];

	for (uint32_t i = 0; i < want->members; i++) {
		snprintf(number, sizeof(number), "/%u", i + 1);
		int error = probe(e, &want->member[i], number, want, r);

		if (error != 0)
			return error;
		poll_link(e->id);
	}
	return probe(e, &want->source, "", want, r);
}

static uint32_t buffer_room(const struct ethdev_want *want)
{
	return rte_pktmbuf_data_room_size(want->pool) - RTE_PKTMBUF_HEADROOM;
}

// Of a bonding device: its members' capabilities, which it does not know yet.
static uint64_t offered_hashes(const struct ethdev *e)
{
	uint64_t offered = UINT64_MAX;
	struct rte_eth_dev_info info;

	for (uint32_t i = 0; i < e->handles; i++)
		offered &= rte_eth_dev_info_get(e->handle[i].id, &info) == 0 ? info.flow_type_rss_offloads : 0;
	return offered;
}

// A card's word on UDP checksums is believed (path/udp_sum.h). A paravirtual device would hand over packets with
// unfinished checksums if asked; other devices have no such word.
static uint64_t checksums_found(const struct rte_eth_dev_info *info)
{
	static const char *const none[] = {"net_virtio", "net_vmxnet3", "net_tap", "net_bonding"};

	for (uint32_t i = 0; i < RTE_DIM(none); i++)
		if (strncmp(info->driver_name, none[i], strlen(none[i])) == 0)
			return 0;
	return info->rx_offload_capa & (RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_OUTER_UDP_CKSUM);
}

static void set_offloads(const struct ethdev *e, const struct rte_eth_dev_info *info, const struct ethdev_want *want,
	struct rte_eth_conf *conf)
{
	if (want->mtu + L2_ROOM > buffer_room(want))
		conf->rxmode.offloads |= info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	conf->rxmode.offloads |= checksums_found(info);
	conf->txmode.offloads |= info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (conf->rxmode.mq_mode == RTE_ETH_MQ_RX_RSS) {
		conf->rx_adv_conf.rss_conf.rss_hf = steering_hash(offered_hashes(e), want->access);
		if (conf->rx_adv_conf.rss_conf.rss_hf == 0)
			conf->rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
	}
}

static int is_tap(const struct ethdev_want *want)
{
	return strcmp(want->source.driver, "net_tap") == 0;
}

static int configure(struct ethdev *e, const struct ethdev_want *want, const struct refusal *r)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = {0};
	uint16_t descriptors = want->descriptors ? want->descriptors : ETHDEV_DESCRIPTORS, rx = descriptors, tx = rx;

	if (rte_eth_dev_info_get(e->id, &info) != 0)
		return refuse(r, EIO, "the device does not say what it can do");
	e->rx_queues = RTE_MIN(RTE_MIN(want->rx_queues, info.max_rx_queues), ETHDEV_QUEUES);
	e->tx_queues = RTE_MIN(want->tx_queues, info.max_tx_queues);
	e->multi_segment = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
	if (want->mtu + L2_ROOM > buffer_room(want) && !(info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER))
		return refuse(r, EINVAL,
			"the device does not chain buffers, so an MTU of %u needs engine.buffer_size %u", want->mtu,
			want->mtu + L2_ROOM);
	uint64_t marks = RTE_ETH_RX_METADATA_USER_MARK;
	if (want->marks)
		rte_eth_rx_metadata_negotiate(e->id, &marks); // a device that has no such setting delivers them anyway
	conf.rxmode.mtu = want->mtu;
	conf.intr_conf.rxq = is_tap(want);
	// A bonding device then reports its last known link state. Else a reader and EAL's polling thread read its
	// members' links at once, which drivers do not support: an e1000e's link looked down to one of them, and left
	// LACP.
	conf.intr_conf.lsc = want->members != 0;
	conf.rxmode.mq_mode = e->rx_queues > 1 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
	set_offloads(e, &info, want, &conf);
	e->steering = steering_of_hash(conf.rx_adv_conf.rss_conf.rss_hf, want->access);
	log_hush(1); // some virtual devices refuse an MTU at this point, and take it later or never
	int error = rte_eth_dev_configure(e->id, e->rx_queues, e->tx_queues, &conf);
	log_hush(0);
	if (error != 0)
		conf.rxmode.mtu = 0, error = rte_eth_dev_configure(e->id, e->rx_queues, e->tx_queues, &conf);
	if (error == 0)
		error = rte_eth_dev_adjust_nb_rx_tx_desc(e->id, &rx, &tx);
	for (uint16_t q = 0; error == 0 && q < e->rx_queues; q++)
		error = rte_eth_rx_queue_setup(e->id, q, rx, rte_eth_dev_socket_id(e->id), NULL, want->pool);
	for (uint16_t q = 0; error == 0 && q < e->tx_queues; q++)
		error = rte_eth_tx_queue_setup(e->id, q, tx, rte_eth_dev_socket_id(e->id), NULL);
	if (error != 0)
		return refuse(r, -error, "the device refuses %u+%u queues of %u descriptors: %s", e->rx_queues,
			e->tx_queues, descriptors, rte_strerror(-error));
	return 0;
}

// Asks the Linux interface behind a device: 0, -1 without one or without an answer, 1 when it is gone.
static int interface_request(uint16_t id, unsigned long what, struct ifreq *request)
{
	struct rte_eth_dev_info info;
	int error = -1, s;

	if (rte_eth_dev_info_get(id, &info) != 0 || info.if_index == 0)
		return -1;
	if (if_indextoname(info.if_index, request->ifr_name) == NULL)
		return 1;
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s >= 0) {
		error = ioctl(s, what, request);
		close(s);
	}
	return error;
}

// Of net_af_packet, whose driver refuses more than 1500.
static int set_interface_mtu(uint16_t id, uint32_t mtu)
{
	struct ifreq request = {.ifr_mtu = (int)mtu};

	return interface_request(id, SIOCSIFMTU, &request);
}

// net_af_packet says "up" whatever its interface is.
int ethdev_link(const struct ethdev *e)
{
	struct rte_eth_link link;
	struct ifreq request = {.ifr_flags = 0};

	if (rte_eth_link_get_nowait(e->id, &link) != 0 || link.link_status == 0)
		return 0;
	int answer = interface_request(e->id, SIOCGIFFLAGS, &request);
	return answer < 0 || (answer == 0 && (request.ifr_flags & IFF_RUNNING) != 0);
}

// Members first: the bonding device's own is theirs.
static void set_mtu(const struct ethdev *e, const struct ethdev_want *want, const struct refusal *r)
{
	uint32_t mtu = want->mtu + want->tags;

	log_hush(1); // how to set it is tried
	for (uint32_t i = 0; i < e->handles; i++) {
		const struct ethdev_handle *h = &e->handle[i];

		if (rte_eth_dev_set_mtu(h->id, (uint16_t)mtu) != 0 && set_interface_mtu(h->id, mtu) != 0 &&
			rte_eth_dev_set_mtu(h->id, (uint16_t)want->mtu) != 0)
			LOG(INFO, "port %s: %s has no MTU to set\n", r->name, h->device);
	}
	log_hush(0);
}

// Virtio-net's VLAN filter begins empty and passes 802.1Q tags only in promiscuous mode (VIRTIO 1.1 §5.1.6.5.3). A
// bonding device with LACP gives its members neither its MAC address nor the group of LACPDUs (DPDK bug 1426); it drops
// frames for others itself.
static int needs_all_frames(const struct ethdev_want *want, const struct rte_eth_dev_info *info)
{
	return (want->members != 0 && strstr(want->source.args, "mode=4") != NULL) ||
	       (strcmp(info->driver_name, "net_virtio") == 0 &&
		       (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER));
}

static void pass_frames(const struct ethdev *e, const struct ethdev_want *want, const struct refusal *r)
{
	uint32_t cards = want->members != 0 ? want->members : e->handles;
	struct rte_eth_dev_info info;

	for (uint32_t i = 0; i < cards; i++)
		if (rte_eth_dev_info_get(e->handle[i].id, &info) == 0 && needs_all_frames(want, &info) &&
			rte_eth_promiscuous_enable(e->handle[i].id) != 0)
			LOG(WARNING, "port %s: %s keeps frames from us\n", r->name, e->handle[i].device);
}

static int start(struct ethdev *e, const struct ethdev_want *want, const struct refusal *r)
{
	struct rte_ether_addr mac;

	if (mac_given(&mac, want->mac) && rte_eth_dev_default_mac_addr_set(e->id, &mac) != 0)
		LOG(WARNING,
			"port %s: the device keeps its own MAC address; frames to the configured one need promiscuous "
			"mode\n",
			r->name);
	int error = rte_eth_dev_start(e->id);
	if (error != 0)
		return refuse(r, -error, "does not start: %s", rte_strerror(-error));
	rte_eth_macaddr_get(e->id, &e->mac);
	mac_given(&e->mac, want->mac);
	set_mtu(e, want, r);
	if (want->promiscuous && rte_eth_promiscuous_enable(e->id) != 0)
		LOG(WARNING, "port %s: no promiscuous mode\n", r->name);
	pass_frames(e, want, r);
	// Neighbour discovery needs the solicited-node groups (RFC 4291 §2.7.1).
	rte_eth_allmulticast_enable(e->id);
	return 0;
}

// Sockets are known since they became rings. A queue of net_tap is a descriptor, which the driver presents as an
// interrupt's. Cards' descriptors are not used.
static void find_descriptors(struct ethdev *e, const struct ethdev_want *want)
{
	uint32_t rings = ring_sockets(e->socket, RTE_DIM(e->socket));

	e->sockets = RTE_MIN(rings, RTE_DIM(e->socket));
	for (uint16_t q = 0; q < ETHDEV_QUEUES; q++)
		if (is_tap(want) && q < e->rx_queues)
			e->rx_fd[q] = rte_eth_dev_rx_intr_ctl_q_get_fd(e->id, q);
		else
			e->rx_fd[q] = rings == e->rx_queues && e->handles == 1 && q < rings ? e->socket[q] : -1;
}

int ethdev_counts(struct ethdev *e, struct rte_eth_stats *s)
{
	int error = rte_eth_stats_get(e->id, s);

	for (uint32_t i = 0; i < e->sockets; i++)
		e->dropped += ring_dropped(e->socket[i]);
	if (error == 0)
		s->imissed += e->dropped;
	return error;
}

// In reverse order: a bonding device releases its members.
void ethdev_close(struct ethdev *e)
{
	while (e->handles > 0) {
		const struct ethdev_handle *h = &e->handle[--e->handles];

		rte_eth_dev_stop(h->id);
		rte_eth_dev_close(h->id);
		rte_eal_hotplug_remove(h->bus, h->device);
	}
}

int ethdev_open(struct ethdev *e, const char *name, const struct ethdev_want *want, char *error, size_t n)
{
	struct refusal r = {name, error, n};

	memset(e, 0, sizeof(*e));
	ring_sockets(NULL, 0);
	int code = probe_all(e, want, &r);

	if (code == 0)
		code = configure(e, want, &r);
	if (code == 0)
		code = start(e, want, &r);
	if (code == 0)
		find_descriptors(e, want);
	if (code == 0 && e->rx_queues > 1 && e->steering != API_STEERING_RSS_INNER &&
		steering_rules(e->id, e->rx_queues, want->access, want->marks ? RULES_PRIORITY : 0))
		e->steering = API_STEERING_FLOW_RULES;
	if (code != 0)
		ethdev_close(e);
	return code;
}
