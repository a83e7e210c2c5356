#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Either process is killed with SIGKILL and comes back with no help; while the control plane is dead, no packet is lost.
# A refused file changes nothing, and a changed one disturbs nothing else. Needs no root; BUILD names another build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$(realpath "${BUILD:-build}")
dir=$(mktemp -d)
export ISTHMUS_SOCKET=$dir/isthmus.sock
dp_socket=$dir/dp.sock
dp='' cp='' spawned=''

cleanup() {
	local status=$?
	for pid in $cp $dp $spawned; do
		kill -9 "$pid" 2>/dev/null || true
	done
	if ((status != 0)); then
		echo "--- control plane log"
		tail -n 30 "$dir/cp.log" || true
		echo "--- data plane log"
		tail -n 30 "$dir/dp.log" || true
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
now() { date +%s%3N; }
isthmus() { "$bin/isthmus" "$@"; }

start_dp() {
	"$bin/isthmus-dp" --socket "$dp_socket" >>"$dir/dp.log" 2>&1 &
	dp=$!
}

start_cp() {
	"$bin/isthmus" run -c "$dir/isthmus.yaml" --dp-socket "$dp_socket" --metrics off "$@" >>"$dir/cp.log" 2>&1 &
	cp=$!
}

# Waits for both to be ready and fails when that took longer than the limit (milliseconds), three times the goal.
ready_within() {
	local limit=$1 since=$2 what=$3
	isthmus status --wait $((limit * 3))ms >"$dir/status" || fail "$what: $(cat "$dir/status")"
	local took=$(($(now) - since))
	echo "$what: ready in $took ms (goal $limit ms)"
	((took <= 3 * limit)) || fail "$what took $took ms"
}

sessions() { isthmus show total -j | field 'd["sessions"]'; }
streams() { isthmus show stream -j | field "sum(s['$1'] for s in d)"; }

start_streams() {
	isthmus stream load agf-symmetric --rate 5000 --check-every 1 >/dev/null
	isthmus stream start
}

# Stops the streams, lets what is held leave, and demands that every packet arrived as expected.
expect_no_loss() {
	isthmus stream stop
	for _ in $(seq 40); do
		(($(streams offered) == $(streams received))) && break
		sleep 0.05
	done
	local offered received wrong checked
	offered=$(streams offered) received=$(streams received) wrong=$(streams wrong) checked=$(streams checked)
	echo "$1: offered $offered, received $received, compared $checked, wrong $wrong"
	((offered > 0 && offered == received && wrong == 0 && checked == received)) || {
		isthmus show drop | awk '$2 > 0'
		fail "$1"
	}
}

isthmus bench agf-symmetric --print-config >"$dir/isthmus.yaml"

# Both start at the same moment.
since=$(now)
start_dp
start_cp --no-spawn
ready_within 2000 "$since" "start with 1000 subscribers"
(($(sessions) == 1000)) || fail "$(sessions) sessions"

# The control plane dies; packets keep flowing, and its successor finds nothing to do.
start_streams
sleep 0.5
kill -9 "$cp"
before=$(now)
sleep 1
start_cp --no-spawn
ready_within 2000 "$(now)" "control plane killed, with traffic"
(($(isthmus status -j | field 'd["changes"]') == 0)) || fail "the new control plane sent changes"
sleep 0.3
expect_no_loss "control plane dead for $(($(now) - before)) ms"
(($(streams offered) > 5000)) || fail "the streams did not run"

# The data plane dies; the control plane brings everything back.
kill -9 "$dp"
sleep 0.2
isthmus status >/dev/null && fail "the loss of the data plane was not noticed"
since=$(now)
start_dp
ready_within 2000 "$since" "data plane killed"
(($(sessions) == 1000)) || fail "$(sessions) sessions after the restart"
start_streams

# A refused file changes nothing.
commits=$(isthmus show total -j | field 'd["commits"]')
sed 's/^  - {name: upf,/  - {nane: upf,/' "$dir/isthmus.yaml" >"$dir/bad.yaml"
if isthmus config apply "$dir/bad.yaml" 2>"$dir/error"; then
	fail "a bad file was accepted"
fi
grep -q "bad.yaml:[0-9]*: .*nane" "$dir/error" || fail "no file and line in: $(cat "$dir/error")"
(($(isthmus show total -j | field 'd["commits"]') == commits)) || fail "a refused file reached the data plane"

# A changed file changes only what differs.
sed 's|^routes:|routes:\n  - {prefix: 203.0.113.0/24, via: 192.0.2.2}|; s/count: 500, port: access, encap: qinq,/count: 499, port: access, encap: qinq,/' \
	"$dir/isthmus.yaml" >"$dir/changed.yaml"
sed 's|^routes:|routes:\n  - {prefix: 203.0.113.0/24, via: 192.0.2.2}|' "$dir/isthmus.yaml" >"$dir/isthmus2.yaml"
isthmus config apply "$dir/isthmus2.yaml" | tee "$dir/applied"
grep -q "1 sent, 0 deleted" "$dir/applied" || fail "more than the new route was sent"
isthmus show route | grep -q '^203.0.113.0/24' || fail "the route is not there"
mv "$dir/isthmus2.yaml" "$dir/isthmus.yaml"
kill -HUP "$cp"
sleep 0.5
expect_no_loss "configuration refused and changed under traffic"

# One subscriber leaves: only it is deleted.
sed -i 's|^routes:|routes:\n  - {prefix: 203.0.113.0/24, via: 192.0.2.2}|' "$dir/changed.yaml"
sed -i '0,/203.0.113.0/{/203.0.113.0/d}' "$dir/changed.yaml"
isthmus config apply "$dir/changed.yaml" | tee "$dir/applied"
grep -q " 1 deleted" "$dir/applied" || fail "not exactly one object was deleted"
(($(sessions) == 999)) || fail "$(sessions) sessions, not 999"
kill -9 "$cp" "$dp"

# The control plane supervises the data plane: each heals from the death of the other.
since=$(now)
start_cp --spawn
ready_within 2000 "$since" "supervised start"
spawned=$(isthmus status -j | field 'd["dp_pid"]')
kill -9 "$spawned"
since=$(now)
for _ in $(seq 100); do
	[[ $(isthmus status -j | field 'd["dp_pid"]') != "$spawned" ]] && break
	sleep 0.05
done
ready_within 2000 "$since" "supervised data plane killed"
spawned=$(isthmus status -j | field 'd["dp_pid"]')
kill -9 "$cp"
start_cp --spawn
ready_within 2000 "$(now)" "supervisor killed"
[[ $(isthmus status -j | field 'd["dp_pid"]') == "$spawned" ]] || fail "the data plane did not outlive its supervisor"
kill -9 "$cp" "$spawned"
spawned=''

# 64 K subscribers.
isthmus bench agf-symmetric --subscribers 65536 --print-config >"$dir/isthmus.yaml"
since=$(now)
start_dp
start_cp --no-spawn
ready_within 10000 "$since" "start with 65536 subscribers"
(($(sessions) == 65536)) || fail "$(sessions) sessions"
echo PASS
