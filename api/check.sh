#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Guards the contract. types_gen.go and layout.inc must match isthmus_api.h. No layout of the released version
# (released.txt) may change while API_VERSION stays the same; new structs, enum values and fields at the end of a part
# are allowed. The tester's halves are built together: its job_gen.go must match job.h.
#   check.sh            check all
#   check.sh --write    regenerate types_gen.go, layout.inc and job_gen.go
#   check.sh --release  write released.txt for the header's API_VERSION
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

case "${1:-}" in
--write)
	python3 godefs.py "$tmp" types digests job
	cat "$tmp/types" >types_gen.go
	cat "$tmp/digests" >layout.inc
	cat "$tmp/job" >../traffic/job/job_gen.go
	exit 0
	;;
--release)
	python3 godefs.py "$tmp" layout
	cat "$tmp/layout" >released.txt
	exit 0
	;;
"") ;;
*)
	echo "usage: check.sh [--write|--release]" >&2
	exit 2
	;;
esac

# The layout first: a refused layout needs no types. Types take the longest.
python3 godefs.py "$tmp" layout digests
now=$(sed -n '1s/^version //p' "$tmp/layout")
was=$(sed -n '1s/^version //p' released.txt)
if [ "$now" -lt "$was" ]; then # the lock would be off
	echo "API_VERSION $now is below $was, which released.txt has." >&2
	exit 1
fi
if [ "$now" -eq "$was" ]; then
	sort "$tmp/layout" >"$tmp/now"
	sort released.txt | comm -23 - "$tmp/now" >"$tmp/changed"
	if [ -s "$tmp/changed" ]; then
		echo "isthmus_api.h changes what API version $was released:" >&2
		head -20 "$tmp/changed" | sed 's/^/  was: /' >&2
		echo "Raise API_VERSION in api/isthmus_api.h, or take the change back." >&2
		echo "(When the new version is released: api/check.sh --release rewrites released.txt.)" >&2
		exit 1
	fi
fi

# Compares a generated file with the committed one; on a difference says how to regenerate it.
same() {
	cmp -s "$tmp/$1" "$2" && return
	echo "$3 is stale: run api/check.sh --write and commit the result." >&2
	diff -u "$2" "$tmp/$1" | head -40 >&2 || true
	exit 1
}
same digests layout.inc api/layout.inc
python3 godefs.py "$tmp" types job
same types types_gen.go api/types_gen.go
same job ../traffic/job/job_gen.go traffic/job/job_gen.go
