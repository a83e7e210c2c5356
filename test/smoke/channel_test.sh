#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Frames of subscribers come up to a control plane with port, tags, MAC address, session; its answers go down; limits.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

use_config 's/device: veth-access, role: access/device: veth-access, role: access, sign_in: {packet: true}/'
veth_fixture
start_gateway
"$PYTHON" "$TEST_ROOT/test/smoke/signing_in.py"
echo PASS
