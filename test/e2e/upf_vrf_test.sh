#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two data networks in VRFs of their own, with the same addresses, and UEs with the same address in both. Each reaches
# its own network, by sessions and as a router. The kernel's routes in a namespace are those of its clones' VRF. A
# hypothetical packet is of the intended session and VRF.
#
#   gnb0 ── n3 [gateway] red.. ── namespace red: 10.60.0.2, 198.51.100.1, 10.61.0.2
#                        blue.. ── namespace blue: the same
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

veth_pair veth-n3 gnb0
ip link set gnb0 mtu 1600
in_gateway ip link set veth-n3 mtu 1600
kernel_address gnb0 10.30.0.2/24
ip link add n4 netns gateway type veth peer name smf0
in_gateway ip addr add 10.40.0.1/24 dev n4
in_gateway ip link set n4 up
ip link set smf0 up
ip addr add 10.40.0.2/24 dev smf0

# usage: network NAME: two links, to a data network and to a host behind it
network() {
	local name=$1 link
	ip netns add "$name"
	ip netns add "kernel-$name"
	ip -n "$name" link set lo up
	ip -n "$name" addr add 198.51.100.1/32 dev lo
	for link in dn host; do
		veth_pair "v-$name-$link" "$name-$link"
		ip link set "$name-$link" netns "$name"
		ip -n "$name" link set "$name-$link" up
	done
	ip -n "$name" addr add 10.60.0.2/24 dev "$name-dn"
	ip -n "$name" route add 10.45.0.0/16 via 10.60.0.1
	# The host is in a namespace of its own, so that its packets come through the gateway.
	ip netns add "$name-host"
	ip -n "$name" link set "$name-host" netns "$name-host"
	ip -n "$name-host" link set "$name-host" up
	ip -n "$name-host" addr add 10.61.0.2/24 dev "$name-host"
	ip -n "$name-host" route add default via 10.61.0.1
	ip -n "$name" route add 10.61.0.0/24 via 10.60.0.1
}
network red
network blue

cat >"$DIR/isthmus.yaml" <<-'EOF'
	engine: {packet_buffers: 8192, idle_sleep: true, huge_pages: "off", limits: {sessions: 4096, flows: 4096}}
	control: {resync_period: 0, metrics: ""}
	ports:
	  - {name: n3, driver: net_af_packet, device: veth-n3, role: core, mtu: 1600}
	  - {name: red-dn, driver: net_af_packet, device: v-red-dn, role: core}
	  - {name: red-host, driver: net_af_packet, device: v-red-host, role: core}
	  - {name: blue-dn, driver: net_af_packet, device: v-blue-dn, role: core}
	  - {name: blue-host, driver: net_af_packet, device: v-blue-host, role: core}
	interfaces:
	  - {name: n3, port: n3, addresses: [10.30.0.1/24]}
	  - {name: red-dn, port: red-dn, vrf: red, addresses: [10.60.0.1/24],
	     clone: {device: dn, namespace: kernel-red}}
	  - {name: red-host, port: red-host, vrf: red, addresses: [10.61.0.1/24],
	     clone: {device: host, namespace: kernel-red}}
	  - {name: red-site, port: red-host, outer_vlan: 30, vrf: red, addresses: [10.62.0.1/24]}
	  - {name: blue-dn, port: blue-dn, vrf: blue, addresses: [10.60.0.1/24],
	     clone: {device: dn, namespace: kernel-blue}}
	  - {name: blue-host, port: blue-host, vrf: blue, addresses: [10.61.0.1/24],
	     clone: {device: host, namespace: kernel-blue}}
	routes:
	  - {prefix: 0.0.0.0/0, via: 10.60.0.2, vrf: red}
	  - {prefix: 0.0.0.0/0, via: 10.60.0.2, vrf: blue}
	instances:
	  - {name: access, interfaces: [n3], endpoints: [10.30.0.1], sources: [access, cp]}
	  - {name: red, interfaces: [red-dn, red-site], lookup: destination, pools: [10.45.0.0/16]}
	  - {name: blue, interfaces: [blue-dn], lookup: destination, pools: [10.45.0.0/16]}
	pfcp:
	  listen: [10.40.0.1]
	  node_id: upf1.isthmus.test
	  roles: [upf]
	  peers:
	    - {address: 10.40.0.2, node_id: smf1.isthmus.test}
	EOF
start_gateway

# The answer names its network.
cat >"$DIR/who.py" <<-'EOF'
	import socket, sys
	s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	s.bind((sys.argv[2], 40010))
	while True:
	    data, peer = s.recvfrom(2000)
	    s.sendto(sys.argv[1].encode() + data, peer)
	EOF
for name in red blue; do
	for address in 10.60.0.2 198.51.100.1; do
		ip netns exec "$name" "$PYTHON" "$DIR/who.py" "$name" "$address" &
	done
done
both_serve() { ip netns exec "$1" ss -Hlun | grep -c :40010 | has -x 2; }
for name in red blue; do
	wait_for 5 both_serve "$name" || fail "no server in $name"
done

# ---- sessions --------------------------------------------------------------------------------------------------------
"$PYTHON" "$TEST_ROOT/test/e2e/upf_vrf.py"

# ---- routed ----------------------------------------------------------------------------------------------------------
# usage: asks NAMESPACE ADDRESS: who answers there?
asks() {
	timeout 60 ip netns exec "$1" "$PYTHON" -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
for _ in range(30):
    s.sendto(b"?", (sys.argv[1], 40010))
    try:
        print(s.recv(100).decode())
        break
    except TimeoutError:
        pass' "$2"
}
for name in red blue; do
	[[ $(asks "$name-host" 198.51.100.1) == "$name?" ]] || fail "198.51.100.1 is not $name's for its host"
	for address in 10.61.0.1 10.60.0.1; do
		ip netns exec "$name-host" ping -q -c 1 -W 2 $address >/dev/null || fail "$address is not ours in $name"
	done
done

# ---- the kernel's routes are those of the VRF ------------------------------------------------------------------------
# usage: routes PREFIX: the VRFs that have it
routes() { isthmus show route -j | jq -r --arg p "$1" '[.[] | select(.prefix == $p) | .vrf] | sort | join(" ")'; }
has() { [[ $(routes "$1") == "$2" ]]; }
ip -n kernel-red route add 203.0.113.0/24 via 10.60.0.2
wait_for 5 has 203.0.113.0/24 red || fail "a route of the kernel's in red: $(isthmus show route)"
ip -n kernel-blue route add 203.0.113.0/24 via 10.61.0.2
wait_for 5 has 203.0.113.0/24 "blue red" || fail "the same prefix in blue: $(isthmus show route)"
isthmus show route -j | jq -e 'any(.prefix == "203.0.113.0/24" and .vrf == "blue" and .via == "10.61.0.2" and
	.interface == "blue-host")' >/dev/null || fail "blue has red's route"
ip -n kernel-red route del 203.0.113.0/24
wait_for 5 has 203.0.113.0/24 blue || fail "it goes from red alone"

ip -n kernel-red route add 192.0.2.0/24 nexthop via 10.60.0.2 nexthop via 10.61.0.2
of_red() { isthmus show route -j | jq -e '[.[] | select(.prefix == "192.0.2.0/24" and .vrf == "red") | .via] | sort |
	. == ["10.60.0.2", "10.61.0.2"]'; }
wait_for 5 of_red || fail "two next hops of the kernel's: $(isthmus show route)"
ip -n kernel-red route del 192.0.2.0/24
wait_for 5 has 192.0.2.0/24 "" || fail "they go: $(isthmus show route)"

# ---- what mixes them is refused in words -----------------------------------------------------------------------------
sed 's/namespace: kernel-blue/namespace: kernel-red/' "$DIR/isthmus.yaml" >"$DIR/mixed.yaml"
"$BIN/isthmus" config check "$DIR/mixed.yaml" >"$DIR/said" 2>&1 && fail "one namespace of two VRFs is taken"
grep -q 'its interface in another VRF' "$DIR/said" || fail "the reason: $(cat "$DIR/said")"
has 0.0.0.0/0 "blue red" || fail "routes of the file: $(isthmus show route)"
echo PASS
