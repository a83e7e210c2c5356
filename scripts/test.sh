# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# ./dev test: every check and test, one table at the end. A job leaves in build/test-logs: NAME.log, NAME.status (exit
# status, begin and end in ms), NAME.cpu (CPU time) and NAME.counts (passed failed skipped). Without counts it is one
# test. NAME.faults has each failed test and its output. junit.xml has all of it.
#
# No test here is judged by the clock, by rates or by the machine's other work. A script that is judged so has a
# line "# --long: REASON" below its name: ./dev test --long runs it, alone but for virtual machines.

LOGS=build/test-logs
# Ends a hanging job. Far above any job's duration, also on a busy machine.
JOB_SECONDS=7200

NAMES=() # in order of the table
declare -A COMMAND=() WEIGHT=()
TEST_WORDS=()

counts() {
	printf '%s %s %s\n' "$2" "$3" "$4" >"$LOGS/$1.counts"
}

# Notes a job, unless the words on the command line leave it out.
# usage: job NAME WEIGHT COMMAND...
job() {
	wanted "$1" "${TEST_WORDS[@]}" || return 0
	NAMES+=("$1")
	WEIGHT[$1]=$2
	COMMAND[$1]=${*:3}
}

# Runs FUNCTION of step.sh as a job: in a process of its own with -e, so that a failing command ends it.
# usage: step NAME WEIGHT FUNCTION [ARGUMENT]
step() {
	job "$1" "$2" bash -euo pipefail "$ROOT/scripts/step.sh" "${@:3}"
}

# Runs the job NAME with its output in NAME.log. To be called in a background process; ending that ends the job, whose
# own clean-up still runs.
run_job() {
	local name=$1 status=0 start pid
	say "$name"
	start=$(now_ms)
	mkdir -p "$LOGS/$name.files"
	# shellcheck disable=SC2086 # words are wanted
	BUILD="$ROOT/build" ARTIFACTS="$ROOT/$LOGS/$name.files" timeout -k 5 "$JOB_SECONDS" ${COMMAND[$name]} \
		>"$LOGS/$name.log" 2>&1 </dev/null &
	pid=$!
	trap 'kill "$pid"; wait "$pid"; exit 1' TERM
	wait "$pid" || status=$?
	times >"$LOGS/$name.cpu"
	((status == 0 || status == 77)) || warn "$name failed"
	printf '%s %s %s\n' "$status" "$start" "$(now_ms)" >"$LOGS/$name.status"
	rmdir --ignore-fail-on-non-empty "$LOGS/$name.files"
}

# Weights bound the parallel jobs, so that two CPUs are busy and no job starves: scripts wait most of the time.
CAPACITY=10
WEIGHT_STEP=6   # both CPUs: one at a time, a light step or two scripts beside it
WEIGHT_LIGHT=4  # takes what a heavy step leaves while its last processes run
WEIGHT_SCRIPT=2
WEIGHT_VM=5     # fills a CPU
WEIGHT_ALONE=10 # judges rates or the clock

# Runs the jobs named, some at a time.
run_jobs() {
	local name pid busy=0
	local -A running=()
	local waiting=("$@")
	while ((${#waiting[@]} + ${#running[@]} > 0)); do
		for name in "${waiting[@]}"; do
			((busy + WEIGHT[$name] <= CAPACITY)) || continue
			run_job "$name" &
			running[$!]=$name
			busy=$((busy + WEIGHT[$name]))
			mapfile -t waiting < <(printf '%s\n' "${waiting[@]}" | grep -vxF "$name")
			continue 2
		done
		wait -n -p pid "${!running[@]}" || true
		busy=$((busy - WEIGHT[${running[$pid]}]))
		unset "running[$pid]"
	done
}

# Prints how many passed, failed and were skipped: of meson's last tests in the build folder DIR, of `go test -json`.
unit_counts() {
	jq -rs 'map(.result)
		| (map(select(. == "OK" or . == "EXPECTEDFAIL")) | length) as $ok
		| (map(select(. == "SKIP")) | length) as $skip
		| "\($ok) \(length - $ok - $skip) \($skip)"' "$1/meson-logs/testlog.json"
}

# Those of top-level tests.
go_counts() {
	jq -rs 'map(select(.Test and (.Test | contains("/") | not)) | .Action)
		| [("pass", "fail", "skip") as $how | map(select(. == $how)) | length]
		| map(tostring) | join(" ")' "$1"
}

# Why ./dev test leaves the script to --long; nothing: it does not.
long_reason() {
	sed -n '1,8s/^# --long: //p' "$1"
}

# Notes test/{golden,smoke,e2e,pages,vm}/*_test.sh. Each works in its own namespaces and folders, and finds the programs
# in $BUILD. Exit status 77 means skipped, and the output says why.
scripts_jobs() {
	local script weight
	for script in test/{golden,e2e,smoke,pages,vm}/*_test.sh; do
		weight=$WEIGHT_SCRIPT
		if [[ -n $(long_reason "$script") ]]; then
			[[ ${LONG:-0} == 1 ]] || continue
			weight=$WEIGHT_ALONE
			[[ $script != test/vm/* ]] || weight=$WEIGHT_VM
		fi
		job "$(basename "$(dirname "$script")")-$(basename "$script" _test.sh)" "$weight" "$script"
	done
}

# Notes the end of a job, and shows what failed. usage: record NAME
record() {
	local name=$1 status passed failed skipped
	read -r status _ <"$LOGS/$name.status"
	if [[ ! -f $LOGS/$name.counts ]]; then
		case $status in
		0) counts "$name" 1 0 0 ;;
		77) counts "$name" 0 0 1 ;;
		*) counts "$name" 0 1 0 ;;
		esac
	fi
	read -r passed failed skipped <"$LOGS/$name.counts"
	# A job that failed outside of a test (no build, say) is one failure.
	if ((status != 0 && status != 77 && failed == 0)); then
		failed=1
		counts "$name" "$passed" 1 "$skipped"
	fi
	((failed == 0)) || show_faults "$name"
}

# The failed tests, by name and with their output, else the end of the log. All names are printed.
show_faults() {
	local faults=$LOGS/$1.faults lines=60
	if [[ -s $faults ]]; then
		printf '%s--- %s failed; all of its output is in %s:%s\n' "$RED" "$1" "$LOGS/$1.log" "$PLAIN"
		head -n "$lines" "$faults"
		if (($(wc -l <"$faults") > lines)); then
			printf '… more in %s\n' "$faults"
			tail -n "+$((lines + 1))" "$faults" | grep '^FAILED ' || true
		fi
	else
		printf '%s--- %s failed; what %s says is wrong, and its end:%s\n' "$RED" "$1" "$LOGS/$1.log" "$PLAIN"
		grep -E '^(FAIL|WRONG|waited in vain|out of time)' "$LOGS/$1.log" | head -n 20 || true
		tail -n 40 "$LOGS/$1.log"
	fi
	printf '%s---%s\n' "$RED" "$PLAIN"
}

# Why a job was skipped: its last line about that, else its last line.
skip_reason() {
	local line
	line=$(grep -i 'skip' "$1" | tail -1) || line=$(tail -n 1 "$1")
	printf '%s\n' "${line:-no reason given}"
}

# A row for each step or folder of scripts, then failures and skips, then the sums. Fails when a job did.
summary() {
	local name status passed failed skipped
	for name in "${NAMES[@]}"; do
		[[ ! -e $LOGS/$name.status ]] || record "$name"
	done
	scripts/junit.py "$LOGS" "${NAMES[@]}" || warn "no JUnit file"
	printf '\n'
	for name in "${NAMES[@]}"; do
		[[ -e $LOGS/$name.status ]] || continue
		printf '%s %s %s\n' "$name" "$(cat "$LOGS/$name".{counts,status} | tr '\n' ' ')" \
			"$(tail -n 1 "$LOGS/$name.cpu" | tr 'ms' '  ')"
	done | awk -v bold="$BOLD" -v plain="$PLAIN" '
		{ row = $1; sub(/^golden-.*/, "golden", row); sub(/^smoke-.*/, "smoke", row); sub(/^e2e-.*/, "e2e", row)
		  sub(/^pages-.*/, "pages", row); sub(/^vm-.*/, "vm", row) }
		!(row in passed) { rows[++n] = row; begin[row] = $6 }
		{ passed[row] += $2; failed[row] += $3; skipped[row] += $4; cpu[row] += $8 * 60 + $9 + $10 * 60 + $11 }
		$6 < begin[row] { begin[row] = $6 }
		$7 > end[row] { end[row] = $7 }
		END { heads = "step passed failed skipped seconds CPU"; split(heads, h, " ")
		      printf bold "%-18s %7s %7s %8s %8s %8s" plain "\n", h[1], h[2], h[3], h[4], h[5], h[6]
		      for (i = 1; i <= n; i++) {
		        r = rows[i]
		        printf "%-18s %7d %7d %8d %8.1f", r, passed[r], failed[r], skipped[r],
		               (end[r] - begin[r]) / 1000
		        printf " %8.1f\n", cpu[r] } }'
	local sum=(0 0 0)
	for name in "${NAMES[@]}"; do
		[[ -e $LOGS/$name.status ]] || continue
		read -r status _ <"$LOGS/$name.status"
		read -r passed failed skipped <"$LOGS/$name.counts"
		((failed == 0)) || printf '%sFAILED  %s%s: %s\n' "$RED" "$name" "$PLAIN" "$LOGS/$name.log"
		((status != 77)) ||
			printf '%sskipped %s%s: %s\n' "$YELLOW" "$name" "$PLAIN" "$(skip_reason "$LOGS/$name.log")"
		sum=($((sum[0] + passed)) $((sum[1] + failed)) $((sum[2] + skipped)))
	done
	printf '\n%s%d passed, %d failed, %d skipped%s in %d min %d s; %s\n' "$BOLD" "${sum[@]}" "$PLAIN" \
		$((SECONDS / 60)) $((SECONDS % 60)) "$LOGS/junit.xml"
	((sum[1] == 0))
}

# usage: verb_test [--long] [WORD...]
#        verb_test --repeat RUNS [--beside PROCESSES] [WORD...]
verb_test() {
	local name first=(build) rest=()
	if [[ ${1:-} == --repeat ]]; then
		shift
		exec scripts/repeat.sh "$@"
	fi
	if [[ ${1:-} == --long ]]; then
		export LONG=1
		shift
	fi
	ensure_setup
	SECONDS=0
	rm -rf "$LOGS"
	mkdir -p "$LOGS"
	trap 'warn interrupted; jobs -p | xargs --no-run-if-empty kill; wait; exit 130' INT TERM
	step build "$WEIGHT_STEP" step_build
	TEST_WORDS=("$@")
	step unit-sanitizers "$WEIGHT_STEP" step_unit build-asan
	step go "$WEIGHT_STEP" step_go
	step lint "$WEIGHT_LIGHT" step_lint
	step unit "$WEIGHT_LIGHT" step_unit build
	[[ ${LONG:-0} == 0 ]] || step arm64 "$WEIGHT_ALONE" step_arm64
	scripts_jobs
	if [[ " ${NAMES[*]} " == *" vm-"* ]]; then
		TEST_WORDS=()
		step vm "$WEIGHT_STEP" step_vm
		first+=(vm)
	fi
	run_jobs "${first[@]}"
	if [[ $(cut -d ' ' -f 1 "$LOGS/build.status") == 0 ]]; then
		for name in "${NAMES[@]}"; do
			[[ " ${first[*]} " == *" $name "* ]] || rest+=("$name")
		done
		run_jobs "${rest[@]}"
	fi
	trap - INT TERM
	summary
}
