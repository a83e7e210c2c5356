#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What RADIUS says of subscribers, judged by packets and by their last records: session and idle time-out, quota,
# captive portal, framed routes, pool, name servers, another VRF.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/freeradius.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/freeradius.sh"
own_namespaces "$@"
command -v freeradius >/dev/null || skip "needs freeradius"

bng_links
ip route add 100.64.0.0/15 via 10.60.0.1
ip route add 10.9.0.0/16 via 10.60.0.1
ip -6 route add 2001:db8:9::/48 via fd00:60::1
ip addr add 192.0.2.81/32 dev lo
ip addr add 198.18.0.80/32 dev lo
# A data network of its own, with the same addresses.
ip netns add red
veth_pair veth-red red0
ip link set red0 netns red
ip -n red addr add 10.60.0.2/24 dev red0
ip -n red addr add 198.51.100.1/32 dev lo
ip -n red link set lo up
ip -n red link set red0 up
ip -n red route add 100.66.0.0/16 via 10.60.0.1

user() { printf '%s	Cleartext-Password := "%s"\n	%s\n' "$1" "${3:-example-only}" "$2"; }
start_freeradius "$(
	user silent "Idle-Timeout = 4"
	user active "Idle-Timeout = 4"
	user timed "Session-Timeout = 5"
	user quota 'Cisco-AVPair = "subscriber:quota=1000"'
	user portal 'WISPr-Redirection-URL = "http://192.0.2.81/", Cisco-AVPair += "subscriber:portal=198.18.0.0/24"'
	user framed 'Framed-Route = "10.9.0.0/24 0.0.0.0 1"'
	user framed6 'Framed-IPv6-Route = "2001:db8:9::/48 :: 1"'
	user twin 'Framed-Route = "10.9.0.0/24 0.0.0.0 1"'
	user prepaid 'Filter-Id = "profile=prepaid"'
	user red 'Filter-Id = "profile=red"'
	names='MS-Primary-DNS-Server = 192.0.2.1, MS-Secondary-DNS-Server = 192.0.2.2'
	user lines:200.1 "Framed-Pool = few, $names" lines:200.1
)"
radius_gateway 's/^ports:/&\n  - {name: red, driver: net_af_packet, device: veth-red, role: core}/' \
	's/^interfaces:/&\n  - {name: red, port: red, vrf: red, addresses: [10.60.0.1\/24]}/' \
	's/100.64.0.1.16/&, 100.65.9.1\/24/' \
	's/^routes:/&\n  - {prefix: 0.0.0.0\/0, via: 10.60.0.2, interface: red}/' \
	's/^instances:/&\n  - {name: red, interfaces: [red], lookup: destination}/' \
	's/^pools:/&\n  - {name: red, instance: red, prefix: 100.66.0.0\/16}/' \
	's/^pools:/&\n  - {name: few, instance: internet, prefix: 100.65.9.0\/24, gateway: 100.65.9.1}/' \
	's/^  profiles:/&\n    - {name: red, instance: red, pool_ipv4: red}/' \
	's/^  profiles:/&\n    - {name: prepaid, instance: internet, pool_ipv4: homes,/' \
	's/name: prepaid[^\n]*/&\n       framed_routes: [10.9.1.0\/24],/' \
	's/framed_routes:[^\n]*/&\n       quota: 1000, exhausted: redirect, redirect: "http:\/\/portal.test\/"}/' \
	's/^access:/&\n  default_profile: home/' </dev/null
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/bng_plans.py"
echo PASS
