#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: routing daemons' clocks
# `isthmus lab isp`: two gateways and two FRR routers find each other. Pools are announced, preferred at the first
# gateway, and no routes of the data plane. Ordinary programs reach wireline and mobile subscribers and back, and routes
# come by BGP. A flood of subscribers for the control plane takes no routing session. Each process of the first gateway
# is killed under a counted stream: forwarding goes on without its control plane, zebra, staticd and bgpd. Then the
# whole gateway is killed: the other one takes over, and gives back. The duration is printed, not judged.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/lab.sh
. "$TEST_ROOT/test/lib/lab.sh"
lab_fixture
[[ -x /usr/lib/frr/bgpd ]] || skip "needs FRR (Debian: frr)"
chmod 755 "$DIR" # FRR's daemons are no root

# A control plane that never finds a data plane, and its predecessor's announcements.
ip netns add alone
ip -n alone link set lo up
alone() { ip -n alone route show proto 73 type blackhole | has '^blackhole 10.45.0.0/16 '; }
ip -n alone route add blackhole 10.45.0.0/16 proto 73 metric 1
alone || fail "no blackhole route: $(ip -n alone route)"
cat >"$DIR/alone.yaml" <<-'EOF'
	ports: [{name: core, driver: synth, role: core}]
	interfaces: [{name: n6, port: core, addresses: [10.6.0.1/24], clone: {device: n6, namespace: alone}}]
	instances:
	  - {name: internet, interfaces: [n6], lookup: destination, pools: [10.45.0.0/16], announce: pool}
EOF
isthmus run -c "$DIR/alone.yaml" --no-spawn --metrics off --socket "$DIR/alone.sock" --dp-socket "$DIR/alone-dp.sock" \
	>"$DIR/alone.log" 2>&1 &

"$BIN/isthmus" lab isp --ues 4 --homes 4 --routes 5000 --flood 5 --restarts --takeover --keep --dir "$LAB" \
	>"$DIR/isthmus.log" 2>&1 &
LAB_PID=$!
started() { grep -q 'Ctrl-C ends the lab' "$DIR/isthmus.log" || gone "$LAB_PID"; }
wait_for 160 started || fail "the lab takes too long: $(cat "$DIR/isthmus.log")"
! gone "$LAB_PID" || fail "the lab: $(cat "$DIR/isthmus.log")"
cat "$DIR/isthmus.log"

# usage: gateway NAME COMMAND...
gateway() { isthmus --socket "$LAB/$1/isthmus.sock" "${@:2}"; }
# usage: via PREFIX INTERFACE: of router 1
via() { ip -n ilab-r1 route show "$1" | has "dev $2 "; }

echo "--- routing"
! alone || fail "a control plane without a data plane announces: $(cat "$DIR/alone.log")"
for prefix in 10.45.0.0/16 10.99.0.1; do
	via "$prefix" gw1 || fail "router 1 reaches $prefix elsewhere: $(ip -n ilab-r1 route)"
done
ip -n ilab-r1 -6 route show 2001:db8:45::/48 | has 'dev gw1 ' || fail "$(ip -n ilab-r1 -6 route)"
for gateway in gw1 gw2; do
	gateway "$gateway" show route -j >"$DIR/routes"
	# usage: any_route CONDITION
	any_route() { jq -e "any($1)" "$DIR/routes" >/dev/null; }
	any_route '.prefix == "198.51.100.0/24"' || fail "$gateway learnt nothing: $(cat "$DIR/routes")"
	! any_route '.prefix == "10.45.0.0/16" and .discard != "unassigned"' ||
		fail "$gateway has its announcement as a route: $(cat "$DIR/routes")"
done
gateway gw1 status | grep '2 announced' || fail "$(gateway gw1 status)"

echo "--- ordinary programs"
# What is lost is counted elsewhere: on a busy machine BFD may send a packet round by the other gateway.
# usage: reaches NODE TARGET [OPTION...]
reaches() { wait_for 10 in_lab "$1" ping -q -c 1 -W 1 "${@:3}" "$2" || fail "$1 does not reach $2"; }
for target in 10.45.0.1 2001:db8:45:1::1 100.64.0.1 2001:db8:64:1::1 100.64.0.4; do
	reaches dn "$target"
done
for node in ue home; do
	for target in 198.51.100.1 2001:db8:100::1; do
		reaches "$node" "$target"
		reaches "$node" "$target" -s 1400
	done
	bytes=$(in_lab "$node" curl -sS --max-time 10 http://198.51.100.1/bytes/1000000 | wc -c)
	((bytes == 1000000)) || fail "curl of $node brought $bytes bytes"
done

echo "--- two VRFs with the same addresses"
# usage: serves NODE WORD: what a server at 198.51.100.1 says there
serves() {
	in_lab "$1" socat TCP-LISTEN:8080,fork,reuseaddr "SYSTEM:echo $2" || true & # until the lab ends
	wait_for 10 eval "in_lab $1 ss -Hltn | has :8080" || fail "socat of $1 does not listen"
}
# usage: says NODE WORD
says() { [[ $(in_lab "$1" socat -T 5 - TCP:198.51.100.1:8080,connect-timeout=5 </dev/null) == "$2" ]]; }
serves dn internet
serves vdn company
wait_for 10 says ue internet || fail "the UE has another server"
wait_for 10 says site company || fail "the site has another server"
for target in 10.45.0.1 2001:db8:45:1::1; do
	reaches vdn "$target"
done
for target in 198.51.100.1 2001:db8:100::1; do
	reaches site "$target"
	reaches site "$target" -s 1400
done
own=$(in_lab site ip -j addr show dev bridge | jq -r ".[].addr_info[].local" | grep -c "^10.45.0.1\$")
((own == 1)) || fail "the site does not have the UE's address"
for gateway in gw1 gw2; do
	gateway "$gateway" show route -j >"$DIR/routes"
	of() { jq -e '[.[] | select(.prefix == "198.51.100.0/24") | .vrf] | unique == ["", "vpn"]' "$DIR/routes"; }
	of >/dev/null || fail "$gateway has not both VRFs' routes: $(jq -c '.[]' "$DIR/routes")"
done
ip -n ilab-r3 route show 10.45.0.0/24 | has 'dev gw1 ' || fail "r3 goes elsewhere: $(ip -n ilab-r3 route)"

echo "--- what was killed"
# usage: `told` PATTERN
told() { grep "$1" "$DIR/isthmus.log" || fail "the lab does not tell: $1"; }
told '^5000 routes announced'
told '^5000 routes withdrawn'
told '^gw1 flooded for .* with [0-9.]* million packets a second.*: 0 BFD and 0 BGP sessions lost, 0 routes withdrawn'
for what in isthmus bgpd staticd zebra; do
	told "^$what of gw1 killed: wireline .* 0 of [1-9][0-9]* lost; mobile .* 0 of [1-9][0-9]* lost"
done
told '^isthmus-dp of gw1 killed: wireline .*; mobile '
told '^bfdd of gw1 killed: wireline .*; mobile '
told '^gw1 killed: wireline .*; mobile '
told '^4 sessions restored at gw2'
told '^4 sessions restored at gw1'
told '^gw1 back: wireline .*; mobile '
lab_show '[.sessions[].hops[-1].node] | unique == ["gw1.lab"]' >/dev/null ||
	fail "sessions are elsewhere: $(lab_show .)"

echo "--- a data plane's end withdraws, its return announces"
announced() { ip -n ilab-fab2 route show proto 73 type blackhole | has '^blackhole 10.45.0.0/16 '; }
announced || fail "gw2 announces nothing: $(ip -n ilab-fab2 route)"
ip -n ilab-fab2 monitor route >"$DIR/monitor" 2>&1 &
monitor=$!
wait_for 5 test -e "/proc/$monitor/fd/3" || fail "ip monitor does not start" # its socket
kill -KILL "$(gateway gw2 status -j | jq .dp_pid)"
withdrawn() { grep -q '^Deleted blackhole 10.45.0.0/16 ' "$DIR/monitor"; }
wait_for 10 withdrawn || fail "nothing is withdrawn: $(cat "$DIR/monitor")"
wait_for 20 announced || fail "nothing is announced again: $(ip -n ilab-fab2 route)"
kill "$monitor"
# shellcheck disable=SC2119 # as Ctrl-C does
stop_lab
echo PASS
