#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The machine of test/lib/page.py: network, mount and process namespaces with a folder to work in and an /etc, /run,
# /var/lib/isthmus and /var/log of their own. All that a page starts, mounts and writes ends with them.
# usage: page.sh PAGE; a path from the repository's root
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/net.sh"
own_namespaces "$@"
ip netns delete gateway
unset ISTHMUS_SOCKET

show_state() {
	tail -n 20 /var/log/isthmus*/* 2>/dev/null || true
}

# A copy; for folders of files that processes leave, the empty folders.
own_folder() {
	mkdir -p "$DIR/own$1" "$1"
	if [[ $1 == /etc ]]; then
		cp -a /etc/. "$DIR/own/etc"
	else
		find "$1" -xdev -type d -print0 | tar -c --null --no-recursion -T - 2>/dev/null | tar -x -C "$DIR/own"
	fi
	mount --rbind "$DIR/own$1" "$1"
}
for folder in /etc /run /var/log /var/lib/isthmus; do
	own_folder "$folder"
done
mkdir -p /run/netns /etc/netns "$DIR/page"
mount -t tmpfs tmpfs /run/netns
ln -s "$TEST_ROOT/deploy" "$DIR/page/deploy" # the reader is in the source tree

cd "$DIR/page"
PATH=$BIN:$PATH PAGE_INSIDE=1 "$PYTHON" "$TEST_ROOT/test/lib/page.py" "$TEST_ROOT/$1" || exit
