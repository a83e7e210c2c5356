#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Twelve prepared faults of a UPF's subscribers, each found by the one command that docs/running.md names. Traces,
# hypothetical packets and captures of a gateway at work, on two workers.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
export TEST_ROOT_=$TEST_ROOT
# No default route: unknown destinations have none. Pipes of N3, access lists, two workers.
PIPES="subports: {count: 2, pipes: 64}, profiles: [{name: ue, rate: 1Mbit}]"
LIST="{default: permit, rules: [{protocol: udp, destination_port: 6666, action: deny}]}"
upf_fixture "s|^routes:|schedulers:\\n  - {port: n3, rate: 1Gbit, $PIPES}\\n&|
	s|prefix: 0.0.0.0/0|prefix: 198.51.100.0/24|
	s|idle_sleep: true|&, workers: 2|
	s|endpoints: .10.30.0.1.*sources|shaping: {port: n3, profile: ue}, access_list: $LIST, &|"
start_gateway
"$PYTHON" "$TEST_ROOT/test/e2e/trace.py"
echo PASS
