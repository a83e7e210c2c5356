// SPDX-License-Identifier: Apache-2.0
// TAP devices: Linux' Documentation/networking/tuntap.rst, network_namespaces(7).
#include "host/tap.h"
#include "core/log.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define TUN "/dev/net/tun"

static struct ifreq request_of(const struct tap *t)
{
	struct ifreq r = {.ifr_flags = 0};

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", t->device);
	return r;
}

// Enters the namespace; returns the descriptor to return by, -1 when there is none to enter, -2 on error.
static int enter(struct tap *t, char *why, size_t n)
{
	struct stat s;

	if (t->netns[0] == 0)
		return -1;
	int there = open(t->netns, O_RDONLY | O_CLOEXEC);
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (there < 0 || home < 0 || fstat(there, &s) != 0 || setns(there, CLONE_NEWNET) != 0) {
		snprintf(why, n, "network namespace %s: %s", t->netns, strerror(errno));
		if (home >= 0)
			close(home);
		home = -2;
	} else {
		t->netns_device = s.st_dev;
		t->netns_inode = s.st_ino;
	}
	if (there >= 0)
		close(there);
	return home;
}

static int leave(int home, char *why, size_t n)
{
	if (home < 0)
		return 0;
	int error = setns(home, CLONE_NEWNET);
	if (error != 0) { // the ports that are opened next would be looked for in the wrong one
		snprintf(why, n, "cannot come back from the network namespace: %s", strerror(errno));
		LOG(CRIT, "%s\n", why);
	}
	close(home);
	return error;
}

// 0, or -1 with errno.
static int set_up(const struct tap *t, uint32_t mtu, int new)
{
	struct ifreq r = request_of(t);

	if (ioctl(t->inet, SIOCGIFMTU, &r) != 0)
		return -1;
	if (new || (uint32_t)r.ifr_mtu > mtu) {
		r.ifr_mtu = (int)mtu;
		if (ioctl(t->inet, SIOCSIFMTU, &r) != 0)
			return -1;
	}
	if (!new)
		return 0;
	r = request_of(t);
	if (ioctl(t->inet, SIOCGIFFLAGS, &r) != 0)
		return -1;
	r.ifr_flags = (short)(r.ifr_flags | IFF_UP);
	return ioctl(t->inet, SIOCSIFFLAGS, &r);
}

static int put_mac(const struct tap *t, const struct rte_ether_addr *mac)
{
	struct ifreq r = {.ifr_flags = 0};

	if (ioctl(t->fd, SIOCGIFHWADDR, &r) != 0)
		return -1;
	if (memcmp(r.ifr_hwaddr.sa_data, mac, sizeof(*mac)) == 0)
		return 0;
	r.ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(r.ifr_hwaddr.sa_data, mac, sizeof(*mac));
	return ioctl(t->fd, SIOCSIFHWADDR, &r);
}

static int attach(struct tap *t, const struct rte_ether_addr *mac, uint32_t mtu)
{
	struct ifreq r = request_of(t), is = r;

	t->fd = open(TUN, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	t->inet = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (t->fd < 0 || t->inet < 0)
		return -1;
	int new = ioctl(t->inet, SIOCGIFINDEX, &is) != 0;
	r.ifr_flags = IFF_TAP | IFF_NO_PI;
	if (ioctl(t->fd, TUNSETIFF, &r) != 0 || ioctl(t->fd, TUNSETPERSIST, 1) != 0)
		return -1;
	return put_mac(t, mac) != 0 ? -1 : set_up(t, mtu, new);
}

int tap_open(struct tap *t, const struct rte_ether_addr *mac, uint32_t mtu, char *why, size_t n)
{
	int home = enter(t, why, n);

	if (home == -2)
		return -1;
	int error = attach(t, mac, mtu);
	if (error != 0)
		snprintf(why, n, errno == EBUSY ? "%s: %s (another program has it)" : "%s: %s", t->device,
			strerror(errno));
	if (leave(home, why, n) != 0)
		error = -1;
	if (error != 0)
		tap_close(t);
	return error;
}

void tap_close(struct tap *t)
{
	if (t->fd >= 0)
		close(t->fd);
	if (t->inet >= 0)
		close(t->inet);
	t->fd = t->inet = -1;
}

void tap_delete(struct tap *t)
{
	if (t->fd >= 0)
		ioctl(t->fd, TUNSETPERSIST, 0);
	tap_close(t);
}

int tap_alive(const struct tap *t, const struct rte_ether_addr *mac, char *why, size_t n)
{
	struct stat s;

	if (t->netns[0] != 0 &&
		(stat(t->netns, &s) != 0 || s.st_dev != t->netns_device || s.st_ino != t->netns_inode)) {
		snprintf(why, n, "network namespace %s is gone", t->netns);
		return 0;
	}
	if (put_mac(t, mac) == 0 || errno != EBADFD)
		return 1;
	snprintf(why, n, "%s is gone", t->device);
	return 0;
}

void tap_link(const struct tap *t, int up)
{
	int carrier = up != 0;

	if (ioctl(t->fd, TUNSETCARRIER, &carrier) != 0 && errno != EBADFD)
		LOG(WARNING, "%s: the kernel does not take the link's state: %s\n", t->device, strerror(errno));
}
