#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# Every program that the gateway is compared with, in turn with the gateway, at a low rate. Each forwards every packet
# as it must, and nothing remains. DPDK's examples are downloaded and built first; without a network their rows say so,
# and the others go on. Speeds are not judged here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ ${IN_OWN_WORLD:-} != 1 ]]; then
	scripts/peers.sh || echo "the examples could not be built here; going on without"
fi
# shellcheck source=test/lib/net.sh
. test/lib/net.sh
own_namespaces "$@"
[[ -x $BIN/isthmus-traffic ]] || fail "no isthmus-traffic in $BIN"

check() { # JSON WORD... : its rows; a program that was left out has one of the words in its reason
	"$PYTHON" - "$@" <<-'PY'
		import json, sys
		names = """isthmus testpmd-io testpmd-macswap l3fwd-lpm l3fwd-fib l3fwd-em l3fwd-graph qos_sched
		    ip_pipeline linux-veth
		isthmus-veth""".split()
		peers = json.load(open(sys.argv[1], encoding="utf-8"))["peers"]
		assert [p["name"] for p in peers] == names, [p["name"] for p in peers]
		for p in peers:
		    if p.get("why_not"):
		        assert any(word in p["why_not"] for word in sys.argv[2:]), (p["name"], p["why_not"])
		        assert not p["mpps"] and not p["repetitions"], p
		        continue
		    assert p["repetitions"] == 1 and p["spread"]["median"] == p["mpps"] > 0 and p["runs"], p
		    assert all(p[name] for name in ("version", "command", "packets", "does")), p
		    assert p["link"] in ("memif", "veth"), p
		    assert p["fixed_rate"] and p["ratio"] is None and p["ticks_per_packet"] is None, p
		print(sum(not p.get("why_not") for p in peers), "of", len(peers), "programs forwarded")
	PY
}

# Succeeds when a process exists whose path matches the pattern.
running() {
	local pid
	for pid in /proc/[0-9]*; do
		# shellcheck disable=SC2053 # a pattern
		if [[ $(readlink "$pid/exe" 2>/dev/null) == $1 ]]; then
			tr '\0' ' ' <"$pid/cmdline"
			return 0
		fi
	done
	return 1
}

nothing_left() {
	! running '*testpmd' && ! running '*/peers/bin/*' && ! running '*/isthmus-*' && ! ip -o link | grep -E 'is[bpt]'
}

bench() {
	exec "$BIN/isthmus" bench agf-symmetric --no-huge --rate 2k --seconds 0.2 --peers --rounds 1 \
		--json "$DIR/peers.json"
}

(bench) >"$DIR/bench.log" 2>&1 || fail "isthmus bench: $(tail -n 20 "$DIR/bench.log")"
check "$DIR/peers.json" "run scripts/peers.sh" "could not be built"
nothing_left || fail "the comparison left something"
grep -q 'RATIO' "$DIR/bench.log" || fail "no table: $(cat "$DIR/bench.log")"

# Killed in the middle, it takes the program with it.
bench >"$DIR/killed.log" 2>&1 &
victim=$!
wait_for 60 running '*testpmd' || fail "no testpmd runs: $(cat "$DIR/killed.log")"
kill -KILL "$victim"
wait_for 10 nothing_left || fail "something outlives it: $(nothing_left)"
echo "killed, nothing is left"
echo PASS
