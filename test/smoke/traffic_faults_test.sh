#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# The tester must find faults: a relay between its two ports damages one packet in so many. Each fault is found, to the
# packet, under its name alone. Without a fault, none is found.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/traffic.sh
. "$TEST_ROOT/test/lib/traffic.sh"

# Homes on one side, tunnels on the other; the relay changes nothing by itself, so what is received is what was sent.
# Without FCS: up has its IPv4 source at 34, its payload from 50 to 108 and the tag behind; down its TEID at 46.
# usage: write_profile FLOWS SECONDS RATE
HUGE=false
write_profile() {
	cat >"$DIR/faults.yaml" <<-YAML
		name: faults
		huge_pages: $HUGE
		memory_mb: 512
		ports:
		  - {name: a, driver: net_memif, device: $DIR/a.sock, descriptors: 8192}
		  - {name: b, driver: net_memif, device: $DIR/b.sock, descriptors: 8192}
		streams:
		  - name: up
		    port: a
		    sink: b
		    flows: $1
		    size: 128
		    send: &up
		      - ethernet: {destination: 02:00:00:aa:00:01, source: {base: 02:01:00:00:00:00}}
		      - vlan: {tpid: 0x88a8, id: 100}
		      - vlan: {id: {base: 1}}
		      - ipv4: {source: {base: 10.64.0.1}, destination: 203.0.113.80, ttl: 63, df: 1}
		      - udp: {source: 40001, destination: 40002}
		    receive: *up
		  - name: down
		    port: b
		    sink: a
		    flows: $1
		    size: {160: 3, 1000: 1}
		    send: &down
		      - ethernet: {destination: 02:00:00:cc:00:01, source: 02:00:00:cc:00:02}
		      - ipv4: {source: 198.51.100.1, destination: 192.0.2.1}
		      - udp: {source: 2152, destination: 2152}
		      - gtpu: {teid: {base: 0x20000001}, extensions: [{pdu-session: {type: downlink, qfi: 9}}]}
		      - ipv4: {source: 203.0.113.80, destination: {base: 10.64.0.1}}
		      - udp: {source: 40002, destination: 40001}
		    receive: *down
		run:
		  mode: fixed
		  rate: $3
		  seconds: $2
		  warmup: 0
		  drain: 1.5
		  latency: {seconds: 0}
		  disturbed: {repeats: 0}
	YAML
}

# One kind of fault, the packets that the relay has damaged and what the tester must call them.
# usage: fault STATUS NAME RELAY_OPTIONS EXPRESSION...
fault() {
	local status=$1 name=$2 options
	read -ra options <<<"$3"
	shift 3
	start_relay "${options[@]}"
	run_tester "$status" faults
	stop_relay
	result_says faults 'r.complete and not r.interrupted and relay.refused == [0, 0]' "$@"
	echo "ok: $name"
}

write_profile 64 0.4 20kpps
fault 0 "no fault" "" 'faults == {}' 'up.sent == up.received > 1000 and down.sent == down.received > 1000' \
	'relay.received[0] == up.sent and relay.sent[0] == down.sent'
fault 0 "a delay of 3 ms" "--delay-us 3000" 'faults == {}' 'up.latency_us.min >= 3000 and down.latency_us.min >= 3000'
sed -i 's/ drain: .*/ drain: 0.1/' "$DIR/faults.yaml"
fault 1 "too late for the last trial" "--delay-us 300000" \
	'sum(t.sent for t in r.trials) == sum(t.received + t.stray for t in r.trials)' 'r.trials[-1].stray > 1000'
write_profile 64 0.4 20kpps
fault 1 "lost" "--drop-one-in 101" \
	'faults.pop("up.lost", 0) + faults.pop("down.lost", 0) == relay.dropped > 0' 'faults == {}'
fault 1 "twice" "--duplicate-one-in 100 --from 0" 'faults == {"up.duplicate": relay.duplicated}' 'relay.duplicated > 10'
fault 1 "one bit of a VLAN id" "--flip-byte 15 --every 100 --from 0" \
	'faults == {"up.wrong.header": relay.flipped}' 'where == {"vlan.id"}' 'relay.flipped > 10'
fault 1 "one bit of a TEID" "--flip-byte 46 --every 100 --from 1" \
	'faults == {"down.wrong.header": relay.flipped}' 'where == {"gtpu.teid"}' 'relay.flipped > 10'
fault 1 "one bit of the payload" "--flip-byte 80 --flip-mask 0x40 --every 100 --from 0" \
	'faults == {"up.wrong.payload": relay.flipped}' 'where == {"payload"}' 'relay.flipped > 10'
fault 1 "one bit of the tag" "--flip-byte -9 --every 100 --from 1" \
	'faults == {"down.lost": relay.flipped, "foreign": relay.flipped}' 'relay.flipped > 10'
fault 1 "a swapped subscriber, downlink" "--swap 46 --every 100 --from 1" \
	'faults == {"down.wrong.header": relay.swapped}' 'where == {"gtpu.teid"}' 'relay.swapped > 10'
fault 1 "a swapped subscriber, uplink" "--swap 34 --every 100 --from 0" \
	'faults == {"up.wrong.header": relay.swapped}' 'where == {"ipv4.source"}' 'relay.swapped > 10'
fault 1 "cut short" "--truncate 20 --every 100 --from 0" \
	'faults == {"up.lost": relay.truncated, "foreign": relay.truncated}' 'relay.truncated > 10'
fault 1 "shorter in the middle" "--cut 100 --every 100" \
	'faults.pop("up.wrong.length", 0) + faults.pop("down.wrong.length", 0) == relay.cut > 10' 'faults == {}'
fault 1 "at the wrong port" "--misroute-one-in 100 --from 1" \
	'faults["down.wrong.port"] == relay.misrouted > 10' 'set(faults) <= {"down.wrong.port", "down.lost"}'

write_profile 1 0.4 20kpps # order is a matter within one flow; it is counted, but no reason to fail
fault 0 "overtaken" "--reorder-one-in 100 --from 0" 'faults == {"up.reordered": relay.reordered}' 'relay.reordered > 10'

write_profile 64 2.6 50kpps
fault 1 "one in 100,000 lost" "--drop-one-in 100000" \
	'faults.pop("up.lost", 0) + faults.pop("down.lost", 0) == relay.dropped >= 1' 'faults == {}'

# On huge pages the tester's own memory is the link, and nothing is copied on its side.
free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)
if ((free >= 256)); then
	HUGE=true
	write_profile 64 0.4 20kpps
	fault 0 "no fault, zero copy" "" 'faults == {}' \
		'up.sent == up.received > 1000 and down.sent == down.received > 1000'
	fault 1 "a swapped subscriber, zero copy" "--swap 46 --every 100 --from 1" \
		'faults == {"down.wrong.header": relay.swapped}' 'where == {"gtpu.teid"}' 'relay.swapped > 10'
else
	echo "$free free huge pages of 2 MB: zero copy is left out"
fi
echo PASS
