#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two workers on net_af_packet with a queue each: the kernel spreads the packets, the subscribers live on both, and what
# comes to the wrong worker is handed over. All arrive.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_world "$@"

veth_world
use_config 's/^engine:/engine:\n  workers: 2/'
start_gateway
all_traffic home0 upf0
isthmus show worker
isthmus show worker -j | "$PYTHON" -c '
import json, sys
workers = json.load(sys.stdin)
assert len(workers) == 2, workers
assert all(w["sessions"] > 0 for w in workers), "a worker without subscribers"
assert all(w["packets"] > 0 for w in workers) or sum(w["handed_over"] for w in workers) > 0, "one worker did nothing"
'
echo PASS
