#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: LACP's clock
# net_bond in each mode: the core port has two links, whose other ends the kernel joins. All traffic; with LACP the
# other side also takes a link out.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

veth_pair veth-access home0
ip link add upf0 address 02:00:00:00:30:02 type bridge mcast_snooping 0
ip link set upf0 up
kernel_address upf0 10.30.0.2/24 fd00:30::2/64
for i in 0 1; do
	veth_pair "veth-$i" "link-$i"
	ip link set "link-$i" master upf0
	ip link set "link-$i" type bridge_slave isolated on # links of one aggregate, not two ports of a network
done

# Announcements of our own addresses, before DPDK has found the links (a timer of 10 ms) or there is a partner.
export MAY_DROP=port-tx-full

# The partner's last received state of a link.
partner_says() { [[ $(grep "^$1:" "$DIR/lacp.log" | tail -n 1) == "$1: $2" ]]; }
for mode in static active-standby lacp; do
	echo "--- $mode"
	use_config "s|driver: net_af_packet, device: veth-core|driver: net_bond, bond: {mode: $mode, \
members: [{driver: net_af_packet, \
device: veth-0}, {driver: net_af_packet, device: veth-1}]}|"
	if [[ $mode == lacp ]]; then
		# The other side: the kernel here has no bonding, and ours would agree with itself.
		"$PYTHON" -u "$TEST_ROOT/test/lib/lacp.py" link-0 link-1 >"$DIR/lacp.log" &
		partner=$!
	fi
	start_gateway
	if [[ $mode == lacp ]]; then
		for i in 0 1; do
			wait_for 20 partner_says "link-$i" "collecting, distributing" ||
				fail "the partner hears: $(cat "$DIR/lacp.log")"
		done
	fi
	all_traffic home0 upf0
	if [[ $mode == lacp ]]; then
		kill -USR1 "$partner"
		wait_for 20 partner_says link-0 "not distributing" || fail "the partner hears: $(cat "$DIR/lacp.log")"
		ip link set link-0 down
		for i in {1..8}; do # addresses that a hash spreads over the links
			ip addr add "10.30.0.$((100 + i))/24" dev upf0
			wait_for 5 ping -c 1 -W 1 -I "10.30.0.$((100 + i))" 10.30.0.1 ||
				fail "the link that is left does not carry all"
		done
		kill "$partner"
	fi
	stop_gateway
done
echo PASS
