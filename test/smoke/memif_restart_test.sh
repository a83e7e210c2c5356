#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A data plane that is killed leaves the socket of its memif server behind; the next one takes its place all the same.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

cat >"$DIR/isthmus.yaml" <<-EOF
	engine: {huge_pages: "off", packet_buffers: 8192, idle_sleep: true}
	ports:
	  - {name: access, driver: net_memif, device: $DIR/memif.sock, args: "id=0,role=server", role: access}
	  - {name: core, driver: net_memif, device: $DIR/memif.sock, args: "id=1,role=server", role: core}
EOF
start_gateway
data_plane() { isthmus status -j | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["dp_pid"])'; }
first=$(data_plane)
kill -KILL "$first"
# Another process, with all ports.
is_back() {
	isthmus status --wait 1s && [[ $(data_plane) != "$first" ]] &&
		[[ $(isthmus show port -j | grep -c net_memif) == 2 ]]
}
wait_for 20 is_back || fail "no data plane after a kill: $(cat "$DIR/isthmus.log")"
grep -q "removed $DIR/memif.sock" "$DIR/isthmus.log" || fail "nothing is said about the old socket"
echo PASS
