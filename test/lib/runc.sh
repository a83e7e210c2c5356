#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# runc for machines where nothing may set the limits of another user's process (no CAP_SYS_RESOURCE): without the limits
# that podman asks for. usage: podman --runtime test/lib/runc.sh
set -euo pipefail
before=''
for word; do
	case $before in
	--bundle | -b) file=$word/config.json of=.process ;;
	--process | -p) file=$word of=. ;;
	esac
	before=$word
done
if [[ -n ${file:-} ]]; then
	jq "del(${of%.}.rlimits)" "$file" >"$file.own"
	cat "$file.own" >"$file"
	rm "$file.own"
fi
exec runc "$@"
