#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A home without tags gets its IPv4 address by dhclient (method accept), and an IPv6 address and a prefix from Kea
# through the relay. Packets pass both ways. Either process is killed and the home stays on line; it releases all. A
# home by PPPoE also has its IPv6 address and prefix from Kea. Other homes take a neighbour's MAC or address.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
command -v dhclient >/dev/null || skip "needs dhclient (isc-dhcp-client)"
command -v kea-dhcp6 >/dev/null || skip "needs kea-dhcp6 (kea-dhcp6-server)"

ip netns add home
ip netns add upf
veth_pair veth-access home0
ip link set home0 netns home
in_home() { nsenter --net=/run/netns/home -- "$@"; }
in_home sysctl -qw net.ipv6.conf.home0.disable_ipv6=0 net.ipv6.conf.home0.accept_dad=0
in_home ip link set lo up
in_home ip link set home0 up
core_link
for prefix in 2001:db8:500::/64 2001:db8:600::/48; do
	ip -6 route add "$prefix" via fd00:60::1
done

# Kea, which the gateway's control plane reaches by the kernel (RFC 8415 §19).
ip link add servers netns gateway type veth peer name kea0
in_gateway ip addr add 2001:db8:77::1/64 dev servers nodad
in_gateway ip link set servers up
ip addr add 2001:db8:77::2/64 dev kea0 nodad
ip link set kea0 up
wait_for 10 eval "ip link show kea0 | has 'state UP'"
cat >"$DIR/kea.json" <<-EOF
	{"Dhcp6": {"interfaces-config": {"interfaces": ["kea0/2001:db8:77::2"]},
	"lease-database": {"type": "memfile", "persist": false},
	"server-id": {"type": "EN", "enterprise-id": 32473, "identifier": "01", "persist": false},
	"loggers": [{"name": "kea-dhcp6", "severity": "INFO",
	"output_options": [{"output": "$DIR/kea.log", "flush": true}]}],
	"subnet6": [{"subnet": "2001:db8:500::/64", "interface-id": "lines:0.0",
	"pools": [{"pool": "2001:db8:500::50 - 2001:db8:500::60"}],
	"pd-pools": [{"prefix": "2001:db8:600::", "prefix-len": 48, "delegated-len": 56}]}]}}
EOF
KEA_PIDFILE_DIR=$DIR KEA_LOCKFILE_DIR=none kea-dhcp6 -c "$DIR/kea.json" >"$DIR/kea.out" 2>&1 &
wait_for 20 grep -q DHCP6_STARTED "$DIR/kea.log" || fail "Kea: $(cat "$DIR/kea.out" "$DIR/kea.log")"
sed -e '/^ *\(dp_\)\?socket:/d' -e 's/methods: \[local\]/methods: [accept]/' \
	-e 's/pppoe: true, ipoe: true/&, dhcp: relay/' -e 's/interval: 10/interval: 60/' \
	-e '/^access:/a\  dhcp: {address6: "2001:db8:77::1", servers6: ["2001:db8:77::2"]}' \
	"$TEST_ROOT/deploy/examples/bng.yaml" >"$DIR/isthmus.yaml"
start_gateway

# usage: lease FAMILY OPTION...
lease() {
	in_home dhclient "-$1" -v -sf "$TEST_ROOT/test/lib/dhclient_script.sh" -pf "$DIR/dhclient$1.pid" \
		-lf "$DIR/dhclient$1.leases" "${@:2}" home0
}
# Packets pass with what Kea gave: the address, and one of the prefix.
relayed() {
	local from
	for from in 2001:db8:500::50 2001:db8:600::1; do
		wait_for 10 in_home ping -n -c 1 -W 1 -I "$from" fd00:60::2 ||
			fail "no answers to $from: $(cat "$DIR/kea.log")"
	done
}
lease 4 -1 >"$DIR/dhclient.log" 2>&1 || fail "no lease: $(cat "$DIR/dhclient.log")"
address=$(in_home ip -4 -o addr show dev home0 | sed -n 's/.*inet \([0-9.]*\).*/\1/p')
[[ $address == 100.64.* ]] || fail "address $address: $(cat "$DIR/dhclient.log")"
in_home ping -n -c 3 -i 0.2 -W 3 10.60.0.2 >"$DIR/ping" || fail "no answers: $(cat "$DIR/ping")"
isthmus show subscriber "$address"
[[ $(isthmus show subscriber "$address" -j | jq -r '.[0] | [.kind, .state, .downlink_packets] | @csv') == \
	'"dhcp","up",3' ]] ||
	fail "$(isthmus show subscriber "$address" -j)"
isthmus show pool
lease 6 -1 -P -N >"$DIR/dhclient.log" 2>&1 || fail "Kea gives nothing: $(cat "$DIR/dhclient.log" "$DIR/kea.log")"
relayed
given=$(isthmus show subscriber "$address" -j | jq -r '.[0] | "\(.ipv6) \(.delegated)"')
[[ $given == "2001:db8:500::50/128 2001:db8:600::/56" ]] || fail "$(isthmus show subscriber "$address" -j)"
by_pppoe() { in_home "$PYTHON" "$TEST_ROOT/test/e2e/bng_relay.py" "$@"; }
by_pppoe sign-in | tee "$DIR/relay" || fail "the home by PPPoE: $(cat "$DIR/kea.log")"
read -ra paula < <(tail -1 "$DIR/relay")

# The control plane dies and comes back: packets pass meanwhile, and the subscriber is known again.
pid=$(isthmus status -j | jq .pid)
kill -9 "$pid"
wait_for 10 gone "$pid"
in_home ping -n -c 2 -i 0.2 -W 3 10.60.0.2 >"$DIR/ping" || fail "no answers without a control plane: $(cat "$DIR/ping")"
relayed
start_gateway
[[ $(isthmus show subscriber "$address" -j | jq -r '.[0].state') == up ]] ||
	fail "$(isthmus show subscriber "$address" -j)"

# The data plane dies: it gets all back.
kill -9 "$(isthmus status -j | jq .dp_pid)"
wait_for 20 in_home ping -n -c 1 -W 1 10.60.0.2
relayed
isthmus show subscriber
by_pppoe leave "${paula[@]}" || fail "the home by PPPoE: $(cat "$DIR/kea.log")"

lease 6 -r -P -N >"$DIR/dhclient.log" 2>&1
wait_for 10 grep -q "DHCP6_RELEASE_PD " "$DIR/kea.log" || fail "Kea was not told: $(cat "$DIR/kea.log")"
lease 4 -r >"$DIR/dhclient.log" 2>&1
away() { isthmus show subscriber -j | jq -e 'all(.state != "up")'; }
wait_for 10 away || fail "the address is not given back: $(isthmus show subscriber)"
in_home "$PYTHON" "$TEST_ROOT/test/e2e/bng_theft.py"
echo PASS
