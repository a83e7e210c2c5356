#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# isthmus-traffic moves packets of a subscriber who signed in: the accounting records have its counts to the byte, each
# family apart; a CoA under load halves a rate, by its measure within 1 %, and no packet below the new rate is lost.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/freeradius.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/freeradius.sh"
own_namespaces "$@"
command -v freeradius >/dev/null || skip "needs freeradius"
# shellcheck source=test/lib/traffic.sh
. "$TEST_ROOT/test/lib/traffic.sh"
export TESTER

veth_pair veth-access home0
veth_pair veth-core core0
start_freeradius 'anna	Cleartext-Password := "example-only"
	WISPr-Bandwidth-Max-Down = 4000000, Framed-IP-Address = 100.64.7.7'
{
	sed -e '/^ *\(dp_\)\?socket:/d' -e '/^aaa:/,/^$/d' -e 's/role: access}/role: access, mac: 02:00:00:aa:00:01}/' \
		-e 's/role: core}/role: core, mac: 02:00:00:cc:00:01}/' "$TEST_ROOT/deploy/examples/bng.yaml"
	cat <<-EOF
		aaa: {methods: [radius]}
		radius:
		  nas: {identifier: bng-1, address: 127.0.0.1}
		  servers: [{name: one, address: 127.0.0.1, secret: example-only, message_authenticator: anywhere}]
		  coa: {listen: [127.0.0.1], clients: [{address: 127.0.0.1, secret: example-only, message_authenticator: optional}]}
		neighbours: # the tester's port, which asks nobody
		  - {interface: n6, address: 10.60.0.2, mac: 02:00:00:cc:00:02}
		  - {interface: n6, address: "fd00:60::2", mac: 02:00:00:cc:00:02}
	EOF
} >"$DIR/isthmus.yaml"
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/bng_tester.py"
echo PASS
