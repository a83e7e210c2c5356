#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: outages by the clock
# `isthmus lab` heals as the product does: each process of each function is killed while a UE pings and iperf3 runs, and
# both go on. The longest gap is printed, not judged. What ends again and again ends the lab.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/lab.sh
. "$TEST_ROOT/test/lib/lab.sh"
lab_fixture

# usage: process FUNCTION pid|dp_pid
process() { isthmus --socket "$LAB/$1/isthmus.sock" status -j | jq -e ".$2"; }
in_step() { isthmus --socket "$LAB/$1/isthmus.sock" status --wait 1s && [[ $(process "$1" "$2") != "$3" ]]; }
answered() { (($(grep -c 'bytes from' "$DIR/ping.log") >= $1)); }
received() { (($(in_lab ue cat /sys/class/net/ue0/statistics/tx_bytes) >= $1)); }

start_lab 4g
in_lab ue ping -n -D -i 0.02 198.51.100.1 >"$DIR/ping.log" 2>&1 &
in_lab ue iperf3 --json --connect-timeout 5000 -c 198.51.100.1 -b 8M -t 3600 >"$DIR/iperf.json" 2>&1 &
iperf=$!
wait_for 10 answered 1 || fail "ping does not begin: $(cat "$DIR/ping.log")"
for function in enb sgw pgw; do
	for what in dp_pid:isthmus-dp pid:isthmus; do
		old=$(process "$function" "${what%:*}")
		count=$(grep -c 'bytes from' "$DIR/ping.log")
		kill -KILL "$old"
		wait_for 30 in_step "$function" "${what%:*}" "$old" ||
			fail "${what#*:} of $function is not started again"
		wait_for 30 answered $((count + 100)) ||
			fail "ping does not go on after a kill of ${what#*:} of $function"
		sent=$(in_lab ue cat /sys/class/net/ue0/statistics/tx_bytes)
		wait_for 30 received $((sent + (1 << 20))) ||
			fail "iperf3 does not go on after a kill of ${what#*:} of $function"
		gap=$(sed -n 's/^\[\([0-9.]*\)\].*bytes from.*/\1/p' "$DIR/ping.log" | tail -n "+$count" |
			awk 'NR > 1 && $1 - last > gap { gap = $1 - last } { last = $1 } END { printf "%.2f", gap }')
		echo "killed ${what#*:} of $function: longest gap between answers $gap s"
	done
done
no_loss ue 198.51.100.1 -c 5 -i 0.2
no_loss ue 2001:db8:100::1 -c 5 -i 0.2
kill -INT "$iperf"
lab_show '[.functions[] | .associated and .sessions == 1] | all' >/dev/null ||
	fail "associations or sessions are missing"
lab_show '[.problems[] | select(test("is started again"))] | length == 6' >/dev/null ||
	fail "the lab shows: $(lab_show -c .problems)"

echo "--- a function that cannot live"
echo 'engine: nonsense' >"$LAB/sgw/isthmus.yaml"
kill -KILL "$(process sgw pid)"
wait_for 60 gone "$LAB_PID" || fail "the lab lives on without a function"
! wait "$LAB_PID" || fail "the lab's exit status is 0 although a function died"
grep -q 'isthmus of sgw ended .* again and again' "$DIR/isthmus.log" ||
	fail "the lab says: $(tail -n 3 "$DIR/isthmus.log")"
nothing_left
echo PASS
