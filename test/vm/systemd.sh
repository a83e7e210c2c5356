#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# First process of a virtual machine whose init is systemd: this machine's, but of its units only the journal's and
# guest.sh.
rm -rf /etc/systemd/system /lib/systemd/system/*.wants
mkdir /etc/systemd/system
: >/etc/fstab
cat >/etc/systemd/system/guest.service <<EOF
[Unit]
DefaultDependencies=no
Wants=systemd-journald.service
After=systemd-journald.service
[Service]
ExecStart=$(dirname "$0")/guest.sh
EOF
exec /lib/systemd/systemd --unit=guest.service
