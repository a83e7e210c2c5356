#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rows A3 and A13 with the caps reached: names without end where anybody may associate, then SEIDs without end.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
upf_fixture 's/^  node_id: .*/&\n  allow_unknown: true/; s/associations: 4,/associations: 8,/
	s/interval: 2/interval: 60/'
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/pfcp_hostile.py" names
echo PASS
