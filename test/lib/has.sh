# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# usage: COMMAND | has PATTERN, as grep -q, but it reads all input: under pipefail, SIGPIPE of a command that still
# writes would be its failure.
# shellcheck disable=SC2143
has() { [[ -n $(grep "$@" || true) ]]; }

# What pages need (test/pages/README.md).
has_freeradius() { command -v freeradius >/dev/null; }
has_frr() { [[ -x /usr/lib/frr/bgpd ]]; }
has_lab_tools() { command -v iperf3 && command -v dig && command -v curl && command -v ping; } >/dev/null
has_dhclient() { command -v dhclient >/dev/null; }
has_tcpdump() { command -v tcpdump >/dev/null; }
has_curl() { command -v curl >/dev/null; }
has_image() { command -v podman && command -v runc && command -v jq && [[ -f ${IMAGE:-} ]]; } >/dev/null
