#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Services of subscribers who sign in, as RADIUS says and changes them: access lists, in both directions.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/freeradius.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/freeradius.sh"
own_namespaces "$@"
command -v freeradius >/dev/null || skip "needs freeradius"

bng_links
start_freeradius 'anna	Cleartext-Password := "example-only"
	Filter-Id = "udp-5001.in"
bob	Cleartext-Password := "example-only"
	Filter-Id = "nowhere"'
radius_gateway <<-EOF
	  access_lists:
	    - name: udp-5001
	      default: deny
	      rules: [{action: permit, protocol: udp, destination: 10.60.0.2/32, destination_port: 5001}]
	    - name: no-udp
	      rules: [{action: deny, protocol: udp, source: 10.60.0.0/24, source_port: 5000-5001}]
EOF
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/bng_services.py"
echo PASS
