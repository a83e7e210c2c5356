#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A UPF under control planes that this project did not write (test/peers): pfcpsim of SD-Core, free5GC's PFCP library.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
export PEERS=${PEERS:-$TEST_ROOT/.tools/peers/smf}
if [[ ${IN_OWN_WORLD:-} != 1 ]]; then
	"$TEST_ROOT/scripts/peers.sh" smf ||
		skip "the other control planes could not be got or built (scripts/peers.sh smf)"
fi
own_namespaces "$@"
# pfcpsim's filters have two QERs each, and it answers no heartbeats.
upf_fixture 's/, node_id: smf[12].isthmus.test//; s/qers: 4/qers: 8/
	s/interval: 2, retries: 3/interval: 1, retries: 1/'
kernel_address gnb0 10.30.0.3/24 10.30.0.4/24
capture_n4 ""
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_peers.py"
echo PASS
