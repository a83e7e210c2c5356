#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Commands at a terminal against a gateway under traffic: rates, chosen rows, top, and the archive for a bug report.
# They also work without the data plane and then the control plane.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

isthmus bench agf-symmetric --link synth --print-config --no-huge --subscribers 100 |
	sed "s|^engine:|&\n  idle_sleep: true|" >"$DIR/isthmus.yaml"
start_gateway
isthmus stream load agf-symmetric --subscribers 100 --rate 1000 && isthmus stream start

# usage: check WHAT EXPRESSION: of `d`, the JSON on standard input
check() {
	"$PYTHON" -c "import json, sys; d = json.load(sys.stdin); sys.exit(not ($2))" || fail "$1"
}
isthmus show port access --watch 1s --count 1 -j |
	check "rates of a port" 'len(d["rows"]) == 1 and d["rows"][0]["rx_packets_per_second"] > 100'
isthmus show session --where 'name=qinq-*' --where 'uplink_packets>0' --sort uplink_bytes --top 3 -j |
	check "chosen sessions" 'len(d) == 3 and d[0]["uplink_bytes"] >= d[2]["uplink_bytes"] > 0'
isthmus show rule --where colour=red && fail "a field that there is not"
isthmus top --once >"$DIR/top"
grep -q '^data plane ready  sessions 100 ' "$DIR/top" || fail "top: $(cat "$DIR/top")"
# On a terminal, with keys; what it leaves is the former screen.
{
	wait_for 10 grep -q '\[overview\]' "$DIR/screen" && printf 4
	wait_for 10 grep -q '\[sessions\]' "$DIR/screen" && printf q
} | script -qefc "stty cols 80 rows 24; $BIN/isthmus top" "$DIR/screen" >/dev/null || fail "top on a terminal"
grep -q $'\e\[?1049l' "$DIR/screen" || fail "top does not leave its screen"

# usage: archive NAME: makes it, and prints its MANIFEST
archive() {
	isthmus support -c "$DIR/isthmus.yaml" -o "$DIR/$1.tar.gz" --log "$DIR/isthmus.log" 2>"$DIR/$1.said" ||
		fail "support: $1"
	tar -xOzf "$DIR/$1.tar.gz" --wildcards '*/MANIFEST'
}
archive all | tee "$DIR/manifest"
for part in configuration.yaml status.json show/session.json show/drop.json log/mnt/isthmus.log \
	process/isthmus-dp/status; do
	grep -q "^here     $part," "$DIR/manifest" || fail "the archive lacks $part"
done
stop_gateway
archive none >"$DIR/manifest"
grep -q '^missing  show/port.json: no control plane' "$DIR/manifest" || fail "$(cat "$DIR/manifest")"
grep -q '^here     configuration.yaml,' "$DIR/manifest" || fail "without a control plane the file is the configuration"
(($(grep -c 'no control plane' "$DIR/none.said") == 1)) || fail "one reason, many lines: $(cat "$DIR/none.said")"
echo PASS
