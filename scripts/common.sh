# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by ./dev: messages, the environment of the tools, the list of the repository's files.

export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
export GOTOOLCHAIN=local # the tool chain that setup chose, never a silent download of another Go
# For tests as for programs, so that nothing is compiled twice. VCS stamping fails in a checkout of another owner.
export GOFLAGS="-buildvcs=false -trimpath -buildmode=pie"
export HOME="${HOME:-/root}"
# setup's programs come first, not another python3 or clang on the PATH.
export PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH"

# shellcheck disable=SC2034 # used by the files that include this one
if [[ -t 1 ]]; then
	BOLD=$'\e[1m' RED=$'\e[31m' GREEN=$'\e[32m' YELLOW=$'\e[33m' PLAIN=$'\e[0m'
else
	BOLD='' RED='' GREEN='' YELLOW='' PLAIN=''
fi

say() {
	printf '%s==> %s%s\n' "$BOLD" "$*" "$PLAIN"
}

warn() {
	printf '%s==> %s%s\n' "$YELLOW" "$*" "$PLAIN" >&2
}

die() {
	printf '%s==> %s%s\n' "$RED" "$*" "$PLAIN" >&2
	exit 1
}

is_root() {
	((EUID == 0))
}

# Runs a command with its output in LOG, which is shown when the command fails.
# usage: quietly LOG COMMAND...
quietly() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 || {
		cat "$log" >&2
		return 1
	}
}

# Number of jobs for builds and checks.
jobs_count() {
	nproc
}

# Milliseconds since the epoch.
now_ms() {
	local t=${EPOCHREALTIME/[.,]/}
	printf '%s\n' "${t%???}"
}

# The repository's own files, one a line: tracked ones and new ones that .gitignore does not name.
# usage: repo_files [PATHSPEC...]
repo_files() {
	if git_here rev-parse --git-dir >/dev/null 2>&1; then
		git_here ls-files -co --exclude-standard -- "$@" | sort -u | while IFS= read -r file; do
			# A file removed but not yet committed as such is still listed.
			[[ -f $file ]] && printf '%s\n' "$file"
		done
	else
		die "this is no git checkout: the checks need one to know which files are the repository's"
	fi
}

# git, also where root works in another user's checkout.
git_here() {
	git -c safe.directory='*' "$@"
}

# True when NAME contains one of the WORDs, or when there is no word.
# usage: wanted NAME [WORD...]
wanted() {
	local name=$1 word
	shift
	(($# == 0)) && return 0
	for word in "$@"; do
		[[ $name == *"$word"* ]] && return 0
	done
	return 1
}
