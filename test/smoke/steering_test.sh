#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Steering by what each virtual device says that it can, with two workers; with one there is nothing to steer. What
# hands over between workers: two_workers_test.sh and golden/two-workers.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

[[ -c /dev/net/tun ]] || skip "no /dev/net/tun"
veth_pair veth0 out0
veth_pair veth1 out1
cat >"$DIR/isthmus.yaml" <<EOF
engine: {workers: 2}
ports:
  - {name: packet, driver: net_af_packet, device: veth0, role: core}
  - {name: tap, driver: net_tap, device: tap0, role: core}
  - {name: tap-access, driver: net_tap, device: tap1, role: access}
  - {name: memif, driver: net_memif, device: $DIR/memif.sock, args: "role=server", role: core}
  - {name: vhost, driver: net_vhost, device: $DIR/vhost.sock, role: core}
  - {name: bond, driver: net_bond, role: core, bond: {mode: static, members: [{driver: net_af_packet, device: veth1}]}}
  - {name: share, driver: share, device: $DIR/share.sock, role: core}
  - {name: synth, driver: synth, role: core}
EOF
start_gateway
isthmus show port
isthmus show port -j | jq -r '.[] | "\(.name) \(.steering)"' | sort >"$DIR/got"
cat >"$DIR/want" <<'EOF'
bond software
memif software
packet software
share software
synth software
tap rss
tap-access rss
vhost software
EOF
diff "$DIR/want" "$DIR/got" || fail "other steering than before"
stop_gateway
sed -i 's/workers: 2/workers: 1/' "$DIR/isthmus.yaml"
start_gateway
isthmus show port -j | jq -e 'all(.steering == "none")' >/dev/null ||
	fail "steering with one worker: $(isthmus show port)"
echo PASS
