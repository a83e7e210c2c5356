#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Either process is killed with SIGKILL and comes back with no help; while the control plane is dead, no packet is lost.
# A refused file changes nothing, and a changed one disturbs nothing else. Needs no root; BUILD names another build
# folder.
# shellcheck source=test/lib/both.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/both.sh"

now() { date +%s%3N; }

start_cp() {
	"$bin/isthmus" run -c "$dir/isthmus.yaml" --dp-socket "$dir/dp.sock" --metrics off "$@" >>"$dir/cp.log" 2>&1 &
	cp=$!
}

# CPU time (milliseconds) that both processes have taken since their start, but for workers, which poll.
work_done() {
	local pid
	for pid in $(isthmus status -j | field '"%d %d" % (d["pid"], d["dp_pid"])'); do
		cat "/proc/$pid"/task/*/stat 2>/dev/null || true # a thread may end meanwhile
	done | sed '/^[0-9]* (worker-/d; s/.*) //' |
		awk -v hz="$(getconf CLK_TCK)" '{ ticks += $12 + $13 } END { print int(ticks * 1000 / hz) }'
}

# Waits for both to be ready, and fails when that took more CPU time than the goal (milliseconds). Elapsed time would
# depend on the machine's other work.
ready_within() {
	local limit=$1 since=$2 what=$3 work
	isthmus status --wait 60s >"$dir/status" || fail "$what: $(cat "$dir/status")"
	work=$(work_done)
	echo "$what: ready in $(($(now) - since)) ms, with $work ms of work (goal $limit ms)"
	((work > 0 && work <= limit)) || fail "$what: $work ms of work"
}

dp_pid() { isthmus status -j 2>/dev/null | field 'd["dp_pid"]'; }
dp_pid_is_not() { [[ $(dp_pid) != "$1" ]]; }
dp_is_away() { ! isthmus status >/dev/null 2>&1; }
route_is_there() { isthmus show route | has '^203.0.113.0/24'; }
route_is_gone() { ! route_is_there; }

start_streams() {
	isthmus stream load agf-symmetric --rate 5000 --check-every 1 >/dev/null
	isthmus stream start
}

# Stops the streams, lets what is held leave, and demands that every packet arrived as expected.
expect_no_loss() {
	isthmus stream stop
	wait_until "every packet arrived ($1)" all_arrived
	local offered received wrong checked
	offered=$(streams offered) received=$(streams received) wrong=$(streams wrong) checked=$(streams checked)
	echo "$1: offered $offered, received $received, compared $checked, wrong $wrong"
	((offered > 0 && offered == received && wrong == 0 && checked == received)) || {
		isthmus show drop | awk '$2 > 0'
		fail "$1"
	}
}

isthmus bench agf-symmetric --link synth --print-config >"$dir/isthmus.yaml"

# Both start at the same moment.
since=$(now)
start_dp
start_cp --no-spawn
ready_within 2000 "$since" "start with 1000 subscribers"
(($(sessions) == 1000)) || fail "$(sessions) sessions"

# The control plane dies; packets keep flowing, and its successor finds nothing to do.
start_streams
wait_until "streams run" offered_more_than 2000
stop "$cp"
before=$(now)
start_cp --no-spawn
ready_within 2000 "$(now)" "control plane killed, with traffic"
(($(isthmus status -j | field 'd["changes"]') == 0)) || fail "the new control plane sent changes"
wait_until "streams still run" offered_more_than 20000
expect_no_loss "control plane killed $(($(now) - before)) ms ago"

# The data plane dies; the control plane brings everything back.
stop "$dp"
wait_until "the loss of the data plane is noticed" dp_is_away
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

# A changed file changes only what differs: here one route, given and taken back by SIGHUP.
sed 's|^routes:|routes:\n  - {prefix: 203.0.113.0/24, via: 192.0.2.2}|' "$dir/isthmus.yaml" >"$dir/route.yaml"
isthmus config apply "$dir/route.yaml" | tee "$dir/applied"
grep -q "1 sent, 0 deleted" "$dir/applied" || fail "more than the new route was sent"
route_is_there || fail "the route is not there"
kill -HUP "$cp"
wait_until "SIGHUP takes the route back" route_is_gone
expect_no_loss "configuration refused and changed under traffic"

# The last subscriber of the first range is removed: only it is deleted, no other moves.
sed 's/name: qinq, count: 500,/name: qinq, count: 499,/' "$dir/isthmus.yaml" >"$dir/fewer.yaml"
isthmus config apply "$dir/fewer.yaml" | tee "$dir/applied"
grep -q "0 sent, 1 deleted" "$dir/applied" || fail "not exactly one object was deleted"
(($(sessions) == 999)) || fail "$(sessions) sessions, not 999"

# The applied configuration outlives the control plane; its successor moves no subscriber either.
stop "$cp"
start_cp --no-spawn
ready_within 2000 "$(now)" "control plane killed after config apply"
(($(sessions) == 999)) || fail "$(sessions) sessions, not 999: what was applied is lost"
(($(isthmus status -j | field 'd["changes"]') == 0)) || fail "the new control plane sent changes"
grep -q "by .config apply." "$dir/status" || fail "status does not name the applied configuration: $(cat "$dir/status")"
kill -HUP "$cp"
wait_until "SIGHUP returns to the file" session_count_is 1000
! isthmus status | grep "by .config apply." || fail "status still names the applied configuration"
isthmus config apply "$dir/fewer.yaml" >/dev/null
stop "$cp"
touch "$dir/isthmus.yaml" # the file is newer than what was applied
start_cp --no-spawn
ready_within 2000 "$(now)" "control plane killed, file changed since"
(($(sessions) == 1000)) || fail "$(sessions) sessions, not those of the newer file"
stop "$cp"
stop "$dp"

# The control plane supervises the data plane: each heals from the death of the other.
since=$(now)
start_cp --spawn
ready_within 2000 "$since" "supervised start"
other=$(dp_pid)
kill -9 "$other"
since=$(now)
wait_until "another data plane is there" dp_pid_is_not "$other"
ready_within 2000 "$since" "supervised data plane killed"
other=$(dp_pid)
stop "$cp"
start_cp --spawn
ready_within 2000 "$(now)" "supervisor killed"
[[ $(dp_pid) == "$other" ]] || fail "the data plane did not outlive its supervisor"
stop "$cp"
kill -9 "$other"
other=''

# 64 K subscribers.
isthmus bench agf-symmetric --link synth --subscribers 65536 --print-config >"$dir/isthmus.yaml"
since=$(now)
start_dp
start_cp --no-spawn
ready_within 10000 "$since" "start with 65536 subscribers"
(($(sessions) == 65536)) || fail "$(sessions) sessions"
echo PASS
