#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The access gateway between two veth pairs, with scapy as home gateways and as UPF: every encapsulation, IP version, TPID
# and direction, captured and compared field by field as tshark decodes it.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_world "$@"

veth_pair veth-access home0
veth_pair veth-core upf0
kernel_address upf0 10.30.0.2/24 fd00:30::2/64
cp "$TEST_ROOT/test/e2e/agf_veth.yaml" "$DIR/isthmus.yaml"
start_gateway
# Now each knows the other's MAC address.
wait_for 5 ping -c 1 -W 1 10.30.0.1
wait_for 5 ping -6 -c 1 -W 1 fd00:30::1
"$PYTHON" "$TEST_ROOT/test/e2e/agf_veth.py"
echo PASS
