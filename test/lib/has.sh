# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# usage: COMMAND | has PATTERN, as grep -q, but to the end of what is written: under pipefail, SIGPIPE of a command that
# has more to say would be its failure.
# shellcheck disable=SC2143
has() { [[ -n $(grep "$@" || true) ]]; }
