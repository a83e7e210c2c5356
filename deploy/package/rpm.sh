# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# rpm's scripts of isthmus and isthmus-dp: post, preun and postun are this, behind prepare.sh; before them: script=NAME.
# $1 is how many versions are there afterwards. Presets say whether a service starts with the machine; the state stays.
case $script-$1 in
post-1)
	prepare
	systemctl --no-reload preset "$unit" || true
	;;
post-*)
	prepare
	[ "$package" != isthmus ] || ! running || systemctl try-restart "$unit" || true
	;;
preun-0)
	systemctl --no-reload disable --now "$unit" || true
	;;
postun-0)
	! running || systemctl --system daemon-reload || true
	;;
esac
