#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: a virtual machine
# Linux clients of DHCP behind two VLAN tags of the kernel, in a virtual machine, sign in to the gateway and FreeRADIUS.
# Home one: dhcpcd for IPv4, the kernel's SLAAC, wide-dhcpv6-client for a delegated prefix, from which a computer behind
# it has its address. Home two: dhcpcd for everything (IPv4, router advertisement, IA_NA, IA_PD). curl over both
# families, packets of full size, a killed control plane and renewals, leases given back.
#
#   [ laptop ── one ── home.100.1 ┐               virtual machine ═══ tap home [ gateway ] veth ── core0   here
#               two ── home.100.2 ┴ home.100 ── home ]
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/freeradius.sh
. "$TEST_ROOT/test/lib/freeradius.sh"
# shellcheck source=test/lib/vm.sh
. "$TEST_ROOT/test/lib/vm.sh"
for program in dhcpcd dhcp6c freeradius; do
	command -v "$program" >/dev/null || skip "no $program: ./dev setup"
done
own_namespaces "$@"

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
start_freeradius "$(printf 'lines:100.%s\tCleartext-Password := "lines:100.%s"\n' 1 1 2 2)"
radius_gateway 's/veth-access, role: access/home, role: access/' </dev/null
start_gateway
# The machine is slow, and so is asking it: one script for what homes do.
vm_write /mnt/home.sh <<-'EOF'
	set -e
	until_so() {
		for _ in $(seq 100); do
			eval "$1" >/dev/null 2>&1 && return
			sleep 0.1
		done
		echo "never: $1"
		return 1
	}
	at() { ip netns exec "$@"; } # HOME COMMAND...
	build() {
		modprobe -a 8021q veth
		ip link add link home name home.100 type vlan id 100 # a packet socket has no TPID
		ip link set home.100 up
		for home in one:1 two:2; do
			ip netns add "${home%:*}"
			ip link add link home.100 name "home.100.${home#*:}" type vlan id "${home#*:}"
			ip link set "home.100.${home#*:}" mtu 1500 netns "${home%:*}"
			ip -n "${home%:*}" link set lo up
		done
		ip netns add laptop
		ip -n one link add lan type veth peer name eth0 netns laptop
		ip -n one link set lan up
		ip -n laptop link set eth0 up
		at one sysctl -qw net.ipv6.conf.all.forwarding=1 net.ipv6.conf.home/100/1.accept_ra=2
		ip -n one link set home.100.1 up
		ip -n two link set home.100.2 up
	}
	dial() {
		printf '%s\n' duid 'interface home.100.1' ipv4only >/mnt/one.conf
		printf '%s\n' duid 'interface home.100.2' ipv6rs 'ia_na 1' 'ia_pd 2' >/mnt/two.conf
		echo 'interface home.100.1 { send ia-pd 0; };
			id-assoc pd 0 { prefix-interface lan { sla-id 1; sla-len 8; }; };' >/mnt/dhcp6c.conf
		at one dhcpcd -B -d -f /mnt/one.conf home.100.1 >/mnt/dhcpcd.1.log 2>&1 &
		at two dhcpcd -B -d -f /mnt/two.conf home.100.2 >/mnt/dhcpcd.2.log 2>&1 &
		until_so "ip -n one -6 addr show dev home.100.1 scope link -tentative | grep fe80"
		at one dhcp6c -f -D -c /mnt/dhcp6c.conf -p /mnt/dhcp6c.pid home.100.1 >/mnt/dhcp6c.log 2>&1 &
	}
	addresses() {
		until_so "ip -n one addr show dev home.100.1 | grep 'inet 100\.64\.'"
		until_so "ip -n one addr show dev home.100.1 -tentative | grep 'inet6 2001:db8:100:'" # SLAAC
		until_so "ip -n one addr show dev lan -tentative | grep 'inet6 2001:db8:2'"
		until_so "ip -n two addr show dev home.100.2 | grep 'inet 100\.64\.'"
		until_so "ip -n two addr show dev home.100.2 | grep -E 'inet6 2001:db8:100:.*:1/128'" # IA_NA
		until_so "grep -E 'delegated prefix 2001:db8:2' /mnt/dhcpcd.2.log"
	}
	laptop() { # its router's advertisements, by hand
		prefix=$(ip -n one -o addr show dev lan | grep -o '2001:db8:2[^:]*:[^:]*:')
		router=$(ip -n one -o addr show dev lan scope link | grep -o 'fe80[^/]*')
		ip -n laptop addr add "$prefix:5/64" dev eth0 nodad
		ip -n laptop route add default via "$router" dev eth0
	}
	renewed() { grep 'run-hooks RENEW$' /mnt/dhcpcd.1.log && grep 'run-hooks RENEW$' /mnt/dhcpcd.2.log; }
	renew() {
		for _ in 1 2 3; do # dhcpcd may lose the signal while it runs a hook
			at one dhcpcd -N home.100.1
			at two dhcpcd -N home.100.2
			! until_so renewed || break
		done
		renewed
		until_so "grep 'run-hooks RENEW6' /mnt/dhcpcd.2.log"
	}
	give_back() {
		at one dhcpcd -k home.100.1
		at two dhcpcd -k home.100.2
		kill "$(cat /mnt/dhcp6c.pid)"
	}
	online() {
		for home in one two; do
			until_so "at $home ping -q -c 1 -W 2 -M do -s 1472 10.60.0.2"
			until_so "at $home ping -q -c 1 -W 2 -M do -s 1452 fd00:60::2"
			at $home curl -sS --max-time 20 http://10.60.0.2:8080/ "http://[fd00:60::2]:8080/" |
				grep -c "the web" | grep -q 2
		done
		at laptop curl -sS --max-time 20 "http://[fd00:60::2]:8080/" | grep -q "the web"
	}
EOF
# usage: at_home SCRIPT
at_home() {
	# shellcheck disable=SC2016 # the machine's variables
	in_vm bash -c ". /mnt/home.sh; $1" ||
		fail "$(in_vm bash -c 'tail -n 40 /mnt/*.log; for i in one two laptop; do ip -n $i addr; done')
$(isthmus show subscriber; isthmus show subscriber lines:100.1)"
}
sessions() {
	isthmus show subscriber -j | jq -c 'map([.user, .state, .session, .ipv4, .ipv6, .delegated]) | sort'
}
at_home 'build; dial; addresses; laptop; online'
isthmus show subscriber
was=$(sessions)
echo "--- the control plane is killed and starts again; leases are renewed"
kill -KILL "$(isthmus status -j | jq .pid)"
start_gateway
at_home 'renew; online'
[[ $was == "$(sessions)" ]] || fail "other sessions: $was, $(sessions)"
echo "--- leases are given back; the /64, of which the home makes addresses of its own, stays until its session ends"
at_home give_back
given_back() { isthmus show subscriber -j | jq -e 'all(.ipv4 == "" and .delegated == "")' >/dev/null; }
wait_for 10 given_back || fail "not given back: $(isthmus show subscriber)"
used=$(isthmus show subscriber -j | jq -r '.[] | "\(.user) \(.uplink_bytes) \(.downlink_bytes)"' | sort)
[[ $(wc -l <<<"$used") == 2 ]] || fail "not two homes: $used"
for home in 1 2; do isthmus clear subscriber "lines:100.$home"; done
stops() {
	"$PYTHON" -c 'from radius import of_kind
for r in of_kind("Stop"):
    print(r["User-Name"].strip("\""), r["Acct-Input-Octets"], r["Acct-Output-Octets"])' | sort
}
counted() { [[ $(stops) == "$used" ]]; }
wait_for 10 counted || fail "accounting: $(stops), not $used"
echo PASS
