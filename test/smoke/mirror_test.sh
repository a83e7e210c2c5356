#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Mirrors: one subscriber's frames into a pcap file, another's to an ERSPAN collector. tshark reads the copies; what is
# in them is what came in, byte for byte.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"

golden=$TEST_ROOT/test/golden
cp "$golden"/traffic/in-*.pcap "$DIR"
sed "s|driver: inject, role: \([a-z]*\)|driver: net_pcap, role: \1, \\
args: \"rx_pcap=$DIR/in-\1.pcap,tx_pcap=$DIR/\1.pcap\"|
	s|{name: alice,|& mirror: file,|
	s|{name: bob,|& mirror: collector,|
	1i engine: {huge_pages: \"off\", packet_buffers: 8192, idle_sleep: true}
	/^interfaces:/i\\
\\  - {name: tap, driver: net_pcap, role: core, args: \"tx_pcap=$DIR/tap.pcap\"}\\
mirrors:\\
\\  - {name: file, to: {port: tap}}\\
\\  - {name: collector, to: {erspan: 10.30.0.2, session: 677, dscp: 8}}\\
" "$golden/config.yaml" >"$DIR/isthmus.yaml"
start_gateway
all_in() { isthmus show total -j | "$PYTHON" -c 'import json, sys; sys.exit(json.load(sys.stdin)["in"] < 32)'; }
wait_for 10 all_in
isthmus show mirror -j >"$DIR/mirrors.json"
sed 's|erspan: 10.30.0.2|erspan: 10.30.0.1|' "$DIR/isthmus.yaml" >"$DIR/bad.yaml"
if isthmus config apply "$DIR/bad.yaml" 2>"$DIR/refused"; then
	fail "a collector that is the gateway itself was taken"
fi
grep -E "bad.yaml:[0-9]+: mirrors\[1\].to.erspan: 10.30.0.1 is an address of ours" "$DIR/refused"
stop_gateway

# usage: fields FILE FILTER FIELD...
fields() {
	local file=$1 filter=$2 list=()
	shift 2
	for f; do list+=(-e "$f"); done
	tshark -n -r "$DIR/$file" -o ip.check_checksum:TRUE -Y "$filter" -T fields -E separator=' ' \
		-E occurrence=f "${list[@]}" 2>>"$DIR/errors"
}
fields core.pcap 'erspan && !_ws.malformed && ip.checksum.status != 0' ip.src ip.dst ip.dsfield.dscp gre.proto \
	erspan.version \
	erspan.spanid gre.sequence_number >"$DIR/copies"
cat "$DIR/copies"
PYTHONPATH=$PYTHONPATH:$golden "$PYTHON" - <<-EOF
	import json, struct
	from frames import check, done, equal, read_records
	rows = {r["name"]: r for r in json.load(open("$DIR/mirrors.json"))}
	came = [bytes(d) for side in ("access", "core") for _, d in read_records(f"$DIR/in-{side}.pcap")]
	def as_it_came(frame):
	    return any(f[: len(frame)] == frame and not any(f[len(frame) :]) for f in came)  # without padding
	tap = [bytes(d) for _, d in read_records("$DIR/tap.pcap")]
	check(tap, "nothing in the pcap file")
	equal("copies in the file", len(tap), rows["file"]["packets"])
	check(all(map(as_it_came, tap)), "a frame in the file did not come in")
	ways = {f[6:12].hex() == "020000000001" for f in tap}
	check(ways == {True, False}, "one direction is missing")
	seen = [line.split() for line in open("$DIR/copies")]
	check(seen, "no ERSPAN packet")
	equal("copies for the collector", len(seen), rows["collector"]["packets"])
	for n, words in enumerate(seen):
	    equal(f"ERSPAN packet {n}", (words[:3], int(words[3], 16), words[4:6], int(words[6])),
	          (["10.30.0.1", "10.30.0.2", "8"], 0x88BE, ["1", "677"], n))
	inside = [bytes(d)[14 + 20 + 16:] for _, d in read_records("$DIR/core.pcap")
	          if d[12:14] == b"\x08\x00" and d[23] == 47]
	equal("ERSPAN packets", len(inside), len(seen))
	check(all(map(as_it_came, inside)), "a frame inside ERSPAN did not come in")
	done("mirrors")
EOF
echo PASS
