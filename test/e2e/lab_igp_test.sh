#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: routing daemons' clocks
# `isthmus lab isp` with an interior protocol in place of BGP. It converges by OSPF and by IS-IS, IPv4 and IPv6, and the
# data network reaches wireline and mobile subscribers.
# usage: lab_igp_test.sh [ospf|isis...]
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/lab.sh
. "$TEST_ROOT/test/lib/lab.sh"
lab_fixture
[[ -x /usr/lib/frr/ospfd && -x /usr/lib/frr/isisd ]] || skip "needs FRR (Debian: frr)"
chmod 755 "$DIR" # FRR's daemons are no root

(($#)) || set -- ospf isis
for igp; do
	echo "--- $igp"
	# Convergence is waited for: one of a few answers suffices.
	# shellcheck disable=SC2016 # the lab's shell expands
	lab isp --ues 1 --homes 1 --igp "$igp" --exec '
		for target in 10.45.0.1 2001:db8:45:1::1 100.64.0.1 2001:db8:64:1::1; do
			ping -q -c 5 -i 0.2 $target | grep -q " [1-5] received" ||
				{ echo "$target does not answer"; exit 1; }
		done' >"$DIR/$igp.log" 2>&1 || fail "$(cat "$DIR/$igp.log")"
	grep convergence "$DIR/$igp.log"
	nothing_left
done
echo PASS
