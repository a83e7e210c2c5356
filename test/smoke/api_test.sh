#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The API by TCP: a certificate made at the first start and kept, roles, a remote command line. A follower of events
# misses none while either process is killed. Needs no root.
# shellcheck source=test/lib/both.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/both.sh"

port=$((20000 + $$ % 10000))
for role in read operate; do
	isthmus token make "$role" --role "$role" >"$dir/$role.token" 2>"$dir/$role.line"
done
cat >"$dir/isthmus.yaml" <<YAML
control:
  metrics: ""
  state: $dir/state
  api:
    listen: ["127.0.0.1:$port"]
    tokens:
$(sed -n 's/^ *- /      - /p' "$dir/read.line" "$dir/operate.line")
engine: {idle_sleep: true}
ports:
  - {name: core, driver: synth, role: core}
interfaces:
  - {name: core, port: core, addresses: [192.0.2.1/24]}
YAML

start_cp() {
	"$bin/isthmus" run -c "$dir/isthmus.yaml" --dp-socket "$dir/dp.sock" --no-spawn >>"$dir/cp.log" 2>&1 &
	cp=$!
}
fingerprint() { sed -n 's/.*fingerprint=\([0-9a-f]*\).*/\1/p' "$dir/cp.log" | sort -u; }
# usage: remote ROLE WORD...
remote() {
	local role=$1
	shift
	isthmus --server "https://127.0.0.1:$port" --fingerprint "$(fingerprint)" --token-file "$dir/$role.token" "$@"
}
# usage: followed KIND TIMES: the follower has seen an event so often
followed() { (($(grep -c "\"kind\":\"$1\"" "$dir/follower") == $2)); }
# usage: refuses STATUS WORDS COMMAND...
refuses() {
	local status=$1 words=$2 got=0
	shift 2
	"$@" >"$dir/said" 2>&1 || got=$?
	if ((got != status)) || ! grep -q -- "$words" "$dir/said"; then
		fail "$* ended with $got: $(cat "$dir/said")"
	fi
}

: >"$dir/follower"
start_dp
start_cp
isthmus status --wait 120s >/dev/null
"$bin/isthmus" --server "https://127.0.0.1:$port" --fingerprint "$(fingerprint)" --token-file "$dir/read.token" \
	events -f -j >"$dir/follower" 2>"$dir/follower.log" &
other=$!
wait_until "the follower has the first events" followed port.up 1

# Roles, names, certificates.
remote read show port --where 'name=co*' -j | has '"driver": "synth"' || fail "no port"
[[ $(remote read show port --where up=false -j) == '[]' ]] || fail "a port that is down"
refuses 1 "the role read may not" remote read config apply "$dir/isthmus.yaml"
refuses 1 "ISTHMUS_TOKEN" isthmus --server "https://127.0.0.1:$port" --ca "$dir/state/api.crt" show port
refuses 3 "fingerprint" isthmus --server "https://127.0.0.1:$port" show port
refuses 1 "is not known" env ISTHMUS_TOKEN=isthmus_no "$bin/isthmus" --server "https://127.0.0.1:$port" \
	--ca "$dir/state/api.crt" show port
curl -s --cacert "$dir/state/api.crt" -H "Authorization: Bearer $(cat "$dir/read.token")" \
	"https://localhost:$port/v1/status" | field 'd["data_plane"]' | has ready || fail "no status for curl"

# A remote change: done, published, and kept with its author.
{
	cat "$dir/isthmus.yaml"
	echo 'routes: [{prefix: 198.51.100.0/24, via: 192.0.2.2}]'
} >"$dir/more.yaml"
remote operate config apply "$dir/more.yaml" >/dev/null
wait_until "the follower has the change" followed config.applied 1
field 'd["who"]["token"] + " " + d["fields"]["changes"][0]' <"$dir/state/audit.log" |
	grep -qx 'operate add route 198.51.100.0/24' || fail "audit: $(cat "$dir/state/audit.log")"

# Either process dies. The follower continues, without repetitions.
first=$(fingerprint)
stop "$dp"
wait_until "the loss is told" followed dataplane.down 1
start_dp
wait_until "the return is told" followed dataplane.up 2
stop "$cp"
start_cp
wait_until "the new control plane is told" followed control.started 2
[[ $(fingerprint) == "$first" ]] || fail "another certificate after a restart"
sort "$dir/follower" | uniq -d | grep . && fail "events came twice"
python3 - "$dir/follower" <<'PY' || fail "events are missing"
import json, sys

last = {}
for line in open(sys.argv[1]):
    e = json.loads(line)
    assert e["id"] == last.get(e["boot"], 0) + 1, e
    last[e["boot"]] = e["id"]
PY
echo "followed: $(wc -l <"$dir/follower") events of two control planes and two data planes, none missing"
