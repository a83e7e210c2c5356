#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs ./dev on a bare Debian: a minimal system of debootstrap, with a clone of HEAD (--worktree: of the files as they
# are now) in /src. Its mount and process namespaces end with it.
#
# usage: sudo scripts/fresh-machine.sh [--suite bookworm|trixie|forky] [--worktree] [VERB [ARGUMENT...]]
#        (default: bookworm, that is Debian 12, and the verb test)
#        sudo scripts/fresh-machine.sh [--suite SUITE] --install FOLDER PACKAGE...
#        (makes FOLDER: a bare system with these packages, whose services do not start by themselves)
#
# FRESH_DIR (default /var/tmp/isthmus-fresh, of another suite with its name) keeps the bare system for the next run.
# Package mirror, name servers and certificates are this machine's; nothing else of it is visible.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

suite=bookworm
if [[ ${1:-} == --suite ]]; then
	suite=${2:?--suite names a Debian release}
	shift 2
fi
dir=${FRESH_DIR:-/var/tmp/isthmus-fresh$([[ $suite == bookworm ]] || printf -- '-%s' "$suite")}
bare=$dir/bare
root=$dir/root

# The Debian mirror that this machine uses.
mirror() {
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk '$2 ~ /^(bookworm|stable)$/ && $3 == "main" { print $1; exit }'
}

make_bare() {
	local from
	[[ -f $bare/etc/debian_version ]] && return 0
	from=$(mirror)
	[[ -n $from ]] || die "no Debian 12 mirror among this machine's package sources"
	say "debootstrap a bare $suite into $bare"
	mkdir -p "$bare"
	# The newest script does for all three; Debian 12's debootstrap has none of the name forky.
	quietly "$dir/debootstrap.log" debootstrap --variant=minbase "$suite" "$bare" "$from" \
		/usr/share/debootstrap/scripts/sid
}

# Names and certificates are this machine's; debootstrap wrote the mirror into sources.list.
give_network() {
	local file
	for file in /etc/resolv.conf /etc/hosts /etc/apt/apt.conf.d/99*; do
		[[ ! -f $file ]] || cp "$file" "$root$file"
	done
	cp /etc/ssl/certs/ca-certificates.crt "$root/etc/this-machine-ca.crt"
}

# A bare system with packages, once for each list of them. Manuals and languages are left out, but ours.
# usage: make_system FOLDER PACKAGE...
make_system() {
	local stamp
	root=$1
	shift
	stamp="$suite $*"
	[[ $(cat "$root.packages" 2>/dev/null) != "$stamp" ]] || return 0
	make_bare
	say "$root: a bare $suite with $# packages"
	rm -rf "$root" "$root.packages"
	mkdir -p "$(dirname "$root")"
	cp -a "$bare" "$root"
	give_network
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
	printf '%s\n' force-unsafe-io 'path-exclude=/usr/share/'{doc,man,locale}'/*' \
		'path-include=/usr/share/*/isthmus*' 'path-include=/usr/share/man/man[15]/isthmus*' \
		>"$root/etc/dpkg/dpkg.cfg.d/small"
	# shellcheck disable=SC2016 # the inner shell's words
	quietly "$root.log" unshare --mount --pid --fork --kill-child --propagation private chroot "$root" \
		/usr/bin/env -i DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		SSL_CERT_FILE=/etc/this-machine-ca.crt sh -ec 'mount -t proc proc /proc
			apt-get -q update
			apt-get -q -o Acquire::Retries=3 install -y --no-install-recommends "$@"
			rm /usr/sbin/policy-rc.d' sh "$@"
	printf '%s\n' "$stamp" >"$root.packages"
}

give_source() {
	if [[ $worktree == 1 ]]; then
		mkdir "$root/src"
		# shellcheck disable=SC2119 # all of them
		repo_files | tar -c -f - -T - .git | tar -x -f - -C "$root/src"
	else
		git_here clone --quiet --no-hardlinks . "$root/src"
	fi
}

# In namespaces of its own: mounts what a system has, and runs ./dev.
inside() {
	# A root that is a mount point, as on a real machine: tests make namespaces of their own in it.
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs tmpfs "$root/run"
	exec chroot "$root" /usr/bin/env -i CI="${CI:-}" HOME=/root TERM="${TERM:-dumb}" \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		SSL_CERT_FILE=/etc/this-machine-ca.crt PIP_CERT=/etc/this-machine-ca.crt \
		bash -c 'cd /src && exec ./dev "$@"' dev "$@"
}

if [[ ${1:-} == --inside ]]; then
	shift
	inside "$@"
fi

is_root || die "debootstrap and chroot need root: sudo $0 $*"
command -v debootstrap >/dev/null || die "needs the package debootstrap"
if [[ ${1:-} == --install ]]; then
	shift
	make_system "$@"
	exit
fi
worktree=0
if [[ ${1:-} == --worktree ]]; then
	worktree=1
	shift
fi
(($#)) || set -- test
mkdir -p "$dir"
make_bare
rm -rf "$root"
cp -a "$bare" "$root"
give_network
give_source
say "./dev $* on a bare $suite"
start=$(now_ms)
status=0
FRESH_DIR=$dir unshare --mount --pid --fork --kill-child --propagation private \
	"$PWD/scripts/fresh-machine.sh" --inside "$@" || status=$?
say "ended with status $status after $((($(now_ms) - start) / 1000)) s; the system is left in $root to look at"
exit $status
