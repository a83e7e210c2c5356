#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A UPF under a real PFCP interface: an SMF made of scapy, packets made by scapy, messages read by tshark.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
export TEST_ROOT_=$TEST_ROOT
upf_fixture 's|flows: 4096|&, buffered_packets: 64|'
capture_n4 ""
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf.py"
echo PASS
