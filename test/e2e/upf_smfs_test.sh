#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A UPF with the configuration that people start from, under the messages of Open5GS' and free5GC's SMF.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
# As in deploy/examples/upf.yaml: the SMF's side has no instance of its own, and peers may have any Node ID.
upf_fixture 's|sources: \[access, cp\]|sources: [access]|; s|, node_id: smf[12].isthmus.test||'
kernel_address gnb0 10.30.0.3/24 10.30.0.4/24
capture_n4 ""
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_smfs.py"
echo PASS
