#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Frames that the kernel drops because the ring of a net_af_packet socket is full are in the port's rx_missed: of a
# plain port and of a bonding device's members. Each frame that was sent is received or missed.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

FRAMES=4000 # the rings have room for 512
veth_pair veth-plain plain0
veth_pair veth-m0 member0
cat >"$DIR/isthmus.yaml" <<EOF
ports:
  - {name: plain, driver: net_af_packet, device: veth-plain, role: core}
  - name: bond
    driver: net_bond
    bond: {mode: static, members: [{driver: net_af_packet, device: veth-m0}]}
    role: core
EOF
GATEWAY_OPTIONS=()
start_gateway
dp=$(isthmus status -j | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["dp_pid"])')

# usage: port_is NAME CONDITION of received, missed
port_is() {
	isthmus show port "$1" -j | "$PYTHON" -c "import json,sys; r = json.load(sys.stdin)[0]
received, missed = r['rx_packets'], r['rx_missed']
print(received, missed)
sys.exit(not ($2))"
}

# usage: flood PORT INTERFACE
flood() {
	port_is "$1" "missed == 0" || fail "$1 misses frames before there are any"
	kill -STOP "$dp"
	"$PYTHON" - "$2" "$FRAMES" <<'EOF'
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for _ in range(int(sys.argv[2])):
    s.send(b"\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x88\xb5" + bytes(46))
EOF
	kill -CONT "$dp"
	wait_for 5 port_is "$1" "missed > 0 and received + missed >= $FRAMES" ||
		fail "$1 lost frames in silence: $(isthmus show port "$1")"
	port_is "$1" "received + missed == $FRAMES" || fail "$1 counts frames twice"
}

flood plain plain0
flood bond member0
isthmus show port
in_gateway curl -sf http://127.0.0.1:9464/metrics |
	has '^isthmus_port_receive_missed_total{port="plain"} [1-9]' || fail "no metric"
echo PASS
