#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# net_af_xdp on veth pairs, where the kernel has XDP sockets.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

in_gateway() { ip netns exec gateway "$@"; } # with /sys of that namespace, where the driver looks for its interface
veth_fixture
use_config 's/driver: net_af_packet/driver: net_af_xdp/'
if ! (start_gateway) >"$DIR/said" 2>&1; then
	cat "$DIR/said"
	grep -iE 'xdp|xsk|bpf' "$DIR/isthmus.log" | head -5
	! grep -qiE 'xdp|xsk|bpf' "$DIR/isthmus.log" || skip "the kernel has no XDP sockets for veth"
	fail "the gateway does not start"
fi
all_traffic home0 upf0
log_has_form
echo PASS
