#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests run in a chroot whose root is no mount point, as build machines have them.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

root=$DIR/root
mkdir -p "$root"
for entry in /*; do
	if [[ -L $entry ]]; then
		cp -P "$entry" "$root"
	elif [[ -d $entry && $entry != "$DIR" ]]; then
		mkdir "$root$entry"
		mount --rbind "$entry" "$root$entry"
	fi
done
mkdir "$root$DIR"
export BUILD=$BIN
unset IN_OWN_WORLD
! chroot "$root" mountpoint -q / || fail "the root is a mount point"
chroot "$root" "$TEST_ROOT/test/e2e/agf_veth_test.sh"
