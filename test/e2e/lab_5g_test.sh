#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `isthmus lab 5g`: ordinary programs from a UE through gNB and UPF, then through two UPFs with N9, uplink classifier
# and GTP-U over IPv6. Handover under traffic; buffering and paging of an idle UE.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/lab.sh
. "$TEST_ROOT/test/lib/lab.sh"
lab_fixture

start_lab 5g
ordinary_programs
lab show
stop_lab TERM

echo "--- N9, uplink classifier, IPv6 transport, handover, idle"
start_lab 5g --n9 --handover --idle --ipv6-transport --keep
grep -E '^(handover|idle):' "$DIR/isthmus.log"
[[ $(grep -c '^handover: .* 0 lost$' "$DIR/isthmus.log") == 2 ]] || fail "packets were lost in the handover"
[[ $(grep -c '^idle: .*paged 1 times, 5 sent, 0 lost' "$DIR/isthmus.log") == 2 ]] || fail "the idle UE was not paged"
ordinary_programs
in_lab ue curl -sS --max-time 10 http://edge.lab/ | has 'the server in ilab-edge' ||
	fail "the uplink classifier's network"

echo "--- what a third party sees on N4 and N3"
capture() { ip netns exec "ilab-$1" tcpdump -U -n -i "$2" -w "$DIR/$3.pcap" "${@:4}" 2>"$DIR/$3.log" & }
capture cp any n4 udp port 8805
n4=$!
capture gnb n3 n3 udp port 2152
n3=$!
wait_for 10 grep -q listening "$DIR/n4.log"
wait_for 10 grep -q listening "$DIR/n3.log"
lab handover 1
no_loss ue 2001:db8:100::1 -c 2
lab idle 1
no_loss dn 10.45.0.1 -c 3
lab_show '.handovers == 7 and .pages == 3 and .repairs == 0' >/dev/null ||
	fail "the lab counts $(lab_show -c '[.handovers, .pages, .repairs]')"
seen() { tshark -r "$DIR/$1.pcap" -Y "$2" 2>/dev/null | has .; }
wait_for 10 seen n3 'gtp.message == 254' || fail "the old gNB got no end marker"
wait_for 10 seen n4 'pfcp.msg_type == 56' || fail "there is no session report on N4"
kill "$n4" "$n3"
wait "$n4" "$n3" || true
for file in n4 n3; do
	bad=$(tshark -r "$DIR/$file.pcap" -Y '(pfcp || gtp) && (_ws.malformed || _ws.expert.group == 0x07000000)' \
		2>/dev/null)
	[[ -z $bad ]] || fail "tshark finds malformed messages: $bad"
done
! tshark -r "$DIR/n4.pcap" -V 2>/dev/null | grep -iE 'unknown (ie|message)|not decoded|undecoded' ||
	fail "tshark does not know everything"

# The tunnels are IPv6 indeed.
lab_show '[.sessions[0].hops[].uplink_fteid | select(. != "")] | all(startswith("fd00:"))' >/dev/null ||
	fail "the F-TEIDs are not IPv6"
stop_lab
echo PASS
