#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a network namespace of its own, with loopback alone, where possible. No other process takes its
# ports. A browser aborts loading when an interface appears or disappears (ERR_NETWORK_CHANGED).
# usage: own_net.sh COMMAND...
if [ "$(id -u)" != 0 ] || ! unshare --net true 2>/dev/null; then
	exec "$@"
fi
# shellcheck disable=SC2016 # the inner shell's
exec unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$@"
