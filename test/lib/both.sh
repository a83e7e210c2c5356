# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by tests that start and kill both processes themselves, without root and without network namespaces.
#
# usage: . test/lib/both.sh; $dp, $cp and $other are killed at the end, $dir/*.log are shown when a test fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$(realpath "${BUILD:-build}")
# shellcheck source=test/lib/has.sh
. test/lib/has.sh
dir=$(mktemp -d)
export ISTHMUS_SOCKET=$dir/isthmus.sock
dp='' cp='' other='' # process ids

cleanup() {
	local status=$? pid log
	for pid in $cp $other $dp; do
		kill -9 "$pid" && wait "$pid"
	done 2>/dev/null || true
	if ((status != 0)); then
		for log in "$dir"/*.log; do
			echo "--- ${log##*/}"
			tail -n 30 "$log" || true
		done
	fi
	rm -rf "$dir"
}
trap cleanup EXIT

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

# Prints one value of a JSON document: field 'd["total"]'.
field() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)"; }

# Waits until a command succeeds.
# usage: wait_until WHAT COMMAND...
wait_until() {
	local what=$1
	shift
	for _ in $(seq 600); do
		"$@" && return
		sleep 0.05
	done
	fail "never: $what"
}

# Kills at once; what the shell would say of it is not wanted.
# usage: stop PID...
stop() {
	local pid
	for pid in "$@"; do
		kill -9 "$pid"
		wait "$pid" 2>/dev/null || true
	done
}

isthmus() { "$bin/isthmus" "$@"; }
streams() { isthmus show stream -j | field "sum(s['$1'] for s in d)"; }
# usage: offered_more_than COUNT
offered_more_than() { (($(streams offered) > $1)); }
all_arrived() { (($(streams offered) == $(streams received))); }
sessions() { isthmus show total -j | field 'd["sessions"]'; }
session_count_is() { (($(sessions) == $1)); }

start_dp() {
	"$bin/isthmus-dp" --socket "$dir/dp.sock" >>"$dir/dp.log" 2>&1 &
	dp=$!
}
