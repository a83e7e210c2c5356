#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What FreeRADIUS can do, and what of it reaches homes: bench/radius.sh [HOMES [RATE...]] (default 3,000 homes; 2,500
# and 3,000 dials a second; root; two CPUs). By turns, three times: radclient asks FreeRADIUS for each home once, by
# CHAP, as fast as it is answered. Then the homes sign in by PPPoE and CHAP through the gateway; the best rate counts.
# FreeRADIUS (one thread) has one CPU; the other is radclient's, or that of control plane, data plane and homes. No
# accounting on either side. radclient's CPU is full before FreeRADIUS', so its limit is what its CPU time allows.
# Prints CPU time a home of each process (with the gateway: of its sign-in and its end). BUILD names another build.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../test/lib/net.sh"
# shellcheck source=test/lib/freeradius.sh
. "$TEST_ROOT/test/lib/freeradius.sh"
# shellcheck source=test/lib/homes.sh
. "$TEST_ROOT/test/lib/homes.sh"
own_namespaces "$@"
homes=${1:-3000} rates=(2500 3000)
(($# < 2)) || rates=("${@:2}")
taskset -cp 0 $$ >/dev/null

bng_links
for ((i = 1; i <= homes; i++)); do
	printf 'user%d\tCleartext-Password := "user%d"\n' $i $i >>"$DIR/users"
	printf '%s\n' "User-Name = user$i" "CHAP-Password = user$i" "Message-Authenticator = 0x00" \
		'NAS-Identifier = bng-1' 'NAS-IP-Address = 127.0.0.1' "Acct-Session-Id = 0123456789$i" \
		'Service-Type = Framed-User' 'Framed-Protocol = PPP' "NAS-Port = $((409600 + i))" \
		"NAS-Port-Id = access:100.$i" "Calling-Station-Id = 02:00:00:00:00:00" "" >>"$DIR/requests"
done
start_freeradius "$(<"$DIR/users")"
server=$(pgrep -x freeradius)
taskset -acp 1 "$server" >/dev/null
radius_gateway "s/packet_buffers: 8192/packet_buffers: 32768\n  limits: {sessions: $((homes + 1024))}/" \
	's/idle_sleep: true/&\n  rates: {punt: 200000, punt_port: 200000, punt_s_tag: 100000}/' \
	's/^access:/&\n  limits: {rate: 0}/' </dev/null
sed -i 's/servers: \[{name: one/&, use: authentication/' "$DIR/isthmus.yaml"
start_gateway
read -r control data < <(ids)

# usage: cpu PID: the CPU time of its threads so far, us
cpu() { cat "/proc/$1/task/"*/schedstat | awk '{ sum += $1 } END { printf "%d\n", sum / 1000 }'; }

TIMEFORMAT='%U %S'
# usage: timed LOG COMMAND...: runs it; its CPU time a home, us, into `used`
timed() {
	local user system
	{ time "${@:2}" >"$1" 2>&1; } 2>"$DIR/time" || true # what it wrote is looked at
	read -r user system <"$DIR/time"
	used=$(awk "BEGIN { print int(($user + $system) * 1000000 / $homes) }")
}

# Into `cost`: FreeRADIUS' CPU time of an authentication, us.
alone() {
	local before
	before=$(cpu "$server")
	timed "$DIR/log" in_gateway radclient -q -s -p 100 -r 3 -t 1 -f "$DIR/requests" 127.0.0.1 auth example-only
	cost=$((($(cpu "$server") - before) / homes))
	grep -q "Accepted *: $homes\$" "$DIR/log" || fail "not all accepted: $(tail "$DIR/log")"
	echo "FreeRADIUS alone: CPU us: FreeRADIUS $cost, radclient $used"
}

# usage: through RATE: into `achieved`
through() {
	local of before=() each=()
	wait_for 60 nobody || fail "homes who left are there still"
	for of in "$server" "$control" "$data"; do before+=("$(cpu "$of")"); done
	timed "$DIR/log" isthmus control-load --access --interface home0 --rate "$1" --patience 60s \
		--subscribers "$homes" -j
	for of in "$server" "$control" "$data"; do
		each+=($((($(cpu "$of") - before[${#each[@]}]) / homes)))
	done
	sed -n '/^{/,/^}/p' "$DIR/log" >"$DIR/json"
	(($(jq .online "$DIR/json") == homes)) || fail "not all on line: $(tail "$DIR/log")"
	achieved=$(jq '.achieved_per_s | floor' "$DIR/json")
	echo "gateway: $achieved of $1 a second; CPU us: FreeRADIUS ${each[0]}, control plane ${each[1]}," \
		"data plane ${each[2]}, homes $used; FreeRADIUS $((each[0] * achieved / 10000)) % busy"
}

# usage: spread NUMBER...: median, least and most
spread() { printf '%s\n' "$@" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)], v[1], v[NR] }'; }

limits=() bests=()
for _ in 1 2 3; do
	alone
	limits+=($((1000000 / cost)))
	best=0
	for rate in "${rates[@]}"; do
		through "$rate"
		best=$((achieved > best ? achieved : best))
	done
	bests+=("$best")
done
read -r limit least most < <(spread "${limits[@]}")
echo "FreeRADIUS by its CPU time: $limit a second ($least to $most)"
read -r best least most < <(spread "${bests[@]}")
echo "through the gateway: $best a second ($least to $most): $((100 * best / limit)) %"
