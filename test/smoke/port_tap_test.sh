#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# net_tap: the gateway makes two TAP interfaces, and the kernel is on their other side.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

in_gateway() { "$@"; } # a TAP interface is where the gateway is
[[ -c /dev/net/tun ]] || skip "no /dev/net/tun"
sysctl -qw net.ipv6.conf.default.disable_ipv6=1
use_config 's/driver: net_af_packet, device: veth-/driver: net_tap, offload: auto, device: tap-/'
start_gateway
knows_no_gtpu() {
	isthmus show port core -j | has '"offload_why": "full: .*encapsulation: item not supported"'
}
wait_for 5 knows_no_gtpu || fail "net_tap has rte_flow, and cannot match GTP-U: $(isthmus show port core -j)"
ip link set tap-access up
# By default both sides have one MAC address.
ip link set tap-core address 02:00:00:00:30:02 up
ip link set tap-access mtu 1508
kernel_address tap-core 10.30.0.2/24 fd00:30::2/64
all_traffic tap-access tap-core
echo PASS
