#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Routes from the kernel into the data plane, by netlink: bench/netlink.sh [ROUTES] (default 200,000; root; two CPUs).
# A writer (test/lib/routes.py) puts them into the namespace of a clone and takes them away; both processes of the
# product run. It prints routes a second of the kernel and of the data plane, from the first to the last, and CPU time a
# route of each process. The machine's load does not matter; the data plane's worker sleeps where it can. BUILD names
# another build.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../test/lib/net.sh"
own_namespaces "$@"
routes=${1:-200000}

ip netns add fabric
ip netns add alone
ip -n alone link add core0 type veth peer name core1
ip -n alone addr add 10.30.0.1/24 dev core0
ip -n alone link set core0 up
ip -n alone link set core1 up
cat >"$DIR/isthmus.yaml" <<-EOF
	engine: {huge_pages: "off", idle_sleep: true, limits: {routes: $((routes + 64)), sessions: 64, flows: 1024}}
	ports: [{name: core, driver: synth, role: core}]
	interfaces: [{name: core0, port: core, addresses: [10.30.0.1/24], clone: {device: core0, namespace: fabric}}]
	neighbours: [{interface: core0, address: 10.30.0.2, mac: "02:00:00:00:00:02"}]
EOF
start_gateway
wait_for 10 ip -n fabric link show core0
has_address() { ip -n fabric addr show dev core0 | grep -q 10.30.0.1/24; }
wait_for 10 has_address

# usage: write NAMESPACE VERB: when it began, the changes a second that the kernel took
write() { ip netns exec "$1" "$PYTHON" "$TEST_ROOT/test/lib/routes.py" "$2" "$routes" 10.30.0.2 core0; }

# The data plane's own count: routes of the kernel's that it holds, and changes that it was sent.
held() { isthmus status -j | jq -r '"\(.kernel[0].routes) \(.changes)"'; }
now() { date +%s%N; }
# usage: rate NS
rate() { echo "$((routes * 1000000 / ($1 / 1000))) routes/s"; }

# usage: process_id FIELD
process_id() { isthmus status -j | jq ".$1"; }
# usage: spent PID...: of a process' threads together, or of one thread (/proc/N/task/N), in ms
spent() { awk '{sum += ($14 + $15) * 10} END {print sum}' "$@"; }

# usage: change VERB WANTED
change() {
	local began kernel sent all there changes control plane control_ms plane_ms
	control=/proc/$(process_id pid)/stat plane=/proc/$(process_id dp_pid)/task/$(process_id dp_pid)/stat
	control_ms=$(spent "$control") plane_ms=$(spent "$plane")
	sent=$(($(held | cut -d' ' -f2) + routes))
	read -r began kernel < <(write fabric "$1")
	until read -r there changes < <(held) && ((there == $2 && changes >= sent)); do
		((($(now) - began) / 1000000000 < 300)) || fail "$there routes after $changes changes"
		sleep 0.05 # asking costs, too
	done
	all=$(($(now) - began))
	control_ms=$(($(spent "$control") - control_ms)) plane_ms=$(($(spent "$plane") - plane_ms))
	echo "$1 $routes routes: into the data plane $(rate $all); the kernel beside it took $kernel/s;" \
		"CPU time of a change: control plane $((control_ms * 1000000 / routes)) ns," \
		"data plane's control thread $((plane_ms * 1000000 / routes)) ns"
}

echo "a namespace that nobody follows: add $(write alone add | cut -d' ' -f2)/s, \
delete $(write alone del | cut -d' ' -f2)/s"
ip netns del alone
before=$(held | cut -d' ' -f1)
change add $((before + routes))
(($(isthmus show route -j | jq "map(select(.via == \"10.30.0.2\")) | length") == routes)) ||
	fail "they are not all there"
change del "$before"
isthmus status
for program in isthmus isthmus-dp; do
	pid=$(isthmus status -j | jq "if \"$program\" == \"isthmus\" then .pid else .dp_pid end")
	echo "$program: $(awk '/VmHWM/ {print int($2 / 1024)}' "/proc/$pid/status") MiB at most," \
		"$(awk '{printf "%.1f", ($14 + $15) / 100}' "/proc/$pid/stat") s of CPU time"
done
