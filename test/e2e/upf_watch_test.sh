#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Mirrors, counters and their watermarks with two workers and NAT44: copies, log, metrics, events.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
veth_pair veth-tap tap0
ip link set tap0 mtu 1600
in_gateway ip link set veth-tap mtu 1600
upf_fixture 's|lookup: destination|nat: {addresses: [203.0.113.4/31], ports: 1024-1151, block: 32, blocks: 2}, &|
	s|^engine: {|&workers: 2, cpus: [-1, -1], |
	s|metrics: ""|metrics: 10.40.0.1:9464|
	s|^interfaces:|  - {name: tap, driver: net_af_packet, device: veth-tap, role: core, mtu: 1600}\n&|'
cat >>"$DIR/isthmus.yaml" <<-EOF
	mirrors: [{name: tap, to: {port: tap}, match: {ue: 10.45.0.0/16}}]
	counters:
	  - {name: slice, watermark: {packets: 20}, period: 3600, match: {instance: internet}}
	  - {name: heavy, watermark: {packets: 20}, period: 3600, each: true, match: {ue: 10.45.0.0/16}}
EOF
ip route add 203.0.113.4/31 via 10.60.0.1 dev dn0
GATEWAY_OPTIONS=(--metrics=10.40.0.1:9464 --metrics-public)
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_watch.py"
echo PASS
