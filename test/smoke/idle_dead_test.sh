#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: wakings in a second
# A descriptor that the kernel reports for ever, because its interface is down or gone, does not keep idle workers
# awake. Traffic comes back with the interface.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

veth_fixture
[[ -c /dev/net/tun ]] || skip "no /dev/net/tun"
use_config 's/^ports:/&\n  - {name: spare, driver: net_tap, device: spare0, role: core}/'
start_gateway
wait_for 10 ping -c 1 -W 1 10.30.0.1

asleep "at the start"
ip link set upf0 down
asleep "the other end is down"
ip link set upf0 up
wait_for 10 ping -c 1 -W 1 10.30.0.1 || fail "no traffic after the other end came up"
in_gateway ip link set veth-core down
asleep "an interface is down"
in_gateway ip link set veth-core up
wait_for 10 ping -c 1 -W 1 10.30.0.1 || fail "no traffic after the interface came up"
asleep "the interface is up again"
in_gateway ip link delete spare0
asleep "a tap interface is gone"
wait_for 10 ping -c 1 -W 1 10.30.0.1
in_gateway ip link delete veth-access
asleep "an interface is gone"
ping -c 20 -i 0.1 -q 10.30.0.1 | grep ' 0% packet loss' || fail "the other port lost packets"
in_gateway ip link delete veth-core
asleep "all interfaces are gone"
echo PASS
