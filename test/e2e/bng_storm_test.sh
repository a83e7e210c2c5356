#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# All homes on line lose power at once, and dial again at the same time. Each signs in again, none twice, neither
# process dies, and nothing remains after the last leaves.
# usage: bng_storm_test.sh [HOMES]
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/homes.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/homes.sh"
own_namespaces "$@"
homes=${1:-65536}

many_homes "$homes"
start_gateway
processes=$(ids)
"$BIN/isthmus" control-load --access --interface home0 --subscribers "$homes" --rate $((homes > 20000 ? 4000 : 2000)) \
	--patience 60s --power-cut -j >"$DIR/load.json" || fail "$(jq -c .wrong "$DIR/load.json")"
jq -e ".online == $homes and .power_cut_seconds > 0" "$DIR/load.json" >/dev/null || fail "$(cat "$DIR/load.json")"
echo "$homes homes on line again $(jq .power_cut_seconds "$DIR/load.json") s after a power cut"
wait_for 60 nobody || fail "homes that left are there still: $(isthmus show total)"
isthmus show subscriber -j | jq -e 'all(.state != "up")' >/dev/null || fail "$(isthmus show subscriber)"
[[ $(ids) == "$processes" ]] || fail "a process died: $processes, now $(ids)"
echo PASS
