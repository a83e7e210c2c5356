#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# Floods of PADI and DHCPDISCOVER from random MAC addresses (rows B2, B8). A home on line loses no packet and no LCP
# echo. A new one signs in behind the same S-tag. Counters name the drops, and neither process grows.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/homes.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/homes.sh"
own_namespaces "$@"

bng_links
sed -e '/^ *\(dp_\)\?socket:/d' -e 's/"lines:100.2"/"lines:100.1"/g' \
	-e 's/trusted: true/&, vlans: "1:1"/' \
	-e '/^  users:/a\    - {name: bob, password: example-only}' \
	"$TEST_ROOT/deploy/examples/bng.yaml" >"$DIR/isthmus.yaml"
start_gateway
read -r control data < <(ids)
sizes() { resident "$control" && resident "$data"; }
mapfile -t before < <(sizes)
"$PYTHON" "$TEST_ROOT/test/e2e/bng_flood.py"
mapfile -t after < <(sizes)
[[ $(ids) == "$control $data" ]] || fail "a process died"
echo "bytes before ${before[*]}, after ${after[*]}"
for i in 0 1; do
	# 300 bytes for each of 600,000 MAC addresses would be more. The flood fills 65,536 refused lines, 700 bytes for
	# 10 s each (TestMemoryOfFlood), twice as much until Go collects, and the history of sign-ins.
	((after[i] - before[i] < 160 << 20)) || fail "the flood fills memory"
done
echo PASS
