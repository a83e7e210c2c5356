#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NAT44 on N6 before sockets of the kernel: UDP, TCP, ping, errors, a subscriber that uses up its ports, a pool that is
# used up, records of blocks.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
# Two addresses of four blocks; the first worker has four of them, and so has the second one.
upf_fixture 's|lookup: destination|nat: {addresses: [203.0.113.4/31], ports: 1024-1151, block: 32, blocks: 2}, &|
	s|^engine: {|&workers: 2, cpus: [-1, -1], |
	s|^pfcp:|nat_log: {syslog: ["10.40.0.2:5514"], ipfix: [10.40.0.2]}\n&|'
ip route add 203.0.113.4/31 via 10.60.0.1 dev dn0
capture_n4 ""
tcpdump -i smf0 -U -w "$DIR/ipfix.pcap" "udp port 4739" 2>/dev/null &
wait_for 5 test -s "$DIR/ipfix.pcap"
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_nat.py"
echo PASS
