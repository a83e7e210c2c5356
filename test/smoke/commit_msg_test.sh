#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The hook commit-msg, as ./dev setup installs it, in a repository and a worktree of it: accepted messages, and refused
# ones with the reason. Needs no root.
set -euo pipefail
ROOT=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
# shellcheck source=scripts/common.sh
. "$ROOT/scripts/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@x \
	GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@x
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
git init -q "$dir/repository"
cd "$dir/repository"
git commit -q --allow-empty -m 'before there is a hook'
install_hook
install_hook # again: it is there
git worktree add -q "$dir/worktree"

commit() {
	git -C "$1" commit -q --allow-empty -m "$2" >"$dir/said" 2>&1
}
taken() {
	commit "$1" "$2" || die "refused: $2: $(<"$dir/said")"
}
# usage: refused WORDS MESSAGE
refused() {
	! commit "$dir/worktree" "$2" || die "taken: $2"
	grep -qF "commit-msg: $1" "$dir/said" || die "$2: $(<"$dir/said")"
}
x60=$(printf 'x%.0s' {1..60})
for folder in "$dir/repository" "$dir/worktree"; do
	taken "$folder" $'gtpu: count short headers\n\nNobody saw them.'
	taken "$folder" $'\n\nsession, n4: '"${x60:1}"$'\n\nOf 72 characters; ä is one of them: ä.'
	taken "$folder" "Merge branch '$x60$x60'"
	taken "$folder" $'Revert "docs: some words"\n\nThis reverts commit 1234.'
done
refused 'the subject has 73 characters' $'session, n4: '"$x60"$'\n\nwhy'
refused 'the subject is not "module: what changed"' $'Count short headers\n\nwhy'
refused 'the subject is not "module: what changed"' $'gtpu:\n\nwhy'
refused 'no empty line follows the subject' $'gtpu: count\nshort headers\n\nwhy'
refused 'no body says why' 'gtpu: count short headers'
refused 'no body says why' $'gtpu: count short headers\n\nSigned-off-by: x <x@x>'

# A hook of another's making stays.
hook=$(git rev-parse --git-path hooks)/commit-msg
printf '#!/bin/sh\nexit 0\n' >"$hook"
install_hook 2>"$dir/said"
[[ $(tail -n 1 "$hook") == 'exit 0' ]] || die "another's hook is gone"
grep -qF "$hook" "$dir/said" || die "another's hook stays without a word"
echo PASS
