#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PPPoE with Linux's own client: pppd with the kernel's PPPoE, in a virtual machine, against the control plane's
# concentrator here (test/vm/concentrator).
#
#   [ pppd ── ppp0 ── home ]  virtual machine ═══ tap home ── concentrator   here
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/vm.sh
. "$TEST_ROOT/test/lib/vm.sh"
[[ -x /usr/sbin/pppd ]] || skip "no pppd: ./dev setup"
own_namespaces "$@"

LOG=$DIR/concentrator.log
vm_card virtio-net-pci home
vm_start
vm_give virtio_net home
# The machine is slow, and so is asking it: one script for what a home does.
vm_write /mnt/home.sh <<-'EOF'
	set -e
	until_so() {
		for _ in $(seq 100); do
			eval "$1" >/dev/null && return
			sleep 0.1
		done
		echo "never: $1"
		return 1
	}
	dial() { # PASSWORD [OPTION...]: until IPCP is open, or pppd ends
		pppd plugin pppoe.so home user homer password "$1" noauth noipdefault usepeerdns +ipv6 maxfail 1 \
			lcp-echo-interval 1 lcp-echo-failure 3 logfile /mnt/pppd.log debug updetach "${@:2}"
	}
	online() { # MTU: both families, with packets of full size
		until_so "ip addr show dev ppp0 | grep -E 'inet 10\.64\.0\.[0-9]+ peer 10\.64\.0\.1'"
		until_so "ip addr show dev ppp0 | grep -E 'inet6 fe80::[0-9a-f:]+ peer fe80::1'"
		until_so "ip addr show dev ppp0 | grep 'inet6 fd00:64::'" # by router advertisement
		ip addr show dev ppp0 | grep -q "mtu $1 "
		until_so "ping -q -c 1 -W 2 -M do -s $(($1 - 28)) 10.64.0.1"
		until_so "ping -q -c 1 -W 2 fe80::1%ppp0"
		grep -q 9.9.9.9 /etc/ppp/resolv.conf
	}
	gone() { until_so "! test -e /sys/class/net/ppp0"; }
	hang_up() { kill "$(cat /run/ppp0.pid)"; gone; }
	echoes() { grep -c "rcvd .LCP EchoRep" /mnt/pppd.log; }
	four_echoes() { first=$(echoes); until_so "test \$(echoes) -gt $((first + 3))"; }
EOF
# usage: at_home SCRIPT
at_home() {
	in_vm bash -c ". /mnt/home.sh; $1" || fail "$(cat "$LOG"; in_vm bash -c 'cat /mnt/pppd.log; ip addr')"
}
# usage: start METHOD [OPTION...]
start() {
	"$VM_BIN/concentrator" -interface home -method "$@" >"$LOG" 2>&1 &
	SERVER=$!
	wait_for 5 grep -qx ready "$LOG"
}
stop() {
	kill "$SERVER"
	wait "$SERVER" || true
}
# usage: said LINE
said() { wait_for 5 grep -qx "$1" "$LOG" || fail "not said: $1; $(cat "$LOG")"; }

start ""
at_home 'modprobe pppoe; pppoe-discovery -I home | grep "Access-Concentrator: isthmus"; dial any; online 1492; hang_up'
said "up  ipv4 true ipv6 true mtu 1492"
said "down  cause 1"
stop
for method in pap chap mschapv2; do
	echo "--- $method"
	start "$method"
	at_home 'dial secret; online 1492; hang_up; ! dial wrong'
	said "up homer ipv4 true ipv6 true mtu 1492"
	said "down homer cause 1"
	said "refused homer"
	stop
done

echo "--- packets of 1500 octets, and a restart of the concentrator"
start chap -max-payload 1500
at_home 'ip link set home mtu 1508; dial secret mtu 1500 mru 1500; online 1500'
kill -HUP "$SERVER"
said "restored true"
at_home 'four_echoes; online 1500'
stop

echo "--- a concentrator that knows of no session: pppd hears it by a PADT"
start chap
at_home gone
stop
echo PASS
