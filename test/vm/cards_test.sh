#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: a virtual machine
# Network cards: the gateway in a virtual machine, on each kind of card that QEMU emulates and DPDK drives, by
# vfio-pci behind an IOMMU. All traffic, frames of 9000 bytes, links that go down and come back, and a card that
# is taken out.
# usage: cards_test.sh [KIND...]
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/vm.sh
. "$TEST_ROOT/test/lib/vm.sh"
own_namespaces "$@"

KINDS=("$@")
((${#KINDS[@]})) || KINDS=(e1000e virtio-net-pci e1000 vmxnet3)
for i in "${!KINDS[@]}"; do
	vm_card "${KINDS[i]}" "home$i"
	vm_card "${KINDS[i]}" "upf$i"
done
vm_start
vm_bind vfio-pci "${!VM_ADDRESS[@]}"

# DPDK's driver of vmxnet3 reports "up" whatever the link is, as dpdk-testpmd shows, and takes frames of one buffer.
limited() { [[ $1 == vmxnet3 ]]; }
# usage: on_cards NUMBER MTU: writes the configuration with the cards of KINDS[NUMBER]
on_cards() {
	use_config "s|net_af_packet, device: veth-access|pci, device: \"${VM_ADDRESS[home$1]}\", mtu: $2|
		s|net_af_packet, device: veth-core|pci, device: \"${VM_ADDRESS[upf$1]}\", mtu: $2|
		s|huge_pages: \"off\"|huge_pages: \"on\"|; s|packet_buffers: 8192|packet_buffers: 32768|"
}
# usage: port_is PORT JQ_EXPRESSION
port_is() { isthmus show port "$1" -j | jq -e ".[0] | $2" >/dev/null; }
pings() { ping -q -c 1 -W 1 10.30.0.1; }
large_pings() { ping -q -c 1 -W 1 -M "do" -s 8972 10.30.0.1; }

for i in "${!KINDS[@]}"; do
	echo "--- ${KINDS[i]}"
	kernel_address "upf$i" 10.30.0.2/24 fd00:30::2/64
	on_cards "$i" 1500
	if ((i == 0)); then vm_start_gateway; else vm_apply; fi
	dp=$(isthmus status -j | jq .dp_pid)
	all_traffic "home$i" "upf$i"

	if ! limited "${KINDS[i]}"; then
		vm_monitor set_link "upf$i" off
		wait_for 10 port_is core '.up == false' || fail "the link is down, and show port does not say so"
		port_is access .up || fail "the other port's link is down, too"
		vm_monitor set_link "upf$i" on
		wait_for 10 port_is core .up || fail "the link is up again, and show port does not say so"
		wait_for 2 pings || fail "no packets after the link came back"
	fi

	on_cards "$i" 9000
	vm_apply
	wait_for 10 port_is core '.mtu == 9000'
	ip link set "upf$i" mtu 9000
	limited "${KINDS[i]}" || wait_for 2 large_pings || fail "no frames of 9000 bytes"

	vm_monitor device_del "home$i"
	wait_for 10 port_is access '.gone and (.up | not)' || fail "the card is out, and show port does not say so"
	wait_for 20 in_vm test ! -e "/sys/bus/pci/devices/${VM_ADDRESS[home$i]}" || fail "the kernel waits for the card"
	pings >/dev/null || fail "no packets through the other port"
	(($(isthmus status -j | jq .dp_pid) == dp)) || fail "the data plane died of it"
	ip addr flush dev "upf$i"
done
echo PASS
