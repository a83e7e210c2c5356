#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cost of the tester itself over memif: bench/tester.sh [OUT] [REPETITIONS]. The other side is
# dpdk-testpmd on the last CPU: in io mode for sending, receiving and checking, in rxonly mode for sending alone. The
# tester has one thread on the first CPU and sends as fast as the link takes packets. Ticks per packet, median of the
# repetitions. For a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-$(mktemp -d)}
repetitions=${2:-5}
mkdir -p "$out"
last=$(($(nproc) - 1))
((last > 0)) || { echo "needs two CPUs" >&2 && exit 1; }
# A standard input that says nothing and does not end: dpdk-testpmd stops when it ends.
rm -f "$out/silence"
mkfifo "$out/silence"
exec 9<>"$out/silence"

# usage: profile SIZE FLOWS ORDER NAME [MORE]
profile() {
	local stream="size: $1, flows: $2, order: $3${5:-}"
	cat <<-YAML
		name: $4
		cpus: [0]
		ports:
		  - {name: a, driver: net_memif, device: $out/memif.sock, args: "id=0", descriptors: 2048}
		  - {name: b, driver: net_memif, device: $out/memif.sock, args: "id=1", descriptors: 2048}
		streams:
		  - {name: ab, port: a, sink: b, $stream, seed: 1, send: &send [
		      ethernet: {destination: 02:00:00:00:00:0b, source: 02:00:00:00:00:0a},
		      ipv4: {source: {base: 10.0.0.0}, destination: 203.0.113.80},
		      udp: {source: 4000, destination: 5000}], receive: *send}
		  - {name: ba, port: b, sink: a, $stream, seed: 2, send: *send, receive: *send}
		run: {mode: fixed, rate: max, seconds: 2, warmup: 0, drain: 0.2, latency: {seconds: 0}}
	YAML
}

# A memif client that comes before the server's ports are started is never answered.
wait_ready() {
	local tries=100
	until grep -q 'Checking link statuses' "$out/peer.log" 2>/dev/null; do
		((tries-- > 0)) || { cat "$out/peer.log" >&2 && exit 1; }
		sleep 0.1
	done
}

# usage: measure MODE NAME PROFILE
measure() {
	local i peer
	for ((i = 0; i < repetitions; i++)); do
		rm -f "$out/memif.sock" "$out/peer.log"
		dpdk-testpmd --in-memory --single-file-segments --no-telemetry --file-prefix peer -l "0,$last" \
			--main-lcore 0 --allow=0000:00:00.0 \
			--vdev="net_memif0,role=server,id=0,rsize=11,socket-abstract=no,socket=$out/memif.sock" \
			--vdev="net_memif1,role=server,id=1,rsize=11,socket-abstract=no,socket=$out/memif.sock" -- \
			--forward-mode="$1" --nb-cores=1 --total-num-mbufs=32768 --no-lsc-interrupt --txd=2048 \
			--rxd=2048 --burst=64 --stats-period 1 <"$out/silence" >"$out/peer.log" 2>&1 &
		peer=$!
		wait_ready
		build/isthmus-traffic --json "$out/$2-$i.json" "$3" >"$out/$2-$i.txt" 2>&1 || true
		kill -INT "$peer"
		wait "$peer" 2>/dev/null || true # it may crash when a memif port is taken away
	done
	jq -s --arg name "$2" 'map(.trials[-1]) | {name: $name, ticks: (map(.busy_ticks) | sort),
		mpps: (map(.offered_pps / 1e6) | sort),
		received: (map(.received) | add), wrong: (map(.wrong) | add)} |
		"\(.name): \(.ticks[.ticks | length / 2 | floor] | round) ticks a packet " +
		"(\(.ticks[0] | round) to \(.ticks[-1] | round)), " +
		"\(.mpps[.mpps | length / 2 | floor] * 100 | round / 100) Mpps sent, " +
		"\(.received) received, \(.wrong) wrong"' -r "$out/$2"-*.json
}

profile 64 4096 random send-receive-64 >"$out/64.yaml"
profile 64 4096 random send-alone-64 ', expect: {loss: 1}' >"$out/64-alone.yaml" # nothing comes back
profile 650 4096 random send-alone-650 ', expect: {loss: 1}' >"$out/650-alone.yaml"
profile 650 4096 random send-receive-650 >"$out/650.yaml"
profile 1518 4096 random send-receive-1518 >"$out/1518.yaml"
profile 64 16777216 random sixteen-million-flows >"$out/flows.yaml"
measure io send-receive-64 "$out/64.yaml"
measure rxonly send-alone-64 "$out/64-alone.yaml"
measure io send-receive-650 "$out/650.yaml"
measure rxonly send-alone-650 "$out/650-alone.yaml"
measure io send-receive-1518 "$out/1518.yaml"
measure io sixteen-million-flows-64 "$out/flows.yaml"
