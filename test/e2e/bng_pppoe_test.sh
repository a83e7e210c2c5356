#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Subscribers dial in by PPPoE with CHAP and local users, over veth: packets both ways, keep-alive, what is shown of
# them,
# a wrong password, `clear subscriber`.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

bng_links
grep -v '^ *\(dp_\)\?socket:' "$TEST_ROOT/deploy/examples/bng.yaml" >"$DIR/isthmus.yaml"
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/bng_pppoe.py"
echo PASS
