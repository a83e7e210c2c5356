#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# net_vhost and net_virtio_user, the two ends of a vhost-user socket: a second data plane relays between two veth pairs and the
# gateway's ports.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_world "$@"

cat >"$DIR/relay.yaml" <<-EOF
	engine: {huge_pages: "off", packet_buffers: 8192, idle_sleep: true}
	ports:
	  - {name: home, driver: net_af_packet, device: veth-access, role: access, promiscuous: true, xconnect: access}
	  - {name: access, driver: net_vhost, device: $DIR/access.sock, role: access, promiscuous: true, xconnect: home}
	  - {name: upf, driver: net_af_packet, device: veth-core, role: core, promiscuous: true, xconnect: core}
	  - {name: core, driver: net_vhost, device: $DIR/core.sock, role: core, promiscuous: true, xconnect: upf}
EOF
veth_world
in_gateway "$BIN/isthmus" --socket "$DIR/relay.sock" run -c "$DIR/relay.yaml" --dp-socket "$DIR/relay-dp.sock" \
	--metrics off --spawn >>"$DIR/relay.log" 2>&1 &
isthmus --socket "$DIR/relay.sock" status --wait 20s || fail "the relay does not start: $(cat "$DIR/relay.log")"
use_config "s|driver: net_af_packet, device: veth-|driver: net_virtio_user, device: $DIR/|; s|\($DIR/[a-z]*\),|\1.sock,|"
start_gateway
all_traffic home0 upf0
echo PASS
