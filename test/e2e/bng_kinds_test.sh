#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On one access port at once: PPPoE and IPoE, two tags and none, IPv4, IPv6 and both, a delegated prefix, a home by its
# first packet, one of the file. FreeRADIUS accepts them by RadSec (RFC 6614). Each carries packets both ways, and only
# from its own source address.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/freeradius.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/freeradius.sh"
own_namespaces "$@"
command -v freeradius >/dev/null || skip "needs freeradius"

bng_links
users=
for user in anna paul six lines:0.0 lines:100.4 lines:200.6; do
	[[ $user == lines* ]] && password=$user || password=example-only
	users+="$user	Cleartext-Password := \"$password\""$'\n'
done
start_freeradius "${users}lines:100.7	Cleartext-Password := \"lines:100.7\"
	Framed-IP-Address = 100.64.7.7" radsec
radius_gateway 's/veth-access, role: access/&, sign_in: {packet: true}/' \
	'/name: n6/a\  - {name: n3, port: uplink, outer_vlan: 70, addresses: [10.30.0.1/24]}' <<-EOF
	paths:
	  - {name: upf, local: 10.30.0.1, peer: 10.30.0.2}
	neighbours:
	  - {interface: n3, address: 10.30.0.2, mac: 02:00:00:cc:00:09}
	subscribers:
	  - {name: file, port: lines, mac: 02:00:00:00:00:08, s_tag: 100, c_tag: 8, ipv4: 100.65.0.8,
	     ipv6: "2001:db8:300::/64", path: upf, teid_uplink: 0x101, teid_downlink: 0x201}
EOF
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/bng_kinds.py"
echo PASS
