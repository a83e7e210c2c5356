#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: wakings in a second
# An idle data plane sleeps; it wakes for first packets, hand-overs, what it holds and timers.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

veth_fixture
use_config 's/^engine:/engine:\n  workers: 2/'
cat >>"$DIR/isthmus.yaml" <<-EOF
	schedulers:
	  - {port: access, rate: 10Mbit, subports: {count: 2, rate: 1Mbit}, profiles: [{name: home, rate: 400kbit}]}
EOF
start_gateway
"$PYTHON" "$TEST_ROOT/test/smoke/idle.py"
echo PASS
