# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A UPF between a radio network, a data network and SMFs, all on veth pairs: what the N4 tests share.
# usage: . test/lib/net.sh; . test/lib/upf.sh; own_namespaces "$@"; upf_fixture [SED_SCRIPT]; then start_gateway.

upf_fixture() {
	veth_pair veth-n3 gnb0
	veth_pair veth-n6 dn0
	ip link set gnb0 mtu 1600
	in_gateway ip link set veth-n3 mtu 1600
	kernel_address gnb0 10.30.0.2/24 fd00:30::2/64
	kernel_address dn0 10.60.0.2/24 fd00:60::2/64
	ip route add 10.45.0.0/16 via 10.60.0.1 dev dn0
	ip route add 2001:db8:45::/48 via fd00:60::1 dev dn0
	# N4: the control plane's sockets are the kernel's.
	ip link add n4 netns gateway type veth peer name smf0
	in_gateway ip addr add 10.40.0.1/24 dev n4
	in_gateway ip link set n4 up
	ip link set smf0 up
	for host in 2 3 4 5 6 7; do
		ip addr add "10.40.0.$host/24" dev smf0
	done
	sed "${1:-}" "$TEST_ROOT/test/e2e/upf.yaml" >"$DIR/isthmus.yaml"
}

# Captures N4 into $DIR/n4.pcap.
# usage: capture_n4 [FILTER...]
capture_n4() {
	tcpdump -i smf0 -B 8192 -U -w "$DIR/n4.pcap" "udp port 8805 ${*:+and ($*)}" 2>/dev/null &
	wait_for 5 test -s "$DIR/n4.pcap"
}
