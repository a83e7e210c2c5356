#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# net_memif: a second data plane relays between two veth pairs and the gateway's memif ports (xconnect).
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

relay_fixture "driver: net_memif, device: $DIR/memif.sock, args: \"id=0,role=server\"" \
	"driver: net_memif, device: $DIR/memif.sock, args: \"id=1,role=server\""
use_config "s|driver: net_af_packet, device: veth-access|driver: net_memif, device: $DIR/memif.sock, args: \"id=0\"|
	s|driver: net_af_packet, device: veth-core|driver: net_memif, device: $DIR/memif.sock, args: \"id=1\"|"
# The gateway's own packets before its links are up are lost.
export MAY_DROP=port-tx-full
start_gateway
all_traffic home0 upf0
echo PASS
