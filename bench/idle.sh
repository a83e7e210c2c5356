#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an idle gateway costs and how soon it answers the first packet: `bench/idle.sh` (20 seconds a case; root). BUILD
# names another build. Cases: the worker sleeps on sockets; on driver share, behind a relay, which the round trip passes
# twice; it polls, because net_bond gives it none; it never sleeps.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../test/lib/net.sh"

if (($# == 0)); then
	for what in sockets share polled busy; do
		"$0" "$what"
	done
	exit
fi
own_namespaces "$@"
case $1 in
share) relay_fixture "driver: share, device: $DIR/access.sock" "driver: share, device: $DIR/core.sock" ;;
*) veth_fixture ;;
esac
case $1 in
sockets) use_config "" ;;
share) use_config "s|driver: net_af_packet, device: veth-|args: \"role=client\", driver: share, device: $DIR/|
	s|\($DIR/[a-z]*\),|\1.sock,|" ;;
polled) use_config 's|net_af_packet, device: veth-core|net_bond, bond: {mode: static, \
members: [{driver: net_af_packet, device: veth-core}]}|' ;;
busy) use_config "s/idle_sleep: true/idle_sleep: false/" ;;
esac >/dev/null
start_gateway
wait_for 10 ping -c 1 -W 1 10.30.0.1

# usage: threads PID; name, ns of CPU, sleeps of each
threads() {
	local task
	for task in "/proc/$1/task"/*; do
		printf '%s %s %s\n' "$(cat "$task/comm")" "$(cut -d' ' -f1 "$task/schedstat")" \
			"$(awk '/^voluntary/ {print $2}' "$task/status")"
	done | awk '{cpu[$1] += $2; n[$1] += $3} END {for (k in cpu) print k, cpu[k], n[k]}' | sort
}

# Lets time pass in which packets must not come.
quiet() { sleep "$1"; }

seconds=${SECONDS_EACH:-5}
wait_a_second
for pid in $(isthmus status -j | jq '.dp_pid, .pid'); do
	threads "$pid" >"$DIR/before.$pid"
done
quiet "$seconds"
for pid in $(isthmus status -j | jq '.dp_pid, .pid'); do
	threads "$pid" | paste -d' ' "$DIR/before.$pid" - | awk -v what="$1" -v s="$seconds" \
		'{printf "%-8s %-16s %6.2f %% of a CPU, %.0f sleeps/s\n", what, $1, ($5 - $2) / s / 1e7, ($6 - $3) / s}'
done
# Each is the first packet after 50 ms.
ping -i 0.05 -c "${PINGS:-200}" 10.30.0.1 | sed -n 's/.*time=\([0-9.]*\) ms/\1/p' | sort -n |
	awk -v what="$1" '{v[NR] = $1 * 1000}
		END {printf "%-8s round trip, us: p50 %d, p90 %d, p99 %d, max %d\n", what,
			v[int((NR + 1) / 2)], v[int(NR * .9)], v[int(NR * .99)], v[NR]}'
