#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tester with bad input and bad links: a sentence that names the cause, exit status 2 and no result that looks
# whole, within seconds. An interrupted run keeps its results.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/traffic.sh
. "$TEST_ROOT/test/lib/traffic.sh"

# A profile over two memif sockets, changed by a sed script.
# usage: write_profile NAME SED_SCRIPT
write_profile() {
	sed "$2" >"$DIR/$1.yaml" <<-YAML
		name: errors
		huge_pages: false
		memory_mb: 512
		ports:
		  - {name: a, driver: net_memif, device: $DIR/a.sock}
		  - {name: b, driver: net_memif, device: $DIR/b.sock}
		streams:
		  - name: up
		    port: a
		    sink: b
		    flows: 16
		    size: 128
		    send:
		      - ethernet: {destination: 02:00:00:aa:00:01, source: 02:01:00:00:00:00}
		      - ipv4: {source: {base: 10.64.0.1}, destination: 203.0.113.80}
		      - udp: {source: 40001, destination: 40002}
		run:
		  mode: fixed
		  rate: 5kpps
		  seconds: 1
		  link_wait: 1
		  drain: 0.1
		  warmup: 0
		  latency: {seconds: 0}
	YAML
}

# A profile that is refused, with what the sentence must hold.
# usage: refused NAME SED_SCRIPT PATTERN
refused() {
	write_profile bad "$2"
	cmp -s "$DIR/bad.yaml" "$DIR/good.yaml" && fail "$1: nothing is bad about this profile"
	run_tester 2 bad --check
	grep -qE "^$DIR/bad.yaml:[0-9]+: .*$3" "$DIR/bad.log" || fail "$1: $(cat "$DIR/bad.log")"
	run_tester 2 bad
	grep -qE "^$DIR/bad.yaml:[0-9]+: .*$3" "$DIR/bad.log" || fail "$1, to be run: $(cat "$DIR/bad.log")"
	no_result bad
	echo "ok: $1"
}

# Either no file at all, or a file that is marked incomplete, with the reason.
# usage: no_result NAME
no_result() {
	[[ ! -s $DIR/$1.json ]] || result_says "$1" 'r.complete is False' 'r.error != ""'
}

# A run that cannot be: exit status 2, before it runs, and a sentence.
# usage: broken NAME SED_SCRIPT PATTERN
broken() {
	local start=$SECONDS
	write_profile bad "$2"
	run_tester 2 bad
	grep -qE "$3" "$DIR/bad.log" || fail "$1: $(cat "$DIR/bad.log")"
	((SECONDS - start < 200)) || fail "$1: took $((SECONDS - start)) s"
	no_result bad
	echo "ok: $1"
}

# The tester reaches the point of the interrupt; no event shows it.
wait_a_moment() { sleep 0.5; }

wait_exit() {
	local tries=$((10 * $1))
	while kill -0 "$2" 2>/dev/null && ! gone "$2"; do
		((tries-- > 0)) || return 1
		sleep 0.1
	done
}

write_profile good ""
run_tester 0 good --check
grep -qi good "$DIR/good.log" || fail "--check says $(cat "$DIR/good.log")"
[[ ! -e $DIR/good.json ]] || fail "--check has written a result"
echo "ok: --check of a good profile"

refused "an unknown key" 's/flows: 16/flowz: 16/' 'flowz.*flows'
refused "a frame that has no room for the tag" 's/size: 128/size: 64/; s/- udp: .*/- tcp: {}/' '64 bytes are too few'
refused "a frame below 64 bytes" 's/size: 128/size: 40/' 'size.*40'
refused "a frame above the port's MTU" 's/size: 128/size: 9000/' 'mtu'
refused "a rate of nothing" 's/rate: 5kpps/rate: 0/' 'rate'
refused "a rate in a wrong unit" 's/rate: 5kpps/rate: 5parsec/' '5parsec'
refused "a port that is not there" 's/sink: b/sink: c/' 'no port "c"'
refused "more flows than a field counts" 's/flows: 16/flows: 1000/; s/source: 40001/source: {base: 65000}/' 'source'
printf 'name: [' >"$DIR/bad.yaml"
run_tester 2 bad --check
rm "$DIR/bad.yaml"
run_tester 2 bad
grep -q 'bad.yaml' "$DIR/bad.log" || fail "a missing file: $(cat "$DIR/bad.log")"
run_tester 2 good --no-such-option
run_tester 2 good --rate 5parsec
echo "ok: usage"

broken "an interface that is not there" \
	"s|driver: net_memif, device: $DIR/a.sock|driver: net_af_packet, device: nowhere0|" \
	'(port|ports) "?a\b.*|nowhere0'
broken "a PCI address without a device" \
	"s|driver: net_memif, device: $DIR/a.sock|driver: pci, device: '0000:99:00.0'|" '0000:99:00.0'
broken "nobody behind the sockets" "" "port a: no link.*$DIR/a.sock"
start_relay --drop-one-in 1
broken "a link that carries nothing" "" '(nothing|no packet)'
stop_relay

# The other side goes away in the middle of a minute: that is the end of it.
start_relay
write_profile gone 's/seconds: 1$/seconds: 60/; s/warmup: 0/warmup: 0.1/'
"$TESTER" --json "$DIR/gone.json" --events "$DIR/gone.yaml" >"$DIR/gone.events" 2>"$DIR/gone.log" &
pid=$!
wait_for 20 grep -q '"begin","purpose":"fixed"' "$DIR/gone.events" || fail "no trial begins: $(cat "$DIR/gone.log")"
kill -KILL "$RELAY_PID"
wait_exit 20 "$pid" || fail "the tester does not notice that its links are gone"
status=0
wait "$pid" || status=$?
((status == 2)) || fail "links gone: exit status $status, $(cat "$DIR/gone.log")"
rm -f "$DIR/relay.json" "$DIR/a.sock" "$DIR/b.sock" # what a killed server leaves behind
result_says gone 'not r.complete and not r.interrupted' '"link went down: a" in r.error'
echo "ok: links that go down during a trial"

# Interrupted before there is a link.
write_profile early 's/link_wait: 1$/link_wait: 60/'
"$TESTER" --json "$DIR/early.json" "$DIR/early.yaml" >"$DIR/early.log" 2>&1 &
pid=$!
wait_for 20 pgrep -P "$pid" || fail "no engine: $(cat "$DIR/early.log")"
for _ in 1 2 3; do wait_a_moment; done
kill -TERM "$pid"
wait_exit 20 "$pid" || fail "the tester goes on waiting for its links"
status=0
wait "$pid" || status=$?
((status == 130)) || fail "interrupted before the links were up: exit status $status, $(cat "$DIR/early.log")"
result_says early 'r.interrupted and not r.complete' 'r.trials == []'
echo "ok: interrupted before the links are up"

# Interrupted: the results are kept, and marked so.
start_relay
write_profile long 's/seconds: 1$/seconds: 60/; s/drain: 0.1/drain: 2/'
"$TESTER" --json "$DIR/long.json" --events "$DIR/long.yaml" >"$DIR/long.events" 2>"$DIR/long.log" &
pid=$!
wait_for 20 grep -q '"begin"' "$DIR/long.events" || fail "no trial begins: $(cat "$DIR/long.log")"
wait_a_moment
kill -INT "$pid"
wait_exit 20 "$pid" || fail "the tester does not end"
status=0
wait "$pid" || status=$?
((status == 130)) || fail "interrupted: exit status $status, $(cat "$DIR/long.log")"
stop_relay
result_says long 'r.interrupted and not r.complete' 'len(r.trials) == 1 and r.trials[0].interrupted' \
	'0 < up.sent == up.received == relay.received[0]' 'faults == {}' '0 < r.trials[0].seconds < 50'
grep -qi interrupted "$DIR/long.log" || fail "the text does not say so: $(cat "$DIR/long.log")"
"$PYTHON" - "$DIR/long.events" <<'PY' || fail "events: $(cat "$DIR/long.events")"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert [e["event"] for e in events][:2] == ["ready", "begin"], events
assert events[-1]["event"] == "done" and events[-1]["complete"] is False, events
PY
echo "ok: interrupted"
echo PASS
