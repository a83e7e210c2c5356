# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by tests with packets: namespaces of their own (network, mount and process namespaces that end with the test),
# and the gateway inside. Also waiting for events, and a dump of the state when a test fails.
#
# usage: . test/lib/net.sh; own_namespaces "$@"; then make ports, write $DIR/isthmus.yaml, start_gateway, …, finish.
set -Eeuo pipefail
ends_at() { echo "FAIL: ${0##*/} ends at its line ${BASH_LINENO[-2]}: $1" >&2; }
trap 'ends_at "$BASH_COMMAND"' ERR

TEST_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BIN=$(realpath "${BUILD:-$TEST_ROOT/build}")
# shellcheck source=test/lib/has.sh
. "$TEST_ROOT/test/lib/has.sh"
PYTHON=/usr/bin/python3 # Debian's, which has scapy
export BIN
export PYTHONPATH=$TEST_ROOT/test/lib PYTHONDONTWRITEBYTECODE=1
DIR=/mnt # a memory file system of this test's own
export DIR

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

skip() {
	echo "skip: $*"
	exit 77
}

# Makes mounts private. In a chroot whose root is no mount point the root cannot be made private. So it is bound below a
# memory file system on /proc, which is a mount point, and the script starts again in there.
own_mounts() {
	mount --make-rprivate / 2>/dev/null && return
	mount --make-rprivate /proc || fail "a chroot needs a /proc: mount -t proc proc /proc"
	mount -t tmpfs tmpfs /proc
	mkdir /proc/root
	mount --rbind / /proc/root
	mount --make-rprivate /proc/root
	umount /proc/root/proc # that memory file system once more
	export BUILD=$BIN
	exec chroot /proc/root "$0" "$@"
}

# Starts the calling script again as the first process of new namespaces. When it ends, the kernel ends all its children
# and takes away its interfaces and files.
own_namespaces() {
	if [[ ${IN_OWN_WORLD:-} != 1 ]]; then
		((EUID == 0)) || skip "needs root for network namespaces"
		[[ -x $BIN/isthmus && -x $BIN/isthmus-dp ]] || fail "no isthmus and isthmus-dp in $BIN"
		export IN_OWN_WORLD=1
		exec unshare --net --mount --pid --fork --kill-child --propagation unchanged -- "$(realpath "$0")" "$@"
	fi
	own_mounts "$@"
	mount -t proc proc /proc
	mount -t tmpfs tmpfs "$DIR"
	mount -t tmpfs tmpfs /run/netns 2>/dev/null || {
		mkdir -p /run/netns
		mount -t tmpfs tmpfs /run/netns
	}
	export ISTHMUS_SOCKET=$DIR/isthmus.sock
	ip netns add gateway
	ip link set lo up
	in_gateway ip link set lo up
	trap finish EXIT
	# One process must survive to end the others when time runs out, and to print what it saw.
	trap 'echo "out of time" >&2; exit 1' TERM
}

in_gateway() { nsenter --net=/run/netns/gateway -- "$@"; }
isthmus() { "$BIN/isthmus" "$@"; }

# Runs a command until it succeeds, ten times in a second. The limit is an idle machine's: a busy one gets ten times
# as much.
# usage: wait_for SECONDS COMMAND...
wait_for() {
	local tries=$(($1 * 100))
	shift
	while ! "$@" >/dev/null 2>&1; do
		((tries-- > 0)) || {
			echo "waited in vain for: $*" >&2
			return 1
		}
		sleep 0.1
	done
}

# Lets time pass in which something must not change.
wait_a_second() { sleep 1; }

# A veth pair: one end for the gateway, without an address and silent; the other end here.
# usage: veth_pair GATEWAY_END OUR_END
veth_pair() {
	ip link add "$1" netns gateway type veth peer name "$2"
	in_gateway sysctl -qw "net.ipv6.conf.$1.disable_ipv6=1"
	sysctl -qw "net.ipv6.conf.$2.disable_ipv6=1"
	# The sender makes checksums, since there is no card to offload them to.
	ethtool -K "$2" tx off rx off tso off gso off gro off >/dev/null 2>&1 || true
	in_gateway ethtool -K "$1" tx off rx off tso off gso off gro off >/dev/null 2>&1 || true
	in_gateway ip link set "$1" up
	ip link set "$2" up
}

# An interface of ours on the core side, with the kernel as a neighbour that answers ARP and ND.
# usage: kernel_address INTERFACE ADDRESS...
kernel_address() {
	local interface=$1 address
	shift
	sysctl -qw "net.ipv6.conf.$interface.accept_dad=0" "net.ipv6.conf.$interface.router_solicitations=0" \
		"net.ipv6.conf.$interface.disable_ipv6=0"
	for address in "$@"; do
		ip addr add "$address" dev "$interface"
	done
}

# The networks of deploy/examples/bng.yaml: core side, and both sides.
core_link() {
	veth_pair veth-core core0
	kernel_address core0 10.60.0.2/24 fd00:60::2/64
	ip route add 100.64.0.0/16 via 10.60.0.1
	ip -6 route add 2001:db8:100::/40 via fd00:60::1
	ip -6 route add 2001:db8:200::/40 via fd00:60::1
}
bng_links() {
	veth_pair veth-access home0
	core_link
}

# Starts control plane and data plane with $DIR/isthmus.yaml and waits until both are in step. UNITS=1: each with what
# its unit leaves it, and a refused system call ends the process, and so the test. DROP_IN=NAME: one drop-in besides.
# usage: start_gateway [NAME]: of $DIR/NAME.yaml, with the sockets $DIR/NAME.sock and $DIR/NAME-dp.sock
GATEWAY_OPTIONS=(--metrics=off) # a script may have others
start_gateway() {
	local name=${1:-isthmus} dp_socket=$DIR/dp.sock run
	[[ $name == isthmus ]] || dp_socket=$DIR/$name-dp.sock
	run=("$BIN/isthmus" --socket "$DIR/$name.sock" run -c "$DIR/$name.yaml" --dp-socket "$dp_socket"
		"${GATEWAY_OPTIONS[@]}")
	if [[ ${UNITS:-} == 1 ]]; then
		dp_unit "$dp_socket" >>"$DIR/$name.log" 2>&1
		in_gateway "$UNIT" isthmus "${run[@]}" --no-spawn >>"$DIR/$name.log" 2>&1 &
	else
		in_gateway "${run[@]}" --spawn >>"$DIR/$name.log" 2>&1 &
	fi
	isthmus --socket "$DIR/$name.sock" status --wait 120s >"$DIR/status" 2>&1 ||
		fail "$name does not start: $(cat "$DIR/status" "$DIR/$name.log")"
}

# The output of both processes, their libraries and drivers.
log_has_form() {
	! grep -vE '^(time=|isthmus-dp: )' "$DIR"/*.log || fail "lines of another form"
}

# usage: unit.py UNIT COMMAND...
UNIT=$TEST_ROOT/test/lib/unit.py
UNIT_USER=64999 # an unused id
export UNIT_USER XDG_RUNTIME_DIR=$DIR # DPDK's folder; the unit has a /tmp of its own

# The data plane with Restart=always, unless it runs. It stays away when the filter ended it.
# usage: dp_unit SOCKET
declare -A DP_UNITS=()
dp_unit() {
	local status=0
	[[ -z ${DP_UNITS[$1]:-} ]] || return 0
	DP_UNITS[$1]=1
	chown "$UNIT_USER" "$DIR"
	while ((status != 159)); do
		status=0
		in_gateway "$UNIT" isthmus-dp "$BIN/isthmus-dp" --socket "$1" || status=$?
	done &
}

# Ends both in good order, the control plane first, which would start the other again. Capture files stay.
stop_gateway() {
	local pid
	for pid in $(isthmus status -j | jq '.pid, .dp_pid'); do
		kill -TERM "$pid"
		wait_for 10 gone "$pid"
	done
}

# Not there any more, or only its exit status (this script is the init of its namespace): all its threads have ended,
# and with the last one its sockets.
gone() {
	local threads=("/proc/$1/task/"*)
	((${#threads[@]} <= 1)) && ! grep -q '^State:.[^Z]' "/proc/$1/status"
}

show_state() {
	local what
	for what in total port drop punt neighbour session worker graph; do
		echo "--- show $what"
		# Rows without packets are omitted.
		timeout 5 "$BIN/isthmus" show "$what" 2>&1 | awk -v what="$what" \
			'NR == 1 || $2 > 0 || what !~ /^(drop|punt|graph)$/' || true
	done
	! declare -F vm_log >/dev/null || vm_log
	echo "--- log"
	tail -n 40 "$DIR/isthmus.log" 2>/dev/null || true
	for what in "$DIR"/*.pcap; do
		[[ -s $what ]] || continue
		echo "--- last frames of $(basename "$what")"
		timeout 20 tshark -r "$what" 2>/dev/null | tail -n 12 || true
	done
}

# Runs at any end.
finish() {
	local status=$?
	trap - EXIT
	if ((status != 0 && status != 77)); then
		show_state
		if [[ -n ${ARTIFACTS:-} ]]; then
			mkdir -p "$ARTIFACTS"
			cp "$DIR"/*.pcap "$DIR"/*.yaml "$DIR"/*.log "$ARTIFACTS" 2>/dev/null || true
		fi
	fi
	exit "$status"
}

# ---- one port driver or setting: the gateway of agf_veth.yaml with another line, and all its traffic through it

# Writes $DIR/isthmus.yaml: test/e2e/agf_veth.yaml changed by a sed script.
use_config() {
	sed "$1" "$TEST_ROOT/test/e2e/agf_veth.yaml" >"$DIR/isthmus.yaml"
	diff "$TEST_ROOT/test/e2e/agf_veth.yaml" "$DIR/isthmus.yaml" | sed -n 's/^>/    /p' || true
}

veth_fixture() {
	veth_pair veth-access home0
	veth_pair veth-core upf0
	kernel_address upf0 10.30.0.2/24 fd00:30::2/64
}

# veth_fixture() with a second data plane in between, for drivers that have two ends: it relays (xconnect) between the
# veth pairs and two ports of its own. Its control plane's socket is $DIR/relay.sock.
# usage: relay_fixture ACCESS_PORT CORE_PORT: driver and settings of these, as YAML
relay_fixture() {
	local access=$1 core=$2
	cat >"$DIR/relay.yaml" <<-EOF
		engine: {huge_pages: "off", packet_buffers: 8192, idle_sleep: true}
		ports:
		  - {name: home, driver: net_af_packet, device: veth-access, role: access, promiscuous: true,
		     xconnect: access}
		  - {name: access, $access, role: access, xconnect: home}
		  - {name: upf, driver: net_af_packet, device: veth-core, role: core, promiscuous: true, xconnect: core}
		  - {name: core, $core, role: core, xconnect: upf}
	EOF
	veth_fixture
	start_gateway relay
}

# Every kind of packet in both directions, compared field by field.
# usage: all_traffic HOME_INTERFACE UPF_INTERFACE
all_traffic() {
	# Now each knows the other's MAC address.
	wait_for 10 ping -c 1 -W 1 10.30.0.1
	wait_for 10 ping -6 -c 1 -W 1 fd00:30::1
	"$PYTHON" "$TEST_ROOT/test/e2e/agf_veth.py" "$@"
}

# ---- idle workers ----------------------------------------------------------------------------------------------------

# A sleeping worker walks a few dozen times a second. A polled port makes it thousands; a descriptor that the kernel
# reports for ever, hundreds of thousands.
# usage: few_walks [--socket SOCKET]
few_walks() {
	local before
	before=$(isthmus "$@" show worker -j | jq '[.[].walks] | add')
	wait_a_second
	(($(isthmus "$@" show worker -j | jq '[.[].walks] | add') - before < 1000))
}

# usage: asleep WHAT [--socket SOCKET]
asleep() { wait_for 1 few_walks "${@:2}" || fail "$1: the worker does not sleep"; }
