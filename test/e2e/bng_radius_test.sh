#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# FreeRADIUS accepts a subscriber by CHAP, with a rate of its own; radclient changes it while packets pass, and ends the
# session. Accounting has the subscriber's octets exactly. MS-CHAPv2, both ways. Accounting records survive without
# FreeRADIUS while each process is killed; a planned end.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/freeradius.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/freeradius.sh"
own_namespaces "$@"
command -v freeradius >/dev/null || skip "needs freeradius"

bng_links
start_freeradius 'anna	Cleartext-Password := "example-only"
	WISPr-Bandwidth-Max-Down = 8000000, Framed-IP-Address = 100.64.7.7, Class = 0x636c617373
bob	Cleartext-Password := "example-only"'
radius_gateway 's/auth: \[chap,/auth: [chap, mschapv2,/' </dev/null
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/bng_radius.py"
"$BIN/isthmus" control-load --access --interface home0 --subscribers 1 --user anna --password example-only \
	--auth mschapv2 --families 46 --ping 10.60.0.2 || fail "MS-CHAPv2"
"$PYTHON" "$TEST_ROOT/test/e2e/bng_late.py"
echo PASS
