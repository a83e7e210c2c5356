#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: a virtual machine
# Cards with several receive queues, one for each of two workers. All traffic, whichever queue a frame comes in by and
# whichever worker owns its subscriber, and the steering of the port. A card with one queue is every worker's, too.
# usage: queues_test.sh [KIND...]
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/vm.sh
. "$TEST_ROOT/test/lib/vm.sh"
own_namespaces "$@"

KINDS=("$@")
((${#KINDS[@]})) || KINDS=(virtio-net-pci vmxnet3 e1000e)
for i in "${!KINDS[@]}"; do
	for end in home upf; do
		if [[ ${KINDS[i]} == virtio-net-pci ]]; then
			vm_card virtio-net-pci "$end$i" mq=on,vectors=6 2
		else
			vm_card "${KINDS[i]}" "$end$i"
		fi
	done
done
vm_start
vm_bind vfio-pci "${!VM_ADDRESS[@]}"

cat >"$DIR/many.py" <<-'EOF'
	import socket
	for port in range(20000, 20064):
	    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
	        s.bind(("10.30.0.2", port))
	        s.sendto(bytes(32), ("10.30.0.1", 9))
EOF
# usage: packets WORKER
packets() { isthmus show worker -j | jq ".[$1].packets"; }
# usage: both_receive KIND: of 64 flows to us, which are not handed over, each worker gets some
both_receive() {
	local before=("$(packets 0)" "$(packets 1)")
	"$PYTHON" "$DIR/many.py"
	all() { (($(packets 0) + $(packets 1) >= before[0] + before[1] + 64)); }
	wait_for 10 all || fail "64 packets do not arrive"
	(($(packets 0) > before[0] + 8 && $(packets 1) > before[1] + 8)) ||
		fail "$1: the workers had ${before[*]} packets, and now $(packets 0) $(packets 1)"
}

for i in "${!KINDS[@]}"; do
	echo "--- ${KINDS[i]}"
	kernel_address "upf$i" 10.30.0.2/24 fd00:30::2/64
	use_config "s|net_af_packet, device: veth-access|pci, device: \"${VM_ADDRESS[home$i]}\"|
		s|net_af_packet, device: veth-core|pci, device: \"${VM_ADDRESS[upf$i]}\"|
		s|^engine:|engine:\n  workers: 2|
		s|huge_pages: \"off\"|huge_pages: \"on\"|; s|packet_buffers: 8192|packet_buffers: 32768|"
	if ((i == 0)); then vm_start_gateway; else vm_apply; fi
	all_traffic "home$i" "upf$i"
	[[ ${KINDS[i]} != virtio-net-pci ]] || both_receive "${KINDS[i]}"
	isthmus show port -j | jq -r '.[] | "\(.name) \(.driver) \(.steering)"'
	isthmus show port -j | jq -e 'all(.steering != "none")' >/dev/null || fail "two workers, and nothing steers"
	isthmus show worker
	ip addr flush dev "upf$i"
done
echo PASS
