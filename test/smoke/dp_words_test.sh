#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A word that the data plane's program does not know starts no server: it says so and ends with 2. Needs no root.
# shellcheck source=test/lib/both.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/both.sh"

# usage: refused TEXT WORD...
refused() {
	local text=$1 status=0
	shift
	timeout 30 "$bin/isthmus-dp" "$@" >"$dir/said.log" 2>&1 || status=$?
	((status == 2)) || fail "isthmus-dp $*: exit status $status"
	grep -qF "$text" "$dir/said.log" || fail "isthmus-dp $* does not say: $text"
	[[ ! -e $dir/dp.sock ]] || fail "isthmus-dp $* made a socket"
}
refused 'there is no command "serve"' serve
refused 'there is no command "replya"' --socket "$dir/dp.sock" replya --state x
refused 'there is no command "serve"' serve --socket "$dir/dp.sock" -- --no-huge
refused 'usage: ' filter
refused 'usage: ' --sokcet "$dir/dp.sock"

# Behind "--" stand options of EAL.
"$bin/isthmus-dp" --socket "$dir/dp.sock" -- --log-level=lib.eal:info >"$dir/dp.log" 2>&1 &
dp=$!
wait_until "the data plane's socket" test -S "$dir/dp.sock"
echo PASS
