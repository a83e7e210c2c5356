#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Control planes of another age with a data plane of today, under traffic: one whose structs have a field more, one whose structs have
# one fewer. Each brings everything up, takes over, changes all sessions and changes them back.
# No packet is lost, and what nobody changed is not sent again. Needs no root; BUILD names another build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$(realpath "${BUILD:-build}")
dir=$(mktemp -d)
export ISTHMUS_SOCKET=$dir/isthmus.sock
dp='' cp=''

cleanup() {
	local status=$?
	for pid in $cp $dp; do
		kill -9 "$pid" 2>/dev/null || true
	done
	if ((status != 0)); then
		echo "--- control plane log"
		tail -n 30 "$dir/cp.log" || true
		echo "--- data plane log"
		tail -n 30 "$dir/dp.log" || true
	fi
	chmod -R u+w "$dir" && rm -rf "$dir"
}
trap cleanup EXIT

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

field() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)"; }

# usage: wait_until WHAT COMMAND...
wait_until() {
	local what=$1
	shift
	for _ in $(seq 600); do
		"$@" && return
		sleep 0.05
	done
	fail "never: $what"
}

isthmus() { "$bin/isthmus" "$@"; }
streams() { isthmus show stream -j | field "sum(s['$1'] for s in d)"; }
offered_more_than() { (($(streams offered) > $1)); }
all_arrived() { (($(streams offered) == $(streams received))); }
changes() { isthmus status -j | field 'd["changes"]'; }

# Makes a control plane from the sources with another header.
# usage: control_plane NAME EDIT; EDIT is a Python program that changes the header `h`, and drops uses of what is gone from Go files
control_plane() {
	local src=$dir/src-$1
	mkdir -p "$src"
	cp -r go.mod go.sum api controlplane "$src"
	python3 - "$src" "$2" <<'PYTHON'
import sys

def edit(text, old, new):
    if text.count(old) != 1:
        sys.exit(f"the source has {old!r} {text.count(old)} times")
    return text.replace(old, new)

def grow(text, struct, fields):
    start = text.index(f"struct {struct} {{")
    end = text.index("\n};", start)
    return text[:end] + "\n\t" + fields + text[end:]

def shrink(text, struct, fields):
    start = text.index(f"struct {struct} {{")
    end = text.index("\n};", start)
    return text[:start] + edit(text[start:end], fields, "") + text[end:]

def put(path, text):
    with open(f"{sys.argv[1]}/{path}", "w", encoding="utf-8") as f:
        f.write(text)

def drop(path, old):
    with open(f"{sys.argv[1]}/{path}", encoding="utf-8") as f:
        text = f.read()
    put(path, edit(text, old, ""))

with open(f"{sys.argv[1]}/api/isthmus_api.h", encoding="utf-8") as f:
    h = f.read()
exec(sys.argv[2])
put("api/isthmus_api.h", h)
PYTHON
	"$src/api/check.sh" --write
	cmp -s "$src/api/types_gen.go" api/types_gen.go && fail "$1: the types are those of today"
	(cd "$src" && go build -o "$dir/isthmus-$1" ./controlplane/cmd/isthmus)
	chmod -R u+w "$src" && rm -rf "$src"
}

# usage: take_over PROGRAM: the control plane that runs dies, this one takes its place
take_over() {
	if [[ -n $cp ]]; then
		kill -9 "$cp"
		wait "$cp" 2>/dev/null || true
	fi
	"$1" run -c "$dir/isthmus.yaml" --dp-socket "$dir/dp.sock" --metrics off --no-spawn >>"$dir/cp.log" 2>&1 &
	cp=$!
	isthmus status --wait 60s >"$dir/status" || fail "$1: $(cat "$dir/status")"
}

# usage: take_over_and_change NAME PROGRAM PREFIX: and nothing is sent but what then changes
take_over_and_change() {
	local before
	take_over "$2"
	(($(changes) == 0)) || fail "$1: sent $(changes) changes for what was there already"
	before=$(streams offered)
	sed "s|^routes:|routes:\n  - {prefix: $3, via: 192.0.2.2}|; s|^policers:|policers:\n  - {name: other, type: trtcm, cir: 20Gbit, pir: 40Gbit}|
		s/_policer: contract/_policer: other/" "$dir/isthmus.yaml" >"$dir/changed.yaml"
	isthmus config apply "$dir/changed.yaml" >"$dir/applied"
	grep -q "1002 sent, 0 deleted" "$dir/applied" || fail "$1: $(cat "$dir/applied")" # route, policer, all sessions
	isthmus show route | grep -q "^${3%/*}" || fail "$1: the route is not there"
	(($(isthmus show session -j | field 'len(d)') == 1000)) || fail "$1: not 1000 sessions"
	kill -HUP "$cp"
	wait_until "$1: the file is back" route_is_gone "${3%/*}"
	wait_until "$1: streams run" offered_more_than $((before + 2000))
	echo "$1: takes over, changes and takes back under traffic"
}
route_is_gone() { ! isthmus show route | grep -q "^$1"; }
session_count_is() { (($(isthmus show total -j | field 'd["sessions"]') == $1)); }

control_plane more '
for struct in ("hello", "session", "pdr", "far", "acl_rule", "path", "session_row", "total_row", "stats_request", "digest", "list"):
    h = grow(h, "api_" + struct, "uint64_t later;")
for struct in ("engine", "port"):
    h = grow(h, "api_" + struct, "uint32_t later;")
'
control_plane fewer '
h = shrink(h, "api_session", "uint32_t\n\t\tassociation;")
h = shrink(h, "api_session", "uint32_t pad2;")
h = shrink(h, "api_qer", "uint32_t pad2;")
drop("controlplane/session/compile.go", ",\n\t\tAssociation: s.Association")
'

isthmus bench agf-symmetric --link synth --print-config >"$dir/isthmus.yaml"
"$bin/isthmus-dp" --socket "$dir/dp.sock" >>"$dir/dp.log" 2>&1 &
dp=$!

# The one with a field more brings everything up.
take_over "$dir/isthmus-more"
session_count_is 1000 || fail "not 1000 sessions"
isthmus stream load agf-symmetric --rate 5000 --check-every 1 >/dev/null
isthmus stream start
wait_until "streams run" offered_more_than 2000
take_over_and_change "a field fewer" "$dir/isthmus-fewer" 203.0.113.0/24
take_over_and_change "a field more" "$dir/isthmus-more" 198.18.9.0/24
take_over_and_change "today" "$bin/isthmus" 198.18.8.0/24
isthmus stream stop
wait_until "every packet arrived" all_arrived
echo "offered $(streams offered), received $(streams received), compared $(streams checked), wrong $(streams wrong)"
(($(streams wrong) == 0 && $(streams checked) == $(streams received))) || fail "packets are lost or wrong"

# And the one with a field fewer brings everything up, too.
kill -9 "$dp"
wait "$dp" 2>/dev/null || true
take_over_nothing() { ! isthmus status >/dev/null 2>&1; }
wait_until "the loss is noticed" take_over_nothing
"$bin/isthmus-dp" --socket "$dir/dp.sock" >>"$dir/dp.log" 2>&1 &
dp=$!
take_over "$dir/isthmus-fewer"
session_count_is 1000 || fail "not 1000 sessions"
take_over "$bin/isthmus"
(($(changes) == 0)) || fail "sent $(changes) changes for what an older control plane made"

# A layout that differs within the version is seen before anything is sent, and both sides say so.
control_plane other 'h = edit(h, "uint16_t s_tag, c_tag; // 0: none", "uint16_t c_tag, s_tag;")'
kill -9 "$cp"
wait "$cp" 2>/dev/null || true
"$dir/isthmus-other" run -c "$dir/isthmus.yaml" --dp-socket "$dir/dp.sock" --metrics off --no-spawn >"$dir/other.log" 2>&1 &
cp=$!
wait_until "the control plane says which struct differs" grep -q "struct api_session is laid out otherwise" "$dir/other.log"
grep -q "turned away: struct api_session is laid out otherwise" "$dir/dp.log" || fail "the data plane does not say which struct differs"
echo PASS
