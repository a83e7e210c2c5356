#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the units of deploy/systemd leave both programs is enough: other tests again, with no more than that (UNITS=1 of
# lib/net.sh). A system call that a unit's filter refuses ends the process there.
# usage: units_test.sh [DROP_IN:TEST...]
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")/..
command -v systemd-analyze >/dev/null || {
	echo "skip: needs systemd-analyze"
	exit 77
}

# AF_PACKET and memif; PFCP, NAT44 and its log; clones in namespaces, VRFs, the kernel's routes.
tests=("$@")
((${#tests[@]})) || tests=(:smoke/port_memif :e2e/upf_nat clone:e2e/upf_vrf)
for test in "${tests[@]}"; do
	status=0
	UNITS=1 DROP_IN=${test%%:*} "$here/${test#*:}_test.sh" || status=$?
	case $status in
	0) echo "--- $test: passed" ;;
	77) echo "--- $test: skipped" ;;
	*) exit "$status" ;;
	esac
done
