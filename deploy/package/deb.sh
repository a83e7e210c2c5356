# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# Debian's scripts of isthmus and isthmus-dp: postinst, prerm and postrm are this, behind prepare.sh; before them:
# script=NAME. An upgrade restarts the control plane, while packets flow; the data plane forwards on with its old
# program.
helper() { deb-systemd-helper "$@" >/dev/null || true; }
invoke() { ! running || deb-systemd-invoke "$@" >/dev/null || true; }
start() {
	if [ "$package" = isthmus ] && [ -n "$1" ]; then
		invoke restart "$unit"
	elif running && systemctl --quiet is-active "$unit"; then
		echo "$package: the old program forwards on. At a quiet hour: systemctl restart $unit"
	else
		invoke start "$unit"
	fi
}
purge() {
	if [ "$package" = isthmus ]; then
		rm -rf /var/lib/isthmus
	else
		rm -rf /run/isthmus
		! getent passwd isthmus >/dev/null || userdel isthmus || true
	fi
}
case $script-$1 in
postinst-configure)
	prepare
	helper unmask "$unit"
	if deb-systemd-helper --quiet was-enabled "$unit"; then
		helper enable "$unit"
	else
		helper update-state "$unit"
	fi
	start "${2:-}"
	;;
prerm-remove)
	invoke stop "$unit"
	;;
postrm-remove)
	helper mask "$unit"
	! running || systemctl --system daemon-reload || true
	;;
postrm-purge)
	helper purge "$unit"
	helper unmask "$unit"
	purge
	;;
esac
