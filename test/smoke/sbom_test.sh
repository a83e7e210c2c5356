#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The bill of materials of the built programs names every module of them, and SPDX's own tools find no fault. Needs no
# root.
set -euo pipefail
ROOT=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
cd "$ROOT"
# shellcheck source=scripts/common.sh
. scripts/common.sh
# shellcheck source=scripts/setup.sh
. scripts/setup.sh
use_go
scripts/components.py sbom "${BUILD:-build}"
bill=${BUILD:-build}/isthmus.spdx.json
named=$(go version -m "${BUILD:-build}"/isthmus{,-lab,-traffic} | awk '$1 == "dep" { print $2 "@" $3 }' | sort -u)
listed=$(jq -r '.packages[].externalRefs[0].referenceLocator' "$bill" | sed -n 's/^pkg:golang\///p' |
	grep -v '^stdlib@' | sort)
[[ -n $named && $named == "$listed" ]] || die "the bill has other modules: $listed"
jq -e '.packages | map(.name) | contains(["isthmus-dp", "dygraphs", "libc6"])' "$bill" >/dev/null ||
	die "parts are missing"
ensure_python supply || { echo "skipped: no PyPI from here" && exit 77; }
judge() { PYTHONPATH=.tools/supply python3 -m spdx_tools.spdx.clitools.pyspdxtools --infile "$1"; }
judge "$bill"
sed 's/"STATIC_LINK"/"GLUED"/' "$bill" >"$bill.bad.spdx.json"
! judge "$bill.bad.spdx.json" 2>/dev/null || die "the judge finds no fault"
rm "$bill.bad.spdx.json"
