#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same traffic with huge pages as without.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)
((free >= 128)) || skip "$free free huge pages of 2 MB, 128 are needed"
veth_fixture
use_config 's/huge_pages: "off"/huge_pages: "on"/'
start_gateway
isthmus status | has "with huge pages" || fail "not on huge pages: $(isthmus status)"
all_traffic home0 upf0
echo PASS
