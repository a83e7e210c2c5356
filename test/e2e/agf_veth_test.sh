#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The access gateway between two veth pairs, with scapy as home gateways and as UPF. Every encapsulation, IP version,
# TPID and direction is captured and compared field by field as tshark decodes it.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

veth_fixture
use_config ""
start_gateway
all_traffic home0 upf0
echo PASS
