#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: scripts that are judged by the clock among them
# As units_test.sh, with most drivers and roles.
exec "$(dirname "${BASH_SOURCE[0]}")/units_test.sh" clone:e2e/clone af-xdp:smoke/port_af_xdp \
	:smoke/port_{share,vhost,tap,bond,pcap} :smoke/two_workers \
	:e2e/{trace,upf,upf_watch,bng_pppoe,bng_dhcp,bng_radius}
