#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The live page of a forwarding gateway: the rates are those of the streams, tables are searched, a subscriber has rules
# and figures, the report has them all. Either process may go and come back. Needs no root; BUILD names another build
# folder.
# shellcheck source=test/lib/both.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/both.sh"

start_cp() {
	"$bin/isthmus" run -c "$dir/isthmus.yaml" --dp-socket "$dir/dp.sock" --metrics off --no-spawn >>"$dir/cp.log" \
		2>&1 &
	cp=$!
}
address=127.0.0.1:$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
page() { curl --silent --show-error --fail --max-time 30 "http://$address/page/$1"; }

# Prints an expression over d (the stream's next hello) and v(group, name), the last value.
hello() {
	{ curl --silent --no-buffer --max-time 10 "http://$address/page/stream" || true; } |
		sed -n '/^event: hello/{n;s/^data: //p;q}' |
		python3 -c "
import json, sys
d = json.load(sys.stdin)
def v(g, n):
    lines = [s for s in d['history']['series'] if s['g'] == g and s['n'] == n]
    return lines and (lines[0]['v'][-1] if 'v' in lines[0] else lines[0]['l']) or 0
print($1)"
}
# usage: says EXPRESSION
says() { [[ $(hello "$1" 2>/dev/null) == True ]]; }

isthmus bench agf-symmetric --link synth --print-config >"$dir/isthmus.yaml"
sed -i "s|^control:.*|control: {metrics: 'off', page: true, \\
api: {listen: ['$address'], tls: 'off', anonymous: read}}|" "$dir/isthmus.yaml"
start_dp
start_cp
isthmus status --wait 120s >/dev/null

# Two streams of 5,000 p/s each way, on a machine that may pause.
isthmus stream load agf-symmetric --rate 5000 >/dev/null
isthmus stream start
wait_until "rates of the streams" says 'v("pps", "access in") and 2000 < v("pps", "access in") < 30000'
wait_until "sessions" says 'v("sessions", "sessions") == 1000'
wait_until "packets on the edges from port-rx" \
	says 'v("edge", "port-rx > flow-input") > 0 < v("edge", "port-rx > flow-access")'
wait_until "load without drops" says 'v("load", "worker 0") > 0 and v("total", "dropped") == 0'

found=$(page 'table/session?q=pppoe-0010&sort=name' | field 'd["matched"], d["total"], d["rows"][0]["name"]')
[[ $found == "10 1000 pppoe-00100" ]] || fail "search: $found"
has_rates() {
	[[ $(page 'table/session?sort=-bps&limit=3' | field 'd["rates"] and d["rows"][0]["bps"] > 0') == True ]]
}
wait_until "rates of sessions" has_rates
is_sampled() {
	[[ $(page 'subscriber?name=qinq-00007' |
		field 'd["rules"] and len(d["rules"]) == 2 and len(d["history"]["t"]) > 1') == True ]]
}
wait_until "a subscriber's figures" is_sampled
page report.html >"$dir/report.html"
for word in 'access in' 'worker 0' 'flow-input' 'class="plot"'; do
	grep -q "$word" "$dir/report.html" || fail "the report does not have $word"
done
code=$(curl --silent --output /dev/null --write-out '%{http_code}' -H 'Host: evil.example' "http://$address/")
[[ $code == 403 ]] || fail "another's name is served: $code"

# The data plane goes and comes back; then the control plane, whose page is where it was.
stop "$dp"
wait_until "away" says 'd["status"]["data_plane"] == "away" and v("pps", "access in") == 0'
start_dp
wait_until "back" says 'd["status"]["data_plane"] == "ready" and v("pps", "access in") == 0'
stop "$cp"
start_cp
isthmus status --wait 120s >/dev/null
wait_until "the page after a restart" says 'v("sessions", "sessions") == 1000'
echo "page: rates, edges, search, subscriber, report; both processes came back"
