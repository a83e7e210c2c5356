#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tester over each kind of port of this machine, without a gateway. What is sent at one end of a wire arrives at the
# other, every packet compared. memif is in traffic_faults_test.sh.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/traffic.sh
. "$TEST_ROOT/test/lib/traffic.sh"

# Both directions between two ports, IPv4 with tags and IPv6, several sizes.
# usage: write_profile NAME PORT_A PORT_B MTU LARGEST
write_profile() {
	cat >"$DIR/$1.yaml" <<-YAML
		name: $1
		huge_pages: false
		memory_mb: 512
		ports:
		  - {name: a, $2, mtu: $4}
		  - {name: b, $3, mtu: $4}
		streams:
		  - name: tagged
		    port: a
		    sink: b
		    flows: 1000
		    order: random
		    size: {128: 3, 590: 2, $5: 1}
		    send: &tagged
		      - ethernet: {destination: 02:00:00:00:00:0b, source: 02:00:00:00:00:0a}
		      - vlan: {tpid: 0x8100, id: {base: 100, each: 100, count: 10}}
		      - ipv4: {source: {base: 198.18.0.0}, destination: 198.19.0.1}
		      - udp: {source: 40001, destination: 40002, checksum: 1}
		    receive: *tagged
		  - name: six
		    port: b
		    sink: a
		    flows: 1000
		    size: {128: 3, 590: 2, $5: 1}
		    send: &six
		      - ethernet: {destination: 02:00:00:00:00:0a, source: 02:00:00:00:00:0b}
		      - ipv6: {source: '2001:db8::1', destination: {base: '2001:db8:1::', step: '0:0:0:1::'}}
		      - tcp: {source: 80, destination: 40002}
		    receive: *six
		run: {mode: fixed, rate: 4kpps, seconds: 1, warmup: 0.1, drain: 2, latency: {seconds: 0}}
	YAML
}

# usage: both_ways NAME
both_ways() {
	run_tester 0 "$1" --no-huge
	result_says "$1" 'r.complete' 'not faults' 'tagged.received == tagged.sent > 1000' \
		'six.received == six.sent > 1000'
	echo "ok: $1"
}

sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip link add veth-a type veth peer name veth-b
for end in veth-a veth-b; do
	ethtool -K "$end" tx off rx off tso off gso off gro off >/dev/null 2>&1 || true
	ip link set "$end" mtu 1508 up
done

write_profile af_packet "driver: net_af_packet, device: veth-a" "driver: net_af_packet, device: veth-b" 1500 1500
both_ways af_packet

# Needs /sys of this network namespace, where the driver looks for its interface.
mount -t sysfs sysfs /sys
if "$PYTHON" -c 'import socket; socket.socket(44, socket.SOCK_RAW)' 2>"$DIR/xdp.log"; then
	write_profile af_xdp "driver: net_af_xdp, device: veth-a" "driver: net_af_xdp, device: veth-b" 1500 1500
	both_ways af_xdp
else
	echo "not tried: af_xdp, $(tail -1 "$DIR/xdp.log")"
fi

# A bridge joins the tester's two interfaces, once they exist.
join() {
	ip link add bridge type bridge mcast_snooping 0
	ip link set bridge up
	wait_for 20 ip link set tap-a master bridge
	wait_for 20 ip link set tap-b master bridge
	ip link set tap-a up
	ip link set tap-b up
}
if [[ -c /dev/net/tun ]]; then
	write_profile tap "driver: net_tap, device: tap-a" "driver: net_tap, device: tap-b" 1500 1500
	# The bridge learns addresses from the first frames; until then it floods them.
	sed -i 's/warmup: 0.1/warmup: 1/' "$DIR/tap.yaml"
	join &
	both_ways tap
	wait
else
	echo "not tried: tap, no /dev/net/tun"
fi

cp "$TEST_ROOT/traffic/profiles/loopback.yaml" "$DIR/ring.yaml"
run_tester 0 ring
result_says ring 'r.complete' 'not faults' 'round.received == round.sent > 10000'
echo "ok: ring"
echo PASS
