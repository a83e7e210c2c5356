#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first program of a build with variants (dataplane/variant.c) executes the program for this processor, beside it or
# in ../lib/isthmus. The environment may name another level. A missing program is named.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v cc >/dev/null || {
	echo "skip: needs a C compiler"
	exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/bin" "$dir/lib/isthmus"
cc -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -Werror -o "$dir/bin/isthmus-dp" dataplane/variant.c

fail() {
	echo "FAIL: $*"
	exit 1
}
# usage: program FOLDER LEVEL: prints its level and arguments
program() {
	printf '#!/bin/sh\necho %s "$@"\n' "$2" >"$dir/$1/isthmus-dp-$2"
	chmod +x "$dir/$1/isthmus-dp-$2"
}
run() { env -u ISTHMUS_DP_CPU ${LEVEL:+ISTHMUS_DP_CPU=$LEVEL} "$dir/bin/isthmus-dp" "$@" 2>&1; }

said=$(run) && fail "it found a program where there is none: $said"
[[ $said == "isthmus-dp: no program for the level "*": No such file or directory" ]] || fail "without programs: $said"
for level in x86-64-v2 x86-64-v3 x86-64-v4 armv8-a armv8.2-a; do
	program lib/isthmus "$level"
done
said=$(run --socket x) || fail "status $? of: $said"
[[ $said == @(x86-64-v[234]|armv8-a|armv8.2-a)" --socket x" ]] || fail "chosen: $said"
[[ $(LEVEL=armv8-a run) == armv8-a ]] || fail "the environment's level: $(LEVEL=armv8-a run)"
program bin own
[[ $(LEVEL=own run) == own ]] || fail "beside the first program: $(LEVEL=own run)"
said=$(LEVEL=none run) && fail "an unknown level was executed: $said"
[[ $said == *"no program for the level none"* ]] || fail "an unknown level: $said"

# Processors that are emulated here: what each gets.
if command -v qemu-x86_64-static >/dev/null && [[ $(uname -m) == x86_64 ]]; then
	for pair in Nehalem:x86-64-v2 Haswell:x86-64-v3; do
		said=$(qemu-x86_64-static -cpu "${pair%:*}" "$dir/bin/isthmus-dp" 2>&1) || true
		[[ $said == *"${pair#*:}"* ]] || fail "on ${pair%:*}: $said"
	done
fi
echo PASS
