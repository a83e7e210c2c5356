#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: wakings in a second
# Driver share: a second data plane relays between two veth pairs and the gateway's links (xconnect). Then each of the
# two is killed in its turn: the other lives on, has its buffers back, and everything passes again. Without
# packets both sleep.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

relay_fixture "driver: share, device: $DIR/access.sock" \
	"driver: share, device: $DIR/core.sock"
link='args: "role=client", mac: "02:00:00'
use_config "s|driver: net_af_packet, device: veth-access|driver: share, device: $DIR/access.sock, $link:aa:00:01\"|
	s|driver: net_af_packet, device: veth-core|driver: share, device: $DIR/core.sock, $link:cc:00:01\"|"
start_gateway

# usage: links_up [--socket SOCKET]
links_up() {
	isthmus "$@" show port -j | "$PYTHON" -c 'import json, sys
links = [p for p in json.load(sys.stdin) if p["driver"] == "share"]
sys.exit(len(links) != 2 or not all(p["up"] for p in links))'
}
all_up() { links_up && links_up --socket "$DIR/relay.sock"; }
# usage: data_plane [--socket SOCKET]
data_plane() { isthmus "$@" status -j | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["dp_pid"])'; }

# One dies while frames are under way; the other's log says that its buffers are back.
# usage: kill_one SURVIVOR'S_LOG [--socket SOCKET]
kill_one() {
	local log=$1 before
	shift
	before=$(grep -c 'came back' "$log" || true)
	"$PYTHON" -c 'import scapy.all as s
s.sendp(s.Ether(dst="ff:ff:ff:ff:ff:ff") / s.Raw(bytes(100)), iface="home0", count=500, verbose=False)'
	kill -KILL "$(data_plane "$@")"
	came_back() { (($(grep -c 'came back' "$log") > before)); }
	wait_for 20 came_back || fail "no buffer came back: $(cat "$log")"
	wait_for 20 all_up || fail "no links after a kill: $(cat "$DIR/isthmus.log" "$DIR/relay.log")"
}

# The gateway's own packets before its links are up are lost.
export MAY_DROP=port-tx-full
wait_for 20 all_up || fail "no links: $(cat "$DIR/isthmus.log" "$DIR/relay.log")"
all_traffic home0 upf0
asleep "the gateway"
asleep "the relay" --socket "$DIR/relay.sock"
kill_one "$DIR/isthmus.log" --socket "$DIR/relay.sock"
wait_for 10 ping -c 1 -W 1 10.30.0.1
ping -c 100 -i 0.01 -q 10.30.0.1 | grep ' 0% packet loss' || fail "packets are lost after the relay came back"
kill_one "$DIR/relay.log"
all_traffic home0 upf0
asleep "the gateway, started again"
asleep "the relay, connected again" --socket "$DIR/relay.sock"
echo PASS
