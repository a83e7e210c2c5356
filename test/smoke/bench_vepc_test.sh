#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# The packet core's chain, eNodeB - SGW-U - PGW-U, between two ends of the tester: as three processes joined by memif,
# and as one process. With Open vSwitch with DPDK, root and free huge pages, also with every hop through its vhost-user
# ports. Every packet is right and accounted for, and the JSON has every promised field. Speeds are not judged here.
# BUILD names another build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$(realpath "${BUILD:-build}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

check() {
	python3 - "$1" "$2" "$3" "$4" <<'PY'
import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
v = r["vepc"]
assert (v["arrangement"], v["switch"]) == (sys.argv[2], sys.argv[3]), v
assert [f["name"] for f in v["functions"]] == sys.argv[4].split(), v["functions"]
fields = """sessions mpps gbps_l2 busy_cores cpu_cores load_cores load_cores_per_mpps
    load_percent_per_mpps_of_24_cores mpps_per_load_core
cores_per_instance instances_by_cores rtt_us paper""".split()
missing = [f for f in fields if f not in v]
assert not missing, f"missing {missing}"
account = r["points"][0]["accounting"]
# A switch floods unknown addresses: the functions' own ARP comes to others too, and is no packet of the tester's.
strays = sum(n for reason, n in account["dropped"].items() if reason.startswith("arp-"))
assert r["wrong"] == 0 and r["checked"] > 500 and account["missing"] + strays == 0, (r["wrong"], r["checked"], account)
assert [t["load"] for t in v["rtt_us"]] == [0.1, 0.5, 0.9], v["rtt_us"]
assert all(t["sent"] > 0 and 0 < t["p50"] <= t["p99"] for t in v["rtt_us"]), v["rtt_us"]
PY
	echo "$2, switch $3: good"
}

# A busy machine may lose some: loss is for the benchmark, here everything must be right and accounted for.
run() {
	"$bin/isthmus" bench "$1" --sessions 500 --rate 2k --goal 99% --seconds 0.5 --cpus none \
		--json "$dir/r.json" "${@:2}" >/dev/null
}

run vepc-128 --no-huge
check "$dir/r.json" separate none "enodeb sgwu pgwu"
run vepc-1024 --no-huge --combined
check "$dir/r.json" combined none epc

free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)
if [[ $EUID == 0 && $free -ge 1536 && -x /usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk ]]; then
	run vepc-256 --switch ovs
	check "$dir/r.json" separate ovs "enodeb sgwu pgwu ovs-vswitchd"
else
	echo "PASS without the arrangement vepc-256 --switch ovs, which was skipped:" \
		"it needs root, 1536 free huge pages and openvswitch-switch-dpdk"
	exit 0
fi
echo "PASS with every arrangement"
