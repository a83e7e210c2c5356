#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two workers on net_af_packet with a queue each: the kernel spreads the packets, the subscribers live on both, and
# packets on the wrong worker are handed over. All arrive.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

veth_fixture
use_config 's/^engine:/engine:\n  workers: 2/'
start_gateway
all_traffic home0 upf0
isthmus show worker
for what in worker graph session; do
	isthmus show "$what" -j >"$DIR/$what.json"
done
"$PYTHON" - "$DIR" <<'EOF'
import json, sys
workers, graph, sessions = (json.load(open(f"{sys.argv[1]}/{what}.json")) for what in ("worker", "graph", "session"))
assert len(workers) == 2, workers
packets = {n["name"]: [w["packets"] for w in n["workers"]] for n in graph["nodes"]}
for w in (0, 1):
    own = [s for s in sessions if s["worker"] == w]
    assert len(own) == workers[w]["sessions"] > 0, f"worker {w} has no subscribers"
    # Whichever worker a packet came to: the subscriber's own one sends it.
    for node, direction in (("gtpu-encap", "uplink_packets"), ("access-encap", "downlink_packets")):
        want = sum(s[direction] for s in own)
        assert packets[node][w] == want > 0, f"worker {w}, {node}: {packets[node][w]} packets, expected {want}"
    # All came, beside those of the control thread.
    came, got = packets["handover-rx"][w], workers[1 - w]["handed_over"]
    assert 0 < got <= came, f"worker {1 - w} handed over {got} packets, {came} came to worker {w}"
EOF
echo PASS
