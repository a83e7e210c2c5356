#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Guards the contract: types_gen.go and layout_gen.h must be what isthmus_api.h generates, and no layout of the released version
# (released.txt) may change while API_VERSION stays the same. New structs, new enum values and new fields at the end of a part are
# allowed.
#   check.sh            check all
#   check.sh --write    regenerate types_gen.go and layout_gen.h
#   check.sh --release  write released.txt for the header's API_VERSION
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

case "${1:-}" in
--write)
	python3 godefs.py "$tmp" types digests
	cat "$tmp/types" >types_gen.go
	cat "$tmp/digests" >layout_gen.h
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

# The layout first: generated types would only keep what it refuses. Types take the longest.
python3 godefs.py "$tmp" layout digests
if [ "$(head -n 1 "$tmp/layout")" = "$(head -n 1 released.txt)" ]; then
	sort "$tmp/layout" >"$tmp/now"
	sort released.txt | comm -23 - "$tmp/now" >"$tmp/changed"
	if [ -s "$tmp/changed" ]; then
		echo "isthmus_api.h changes what API $(head -n 1 released.txt) released:" >&2
		head -20 "$tmp/changed" | sed 's/^/  was: /' >&2
		echo "Raise API_VERSION in api/isthmus_api.h, or take the change back." >&2
		echo "(When the new version is released: api/check.sh --release rewrites released.txt.)" >&2
		exit 1
	fi
fi

if ! cmp -s "$tmp/digests" layout_gen.h; then
	echo "api/layout_gen.h is stale: run api/check.sh --write and commit the result." >&2
	exit 1
fi
python3 godefs.py "$tmp" types
if ! cmp -s "$tmp/types" types_gen.go; then
	echo "api/types_gen.go is stale: run api/check.sh --write and commit the result." >&2
	diff -u types_gen.go "$tmp/types" | head -40 >&2 || true
	exit 1
fi
