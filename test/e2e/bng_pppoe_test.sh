#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Subscribers dial in by PPPoE with CHAP and local users, over veth: packets both ways, keep-alive, what is shown of
# them,
# a wrong password, `clear subscriber`.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

veth_pair veth-access home0
veth_pair veth-core core0
kernel_address core0 10.60.0.2/24 fd00:60::2/64
ip route add 100.64.0.0/16 via 10.60.0.1
ip -6 route add 2001:db8:100::/40 via fd00:60::1
grep -v '^ *\(dp_\)\?socket:' "$TEST_ROOT/deploy/examples/bng.yaml" >"$DIR/isthmus.yaml"
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/bng_pppoe.py"
echo PASS
