#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `isthmus lab 4g`: ordinary programs from a UE through eNodeB, SGW-U and PGW-U and back, usage to the byte, many UEs,
# and nothing left behind however the lab ends.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/lab.sh
. "$TEST_ROOT/test/lib/lab.sh"
lab_fixture

start_lab 4g --ues 200
ordinary_programs

echo "--- sessions"
lab show --limit 3
lab_show '[.functions[] | .associated and .sessions == 200] | all' >/dev/null ||
	fail "associations or sessions are missing"
lab_show '.ues == 200 and (.problems | length) == 0' >/dev/null || fail "the lab sees problems"

echo "--- usage"
# The PGW-U's reports grow by the UE interface's counts, less the Ethernet headers: to the byte, both ways. No other
# packets may be on the radio link: its neighbours do not expire, and the kernels' own ND has ended.
interface_bytes() {
	in_lab ue ip -j -s link show ue0 |
		jq ".[0].stats64 | [.tx.bytes - 14 * .tx.packets, .rx.bytes - 14 * .rx.packets][$1]"
}
usage() { lab show -j --limit 1 | jq ".sessions[0].$1"; }
figures() { echo "$(interface_bytes 0) $(interface_bytes 1) $(usage uplink_bytes) $(usage downlink_bytes)"; }

# Prints the figures when they have stood still for a second.
settled() {
	local now last="" tries
	for tries in {1..20}; do
		now=$(figures)
		[[ $now != "$last" ]] || break
		((tries < 20)) || fail "the counters do not come to rest: $now"
		last=$now
		wait_a_second
	done
	echo "$now"
}

in_lab ue ip -j neigh show dev ue0 | jq -r '.[] | select(.lladdr) | "\(.dst) \(.lladdr)"' >"$DIR/neighbours"
while read -r address mac; do
	in_lab ue ip neigh replace "$address" lladdr "$mac" dev ue0 nud permanent
done <"$DIR/neighbours"
read -r sent got up down <<<"$(settled)"
in_lab ue iperf3 -c 198.51.100.1 -u -b 4M -t 1 -l 1000 >/dev/null || fail "iperf3 over UDP upwards"
in_lab ue iperf3 -c 198.51.100.1 -R -u -b 4M -t 1 -l 1000 >/dev/null || fail "iperf3 over UDP downwards"
read -r sent2 got2 up2 down2 <<<"$(settled)"
((sent = sent2 - sent, got = got2 - got, up = up2 - up, down = down2 - down))
echo "uplink: sent $sent, reported $up; downlink: received $got, reported $down"
((up == sent && up > 400000)) || fail "uplink usage differs"
((down == got && down > 400000)) || fail "downlink usage differs"

echo "--- another UE"
no_loss ue 198.51.100.1 -c 2 -I 10.45.0.2
no_loss ue 2001:db8:100::1 -c 2 -I 2001:db8:45:8::1
no_loss pdn 10.45.0.3 -c 2

echo "--- one lab at a time"
! lab 4g >"$DIR/second" 2>&1 || fail "a second lab started"
grep -q 'running already' "$DIR/second" || fail "the second lab says: $(cat "$DIR/second")"
stop_lab INT

echo "--- killed"
start_lab 4g
kill -KILL "$LAB_PID"
wait "$LAB_PID" || true
lab clean
nothing_left

echo "--- interrupted while it starts"
rm -f "$DIR/isthmus.log"
"$BIN/isthmus" lab 4g --dir "$LAB" >"$DIR/isthmus.log" 2>&1 &
LAB_PID=$!
wait_for 20 grep -q '^namespaces' "$DIR/isthmus.log"
kill -TERM "$LAB_PID"
wait_for 20 gone "$LAB_PID" || fail "the lab does not end"
nothing_left

echo "--- one command, its exit status"
status=0
lab 4g --exec 'curl -sS http://ipv6.lab/ && exit 7' >"$DIR/isthmus.log" 2>&1 || status=$?
((status == 7)) || fail "the command's exit status became $status: $(cat "$DIR/isthmus.log")"
nothing_left
echo PASS
