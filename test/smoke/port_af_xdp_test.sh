#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# net_af_xdp on veth pairs, where the kernel has XDP sockets.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

in_gateway() { ip netns exec gateway "$@"; } # with /sys of that namespace, where the driver looks for its interface
veth_fixture
use_config 's/driver: net_af_packet/driver: net_af_xdp/'
in_gateway "$BIN/isthmus" run -c "$DIR/isthmus.yaml" --dp-socket "$DIR/dp.sock" --metrics off --spawn \
	>>"$DIR/isthmus.log" 2>&1 &
if ! isthmus status --wait 15s >"$DIR/status" 2>&1; then
	cat "$DIR/status"
	grep -iE 'xdp|xsk|bpf' "$DIR/isthmus.log" | head -5
	! grep -qiE 'xdp|xsk|bpf' "$DIR/isthmus.log" || skip "the kernel has no XDP sockets for veth"
	fail "the gateway does not start"
fi
all_traffic home0 upf0
echo PASS
