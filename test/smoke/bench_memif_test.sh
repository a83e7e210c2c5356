#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# Every profile from outside, over memif with isthmus-traffic: at a low rate no packet is wrong, lost or unaccounted
# for, and the JSON has every promised field. A search ends, instances run side by side, an interrupt keeps results, and
# a dying gateway's last output is shown. Speeds are not judged here. Needs no root; BUILD names another build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$(realpath "${BUILD:-build}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unpinned=(--cpus none --tester-cpus none --subscribers 10)

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

# Up to so many seconds for a file to hold a word.
# usage: wait_for_word SECONDS FILE WORD
wait_for_word() {
	local tries=$(($1 * 10))
	until grep -q "$3" "$2" 2>/dev/null; do
		((tries-- > 0)) || fail "no \"$3\" in $2"
		sleep 0.1
	done
}

# usage: check PROFILE POINTS
check() {
	python3 - "$dir/$1.json" "$1" "$2" <<'PY'
import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
fields = """profile link workers seconds mpps gbps_l2 gbps_l1 ticks_per_packet uplink downlink
    floor_ticks_per_packet tsc_hz
loss_ratio offered received dropped latency_us checked wrong peers""".split()
missing = [f for f in fields if f not in r]
missing += [f"{d}.{f}" for d in ("uplink", "downlink") for f in ("mpps", "ticks_per_packet") if f not in r[d]]
assert not missing, f"missing {missing}"
assert r["profile"] == sys.argv[2] and r["link"] == "memif" and r["complete"] and not r["interrupted"]
assert len(r["points"]) == int(sys.argv[3]), [p["name"] for p in r["points"]]
assert r["wrong"] == 0 and r["checked"] > 200 and r["decoded"] > 0
assert set(r["latency_us"]) >= {"p50", "p90", "p99", "p999", "max"}, r["latency_us"]
for p in r["points"]:
    a = p["accounting"]
    assert a["missing"] == 0, (p["name"], a)
    assert a["sent"] == a["received"] + a["refused"] + sum(a["dropped"].values())
    assert p["ticks_per_packet"] > 0 and len(p["latency"]) == 3, p["name"]
    ways = [w for w in (p.get("uplink"), p.get("downlink")) if w]
    for one in [p, *ways]:
        total, floor, own = (one[f"{word}ticks_per_packet"] for word in ("", "floor_", "own_"))
        between = one["own_range"]
        assert floor > 0 and between["min"] - 0.11 <= total - floor <= between["max"] + 0.11, (p["name"], one)
        assert own == between["median"], (p["name"], one)  # of both nothing where it is not resolved
        assert own is None or abs(own - (total - floor)) < 0.11, (p["name"], one)
    if p["name"].startswith(("650", "128 B up")):
        assert all(l["echo_us"]["count"] > 0 for l in p["latency"]), "no echo came back"
        assert p["uplink"]["mpps"] > 0 and p["downlink"]["mpps"] > 0
PY
	echo "$1: good"
}

# Every profile: 8 loads of rfc2544 with one gateway.
for run in agf-symmetric:1 agf-asymmetric:2 rfc2544:8 jumbo:1; do
	profile=${run%:*}
	"$bin/isthmus" bench "$profile" --rate 2k --seconds 0.1 "${unpinned[@]}" --json "$dir/$profile.json" \
		--keep "$dir/kept" >"$dir/out" ||
		fail "$profile: $(cat "$dir/out")"
	check "$profile" "${run#*:}"
done
[[ -s $dir/kept/gateway.yaml ]] || fail "the gateway's configuration was not kept"

# Without huge pages both ends copy.
"$bin/isthmus" bench agf-symmetric --rate 2k --seconds 0.1 --no-huge "${unpinned[@]}" >"$dir/out" ||
	fail "$(cat "$dir/out")"
grep -q 'no huge pages' "$dir/out"

# Over links that share buffers: nothing is lost either, in one gateway and along a chain.
for profile in agf-symmetric vepc-128; do
	"$bin/isthmus" bench "$profile" --link share --rate 2k --seconds 0.1 --sessions 100 "${unpinned[@]}" \
		--json "$dir/share.json" >"$dir/out" 2>&1 ||
		fail "$profile over share: $(cat "$dir/out")"
	python3 - "$dir/share.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
a = r["points"][0]["accounting"]
assert r["link"] == "share" and r["complete"] and r["wrong"] == 0 and r["checked"] > 200, r
assert a["missing"] == 0 and a["refused"] == 0 and not a["dropped"] and a["sent"] == a["received"], a
assert r["floor_ticks_per_packet"] > 0, "no floor"
PY
	echo "$profile over share: good"
done

# A UPF with frames of the paper's profiles: its table fills with one packet a flow, then no known flow misses.
"$bin/isthmus" bench upf-4 --size 256 --link share --rate 2k --seconds 0.1 --goal 99% --sessions 16 "${unpinned[@]}" \
	--json "$dir/upf.json" >"$dir/out" 2>&1 ||
	fail "upf-4 over share: $(cat "$dir/out")"
python3 - "$dir/upf.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
f, p = r["fill"], r["points"][0]
assert f["flows"] == f["flow_inserts"] == 16 * 64 and f["wrong"] == 0 and f["accounting"]["missing"] == 0, f
assert r["wrong"] == 0 and p["name"] == "256 B up, 2816 B down", p
assert p["checked"] > 100 and p["accounting"]["missing"] == 0, p
assert p["uplink"]["frame_bytes"] == "256 B" and p["downlink"]["frame_bytes"] == "2816 B", p
PY
echo "upf-4 over share: good"

# The shortest possible search: at any rate of this machine it is found or refused with a reason, never wrong.
status=0
"$bin/isthmus" bench rfc2544 --size 128 --seconds 0.05 --quick --goal 20% "${unpinned[@]}" --json "$dir/search.json" \
	>"$dir/out" 2>&1 || status=$?
((status <= 1)) || fail "search: status $status: $(cat "$dir/out")"
python3 - "$dir/search.json" "$status" <<'PY'
import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
p = r["points"][0]
assert r["wrong"] == 0 and p["trials"] > 2 and [g["loss"] for g in p["rates"]] == [0, 0.2], p["rates"]
assert (sys.argv[2] == "0") == (p["rates"][1]["found"] and p["rates"][1]["confirmed"]), p["rates"]
assert p["accounting"]["missing"] == 0, p["accounting"]
if sys.argv[2] == "0":
    tester = p["tester"]
    assert tester["device"] == "isthmus-dp xconnect" and tester["limited"] == (tester["ratio"] < 1.3), tester
PY
echo "search: good"

# memif and share in turn, in one table; options that --compare sets itself are refused.
"$bin/isthmus" bench rfc2544 --size 128 --compare --rate 2k --seconds 0.1 "${unpinned[@]}" --json "$dir/compare.json" \
	>"$dir/out" || fail "$(cat "$dir/out")"
grep -Eq 'TICKS: TOTAL +FLOOR +OWN' "$dir/out"
python3 - "$dir/compare.json" <<'PY'
import json, sys
c = json.load(open(sys.argv[1], encoding="utf-8"))
assert [(a["link"], len(a["results"])) for a in c["arrangements"]] == [("memif", 1), ("share", 1)], c["arrangements"]
for a in c["arrangements"]:
    r = a["results"][0]
    assert r["link"] == a["link"] and r["wrong"] == 0 and r["points"][0]["floor_ticks_per_packet"] > 0, r
PY
! "$bin/isthmus" bench jumbo --compare --link share 2>/dev/null || fail "--compare --link was taken"
echo "compare: good"

# More instances than there are CPUs for (two here): shown to work side by side, not measured.
two=$(python3 -c 'import os; print(",".join(map(str, sorted(os.sched_getaffinity(0))[:2])))')
for link in memif share; do
	taskset -c "$two" "$bin/isthmus" bench agf-symmetric --link "$link" --instances 2 --seconds 0.3 \
		--subscribers 10 --json "$dir/two.json" >"$dir/out" ||
		fail "$(cat "$dir/out")"
	grep -q '2 instances need 4 CPUs' "$dir/out"
	python3 - "$dir/two.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
i = r["instances"]
assert not i["measured"] and i["instances_possible"] < 2 and "CPUs" in i["reason"], i
assert len(i["each"]) == 2, i["each"]
assert all(e["received"] > 10 and e["lost"] == 0 and e["wrong"] == 0 for e in i["each"]), i["each"]
assert r["mpps"] is i["sum_mpps"] is i["scaling"] is None, "a speed was claimed"
PY
	echo "instances over $link: good"
done

# An interrupt in the middle: the results so far are there, marked as incomplete.
"$bin/isthmus" bench rfc2544 --rate 1k --seconds 0.5 "${unpinned[@]}" --keep "$dir/cut" --json "$dir/cut.json" \
	>"$dir/out" 2>&1 &
pid=$!
wait_for_word 30 "$dir/cut/128-B/profile.yaml" 'mode: fixed'
kill -INT "$pid"
status=0
wait "$pid" || status=$?
((status == 130)) || fail "interrupted: status $status: $(cat "$dir/out")"
grep -q INTERRUPTED "$dir/out"
python3 - "$dir/cut.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
assert r["interrupted"] and not r["complete"] and 1 <= len(r["points"]) < 8 and r["points"][0]["complete"], r["points"]
PY
echo "interrupt: good"

# A gateway that dies takes its last words into the error.
cat >"$dir/mortal" <<-END
	#!/bin/bash
	"$bin/isthmus-dp" "\$@" &
	gateway=\$!
	trap 'kill \$gateway' TERM
	until [[ -s $dir/dead/650-B-up-650-B-down-1-1/profile.yaml ]]; do read -rt 0.1 <> <(:) || :; done
	echo "the wolf came" >&2
	kill -KILL \$gateway
	exit 7
END
chmod +x "$dir/mortal"
status=0
"$bin/isthmus" bench agf-symmetric --rate 1k --seconds 20 "${unpinned[@]}" --dp-binary "$dir/mortal" \
	--keep "$dir/dead" >"$dir/out" 2>&1 || status=$?
((status == 1)) || fail "a dead gateway: status $status: $(cat "$dir/out")"
grep -q 'isthmus-dp ended' "$dir/out" || fail "last words: $(cat "$dir/out")"
grep -q 'the wolf came' "$dir/out" || fail "last words: $(cat "$dir/out")"
echo PASS
