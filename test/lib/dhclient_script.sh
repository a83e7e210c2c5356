#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What dhclient has done with a lease: addresses and the default route of an interface, nothing else of the machine.
# shellcheck disable=SC2154 # dhclient sets the variables
case "${reason:?}" in
BOUND | RENEW | REBIND | REBOOT)
	ip -4 addr flush dev "$interface"
	ip addr add "$new_ip_address/$new_subnet_mask" dev "$interface"
	ip route replace default via "$new_routers" dev "$interface"
	;;
BOUND6 | RENEW6 | REBIND6) # the address and the prefix apart
	[ -z "$new_ip6_address" ] || ip addr replace "$new_ip6_address/128" dev "$interface"
	[ -z "$new_ip6_prefix" ] || ip addr replace "${new_ip6_prefix%/*}1/128" dev lo
	;;
RELEASE | EXPIRE | FAIL | STOP) ip -4 addr flush dev "$interface" ;;
esac
