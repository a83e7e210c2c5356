#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# Firewall and shaping of a UPF: access lists of its network instances. On N3 each session over PFCP has a pipe of the
# scheduler, and a UPF with two pipes has two sessions.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
export TEST_ROOT_=$TEST_ROOT
upf_fixture 's|^routes:|schedulers:\n  - {port: n3, rate: 1Gbit, subports: {pipes: 2}, \
    profiles: [{name: ue, rate: 1Mbit}]}\n&|
	s|endpoints: .10.30.0.1.*sources|shaping: {port: n3, profile: ue}, access_list: {default: permit, \
    rules: [{protocol: udp, destination_port: 6666, action: deny}]}, &|
	s|lookup: destination|&, access_list: {default: permit, \
    rules: [{protocol: udp, source_port: 6667, action: deny}]}|'
capture_n4 ""
# The kernel's time stamps say when a packet came, however late it is read.
tcpdump -i gnb0 --immediate-mode -U -w "$DIR/n3.pcap" udp port 2152 2>/dev/null &
wait_for 5 test -s "$DIR/n3.pcap"
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/upf_shaping.py"
echo PASS
