#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: rates
# The tester on net_af_packet over veth, which every Linux machine has. The gateway asks for the tester's MAC address by
# ARP and neighbour discovery, since none is configured; IPv4 and IPv6, outside and inside.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
own_namespaces "$@"
# shellcheck source=test/lib/traffic.sh
. "$TEST_ROOT/test/lib/traffic.sh"

veth_pair veth-access home0
veth_pair veth-core upf0

# The kernel takes VLAN tags off and DPDK puts them back with TPID 0x8100, so no other is used here.
cat >"$DIR/isthmus.yaml" <<-'YAML'
	engine: {huge_pages: "off", packet_buffers: 8192, idle_sleep: true}
	ports:
	  - {name: access, driver: net_af_packet, device: veth-access, role: access, mac: 02:00:00:aa:00:01}
	  - {name: core, driver: net_af_packet, device: veth-core, role: core, mac: 02:00:00:cc:00:01}
	interfaces:
	  - {name: n3, port: core, addresses: [10.30.0.1/24, "fd00:30::1/64"]}
	paths:
	  - {name: upf, local: 10.30.0.1, peer: 10.30.0.2, dscp: 10, ttl: 63}
	  - {name: upf6, local: "fd00:30::1", peer: "fd00:30::2", dscp: 46}
	subscribers:
	  - {name: four, count: 16, port: access, tpid: 0x8100, mac: 02:01:00:00:00:00, s_tag: 100, c_tag: 1,
	     ipv4: 10.64.0.0, path: upf, teid_uplink: 0x1000, teid_downlink: 0x2000, qfi: 9}
	  - {name: six, count: 16, port: access, tpid: 0x8100, mac: 02:02:00:00:00:00, s_tag: 200, c_tag: 1,
	     encap: qinq-pppoe, pppoe_session: 1,
	     ipv6: "2001:db8:100::/56", path: upf6, teid_uplink: 0x1100, teid_downlink: 0x2100, qfi: 5}
YAML
cat >"$DIR/veth.yaml" <<-YAML
	name: veth
	huge_pages: false
	memory_mb: 512
	ports:
	  - {name: access, driver: net_af_packet, device: home0}
	  - {name: core, driver: net_af_packet, device: upf0, mac: 02:00:00:cc:00:02,
	     addresses: [10.30.0.2, "fd00:30::2"]}
	streams:
	  - name: four-up
	    port: access
	    sink: core
	    flows: 16
	    size: 650
	    send:
	      - ethernet: {destination: 02:00:00:aa:00:01, source: {base: 02:01:00:00:00:00}}
	      - vlan: {tpid: 0x8100, id: 100}
	      - vlan: {id: {base: 1}}
	      - ipv4: {source: {base: 10.64.0.0}, destination: 203.0.113.80}
	      - udp: {source: 40001, destination: 40002}
	    receive:
	      - ethernet: {destination: 02:00:00:cc:00:02, source: 02:00:00:cc:00:01}
	      - ipv4: {source: 10.30.0.1, destination: 10.30.0.2, id: any, ttl: 63, dscp: 10}
	      - udp: {source: 2152, destination: 2152}
	      - gtpu: {teid: {base: 0x1000}, extensions: [{pdu-session: {type: uplink, qfi: 9}}]}
	      - ipv4: {source: {base: 10.64.0.0}, destination: 203.0.113.80}
	      - udp: {source: 40001, destination: 40002}
	  - name: four-down
	    port: core
	    sink: access
	    flows: 16
	    size: 650
	    send:
	      - ethernet: {destination: 02:00:00:cc:00:01, source: 02:00:00:cc:00:02}
	      - ipv4: {source: 10.30.0.2, destination: 10.30.0.1}
	      - udp: {source: 2152, destination: 2152}
	      - gtpu: {teid: {base: 0x2000}, extensions: [{pdu-session: {type: downlink, qfi: 9}}]}
	      - ipv4: {source: 203.0.113.80, destination: {base: 10.64.0.0}}
	      - tcp: {source: 40002, destination: 40001}
	    receive:
	      - ethernet: {destination: {base: 02:01:00:00:00:00}, source: 02:00:00:aa:00:01}
	      - vlan: {tpid: 0x8100, id: 100}
	      - vlan: {id: {base: 1}}
	      - ipv4: {source: 203.0.113.80, destination: {base: 10.64.0.0}}
	      - tcp: {source: 40002, destination: 40001}
	  - name: six-up
	    port: access
	    sink: core
	    flows: 16
	    size: 650
	    send:
	      - ethernet: {destination: 02:00:00:aa:00:01, source: {base: 02:02:00:00:00:00}}
	      - vlan: {tpid: 0x8100, id: 200}
	      - vlan: {id: {base: 1}}
	      - pppoe: {session: {base: 1}}
	      - ipv6: {source: {base: "2001:db8:100::10", step: "0:0:0:100::"}, destination: "2001:db8:ffff::7",
	          hop_limit: 9}
	      - udp: {source: 40001, destination: 40002}
	    receive:
	      - ethernet: {destination: 02:00:00:cc:00:02, source: 02:00:00:cc:00:01}
	      - ipv6: {source: "fd00:30::1", destination: "fd00:30::2", traffic_class: 184}
	      - udp: {source: 2152, destination: 2152, checksum: 1}
	      - gtpu: {teid: {base: 0x1100}, extensions: [{pdu-session: {type: uplink, qfi: 5}}]}
	      - ipv6: {source: {base: "2001:db8:100::10", step: "0:0:0:100::"}, destination: "2001:db8:ffff::7",
	          hop_limit: 9}
	      - udp: {source: 40001, destination: 40002}
	  - name: six-down
	    port: core
	    sink: access
	    flows: 16
	    size: 650
	    send:
	      - ethernet: {destination: 02:00:00:cc:00:01, source: 02:00:00:cc:00:02}
	      - ipv6: {source: "fd00:30::2", destination: "fd00:30::1"}
	      - udp: {source: 2152, destination: 2152}
	      - gtpu: {teid: {base: 0x2100}, extensions: [{pdu-session: {type: downlink, qfi: 5}}]}
	      - ipv6: {source: "2001:db8:ffff::7", destination: {base: "2001:db8:100::10", step: "0:0:0:100::"}}
	      - udp: {source: 40002, destination: 40001}
	    receive:
	      - ethernet: {destination: {base: 02:02:00:00:00:00}, source: 02:00:00:aa:00:01}
	      - vlan: {tpid: 0x8100, id: 200}
	      - vlan: {id: {base: 1}}
	      - pppoe: {session: {base: 1}}
	      - ipv6: {source: "2001:db8:ffff::7", destination: {base: "2001:db8:100::10", step: "0:0:0:100::"}}
	      - udp: {source: 40002, destination: 40001}
	run: {mode: fixed, rate: 4kpps, seconds: 1, drain: 2, warmup: 1, latency: {seconds: 0}, disturbed: {repeats: 0}}
	capture: {file: $DIR/sample.pcap, every: 7, count: 2000}
YAML
start_gateway
run_tester 0 veth
result_says veth 'r.complete' 'faults == {}' 'all(s.sent == s.received > 500 for s in r.trials[-1].streams)' \
	'sum(s.decoded for s in r.trials[-1].streams) > 0' \
	'sum(t.control for t in r.trials) >= 2'
clean_capture "$DIR/sample.pcap" 100
isthmus show neighbour -j >"$DIR/neighbours.json"
for address in 10.30.0.2 fd00:30::2; do
	grep -q "$address" "$DIR/neighbours.json" || fail "no neighbour $address: $(cat "$DIR/neighbours.json")"
done
echo PASS
