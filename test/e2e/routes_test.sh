#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Routes as FRR makes them. BGP unnumbered (RFC 8950): the link to the router has no IPv4 address, and IPv4 routes have
# IPv6 next hops, by next hop objects. Also discard routes, the router id on `lo`, unfollowed routes, announcements that
# go with the clone.
#
#   near: FRR, 192.0.2.0/24 ── core0 [gateway: FRR in fabric] far0 ── far: a host with a default route
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
[[ -x /usr/lib/frr/bgpd ]] || skip "needs FRR (Debian: frr)"
chmod 755 "$DIR" # FRR's daemons are no root

for name in fabric near far; do
	ip netns add "$name"
	ip -n "$name" link set lo up
done
# usage: in_space NAMESPACE COMMAND...
in_space() { ip netns exec "$@"; }
# usage: pings NAMESPACE OPTION... TARGET
pings() { in_space "$1" ping -q -c 1 -W 1 "${@:2}"; }
not() { ! "$@"; }
# usage: is WHAT COMMAND...
is() { wait_for 20 "${@:2}" || fail "$1: $(isthmus show route; ip -n fabric route; isthmus show route --ignored)"; }
# usage: shows JQ_EXPRESSION: of the data plane's routes
shows() { isthmus show route -j | jq -e "$1"; }

# usage: peer VETH_OF_GATEWAY NAMESPACE
peer() {
	veth_pair "$1" "$2-0"
	ip link set "$2-0" netns "$2"
	in_space "$2" sysctl -qw "net.ipv6.conf.$2-0.accept_dad=0" "net.ipv6.conf.$2-0.disable_ipv6=0"
	ip -n "$2" link set "$2-0" up
}

peer veth-core near
peer veth-far far
ip -n far addr add 10.40.0.2/24 dev far-0
ip -n far route add default via 10.40.0.1
ip -n near addr add 10.255.0.2/32 dev lo
ip -n near addr add 192.0.2.1/24 dev lo
ip -n near addr add 203.0.112.1/24 dev lo # of the default route
in_space near sysctl -qw net.ipv4.ip_forward=1
in_space fabric sysctl -qw net.ipv6.conf.default.accept_dad=0
ip -n fabric addr add 10.255.0.1/32 dev lo
cat >"$DIR/isthmus.yaml" <<-'END'
	engine: {huge_pages: "off", packet_buffers: 8192, idle_sleep: true}
	ports:
	  - {name: core, driver: net_af_packet, device: veth-core, role: core}
	  - {name: far, driver: net_af_packet, device: veth-far, role: core}
	interfaces:
	  - {name: core0, port: core, clone: {device: core0, namespace: fabric}}
	  - {name: far0, port: far, addresses: [10.40.0.1/24], clone: {device: far0, namespace: fabric}}
	instances:
	  - {name: internet, interfaces: [core0], lookup: destination, pools: [10.45.0.0/16], announce: pool}
	routes:
	  - {prefix: 203.0.113.0/24, discard: prohibit}
END
start_gateway

# ---- FRR -------------------------------------------------------------------------------------------------------------
# usage: routing NAMESPACE DAEMON <CONFIG
routing() {
	local dir=$DIR/frr-$1
	install -d -o frr -g frr "$dir"
	cat >"$dir/$2.conf"
	in_space "$1" "/usr/lib/frr/$2" -f "$dir/$2.conf" -i "$dir/$2.pid" -z "$dir/zserv.api" \
		--vty_socket "$dir" -P 0 --log stdout --log-level notifications >"$dir/$2.log" 2>&1 &
	[[ $2 != zebra ]] || wait_for 10 test -S "$dir/zserv.api" || fail "no zebra: $(cat "$dir/$2.log")"
}
# usage: bgp AS ROUTER_ID INTERFACE KIND_OF_ROUTES...: what is announced
bgp() {
	cat <<-END
		router bgp $1
		 bgp router-id $2
		 no bgp ebgp-requires-policy
		 timers bgp 1 3
		 neighbor $3 interface remote-as external
		 neighbor $3 timers connect 1
		 address-family ipv4 unicast
		$(printf '  redistribute %s\n' "${@:4}")
		 exit-address-family
	END
}
is "the device is there" ip -n fabric link show core0
routing fabric zebra </dev/null
routing fabric staticd <<-'END'
	ip route 198.51.100.0/24 Null0
	ip route 198.51.101.0/24 reject
END
bgp 65001 10.255.0.1 core0 kernel "connected" | routing fabric bgpd
routing near zebra </dev/null
routing near staticd <<-'END'
	ip route 0.0.0.0/0 Null0
END
bgp 65002 10.255.0.2 near-0 connected static | routing near bgpd

# ---- BGP unnumbered --------------------------------------------------------------------------------------------------
of() { shows "any(.prefix == \"$1\" and .interface == \"core0\" and (.via | startswith(\"fe80::\")))"; }
is "an IPv4 route has an IPv6 next hop" of 192.0.2.0/24
is "the default route, too" of 0.0.0.0/0
uses_objects() { ip -n fabric nexthop show | has 'via fe80::.* dev core0'; }
is "FRR uses next hop objects" uses_objects
is "packets go there and back" pings far 192.0.2.1
is "by the default route, too" pings far 203.0.112.1
is "routers' ids reach each other" pings near -I 10.255.0.2 10.255.0.1
is "from here, too" pings fabric -I 10.255.0.1 10.255.0.2
is "the address of lo is ours by another link" pings far 10.255.0.1

# ---- discard routes --------------------------------------------------------------------------------------------------
# usage: answers TARGET PATTERN: the answer that ping gets
answers() { { in_space far ping -c 1 -W 1 "$1" 2>&1 || true; } | has "$2"; }
# usage: dropped REASON
dropped() { isthmus show drop -j | jq "[.[] | select(.name == \"$1\") | .packets] | add // 0"; }
for row in 198.51.100.0/24=blackhole 198.51.101.0/24=unreachable 203.0.113.0/24=prohibit; do
	is "a route that discards" shows "any(.prefix == \"${row%=*}\" and .discard == \"${row#*=}\")"
done
is "the sender is told" answers 198.51.101.1 'Destination Host Unreachable'
is "the sender is told" answers 203.0.113.1 'Packet filtered'
before=$(dropped route-blackhole)
! pings far 198.51.100.1 >"$DIR/ping" || fail "a blackhole answers"
! grep -q errors "$DIR/ping" || fail "it tells: $(cat "$DIR/ping")"
counts() { (($(dropped route-blackhole) > before)); }
is "the blackhole counts" counts

# ---- what is not followed --------------------------------------------------------------------------------------------
ignored() { isthmus show route --ignored -j | jq -e "any(.prefix == \"$1\" and .reason == \"$2\")"; }
ip -n fabric route add 198.51.102.0/24 dev core0 table 100
ip -n fabric route add 203.0.113.0/24 dev core0
is "a route of another table is listed" ignored 198.51.102.0/24 table
is "a route that the file has is listed" ignored 203.0.113.0/24 configured
isthmus status | grep 'not followed' || fail "the status does not say it"

# ---- announcements ---------------------------------------------------------------------------------------------------
near_has() { ip -n near route show "$1" | has 'dev near-0'; }
is "the pool is announced" near_has 10.45.0.0/16
ip netns add elsewhere
sed 's/namespace: fabric/namespace: elsewhere/' "$DIR/isthmus.yaml" >"$DIR/elsewhere.yaml"
isthmus config apply "$DIR/elsewhere.yaml" >/dev/null
ours() { ip -n fabric route show table all proto 73; ip -n fabric link show | grep -E 'core0|far0'; }
nothing() { [[ -z $(ours) ]]; }
is "nothing of ours is left in the namespace" nothing
is "no traffic is drawn any more" not near_has 10.45.0.0/16
announced() { ip -n elsewhere route show 10.45.0.0/16 | has blackhole; }
is "the namespace that the clone is in has the announcement" announced
echo PASS
