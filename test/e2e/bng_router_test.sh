#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A home with the kernel's IPv6: it hears of its router, and forwards datagrams of a host behind it. The kernel asks for
# its router after each advertisement (RFC 4861 §7.3), and must hear it: every datagram arrives. The same when the file
# gives the router another link-local address, and when a gateway with another MAC address takes over. The home has no
# lease: its session is there as long as the kernel answers, and ends when it does not. TCP keeps to the MSS of the
# file.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

for space in home lan; do ip netns add $space; done
in_home() { nsenter --net=/run/netns/home -- "$@"; }
in_lan() { nsenter --net=/run/netns/lan -- "$@"; }
bng_links
ip link set home0 netns home
ip link add lan0 netns home type veth peer name lan1 netns lan
in_lan ethtool -K lan1 tx off >/dev/null
in_lan sysctl -qw net.ipv6.conf.lan1.accept_dad=0
in_lan ip link set lan1 up
in_home sysctl -qw net.ipv6.conf.all.forwarding=1 net.ipv6.conf.lan0.accept_dad=0
in_home ip link set lan0 up
in_home ip addr add fe80::1/64 dev lan0 nodad
# The kernel finds out in seconds; nothing here is judged by them.
in_home sysctl -qw net.ipv6.conf.home0.disable_ipv6=0 net.ipv6.conf.home0.accept_dad=0 net.ipv6.conf.home0.accept_ra=2 \
	net.ipv6.neigh.home0.delay_first_probe_time=1 net.ipv6.neigh.home0.base_reachable_time_ms=1000 \
	net.ipv6.neigh.home0.retrans_time_ms=1000
sed -e '/^ *\(dp_\)\?socket:/d' -e 's/methods: \[local\]/methods: [accept]/' \
	-e 's/lookup: destination/&, mss: 1200/' \
	-e '/^access:/a\  ra: {interval: 2}\n  ipoe: {keep_alive: {interval: 1, count: 3}}' \
	"$TEST_ROOT/deploy/examples/bng.yaml" >"$DIR/isthmus.yaml"
start_gateway

"$PYTHON" -uc 'import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 5000))
while True: print(s.recv(100).decode().strip())' >"$DIR/arrived" &
wait_for 10 eval 'ss -Hlun | has :5000'
in_home ip -6 -o monitor neigh dev home0 >>"$DIR/neighbours" &
wait_for 10 eval 'in_home ss -f netlink | has "rtnl:.*ip"'
in_home ip link set home0 up
default() { in_home ip -6 route show default dev home0; }
wait_for 20 eval 'default | has via' || fail "the home hears of no router"
router=$(default | sed 's/.* via \([^ ]*\).*/\1/')
address=$(in_home ip -6 -o addr show dev home0 scope global | sed 's/.*inet6 \([^/]*\).*/\1/')
[[ $address == 2001:db8:100:* ]] || fail "address $address"
host=$(cut -d: -f1-4 <<<"$address")::beef # of the home's /64, as by RFC 7278
in_home ip -6 route add "$host" dev lan0
in_lan ip addr add "$host/128" dev lan1 nodad
in_lan ip -6 route add default via fe80::1 dev lan1

sent=0 first=0 # numbers of the next datagram, and of the first that must arrive
datagram() {
	in_lan bash -c "echo $sent >/dev/udp/fd00:60::2/5000"
	sent=$((sent + 1))
}
advertisements() { in_home sed -n 's/^Icmp6InRouterAdvertisements *//p' /proc/net/snmp6; }
confirmed() { grep -c "^$router .*REACHABLE" "$DIR/neighbours" || true; }
# usage: confirmed_after COUNT
confirmed_after() {
	datagram
	(($(confirmed) > $1))
}
all_arrived() { (($(awk -v first="$first" '$1 >= first' "$DIR/arrived" | wc -l) == sent - first)); }
# usage: two_periods WHEN
two_periods() {
	local period heard
	for period in 1 2; do
		heard=$(advertisements)
		wait_for 20 eval "((\$(advertisements) > $heard))" || fail "$1: period $period: no advertisement"
		wait_for 20 confirmed_after "$(confirmed)" || fail "$1: no router: $(cat "$DIR/neighbours")"
	done
	! grep "^$router .*FAILED" "$DIR/neighbours" || fail "$1: the router was lost"
	wait_for 10 all_arrived || fail "$1: of $first to $sent there came $(paste -sd ' ' "$DIR/arrived")"
}
two_periods "a new home"
in_home ping -n -c 1 -W 3 "$router%home0" >"$DIR/ping" || fail "no echo of the router: $(cat "$DIR/ping")"

# A TCP connection of two kernels keeps to the MSS (20 less over IPv6; the option of time stamps takes 12 of it), and a
# megabyte arrives each way.
"$PYTHON" -uc 'import socket
with socket.create_server(("fd00:60::2", 5001), family=socket.AF_INET6) as server:
    print("ready")
    s, _ = server.accept()
    got = sum(iter(lambda: len(s.recv(65536)), 0))
    s.sendall(bytes(1 << 20))
    s.close()
    print(got)' >"$DIR/server" &
wait_for 10 grep -q ready "$DIR/server"
in_lan timeout 60 "$PYTHON" -c 'import socket
s = socket.create_connection(("fd00:60::2", 5001))
s.sendall(bytes(1 << 20))
s.shutdown(socket.SHUT_WR)
print(sum(iter(lambda: len(s.recv(65536)), 0)), s.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))' >"$DIR/client" ||
	fail "TCP through the gateway: $(cat "$DIR/client" "$DIR/server")"
[[ $(cat "$DIR/client") == "$((1 << 20)) 1168" ]] || fail "the octets and the MSS of the host: $(cat "$DIR/client")"
wait_for 10 grep -qx $((1 << 20)) "$DIR/server" || fail "the octets at the server: $(cat "$DIR/server")"
isthmus show mss -j | jq -e '.[] | select(.name == "internet") | .uplink == 1 and .downlink == 1' >/dev/null ||
	fail "show mss: $(isthmus show mss)"

# The file names the router: homes get its advertisement, and their former one stays.
sed -i 's|\(addresses: \[100.64.0.1/16\)\]|\1, "fe80::1/64"]|' "$DIR/isthmus.yaml"
isthmus config apply "$DIR/isthmus.yaml" >"$DIR/applied" || fail "$(cat "$DIR/applied")"
wait_for 20 eval 'default | has "via fe80::1 "' || fail "no advertisement from the file's address"
two_periods "an address of the file"
in_home ip -6 route del default via "$router" dev home0
router=fe80::1
two_periods "a router of the file's address"

# Another gateway, without sessions, has the same link-local address and another MAC address.
stop_gateway
rm -f "$DIR"/*.db
sed -i 's|device: veth-access, role: access|&, mac: "02:00:00:00:77:01", sign_in: {packet: true}|' "$DIR/isthmus.yaml"
start_gateway
wait_for 20 eval "datagram; in_home ip -6 neigh show $router | has 'lladdr 02:00:00:00:77:01'" ||
	fail "the home does not find the other gateway: $(in_home ip -6 neigh show)"
arrives() {
	datagram
	wait_for 1 grep -qx $((sent - 1)) "$DIR/arrived"
}
wait_for 20 arrives || fail "nothing arrives by the other gateway"
first=$sent # what was sent meanwhile may be lost
: >"$DIR/neighbours"
two_periods "another gateway"

one_on_line() { isthmus show subscriber -j | jq -e '[.[] | select(.state == "up")] | length == 1'; }
one_on_line >/dev/null || fail "who is on line: $(isthmus show subscriber)"
in_home ip link set home0 down
ended() { isthmus events --kind subscriber.down | has cause=lost-carrier; }
wait_for 20 ended || fail "a home that is gone: $(isthmus show subscriber; isthmus events)"
[[ $(isthmus show pool -j | jq '[.[].used] | add') == 0 ]] || fail "addresses are gone: $(isthmus show pool)"
echo PASS
