#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# `isthmus control-load` against a UPF: sessions come, change and go at a rate; every answer is right, and in the end
# none is left. What is wrong with the user plane is found and changes the exit status.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

cat >"$DIR/isthmus.yaml" <<'END'
engine:
  huge_pages: "off"
  packet_buffers: 8192
  idle_sleep: true
  limits: {sessions: 20000}
ports:
  - {name: access, driver: synth, role: core}
  - {name: core, driver: synth, role: core}
interfaces:
  - {name: n3, port: access, addresses: [10.3.0.1/24]}
  - {name: n6, port: core, addresses: [10.60.0.1/24]}
instances:
  - {name: access, interfaces: [n3], endpoints: [10.3.0.1], sources: [access]}
  - {name: core, interfaces: [n6], lookup: destination, pools: [10.45.0.0/16], sources: [core]}
pfcp:
  listen: [127.0.0.1]
  node_id: upf.test
  roles: [upf]
  peers: [{address: 127.0.0.2, node_id: load.test}]
END
ip netns exec gateway true # the load runs beside the gateway: PFCP over its loopback interface
start_gateway

control_load() {
	in_gateway "$BIN/isthmus" control-load --peer 127.0.0.1 --local 127.0.0.2 --node-id load.test \
		--access-peer 10.3.0.2 -j "$@" >"$DIR/load.json" 2>"$DIR/load.err"
}

control_load --rate 1000 --sessions 1000 --seconds 5 --modify-ratio 1 ||
	fail "load: $(cat "$DIR/load.err" "$DIR/load.json")"
jq -c '{achieved_per_s, most_sessions, established, modified, deleted, resent, latency}' "$DIR/load.json"
jq -e '.established >= 4500 and .modified == .established and .deleted == .established and .wrong == {} and
	.unanswered == 0' \
	"$DIR/load.json" >/dev/null || fail "the result is $(cat "$DIR/load.json")"
none_left() { isthmus show session -j | jq -e 'length == 0'; }
wait_for 5 none_left || fail "sessions are left"

# More sessions than the gateway has room for: refused with a cause, which the load reports; nothing breaks.
status=0
control_load --rate 20000 --sessions 21000 --modify-ratio 0 || status=$?
((status == 1)) || fail "exit status $status with too many sessions"
jq -e '.wrong | keys | all(test("cause (74|75)"))' "$DIR/load.json" >/dev/null ||
	fail "wrong is $(jq .wrong "$DIR/load.json")"
wait_for 10 none_left || fail "sessions are left after the refusals"

# A Node ID that the gateway does not know, and a gateway that is not there.
! in_gateway "$BIN/isthmus" control-load --peer 127.0.0.1 --local 127.0.0.2 --node-id other.test --t1 200ms >/dev/null \
	2>"$DIR/load.err" ||
	fail "an unknown peer was served"
! in_gateway "$BIN/isthmus" control-load --peer 127.0.0.9 --t1 100ms --n1 1 2>"$DIR/load.err" ||
	fail "nobody was served by"
grep -q 'does not answer' "$DIR/load.err" || fail "without a gateway: $(cat "$DIR/load.err")"
echo PASS
