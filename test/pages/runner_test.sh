#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The runner of pages: files, commands, background, expected failures; each kind of fault is found and named; nothing of
# a page stays.
set -euo pipefail
((EUID == 0)) || {
	echo "skip: needs root for namespaces"
	exit 77
}
runner=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../lib/page.py")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# usage: page STATUS PATTERN <TEXT: the page has that status, and prints a line that the pattern is in
page() {
	local status=0
	cat >"$dir/page.md"
	"$runner" "$dir/page.md" >"$dir/output" 2>&1 || status=$?
	if ((status != $1)) || ! grep -q -- "$2" "$dir/output"; then
		echo "FAIL: status $status, wanted $1 and \"$2\" from"
		cat "$dir/page.md" "$dir/output"
		exit 1
	fi
}

page 0 'PASS: 7 commands were run, 1 are left to a hand' <<-'EOF'
	```yaml title="/etc/isthmus-page/a.yaml"
	a: 1
	```
	```console
	$ cat /etc/isthmus-page/a.yaml
	a:   1
	$ mkdir deep; cd deep; NAME=seven
	$ echo one; echo "two $NAME \
	  words"; pwd
	two … words
	…/deep
	$ (sleep 0.2; echo late; sleep 1000) &
	late
	$ kill -INT %1
	$ sudo false    # fails
	$ ip link add page0 type veth
	```
	It needs a card.

	```console title="by hand"
	$ false
	```
EOF
[[ ! -e /etc/isthmus-page && ! -e /sys/class/net/page0 ]] || {
	echo "FAIL: something of the page is left"
	exit 1
}
page 1 'no line "one" in' <<-'EOF'
	```console
	$ echo one; echo two
	two
	one
	```
EOF
page 1 'page.md:3: \$ false' <<-'EOF'
	```console
	$ true
	$ false
	```
EOF
page 1 'status 0; it printed' <<-'EOF'
	```console
	$ true # fails
	```
EOF
page 1 'it does not come to an end' <<-'EOF'
	```console
	$ exit 3
	```
EOF
page 1 'says why it is not run' <<-'EOF'
	```console title="by hand"
	$ true
	```
EOF
page 1 'has no has_no_such_thing' <<<'<!-- page: needs has_no_such_thing -->'
page 1 'the block does not end' <<<'```console'
echo PASS
