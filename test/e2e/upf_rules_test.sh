#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every UP function feature that the UPF announces, by its effect on packets; an SMF, a gNB and a data network made of scapy.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_world "$@"
export TEST_ROOT_=$TEST_ROOT
upf_world ""
ip route add 10.99.0.0/16 via 10.60.0.1 dev dn0
capture_n4 ""
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_rules.py"
echo PASS
