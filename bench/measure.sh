#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what bench/README.md quotes: `bench/measure.sh OUT [SECONDS]` writes one JSON file and one text per run to
# OUT. Use a machine that does nothing else; figures of a busy one are of the neighbours, too.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: bench/measure.sh OUT [SECONDS]}
seconds=${2:-3}
mkdir -p "$out"

run() { # NAME ARGUMENTS...
	local name=$1
	shift
	echo "== $name: isthmus bench $* --link synth --seconds $seconds"
	build/isthmus bench "$@" --link synth --seconds "$seconds" --json "$out/$name.json" | tee "$out/$name.txt"
}

{
	date -u +%FT%TZ
	uname -r
	lscpu | grep -E 'Model name|^CPU\(s\)|L1d|L2|L3'
	git describe --always --dirty
	grep -i hugepages_ /proc/meminfo
} >"$out/machine.txt"

run symmetric agf-symmetric
run asymmetric agf-asymmetric
run symmetric-64k agf-symmetric --subscribers 65536
run asymmetric-64k agf-asymmetric --subscribers 65536
run symmetric-no-huge agf-symmetric --no-huge
if [ "$(nproc)" -ge 2 ]; then
	# The same subscribers on one worker and on two, in turn: the ratio is what counts.
	for i in 1 2 3; do
		run "one-worker-$i" agf-symmetric --workers 1
		run "two-workers-$i" agf-symmetric --workers 2
	done
fi
for bench in exact firewall meter; do
	echo "== $bench-bench"
	case $bench in
	exact) build/dataplane/exact-bench 1048576 ;;
	*) "build/dataplane/$bench-bench" ;;
	esac | tee "$out/$bench-bench.txt"
done
build/dataplane/hqos-bench --in-memory --no-pci --no-telemetry -l 0 --log-level error -- 5 | tee "$out/hqos-bench.txt"
