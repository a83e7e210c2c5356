#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: compiles three data planes; judges memory and the time of a start.
# The image of ./dev image, or IMAGE=FILE. Its size and contents; two are the same octet by octet. By podman and runc
# with a read-only root: a container for each process, all traffic, either is killed. Two gateways with memif between
# them carry the tester's traffic. Limits of memory and CPUs. A replay without root.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"

build_image() (
	cd "$TEST_ROOT"
	export ROOT=$TEST_ROOT
	for part in common setup build package image; do
		# shellcheck source=/dev/null
		. "scripts/$part.sh"
	done
	use_go
	build_packaged && make_image "$1" && make_image "$1.again" && cmp "$1" "$1.again" && rm "$1.again"
)

if [[ ${IN_OWN_WORLD:-} != 1 ]]; then
	for tool in podman runc jq; do
		command -v "$tool" >/dev/null || skip "needs $tool"
	done
	if [[ -z ${IMAGE:-} ]]; then
		export IMAGE=$TEST_ROOT/build/image-test.oci.tar
		build_image "$IMAGE" || fail "no image, or another one the second time"
		echo "ok: the same octets twice"
	fi
	IMAGE=$(realpath "$IMAGE")
fi
own_namespaces "$@"
# shellcheck source=test/lib/traffic.sh
. "$TEST_ROOT/test/lib/traffic.sh"

# Limits of another user's process need CAP_SYS_RESOURCE, which not every machine gives its root.
RUNTIME=$TEST_ROOT/test/lib/runc.sh
(ulimit -Hn $(($(ulimit -Hn) + 1))) 2>/dev/null && RUNTIME=$(command -v runc)
podman() {
	command podman --root "$DIR/storage" --runroot "$DIR/runroot" --tmpdir "$DIR/tmpdir" --storage-driver vfs \
		--events-backend none --cgroup-manager cgroupfs --runtime "$RUNTIME" "$@"
}
USER_OF_IMAGE=65532:0

# usage: container NAME FOLDER [OPTION...] IMAGE [WORD...]: $DIR/FOLDER is its /run/isthmus
container() {
	local name=$1 folder=$2
	shift 2
	volume "$folder"
	podman run -d --name "$name" --read-only --cap-drop all -v "$DIR/conf:/etc/isthmus:ro" \
		-v "$DIR/$folder:/run/isthmus" "$@" >/dev/null || fail "$name does not start"
}
volume() { mkdir -p "$DIR/$1" && chown "$USER_OF_IMAGE" "$DIR/$1"; }
# usage: process CONTAINER: its id here; field_of FIELD PID: of /proc/PID/status
process() { podman inspect -f '{{.State.Pid}}' "$1"; }
field_of() { awk -v name="$1:" '$1 == name { print $2 }' "/proc/$2/status"; }
log_of() { podman logs "$1" 2>&1; }
ready() { isthmus --socket "$DIR/$1/isthmus.sock" status --wait 120s >/dev/null || fail "$1: $(log_of "$1")"; }
# A container ends by itself. usage: ends STATUS TEXT NAME
ends() {
	local status
	status=$(podman wait "$3")
	((status == $1)) || fail "$3 ends with $status, not $1: $(podman logs "$3" 2>&1)"
	podman logs "$3" 2>&1 | has "$2" || fail "$3 does not say \"$2\": $(podman logs "$3" 2>&1)"
	podman rm -f "$3" >/dev/null
}
# SIGTERM, in good order. usage: ended NAME...
ended() {
	local name
	for name; do
		podman stop -t 60 "$name" >/dev/null
		[[ $(podman inspect -f '{{.State.ExitCode}}' "$name") == 0 ]] || fail "$name: $(log_of "$name")"
		podman rm -f "$name" >/dev/null
	done
}
mkdir "$DIR/conf"

# ---- what it is
layer=$(tar -xOf "$IMAGE" manifest.json | jq -r '.[0].Layers[0]')
tar -xOf "$IMAGE" "$layer" >"$DIR/layer.tar.gz"
unpacked=$(zcat "$DIR/layer.tar.gz" | wc -c)
((unpacked < 60000000)) || fail "it has $unpacked octets"
tar -tf "$DIR/layer.tar.gz" >"$DIR/names"
! grep -E '(^|/)(ba|da|z)?sh$|busybox|apt|dpkg' "$DIR/names" || fail "it has a shell"
for name in LICENSE NOTICE isthmus.spdx.json; do
	grep -qxF "usr/share/doc/isthmus/$name" "$DIR/names" || fail "it has no $name"
done
grep -qx 'usr/share/doc/libc6/copyright' "$DIR/names" || fail "it has no licence of the C library"
tar -xOf "$DIR/layer.tar.gz" usr/share/doc/isthmus/isthmus.spdx.json >"$DIR/bill.json"
jq -e '.packages | map(.name) |
	(contains(["isthmus", "isthmus-dp", "libc6"]) and any(startswith("librte-net-memif")))' \
	"$DIR/bill.json" >/dev/null ||
	fail "its bill is not whole"
podman load -q -i "$IMAGE"
podman pull -q "oci-archive:$IMAGE" >/dev/null || fail "it is no OCI archive"
NAME=$(tar -xOf "$IMAGE" manifest.json | jq -r '.[0].RepoTags[0]')
# shellcheck disable=SC2016 # jq's variable
podman inspect "$NAME" | jq -e --arg user "$USER_OF_IMAGE" '.[0].Config | .User == $user and
	.Labels["org.opencontainers.image.licenses"] == "Apache-2.0" and .Entrypoint == ["isthmus"]' >/dev/null ||
	fail "its configuration: $(podman inspect "$NAME")"
version=$(podman run --rm --read-only --cap-drop all --network none "$NAME" --version)
[[ $version == "isthmus version "* ]] || fail "it says $version"
echo "ok: $unpacked octets, $(wc -l <"$DIR/names") files, $version"

# ---- a container for each process, packet sockets, all traffic
veth_fixture
cp "$TEST_ROOT/test/e2e/agf_veth.yaml" "$DIR/conf/isthmus.yaml"
export ISTHMUS_SOCKET=$DIR/shared/isthmus.sock
container dp shared --network ns:/run/netns/gateway --cap-add NET_RAW --cap-add NET_ADMIN \
	--entrypoint isthmus-dp "$NAME" --socket /run/isthmus/dp.sock
container control shared --network ns:/run/netns/gateway "$NAME" run --no-spawn -c /etc/isthmus/isthmus.yaml
ready shared
[[ $(field_of CapEff "$(process dp)") == 0000000000003000 ]] || fail "capabilities of dp"
[[ $(field_of CapEff "$(process control)") == 0000000000000000 ]] || fail "capabilities of control"
all_traffic home0 upf0
podman kill -s KILL control >/dev/null
podman wait control >/dev/null
wait_for 10 ping -c 1 -W 1 10.30.0.1 || fail "without a control plane it does not forward"
podman start control >/dev/null
ready shared
podman kill -s KILL dp >/dev/null
podman wait dp >/dev/null
podman start dp >/dev/null
wait_for 60 ping -c 1 -W 1 10.30.0.1
ready shared
all_traffic home0 upf0
ended control dp
echo "ok: two containers, either was killed and came back"

# ---- two gateways with memif between them: tester, relay, gateway
mkdir "$DIR/memif"
chmod 777 "$DIR/memif"
sed "s|SOCKETS|/memif|; s/LEFT/0x103e/; s/RIGHT/0x103f/" "$TEST_ROOT/test/e2e/traffic_agf.yaml" \
	>"$DIR/conf/gateway.yaml"
cat >"$DIR/conf/relay.yaml" <<-YAML
	engine: {huge_pages: "off", packet_buffers: 16384, idle_sleep: true}
	ports:
	  - {name: homes, driver: net_memif, device: /memif/homes.sock, args: "role=server", role: access,
	     xconnect: access}
	  - {name: access, driver: net_memif, device: /memif/access.sock, role: access, xconnect: homes}
	  - {name: routers, driver: net_memif, device: /memif/routers.sock, args: "role=server", role: core, mtu: 1600,
	     xconnect: core}
	  - {name: core, driver: net_memif, device: /memif/core.sock, role: core, mtu: 1600, xconnect: routers}
YAML
for name in gateway relay; do
	container "$name" "$name" --network none -v "$DIR/memif:/memif" "$NAME" run --stop-both \
		-c "/etc/isthmus/$name.yaml"
	ready "$name"
done
{
	profile_head homes | sed "s|$DIR/access|$DIR/memif/homes|; s|$DIR/core|$DIR/memif/routers|"
	homes tagged 64 02:01:00:00:00:00 100 10.64.0.0 0x1000 0x2000 9 "{128: 7, 650: 2, 1400: 1}"
	homes ppp 64 02:02:00:00:00:00 200 10.64.1.0 0x1100 0x2100 5 650 "pppoe: {session: {base: 1}}"
	profile_run 2 "rate: 2kpps"
} >"$DIR/homes.yaml"
run_tester 0 homes
result_says homes 'r.complete' 'faults == {}' 'len(r.trials[-1].streams) == 4' \
	'all(s.sent == s.received > 100 for s in r.trials[-1].streams)'
ended relay gateway
echo "ok: memif between two containers"

# ---- limits of memory and CPUs, memory of an idle gateway, its start
cat >"$DIR/conf/isthmus.yaml" <<-YAML
	engine: {packet_buffers: 8192, huge_pages: "off", idle_sleep: true, limits: {sessions: 1024, flows: 4096}}
	control: {metrics: "off"}
	ports:
	  - {name: n3, driver: net_memif, device: /run/isthmus/n3.sock, args: "role=server", role: core}
	interfaces:
	  - {name: n3, port: n3, addresses: [192.0.2.1/24]}
YAML
cpu=$(awk '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status)
cpu=${cpu%%[-,]*}
# usage: seconds TIME: of the day
seconds() { date -d "$1" +%s.%N; }
best=99
for _ in 1 2 3 4; do
	container limited limited --network none --memory 160m --cpuset-cpus "$cpu" "$NAME"
	ready limited
	podman logs limited >"$DIR/limited.log" 2>&1
	begun=$(podman inspect -f '{{.State.StartedAt.Format "2006-01-02T15:04:05.999999999Z07:00"}}' limited)
	begun=$(seconds "$begun")
	step=$(seconds "$(grep -m 1 'data plane in step' "$DIR/limited.log" | grep -o 'time=[^ ]*' | cut -c 6-)")
	took=$(awk -v a="$begun" -v b="$step" 'BEGIN { print b - a }')
	best=$(awk -v a="$best" -v b="$took" 'BEGIN { print a < b ? a : b }')
	control=$(process limited)
	mapfile -t of < <(pgrep -P "$control")
	resident=$(($(field_of VmRSS "$control") + $(field_of VmRSS "${of[0]}")))
	[[ $(field_of Cpus_allowed_list "${of[0]}") == "$cpu" ]] || fail "the cpuset is not in force"
	has 'takes up to 96 MB of memory .*: the limit of its cgroup is 160 MB' <"$DIR/limited.log" ||
		fail "$(cat "$DIR/limited.log")"
	ended limited
done
echo "ok: ready after $best s, $resident KB resident"
awk -v best="$best" 'BEGIN { exit !(best <= 0.5) }' || fail "the best of four starts takes $best s"
((resident <= 80 << 10)) || fail "$resident KB are resident"

container small small --network none --memory 64m --entrypoint isthmus-dp "$NAME"
ends 1 'the memory limit of this cgroup is 64 MB, at least 96 MB are needed' small
sed -i 's/engine: {/engine: {cpus: [1000], /' "$DIR/conf/isthmus.yaml"
container pinned pinned --network none "$NAME"
wait_for 60 eval 'podman logs pinned 2>&1 | has "worker 0 may not run on CPU 1000"' || fail "$(podman logs pinned 2>&1)"
ended pinned
container absent absent --network none "$NAME" run -c /etc/isthmus/absent.yaml
ends 1 'absent.yaml: no such file or directory' absent
echo "ok: limits"

# ---- as a user without rights: a check, and a replay with the octets that it has outside
cp -r "$TEST_ROOT/test/golden/traffic" "$TEST_ROOT/test/golden/config.yaml" "$DIR/conf"
mkdir -p "$DIR/alone/rootfs" "$DIR/alone/state" "$DIR/out"
chown -R "$UNIT_USER:$UNIT_USER" "$DIR/alone" "$DIR/out"
chmod -R a+rX "$DIR/conf"
as_user() { (cd "$DIR/alone" && setpriv --reuid="$UNIT_USER" --regid="$UNIT_USER" --clear-groups "$@"); }
as_user tar -xzf "$DIR/layer.tar.gz" -C rootfs --no-same-owner
as_user runc spec --rootless
# usage: alone WORD...
alone() {
	local words
	words=$(printf '%s\n' "$@" | jq -R . | jq -s .)
	# shellcheck disable=SC2016 # jq's variables
	as_user jq --arg conf "$DIR/conf" --arg out "$DIR/out" --argjson words "$words" '.root.readonly = true |
		.process.args = $words | .process.terminal = false | del(.process.rlimits) |
		.process.env = ["PATH=/usr/bin", "RUNTIME_DIRECTORY=/run/isthmus"] |
		.mounts += [{destination: "/etc/isthmus", type: "bind", source: $conf, options: ["bind", "ro"]},
			{destination: "/var/lib/isthmus", type: "bind", source: $out, options: ["bind", "rw"]},
			{destination: "/run/isthmus", type: "tmpfs", source: "tmpfs"},
			{destination: "/tmp", type: "tmpfs", source: "tmpfs"}]' \
		config.json >"$DIR/alone.json"
	cp "$DIR/alone.json" "$DIR/alone/config.json"
	as_user runc --root "$DIR/alone/state" run "alone-$$"
}
if as_user unshare -Ur true 2>/dev/null; then
	alone isthmus config check /etc/isthmus/gateway.yaml
	alone isthmus replay -c /etc/isthmus/config.yaml --in access=/etc/isthmus/traffic/in-access.pcap \
		--in core=/etc/isthmus/traffic/in-core.pcap --out access=/var/lib/isthmus/access.pcap \
		--out core=/var/lib/isthmus/core.pcap
	for name in access core; do
		cmp "$DIR/out/$name.pcap" "$TEST_ROOT/test/golden/traffic/expected-$name.pcap"
	done
	echo "ok: without root"
else
	echo "note: this kernel gives users no namespaces"
fi
echo PASS
