#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: a virtual machine
# Bonding (net_bond) over cards, against the bonding driver of Linux, which this machine's kernel may lack. All traffic,
# frames of 9000 bytes, and a cable that is cut, in each mode.
# Usage: [CARD=e1000e] bond_test.sh [MODE...]: CARD is the card of the gateway's members, virtio-net-pci by default.
#
#   home0 ── access [ gateway ] gw0, gw1 ══ sw0, sw1 [ bond0 ── bridge ] ── upf0   both in one machine
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/vm.sh
. "$TEST_ROOT/test/lib/vm.sh"
own_namespaces "$@"

vm_card virtio-net-pci home0
vm_card virtio-net-pci upf0
speed=speed=10000,duplex=full # IEEE 802.1AX joins no links without
CARD=${CARD:-virtio-net-pci}
for i in 0 1; do
	own=$speed
	[[ $CARD == virtio-net-pci ]] || own=
	vm_cabled_card "$CARD" "gw$i" "$own" "$(vm_cable "$i")"
	vm_cabled_card virtio-net-pci "sw$i" "$speed" "$(vm_cable "$i")"
done
vm_start
vm_bind vfio-pci home0 gw0 gw1
in_vm sysctl -qw net.ipv6.conf.default.disable_ipv6=1 net.ipv6.conf.all.disable_ipv6=1 # it sends nothing of its own
vm_give virtio_net upf0 sw0 sw1
ip link set upf0 mtu 9000
kernel_address upf0 10.30.0.2/24 fd00:30::2/64
in_vm bash -c 'ip link add core type bridge mcast_snooping 0 && ip link set core mtu 9000 up &&
	ip link set upf0 master core'

in_vm modprobe bonding max_bonds=0 # else it makes a bond0 of its own, where no systemd has set this

# usage: kernel_bond MODE OPTION...
kernel_bond() {
	in_vm bash -c "ip link del bond0 2>/dev/null; ip link add bond0 type bond mode $* miimon 100 &&
		for i in 0 1; do ip link set sw\$i down && ip link set sw\$i master bond0; done &&
		ip link set bond0 mtu 9000 up && ip link set bond0 master core"
}
# usage: cable NUMBER on|off
cable() {
	vm_monitor set_link "gw$1" "$2"
	vm_monitor set_link "sw$1" "$2"
}
# Announcements of our own addresses before there is a link; the kernel's after link changes, and its LACPDUs before our
# bond is there.
export MAY_DROP="port-tx-full nd-unsolicited nd-not-for-us ethertype-unknown"
pings() { ping -q -c 1 -W 1 10.30.0.1; }
large_pings() { ping -q -c 1 -W 1 -M "do" -s 8972 10.30.0.1; }
# What the kernel's bond says of its links. usage: bond_says TEXT
bond_says() { in_vm grep -q "$1" /proc/net/bonding/bond0; }
# Both links collect and distribute (IEEE 802.1AX, 6.4.2.3) at the gateway's end.
distributed() { (($(in_vm grep -c "port state: 61" /proc/net/bonding/bond0) == 2)); }

declare -A KERNEL=([active-standby]="active-backup" [static]="balance-xor xmit_hash_policy layer3+4"
	[lacp]="802.3ad lacp_rate fast xmit_hash_policy layer3+4")
(($#)) || set -- active-standby lacp static
first=$1
for mode; do
	echo "--- $mode"
	use_config "s|net_af_packet, device: veth-access|pci, device: \"${VM_ADDRESS[home0]}\"|
		s|net_af_packet, device: veth-core|net_bond, mtu: 9000, bond: {mode: $mode, members: [\
{driver: pci, device: \"${VM_ADDRESS[gw0]}\"}, {driver: pci, device: \"${VM_ADDRESS[gw1]}\"}]}|
		s|huge_pages: \"off\"|huge_pages: \"on\"|
		s|packet_buffers: 8192|packet_buffers: 16384\n  buffer_size: 9216|"
	if [[ $mode == "$first" ]]; then vm_start_gateway; else vm_apply; fi
	# Behind the gateway's, so that no LACPDU meets a port that knows none.
	# shellcheck disable=SC2086 # words are wanted
	kernel_bond ${KERNEL[$mode]}
	if [[ $mode == lacp ]]; then
		wait_for 5 bond_says "Number of ports: 2" ||
			fail "the kernel does not join the links: $(in_vm cat /proc/net/bonding/bond0)"
		wait_for 30 distributed || fail "the gateway does not: $(in_vm cat /proc/net/bonding/bond0)"
	fi
	all_traffic home0 upf0
	wait_for 2 large_pings || fail "no frames of 9000 bytes"
	for i in 0 1; do
		cable "$i" off
		wait_for 2 pings || fail "link $i is cut, and the other one does not carry all"
		cable "$i" on
		wait_for 2 pings || fail "link $i came back, and nothing is received"
	done
done
echo PASS
