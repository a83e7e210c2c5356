#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Subscribers who sign in: bench/homes.sh [HOMES [RATE]] (default 20,000 homes, 4,000 a second; root; two CPUs).
# Sign-ins a second by PPPoE with CHAP of local users, by DHCPv4, by DHCPv4 and DHCPv6 with a delegated prefix (accept:
# 8,000 at most). Then all at once after a power cut, and memory of each home in both processes. CPU of the control
# plane at rest, with an LCP echo of each home in 10 s. Control plane, data plane and load share the CPUs. BUILD names
# another build.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../test/lib/net.sh"
# shellcheck source=test/lib/homes.sh
. "$(dirname "${BASH_SOURCE[0]}")/../test/lib/homes.sh"
# shellcheck source=bench/difference.sh
. "$(dirname "${BASH_SOURCE[0]}")/difference.sh"
own_namespaces "$@"
homes=${1:-20000} rate=${2:-4000}
few=$((homes < 8000 ? homes : 8000))

many_homes "$homes"
# shellcheck disable=SC2016 # jq's
jq -nr --argjson homes "$homes" 'range($homes) | "- {name: user\(.), password: user\(.)}"' >"$DIR/users.yaml"
sed -i "s|methods: \[accept\]|methods: [local, accept]\n  users_file: $DIR/users.yaml|" "$DIR/isthmus.yaml"
start_gateway

read -r control data < <(ids)
# usage: load WHAT OPTION...
load() {
	local what=$1
	shift
	wait_for 60 nobody || fail "subscribers who left are there still"
	"$BIN/isthmus" control-load --access --interface home0 --rate "$rate" --patience 60s -j "$@" \
		>"$DIR/load.json" ||
		echo "WRONG: $(jq -c .wrong "$DIR/load.json"), $(jq .online "$DIR/load.json") on line"
	jq -r --arg what "$what" '"\($what): \(.achieved_per_s | round) of \(.offered_per_s) a second; " +
		(.latency.sign_in | "p50 \(.p50_us | round) p90 \(.p90_us | round) p99 \(.p99_us | round) us") +
		(if .power_cut_seconds > 0 then "; after a power cut all on line in \(.power_cut_seconds) s"
			else "" end)' "$DIR/load.json"
}

load PPPoE --subscribers "$few"

# Memory of the second half of the homes: fixed costs are not counted.
# usage: memory HOMES: control plane's and data plane's bytes with so many on line
memory() {
	local pid spent
	wait_for 60 nobody || fail "subscribers who left are there still"
	"$BIN/isthmus" control-load --access --interface home0 --rate "$rate" --patience 60s --families 46 \
		--subscribers "$1" --hold 40s -j >"$DIR/load.json" &
	pid=$!
	wait_for 120 on_line "$1" || fail "$1 homes are not on line"
	for _ in {1..10}; do wait_a_second; done # what signing in used goes back to the kernel
	spent=$(cpu "$control")
	for _ in {1..10}; do wait_a_second; done
	echo "$(resident "$control") $(resident "$data") $(($(cpu "$control") - spent))"
	wait "$pid" || fail "$(jq -c .wrong "$DIR/load.json")"
}
# usage: cpu PID (hundredths of a second)
cpu() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
# usage: on_line HOMES
on_line() { (($(isthmus show total -j | jq .sessions) >= $1)); }
read -r control_half data_half _ < <(memory "$((homes / 2))")
read -r control_all data_all spent < <(memory "$homes")
each() { difference "$1" "$2" "$((homes - homes / 2))" bytes; }
echo "memory of a home by PPPoE, both families: control plane $(each "$control_half" "$control_all")," \
	"data plane $(each "$data_half" "$data_all")"
echo "CPU of the control plane with $homes homes at rest: $spent of 1000 hundredths of a second"
load "power cut" --subscribers "$homes" --power-cut
load DHCPv4 --dhcp --subscribers "$few"
load "DHCPv4 and DHCPv6-PD" --dhcp --families 46 --subscribers "$few"
isthmus show drop | awk '$2 > 0 && /punt/'
