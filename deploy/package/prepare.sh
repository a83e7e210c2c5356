# shellcheck shell=sh disable=SC2154,SC2034
# SPDX-License-Identifier: Apache-2.0
# The first lines of the scripts of isthmus and isthmus-dp, in .deb and .rpm; before them: package=NAME.
unit=$package.service
running() { [ -d /run/systemd/system ]; }
# User, folders, rules for cards. systemd-tmpfiles fails where a folder cannot be had, as /run in a build.
prepare() {
	systemd-sysusers isthmus.conf
	systemd-tmpfiles --create "$package.conf" || true
	! running || systemctl --system daemon-reload || true
	! running || [ "$package" != isthmus-dp ] || udevadm trigger --subsystem-match=vfio || true
}
