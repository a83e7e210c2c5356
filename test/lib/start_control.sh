#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts the gateway's control plane again beside a data plane that runs, and waits until both are in step.
set -euo pipefail
nsenter --net=/run/netns/gateway -- "$BIN/isthmus" run -c "$DIR/isthmus.yaml" --dp-socket "$DIR/dp.sock" --metrics off \
	--spawn >>"$DIR/isthmus.log" 2>&1 &
"$BIN/isthmus" status --wait 120s >/dev/null
