#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: makes packages and two Debian systems
# The packages on a bare Debian 12 under its systemd. Linters; dpkg -i, start, packets of
# the kernel and of the tester. Both packages are upgraded under traffic, one with dpkg killed in the middle; then all
# are purged. The .rpm have the same files, and their scripts run under rpm.
#
# PACKAGES=FOLDER: packages that were made before (./dev package). MACHINES (default /var/tmp/isthmus-package) keeps the
# bare systems for the next run.
ROOT=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
export MACHINES=${MACHINES:-/var/tmp/isthmus-package} PACKAGES=${PACKAGES:-$ROOT/build/package}

# What the packages need beside each other, by name.
needed() {
	local file
	for file in "$PACKAGES"/*.deb; do
		dpkg-deb -f "$file" Depends
	done | tr ',' '\n' | sed 's/^ *//; s/[ (|].*//' | grep -vE '^isthmus|^$' | sort -u
}

# Before the namespaces, which have no network.
if [[ ${IN_OWN_WORLD:-} != 1 ]]; then
	cd "$ROOT" || exit
	((EUID == 0)) || { echo "skip: needs root for Debian systems" && exit 77; }
	command -v debootstrap >/dev/null || { echo "skip: needs debootstrap" && exit 77; }
	[[ $PACKAGES != "$ROOT/build/package" ]] || ./dev package || exit
	mapfile -t names < <(needed)
	scripts/fresh-machine.sh --install "$MACHINES/machine" systemd-sysv iproute2 iputils-ping "${names[@]}" &&
		scripts/fresh-machine.sh --install "$MACHINES/tools" lintian rpm rpmlint || exit
fi
# shellcheck source=test/lib/net.sh
. "$ROOT/test/lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/machine.sh
. "$ROOT/test/lib/machine.sh"
cp "$PACKAGES"/*.deb "$PACKAGES"/*.rpm "$DIR"
version=$(dpkg-deb -f "$DIR"/isthmus_*.deb Version)
later=$version.1 # what an upgrade brings

# usage: tool COMMAND...: of the system with lintian and rpm, in a folder with the packages
overlay tools
mount --bind "$DIR" "$DIR/tools/mnt"
mount -t proc proc "$DIR/tools/proc"
tool() { chroot "$DIR/tools" /usr/bin/env -i PATH=/usr/sbin:/usr/bin HOME=/root sh -c 'cd /mnt && exec "$@"' sh "$@"; }

# ---- what is in them
tool sh -c 'lintian --allow-root --fail-on error *.deb' >"$DIR/lintian" 2>&1 ||
	fail "lintian: $(grep ^E "$DIR/lintian" || cat "$DIR/lintian")"
echo "lintian: no errors, $(grep -c '^W' "$DIR/lintian" || true) warnings"
# No key signs them; passwords are not for all; languages of packages whose names end so.
tool sh -c 'rpmlint *.rpm' >"$DIR/rpmlint" 2>&1 || true
known=' no-signature$| non-readable /etc/isthmus/isthmus.yaml | no-dependency-on locales-'
! grep ' E: ' "$DIR/rpmlint" | grep -vE "$known" ||
	fail "rpmlint finds errors"
echo "rpmlint: $(tail -n 1 "$DIR/rpmlint")"
for name in isthmus isthmus-dp isthmus-lab isthmus-traffic isthmus-doc; do
	dpkg-deb -c "$DIR/${name}"_*.deb | awk '$1 ~ /^-/ && $6 !~ /changelog.gz$/ { print substr($6, 2), $1 }' |
		sort >"$DIR/of-deb"
	tool sh -c "rpm -qlvp $name-[0-9]*.rpm" | awk '$1 ~ /^-/ { print $NF, $1 }' | sort >"$DIR/of-rpm"
	diff "$DIR/of-deb" "$DIR/of-rpm" || fail "$name: .deb and .rpm have other files"
	[[ -s $DIR/of-deb ]] || fail "$name has no files"
done

# ---- .rpm: scripts and removal, in a system of dpkg (so --nodeps)
overlay machine
mount --bind "$DIR/machine" "$DIR/tools/srv"
tool sh -c 'rpm --root /srv --nodeps -i isthmus*.rpm' >"$DIR/rpm" 2>&1 || fail "rpm -i: $(cat "$DIR/rpm")"
chroot "$DIR/machine" getent passwd isthmus >/dev/null || fail "rpm made no user: $(cat "$DIR/rpm")"
[[ -L $DIR/machine/etc/systemd/system/multi-user.target.wants/isthmus.service ]] ||
	fail "rpm: the preset is not applied"
tool sh -c 'rpm --root /srv -Va --nodeps --nomode --nogroup' || fail "rpm -V finds other files"
chroot "$DIR/machine" isthmus config check /etc/isthmus/isthmus.yaml
tool sh -c 'rpm --root /srv -e isthmus-lab isthmus-traffic isthmus-doc isthmus isthmus-dp' >"$DIR/rpm" 2>&1 ||
	fail "rpm -e: $(cat "$DIR/rpm")"
left=$(find "$DIR/machine" -xdev -name '*isthmus*' -not -path '*/dev/*' -not -path '*/var/lib/*' -not -path '*/run/*')
[[ -z $left ]] || fail "rpm -e leaves $left"
umount "$DIR/tools/srv"
remove_overlay machine
echo "rpm: files, scripts and removal are good"

# ---- from nothing to packets
overlay machine
boot machine
find "$DIR/machine" -xdev | sort >"$DIR/before"
# usage: packages ACTION PATTERN...: of files in the machine's /root
packages() { in_machine sh -c "cd /root && dpkg $*" >>"$DIR/dpkg" 2>&1; }
in_step() { in_machine isthmus status --wait 120s >"$DIR/status" 2>&1; }
install_packages() { packages -i "$@" || fail "dpkg: $(cat "$DIR/dpkg")"; }
cp "$DIR"/*.deb "$DIR/machine/root"
install_packages "isthmus_* isthmus-dp_* isthmus-traffic_*"
in_step || fail "it does not start: $(cat "$DIR/status")"
in_machine ip link set west address 02:00:00:00:00:02
in_machine ip address add 192.0.2.2/25 dev west
wait_for 20 in_machine ping -c 1 -W 1 192.0.2.1 || fail "no packets through the file that is installed"
[[ $(stat -c '%a %G' "$DIR/machine/etc/isthmus/isthmus.yaml") == "640 "* ]] || fail "others may read isthmus.yaml"
in_machine dpkg -V isthmus isthmus-dp isthmus-traffic || fail "files are not as they were packed"
echo "from dpkg -i to packets: three commands"

# ---- traffic of the tester, meanwhile something happens
{
	echo "engine: {idle_sleep: true, packet_buffers: 8192, huge_pages: \"off\"}"
	echo "control: {state: /var/lib/isthmus}"
	cat "$ROOT/deploy/examples/tester-router.yaml"
} >"$DIR/machine/etc/isthmus/isthmus.yaml"
in_machine systemctl restart isthmus isthmus-dp
in_step || fail "with memif: $(cat "$DIR/status")"

# Runs the tester for some seconds and COMMAND meanwhile, which must end before it; a slow machine gets more time.
# Leaves the result in $DIR/machine/root/result.json. usage: under_traffic COMMAND...
under_traffic() {
	local seconds tester
	for seconds in 20 60 180; do
		{
			printf 'huge_pages: false\nmemory_mb: 256\n'
			sed '/^run:/,$d' "$ROOT/traffic/profiles/rfc2544-router.yaml"
			printf 'run: {mode: fixed, rate: 500pps, drain: 2, warmup: 0, %s, seconds: %d}\n' \
				'latency: {seconds: 0}, disturbed: {repeats: 0}' "$seconds"
		} >"$DIR/machine/root/profile.yaml"
		: >"$DIR/tester"
		in_machine isthmus-traffic --events --json /root/result.json /root/profile.yaml \
			>"$DIR/events" 2>"$DIR/tester" &
		tester=$!
		wait_for 60 grep -q . "$DIR/events" || fail "the tester does not start: $(cat "$DIR/tester")"
		"$@" || fail "$*: $(cat "$DIR/dpkg")"
		if kill -0 "$tester" 2>/dev/null; then
			wait "$tester" || true
			return
		fi
		echo "$*: the tester ended before it, after $seconds s"
	done
	fail "$*: takes more than 180 s"
}

# Each direction's sent and received packets; fails when one is lost. usage: no_loss WHAT
sums() {
	jq -r '.trials[-1].streams[] | "\(.name) \(.sent) \(.received)"' "$DIR/machine/root/result.json" | tr '\n' ' '
}
no_loss() {
	jq -e '.complete and (.trials[-1].streams | all(.sent > 1000 and .sent == .received and .lost == 0))' \
		"$DIR/machine/root/result.json" >/dev/null || fail "$1: $(sums) $(cat "$DIR/tester")"
	echo "$1: $(sums)"
}
# shellcheck disable=SC2016 # dpkg-query's
in_version() { in_machine dpkg-query -W -f '${Version} ${db:Status-Status}\n' "$1"; }
pids() { in_machine systemctl show -P MainPID isthmus isthmus-dp | xargs; }

next_version() { # of a .deb: the same files
	local tree=$DIR/next
	dpkg-deb -R "$1" "$tree"
	sed -i "s/^Version: .*/Version: $later/; s/(= $version)/(= $later)/g" "$tree/DEBIAN/control"
	dpkg-deb -Znone --root-owner-group -b "$tree" "$DIR/machine/root" >/dev/null
	rm -r "$tree"
}
for name in isthmus isthmus-dp isthmus-traffic isthmus-lab isthmus-doc; do
	next_version "$DIR/${name}_"*.deb
done

under_traffic true
no_loss "traffic"
read -r control_before dp_before < <(pids)
upgrade() { packages -i "$@" && in_step; }
under_traffic upgrade "isthmus_${later}_*"
no_loss "isthmus is upgraded"
read -r control dp < <(pids)
((control != control_before)) || fail "the control plane's old program runs on"
((dp == dp_before)) || fail "the data plane was restarted"
under_traffic upgrade "isthmus-dp_${later}_*"
no_loss "isthmus-dp is upgraded"
((dp == $(pids | cut -d ' ' -f 2))) || fail "the data plane was restarted"
grep -q 'the old program forwards on. At a quiet hour: systemctl restart isthmus-dp' "$DIR/dpkg" ||
	fail "dpkg does not say when the new program runs: $(cat "$DIR/dpkg")"
# Forwarding stops, and the tester's memif with it: the next trial is on the new program.
in_machine systemctl restart isthmus-dp
in_step || fail "the new data plane: $(cat "$DIR/status")"
((dp != $(pids | cut -d ' ' -f 2))) || fail "the data plane was not restarted"

# ---- dpkg is killed in the middle, between the files and the scripts
interrupted() {
	packages --unpack "isthmus_${version}_* isthmus-dp_${version}_*"
	[[ $(in_version isthmus) == "$version unpacked" ]] || fail "not in the middle: $(in_version isthmus)"
	in_machine isthmus status >"$DIR/status" && in_machine systemctl --quiet is-active isthmus isthmus-dp
}
under_traffic interrupted
no_loss "an upgrade ends in the middle"
# dpkg is killed while it writes files: the next run mends what it left.
packages -i "isthmus_${later}_*" &
killed=$!
wait_for 60 test -e "$DIR/machine/usr/bin/isthmus.dpkg-new" || true
pgrep -x dpkg | xargs -r kill -KILL # of this test's own process namespace
wait "$killed" || true
in_machine isthmus status >"$DIR/status" || fail "a killed dpkg ends the gateway: $(cat "$DIR/status")"
finish_upgrade() {
	packages --configure -a || true
	packages -i "isthmus_${later}_* isthmus-dp_${later}_*" && in_step
}
under_traffic finish_upgrade
no_loss "the upgrade is finished"
[[ $(in_version isthmus)$(in_version isthmus-dp) == "$later installed$later installed" ]] || fail "not installed"
grep -q 'driver: net_memif' "$DIR/machine/etc/isthmus/isthmus.yaml" || fail "an upgrade replaced isthmus.yaml"

# ---- all five; removed and back; purged
install_packages "isthmus-traffic_${later}_* isthmus-lab_${later}_* isthmus-doc_${later}_*"
in_machine isthmus lab --help >/dev/null || fail "isthmus does not find isthmus-lab"
in_machine dpkg -r isthmus-lab isthmus >>"$DIR/dpkg" 2>&1
! in_machine systemctl --quiet is-active isthmus || fail "a removed control plane runs"
in_machine systemctl --quiet is-active isthmus-dp || fail "the data plane ended with the control plane"
install_packages "isthmus_${later}_*"
in_step || fail "removed and back: $(cat "$DIR/status")"
in_machine dpkg -P isthmus isthmus-dp isthmus-traffic isthmus-lab isthmus-doc >>"$DIR/dpkg" 2>&1 ||
	fail "purge: $(tail -n 20 "$DIR/dpkg")"
! pgrep -l '^isthmus' || fail "a purged program runs"
in_machine systemctl daemon-reload
shut_down
rm -r "$DIR"/machine/root/*
# What systemd, journal, dpkg and useradd keep is not ours.
theirs='^/(var/lib/(dpkg|systemd|private)|var/(log|cache|tmp)|run|tmp|dev|mnt)(/|$)'
theirs+='|^/etc/(machine-id|\.pwd\.lock|.*-)$'
find "$DIR/machine" -xdev | sort | comm -13 "$DIR/before" - | sed "s|^$DIR/machine||" |
	grep -vE "$theirs" >"$DIR/left" || true
! grep -i isthmus "$DIR/left" "$DIR"/machine/etc/{passwd,group,shadow,gshadow} || fail "purge leaves something"
[[ ! -s $DIR/left ]] || fail "purge leaves $(cat "$DIR/left")"
echo PASS
