# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the tests of the lab: a lab in namespaces of its own, programs in its namespaces, and the check that nothing
# is left. Sourced after net.sh and own_namespaces.

LAB=$DIR/lab

# The lab's own words go to a file that finish() shows.
lab() { "$BIN/isthmus" lab "$@" --dir "$LAB"; }
in_lab() { "$BIN/isthmus" lab exec --dir "$LAB" "$@"; }

# /etc/netns belongs to the machine; the test has its own.
lab_fixture() {
	mkdir -p /etc/netns
	mount -t tmpfs tmpfs /etc/netns
	local tool
	for tool in iperf3 dig curl ping; do
		command -v "$tool" >/dev/null || skip "needs $tool"
	done
}

# usage: start_lab 4g|5g [OPTION...]
start_lab() {
	rm -f "$DIR/isthmus.log" # of the lab before
	# no function: signals are for the lab, not for a shell
	"$BIN/isthmus" lab "$@" --dir "$LAB" >"$DIR/isthmus.log" 2>&1 &
	LAB_PID=$!
	wait_for 60 grep -q 'Ctrl-C ends the lab' "$DIR/isthmus.log" ||
		fail "the lab does not start: $(cat "$DIR/isthmus.log")"
}

# usage: stop_lab [SIGNAL]
stop_lab() {
	kill "-${1:-INT}" "$LAB_PID"
	wait_for 20 gone "$LAB_PID" || fail "the lab does not end"
	wait "$LAB_PID" || fail "the lab failed: $(tail -n 20 "$DIR/isthmus.log")"
	nothing_left
}

no_processes() {
	ps -eo stat=,comm= |
		awk '$1 !~ /^Z/ && $2 ~ /^(isthmus-dp|iperf3|zebra|staticd|bfdd|bgpd)$/ { left = 1 } END { exit left }'
}

# No process, namespace, interface or file of a lab.
nothing_left() {
	local left
	left=$(ip netns list | grep ilab- || true)
	[[ -z $left ]] || fail "namespaces are left: $left"
	wait_for 10 no_processes || fail "processes are left: $(ps -eo stat=,pid=,args=)"
	left=$(ip -o link show type veth)
	[[ -z $left ]] || fail "interfaces are left: $left"
	left=$(find "$LAB" -mindepth 1 ! -name lock 2>/dev/null || true)
	[[ -z $left ]] || fail "files are left: $left"
	[[ ! -e /etc/netns/ilab-ue ]] || fail "the name server's file is left"
}

# Runs jq on the output of `isthmus lab show`.
lab_show() { lab show -j | jq -e "$@"; }

# Every echo request has its answer.
# usage: no_loss NODE TARGET [OPTION...]
no_loss() {
	local node=$1 target=$2
	shift 2
	in_lab "$node" ping -q -W 3 "$@" "$target" >"$DIR/ping" 2>&1 ||
		fail "ping $* $target in $node: $(cat "$DIR/ping")"
	grep -q ' 0% packet loss' "$DIR/ping" || fail "ping $* $target in $node: $(cat "$DIR/ping")"
}

# usage: transfer OPTION... ; prints the bytes that iperf3 sent; the receiver may stop counting while the last are under
# way
transfer() {
	in_lab ue iperf3 --json --connect-timeout 5000 "$@" >"$DIR/iperf.json" ||
		fail "iperf3 $*: $(jq -r .error "$DIR/iperf.json")"
	jq -e '.end.sum_received.bytes > 0' "$DIR/iperf.json" >/dev/null || fail "iperf3 $*: nothing was received"
	jq .end.sum_sent.bytes "$DIR/iperf.json"
}

# Ordinary programs of both IP versions, in both directions.
ordinary_programs() {
	local server bytes
	for server in 198.51.100.1 2001:db8:100::1; do
		no_loss ue "$server" -c 5 -i 0.2
		# Full-size packets fit without fragments.
		no_loss ue "$server" -c 2 -i 0.2 -M "do" -s "$([[ $server == *:* ]] && echo 1452 || echo 1472)"
		# Larger ones leave as fragments, and come as fragments.
		for size in 1473 1900 8000; do
			no_loss ue "$server" -c 3 -i 0.2 -s "$size"
		done
		for how in "" -R; do
			# shellcheck disable=SC2086
			bytes=$(transfer -c "$server" -n 8M $how)
			((bytes >= 8 << 20)) || fail "iperf3 $how to $server: $bytes bytes"
		done
	done
	in_lab ue curl -sS --max-time 10 http://www.lab/ | has 'this is the server in ilab-' || fail "curl"
	bytes=$(in_lab ue curl -sS --max-time 20 -g 'http://[2001:db8:100::1]/bytes/5000000' | wc -c)
	((bytes == 5000000)) || fail "curl over IPv6 brought $bytes of 5000000 bytes"
	[[ $(in_lab ue dig +short +time=5 A www.lab) == 198.51.100.1 ]] || fail "dig A"
	[[ $(in_lab ue dig +short +time=5 +tcp @2001:db8:100::1 AAAA www.lab) == 2001:db8:100::1 ]] ||
		fail "dig AAAA over TCP and IPv6"
}

# In the place of net.sh's: the state of every function of the lab.
show_state() {
	local what socket limit
	timeout 10 "$BIN/isthmus" lab show --dir "$LAB" 2>&1 || true
	for socket in "$LAB"/*/isthmus.sock; do
		[[ -S $socket ]] || continue
		for what in total port drop session neighbour graph; do
			echo "--- $(basename "$(dirname "$socket")"): show $what"
			[[ $what == session || $what == neighbour ]] && limit=(--limit 5) || limit=()
			timeout 5 "$BIN/isthmus" --socket "$socket" show "$what" "${limit[@]}" 2>&1 |
				awk -v what="$what" 'NR == 1 || $2 > 0 || what !~ /^(drop|graph)$/' || true
		done
	done
	echo "--- logs"
	tail -n 20 "$DIR/isthmus.log" "$LAB"/*.log "$LAB"/*/*.log 2>/dev/null || true
}
