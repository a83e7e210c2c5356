# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# usage: COMMAND | has PATTERN, as grep -q, but it reads all input: under pipefail, SIGPIPE of a command that still
# writes would be its failure.
# shellcheck disable=SC2143
has() { [[ -n $(grep "$@" || true) ]]; }
