#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bond_test.sh with cards whose link interrupt does not come. By ./dev test --long: two minutes of a CPU.
[[ -n ${LONG:-} ]] || { echo "skip: by ./dev test --long"; exit 77; }
cd "$(dirname "${BASH_SOURCE[0]}")" || exit
CARD=e1000e exec ./bond_test.sh "$@"
