#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Control planes of another age with today's data plane, under traffic: one has structs with a field more, the other
# with one fewer (lib/contract_relay.py). Each brings everything up, takes over, changes all sessions and changes them
# back. No packet is lost, and unchanged objects are not sent again. Needs no root; BUILD names another build folder.
# shellcheck source=test/lib/both.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/both.sh"

changes() { isthmus status -j | field 'd["changes"]'; }

# usage: start_control_plane AGE LOG: the control plane that runs dies, this one takes its place
start_control_plane() {
	local socket=$dir/dp.sock
	# shellcheck disable=SC2086 # there may be none
	stop $cp $other
	other=''
	if [[ $1 != today ]]; then
		socket=$dir/relay.sock
		rm -f "$socket"
		test/lib/contract_relay.py "$1" "$socket" "$dir/dp.sock" >>"$dir/relay.log" 2>&1 &
		other=$!
	fi
	"$bin/isthmus" run -c "$dir/isthmus.yaml" --dp-socket "$socket" --metrics off --no-spawn >>"$2" 2>&1 &
	cp=$!
}

# usage: take_over AGE
take_over() {
	start_control_plane "$1" "$dir/cp.log"
	isthmus status --wait 120s >"$dir/status" || fail "$1: $(cat "$dir/status")"
}

# usage: take_over_and_change AGE PREFIX: and nothing is sent but what then changes
take_over_and_change() {
	local before
	take_over "$1"
	(($(changes) == 0)) || fail "$1: sent $(changes) changes for what was there already"
	before=$(streams offered)
	sed "s|^routes:|routes:\n  - {prefix: $2, via: 192.0.2.2}|
		s|^policers:|policers:\n  - {name: other, type: trtcm, cir: 20Gbit, pir: 40Gbit}|
		s/_policer: contract/_policer: other/" "$dir/isthmus.yaml" >"$dir/changed.yaml"
	isthmus config apply "$dir/changed.yaml" >"$dir/applied"
	grep -q "1002 sent, 0 deleted" "$dir/applied" || fail "$1: $(cat "$dir/applied")" # route, policer, all sessions
	isthmus show route | has "^${2%/*}" || fail "$1: the route is not there"
	(($(isthmus show session -j | field 'len(d)') == 1000)) || fail "$1: not 1000 sessions"
	kill -HUP "$cp"
	wait_until "$1: the file is back" file_is_back "${2%/*}"
	wait_until "$1: streams run" offered_more_than $((before + 2000))
	echo "$1: takes over, changes and takes back under traffic"
}
file_is_back() { ! isthmus show route | has "^$1"; }

# Fields that an older control plane does not know have no effect.
isthmus bench agf-symmetric --link synth --print-config | sed 's/encap: qinq/mss: none, &/' >"$dir/isthmus.yaml"
start_dp

# The one with a field more brings everything up.
take_over more
session_count_is 1000 || fail "not 1000 sessions"
isthmus stream load agf-symmetric --rate 5000 --check-every 1 >/dev/null
isthmus stream start
wait_until "streams run" offered_more_than 2000
take_over_and_change fewer 203.0.113.0/24
take_over_and_change more 198.18.9.0/24
take_over_and_change today 198.18.8.0/24
isthmus stream stop
wait_until "every packet arrived" all_arrived
echo "offered $(streams offered), received $(streams received), compared $(streams checked), wrong $(streams wrong)"
(($(streams wrong) == 0 && $(streams checked) == $(streams received))) || fail "packets are lost or wrong"

# And the one with a field fewer brings everything up, too.
stop "$dp"
take_over_nothing() { ! isthmus status >/dev/null 2>&1; }
wait_until "the loss is noticed" take_over_nothing
start_dp
take_over fewer
session_count_is 1000 || fail "not 1000 sessions"
take_over today
(($(changes) == 0)) || fail "sent $(changes) changes for what an older control plane made"

# A layout that differs within the version is detected before anything is sent, and both sides report it.
start_control_plane other "$dir/other.log"
wait_until "the control plane says which struct differs" grep -q "struct api_session is laid out otherwise" \
	"$dir/other.log"
grep -q "turned away: struct api_session is laid out otherwise" "$dir/dp.log" ||
	fail "the data plane does not say which struct differs"
echo PASS
