#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# First process of a machine in namespaces: systemd of the system in a folder. Devices, /run and groups of processes are
# its own; the network is that of the caller.
# usage: unshare --mount --pid --cgroup --uts --ipc --fork --kill-child boot.sh FOLDER
set -euo pipefail
root=$1
mount --make-rprivate /
mountpoint -q "$root" || mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir -p "$root/dev/"{net,pts,shm,mqueue,hugepages}
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for device in null zero full random urandom tty net/tun; do
	cp -a "/dev/$device" "$root/dev/$device"
done
chmod 666 "$root/dev/net/tun" # as udev does
if [[ -d /sys/fs/cgroup/systemd ]]; then
	mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
	mkdir "$root/sys/fs/cgroup/systemd"
	mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
else
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
fi
cd "$root"
pivot_root . mnt
umount -l mnt
exec env -i container=isthmus PATH=/usr/sbin:/usr/bin /lib/systemd/systemd --unit=multi-user.target \
	--log-target=console --log-level=notice --show-status=no
