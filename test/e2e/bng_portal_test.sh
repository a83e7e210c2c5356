#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A home with dhclient and the kernel's IPv6 is captive by RADIUS. It looks names up, and `curl -L` ends at the portal's
# page over IPv4 and IPv6; HTTPS to the portal passes, to others it is dropped. A CoA adds a server to the portal,
# another one lets the home out.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/freeradius.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/freeradius.sh"
own_namespaces "$@"
for tool in dhclient freeradius curl; do
	command -v $tool >/dev/null || skip "needs $tool"
done

ip netns add home
in_home() { nsenter --net=/run/netns/home -- "$@"; }
bng_links
ip link set home0 netns home
in_home sysctl -qw net.ipv6.conf.home0.disable_ipv6=0 net.ipv6.conf.home0.accept_dad=0
in_home ip link set lo up
for host in 53 80 81 82; do
	ip addr add 192.0.2.$host/32 dev lo
	ip addr add 2001:db8:53::$host/128 dev lo nodad
done
# The control plane asks the home's name server by the kernel.
ip link add names netns gateway type veth peer name names0
in_gateway ip addr add 10.77.0.1/24 dev names
in_gateway ip link set names up
in_gateway ip route add 192.0.2.53 via 10.77.0.2
ip addr add 10.77.0.2/24 dev names0
ip link set names0 up

start_freeradius 'lines:0.0	Cleartext-Password := "lines:0.0"
	WISPr-Redirection-URL = "http://portal.test/"'
certificates "$DIR"
"$PYTHON" "$TEST_ROOT/test/e2e/bng_portal.py" "$DIR/server.pem" "$DIR/server.key" >"$DIR/served" &
wait_for 10 grep -qx ready "$DIR/served" || fail "no servers"
radius_gateway </dev/null
start_gateway

in_home ip link set home0 up
in_home dhclient -4 -1 -v -sf "$TEST_ROOT/test/lib/dhclient_script.sh" -pf "$DIR/dhclient.pid" \
	-lf "$DIR/dhclient.leases" home0 >"$DIR/dhclient.log" 2>&1 || fail "no lease: $(cat "$DIR/dhclient.log")"
has_ipv6() {
	in_home ip -6 -o addr show dev home0 scope global | has 2001:db8:100: &&
		in_home ip -6 route show default | has via
}
wait_for 20 has_ipv6 || fail "no IPv6: $(in_home ip -6 addr show dev home0)"
resolver=$(sed -n 's/.*domain-name-servers \([0-9.]*\).*/\1/p' "$DIR/dhclient.leases" | tail -1)
[[ $resolver == 192.0.2.53 ]] || fail "name server $resolver"
mkdir -p /etc/netns
mount -t tmpfs tmpfs /etc/netns
mkdir /etc/netns/home

# The lease's name server serves IPv4, another one IPv6: each resolves names by its own family.
# Usage: get FAMILY URL: the page, then its status and the URL where curl ended
get() {
	local resolver=192.0.2.53
	[[ $1 == 4 ]] || resolver=2001:db8:53::53
	echo "nameserver $resolver" >/etc/netns/home/resolv.conf
	ip netns exec home curl -sSkL "-$1" -w '%{http_code} %{url_effective}\n' "$2" >"$DIR/got" 2>&1
}
# usage: is SITE URL: what get() brought is a page of this site, from this URL
is() { [[ $(cat "$DIR/got") == "this is $1"$'\n'"200 $2" ]]; }
# usage: lands FAMILY URL SITE URL
lands() {
	get "$1" "$2" || fail "curl -$1 -L $2: $(cat "$DIR/got")"
	is "$3" "$4" || fail "curl -$1 -L $2: $(cat "$DIR/got")"
}
# The gateway looks names of a garden up beside the sign-in and the CoA. usage: soon URL SITE URL
soon() { wait_for 20 eval "get 4 $1 && is $2 $3" || fail "$1 does not end at $3: $(cat "$DIR/got")"; }
served() { grep -c "^$1 " "$DIR/served" || true; }
drops() { isthmus show drop -j | jq '[.[] | select(.name == "redirect-not-http").packets] | add // 0'; }
more_drops() { (($(drops) > $1)); }
# HTTPS of others is dropped, and curl waits. usage: no_https FAMILY
no_https() {
	local before
	before=$(drops)
	{ get "$1" https://news.test/ || true; } 2>/dev/null &
	wait_for 10 more_drops "$before" || fail "HTTPS over IPv$1 is not dropped: $(cat "$DIR/got")"
	pkill -P $! curl || fail "HTTPS over IPv$1 came to an end: $(cat "$DIR/got")"
	wait $!
}
coa() {
	printf 'Event-Timestamp = %s\nUser-Name = "lines:0.0"\n%s\n' "$(date +%s)" "$1" |
		in_gateway radclient -x -r 1 -t 3 127.0.0.1:3799 coa example-only >"$DIR/coa" 2>&1 ||
		fail "$(cat "$DIR/coa")"
	has CoA-ACK <"$DIR/coa" || fail "$(cat "$DIR/coa")"
}

echo "--- captive"
soon http://portal.test/ portal.test http://portal.test/
for family in 4 6; do
	lands $family http://news.test/today portal.test http://portal.test/
	lands $family https://portal.test/pay portal.test https://portal.test/pay
	no_https $family
done
[[ $(served news.test) == 0 ]] || fail "a captive home reaches others: $(cat "$DIR/served")"

echo "--- a CoA: the portal needs another server"
coa 'Cisco-AVPair = "subscriber:portal=news.test"'
soon https://news.test/logo news.test https://news.test/logo
for family in 4 6; do
	lands $family https://news.test/logo news.test https://news.test/logo
	lands $family http://other.test/ portal.test http://portal.test/
done

echo "--- a CoA: paid"
coa 'Cisco-AVPair = "subscriber:redirect="'
for family in 4 6; do
	for url in http://other.test/ https://other.test/ http://news.test/ https://portal.test/; do
		lands $family $url "$(cut -d/ -f3 <<<$url)" $url
	done
done
echo PASS
