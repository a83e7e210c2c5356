#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clones: interfaces of the gateway have devices of the kernel in the namespace `fabric`, for ordinary programs: ping,
# TCP, tcpdump, ip addr, ip neigh, ip route, ip link. The data plane follows their changes. Then processes, devices and
# the namespace end, and return.
#
#   near: core0's peer, 192.0.2.0/24 behind it ── core0 [gateway] far0 ── far: a host with a default route
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

ip netns add fabric
ip netns add near
ip netns add far
fabric() { ip netns exec fabric "$@"; }
near() { ip netns exec near "$@"; }
far() { ip netns exec far "$@"; }
# usage: pings NAMESPACE OPTION... TARGET
pings() { ip netns exec "$1" ping -q -c 1 -W 1 "${@:2}"; }
not() { ! "$@"; }
# usage: is WHAT COMMAND...: at once, which is within a second on a machine that is busy
is() { wait_for 5 "${@:2}" || fail "$1"; }
# usage: shows TABLE JQ_EXPRESSION
shows() { isthmus show "$1" -j | jq -e "$2"; }

# usage: peer VETH_OF_GATEWAY NAMESPACE ADDRESS...
peer() {
	local gateway=$1 space=$2 end=$2-0 address
	shift 2
	veth_pair "$gateway" "$end"
	ip link set "$end" netns "$space"
	ip -n "$space" link set lo up
	ip netns exec "$space" sysctl -qw "net.ipv6.conf.$end.disable_ipv6=0" "net.ipv6.conf.$end.accept_dad=0"
	ip -n "$space" link set "$end" up
	for address in "$@"; do
		ip -n "$space" addr add "$address" dev "$end"
	done
}

peer veth-core near 10.30.0.2/24 fd00:30::2/64
peer veth-far far 10.40.0.2/24 fd00:40::2/64
ip -n near addr add 192.0.2.1/24 dev lo
ip -n near route add 10.40.0.0/24 via 10.30.0.1
ip -n far route add default via 10.40.0.1
cat >"$DIR/isthmus.yaml" <<-'EOF'
	engine: {huge_pages: "off", packet_buffers: 8192, idle_sleep: true, limits: {routes: 24000}}
	ports:
	  - {name: core, driver: net_af_packet, device: veth-core, role: core}
	  - {name: far, driver: net_af_packet, device: veth-far, role: core}
	interfaces:
	  - {name: core0, port: core, addresses: [10.30.0.1/24, "fd00:30::1/64"],
	     clone: {device: core0, namespace: fabric}}
	  - {name: far0, port: far, addresses: [10.40.0.1/24], clone: {device: far0, namespace: fabric}}
	  - {name: tagged, port: far, outer_vlan: 40, clone: {device: far0.40, namespace: fabric}}
	routes:
	  - {prefix: 203.0.113.0/24, via: 10.30.0.2}
EOF
start_gateway

# ---- the device ------------------------------------------------------------------------------------------------------
is "there is a device" ip -n fabric link show core0
is "a VLAN interface has one, too" ip -n fabric link show far0.40
mac=$(isthmus show port core -j | jq -r '.[0].mac')
fabric grep -qx "$mac" /sys/class/net/core0/address || fail "the MAC address is not the port's, $mac"
fabric grep -qx 1500 /sys/class/net/core0/mtu || fail "the MTU is not the port's"
is "the link is up" fabric grep -qx 1 /sys/class/net/core0/carrier
has_address() { ip -n fabric addr show dev "$1" | has " $2 "; }
is "it has the configured addresses" has_address core0 10.30.0.1/24
is "it has the configured addresses" has_address core0 fd00:30::1/64
has_route() { ip -n fabric route show "$1" | has "$2"; }
is "it has the configured routes" has_route 203.0.113.0/24 "via 10.30.0.2 dev core0"

# ---- ordinary programs -----------------------------------------------------------------------------------------------
is "the peer pings us" pings near 10.30.0.1
is "the peer pings us by IPv6" pings near fd00:30::1
is "we ping the peer" pings fabric 10.30.0.2
is "we ping the peer by IPv6" pings fabric fd00:30::2
is "its answers go up" shows clone '.[] | select(.name == "core0") | .to_kernel > 0 and .from_kernel > 0'

cat >"$DIR/tcp.py" <<-'EOF'
	import socket, sys
	size = 300000
	if sys.argv[1] == "serve":
	    listener = socket.create_server((sys.argv[2], 7777))
	    while True:
	        peer, _ = listener.accept()
	        for left in iter(lambda: peer.recv(65536), b""):
	            peer.sendall(left)
	        peer.close()
	peer = socket.create_connection((sys.argv[2], 7777), timeout=10)
	sent = bytes(range(256)) * (size // 256)
	got = bytearray()
	for at in range(0, len(sent), 16384):
	    peer.sendall(sent[at:at + 16384])
	    while len(got) < min(at + 16384, len(sent)):
	        got += peer.recv(65536)
	assert bytes(got) == sent
EOF
fabric "$PYTHON" "$DIR/tcp.py" serve 10.30.0.1 &
near "$PYTHON" "$DIR/tcp.py" serve 10.30.0.2 &
listens() { ip netns exec "$1" ss -Hltn | has :7777; }
is "a server listens here" listens fabric
is "a server listens there" listens near
near "$PYTHON" "$DIR/tcp.py" call 10.30.0.1 || fail "no TCP connection to us"
fabric "$PYTHON" "$DIR/tcp.py" call 10.30.0.2 || fail "no TCP connection from us"

# Packets to groups of the link alone: OSPF here, which has neither an address of ours nor a port.
fabric tcpdump -i core0 -c 1 -w "$DIR/ospf.pcap" 'ip proto 89' 2>"$DIR/tcpdump.log" &
capture=$!
is "tcpdump starts" grep -q 'listening on' "$DIR/tcpdump.log"
near "$PYTHON" -c '
from scapy.all import *
packet = IP(src="10.30.0.2", dst="224.0.0.5", proto=89, ttl=1) / Raw(bytes(44))
sendp(Ether(dst="01:00:5e:00:00:05") / packet, iface="near-0", verbose=0)'
is "tcpdump sees OSPF" gone "$capture"

# ---- the data plane follows the kernel
# --------------------------------------------------------------------------------
ip -n near addr add 10.31.0.2/24 dev near-0
ip -n fabric addr add 10.31.0.1/24 dev core0
is "an address of the kernel's is ours" pings near 10.31.0.1
ip -n fabric addr del 10.31.0.1/24 dev core0
is "until it goes" not pings near 10.31.0.1

not pings far 192.0.2.1 >/dev/null || fail "there is a route already"
ip -n fabric route add 192.0.2.0/24 via 10.30.0.2
is "a route of the kernel's is used" pings far 192.0.2.1
shows route '.[] | select(.prefix == "192.0.2.0/24") | .via == "10.30.0.2" and .interface == "core0"' >/dev/null ||
	fail "show route does not have it"
ip -n fabric route del 192.0.2.0/24
is "until it goes" not pings far 192.0.2.1
ip -n fabric route add 192.0.2.0/24 via 10.30.0.2

ip -n fabric neigh replace 10.30.0.77 lladdr 02:00:00:00:00:77 dev core0 nud permanent
is "a neighbour of the kernel's is used" shows neighbour 'any(.mac == "02:00:00:00:00:77" and .state == "static")'

# ---- links -----------------------------------------------------------------------------------------------------------
is "it works" pings far 192.0.2.1
ip -n near link set near-0 down
is "the port's link goes down" fabric grep -qx 0 /sys/class/net/core0/carrier
ip -n near link set near-0 up
ip -n near route replace 10.40.0.0/24 via 10.30.0.1
is "and up" fabric grep -qx 1 /sys/class/net/core0/carrier
is "it works again" pings far 192.0.2.1
ip -n fabric link set core0 down
is "the device is down, the interface, too" not pings near 10.30.0.1
is "its routes go" shows route 'map(.prefix) - ["10.30.0.0/24", "192.0.2.0/24", "203.0.113.0/24"] == map(.prefix)'
ip -n fabric link set core0 up
is "up again" pings near 10.30.0.1
is "with the configured routes" shows route 'any(.prefix == "203.0.113.0/24")'
is "which the kernel has again" has_route 203.0.113.0/24 "via 10.30.0.2 dev core0"
ip -n fabric route replace 192.0.2.0/24 via 10.30.0.2
is "it works again" pings far 192.0.2.1

is "a packet of 1428 bytes passes" pings far -M "do" -s 1400 192.0.2.1
ip -n fabric link set core0 mtu 1400
is "the MTU is the interface's" shows clone '.[] | select(.name == "core0") | .mtu == 1400'
too_big() { { far ping -c 1 -W 1 -M "do" -s 1400 192.0.2.1 2>&1 || true; } | has -i 'mtu *= *1400'; }
is "the sender is told" too_big
ip -n far route flush cache
ip -n fabric link set core0 mtu 9000
is "above the port's it is put back" fabric grep -qx 1500 /sys/class/net/core0/mtu
is "it works again" pings far -s 1400 192.0.2.1

# ---- many routes, by messages that are lost --------------------------------------------------------------------------
# The kernel and the data plane have the same routes, whichever messages arrived.
# usage: same_routes
same_routes() {
	diff <(ip -n fabric -j route show | jq -r '.[] | select(.gateway) | "\(.dst) \(.gateway)"' | sort) \
		<(isthmus show route -j | jq -r '.[] | select(.via != "") | "\(.prefix) \(.via)"' | sort) >"$DIR/routes"
}
is "kernel and data plane have the same routes" same_routes
seq 0 4999 | awk '{ printf "route add 198.%d.%d.0/24 via 10.30.0.2\n", 18 + int($1 / 256), $1 % 256 }' >"$DIR/add"
sed 's/add/del/' "$DIR/add" >"$DIR/del"
ip -n fabric -batch "$DIR/add"
is "5000 routes are the data plane's" same_routes
(($(wc -l < <(ip -n fabric route show)) > 5000)) || fail "the kernel did not take the routes"
ip -n fabric -batch "$DIR/del"
is "and go" same_routes

# A storm: every route goes and comes again, as fast as the kernel takes it; messages get lost.
# usage: write VERB ROUNDS
write() { fabric "$PYTHON" "$TEST_ROOT/test/lib/routes.py" "$1" 20000 10.30.0.2 core0 "${2:-1}" | cut -d' ' -f2; }
write add >/dev/null
echo "flaps: $(write flap 5) changes/s"
wait_for 20 same_routes || fail "after a storm they differ: $(head "$DIR/routes")"
isthmus status | grep '^kernel'
write del >/dev/null
is "all go" same_routes

# More routes than there is room for: the table fills, and no other routes go.
fabric "$PYTHON" "$TEST_ROOT/test/lib/routes.py" add 25000 10.30.0.2 core0 >/dev/null
is "the routes that there is room for" shows route 'map(select(.via != "")) | length == 24000'
left_out() { isthmus status | grep 'more routes than engine.limits.routes allows'; }
is "which is said" left_out
is "no other routes go" pings far 192.0.2.1
fabric "$PYTHON" "$TEST_ROOT/test/lib/routes.py" del 25000 10.30.0.2 core0 >/dev/null
is "all go" same_routes
not left_out || fail "nothing is left out any more"
# Next hops that are on the link alone: behind themselves, an address of another network.
for route in "198.51.100.0/24 via 198.51.100.1 dev core0 onlink" "198.51.101.0/24 via 10.40.0.2 dev core0 onlink"; do
	# shellcheck disable=SC2086 # words
	ip -n fabric route add $route
done
ip -n near addr add 198.51.100.1/32 dev near-0
is "next hops on the link are taken" shows route 'map(select(.prefix | startswith("198.51.10")) | .via) ==
	["198.51.100.1", "10.40.0.2"]'
is "and answer" pings far 198.51.100.1
ip -n fabric route del 198.51.100.0/24
ip -n fabric route del 198.51.101.0/24
is "and go" same_routes

# ---- what ends, and comes again --------------------------------------------------------------------------------------
ip -n fabric addr add 10.32.0.1/24 dev core0
kill -9 "$(isthmus status -j | jq .dp_pid)"
is "the device outlives the data plane" has_address core0 10.32.0.1/24
is "the data plane comes back" isthmus status --wait 120s
is "with the device" pings near 10.30.0.1
is "and what the kernel has" pings far 192.0.2.1
is "and the way out" pings fabric 10.30.0.2

kill_control() {
	local pid
	pid=$(isthmus status -j | jq .pid)
	kill -9 "$pid"
	wait_for 10 gone "$pid" # it has its socket until then
}
far ping -q -i 0.02 -c 150 192.0.2.1 >"$DIR/ping" &
pinging=$!
kill_control
start_gateway
wait "$pinging" || true
grep -q ' 0% packet loss' "$DIR/ping" || fail "the control plane came back: $(cat "$DIR/ping")"

kill_control
ip -n fabric route del 192.0.2.0/24
start_gateway
is "what the kernel did meanwhile is known" not pings far 192.0.2.1
ip -n fabric route add 192.0.2.0/24 via 10.30.0.2
is "and what it does" pings far 192.0.2.1
is "and what it had" shows route 'any(.prefix == "10.32.0.0/24")'

ip -n fabric link del core0
is "a device that is deleted by hand comes again" pings fabric 10.30.0.2
is "with the configured addresses" has_address core0 10.30.0.1/24

ip netns del fabric
is "the namespace is gone" shows clone 'all(.attached | not)'
is "which is said" shows clone 'any(.why | test("namespace"))'
is "the gateway goes on" pings near 10.30.0.1
ip netns add fabric
is "a namespace comes again" pings fabric 10.30.0.2
isthmus show total | tail -n +1 >"$DIR/total"
isthmus status | grep '^kernel' || fail "status says nothing of the kernel"

# Without the clone there is no device.
sed 's/clone: {[^}]*}//' "$DIR/isthmus.yaml" >"$DIR/without.yaml"
isthmus config apply "$DIR/without.yaml" >/dev/null
is "the device goes with the configuration" not ip -n fabric link show core0
is "the gateway goes on" pings near 10.30.0.1
echo PASS
