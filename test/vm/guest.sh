#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Inside a virtual machine: runs commands of in_vm of test/lib/vm.sh. A connection brings a line with the command and
# one with its standard input, as base64; it gets the output, a line with the exit status, and a zero.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
if [[ ${1:-} == serve ]]; then
	read -r command
	read -r input
	base64 -d <<<"$input" | bash -c "$command" 2>&1
	printf '\n%d\0' $?
	exit
fi
mkdir -p /dev/{pts,shm,hugepages} /run/netns
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t hugetlbfs hugetlbfs /dev/hugepages
ip link set lo up
modprobe virtio_net
for card in /sys/class/net/*; do
	[[ $(<"$card/address") != 02:00:00:00:fe:02 ]] || ip link set "${card##*/}" name vm
done
ip addr add 169.254.254.2/30 dev vm
ip link set vm up
socat TCP-LISTEN:1,fork,reuseaddr EXEC:"$0 serve" &
for _ in $(seq 300); do
	(: >/dev/tcp/127.0.0.1/1) 2>/dev/null && break
	sleep 0.1
done
echo "the machine is ready" >/dev/console
wait
