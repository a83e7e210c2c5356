#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SMF sets (TS 29.244 clause 5.22) and node ids: who is a member, who may have an association, and who goes on when a
# member fails.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
export TEST_ROOT_=$TEST_ROOT
upf_fixture '
s/\(address: 10.40.0.[23], node_id: smf[12].isthmus.test\)/\1, set: set1.test/
/smf2.isthmus.test/a\    - {address: 10.40.0.5, node_id: smf3.isthmus.test}
/smf2.isthmus.test/a\    - {address: 10.40.0.6}
/smf2.isthmus.test/a\    - {address: 10.40.0.7}
s/associations: 4/associations: 8/
s/heartbeat: .*/heartbeat: {interval: 1, retries: 1, timeout: 1}\n  headless: 20/'
capture_n4 src host 10.40.0.1 # our messages; some requests to us are wrong on purpose
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_sets.py"
echo PASS
