#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# The benchmark profiles on synth ports, access gateway and mobile functions, and the demonstration: every packet right,
# none lost, every promised field in the JSON. Speeds are not judged here. Needs no root; BUILD names another build
# folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$(realpath "${BUILD:-build}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

check() {
	python3 - "$1" "$2" <<'PY'
import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
fields = """profile link workers seconds mpps gbps_l2 gbps_l1 ticks_per_packet uplink downlink
    floor_ticks_per_packet tsc_hz
loss_ratio offered received dropped latency_us checked wrong peers""".split()
missing = [f for f in fields if f not in r]
missing += [f"{d}.{f}" for d in ("uplink", "downlink") for f in ("mpps", "ticks_per_packet") if f not in r[d]]
assert not missing, f"missing {missing}"
assert r["profile"] == sys.argv[2] and r["link"] == "synth"
assert r["wrong"] == 0 and r["checked"] > 1000 and r["received"] > 1000, r
assert r["loss_ratio"] <= 1e-5, (r["loss_ratio"], r["dropped"])
assert r["check_pass"]["lost"] == 0 and r["check_pass"]["offered"] == r["check_pass"]["checked"]
for one in (r, r["uplink"], r["downlink"]):
    pairs = one["spread"]["own_ticks_per_packet"]
    assert pairs["min"] <= pairs["max"] and pairs["runs"] == one["spread"]["mpps"]["runs"], one
    own = pairs["median"]  # nothing where it is not resolved
    assert own is None or pairs["min"] <= own <= pairs["max"], one
    assert one["own_ticks_per_packet"] == own, one
for direction in ("uplink", "downlink"):
    assert r[direction]["mpps"] > 0 and r[direction]["ticks_per_packet"] > 0 and r[direction]["nodes"]
PY
	echo "$2: good"
}

for profile in agf-symmetric agf-asymmetric; do
	"$bin/isthmus" bench "$profile" --link synth --seconds 1 --no-huge --json "$dir/$profile.json"
	check "$dir/$profile.json" "$profile"
done
"$bin/isthmus" bench agf-symmetric --link synth --seconds 0.3 --workers 2 --subscribers 5000 --json "$dir/two.json" \
	>/dev/null
check "$dir/two.json" agf-symmetric
for profile in router router6; do
	"$bin/isthmus" bench "$profile" --routes 50000 --seconds 0.3 --no-huge --json "$dir/$profile.json" >/dev/null
	check "$dir/$profile.json" "$profile"
done
for profile in sgwu pgwu upf; do
	"$bin/isthmus" bench "$profile" --sessions 20000 --seconds 0.3 --workers 2 --no-huge \
		--json "$dir/$profile.json" >/dev/null
	check "$dir/$profile.json" "$profile"
done
# Few of their flows: each one's first packet is a miss, no later one is.
for profile in upf-8m-flows upf-16m-flows; do
	"$bin/isthmus" bench "$profile" --sessions 64 --seconds 0.3 --no-huge --json "$dir/$profile.json" >"$dir/out"
	check "$dir/$profile.json" "$profile"
	grep -q '^table-fill, every packet a miss' "$dir/out"
	python3 - "$dir/$profile.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
f, m = r["fill"], r["memory_floor"]
assert r["flows"] == 64 * 64 == f["flow_inserts"] <= f["packets"], (r["flows"], f) # Echo Requests are packets, too
assert f["lost"] == f["steady_inserts"] == f["flow_evictions"] == 0 and r["loss_ratio"] == 0, f
assert m["bytes"] == 64 * r["flows"] and m["ticks_per_access"]["median"] > 0, m
PY
done

"$bin/isthmus" demo --seconds 0.3 | tee "$dir/demo"
grep -q '^agf-asymmetric .*2.80 *608$' "$dir/demo"
grep -q 'include a network card' "$dir/demo"
echo PASS
