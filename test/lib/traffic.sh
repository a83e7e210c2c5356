# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the tests of the tester: running it, a relay with faults beside it, and checks of its result.
#
# usage: . test/lib/net.sh; own_namespaces "$@"; . test/lib/traffic.sh
TESTER=$BIN/isthmus-traffic
RELAY=$BIN/traffic/fault-relay
[[ -x $BIN/traffic/isthmus-traffic-engine ]] || fail "no isthmus-traffic-engine in $BIN"
if [[ ! -x $TESTER ]]; then # a build folder without Go programs
	TESTER=$DIR/isthmus-traffic
	printf '#!/bin/sh\nexec %q --engine %q "$@"\n' "$TEST_ROOT/build/isthmus-traffic" \
		"$BIN/traffic/isthmus-traffic-engine" >"$TESTER"
	chmod +x "$TESTER"
fi

export TESTER
# For sed: a gateway's ports have the addresses that lib/tester.py sends to.
# shellcheck disable=SC2034 # of those who source this
FIXED_MACS='s/role: access}/role: access, mac: 02:00:00:aa:00:01}/; s/role: core}/role: core, mac: 02:00:00:cc:00:01}/'

# Runs the tester with $DIR/NAME.yaml and demands its exit status. Leaves $DIR/NAME.json and $DIR/NAME.log.
# usage: run_tester STATUS NAME [OPTION...]
run_tester() {
	local want=$1 name=$2 status=0
	shift 2
	rm -f "$DIR/$name.json"
	timeout -k 5 60 "$TESTER" --json "$DIR/$name.json" "$@" "$DIR/$name.yaml" >"$DIR/$name.log" 2>&1 || status=$?
	((status == want)) || {
		cat "$DIR/$name.log"
		[[ ! -s $DIR/$name.json ]] || "$PYTHON" "$TEST_ROOT/test/lib/traffic_result.py" "$DIR/$name.json" all
		fail "$name: the tester's exit status is $status, expected $want"
	}
}

# Like it, for a profile that promises rates: when a busy machine kept the tester from sending what it should, once
# more.
# usage: run_tester_at_rate STATUS NAME [OPTION...]
run_tester_at_rate() {
	local try
	for try in 1 2 3 4; do
		if (run_tester "$@") >"$DIR/try" 2>&1; then
			return
		fi
		(result_says "$2" 'any(t.tester_limited for t in r.trials)') >/dev/null 2>&1 || break
		echo "$2: the tester could not keep its rate, try $try"
	done
	run_tester "$@"
}

# What $DIR/NAME.json must say, as expressions of Python; traffic_result.py explains the names.
# usage: result_says NAME EXPRESSION...
result_says() {
	local name=$1
	shift
	"$PYTHON" "$TEST_ROOT/test/lib/traffic_result.py" "$DIR/$name.json" "$@" || fail "$name: see above"
}

# Starts fault-relay between two memif sockets, $DIR/a.sock and $DIR/b.sock. Its counts come with stop_relay.
# usage: start_relay OPTION...
start_relay() {
	rm -f "$DIR/relay.json" "$DIR/relay.log"
	"$RELAY" --polite --descriptors 1024 "$@" -- \
		--vdev "net_memif0,socket=$DIR/a.sock,socket-abstract=no,role=server,rsize=13" \
		--vdev "net_memif1,socket=$DIR/b.sock,socket-abstract=no,role=server,rsize=13" \
		>"$DIR/relay.json" 2>"$DIR/relay.log" &
	RELAY_PID=$!
	wait_for 20 grep -q ready "$DIR/relay.log" || fail "the relay does not start: $(cat "$DIR/relay.log")"
}

stop_relay() {
	kill -TERM "$RELAY_PID"
	wait "$RELAY_PID" || fail "the relay ended badly: $(cat "$DIR/relay.log")"
}

# tshark has no remark about any frame of a sample, with all checksums looked at.
# usage: clean_capture FILE FRAMES_AT_LEAST
clean_capture() {
	local frames remarks
	local checks=(-o ip.check_checksum:TRUE -o udp.check_checksum:TRUE)
	frames=$(tshark -r "$1" 2>/dev/null | wc -l)
	((frames >= $2)) || fail "$1 has $frames frames, at least $2 are expected"
	remarks=$(tshark -r "$1" "${checks[@]}" -Y '_ws.malformed || _ws.expert.severity >= 6291456' 2>/dev/null |
		head -5)
	[[ -z $remarks ]] || fail "$1: tshark complains about $remarks"
}

# The beginning of a profile, and its end.
# usage: profile_head NAME; profile_run SECONDS [LINE]
profile_head() {
	cat <<-YAML
		name: $1
		huge_pages: false
		memory_mb: 512
		ports:
		  - {name: access, driver: net_memif, device: $DIR/access.sock, descriptors: 8192}
		  - {name: core, driver: net_memif, device: $DIR/core.sock, descriptors: 8192, mtu: 1600}
		streams:
	YAML
}
profile_run() {
	cat <<-YAML
		run: {mode: fixed, ${2:+$2,} seconds: $1, drain: 1.5, warmup: 0, latency: {seconds: 0},
		  disturbed: {repeats: 0}}
	YAML
}

# Both directions of a group of homes: access header, subscriber's packet, and the same inside GTP-U.
# usage: homes NAME FLOWS MAC S_TAG SUBSCRIBER_IP TEID_UP TEID_DOWN QFI SIZE [PPPOE_LAYER]
homes() {
	local pppoe=${10:+- ${10}}
	cat <<-YAML
		  - name: $1-up
		    port: access
		    sink: core
		    flows: $2
		    order: random
		    size: $9
		    send:
		      - ethernet: {destination: 02:00:00:aa:00:01, source: {base: $3}}
		      - vlan: {tpid: 0x88a8, id: $4}
		      - vlan: {id: {base: 1}}
		      $pppoe
		      - ipv4: {source: {base: $5}, destination: 203.0.113.80, ttl: 63, dscp: 10, df: 1}
		      - udp: {source: 40001, destination: {base: 40002, count: 4}}
		    receive:
		      - ethernet: {destination: 02:00:00:cc:00:02, source: 02:00:00:cc:00:01}
		      - ipv4: {source: 192.0.2.1, destination: 192.0.2.2, id: any, ttl: 64}
		      - udp: {source: 2152, destination: 2152}
		      - gtpu: {teid: {base: $6}, extensions: [{pdu-session: {type: uplink, qfi: $8}}]}
		      - ipv4: {source: {base: $5}, destination: 203.0.113.80, ttl: 63, dscp: 10, df: 1}
		      - udp: {source: 40001, destination: {base: 40002, count: 4}}
		  - name: $1-down
		    port: core
		    sink: access
		    flows: $2
		    size: $9
		    send:
		      - ethernet: {destination: 02:00:00:cc:00:01, source: 02:00:00:cc:00:02}
		      - ipv4: {source: 192.0.2.2, destination: 192.0.2.1}
		      - udp: {source: 2152, destination: 2152}
		      - gtpu: {teid: {base: $7}, extensions: [{pdu-session: {type: downlink, qfi: $8}}]}
		      - ipv4: {source: 203.0.113.80, destination: {base: $5}, ttl: 61}
		      - udp: {source: 40002, destination: 40001}
		    receive:
		      - ethernet: {destination: {base: $3}, source: 02:00:00:aa:00:01}
		      - vlan: {tpid: 0x88a8, id: $4}
		      - vlan: {id: {base: 1}}
		      $pppoe
		      - ipv4: {source: 203.0.113.80, destination: {base: $5}, ttl: 61}
		      - udp: {source: 40002, destination: 40001}
	YAML
}
