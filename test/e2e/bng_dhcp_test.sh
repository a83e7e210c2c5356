#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A home without tags gets its address by dhclient (method accept), and packets pass both ways; either process is killed
# and the home stays on line; it gives its address back.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
command -v dhclient >/dev/null || skip "needs dhclient (isc-dhcp-client)"

ip netns add home
ip netns add upf
veth_pair veth-access home0
ip link set home0 netns home
in_home() { nsenter --net=/run/netns/home -- "$@"; }
in_home ip link set home0 up
veth_pair veth-core core0
kernel_address core0 10.60.0.2/24
ip route add 100.64.0.0/16 via 10.60.0.1
sed -e '/^ *\(dp_\)\?socket:/d' -e 's/methods: \[local\]/methods: [accept]/' \
	"$TEST_ROOT/deploy/examples/bng.yaml" >"$DIR/isthmus.yaml"
start_gateway

lease() {
	in_home dhclient -1 -4 -v -sf "$TEST_ROOT/test/lib/dhclient_script.sh" -pf "$DIR/dhclient.pid" -lf "$DIR/dhclient.leases" "$@" home0
}
lease >"$DIR/dhclient.log" 2>&1 || fail "no lease: $(cat "$DIR/dhclient.log")"
address=$(in_home ip -4 -o addr show dev home0 | sed -n 's/.*inet \([0-9.]*\).*/\1/p')
[[ $address == 100.64.* ]] || fail "address $address: $(cat "$DIR/dhclient.log")"
in_home ping -n -c 3 -i 0.2 -W 3 10.60.0.2 >"$DIR/ping" || fail "no answers: $(cat "$DIR/ping")"
isthmus show subscriber "$address"
[[ $(isthmus show subscriber "$address" -j | jq -r '.[0] | [.kind, .state, .downlink_packets] | @csv') == '"dhcp","up",3' ]] ||
	fail "$(isthmus show subscriber "$address" -j)"
isthmus show pool

# The control plane dies and comes back: packets pass meanwhile, and the subscriber is known again.
pid=$(isthmus status -j | jq .pid)
kill -9 "$pid"
wait_for 10 gone "$pid"
in_home ping -n -c 2 -i 0.2 -W 3 10.60.0.2 >"$DIR/ping" || fail "no answers without a control plane: $(cat "$DIR/ping")"
start_gateway
[[ $(isthmus show subscriber "$address" -j | jq -r '.[0].state') == up ]] || fail "$(isthmus show subscriber "$address" -j)"

# The data plane dies: it gets all back.
kill -9 "$(isthmus status -j | jq .dp_pid)"
wait_for 20 in_home ping -n -c 1 -W 1 10.60.0.2
isthmus show subscriber

lease -r >"$DIR/dhclient.log" 2>&1
wait_for 10 bash -c "! isthmus show subscriber -j | grep -q '\"up\"'"
echo PASS
