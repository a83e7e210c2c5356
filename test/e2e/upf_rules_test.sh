#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every UP function feature that the UPF announces, by its effect on packets; an SMF, a gNB and a data network made of
# scapy.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
export TEST_ROOT_=$TEST_ROOT
# Besides, an access side of plain IP, without endpoints.
upf_fixture 's|^  - {name: n6, port.*|&\n  - {name: lan, port: lan, addresses: [10.70.0.1/24]}|
	s|^  - {name: n6, driver.*|&\n  - {name: lan, driver: net_af_packet, device: veth-lan, role: core}|
	s|^routes:|&\n  - {prefix: 10.46.0.0/16, via: 10.70.0.2}|
	s|^instances:|&\n  - {name: lan, interfaces: [lan], lookup: source}|
	s|sources: .access, cp.|qfi_dscp: {42: 34}, &|
	s|lookup: destination|qfi_dscp: {42: 18}, &|
	s|pools: .10.45.0.0/16|&, 10.46.0.0/16|'
veth_pair veth-lan lan0
kernel_address lan0 10.70.0.2/24
ip route add 10.46.0.0/16 via 10.60.0.1 dev dn0
ip route add 10.99.0.0/16 via 10.60.0.1 dev dn0
capture_n4 ""
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_rules.py"
echo PASS
