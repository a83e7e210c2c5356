#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every GTP-U message that the data plane sends, over IPv4 and IPv6, with PDU Session Container and without, read by
# tshark. None is malformed, has a wrong checksum or a remark; type and fields are as meant. The unit test of the peers
# writes them. Needs no root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=$(realpath "${BUILD:-build}")/dataplane/gtpu-peer-test
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

ASAN_OPTIONS=detect_leaks=0 GTPU_PEER_PCAP=$dir/all.pcap "$program" >"$dir/log" 2>&1 || {
	cat "$dir/log"
	exit 1
}

# usage: look OPTION...
look() {
	tshark -n -r "$dir/all.pcap" -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -d udp.port==5000,data "$@" \
		2>"$dir/errors"
}

look -Y '_ws.malformed || _ws.expert.severity >= 4194304 || ip.checksum.status == 0 || udp.checksum.status == 0 ||
	!gtp' >"$dir/bad"
if [[ -s $dir/bad ]]; then
	head -20 "$dir/bad"
	exit 1
fi

# Message type, TEID, sequence number flag, extension header type, QFI: the same for both families.
look -T fields -E separator=' ' -e gtp.message -e gtp.teid -e gtp.flags.s -e gtp.ext_hdr.pdu_ses_con.qos_flow_id \
	>"$dir/seen"
want='0x01 0x00000000 1
0x02 0x00000000 1
0x1a 0x00000000 1
0x1f 0x00000000 1
0xff 0x00000201 0
0xfe 0x00000201 0
0xff 0x00000201 0 9
0xfe 0x00000201 0 9'
diff <(printf '%s\n%s\n' "$want" "$want") <(sed 's/ True/ 1/; s/ False/ 0/; s/ *$//' "$dir/seen") || exit 1

# The Error Indications have the TEID and the address that the packet was sent to.
look -Y 'gtp.message == 0x1a' -T fields -E separator=' ' -e gtp.teid_data -e gtp.gsn_ipv4 -e gtp.gsn_ipv6 \
	>"$dir/errors_seen"
diff <(printf '0x00000bad 10.1.0.1 \n0x00000bad  fd00:1::1\n') "$dir/errors_seen" || exit 1
echo PASS
