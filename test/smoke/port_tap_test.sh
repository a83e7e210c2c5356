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
log_has_form
! grep secondary "$DIR"/*.log || fail "secondary processes"
ip link set tap-access up
# By default both sides have one MAC address.
ip link set tap-core address 02:00:00:00:30:02 up
ip link set tap-access mtu 1508
kernel_address tap-core 10.30.0.2/24 fd00:30::2/64
all_traffic tap-access tap-core
# usage: refused TEXT PORT: a port whose device is not there
refused() {
	sed "s/name: core/name: other/; s/port: core/port: other/
		s/driver: net_tap, offload: auto, device: tap-core/$2/" "$DIR/isthmus.yaml" >"$DIR/more.yaml"
	! isthmus config apply "$DIR/more.yaml" >"$DIR/refused" 2>&1 || fail "a port without a device: $2"
	has "$1" <"$DIR/refused" || fail "$(cat "$DIR/refused")"
}
refused "there is no network device eth77 here" "driver: net_af_packet, device: eth77"
refused "there is no PCI device 0000:7f:00.0 here" "driver: pci, device: '0000:7f:00.0'"
echo PASS
