#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: compiles everything twice
# Two builds, in two folders of other names and at two times, make the same programs, octet by octet. Needs no root.
set -euo pipefail
ROOT=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
cd "$ROOT"
# shellcheck source=scripts/common.sh
. scripts/common.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CCACHE_DISABLE=1 # what it keeps would be the same whatever the compiler does

for copy in "$dir/a" "$dir/another/and longer/b"; do
	mkdir -p "$copy"
	# shellcheck disable=SC2119 # all of them
	repo_files | tar -c -T - | tar -x -C "$copy"
	(cd "$copy" && ROOT=$copy bash -euo pipefail -c '
		. scripts/common.sh; . scripts/setup.sh; . scripts/build.sh; use_go
		pch_option() { printf -- "-Dpch=true\n"; } # as without ccache
		build_release programs; link_program isthmus-dp dataplane; link_program isthmus-traffic-engine traffic
		build_go; build_manual') >"$dir/log" 2>&1 || { tail -n 40 "$dir/log" && die "no build in $copy"; }
done

differ=0
cd "$dir/a/build"
mapfile -t files < <(find isthmus* share dataplane/isthmus-dp* traffic/isthmus-traffic-engine \
	-type f -not -path '*.p/*')
for file in "${files[@]}"; do
	cmp "$file" "$dir/another/and longer/b/build/$file" || differ=1
done
((differ == 0 && ${#files[@]} > 20)) || die "two builds are not the same"
say "${#files[@]} files are the same"
