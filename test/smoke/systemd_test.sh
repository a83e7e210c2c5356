#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The units of deploy/systemd. Both programs are started by their ExecStart, with no more than the units leave them
# (lib/unit.py). Their user may write only into folders that the units have made, with `state` where the documents put
# it. The control plane's files survive a reboot, which empties /run. systemd's own check of the units.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
export ISTHMUS_SOCKET=/run/isthmus/isthmus.sock
command -v systemd-analyze >/dev/null || skip "needs systemd-analyze"

# Prints a unit's value. usage: setting UNIT NAME
setting() { sed -n "s/^$2=//p" "$TEST_ROOT/deploy/systemd/$1.service"; }

# Makes a folder as systemd does before it starts a unit. usage: make_folder UNIT Runtime|State PARENT
make_folder() {
	local name mode
	name=$(setting "$1" "$2Directory")
	mode=$(setting "$1" "$2DirectoryMode")
	[[ -z $name ]] || install -d -o "$UNIT_USER" -g "$UNIT_USER" -m "${mode:-755}" "$3/$name"
}

# Starts units; `pids` are theirs. usage: start_units UNIT...
start_units() {
	local unit words
	pids=()
	for unit; do
		make_folder "$unit" Runtime /run
		make_folder "$unit" State /var/lib
		read -ra words < <(setting "$unit" ExecStart)
		"$UNIT" "$unit" "${words[@]/#\/etc\/isthmus/$DIR}" >>"$DIR/$unit.log" 2>&1 &
		pids+=($!)
	done
	isthmus status --wait 20s >"$DIR/status" 2>&1 ||
		fail "they do not start: $(cat "$DIR/status" "$DIR/isthmus-dp.log")"
}

# A reboot: both end, and /run is empty.
reboot() {
	kill -TERM "${pids[@]}"
	wait "${pids[@]}"
	umount /run
	mount -t tmpfs -o mode=755 tmpfs /run
}

# systemd 252 gives 1.9 and 1.6.
for unit in isthmus-dp isthmus; do
	systemd-analyze security --offline=true --threshold=30 \
		"$TEST_ROOT/deploy/systemd/$unit.service" >"$DIR/score" ||
		fail "$unit.service is exposed: $(tail -n 1 "$DIR/score")"
done

for folder in /run /var/lib /usr/local/bin; do
	mount -t tmpfs -o mode=755 tmpfs "$folder"
done
install -m 755 "$BIN/isthmus" "$BIN/isthmus-dp" /usr/local/bin
cat >"$DIR/isthmus.yaml" <<'YAML'
control:
  state: /var/lib/isthmus
  metrics: "off"
  api: {listen: ["127.0.0.1:9443"], anonymous: read}
engine: {idle_sleep: true}
ports:
  - {name: core, driver: synth, role: core}
interfaces:
  - {name: core, port: core, addresses: [192.0.2.1/24]}
YAML
chown "$UNIT_USER" "$DIR/isthmus.yaml"

start_units isthmus-dp isthmus
read -ra words < <(setting isthmus ExecReload)
"$UNIT" isthmus "${words[@]}"
curl -sk https://127.0.0.1:9443/v1/status | jq -e '.data_plane == "ready"' >/dev/null || fail "no API by TLS"
reboot
start_units isthmus-dp isthmus
fingerprints=$(grep -o 'fingerprint=[0-9a-f]*' "$DIR/isthmus.log" | sort | uniq -c)
[[ $fingerprints == *" 2 "* ]] || fail "certificates: $fingerprints"
for file in api.crt api.key audit.log; do
	[[ -s /var/lib/isthmus/$file ]] || fail "no $file in /var/lib/isthmus: $(ls -l /var/lib/isthmus)"
done
[[ $(stat -c %a /var/lib/isthmus) == 750 ]] || fail "others may look into /var/lib/isthmus"
echo "systemd: both units start without root, and keep their state over a reboot"
