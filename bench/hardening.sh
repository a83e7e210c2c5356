#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the build's protections cost a packet: bench/hardening.sh OUT [ticks [ROUNDS]]. By default instructions, which do
# not depend on what else the machine does: each protection alone, then all, in builds below OUT that valgrind can run.
# ISA adds to x86-64-v2 (ISA="-mavx2 -mbmi -mbmi2 -mlzcnt -mmovbe"), VARIANTS says which ("none all"). With `ticks`:
# native builds without and with all in turn, medians of ROUNDS (9), on a machine that does nothing else.
set -euo pipefail
out=$(realpath -m "${1:?usage: bench/hardening.sh OUT [ticks [ROUNDS]]}")
what=${2:-instructions} rounds=${3:-9}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "$out"
read -ra isa <<<"${ISA:-}"
read -ra variants <<<"${VARIANTS:-none pie stack fortify branches all}"
programs=(flow-bench flow-home-bench hqos-bench trace-bench)

# usage: build VARIANT CPU
build() {
	# Debian's gcc makes position-independent programs unless it is asked not to.
	local options=(-Dharden= -Db_pie=false -Dc_link_args=-no-pie) flags=(-fno-pie "${isa[@]}")
	case $1 in
	all) options=() flags=("${isa[@]}") ;;
	pie) options=(-Dharden=) flags=("${isa[@]}") ;;
	stack | fortify | branches) options[0]=-Dharden=$1 ;;
	esac
	flags=("${flags[@]/#/\'}")
	flags=("${flags[@]/%/\',}")
	[[ -f $out/$1/build.ninja ]] || meson setup "$out/$1" --buildtype=release "-Dcpu=$2" -Dpch=true \
		"-Dc_args=[${flags[*]}]" "${options[@]}" >"$out/$1.log"
	ninja -C "$out/$1" "${programs[@]/#/dataplane/}" >>"$out/$1.log"
}

# Instructions inside FUNCTION, or of all of a run. usage: count FUNCTION|all PROGRAM ARGUMENT...
count() {
	local toggle=()
	[[ $1 == all ]] || toggle=("--toggle-collect=$1")
	valgrind --tool=callgrind "--callgrind-out-file=$out/callgrind" "${toggle[@]}" "${@:2}" >"$out/run.log" 2>&1
	awk '/^(summary|totals):/ { print $2; exit }' "$out/callgrind"
}

# Of a hundred rounds of 64 packets more. usage: a_packet VARIANT FUNCTION PROGRAM ROLE
a_packet() {
	local few many
	few=$(count "$2" "$out/$1/dataplane/$3" "$4" 20)
	many=$(count "$2" "$out/$1/dataplane/$3" "$4" 120)
	awk -v few="$few" -v many="$many" \
		'BEGIN { printf((many > few ? " %9.1f" : " not resolved"), (many - few) / 6400) }'
}

PROFILES=("flow_input flow-bench "{upf-up,upf-down,sgwu-up,upf-up6,router,upf-up-more,nat-up,nat-down}
	"flow_access flow-home-bench "{up,ip-up} "flow_input flow-home-bench "{down,ip-down}
	"all trace-bench "{off,full-up,full-down} "all flow-home-bench "{up-new,down-new})

instructions() {
	local variant line words
	for variant in "${variants[@]}"; do
		build "$variant" portable
	done
	printf '%-26s' instructions
	printf ' %9s' "${variants[@]}"
	for line in "${PROFILES[@]}"; do
		printf '\n%-26s' "${line#* }"
		read -ra words <<<"$line"
		for variant in "${variants[@]}"; do
			a_packet "$variant" "${words[@]}"
		done
	done
	printf '\n'
}

# What the benches print: a name, the median, and more.
ticks_of() {
	"$out/$1/dataplane/flow-bench"
	"$out/$1/dataplane/flow-home-bench"
	"$out/$1/dataplane/hqos-bench" --no-huge -m 512 --no-pci --no-telemetry -l 0 --log-level error -- 5 |
		awk '/median/ { print $1 "-" $2 "-" $4, $7 }'
}

ticks() {
	local round variant
	for variant in none all; do
		build "$variant" native
	done
	for ((round = 0; round < rounds; round++)); do
		for variant in none all; do
			ticks_of "$variant" | sed "s/^/$variant /"
		done
	done | tee "$out/ticks.log" | sort -s -k2,2 -k1,1r -k3,3n | awk '
		{ key = $2 " " $1 }
		key != last { flush(); last = key; n = 0 }
		{ at[n++] = $3 }
		function flush() { if (n) { split(last, w, " "); m[w[2], w[1]] = at[int(n / 2)]; names[w[1]] = 1 } }
		END { flush()
		      for (n in names) printf "%-26s %9.1f %9.1f\n", n, m["none", n], m["all", n] }' | sort
}

"$what"
