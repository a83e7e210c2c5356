#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What dhclient has done with a lease: the address and the default route of an interface, nothing else of the machine.
# shellcheck disable=SC2154 # dhclient sets the variables
case "${reason:?}" in
BOUND | RENEW | REBIND | REBOOT)
	ip addr flush dev "$interface"
	ip addr add "$new_ip_address/$new_subnet_mask" dev "$interface"
	ip route replace default via "$new_routers" dev "$interface"
	;;
RELEASE | EXPIRE | FAIL | STOP) ip addr flush dev "$interface" ;;
esac
