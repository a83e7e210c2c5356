#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./dev test --repeat: shows that ./dev test is green every time, with a table of runs.
# usage: scripts/repeat.sh RUNS [--beside PROCESSES] [WORD...]
#
# --beside: so many processes of the same priority are busy all the time. Nothing is repeated until it passes: a run
# that failed counts, and its logs stay in build/repeat/RUN.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

[[ ${1:-} =~ ^[0-9]+$ ]] || {
	echo "usage: ./dev test --repeat RUNS [--beside PROCESSES] [WORD...]" >&2
	exit 2
}
runs=$1 beside=0
shift
if [[ ${1:-} == --beside ]]; then
	beside=${2:?}
	shift 2
fi
busy=()
trap '((${#busy[@]} == 0)) || kill "${busy[@]}"' EXIT
for ((i = 0; i < beside; i++)); do
	(while :; do :; done) &
	busy+=($!)
done

export FRESH_RESULTS=1 # else Go prints results of an earlier run
failed=0
rm -rf build/repeat
mkdir -p build/repeat
printf '%-5s %-7s %-8s %s\n' run beside seconds result | tee build/repeat/table
for ((run = 1; run <= runs; run++)); do
	SECONDS=0
	if ./dev test "$@" >build/repeat/output 2>&1; then
		result=$(tail -n 1 build/repeat/output)
	else
		failed=$((failed + 1))
		result="FAILED: $(grep -ao 'FAILED  [^:]*' build/repeat/output | cut -c 9- | paste -sd ' ')"
		cp -r build/test-logs "build/repeat/$run"
		mv build/repeat/output "build/repeat/$run"
	fi
	printf '%-5s %-7s %-8s %s\n' "$run" "$beside" "$SECONDS" "$result" | tee -a build/repeat/table
done
printf '%s of %s runs failed\n' "$failed" "$runs" | tee -a build/repeat/table
((failed == 0))
