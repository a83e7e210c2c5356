#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NPTv6 on N6 before sockets of the kernel: UDP, TCP, ping, errors, hairpin, a change of prefixes.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
upf_fixture 's|lookup: destination|nptv6: [{inside: "2001:db8:45::/48", outside: "2001:db8:8::/48"}], &|
	s|^engine: {|&workers: 2, cpus: [-1, -1], |'
ip route add 2001:db8:8::/48 via fd00:60::1 dev dn0
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_nptv6.py"
echo PASS
