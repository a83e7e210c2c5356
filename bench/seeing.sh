#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cost of observation, in ticks a packet of a worker at full load and in the control plane's share of a CPU. In turn:
# without observers; with a page's stream and a scrape each second; with one subscriber traced, by its name and by a
# filter. Two CPUs: the worker has the second, all else the first. Huge pages, as root; four minutes.
# usage: bench/seeing.sh [SUBSCRIBERS [ROUNDS]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=$PWD/build subscribers=${1:-65536} rounds=${2:-4}
dir=$(mktemp -d)
export ISTHMUS_SOCKET=$dir/isthmus.sock
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT

"$bin/isthmus" bench agf-symmetric --link synth --cpus 1 --subscribers "$subscribers" --print-config |
	sed "s|^control:.*|control: {metrics: '127.0.0.1:9591', page: true, state: $dir, \\
api: {listen: ['127.0.0.1:9592'], tls: 'off', anonymous: read}}|" \
		>"$dir/isthmus.yaml"
taskset -c 0 "$bin/isthmus" run -c "$dir/isthmus.yaml" --dp-socket "$dir/dp.sock" >"$dir/log" 2>&1 &
control=$!
"$bin/isthmus" status --wait 60s >/dev/null
"$bin/isthmus" stream load agf-symmetric --subscribers "$subscribers" --check-every 4096 >/dev/null
"$bin/isthmus" stream start
read -r name address < <("$bin/isthmus" show session --limit 1 -j 2>/dev/null | jq -r '.[0] | "\(.name) \(.ue_ip4)"')

# Lets time pass that is measured: there is no event to wait for.
quiet() { sleep "$1"; }

# Prints busy ticks and packets of the worker, and the control plane's CPU time in ticks of 10 ms.
figures() {
	"$bin/isthmus" show worker -j | jq -r '.[0] | "\(.busy_ticks) \(.packets)"'
	awk '{ print $14 + $15 }' "/proc/$control/stat"
}
# usage: measure WHAT
measure() {
	local was now
	quiet 2
	mapfile -t was < <(figures | tr ' ' '\n')
	quiet 8
	mapfile -t now < <(figures | tr ' ' '\n')
	awk -v what="$1" -v t="$((now[0] - was[0]))" -v n="$((now[1] - was[1]))" -v c="$((now[2] - was[2]))" \
		'BEGIN { printf "%-16s %.1f ticks a packet, control plane %.1f %%\n", what, t / n, c / 8 }'
}
scrape() {
	while :; do
		curl --silent http://127.0.0.1:9591/metrics >/dev/null
		quiet 1
	done
}
# usage: end PID...
end() {
	kill "$@" 2>/dev/null || true
	wait "$@" 2>/dev/null || true
}
# usage: traced WHAT SELECTOR...
traced() {
	"$bin/isthmus" trace "${@:2}" --for 60s >/dev/null 2>&1 &
	trace=$!
	measure "$1"
	end "$trace"
}

taskset -pc 0 $$ >/dev/null
for ((i = 0; i < rounds; i++)); do
	measure nobody
	scrape &
	scraper=$!
	curl --silent --no-buffer http://127.0.0.1:9592/page/stream >/dev/null &
	page=$!
	measure "page, scrape"
	end "$scraper" "$page"
	traced "one is traced" --session "$name"
	traced "by a filter" --filter "host ${address%/*}"
done
kill -INT "$control"
wait "$control" || true
