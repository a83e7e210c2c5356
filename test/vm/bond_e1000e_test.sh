#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: a virtual machine
# bond_test.sh with cards whose link interrupt does not come.
cd "$(dirname "${BASH_SOURCE[0]}")" || exit
CARD=e1000e exec ./bond_test.sh "$@"
