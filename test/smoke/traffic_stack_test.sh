#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tester's header compiler, read by tshark: every combination of layers, whole and with good checksums. The unit
# test that compares the same frames with our own decoder also writes them to a file. Needs no root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=$(realpath "${BUILD:-build}")/traffic/traffic-template-test
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

STACK_TEST_PCAP=$dir/all.pcap "$program" >"$dir/log" 2>&1 || {
	cat "$dir/log"
	exit 1
}

# The users' ports are decoded as data: a heuristic of tshark could take the payload for something.
# usage: look FILE OPTION...
look() {
	local file=$1
	shift
	tshark -n -r "$file" -d udp.port==5000-5003,data -d tcp.port==5000-5003,data -o ip.check_checksum:TRUE \
		-o udp.check_checksum:TRUE -o tcp.check_checksum:TRUE -o tcp.analyze_sequence_numbers:FALSE "$@" \
		2>"$dir/errors"
}

bad='_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0 || tcp.checksum.status == 0 ||
	icmp.checksum.status == 0 || icmpv6.checksum.status == 0'

look "$dir/all.pcap" -Y "$bad" >"$dir/bad"
if [[ -s $dir/bad ]]; then
	head -20 "$dir/bad"
	exit 1
fi

# Tags (4), PPPoE or not (2), tunnels over IPv4, over IPv6 or none (3), inner IPv4 or IPv6 (2), payload (4): each
# combination is identified, down to the payload.
look "$dir/all.pcap" -T fields -e frame.protocols | sort | uniq -c >"$dir/seen"
kinds=$(wc -l <"$dir/seen")
stack='eth:ethertype(:ieee8021ad:ethertype)?(:vlan:ethertype){0,2}(:pppoes:ppp)?'
stack="$stack(:ip(v6)?:udp:gtp)?:ip(v6)?(:udp|:tcp|:icmp|:icmpv6)?:data\$"
whole=$(grep -cE "^ *[0-9]+ $stack" "$dir/seen")
((kinds == 4 * 2 * 3 * 2 * 4 && whole == kinds)) || {
	echo "tshark sees $kinds stacks, $whole of them whole:"
	grep -vE "$stack" "$dir/seen" | head -20
	exit 1
}

# One byte wrong (TTL of the first frame, behind the headers of file, record and Ethernet) is seen.
cp "$dir/all.pcap" "$dir/wrong.pcap"
printf '\x3f' | dd of="$dir/wrong.pcap" bs=1 seek=$((24 + 16 + 14 + 8)) conv=notrunc status=none
[[ $(look "$dir/wrong.pcap" -Y "$bad" | wc -l) == 1 ]] || {
	echo "tshark did not see the wrong byte"
	exit 1
}
echo PASS
