#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# isthmus-traffic moves packets of a subscriber that signed in: the accounting records have its counts to the byte, each
# family apart. A CoA under load halves a rate, within 1 % as measured, and no packet below the new rate is lost.
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
	WISPr-Bandwidth-Max-Down = 4000000, Framed-IP-Address = 100.64.7.7'
radius_gateway "$FIXED_MACS" <<-EOF
	neighbours: # the tester's port, without ARP
	  - {interface: n6, address: 10.60.0.2, mac: 02:00:00:cc:00:02}
	  - {interface: n6, address: "fd00:60::2", mac: 02:00:00:cc:00:02}
EOF
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/bng_tester.py"
echo PASS
