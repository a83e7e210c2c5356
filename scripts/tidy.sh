#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over one C file; a stamp in build/lint/ says that it passed. usage: tidy.sh FILE
set -euo pipefail
file=$1
stamp=build/lint/$file.ok
# The flags are gcc's; clang need not know every one of them.
options=(--quiet -p build --extra-arg=-Wno-unknown-warning-option)
case $file in
# cmocka does not say that a failed assertion does not return, so the analyzer follows paths that are none.
*_test.c) options+=(--checks='-clang-analyzer-*') ;;
esac
mkdir -p "$(dirname "$stamp")"
rm -f "$stamp"
clang-tidy "${options[@]}" "$file" 2> >(grep -vE '^[0-9]+ warnings? generated' >&2)
touch "$stamp"
