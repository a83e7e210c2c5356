#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# net_pcap: the captures of test/golden/traffic as ports, one line of YAML each.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

golden=$TEST_ROOT/test/golden
cp "$golden"/traffic/in-*.pcap "$DIR"
sed "s|driver: inject, role: \([a-z]*\)|driver: net_pcap, role: \1, \\
args: \"rx_pcap=$DIR/in-\1.pcap,tx_pcap=$DIR/\1.pcap\"|
	1i engine: {huge_pages: \"off\", packet_buffers: 8192, idle_sleep: true}" "$golden/config.yaml" \
	>"$DIR/isthmus.yaml"
grep net_pcap "$DIR/isthmus.yaml"
start_gateway
all_in() { isthmus show total -j | "$PYTHON" -c 'import json, sys; sys.exit(json.load(sys.stdin)["in"] < 32)'; }
wait_for 10 all_in
stop_gateway
PYTHONPATH=$PYTHONPATH:$golden "$PYTHON" - <<-EOF
	from cases import downlink_cases, uplink_cases
	from compare import check_downlink, check_uplink, match
	from frames import decode, done, read_records
	from gen import ACCESS, CORE, UPF
	out = {side: decode([d for _, d in read_records(f"$DIR/{side}.pcap")], "$DIR/decoded.pcap")
	       for side in ("access", "core")}
	match("uplink", list(uplink_cases(ACCESS)), [f for f in out["core"] if f.get("gtp")],
	      lambda *c: check_uplink(*c, CORE, UPF))
	match("downlink", list(downlink_cases(CORE, UPF)), out["access"], lambda *c: check_downlink(*c, ACCESS))
	done("net_pcap")
EOF
echo PASS
