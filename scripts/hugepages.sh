# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Huge pages for demo and bench: reserves some when there are none and the machine can spare them, and prints that.

HUGE_PAGES=512 # of 2 MB

reserve_huge_pages() {
	local knob=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages total available_mb
	total=$(cat "$knob" 2>/dev/null || printf '0')
	if ((total > 0)); then
		say "huge pages: $total x 2 MB are reserved already"
		mount_huge_pages
		return 0
	fi
	available_mb=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
	if ! is_root; then
		say "huge pages: none; going on without (as root this would reserve $HUGE_PAGES x 2 MB)"
	elif ((available_mb < 4 * HUGE_PAGES)); then
		say "huge pages: none, and only $available_mb MB are free; going on without"
	elif ! printf '%s\n' "$HUGE_PAGES" 2>/dev/null >"$knob"; then
		say "huge pages: this machine does not let them be reserved; going on without"
	else
		total=$(cat "$knob")
		say "huge pages: reserved $total x 2 MB (to give them back: echo 0 >$knob)"
		mount_huge_pages
	fi
}

# DPDK maps huge pages through a mounted hugetlbfs.
mount_huge_pages() {
	grep -q ' hugetlbfs ' /proc/mounts && return 0
	is_root || return 0
	mkdir -p /dev/hugepages 2>/dev/null
	if mount -t hugetlbfs none /dev/hugepages 2>/dev/null; then
		say "huge pages: mounted /dev/hugepages"
	else
		say "huge pages: /dev/hugepages could not be mounted; going on without"
	fi
}
