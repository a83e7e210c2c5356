#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: ten minutes of all faults
# Everything at once, for CHAOS_SECONDS (600): sessions come and go, a fifth of the load is hostile packets and
# messages. Ports flap, either process is killed, the store's disk fills up, configurations change. CHAOS_SEED repeats a
# run's decisions.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/upf.sh
. "$TEST_ROOT/test/lib/upf.sh"
own_namespaces "$@"
export TEST_ROOT_=$TEST_ROOT
upf_fixture ""
mkdir "$DIR/store"
mount -t tmpfs -o size=6m tmpfs "$DIR/store"
"$PYTHON" "$TEST_ROOT/test/e2e/chaos.py"
echo PASS
