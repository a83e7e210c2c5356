# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# ./dev test: every check and test in order, one table at the end. A step leaves its log in build/test-logs/NAME.log and
# its counts (passed failed skipped) in NAME.counts; a step that wrote no counts counts as one. NAME.faults, where there is
# one, has each test that failed and its output.

LOGS=build/test-logs
SUITE_SECONDS=180 # one script of test/*/, at most
STEP_SECONDS=3600 # another step

STEPS=()       # names in order of their end
declare -A STEP_MS=() STEP_RESULT=() STEP_NOTE=()
TEST_WORDS=()

counts() {
	printf '%s %s %s\n' "$2" "$3" "$4" >"$LOGS/$1.counts"
}

# Runs FUNCTION as the step NAME unless the words on the command line leave it out.
# usage: step NAME FUNCTION [ARGUMENT...]
step() {
	local name=$1
	shift
	[[ ${STEP_ALWAYS:-0} == 1 ]] || wanted "$name" "${TEST_WORDS[@]}" || return 0
	say "$name"
	# In a process of its own with -e: a failing command inside the step ends the step.
	logged "$name" "$STEP_SECONDS" bash -euo pipefail "$ROOT/scripts/step.sh" "$@"
}

# Runs a command with its output in NAME.log, and leaves its status and milliseconds in NAME.status. To be called in a
# background process; ending that ends the command, whose own clean-up still runs.
# usage: logged NAME SECONDS COMMAND...
logged() {
	local name=$1 seconds=$2 status=0 start pid
	shift 2
	start=$(now_ms)
	timeout -k 5 "$seconds" "$@" >"$LOGS/$name.log" 2>&1 </dev/null &
	pid=$!
	trap 'kill "$pid"; wait "$pid"; exit 1' TERM
	wait "$pid" || status=$?
	((status == 0 || status == 77)) || warn "$name failed"
	printf '%s %s\n' "$status" $(($(now_ms) - start)) >"$LOGS/$name.status"
}

# Notes the end of a step, and shows what failed. usage: record NAME
record() {
	local name=$1 status ms passed failed skipped note=''
	read -r status ms <"$LOGS/$name.status"
	if [[ ! -f $LOGS/$name.counts ]]; then
		case $status in
		0) counts "$name" 1 0 0 ;;
		77) counts "$name" 0 0 1 ;;
		*) counts "$name" 0 1 0 ;;
		esac
	fi
	read -r passed failed skipped <"$LOGS/$name.counts"
	# A step that failed for another reason than a test (no build, say) is one failure.
	if ((status != 0 && status != 77 && failed == 0)); then
		failed=1
		counts "$name" "$passed" "$failed" "$skipped"
	fi
	STEPS+=("$name")
	STEP_MS[$name]=$ms
	if ((failed > 0)); then
		STEP_RESULT[$name]=failed
		note="$failed failed, $passed passed"
		((status != 124 && status != 137)) || note="timed out"
		show_faults "$name"
	elif ((passed == 0)); then
		STEP_RESULT[$name]=skipped
		note=$(skip_reason "$LOGS/$name.log")
	else
		STEP_RESULT[$name]=ok
		note="$passed passed"
	fi
	((skipped == 0 || passed == 0)) || note="$note, $skipped skipped"
	STEP_NOTE[$name]=$note
}

# The tests that failed, by name and with their output, else the end of the log. The names come whatever their number.
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

# Why a step was skipped: its last line that says so, else its last line.
skip_reason() {
	local line
	line=$(grep -i 'skip' "$1" | tail -1) || line=$(tail -n 1 "$1")
	printf '%s\n' "${line:-no reason given}"
}

# Many scripts wait most of the time (timers, start-ups); pollers and virtual machines nearly fill two CPUs.
# What runs at once is bounded by weights, so that nobody starves.
CAPACITY=8

# The heavy ones first, for one leaves no room for another and the rest fills what it leaves; two long ones before all.
suite_scripts() {
	local script
	for script in test/e2e/{chaos,upf_restore}_test.sh test/{golden,e2e,smoke,vm}/*_test.sh; do
		[[ ! -x $script ]] || printf '%s %s\n' "$(weight_of "$(suite_name "$script")")" "$script"
	done | awk '!seen[$2]++ { print $1 + (NR <= 2) * 10, $2 }' | sort -s -k1,1nr | cut -d ' ' -f 2
}

suite_name() {
	printf '%s-%s\n' "$(basename "$(dirname "$1")")" "$(basename "$1" _test.sh)"
}

# Whether a script of that folder is to run. usage: suites_of FOLDER
suites_of() {
	local script
	while IFS= read -r script; do
		[[ $script != "test/$1/"* ]] || ! wanted "$(suite_name "$script")" "${TEST_WORDS[@]}" || return 0
	done < <(suite_scripts)
	return 1
}

# How much of CAPACITY a script takes: most of it, where pollers take both CPUs for seconds, workers may not stand
# still, or a rate must be kept up with; little, where nearly all is waiting.
weight_of() {
	case $1 in
	e2e-chaos | e2e-control_load | e2e-traffic_agf | e2e-upf_many | smoke-traffic_faults) printf '6\n' ;;
	e2e-bng_tester | e2e-bng_flaps | e2e-bng_flood | e2e-bng_pipes | e2e-bng_storm) printf '6\n' ;;
	e2e-lab_isp | e2e-lab_igp) printf '6\n' ;;
	vm-*) printf '5\n' ;;
	smoke-bench* | smoke-peers | smoke-l3fwd) printf '3\n' ;; # half a CPU each, beside one of the line above
	e2e-upf_restore | smoke-traffic_errors) printf '1\n' ;;
	*) printf '2\n' ;;
	esac
}

# The first of the scripts that may run beside those that run, into `next`. usage: pick_suite NAME... (fails: none)
pick_suite() {
	local name busy=0
	for name in "${running[@]}"; do
		busy=$((busy + $(weight_of "$name")))
	done
	for next; do
		((busy + $(weight_of "$next") > CAPACITY)) || return 0
	done
	return 1
}

# Every executable test/{golden,smoke,e2e,vm}/*_test.sh, some at a time. Each works in its own namespaces and folders,
# and finds the programs in $BUILD. Exit status 77 means skipped, and the output says why.
run_suites() {
	local script name next pid
	local -A scripts=() running=()
	while IFS= read -r script; do
		name=$(suite_name "$script")
		wanted "$name" "${TEST_WORDS[@]}" || continue
		scripts[$name]=$script
		SUITES+=("$name")
	done < <(suite_scripts)
	local waiting=("${SUITES[@]}")
	while ((${#waiting[@]} + ${#running[@]} > 0)); do
		if pick_suite "${waiting[@]}"; then
			say "$next"
			run_suite "${scripts[$next]}" "$next" &
			running[$!]=$next
			for pid in "${!waiting[@]}"; do
				[[ ${waiting[$pid]} != "$next" ]] || unset "waiting[$pid]"
			done
			continue
		fi
		wait -n -p pid "${!running[@]}" || true
		unset "running[$pid]"
	done
}

# usage: run_suite SCRIPT NAME
run_suite() {
	mkdir -p "$LOGS/$2.files"
	BUILD="$ROOT/build" ARTIFACTS="$ROOT/$LOGS/$2.files" logged "$2" "$SUITE_SECONDS" "$1"
	rmdir --ignore-fail-on-non-empty "$LOGS/$2.files"
}

# The table, then the line with the sums. Fails when a step did.
summary() {
	local name colour passed failed skipped sum=(0 0 0)
	printf '\n%s%-44s %8s  %s%s\n' "$BOLD" step seconds result "$PLAIN"
	for name in "${STEPS[@]}"; do
		case ${STEP_RESULT[$name]} in
		ok) colour=$GREEN ;;
		failed) colour=$RED ;;
		*) colour=$YELLOW ;;
		esac
		printf '%-44s %6d.%d  %s%-7s%s  %s\n' "$name" $((STEP_MS[$name] / 1000)) $((STEP_MS[$name] % 1000 / 100)) \
			"$colour" "${STEP_RESULT[$name]}" "$PLAIN" "${STEP_NOTE[$name]}"
		read -r passed failed skipped <"$LOGS/$name.counts"
		sum=($((sum[0] + passed)) $((sum[1] + failed)) $((sum[2] + skipped)))
	done
	printf '\n%d passed, %d failed, %d skipped\n' "${sum[@]}"
	((sum[1] == 0))
}

verb_test() {
	if [[ ${1:-} == --long ]]; then
		export CHAOS_SECONDS=600 LONG=1
		SUITE_SECONDS=900
		shift
	fi
	TEST_WORDS=("$@")
	SUITES=()
	ensure_setup
	rm -rf "$LOGS"
	mkdir -p "$LOGS"
	export BUILD="$ROOT/build"
	trap 'warn interrupted; jobs -p | xargs --no-run-if-empty kill; wait; exit 130' INT TERM
	STEP_ALWAYS=1 step build step_build &
	wait $!
	# One after the other, and not beside the scripts: some tests judge rates and times.
	{
		step unit step_unit build
		step unit-sanitizers step_unit build-asan
		step go step_go
	} &
	wait $!
	# The scripts wait most of the time; what judges no time takes the rest of the CPUs.
	{
		renice -n 19 "$BASHPID" >/dev/null
		step lint step_lint
	} &
	local name beside=$!
	if suites_of vm; then
		STEP_ALWAYS=1 step vm step_vm &
		wait $!
	fi
	run_suites
	wait "$beside"
	trap - INT TERM
	for name in build lint unit unit-sanitizers go vm "${SUITES[@]}"; do
		[[ ! -e $LOGS/$name.status ]] || record "$name"
	done
	summary
}
