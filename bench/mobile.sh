#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what bench/README.md quotes of the mobile user plane: `bench/mobile.sh [OUT]` writes a text, summary.txt, and
# what it was made from to OUT. 5 to 6 minutes. Needs root, two CPUs and 3 GB of huge pages, and a machine that does
# nothing else.
#
# CPU 0 is the control plane's alone, while sessions come and go; data plane and load generator have the others.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/difference.sh
. bench/difference.sh
mkdir -p "${1:=$(mktemp -d)}"
out=$(cd "$1" && pwd)
build=${BUILD:-$PWD/build}
cpus=$(nproc)
((cpus > 1)) || { echo "needs two CPUs" >&2 && exit 1; }
rest=1-$((cpus - 1))
idle=${IDLE:-200000} # sessions whose memory is measured
million=${SESSIONS:-1048576}
failures=0
exec > >(tee "$out/summary.txt") 2>&1

title() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }
wrong() { echo "WRONG: $*" && failures=$((failures + 1)); }

# ---- a UPF of two processes ------------------------------------------------------------------------------------------

control_plane='' data_plane='' holder='' churn=''
socket=$out/upf.sock

stop() {
	local pid
	for pid in $churn $holder $control_plane $data_plane; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	control_plane='' data_plane='' holder='' churn=''
}
trap stop EXIT

# usage: start SESSIONS; a UPF with room for so many
start() {
	stop
	rm -f "$out"/*.db "$out"/*.sock
	cat >"$out/upf.yaml" <<-YAML
		engine: {packet_buffers: 16384, idle_sleep: true, limits: {sessions: $1, flows: 4096}}
		control: {resync_period: 0, metrics: "", dp_socket: $out/dp.sock, socket: $socket, state: $out}
		ports:
		  - {name: n3, driver: net_memif, device: $out/n3.sock, args: "id=0,role=server", role: core, mtu: 1600,
		    mac: "02:00:00:00:00:03"}
		  - {name: n6, driver: net_memif, device: $out/n6.sock, args: "id=0,role=server", role: core, mtu: 1600,
		    mac: "02:00:00:00:00:06"}
		interfaces:
		  - {name: n3, port: n3, addresses: [10.30.0.1/24]}
		  - {name: n6, port: n6, addresses: [10.60.0.1/24]}
		neighbours:
		  - {interface: n3, address: 10.30.0.2, mac: "02:00:00:00:00:13"}
		instances:
		  - {name: access, interfaces: [n3], endpoints: [10.30.0.1], sources: [access]}
		  - {name: core, interfaces: [n6], lookup: destination, pools: [100.64.0.0/10], sources: [core]}
		pfcp:
		  listen: [127.0.0.1]
		  roles: [upf]
		  peers: [{address: 127.0.0.2}, {address: 127.0.0.3}]
	YAML
	taskset -c "$rest" "$build/isthmus-dp" --socket "$out/dp.sock" >"$out/dp.log" 2>&1 &
	data_plane=$!
	GOMAXPROCS=1 taskset -c 0 "$build/isthmus" run -c "$out/upf.yaml" --no-spawn >"$out/run.log" 2>&1 &
	control_plane=$!
	"$build/isthmus" status --socket "$socket" --wait 20s >/dev/null ||
		{ tail -n 5 "$out/run.log" "$out/dp.log" && exit 1; }
}

# usage: load NAME ARGUMENTS...; fails when an answer was wrong or missing
load() {
	local name=$1
	shift
	taskset -c "$rest" "$build/isthmus" control-load --peer 127.0.0.1 --local 127.0.0.2 --first-ue 100.64.0.1 \
		--access-peer 10.30.0.2 -j "$@" >"$out/load-$name.json" 2>"$out/load-$name.err"
}

percentiles() { # NAME
	jq -r '"\(.offered_per_s)/s offered, \(.achieved_per_s | round)/s established, held back \(.held_back), " +
		"resent \(.resent); establishment " + (.latency.establishment | "p50 \(.p50_us | round) " +
		"p90 \(.p90_us | round) p99 \(.p99_us | round) max \(.max_us | round) us") +
		"; CPU of the control plane \($cpu) %"' --arg cpu "$cpu" "$out/load-$1.json"
}

ticks_of() { awk '{print $14 + $15}' "/proc/$1/stat"; } # hundredths of a second

# usage: timed NAME RATE SECONDS; sets cpu to the control plane's CPU time by time passed, in percent
timed() {
	local before began status=0
	before=$(ticks_of "$control_plane")
	began=$(date +%s%N)
	load "$1" --rate "$2" --seconds "$3" --sessions 10000 --modify-ratio 0 || status=$?
	cpu=$((($(ticks_of "$control_plane") - before) * 1000000000 / ($(date +%s%N) - began)))
	return $status
}

# Resident memory and huge pages of a process, in KiB. smaps has huge pages apart from Rss.
memory() { awk '/^(Rss|Shared_Hugetlb|Private_Hugetlb):/ {sum += $2} END {print sum + 0}' "/proc/$1/smaps_rollup"; }

sessions() { "$build/isthmus" show association --socket "$socket" -j | jq '[.[].sessions] | add // 0'; }

# usage: wait_sessions SESSIONS TENTHS
wait_sessions() {
	local n
	for ((n = 0; n < $2; n++)); do
		(($(sessions) >= $1)) && return
		sleep 0.1
	done
	wrong "there are $(sessions) sessions in place of $1"
	return 1
}

# The last group of sessions is on its way to the store, and no event says when it is there.
wait_stored() { sleep 3; }

# ---- the measurements ------------------------------------------------------------------------------------------------

title "machine"
date -u +%FT%TZ
uname -r
lscpu | grep -E 'Model name|^CPU\(s\)|L1d|L2|L3'
git describe --always --dirty
grep -iE 'hugepages_(total|free)|hugepagesize|memtotal' /proc/meminfo
"$build/isthmus" version
uptime

title "look-up of 64-bit keys, ticks a key"
"$build/dataplane/narrow-bench" 2>&1 | tee "$out/narrow-bench.txt"

title "cache lines of a packet alone, $million sessions, ticks"
"$build/dataplane/session-lines-bench" "$million" 2>&1 | tee "$out/lines-bench.txt"

title "one worker, $million sessions in random order, synth ports; medians of three alternating runs"
for i in 1 2 3; do
	for profile in sgwu pgwu upf; do
		"$build/isthmus" bench "$profile" --sessions "$million" --seconds "${BENCH_SECONDS:-1}" \
			--json "$out/$profile-$i.json" >"$out/$profile-$i.txt" 2>"$out/$profile-$i.err" ||
			wrong "$profile: $(tail -1 "$out/$profile-$i.err")"
	done
done
for profile in sgwu pgwu upf; do
	jq -rs --arg name "$profile" 'def median: sort | .[length / 2 | floor];
		def line(get): map(get) | map(.ticks_per_packet) as $ticks |
			"\($ticks | median) (\($ticks | min) to \($ticks | max), " +
			"floor \(map(.floor_ticks_per_packet) | median))";
		"\($name): ticks a packet uplink \(line(.uplink)), downlink \(line(.downlink)), " +
		"both ways \(line(.)); \(map(.mpps) | median) Mpps; " +
		"checked \(map(.checked) | add), wrong \(map(.wrong) | add)"' "$out/$profile"-?.json
done

title "control plane on one CPU: establishments a second (2 PDR, 2 FAR, 1 QER, 1 URR); 10,000 held, then as many\
 deletions; every answer checked"
start 262144
sustained=0 cpu=0
for rate in ${RATES:-10000 20000 30000 40000 50000 60000}; do
	if timed "$rate" "$rate" 3 &&
		jq -e '.held_back == 0 and .achieved_per_s >= 0.98 * .offered_per_s' "$out/load-$rate.json" \
			>/dev/null; then
		percentiles "$rate"
		sustained=$rate
	else
		percentiles "$rate" && echo "  not sustained: $(head -c 200 "$out/load-$rate.err")"
		break
	fi
done
echo "sustained: $sustained/s"
title "establishments alone: one second of them, held for two seconds"
for rate in ${ALONE:-40000 50000}; do
	load "alone-$rate" --rate "$rate" --sessions "$rate" --seconds 0 --modify-ratio 0 --hold 2s || true
	cpu="?" percentiles "alone-$rate" && head -c 200 "$out/load-alone-$rate.err"
done
title "latency at a steady rate"
((sustained > 0)) || { wrong "not even the first rate was sustained" && sustained=10000; }
for rate in 5000 $((sustained / 2)); do
	timed "at-$rate" "$rate" 5 || wrong "at $rate/s: $(head -c 200 "$out/load-at-$rate.err")"
	percentiles "at-$rate"
done

title "other sessions while 10,000 a second come and as many go"
"$build/isthmus" control-load --peer 127.0.0.1 --local 127.0.0.3 --first-ue 100.96.0.1 --access-peer 10.30.0.2 \
	--sessions 64 --modify-ratio 0 --hold 60s >"$out/load-bystander.json" 2>&1 &
holder=$!
wait_sessions 64 50
# Downlink: the UE's address finds the session, so what must arrive is known. All headers and payloads are compared.
cat >"$out/bystander.yaml" <<-YAML
	name: bystander
	ports:
	  - {name: n3, driver: net_memif, device: $out/n3.sock, args: "id=0", mtu: 1600, mac: "02:00:00:00:00:13",
	    descriptors: 2048}
	  - {name: n6, driver: net_memif, device: $out/n6.sock, args: "id=0", mtu: 1600, mac: "02:00:00:00:00:16",
	    descriptors: 2048}
	streams:
	  - name: bystander
	    port: n6
	    sink: n3
	    flows: 64
	    order: random
	    size: 128
	    send:
	      - ethernet: {destination: 02:00:00:00:00:06, source: 02:00:00:00:00:16}
	      - ipv4: {source: 203.0.113.80, destination: {base: 100.96.0.1}}
	      - udp: {source: 5000, destination: 4000}
	    receive:
	      - ethernet: {destination: 02:00:00:00:00:13, source: 02:00:00:00:00:03}
	      - ipv4: {source: 10.30.0.1, destination: 10.30.0.2, id: any}
	      - udp: {source: any, checksum: any}
	      - gtpu: {teid: {base: 0x10000000}, extensions: [{pdu-session: {type: downlink, qfi: 9}}]}
	      - ipv4: {source: 203.0.113.80, destination: {base: 100.96.0.1}, ttl: any, checksum: any}
	      - udp: {source: 5000, destination: 4000}
	run: {mode: fixed, rate: ${BYSTANDER_RATE:-10000}pps, seconds: 8, warmup: 0.2, drain: 2, latency: {seconds: 0}}
YAML
load churn --rate 10000 --seconds 13 --sessions 20000 --modify-ratio 0 &
churn=$!
wait_sessions 20064 60 || true # as many come as go
"$build/isthmus-traffic" --json "$out/bystander.json" "$out/bystander.yaml" >"$out/bystander.txt" 2>&1 ||
	wrong "bystander: $(tail -3 "$out/bystander.txt")"
kill -0 "$churn" 2>/dev/null || wrong "the sessions stopped coming before the traffic ended"
wait "$churn" || wrong "churn: $(head -c 300 "$out/load-churn.err")"
churn=''
jq -r '"sessions: \(.achieved_per_s | round)/s established, \(.established) made, \(.deleted) deleted, " +
	"unanswered \(.unanswered), wrong \(.wrong)"' \
	"$out/load-churn.json"
jq -r '.trials[-1] | "bystanders: \(.sent) packets sent, \(.received) received, lost \(.sent - .received), " +
	"wrong \(.wrong)"' "$out/bystander.json"
kill -INT "$holder" 2>/dev/null || true # it deletes them
wait "$holder" || true
holder=''
stop

title "memory of $idle idle sessions, RSS and huge pages of both processes"
start 1024
small=$(($(memory "$control_plane") + $(memory "$data_plane")))
echo "room for 1,024, none there: control plane $(memory "$control_plane") KiB, data plane $(memory "$data_plane") KiB"
stop
start "$idle"
empty_control=$(memory "$control_plane") empty_data=$(memory "$data_plane")
echo "room for $idle, none there: control plane $empty_control KiB, data plane $empty_data KiB"
load memory --rate $((sustained / 2)) --sessions "$idle" --modify-ratio 0 --hold 8s &
holder=$!
wait_sessions "$idle" 600 || true
wait_stored
control=$(memory "$control_plane") data=$(memory "$data_plane")
echo "$(sessions) there: control plane $control KiB, data plane $data KiB"
wait "$holder" || wrong "memory: $(head -c 300 "$out/load-memory.err")"
holder=''
a_session() { difference $(($1 * 1024)) $(($2 * 1024)) "$idle" bytes; }
echo "a session: control plane $(a_session "$empty_control" "$control")," \
	"data plane $(a_session "$empty_data" "$data");" \
	"with the tables that the data plane makes for so many at the start, both:" \
	"$(a_session "$small" $((control + data)))"
stop

for size in 128 1024; do
	title "packet core, $size B: attached directly, and through a switch"
	# With few CPUs all functions share one: load is then what they used, and the rate says little.
	"$build/isthmus" bench "vepc-$size" --compare --quick --sessions 10000 --cpus "${VEPC_CPUS:-1,1,1}" \
		--tester-cpus 0 --control-cpus 0 \
		--switch-cpus "${SWITCH_CPUS:-1}" --json "$out/vepc-$size.json" 2>"$out/vepc-$size.err" ||
		wrong "vepc-$size: $(tail -2 "$out/vepc-$size.err")"
done

title "done, $failures wrong"
((failures == 0))
