#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a container or a unit may leave a process too little of: memory, huge pages, CPUs, capabilities, devices,
# folders, sockets. Each ends in a sentence and an exit status, or in a refused configuration; nothing is broken.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

# A command ends with the status 1 and these words. usage: ends TEXT COMMAND...
ends() {
	local text=$1 status=0
	shift
	timeout 300 "$@" >"$DIR/said" 2>&1 || status=$?
	((status == 1)) || fail "exit status $status, not 1: $* said $(cat "$DIR/said")"
	has "$text" <"$DIR/said" || fail "$* does not say \"$text\": $(cat "$DIR/said")"
}
dp() { ends "$1" "$BIN/isthmus-dp" --socket "$DIR/dp.sock" "${@:2}"; }
control() { ends "$1" "$BIN/isthmus" --socket "$2" run -c "$DIR/isthmus.yaml" --no-spawn; }

# Both processes. usage: begin [COMMAND WORD...]: with less than all
begin() {
	nsenter --net=/run/netns/gateway -- "$@" "$BIN/isthmus" --socket "$DIR/isthmus.sock" run \
		-c "$DIR/isthmus.yaml" --dp-socket "$DIR/dp.sock" --spawn --stop-both >"$DIR/isthmus.log" 2>&1 &
	both=$!
}
end() {
	kill -TERM "$both"
	wait "$both" || fail "it does not end in good order: $(cat "$DIR/isthmus.log")"
}
# usage: log_says TEXT
log_says() { wait_for 60 grep -q "$1" "$DIR/isthmus.log" || fail "no \"$1\" in $(cat "$DIR/isthmus.log")"; }

# usage: config [ENGINE]
config() {
	cat >"$DIR/isthmus.yaml" <<-YAML
		engine: {huge_pages: "off", ${1:-packet_buffers: 4096}, limits: {sessions: 1024, flows: 4096}}
		control: {metrics: "off", state: $DIR/state}
		ports:
		  - {name: n3, driver: synth, role: core}
	YAML
}

# ---- huge pages
mount -t tmpfs tmpfs /sys/kernel/mm/hugepages
dp 'huge pages are asked for, and none is free' --huge yes

# ---- memory: what a container sees of its cgroup, in both versions
limit() {
	mkdir -p /sys/fs/cgroup/memory
	echo "$1" | tee /sys/fs/cgroup/memory.max >/sys/fs/cgroup/memory/memory.limit_in_bytes
}
mount -t tmpfs tmpfs /sys/fs/cgroup
limit $((64 << 20))
dp 'the memory limit of this cgroup is 64 MB, at least 96 MB are needed'
limit $((128 << 20))
config 'packet_buffers: 65536'
begin
log_says 'takes up to 64 MB of memory for packets and tables: the limit of its cgroup is 128 MB'
log_says 'no memory for 65536 packet buffers of 2[0-9]* bytes: .*; the memory limit of its cgroup is 128 MB'
end
umount /sys/fs/cgroup

# ---- a file system that is read-only
config
mkdir -p "$DIR/volume" "$DIR/state"
mount -t tmpfs -o ro tmpfs "$DIR/volume"
dp "cannot listen on $DIR/volume/dp.sock: Read-only file system" --socket "$DIR/volume/dp.sock"
control "$DIR/volume/isthmus.sock: bind: read-only file system" "$DIR/volume/isthmus.sock"
mount -t tmpfs -o ro tmpfs "$DIR/state"
control "control.state: nothing can be kept in $DIR/state: read-only file system" "$DIR/isthmus.sock"
umount "$DIR/state"

# ---- without a capability, with sockets that it has: what another asks for is refused, and it goes on
ip link add n6 netns gateway type veth peer name far
begin setpriv --bounding-set=-all --inh-caps=-all
isthmus status --wait 120s >/dev/null || fail "it does not start: $(cat "$DIR/isthmus.log")"
dp "another data plane answers on $DIR/dp.sock"
control "control.state: $DIR/state: another process uses it" "$DIR/isthmus.sock"

{ cat "$DIR/isthmus.yaml" && echo '  - {name: n6, driver: net_af_packet, device: n6, role: core}'; } >"$DIR/next.yaml"
ends 'port n6: net_af_packet needs CAP_NET_RAW, which this process has not' \
	"$BIN/isthmus" config apply "$DIR/next.yaml"
isthmus status | has 'data plane     ready' || fail "it is not ready any more: $(isthmus status)"
end
echo '  - {name: n6, driver: net_tap, device: tap6, role: core}' >>"$DIR/isthmus.yaml"
begin setpriv --bounding-set=-all --inh-caps=-all
log_says 'port n6: net_tap needs CAP_NET_ADMIN, which this process has not'
end
mount -t tmpfs tmpfs /dev/net
begin
log_says 'port n6: net_tap does not take '
end
umount /dev/net

# ---- a CPU that is not there
config 'packet_buffers: 4096, cpus: [1000]'
begin
log_says 'engine.cpus: worker 0 may not run on CPU 1000: it is not there, or not in the cpuset'
end
echo PASS
