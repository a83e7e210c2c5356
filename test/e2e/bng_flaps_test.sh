#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# Homes sign in and vanish all the time, and no packet of other subscribers is lost.
# usage: bng_flaps_test.sh [HOMES FLAPS_PER_SECOND SECONDS PACKETS_PER_SECOND]
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/traffic.sh
. "$TEST_ROOT/test/lib/traffic.sh"
homes=${1:-300} flaps=${2:-100} seconds=${3:-4} rate=${4:-8000}

veth_pair veth-access home0
# The gateway of traffic_agf.yaml for permanent subscribers, and a port beside it for those that come and go.
{
	sed -e "s|SOCKETS|$DIR|; s/LEFT/0x103e/; s/RIGHT/0x103f/" \
		-e "s/idle_sleep: true/&, limits: {sessions: $((homes * 2 + 1024))}/" \
		-e "s/idle_sleep: true/&, rates: {punt: 100000, punt_s_tag: 50000}/" \
		-e '/^ports:/a\  - {name: homes, driver: net_af_packet, device: veth-access, role: access}' \
		"$TEST_ROOT/test/e2e/traffic_agf.yaml"
	cat <<-EOF
		instances:
		  - {name: internet, interfaces: [n3], lookup: destination}
		pools:
		  - {name: homes, instance: internet, prefix: 100.64.0.0/16, gateway: 100.64.0.1}
		aaa: {methods: [accept]}
		access:
		  ports: [{port: homes, pppoe: true}]
		  profiles: [{name: home, instance: internet, pool_ipv4: homes}]
	EOF
} >"$DIR/isthmus.yaml"
start_gateway
{
	profile_head others
	homes tagged 62 02:01:00:00:00:00 100 10.64.0.0 0x1000 0x2000 9 650
	homes ppp 64 02:02:00:00:00:00 200 10.64.1.0 0x1100 0x2100 5 650 "pppoe: {session: {base: 1}}"
	profile_run "$seconds" "rate: ${rate}pps"
} >"$DIR/others.yaml"

sessions() { isthmus show total -j | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["sessions"])'; }
there=$(sessions)
on_line() { (($(sessions) >= there + homes)); }
"$BIN/isthmus" control-load --access --interface home0 --subscribers "$homes" \
	--rate "$((flaps * 2))" --flaps "$flaps" --hold "$((seconds * 2 + 8))s" --json >"$DIR/load.json" &
load=$!
wait_for 60 on_line || fail "$homes homes are not on line"
run_tester_at_rate 0 others
kill -0 "$load" || fail "no home came or went when the last packet was sent"
result_says others 'r.complete' 'faults == {}' 'all(s.sent == s.received > 0 for s in r.trials[-1].streams)'
wait "$load" || fail "homes that come and go: $(cat "$DIR/load.json")"
"$PYTHON" - "$flaps" "$seconds" <<-'EOF' || fail "too few homes came and went"
	import json, os, sys
	flaps, seconds = map(int, sys.argv[1:])
	load, others = (json.load(open(f"{os.environ['DIR']}/{name}.json")) for name in ("load", "others"))
	trial = others["trials"][-1]
	print(f"{load['flaps']} homes came and went; of others {trial['lost']} of {trial['sent']} packets lost")
	sys.exit(load["flaps"] < flaps * seconds)
EOF
echo PASS
