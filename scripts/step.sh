#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one step of ./dev test in a process of its own. usage: step.sh FUNCTION [ARGUMENT...], from the repository's top.
set -euo pipefail

# shellcheck source=scripts/common.sh
. scripts/common.sh
# shellcheck source=scripts/setup.sh
. scripts/setup.sh
# shellcheck source=scripts/build.sh
. scripts/build.sh
# shellcheck source=scripts/fuzz.sh
. scripts/fuzz.sh
# shellcheck source=scripts/lint.sh
. scripts/lint.sh
# shellcheck source=scripts/vm.sh
. scripts/vm.sh
# shellcheck source=scripts/cross.sh
. scripts/cross.sh
# shellcheck source=scripts/test.sh
. scripts/test.sh

# Scripts run two of the unit tests: they write frames that tshark reads.
step_build() {
	build_all
	build_release dataplane/gtpu-peer-test traffic/traffic-template-test
}

step_lint() {
	local status=0
	lint_all || status=$?
	((status == 0)) || printf 'failed: %s\n' "${LINT_FAILED[*]}"
	counts lint "$LINT_PASSED" "${#LINT_FAILED[@]}" 0
	return "$status"
}

# The C unit tests in the build folder DIR. In build-asan each fuzz target replays its corpus too. In build, the
# released form, only the models run, with all rounds; with --long everything.
step_unit() {
	local dir=$1 name=unit status=0 suite=()
	if [[ $dir == build-asan ]]; then
		name=unit-sanitizers
		build_asan
		sanitizer_env gcc
		export HQOS_ROUNDS=20 FLOW_FRAMES_STEP=12 FLOW_MODEL_ROUNDS=2000 # of 200, 1, 6000
	elif [[ ${LONG:-0} == 0 ]]; then
		suite=(--suite model)
		export FLOW_FRAMES_STEP=4
	fi
	flock "$dir/.dev-options" meson test -C "$dir" --print-errorlogs --num-processes 2 "${suite[@]}" || status=$?
	[[ -f $dir/meson-logs/testlog.json ]] || return "$status"
	# shellcheck disable=SC2046 # three words are wanted
	counts "$name" $(unit_counts "$dir")
	jq -rs -f scripts/unit_faults.jq "$dir/meson-logs/testlog.json" >"$LOGS/$name.faults"
	return "$status"
}

# Files that virtual machines boot and run.
step_vm() {
	vm_kernel
	vm_initrd
	vm_build
}

# All Go tests (lint vets them); the counts are those of top-level tests. The time-out ends a hanging package: a busy
# machine may need minutes for a good one.
RACED='/controlplane/(aaa|agent(/reconcile|/serve)?|dp|events|httpd|metrics|n4|page|radius|session)$'
RACED_LONG='/(controlplane|lab)/(auth|bucket|kernel|load|mmsg|smf)$'
# Long tests of one goroutine in those packages that measure memory or CPU time: without the detector, a tenth of the
# time.
MEASURED='^Test(BrowserDay|HistoryIsBounded|MemoryOfASession|OnePageIsCheap)$'

step_go() {
	local status=0 json=$LOGS/go.json raced look=$RACED
	local tests=(go test -vet=off -p 2 -timeout 600s -json -exec "$ROOT/scripts/own_net.sh")
	[[ ${LONG:-0} == 0 ]] || look="$RACED|$RACED_LONG"
	[[ -z ${FRESH_RESULTS:-} ]] || tests+=(-count=1)
	# Where goroutines share memory the race detector looks on, which takes three to five times as long. Both at
	# once, for some packages wait more than they work.
	# shellcheck disable=SC2046 # words are wanted
	"${tests[@]}" -race -buildmode=default -skip "$MEASURED" $(go list ./... | grep -E "$look") \
		>"$LOGS/go-raced.json" &
	raced=$!
	# shellcheck disable=SC2046
	"${tests[@]}" $(go list ./... | grep -vE "$look") >"$json" || status=$?
	"${tests[@]}" -run "$MEASURED" ./controlplane/page ./controlplane/session >>"$json" || status=$?
	(cd test/gopfcp && "${tests[@]}" ./...) >>"$json" || status=$?
	wait "$raced" || status=$?
	cat "$LOGS/go-raced.json" >>"$json"
	rm "$LOGS/go-raced.json"
	jq -rj 'select(.Action == "output" or .Action == "build-output") | .Output' "$json"
	# shellcheck disable=SC2046 # three words are wanted
	counts go $(go_counts "$json")
	jq -rs -f scripts/go_faults.jq "$json" >"$LOGS/go.faults"
	return "$status"
}

# All for arm64, and its tests under qemu-user: with --long.
step_arm64() {
	local status=0 why
	if why=$(cross_obstacle); then
		printf 'skip: %s\n' "$why"
		exit 77
	fi
	cross_build
	cross_test || status=$?
	counts arm64 "${CROSS_SUM[@]}"
	return "$status"
}

"$@"
