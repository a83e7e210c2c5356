#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A gateway with a home by DHCP and a session over PFCP is backed up while it runs, and lost. Its backup is restored in
# a fresh state folder, for a gateway in another network namespace. The home goes on with its lease, without signing in.
# Clients find the certificate that they know. The CP function sees a later Recovery Time Stamp and sets up its session
# again (TS 23.527). Refusals of a restore change nothing.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

# A machine's links; the namespace of the gateway is fresh.
machine() {
	bng_links
	ip link add n4 netns gateway type veth peer name smf0
	in_gateway ip addr add 10.40.0.1/24 dev n4
	in_gateway ip link set n4 up
	ip addr add 10.40.0.2/24 dev smf0
	ip link set smf0 up
}
machine
echo example-only >"$DIR/radius.secret"
chmod 600 "$DIR/radius.secret"
sed -e '/^ *\(dp_\)\?socket:/d' -e 's/methods: \[local\]/methods: [accept]/' \
	-e "s|^control:|&\n  state: $DIR/first\n  api: {listen: [\"127.0.0.1:9443\"], anonymous: read}|" \
	-e 's|^instances:|&\n  - {name: access, interfaces: [n3], endpoints: [10.30.0.1], sources: [access, cp]}|' \
	-e 's|^interfaces:|&\n  - {name: n3, port: uplink, outer_vlan: 30, addresses: [10.30.0.1/24]}|' \
	-e 's|lookup: destination|&, pools: [10.45.0.0/16], sources: [core, sgi-lan]|' \
	"$TEST_ROOT/deploy/examples/bng.yaml" >"$DIR/isthmus.yaml"
cat >>"$DIR/isthmus.yaml" <<-EOF2
	radius: {servers: [{address: 127.0.0.1, secret_file: $DIR/radius.secret, use: accounting, timeout_ms: 100,
	  tries: 1, status: 0}]}
	pfcp:
	  listen: [10.40.0.1]
	  roles: [upf]
	  peers: [{address: 10.40.0.2, node_id: smf1.isthmus.test}]
EOF2
fingerprint() { grep -o 'fingerprint=[0-9a-f]*' "$DIR/$1.log"; }
try() { "$PYTHON" "$TEST_ROOT/test/e2e/backup.py" "$@"; }

start_gateway
try before "$DIR/seen.json"
waiting() { isthmus store verify "$DIR/first/sessions.accounting.db" | grep -v ' 0 records of accounting'; }
wait_for 30 waiting
isthmus backup "$DIR/gateway.backup" || fail "no backup"
[[ $(stat -c %a "$DIR/gateway.backup") == 600 ]] || fail "a backup that others can read"
isthmus backup "$DIR/gateway.backup" 2>"$DIR/said" && fail "a backup is overwritten"
has "file already exists; --force" <"$DIR/said" || fail "overwritten: $(cat "$DIR/said")"
isthmus backup --to - 2>/dev/null | isthmus restore --dry-run -c "$DIR/isthmus.yaml" - >"$DIR/said" ||
	fail "through a pipe: $(cat "$DIR/said")"

# A restore over a gateway that runs is refused, with --force too.
isthmus restore --force -c "$DIR/isthmus.yaml" "$DIR/gateway.backup" 2>"$DIR/said" && fail "restored over a running one"
has "a control plane runs at" <"$DIR/said" || fail "over a running one: $(cat "$DIR/said")"

# The machine is lost with all that it had.
stamp=$(isthmus store verify "$DIR/first/sessions.db" | grep -o 'time stamp [^,]*')
stop_gateway
mv "$DIR/first" "$DIR/lost"
mv "$DIR/isthmus.yaml" "$DIR/lost.yaml"
mv "$DIR/isthmus.log" "$DIR/lost.log"
rm "$DIR/radius.secret"
ip netns delete gateway
wait_for 10 eval "! ip link show home0" # the namespace ends with its links a moment later
ip netns add gateway
in_gateway ip link set lo up
machine

# A changed backup changes nothing.
printf 'X' | cat - <(tail -c +2 "$DIR/gateway.backup") >"$DIR/bad.backup"
head -c -1 "$DIR/gateway.backup" >"$DIR/cut.backup"
for bad in bad cut; do
	isthmus restore -c "$DIR/isthmus.yaml" "$DIR/$bad.backup" 2>"$DIR/said" && fail "$bad: restored"
	[[ ! -e $DIR/isthmus.yaml && ! -e $DIR/first && ! -e $DIR/second ]] || fail "$bad: something is restored"
done

export ISTHMUS_CONTROL_STATE=$DIR/second # where this machine has it
in_gateway "$BIN/isthmus" restore -c "$DIR/isthmus.yaml" "$DIR/gateway.backup" >"$DIR/said" ||
	fail "no restore: $(cat "$DIR/said")"
cat "$DIR/said"
has "1 subscribers, [1-9][0-9]* records of accounting; 1 sessions of CP functions are left" <"$DIR/said" ||
	fail "$(cat "$DIR/said")"
! grep ': not on this machine' "$DIR/said" || fail "what is here is said not to be"
[[ ! -e $DIR/first && $(stat -c %a "$DIR/second/api.key" "$DIR/radius.secret" | uniq) == 600 ]] ||
	fail "$(ls -l "$DIR" "$DIR/second")"
[[ $(isthmus store verify "$DIR/second/sessions.db" | grep -o 'time stamp [^,]*') > $stamp ]] ||
	fail "the time stamp is not later than $stamp"
in_gateway "$BIN/isthmus" restore -c "$DIR/isthmus.yaml" "$DIR/gateway.backup" 2>"$DIR/said" && fail "restored twice"
has "there is something already: .*--force" <"$DIR/said" || fail "$(cat "$DIR/said")"

start_gateway
[[ $(fingerprint isthmus) == "$(fingerprint lost)" ]] || fail "another certificate"
try after "$DIR/seen.json"
echo PASS
