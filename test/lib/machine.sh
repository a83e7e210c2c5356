# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by tests of packages: systems that scripts/fresh-machine.sh --install made in $MACHINES, each changed in memory
# only, and started with its systemd.
#
# shellcheck disable=SC2115,SC2153,SC2317 # MACHINES is the test's, DIR of net.sh; wait_for calls functions
#
# usage: . test/lib/net.sh; own_namespaces "$@"; . test/lib/machine.sh

# $DIR/NAME is the system NAME; what is written stays in memory. usage: overlay NAME
overlay() {
	mkdir -p "$DIR/$1" "$DIR/$1.upper" "$DIR/$1.work"
	mount -t overlay overlay -o "lowerdir=$MACHINES/$1,upperdir=$DIR/$1.upper,workdir=$DIR/$1.work" "$DIR/$1"
}

remove_overlay() {
	umount "$DIR/$1"
	rm -rf "$DIR/$1" "$DIR/$1.upper" "$DIR/$1.work"
}

# Starts the system NAME, in the test's network; one at a time. Its console: $DIR/console. usage: boot NAME
boot() {
	local groups=/sys/fs/cgroup unshare unit
	[[ ! -d $groups/systemd ]] || groups+=/systemd
	GROUP=$groups/isthmus-machine-$$-$RANDOM
	mkdir "$GROUP" || skip "needs a folder of its own in $groups"
	for unit in getty.target systemd-logind.service remote-fs.target systemd-networkd.service; do
		ln -sf /dev/null "$DIR/$1/etc/systemd/system/$unit"
	done
	# shellcheck disable=SC2016 # the inner shell's words
	sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$GROUP" \
		unshare --mount --pid --cgroup --uts --ipc --fork --kill-child "$TEST_ROOT/test/lib/boot.sh" "$DIR/$1" \
		>"$DIR/console" 2>&1 &
	unshare=$!
	found() { MACHINE=$(pgrep -P "$unshare") && [[ -S /proc/$MACHINE/root/run/systemd/private ]]; }
	wait_for 60 found || fail "systemd does not start: $(cat "$DIR/console")"
	in_machine systemctl is-system-running --wait >"$DIR/running" ||
		fail "systemd: $(cat "$DIR/running" "$DIR/console")"
}

in_machine() {
	nsenter --target "$MACHINE" --mount --pid --uts --ipc --cgroup --root --wdns=/ -- \
		env -i PATH=/usr/sbin:/usr/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}

shut_down() {
	kill -KILL "$MACHINE"
	wait_for 20 gone "$MACHINE"
	find "$GROUP" -depth -type d -exec rmdir {} + 2>/dev/null || true
}

show_state() {
	[[ -z ${MACHINE:-} ]] || in_machine journalctl --no-pager -o cat 2>/dev/null | tail -n 60
	[[ -z ${MACHINE:-} ]] || shut_down
}
