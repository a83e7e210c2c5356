#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# The tester against the access gateway over memif: every header of every packet in both directions. Policed rates and
# strict priority hold; a gateway that confuses two subscribers is detected.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/traffic.sh
. "$TEST_ROOT/test/lib/traffic.sh"

# usage: use_gateway TEID_LEFT TEID_RIGHT
use_gateway() {
	sed "s|SOCKETS|$DIR|; s/LEFT/$1/; s/RIGHT/$2/" "$TEST_ROOT/test/e2e/traffic_agf.yaml" >"$DIR/isthmus.yaml"
}

# A stream of four times its contract. usage: policed EXPECTED_RATE
policed() {
	cat <<-YAML
		  - name: police
		    port: access
		    sink: core
		    rate: 40Mbit
		    size: 650
		    send:
		      - ethernet: {destination: 02:00:00:aa:00:01, source: 02:03:00:00:00:00}
		      - vlan: {tpid: 0x88a8, id: 300}
		      - vlan: {id: 1}
		      - ipv4: {source: 10.64.2.0, destination: 203.0.113.80}
		      - udp: {source: 40001, destination: 40002}
		    expect: {rate: $1, layer: l3, tolerance: 1%}
	YAML
}

# A stream to the shaped home. usage: shaped NAME RATE DSCP EXPECT
shaped() {
	cat <<-YAML
		  - name: $1
		    port: core
		    sink: access
		    rate: $2
		    size: 650
		    send:
		      - ethernet: {destination: 02:00:00:cc:00:01, source: 02:00:00:cc:00:02}
		      - ipv4: {source: 192.0.2.2, destination: 192.0.2.1}
		      - udp: {source: 2152, destination: 2152}
		      - gtpu: {teid: 0x2201, extensions: [{pdu-session: {type: downlink, qfi: 2}}]}
		      - ipv4: {source: 203.0.113.80, destination: 10.64.2.1, dscp: $3}
		      - udp: {source: 40002, destination: 40001}
		    receive:
		      - ethernet: {destination: 02:03:00:00:00:01, source: 02:00:00:aa:00:01}
		      - vlan: {tpid: 0x88a8, id: 300}
		      - vlan: {id: 2}
		      - ipv4: {source: 203.0.113.80, destination: 10.64.2.1, dscp: $3}
		      - udp: {source: 40002, destination: 40001}
		    expect: {$4}
	YAML
}

use_gateway 0x103e 0x103f
start_gateway

{
	profile_head homes
	homes tagged 64 02:01:00:00:00:00 100 10.64.0.0 0x1000 0x2000 9 "{128: 7, 650: 2, 1400: 1}"
	homes ppp 64 02:02:00:00:00:00 200 10.64.1.0 0x1100 0x2100 5 650 "pppoe: {session: {base: 1}}"
	profile_run 1 "rate: 12kpps"
	echo "capture: {file: $DIR/sample.pcap, every: 17, count: 2000}"
} >"$DIR/homes.yaml"
run_tester 0 homes
result_says homes 'r.complete' 'faults == {}' 'len(r.trials[-1].streams) == 4' \
	'all(s.sent == s.received > 1000 for s in r.trials[-1].streams)' \
	'sum(s.decoded for s in r.trials[-1].streams) > 3'
clean_capture "$DIR/sample.pcap" 200
echo "ok: every packet of 128 homes"

# The policed home's contract is 10 Mbit/s for four seconds and a burst of half a second more, so that a pause of a busy
# machine costs none. A frame of 650 bytes leaves to the shaped home as 610 without FCS, 634 on the wire. 10 Mbit/s are
# 7,886 of those in four seconds, of which the high priority's 3,077 come first. The low one has the rest, and its queue
# at the end (64) or a burst.
{
	profile_head promises
	policed 11.25Mbit
	shaped high 4Mbit 46 "rate: 3.778Mbit, tolerance: 3%, loss: 0"
	shaped low 20Mbit 0 "loss: 1"
	profile_run 4
} >"$DIR/promises.yaml"
run_tester_at_rate 0 promises
result_says promises 'police.expectation == high.expectation == low.expectation == "held"' \
	'set(faults) == {"police.lost", "low.lost"}' 'police.lost > 0.5 * police.sent > 0' \
	'0 < low.received and high.received + low.received < 7886 + 64 + 80'
sed -i 's/rate: 11.25Mbit/rate: 12Mbit/' "$DIR/promises.yaml"
run_tester 1 promises
result_says promises '"expected 12 Mbit/s" in police.expectation'
grep -q police "$DIR/promises.log" || fail "the text does not name the stream: $(cat "$DIR/promises.log")"
echo "ok: a policed home and a strict priority"

use_gateway 0x103f 0x103e
isthmus config apply "$DIR/isthmus.yaml"
run_tester 1 homes
result_says homes 'set(faults) == {"tagged-up.wrong.header"}' 'where == {"gtpu.teid"}' \
	'{w.flow for s in r.trials[-1].streams for w in getattr(s, "wrong_frames", [])} <= {62, 63}' \
	'0.01 < faults["tagged-up.wrong.header"] / r.trials[-1].streams[0].sent < 0.06'
echo "ok: two subscribers exchanged"
echo PASS
