#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: a virtual machine
# Linux's own client of PPPoE, pppd with the kernel's PPPoE and two VLAN tags, in a virtual machine, dials into the
# gateway and FreeRADIUS. Each method of authentication, both families, packets of full size (1492, 1500: RFC 4638),
# curl, a restart of the control plane.
#
#   [ pppd ── ppp0 ── home.100.1 ── home ]  virtual machine ═══ tap home [ gateway ] veth ── core0   here
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/freeradius.sh
. "$TEST_ROOT/test/lib/freeradius.sh"
# shellcheck source=test/lib/vm.sh
. "$TEST_ROOT/test/lib/vm.sh"
[[ -x /usr/sbin/pppd ]] || skip "no pppd: ./dev setup"
own_namespaces "$@"
command -v freeradius >/dev/null || skip "needs freeradius"

vm_log() { :; } # the gateway is here
vm_card virtio-net-pci home
vm_start
vm_give virtio_net home
ip link set home netns gateway # QEMU has opened it
in_gateway sysctl -qw net.ipv6.conf.home.disable_ipv6=1
in_gateway ip link set home mtu 9216 up
core_link
mkdir "$DIR/web"
echo "the web" >"$DIR/web/index.html"
"$PYTHON" -m http.server --bind :: --directory "$DIR/web" 8080 >"$DIR/web.log" 2>&1 &
start_freeradius 'anna	Cleartext-Password := "example-only"'
radius_gateway 's/veth-access, role: access/home, role: access, mtu: 1508/' \
	's/auth: \[.*\], keep/mru: 1500, auth: [chap, mschapv2, pap], keep/' </dev/null
start_gateway
# The machine is slow, and so is asking it: one script for what a home does.
vm_write /mnt/home.sh <<-'EOF'
	set -e
	modprobe -a 8021q pppoe
	[ -e /sys/class/net/home.100.1 ] || {
		# a packet socket hides the TPID of the stripped tag
		ip link add link home name home.100 type vlan id 100
		ip link add link home.100 name home.100.1 type vlan id 1
		ip link set home.100 up
		ip link set home.100.1 mtu 1500 up
	}
	until_so() {
		for _ in $(seq 100); do
			eval "$1" >/dev/null && return
			sleep 0.1
		done
		echo "never: $1"
		return 1
	}
	dial() { # PASSWORD [OPTION...]: until IPCP is open, or pppd ends
		pppd plugin pppoe.so home.100.1 user anna password "$1" noauth noipdefault usepeerdns defaultroute \
			+ipv6 \
			maxfail 1 lcp-echo-interval 2 lcp-echo-failure 4 logfile /mnt/pppd.log debug updetach "${@:2}"
	}
	online() { # [MTU]: both families, with packets of full size
		local mtu=${1:-1492}
		until_so "ip addr show dev ppp0 | grep -E 'inet 100\.64\.[0-9.]+ peer 100\.64\.0\.1'"
		until_so "ip addr show dev ppp0 | grep -E 'inet6 2001:db8:100:'" # by router advertisement
		ip addr show dev ppp0 | grep -q "mtu $mtu "
		until_so "ping -q -c 1 -W 2 -M do -s $((mtu - 28)) 10.60.0.2"
		ip -6 route replace default dev ppp0
		until_so "ping -q -c 1 -W 2 -M do -s $((mtu - 48)) fd00:60::2"
		grep -q 192.0.2.53 /etc/ppp/resolv.conf
		curl -sS --max-time 20 http://10.60.0.2:8080/ "http://[fd00:60::2]:8080/" |
			grep -c "the web" | grep -q 2
	}
	gone() { until_so "! test -e /sys/class/net/ppp0"; }
	hang_up() { kill "$(cat /run/ppp0.pid)"; gone; }
EOF
# usage: at_home SCRIPT
at_home() { in_vm bash -c ". /mnt/home.sh; $1" || fail "$(in_vm bash -c 'tail -n 60 /mnt/pppd.log; ip addr')"; }
# pppd gives up after four echoes without an answer, in 8 s.
still_online() { at_home "sleep 12; online"; }
# usage: subscriber_is JQ_EXPRESSION
subscriber_is() { isthmus show subscriber anna -j | jq -e ".[0] | $1" >/dev/null; }
# usage: subscriber_gets JQ_EXPRESSION
subscriber_gets() { wait_for 10 subscriber_is "$1" || fail "not $1: $(isthmus show subscriber anna -j)"; }

at_home 'pppoe-discovery -I home.100.1 | grep "Access-Concentrator: bng1"'
for options in "refuse-chap refuse-mschap refuse-mschap-v2" "refuse-chap" ""; do
	echo "--- ${options:-CHAP}"
	at_home "dial example-only $options; online; grep 'authentication succeeded' /mnt/pppd.log | tail -n 1"
	subscriber_gets '.state == "up" and .uplink_bytes >= 1492 + 1492'
	[[ -n $options ]] || continue
	at_home hang_up
	subscriber_gets '.state != "up"'
done

echo "--- the control plane is killed and starts again; pppd gives up after four echoes in 8 s"
was=$(isthmus show subscriber anna -j | jq -r '.[0] | .session, .ipv4')
kill -KILL "$(isthmus status -j | jq .pid)"
still_online
start_gateway
grep "sessions in step" "$DIR/isthmus.log" | tail -n 1 | grep "sent=0 deleted=0" ||
	fail "the session's object is another: $(tail -n 20 "$DIR/isthmus.log")"
still_online
[[ $was == "$(isthmus show subscriber anna -j | jq -r '.[0] | .session, .ipv4')" ]] || fail "another session: $was"
isthmus clear subscriber anna
at_home gone
echo "--- MTU 1500"
at_home "ip link set home.100.1 mtu 1508; dial example-only; online 1500; hang_up" # pppd asks for what fits
at_home "! dial wrong"
subscriber_gets '.attempts[0].why == "refused by RADIUS"'
echo PASS
