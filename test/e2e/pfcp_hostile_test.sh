#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tables of hostile PFCP (rows P1-P34, A1-A13) against a running UPF, beside a session whose packets must pass.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_world "$@"
upf_world ""
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/pfcp_hostile.py"
echo PASS
