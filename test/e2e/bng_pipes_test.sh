#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# Homes that signed in have pipes of their access port's scheduler. isthmus-traffic measures each profile's rate, the
# strict class first. The scheduler comes by a reload while they are on line, and by a start of the control plane. A CoA
# changes a profile; a home without a free pipe is refused.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/freeradius.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/freeradius.sh"
own_namespaces "$@"
command -v freeradius >/dev/null || skip "needs freeradius"
# shellcheck source=test/lib/traffic.sh
. "$TEST_ROOT/test/lib/traffic.sh"

veth_pair veth-access home0
veth_pair veth-core core0
start_freeradius 'anna	Cleartext-Password := "example-only"
bob	Cleartext-Password := "example-only"
carl	Cleartext-Password := "example-only"
	Filter-Id = "scheduler=gold"
eve	Cleartext-Password := "example-only"
	Filter-Id = "scheduler=tin"'
radius_gateway "$FIXED_MACS" 's/interval: 10,/interval: 3600,/' <<-EOF
	neighbours: # the tester's port, without ARP
	  - {interface: n6, address: 10.60.0.2, mac: 02:00:00:cc:00:02}
EOF
{
	sed 's/^      interim: 600/      scheduler: home\n&/' "$DIR/isthmus.yaml"
	cat <<-EOF
		schedulers:
		  - port: lines
		    rate: 100Mbit
		    subports: {pipes: 2, burst: 100ms}
		    profiles:
		      - {name: least, rate: 100kbit}
		      - {name: home, rate: 2Mbit, burst: 100ms}
		      - {name: gold, rate: 4Mbit, burst: 100ms}
	EOF
} >"$DIR/piped.yaml"
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/bng_pipes.py"

# The control plane alone starts with another file, while homes are on line. Without a scheduler they go on; with one
# they have their pipes again. A home keeps a pipe's profile from RADIUS that the file lacks.
# usage: pipes_are PIPES: each subscriber has a session in its final state
pipes_are() {
	[[ $(isthmus show session -j | jq -c '[.[].scheduler_pipe] | sort') == "$1" &&
		$(isthmus show subscriber -j | jq -c '[.[].state]') == '["up","up"]' ]]
}

# usage: starts_with NAME PIPES
starts_with() {
	local pid
	pid=$(isthmus status -j | jq .pid)
	kill -9 "$pid"
	wait_for 10 gone "$pid"
	cp "$DIR/$1.yaml" "$DIR/isthmus.yaml"
	start_gateway
	wait_for 10 pipes_are "$2" || fail "with $1.yaml: $(isthmus show session), $(isthmus status)"
}
cp "$DIR/isthmus.yaml" "$DIR/plain.yaml"
starts_with plain '["",""]'
isthmus events --kind subscriber.left-out | has scheduler || fail "no event of what was left out"
starts_with piped '["lines/0/0","lines/0/1"]'
echo PASS
