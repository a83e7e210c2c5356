#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The differential tests of the fast path for longer than a test may take: bench/models.sh [SECONDS [SEED]] (default an
# hour; the clock's seed). They run in turn, each time from another seed, until the time is over. It says rounds,
# packets and findings of each; what a finding printed stays, with what repeats it. BUILD names another build, ROUNDS
# another length of a run. Exit 1 with a finding.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${BUILD:-$PWD/build}/dataplane seconds=${1:-3600} seed=${2:-$(date +%s)}
export FLOW_MODEL_ROUNDS=${ROUNDS:-4000} FLOW_MODEL_SEED
tests=(flow-model-test flow-home-test flow-bng-test flow-nat-test)
logs=$(mktemp -d)
declare -A rounds packets fast findings
found=0 began=$SECONDS

# usage: sum FILE WHAT FIELD: of the lines "N of M WHAT ..." the sum of N (1) or M (3)
sum() { grep -oE "[0-9]+ of [0-9]+ $2 " "$1" | awk -v f="$3" '{n += $f} END {print n + 0}' || true; }

run() { # TEST
	local log=$logs/$1-$FLOW_MODEL_SEED status=0
	"$build/$1" >"$log" 2>&1 || status=$?
	rounds[$1]=$((${rounds[$1]:-0} + $(sum "$log" rounds 3)))
	packets[$1]=$((${packets[$1]:-0} + $(sum "$log" packets 3)))
	fast[$1]=$((${fast[$1]:-0} + $(sum "$log" packets 1)))
	if ((status == 0)); then
		rm "$log"
		return
	fi
	findings[$1]=$((${findings[$1]:-0} + 1))
	found=1
	echo "finding (exit $status), $log:" \
		"FLOW_MODEL_ROUNDS=$FLOW_MODEL_ROUNDS FLOW_MODEL_SEED=$FLOW_MODEL_SEED $build/$1"
}

while ((SECONDS - began < seconds)); do
	for t in "${tests[@]}"; do
		FLOW_MODEL_SEED=$((seed++))
		run "$t"
	done
done
printf '%-16s %10s %12s %12s %8s\n' test rounds packets fast findings
for t in "${tests[@]}"; do
	printf '%-16s %10d %12d %12d %8d\n' "$t" "${rounds[$t]}" "${packets[$t]}" "${fast[$t]}" "${findings[$t]:-0}"
done
((found)) || rmdir "$logs"
exit $found
