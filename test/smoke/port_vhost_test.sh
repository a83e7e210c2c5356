#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# net_vhost and net_virtio_user, the two ends of a vhost-user socket: a second data plane relays between two veth pairs
# and the gateway's ports.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

relay_fixture "driver: net_vhost, device: $DIR/access.sock, promiscuous: true" \
	"driver: net_vhost, device: $DIR/core.sock, promiscuous: true"
use_config "s|driver: net_af_packet, device: veth-|driver: net_virtio_user, device: $DIR/|
	s|\($DIR/[a-z]*\),|\1.sock,|"
start_gateway
all_traffic home0 upf0
log_has_form
echo PASS
