#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An SGW-U under the messages of Open5GS' SGW-C. No instance is named like the APN.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
upf_fixture 's/roles: \[upf\]/roles: [sgwu]/; s/, node_id: smf[12].isthmus.test//
	s/^  - {name: access, .*/  - {name: s1u, interfaces: [n3], endpoints: [10.30.0.1], sources: [access]}/
	s/^  - {name: internet, .*/  - {name: s5, names: ["*"], interfaces: [n6], endpoints: [10.60.0.1], \
    sources: [core]}/'
kernel_address gnb0 10.30.0.3/24
capture_n4 ""
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_smfs.py" sgwu
echo PASS
