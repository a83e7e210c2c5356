#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# `isthmus bench l3fwd --peers` with four ports, at a low rate. The product forwards every packet over each link, Linux
# and DPDK's examples those that they can, and nothing remains. Speeds are not judged here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ ${IN_OWN_WORLD:-} != 1 ]]; then
	scripts/peers.sh || echo "the examples could not be built here; going on without"
fi
# shellcheck source=test/lib/net.sh
. test/lib/net.sh
own_namespaces "$@"
[[ -x $BIN/isthmus-traffic ]] || fail "no isthmus-traffic in $BIN"

"$BIN/isthmus" bench l3fwd --peers --no-huge --rate 2k --seconds 0.2 --ports 4 --size 128 --json "$DIR/routers.json" \
	--cpus 0 --tester-cpus 0 --control-cpus none >"$DIR/bench.log" 2>&1 ||
	fail "isthmus bench l3fwd: $(tail -n 30 "$DIR/bench.log")"
"$PYTHON" - "$DIR/routers.json" <<-'PY'
	import json, sys
	r = json.load(open(sys.argv[1], encoding="utf-8"))
	assert r["profile"] == "l3fwd" and r["complete"] and r["mpps"] > 0 and r["loss_ratio"] <= r["goal"], r
	[point] = r["points"]
	assert (point["ports"], point["frame_bytes"], point["line_gbps"]) == (4, 128, 4), point
	links = [row["link"] for row in point["rows"] if row["name"] == "isthmus"]
	assert links == ["memif", "share", "virtio", "veth", "af_xdp"], links
	for row in point["rows"]:
	    if row.get("why_not"):
	        assert row["name"].startswith("l3fwd") and "built" in row["why_not"], row
	        continue
	    assert row["mpps"] > 0 and row["line_share"] > 0 and row["fixed_rate"], row
	linux = [row["link"] for row in point["rows"] if row["name"] == "linux-veth"]
	assert linux == ["veth", "af_xdp"], linux
	print(sum(not row.get("why_not") for row in point["rows"]), "of", len(point["rows"]), "routers forwarded")
PY
! ip -o link | grep -E 'is[bpt]' || fail "the comparison left links"
echo PASS
