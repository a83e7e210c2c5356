#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tester over a ring of its own. Streams answer others, several streams without a limit run beside one with a rate,
# and there are more tags than a port's MTU counts.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/traffic.sh
. "$TEST_ROOT/test/lib/traffic.sh"

# usage: write_profile NAME SECONDS_AND_RATE, with the streams on standard input
write_profile() {
	{
		cat
		cat <<-YAML
			name: $1
			huge_pages: false
			memory_mb: 512
			ports:
			  - {name: wire, driver: net_ring, mtu: 9062}
			run: {mode: fixed, $2, warmup: 0, drain: 2, latency: {seconds: 0}}
		YAML
	} >"$DIR/$1.yaml"
}

write_profile echo "seconds: 0.5, rate: 4kpps" <<'YAML'
streams:
  - name: ping
    port: wire
    sink: wire
    flows: 64
    size: 128
    send: &ping
      - ethernet: {destination: 02:00:00:00:00:02, source: 02:00:00:00:00:01}
      - ipv4: {source: {base: 10.0.0.1}, destination: 10.9.0.1}
      - icmp: {type: 8, id: {base: 1}}
    receive: *ping
  - name: pong
    port: wire
    sink: wire
    answers: ping
    flows: 64
    size: 128
    send: &pong
      - ethernet: {destination: 02:00:00:00:00:01, source: 02:00:00:00:00:02}
      - ipv4: {source: 10.9.0.1, destination: {base: 10.0.0.1}}
      - icmp: {type: 0, id: {base: 1}}
    receive: *pong
YAML
run_tester 0 echo
# Each is answered once. Packets that arrive after the end of sending are not, because the tester has stopped waiting.
result_says echo 'r.complete' 'not faults' 'ping.received == ping.sent > 100' 'pong.received == pong.sent' \
	'ping.sent - 200 <= pong.sent <= ping.sent' 'pong.latency_us.p50 > ping.latency_us.p50'
echo "ok: answers"

write_profile many "seconds: 0.5" <<'YAML'
streams:
  - name: tags
    port: wire
    sink: wire
    rate: max
    flows: 8
    size: 9096
    send: &tags
      - ethernet: {destination: 02:00:00:00:00:02, source: 02:00:00:00:00:01}
      - vlan: {id: 1}
      - vlan: {id: 2}
      - vlan: {id: 3}
      - vlan: {id: 4}
    receive: *tags
  - name: imix
    port: wire
    sink: wire
    rate: max
    flows: 8
    size: {64: 7, 594: 4, 1518: 1}
    send: &plain
      - ethernet: {destination: 02:00:00:00:00:02, source: 02:00:00:00:00:01}
    receive: *plain
  - name: paced
    port: wire
    sink: wire
    rate: 1kpps
    flows: 8
    size: 100
    send: *plain
    receive: *plain
YAML
run_tester 0 many
# Both get their part, for as long as the trial lasts: far more packets than there are buffers.
result_says many 'r.complete' 'not faults' 'paced.received == paced.sent > 100' \
	'tags.received == tags.sent > 5000' 'imix.received == imix.sent > 5000'
echo "ok: several streams without a limit"
echo PASS
