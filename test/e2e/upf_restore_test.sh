#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: timers of minutes
# Restoration (TS 23.527): outages of N4, restarts of both sides, SMF sets, retention, releases, GTP-U paths that fail
# and return.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
export TEST_ROOT_=$TEST_ROOT
upf_fixture '
s/\(address: 10.40.0.[23], node_id: smf[12].isthmus.test\)/\1, set: set1/
/smf2.isthmus.test/a\    - {address: 10.40.0.5, node_id: smf3.isthmus.test}
/smf2.isthmus.test/a\    - {address: 10.40.0.6, node_id: smf4.isthmus.test, connect: true}
s/heartbeat: .*/heartbeat: {interval: 1, retries: 1, timeout: 1}\n  headless: 12/'
# A second gNB: its address answers ARP, and GTP-U on the test's request.
ip addr add 10.30.0.9/24 dev gnb0
capture_n4 ""
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_restore.py"
echo PASS
