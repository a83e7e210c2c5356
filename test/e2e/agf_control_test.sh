#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the access gateway answers, originates and punts, with the kernel as its neighbour: ARP and ND, echo, GTP-U path
# messages, ICMP errors. Also fragments and reassembly, and control packets of subscribers.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

veth_pair veth-access home0
veth_pair veth-core upf0
ip link set home0 mtu 1600 # room for the tags
kernel_address upf0 10.30.0.2/24 fd00:30::2/64
cp "$TEST_ROOT/test/e2e/agf_veth.yaml" "$DIR/isthmus.yaml"
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/agf_control.py"
echo PASS
