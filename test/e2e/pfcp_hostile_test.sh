#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tables of hostile PFCP (rows P1-P34, A1-A13) against a running UPF, beside a session whose packets must pass.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
upf_fixture ""
capture_n4 src host 10.40.0.1 # our answers; requests to us are wrong on purpose
GATEWAY_OPTIONS=(--metrics=10.40.0.1:9464 --metrics-public)
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/pfcp_hostile.py"
stop_gateway
find "$DIR" -name '*.db' -delete # a UPF that knows of nothing
sed -e 's/^  roles: .*/&\n  fteid: up/' -e 's/endpoints: \[10.30.0.1, [^]]*\]/endpoints: [10.30.0.1]/' \
	"$TEST_ROOT/test/e2e/upf.yaml" >"$DIR/isthmus.yaml"
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/pfcp_hostile.py" chosen
echo PASS
