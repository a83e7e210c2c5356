# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What two measurements differ by, for scripts of this folder.

# Prints what each of PARTS takes of what AFTER is above BEFORE, in UNIT. At or below zero the measurement says nothing.
# usage: difference BEFORE AFTER PARTS UNIT
difference() {
	if (($2 > $1)); then
		echo "$((($2 - $1) / $3)) $4"
	else
		echo "not resolved"
	fi
}
