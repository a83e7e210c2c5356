#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: 100,000 sessions, by the clock
# Row A12: an association with 100,000 sessions is released while another one's session passes packets; no other CP
# function is delayed.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
export TEST_ROOT_=$TEST_ROOT
upf_fixture '
s/limits: {sessions: 4096, flows: 4096}/limits: {sessions: 131072, flows: 4096}/
s|pools: \[10.45.0.0/16, |pools: [10.45.0.0/16, 10.64.0.0/14, |
s/limits: {sessions: 512.*/limits: {associations: 4}/'
capture_n4 host 10.40.0.2 # not the messages of 100,000 sessions
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_many.py"
echo PASS
