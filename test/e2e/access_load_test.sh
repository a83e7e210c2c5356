#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# `isthmus control-load --access`: subscribers sign in by PPPoE and by DHCP, each in its VLANs, against a server behind
# the gateway. They flap, and come back after a power cut.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

bng_links
sed -e '/^ *\(dp_\)\?socket:/d' -e 's/methods: \[local\]/methods: [accept]/' "$TEST_ROOT/deploy/examples/bng.yaml" \
	>"$DIR/isthmus.yaml"
start_gateway
load() {
	"$BIN/isthmus" control-load --access --interface home0 --ping 10.60.0.2 --dns 192.0.2.53,2001:db8:53::53 "$@" |
		tee "$DIR/load.txt"
}

load --subscribers 300 --rate 200 --families 46 --hold 2s --flaps 20 --power-cut || fail "PPPoE"
grep -q '300 of 300 on line' "$DIR/load.txt" || fail "not all came on line"
grep -q '^keep_alive  *300 ' "$DIR/load.txt" || fail "not all were kept alive"
load --dhcp --subscribers 300 --rate 200 --families 46 --hold 2s --flaps 20 || fail "DHCP"
grep -q '^keep_alive  *300 ' "$DIR/load.txt" || fail "not all were kept alive"
load --subscribers 3 --dns 192.0.2.54 >/dev/null 2>"$DIR/err.txt" && fail "other name servers are no fault"
grep -q 'other name servers' "$DIR/err.txt" || fail "$(cat "$DIR/err.txt")"
for family in 4 6; do
	ping=()
	((family == 4)) && ping=(--ping 10.60.0.2)
	"$BIN/isthmus" control-load --access --interface home0 --dhcp --subscribers 200 --rate 200 --families $family \
		--power-cut "${ping[@]}" | tee "$DIR/load.txt" || fail "DHCP, families $family"
	grep -q '200 of 200 on line' "$DIR/load.txt" || fail "not all came on line"
done
"$BIN/isthmus" control-load --access --interface home0 --auth none 2>"$DIR/err.txt" && fail "a method that there is not"
grep -q 'none of pap, chap, mschapv2' "$DIR/err.txt" || fail "$(cat "$DIR/err.txt")"
echo PASS
