#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: a virtual machine
# Tagged interfaces against the VLAN devices of Linux, which this machine's kernel may lack: 802.1Q, and 802.1Q inside
# 802.1ad, on an e1000e card by vfio-pci. Both families, full size.
#
#   [ gateway, card gw0 ] ══ sw0 [ sw0.7: 10.50.7.2; sw0.100 (802.1ad), sw0.100.9: 10.50.9.2 ]   both in one machine
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/vm.sh
. "$TEST_ROOT/test/lib/vm.sh"
own_namespaces "$@"

vm_cabled_card e1000e gw0 "" "$(vm_cable 0)"
vm_cabled_card virtio-net-pci sw0 "" "$(vm_cable 0)"
vm_start
vm_bind vfio-pci gw0
vm_give virtio_net sw0
in_vm modprobe 8021q
# shellcheck disable=SC2016 # the machine's variables
in_vm bash -e -c '
	sysctl -qw net.ipv6.conf.default.accept_dad=0
	ip link add link sw0 name sw0.7 type vlan id 7
	ip link add link sw0 name sw0.100 type vlan proto 802.1ad id 100
	ip link add link sw0.100 name sw0.100.9 type vlan id 9
	for name in sw0.7 sw0.100 sw0.100.9; do ip link set "$name" mtu 1500 up; done
	for n in 7:sw0.7 9:sw0.100.9; do
		ip addr add "10.50.${n%%:*}.2/24" dev "${n#*:}"
		ip addr add "fd00:50:${n%%:*}::2/64" dev "${n#*:}" nodad
	done'
cat >"$DIR/isthmus.yaml" <<-EOF
	engine:
	  huge_pages: "on"
	  packet_buffers: 16384
	  idle_sleep: true

	ports: [{name: core, driver: pci, device: "${VM_ADDRESS[gw0]}", role: core}]
	interfaces:
	  - {name: q, port: core, outer_vlan: 7, addresses: [10.50.7.1/24, "fd00:50:7::1/64"]}
	  - {name: ad, port: core, outer_vlan: 100, inner_vlan: 9, addresses: [10.50.9.1/24, "fd00:50:9::1/64"]}
EOF
vm_start_gateway
for target in 10.50.7.1 fd00:50:7::1 10.50.9.1 fd00:50:9::1; do
	pings() { in_vm ping -q -c 1 -W 2 "$@" "$target"; }
	wait_for 10 pings || fail "no ping of $target: $(in_vm ip -s link; isthmus show drop)"
	wait_for 5 pings -M "do" -s 1452 || fail "no full size to $target"
done
# From one VLAN to the other, which the gateway routes.
# shellcheck disable=SC2016 # the machine's variables
in_vm bash -e -c '
	ip netns add far
	ip link set sw0.100.9 netns far
	ip -n far addr add 10.50.9.2/24 dev sw0.100.9
	ip -n far link set sw0.100.9 up
	ip -n far route add default via 10.50.9.1
	ip route add 10.50.9.0/24 via 10.50.7.1'
routed() { in_vm ping -q -c 1 -W 2 -s 1400 10.50.9.2; }
wait_for 10 routed || fail "nothing is routed between VLANs: $(isthmus show drop)"
echo PASS
