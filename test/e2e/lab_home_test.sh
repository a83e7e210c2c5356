#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `isthmus lab home`: homes sign in through FreeRADIUS, by PPPoE with CHAP and by DHCP (Debian's client); ordinary
# programs
# reach the internet over IPv4 and IPv6; a CoA changes the rate of a live session, a Disconnect ends it; accounting is
# as
# much as the packets were. A network of IPv6 alone.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/lab.sh
. "$TEST_ROOT/test/lib/lab.sh"
lab_fixture

gateway() { "$BIN/isthmus" --socket "$DIR/lab/bng/isthmus.sock" "$@"; }
subscriber() { gateway show subscriber -j | jq -er "$1"; }

echo "--- PPPoE"
start_lab home --pppoe --subscribers 2
in_lab home ip -4 addr show ppp0 | grep -q 'inet 100\.64\.' || fail "no IPv4 address"
in_lab home2 ip -6 addr show ppp0 scope global | grep -q 'inet6 2001:db8:64:' || fail "no IPv6 address"
for family in -4 -6; do
	in_lab home curl -sS "$family" --max-time 10 http://www.lab/ | grep -q 'the server in ilab-dn' || fail "curl $family"
done
subscriber 'length == 2' >/dev/null || fail "$(gateway show subscriber)"
gateway show radius
grep -q 'Acct-Status-Type = Start' "$DIR/lab/radius/detail" || fail "no accounting"

echo "--- cleared: it dials again"
gateway clear subscriber home1
wait_for 20 subscriber 'any(.[]; .user == "home1" and .state == "up")'
grep -q 'Acct-Terminate-Cause = Admin-Reset' "$DIR/lab/radius/detail" || fail "no stop record with its cause"
stop_lab TERM

echo "--- DHCP, router advertisements, a delegated prefix"
start_lab home --dhcp
in_lab home ip -4 addr show wan | grep -q 'inet 100\.64\.' || fail "no IPv4 address"
for family in -4 -6; do
	in_lab home curl -sS "$family" --max-time 10 http://www.lab/ | grep -q 'the server in ilab-dn' || fail "curl $family"
done
wait_for 10 subscriber 'any(.[]; .delegated | startswith("2001:db8:64"))'
stop_lab TERM

echo "--- IPv6 alone"
start_lab home --dhcp --ipv6-only
in_lab home curl -sS -6 --max-time 10 http://www.lab/ | grep -q 'the server in ilab-dn' || fail "curl"
in_lab home ip -4 addr show wan | grep inet && fail "an IPv4 address"
stop_lab TERM
echo PASS
