#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Machines that lack something, or have something already. Each row: a sentence that says what, the exit status, and
# nothing left behind (row M10): no process, no file beside those that were there.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
ulimit -c 0

ENGINE='engine: {huge_pages: "off", packet_buffers: 8192, idle_sleep: true, limits: {sessions: 64, flows: 64}}'
PORT='ports: [{name: core, driver: synth, role: core}]'
UPF="interfaces: [{name: n3, port: core, addresses: [10.0.0.1/24]}]
instances: [{name: access, interfaces: [n3], endpoints: [10.0.0.1], sources: [access]}]
pfcp: {listen: [127.0.0.1], roles: [upf], peers: [{address: 127.0.0.2}]}"
SEEN=/run/netns/seen # what is said; not in $DIR
mkdir -p "$SEEN"
chmod 777 "$DIR" "$SEEN"
rows=0

# usage: config [LINE...]: beside those of the engine and a port, which a line of the same key replaces
config() {
	local lines=("$@") key
	for line in "$ENGINE" "$PORT"; do
		key=${line%%:*}
		[[ $'\n'"$(printf '%s\n' "${lines[@]}")" == *$'\n'"$key:"* ]] || lines+=("$line")
	done
	lines+=("control: {dp_socket: $DIR/dp.sock, socket: $DIR/isthmus.sock, metrics: \"\", state: $DIR/state}")
	printf '%s\n' "${lines[@]}" >"$SEEN/isthmus.yaml"
}
files() { find "$DIR" -type f -o -type s | sort; }
none() { ! pgrep -x 'isthmus|isthmus-dp' >/dev/null; }

# What a row leaves: nothing but what was there, and what it names.
# usage: clean ROW [FILE...]
clean() {
	local row=$1 left
	wait_for 10 none || fail "$row: a process is left: $(pgrep -a 'isthmus')"
	left=$(files | sed "s|^$DIR/||" | sort | comm -13 <(printf '%s\n' "${@:2}" | sort) -)
	[[ -z $left ]] || fail "$row: left behind: $left"
	find "$DIR" -mindepth 1 -delete 2>/dev/null || true
	rows=$((rows + 1))
	echo "$row: $(tail -n 1 "$SEEN/said" | cut -c-160)"
}

# usage: says ROW SENTENCE FILE
says() { has -E "$2" <"$3" || fail "$1: it does not say \"$2\": $(cat "$3")"; }

# A command that ends by itself.
# usage: ends ROW STATUS SENTENCE COMMAND...
ends() {
	local status=0
	timeout 120 "${@:4}" >"$SEEN/said" 2>&1 || status=$?
	((status == $2)) || fail "$1: exit status $status: $(cat "$SEEN/said")"
	says "$1" "$3" "$SEEN/said"
}

# A gateway, whether its data plane serves or not. `isthmus status` ends with this exit status. It, or the log, has the
# sentence.
# usage: gateway ROW STATUS SENTENCE [WRAPPER...]
settled() {
	isthmus status -j >"$SEEN/status.json" 2>/dev/null || true # it fails unless both are ready
	[[ -s $SEEN/status.json ]] && jq -e '.dp_ended.times > 0 or .data_plane != "away"' "$SEEN/status.json"
}
gateway() {
	local status=0 pid
	"${@:4}" "$BIN/isthmus" run -c "$SEEN/isthmus.yaml" --dp-binary "${DP:-$BIN/isthmus-dp}" >"$SEEN/log" 2>&1 &
	pid=$!
	wait_for 120 settled || fail "$1: $(cat "$SEEN/log")"
	isthmus status >"$SEEN/said" 2>&1 || status=$?
	((status == $2)) || fail "$1: status ends with $status: $(cat "$SEEN/said" "$SEEN/log")"
	cat "$SEEN/log" "$SEEN/said" >"$SEEN/all"
	says "$1" "$3" "$SEEN/all"
	kill -INT "$pid"
	wait "$pid" || fail "$1: SIGINT ends it with $?"
}

bare=(setpriv --reuid "$UNIT_USER" --regid "$UNIT_USER" --clear-groups --bounding-set -all)
while IFS='|' read -r driver need; do
	config "ports: [{name: core, driver: $driver, device: lo, role: core}]"
	gateway "no $need" 1 "last error.*port core: $driver needs $need, which this process has not" "${bare[@]}"
	clean "no $need"
done <<-'EOF2'
	net_af_packet|CAP_NET_RAW
	net_tap|CAP_NET_ADMIN
EOF2

mkdir "$SEEN/empty"
mount --bind "$SEEN/empty" /sys/kernel/mm/hugepages
config "${ENGINE/\"off\"/\"on\"}"
gateway "no huge pages" 1 "last words.*huge pages are asked for, and none is free: sysctl vm.nr_hugepages="
clean "no huge pages"
ends "no huge pages, alone" 1 "isthmus-dp: huge pages are asked for" \
	"$BIN/isthmus-dp" --socket "$DIR/dp.sock" --huge yes
clean "no huge pages, alone"
umount /sys/kernel/mm/hugepages

printf '#!/bin/sh\nexec "%s" "$@" --memory 64\n' "$BIN/isthmus-dp" >"$SEEN/small-dp"
chmod +x "$SEEN/small-dp"
config "${ENGINE/8192/65536}"
DP=$SEEN/small-dp gateway "too little memory" 1 "the engine does not start: no memory for 65536 packet buffers"
clean "too little memory"
ends "EAL's memory" 1 "DPDK does not start" "$BIN/isthmus-dp" --socket "$DIR/dp.sock" --huge no --memory 4000000000
clean "EAL's memory"

# usage: in_cgroup CONTROLLER SETTING=VALUE...: makes one, where this machine has them; false: it has not
GROUP=/sys/fs/cgroup group=
leave() { # a cgroup does not end with this script's namespaces
	local status=$?
	set +e
	trap - ERR
	if [[ -d $group ]]; then
		kill -9 -1
		wait_for 10 rmdir "$group"
	fi
	(exit "$status")
	finish
}
trap leave EXIT
in_cgroup() {
	local set
	group=$GROUP/$1/isthmus-test-$$-$RANDOM
	mkdir "$group" 2>/dev/null || return 1
	for set in "${@:2}"; do
		echo "${set#*=}" >"$group/${set%%=*}" || {
			rmdir "$group"
			return 1
		}
	done
}
# shellcheck disable=SC2016
inside=(sh -c 'echo 0 >"$0/tasks" && exec "$@"')
if [[ -d $GROUP/cpuset ]] && in_cgroup cpuset cpuset.cpus=0 cpuset.mems=0; then
	config "engine: {huge_pages: \"off\", packet_buffers: 8192, workers: 2, cpus: [0, 1], idle_sleep: true,
  limits: {sessions: 64, flows: 64}}"
	gateway "a cpuset of one" 1 "worker 1 may not run on CPU 1: it is not there, or not in the cpuset" \
		"${inside[@]}" "$group"
	wait_for 10 rmdir "$group"
	clean "a cpuset of one"
else
	echo "not tried: a cpuset of one (no cgroup of version 1 for it)"
fi
if [[ -d $GROUP/memory ]] && in_cgroup memory memory.limit_in_bytes=160M; then
	config "engine: {huge_pages: \"off\", packet_buffers: 262144, limits: {sessions: 64, flows: 64}}"
	gateway "a cgroup with too little memory" 1 \
		"no memory for 262144 packet buffers .*; the memory limit of its cgroup is 160 MB" \
		"${inside[@]}" "$group"
	wait_for 10 rmdir "$group"
	clean "a cgroup with too little memory"
else
	echo "not tried: a cgroup with too little memory (no cgroup of version 1 for it)"
fi

# No network card: DPDK would try it.
for device in /sys/bus/pci/devices/*; do
	[[ -e $device/class && $(<"$device/class") != 0x02* ]] || continue
	driver=$(basename "$(readlink "$device/driver" || echo none)")
	config "ports: [{name: core, driver: pci, device: \"${device##*/}\", role: core}]"
	gateway "a device of another driver" 1 \
		"PCI device ${device##*/} cannot be opened, its driver in the kernel is $driver"
	clean "a device of another driver"
	break
done

while IFS='|' read -r row options sentence; do
	config "$UPF"
	mkdir "$DIR/state"
	mount -t tmpfs -o "$options" tmpfs "$DIR/state"
	[[ $options == ro* ]] || head -c 100000 /dev/zero 2>/dev/null >"$DIR/state/full" || true
	ends "$row" 1 "$sentence" "$BIN/isthmus" run -c "$SEEN/isthmus.yaml"
	umount "$DIR/state"
	clean "$row"
done <<-'EOF2'
	a read-only volume|ro,size=64k|nothing can be kept in .*/state: read-only file system
	a full volume|size=16k|.*no space left on device
EOF2

config "$UPF"
mkdir "$DIR/state"
isthmus store verify "$TEST_ROOT/README.md" >"$SEEN/said" 2>&1 && fail "a store of anything"
python3 - "$DIR/state/sessions.db" <<-'EOF2'
	import struct, sys
	crc = 0xffffffff
	head = b"isthmus2" + struct.pack("<Q", 1700000000) + bytes(40)
	for octet in head:
	    crc ^= octet
	    for _ in range(8):
	        crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
	open(sys.argv[1], "wb").write(head + struct.pack("<I", crc ^ 0xffffffff) + bytes(4))
EOF2
cp "$DIR/state/sessions.db" "$SEEN/old.db"
gateway "an old store" 0 "moved aside.*the file is of another version: .*isthmus2"
cmp "$SEEN/old.db" "$DIR/state/sessions.db.bad" || fail "an old store: it is not kept"
clean "an old store" state/sessions.db.bad state/sessions.db state/audit.log

config "$UPF"
mkdir "$DIR/state"
touch "$DIR/state/restore.unfinished"
ends "an interrupted restore" 1 "a restore did not end, and its files are of two times: isthmus restore --force again" \
	"$BIN/isthmus" run -c "$SEEN/isthmus.yaml"
clean "an interrupted restore" state/restore.unfinished

# Two of one: the second ends, the first goes on.
config
"$BIN/isthmus" run -c "$SEEN/isthmus.yaml" >"$SEEN/log" 2>&1 &
first=$!
isthmus status --wait 120s >/dev/null || fail "the first: $(cat "$SEEN/log")"
before=$(files)
sed "s|, state: [^}]*||" "$SEEN/isthmus.yaml" >"$SEEN/socket.yaml"
sed "s|$DIR/isthmus.sock|$DIR/second.sock|" "$SEEN/isthmus.yaml" >"$SEEN/state.yaml"
while IFS='|' read -r row sentence command; do
	# shellcheck disable=SC2086
	ends "$row" 1 "$sentence" env -u ISTHMUS_SOCKET $command
	[[ $(files) == "$before" ]] || fail "$row: $(files)"
	isthmus status >/dev/null || fail "$row: the first does not go on"
	rows=$((rows + 1))
	echo "$row: $(tail -n 1 "$SEEN/said")"
done <<-EOF2
	two with one socket|isthmus.sock: another control plane is running there|$BIN/isthmus run -c $SEEN/socket.yaml
	two with one state folder|control.state: $DIR/state: |$BIN/isthmus run -c $SEEN/state.yaml
	two data planes|another data plane answers on $DIR/dp.sock|$BIN/isthmus-dp --socket $DIR/dp.sock --huge no
EOF2
kill -INT "$first"
wait "$first"
clean "two of one"

# A processor without SSE4.2: the program that chooses says so (smoke/variant has the others).
if command -v qemu-x86_64-static >/dev/null && command -v cc >/dev/null && [[ $(uname -m) == x86_64 ]]; then
	cc -D_GNU_SOURCE -o "$SEEN/isthmus-dp" "$TEST_ROOT/dataplane/variant.c"
	ends "no SSE4.2" 1 "this processor has not what DPDK needs .*SSE4.2" env -u ISTHMUS_DP_CPU \
		qemu-x86_64-static -cpu core2duo "$SEEN/isthmus-dp"
	clean "no SSE4.2"
else
	echo "not tried: no SSE4.2 (qemu-x86_64-static)"
fi
echo "PASS: $rows rows"
