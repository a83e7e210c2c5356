// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/cputest"
	"isthmus/controlplane/testkit"
)

const text = `engine: {workers: 2}
ports:
  - {name: access, driver: net_af_packet, device: veth0, role: access, mac: 02:00:00:00:aa:01}
  - {name: core, driver: synth, role: core, mtu: 1600, xconnect: access}
interfaces:
  - {name: n3, port: core, outer_vlan: 7, gtsm: 2, remark: 0, addresses: [10.0.0.1/24, "2001:db8::1/64"]}
routes:
  - {prefix: "2001:db8:1111:2222:3333:4444:5555:6666/128", via: "2001:db8::9"}
  - {prefix: 0.0.0.0/0, via: 10.0.0.9, interface: n3}
neighbours:
  - {interface: n3, address: 10.0.0.9, mac: 02:00:00:00:00:09}
firewall:
  uplink:
    rules:
      - {source: 10.1.0.0/16, destination_port: 80-90, protocol: tcp, action: deny}
      - {action: permit}
  downlink: {default: deny, per_subscriber: true}
policers:
  - {name: two, type: trtcm, cir: 8Mbit, pir: 16Mbit, cbs: 64kB, pbs: 10ms, yellow: remark 10, colour_aware: true}
  - {name: one, type: srtcm, cir: 8Mbit, cbs: 5000, ebs: 6000, green: remark 46, red: pass}
schedulers:
  - port: access
    rate: 1Gbit
    yellow_size: [0, 0, 32, 48]
    red_size: [0, 0, 0, 16]
    red: [{class: 3, min: 16, max: 48}, {class: 1, min: 5, max: 64, probability: 50, weight: 4}]
    subports: {count: 2}
    profiles: [{name: gold, rate: 80Mbit, burst: 9000, weights: [4, 3, 2, 1]}]
    classes: {dscp: {0: 3.2}, qfi: {9: 1}}
paths:
  - {name: upf, local: 10.0.0.1, peer: 10.0.0.2, dscp: 10, qfi_dscp: {1: 46}}
subscribers:
  - {name: home, count: 3, port: access, encap: qinq-pppoe, pppoe_session: 7, mac: 02:00:00:00:00:01, s_tag: 100,
     c_tag: 5, ipv4: 10.1.0.1, ipv6: "2001:db8:9::/64", path: upf, teid_uplink: 0x1000, teid_downlink: 0x2000,
     qfi: 9, qfi_downlink: 5, uplink_policer: two, downlink_policer: one, downlink_gate: closed, mru: 1400,
     scheduler: {subport: round-robin}}
`

func compile(t testing.TB, text string) State {
	t.Helper()
	cfg, err := config.Parse("x.yaml", []byte(text))
	testkit.Must(t, err)
	state, err := Compile(cfg)
	testkit.Must(t, err)
	return state
}

func find(t *testing.T, s State, kind uint32, name string) []byte {
	t.Helper()
	for i := range s {
		if s[i].Kind == kind && s[i].Name() == name {
			testkit.ErrorIf(t, s[i].Digest != api.BodyDigest(s[i].Body), "%s: digest", name)
			return s[i].Body
		}
	}
	t.Fatalf("no object %d %q", kind, name)
	return nil
}

func decoded[T any, P api.Row[T]](t *testing.T, body []byte) (T, []byte) {
	t.Helper()
	var v T
	rest, err := api.ReadRow[T, P](body, &v)
	testkit.Must(t, err)
	return v, rest
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	testkit.ErrorIf(t, fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want), "got  %+v\nwant %+v", got, want)
}

// The bytes of a whole session, as the data plane reads them: one long line of hex per part, written out by hand from
// the header's offsets.
func TestSessionBytes(t *testing.T) {
	body := find(t, compile(t, text), api.KindSession, "home-00002")
	name := func(s string) string { return hex.EncodeToString([]byte(s)) + strings.Repeat("00", 32-len(s)) }
	seid := make([]byte, 8)
	for i := range seid {
		seid[i] = byte(api.DigestOf([]byte("home-00002")) >> (8 * i))
	}
	ip4 := func(last string) string { return "042000000a01" + last + strings.Repeat("00", 12) }
	zero := func(n int) string { return strings.Repeat("00", n) }
	part := func(number, size, count int) string {
		return fmt.Sprintf("%02x00%02x%02x%02x000000", number, size&255, size>>8, count)
	}
	want := strings.Join([]string{
		part(11, api.SizeofSession, 1), hex.EncodeToString(seid), "0100" /* worker */, "02" /* encap */, "00",
		"a888" /* TPID */, "6400", "0600" /* tags */, "0800", /* PPPoE */
		"020000000002", "7805" /* MRU */, name("access"), ip4("0002"),
		"06400000" + "20010db8000900010000000000000000", "01000000", "0f000000" /* subport, pipe */, name("gold"),
		zero(128) /* instances */, "00000000" /* inactivity */, "0200020002000000", "000000000000", "0000",
		"00000000" /* association */, zero(4), zero(64), zero(8), zero(32), /* mirror, counter, LCP echo, DNN */
		"ffff", zero(6), // MSS
		// PDRs: precedence, id, source, removal, match, instance, QERs, URRs, TEID, local address, SDFs, FAR,
		// QFIs, QERs, URRs
		part(75, api.SizeofPDR, 2), "64000000", "0100", "00", "01", "0500", "ff", "01", "00", zero(3), "00000000",
		zero(20), zero(4), "01000000", zero(8),
		"01000000", zero(12), zero(16),
		"64000000", "0200", "01", "01", "0600", "ff", "01", "00", zero(3), "01200000", "042000000a000001" + zero(12),
		zero(4), "02000000", zero(8),
		"02000000", zero(12), zero(16),
		// FARs: id, action, destination, outer header, DSCP, TEID, port, instance, PDU type, path, end marker,
		// buffering, more
		part(76, api.SizeofFAR, 2), "01000000", "02", "01", "01", "ff", "01100000", "0000", "ff", "02", name("upf"),
		zero(16),
		"02000000", "02", "00", "02", "ff", "00000000", "0000", "ff", "00", zero(32), zero(16),
		// QERs: id, gates, QFI, share, policers, padding
		part(77, api.SizeofQER, 2), "01000000", "00", "00", "09", "00", "00000000", name("two"), zero(32), zero(4),
		"02000000", "00", "01", "05", "00", "00000000", zero(32), name("one"), zero(4),
	}, "")
	testkit.Equal(t, hex.EncodeToString(body), want, "body")
}

func TestTunnelChecksums(t *testing.T) {
	for word, want := range map[string]uint32{"": 0, "verify": 0, "zero_over_ipv6": api.EngineUDPSumZero6,
		"ignore": api.EngineUDPSumIgnored} {
		config := "engine: {drop_ue_gtpu: false}\n"
		if word != "" {
			config = "engine: {drop_ue_gtpu: false, tunnel_checksums: " + word + "}\n"
		}
		engine, _ := decoded[api.Engine](t, find(t, compile(t, config), api.KindEngine, "engine"))
		testkit.Equal(t, engine.Flags, want, "%s", word)
	}
}

func TestObjects(t *testing.T) {
	s := compile(t, text)
	for i := 1; i < len(s); i++ {
		testkit.FatalIf(t, s[i].Kind < s[i-1].Kind, "kind %d after %d", s[i].Kind, s[i-1].Kind)
	}
	port, _ := decoded[api.Port](t, find(t, s, api.KindPort, "access"))
	equal(t, []any{api.CString(port.Driver[:]), api.CString(port.Devargs[:]), port.Role, port.MTU, port.MAC},
		[]any{"net_af_packet", "iface=veth0", api.RoleAccess, 1500, [6]byte{2, 0, 0, 0, 0xaa, 1}})
	port, _ = decoded[api.Port](t, find(t, s, api.KindPort, "core"))
	equal(t, []any{port.Role, api.CString(port.Xconnect[:])}, []any{api.RoleCore, "access"})
	engine, _ := decoded[api.Engine](t, find(t, s, api.KindEngine, "engine"))
	equal(t, []any{engine.Workers, engine.CPU[0], engine.CPU[15], engine.Flags}, []any{2, -1, -1, api.EngineDropUEGTPU})
	face, _ := decoded[api.Interface](t, find(t, s, api.KindInterface, "n3"))
	equal(t, []any{face.OuterVLAN, face.Count, face.Address[0].Netip(), face.Address[1].Netip()},
		[]any{7, 2, "10.0.0.1/24", "2001:db8::1/64"})
	guard, _ := decoded[api.GTSM](t, find(t, s, api.KindGTSM, "n3"))
	equal(t, guard.Hops, 2)
	boundary, _ := decoded[api.Remark](t, find(t, s, api.KindRemark, "n3"))
	equal(t, boundary.DSCP, 0)
	route, _ := decoded[api.Route](t, find(t, s, api.KindRoute, "0.0.0.0/0"))
	equal(t, []any{route.Prefix.Netip(), route.Via.String(), api.CString(route.Interface[:])},
		[]any{"0.0.0.0/0", "10.0.0.9", "n3"})
	neighbour, _ := decoded[api.Neighbour](t, find(t, s, api.KindNeighbour, "n3|10.0.0.9"))
	equal(t, []any{neighbour.Address.String(), neighbour.MAC}, []any{"10.0.0.9", [6]byte{2, 0, 0, 0, 0, 9}})
	two, _ := decoded[api.Policer](t, find(t, s, api.KindPolicer, "two"))
	equal(t, two, api.Policer{Type: api.MeterTRTCM, CIR: 1e6, CBS: 64000, PIR: 2e6, PBS: 20000,
		Action: [3]byte{api.ColourActionPass, api.ColourActionRemark, api.ColourActionDrop},
		DSCP:   [3]byte{0, 10, 0}, ColourAware: 1})
	one, _ := decoded[api.Policer](t, find(t, s, api.KindPolicer, "one"))
	equal(t, one, api.Policer{Type: api.MeterSRTCM, CIR: 1e6, CBS: 5000, PBS: 6000,
		Action: [3]byte{api.ColourActionRemark, api.ColourActionPass, api.ColourActionPass}, DSCP: [3]byte{46, 0, 0}})
	path, _ := decoded[api.Path](t, find(t, s, api.KindPath, "upf"))
	equal(t, []any{path.Local.String(), path.Peer.String(), path.TTL, path.DSCP, path.QFIDSCP[1], path.QFIDSCP[9]},
		[]any{"10.0.0.1", "10.0.0.2", 64, 10, 47, 0})
}

// The data plane gets the first matching entry of access.ports for a VLAN.
func TestLines(t *testing.T) {
	s := compile(t, `
ports:
  - {name: a, driver: synth, role: access}
  - {name: b, driver: synth, role: access}
  - {name: core, driver: synth, role: core}
interfaces: [{name: core, port: core, addresses: [10.6.0.1/24]}]
instances: [{name: internet, interfaces: [core], lookup: destination}]
pools: [{name: six, instance: internet, prefix: "2001:db8:64::/48"}]
access:
  ports:
    - {port: a, s_tags: 100-199, c_tags: 7, pppoe: true, vlans: "1:1"}
    - {port: a, ipoe: true, trusted: true}
  profiles: [{name: home, instance: internet, pool_ipv6: six}]
`)
	body := find(t, s, api.KindLines, "a")
	lines, rest := decoded[api.Lines](t, body)
	equal(t, lines.Count, 2)
	list, err := api.ReadRows[api.LineRange](rest)
	testkit.Must(t, err)
	equal(t, list, []api.LineRange{{STag: [2]uint16{100, 199}, CTag: [2]uint16{7, 7}, Flags: api.LineOne},
		{Flags: api.LineTrusted}})
	for i := range s {
		testkit.ErrorIf(t, s[i].Kind == api.KindLines && s[i].Name() == "b", "no subscriber signs in there")
	}
}

const mobile = `engine: {limits: {rules: 9, urrs: 8, shared_meters: 7, buffered_packets: 6, events: 5},
  rates: {events: 4}, buffering_time: 3}
ports:
  - {name: p0, driver: synth, role: core}
interfaces:
  - {name: n3, port: p0, addresses: [10.1.0.1/24, "2001:db8::1/64"]}
  - {name: n6, port: p0, outer_vlan: 6, addresses: [10.2.0.1/24]}
paths:
  - {name: x, local: 10.2.0.1, peer: 10.2.0.9}
instances:
  - {name: access, interfaces: [n3], endpoints: [10.1.0.1, "2001:db8::1"], pin_peer: true, udp_port: 9000}
  - {name: internet, interfaces: [n6], lookup: destination, pools: [10.45.0.0/16, "2001:db8:1::/48"], ue_to_ue: drop,
     nat: {addresses: [203.0.113.0/30], ports: 2048-4095, block: 64, mappings: 99},
     nptv6: [{inside: "2001:db8:1::/48", outside: "2001:db8:7::/48"},
       {inside: "fd00::/64", outside: "2001:db8:8:1::/64"}],
     access_list: {default: deny, rules: [{source: 192.0.2.0/24, protocol: udp, source_port: 53, action: permit}]}}
mirrors:
  - {name: tap, to: {path: x, teid: 7}, direction: uplink, sample: 4,
     match: {ue: 10.45.0.0/24, instance: internet, protocol: tcp, remote_port: 443}}
counters:
  - {name: slice, watermark: {bytes: 7}, period: 60, each: true, match: {ue: 10.45.0.0/24, instance: internet}}
pfcp: {listen: [10.0.0.1], roles: [upf], allow_unknown: true}
`

// A subscriber that signs in has two URRs: the default has room for as many subscribers as sessions.
func TestURRsOfThoseWhoSignIn(t *testing.T) {
	engine, _ := decoded[api.Engine](t, find(t, compile(t, signIn), api.KindEngine, "engine"))
	equal(t, engine.MaxURRs, 2*engine.MaxSessions)
}

const signIn = `engine: {limits: {sessions: 1000}}
ports:
  - {name: access, driver: synth, role: access}
  - {name: core, driver: synth, role: core}
interfaces: [{name: n6, port: core, addresses: [10.6.0.1/24]}]
instances: [{name: internet, interfaces: [n6], lookup: destination}]
pools: [{name: homes, instance: internet, prefix: 100.64.0.0/16, gateway: 100.64.0.1}]
access:
  ports: [{port: access, pppoe: true}]
  profiles: [{name: home, instance: internet, pool_ipv4: homes}]
`

func TestInstances(t *testing.T) {
	s := compile(t, mobile)
	engine, _ := decoded[api.Engine](t, find(t, s, api.KindEngine, "engine"))
	equal(t, []any{engine.MaxRules, engine.MaxURRs, engine.MaxQERs, engine.MaxBuffered, engine.MaxEvents,
		engine.EventRate, engine.BufferSeconds},
		[]any{9, 8, 7, 6, 5, 4, 3})
	list, rules := decoded[api.ACL](t, find(t, s, api.KindACL, "in/internet"))
	equal(t, []any{list.DefaultAction, list.Count, len(rules) > 0}, []any{uint32(api.ActionDeny), uint32(1), true})
	for i := range s {
		testkit.ErrorIf(t, s[i].Kind == api.KindACL && s[i].Name() == "in/access",
			"an instance without rules has a list")
	}
	in, rest := decoded[api.Instance](t, find(t, s, api.KindInstance, "access"))
	equal(t, []any{in.Lookup, in.Flags, in.Interfaces, in.Endpoints, in.Pools, in.UDPPort, len(rest)},
		[]any{api.LookupNone, api.InstancePinPeer, 1, 2, 0, 9000, 0})
	equal(t, []any{api.CString(in.Interface[0][:]), in.Endpoint[0].String(), in.Endpoint[1].String(),
		in.Endpoint[2].Family},
		[]any{"n3", "10.1.0.1", "2001:db8::1", 0})
	in, _ = decoded[api.Instance](t, find(t, s, api.KindInstance, "internet"))
	equal(t, []any{in.Lookup, in.Flags, in.Endpoints, in.Pools, in.Pool[0].Netip(), in.Pool[1].Netip()},
		[]any{api.LookupDestination, api.InstanceNoUEToUE, 0, 2, "10.45.0.0/16", "2001:db8:1::/48"})
	for word, mss := range map[string]uint16{"none": in.MSS, "path": api.MSSPath, "1360": 1360} {
		other := compile(t, strings.Replace(mobile, "ue_to_ue: drop", "ue_to_ue: drop, mss: "+word, 1))
		in, _ := decoded[api.Instance](t, find(t, other, api.KindInstance, "internet"))
		equal(t, in.MSS, mss)
	}
	homes := "pools:\n  - {name: homes, instance: internet, prefix: 100.64.0.0/16}\n"
	for word, want := range map[string]string{
		"inside": "10.45.0.0/16 2001:db8:1::/48", "out": "10.45.0.0/16 2001:db8:1::/48 100.64.0.0/16"} {
		other := compile(t, homes+strings.Replace(mobile, "ue_to_ue: drop", "ue_to_ue: "+word, 1))
		in, _ := decoded[api.Instance](t, find(t, other, api.KindInstance, "internet"))
		var list []string
		for _, p := range in.Pool[:in.Pools] {
			list = append(list, p.Netip().String())
		}
		equal(t, strings.Join(list, " "), want)
	}
	for word, flags := range map[string]uint32{"inside": 0, "out": api.InstanceUEOut} {
		other := compile(t, strings.Replace(mobile, "ue_to_ue: drop", "ue_to_ue: "+word, 1))
		in, _ = decoded[api.Instance](t, find(t, other, api.KindInstance, "internet"))
		equal(t, in.Flags, flags)
	}
	mirror, _ := decoded[api.Mirror](t, find(t, s, api.KindMirror, "tap"))
	equal(t, []any{mirror.To, mirror.Direction, api.CString(mirror.Target[:]), mirror.TEID, mirror.Sample,
		api.CString(mirror.Instance[:]),
		mirror.UE.Netip(), mirror.RemotePort, mirror.UEPort, mirror.Protocol},
		[]any{api.MirrorToGTPU, api.MirrorDirectionUplink, "x", 7, 4, "internet", "10.45.0.0/24",
			[2]uint16{443, 443}, [2]uint16{0, 65535}, 6})
	counter, _ := decoded[api.Counter](t, find(t, s, api.KindCounter, "slice"))
	equal(t, []any{counter.Bytes, counter.Packets, counter.Period, counter.Each, counter.UE.Netip(),
		api.CString(counter.Instance[:])},
		[]any{7, 0, 60, 1, "10.45.0.0/24", "internet"})
	nat, _ := decoded[api.NAT](t, find(t, s, api.KindNAT, "internet"))
	equal(t, nat, api.NAT{Mode: api.NATModeBlocks, Inside: 1, Addresses: 1, Port: [2]uint16{2048, 4095},
		Block: 64, Blocks: 4, Mappings: 99, UDP: 300, TCP: 7440, TCPTransitory: 240, ICMP: 60, Hold: 120,
		InsidePrefix: [api.NATInside]api.Address{api.FromPrefix(netip.MustParsePrefix("10.45.0.0/16"))},
		Address:      [api.NATAddresses]api.Address{api.FromPrefix(netip.MustParsePrefix("203.0.113.0/30"))}})
	for words, bits := range map[string]uint32{"gre": api.NATGRE, "esp, 6in4": api.NATESP | api.NAT6in4} {
		other := compile(t, strings.Replace(mobile, "mappings: 99",
			"mappings: 99, pairs: {protocols: ["+words+"], most: 7, of_subscriber: 5, timeout: 61}", 1))
		n, _ := decoded[api.NAT](t, find(t, other, api.KindNAT, "internet"))
		equal(t, []any{n.PairProtocols, n.Pairs, n.PairsOfSubscriber, n.PairTimeout}, []any{bits, 7, 5, 61})
	}
	nptv6, _ := decoded[api.NPTv6](t, find(t, s, api.KindNPTv6, "internet"))
	equal(t, []any{nptv6.Pairs, nptv6.Inside[0].Netip(), nptv6.Outside[0].Netip(), nptv6.Inside[1].Netip(),
		nptv6.Outside[1].Netip(), nptv6.Inside[2].Family},
		[]any{2, "2001:db8:1::/48", "2001:db8:7::/48", "fd00::/64", "2001:db8:8:1::/64", 0})
	order := []uint32{}
	for i := range s {
		if s[i].Kind == api.KindInstance || s[i].Kind == api.KindPath {
			order = append(order, s[i].Kind)
		}
	}
	equal(t, order, []uint32{api.KindInstance, api.KindInstance, api.KindPath})
}

func TestACLs(t *testing.T) {
	s := compile(t, text)
	head, rest := decoded[api.ACL](t, find(t, s, api.KindACL, "uplink"))
	rules, err := api.ReadRows[api.ACLRule](rest)
	testkit.FatalIf(t, err != nil || head.DefaultAction != api.ActionPermit || head.Count != 2 || len(rules) != 2,
		"%v %v %v", head, rules, err)
	r := rules[0]
	equal(t, []any{r.Source.Netip(), r.Destination.Family, r.SourcePort, r.DestinationPort, r.Protocol, r.ProtocolMask,
		r.Action},
		[]any{"10.1.0.0/16", 0, [2]uint16{0, 65535}, [2]uint16{80, 90}, 6, 0xff, api.ActionDeny})
	if rules[0].Priority <= rules[1].Priority || rules[1].ProtocolMask != 0 || rules[1].Action != api.ActionPermit {
		t.Errorf("%+v", rules)
	}
	head, rest = decoded[api.ACL](t, find(t, s, api.KindACL, "downlink"))
	rules, err = api.ReadRows[api.ACLRule](rest)
	testkit.FatalIf(t, err != nil || head.DefaultAction != api.ActionDeny || head.Count != 6 || len(rules) != 6,
		"%v %v %v", head, rules, err)
	equal(t, []any{rules[2].Destination.String(), rules[3].Destination.Netip(), rules[2].Source.Family},
		[]any{"10.1.0.2", "2001:db8:9:1::/64", 0})
}

func TestScheduler(t *testing.T) {
	s, _ := decoded[api.Scheduler](t, find(t, compile(t, text), api.KindScheduler, "access"))
	equal(t, []any{s.Subports, s.Profiles, s.Rate, s.FrameOverhead, s.QueueSize},
		[]any{2, 1, 125000000, 24, [4]uint32{64, 64, 64, 64}})
	equal(t, s.PrecedenceSize, [2][4]uint32{{0, 0, 32, 48}, {0, 0, 32, 16}})
	equal(t, s.Red, [4]api.Red{1: {Min: 5, Max: 64, Probability: 50, Weight: 4},
		3: {Min: 16, Max: 48, Probability: 10, Weight: 9}})
	equal(t, s.Subport[1], api.Subport{Rate: 62500000, Burst: 625000,
		ClassRate: [4]uint64{62500000, 62500000, 62500000, 62500000}, Pipes: 16, Worker: 1})
	equal(t, []any{s.Profile[0].Rate, s.Profile[0].Burst, s.Profile[0].ClassRate[3], s.Profile[0].Weight},
		[]any{10000000, 9000, 10000000, [4]byte{4, 3, 2, 1}})
	equal(t, []any{s.DSCPClass[46], s.DSCPClass[34], s.DSCPClass[26], s.DSCPClass[10], s.DSCPClass[8], s.DSCPClass[0],
		s.DSCPClass[1]},
		[]any{0, 1 << 2, 2 << 2, 3<<2 | 1, 3<<2 | 3, 3<<2 | 2, 3 << 2})
	equal(t, []any{s.QFIClass[9], s.QFIClass[5]}, []any{1 << 2, 0xff})
}

func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../deploy/examples/*.yaml")
	testkit.FatalIf(t, err != nil || len(files) == 0, "no examples %v", err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		testkit.Must(t, err)
		cfg, err := config.Parse(f, data)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := Compile(cfg); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// An object that the configuration did not change keeps its digest when others come and go.
func TestUnrelatedChangeKeepsObjects(t *testing.T) {
	before := compile(t, text)
	after := compile(t, strings.Replace(text, "count: 3", "count: 4", 1))
	puts, deletes := Diff(digests(before), after)
	names := []string{}
	for i := range puts {
		names = append(names, puts[i].Name())
	}
	equal(t, names, []string{"downlink", "home-00004"})
	testkit.ErrorIf(t, len(deletes) != 0, "%d deletes", len(deletes))
}

func digests(s State) []api.Digest {
	var out []api.Digest
	for i := range s {
		out = append(out, api.Digest{Kind: s[i].Kind, Key: s[i].Key, Digest: s[i].Digest})
	}
	return out
}

func randomState(r *rand.Rand) State {
	var s State
	for kind := uint32(1); kind < api.KindCount; kind++ {
		for n := range 4 {
			if r.Intn(2) == 0 {
				continue
			}
			body := bytes.Repeat([]byte{byte(r.Intn(3))}, 1+r.Intn(2))
			if err := s.Add(kind, fmt.Sprint("k", n), body); err != nil {
				panic(err)
			}
		}
	}
	return s
}

// From any held state: applying the difference gives the wanted one, and equal objects are not sent.
func TestDiffProperty(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 2000 {
		have, want := randomState(r), randomState(r)
		held := digests(have)
		r.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		puts, deletes := Diff(held, want)
		model := map[objectID]Object{}
		for _, o := range have {
			model[objectID{o.Kind, o.Key}] = o
		}
		for _, o := range puts {
			if old, ok := model[objectID{o.Kind, o.Key}]; ok && bytes.Equal(old.Body, o.Body) {
				t.Fatal("an equal object was sent")
			}
			model[objectID{o.Kind, o.Key}] = o
		}
		for _, o := range deletes {
			if _, ok := model[objectID{o.Kind, o.Key}]; !ok {
				t.Fatal("what is not held was deleted")
			}
			delete(model, objectID{o.Kind, o.Key})
		}
		testkit.FatalIf(t, len(model) != len(want), "%d objects, want %d", len(model), len(want))
		for _, o := range want {
			testkit.FatalIf(t, !bytes.Equal(model[objectID{o.Kind, o.Key}].Body, o.Body), "wrong body")
		}
		if !slices.IsSortedFunc(puts, func(a, b Object) int { return int(a.Kind) - int(b.Kind) }) ||
			!slices.IsSortedFunc(deletes, func(a, b Object) int { return int(b.Kind) - int(a.Kind) }) {
			t.Fatal("order of kinds")
		}
		if puts, deletes := Diff(digests(want), want); len(puts)+len(deletes) != 0 {
			t.Fatal("a state differs from itself")
		}
	}
}

func large() string {
	s := strings.Replace(text, "count: 3", "count: 65535", 1)
	s = strings.Replace(s, `ipv6: "2001:db8:9::/64", `, "", 1)
	return strings.Replace(s, "ipv4: 10.1.0.1", "ipv4: 10.16.0.1", 1)
}

func Test64K(t *testing.T) {
	var s State
	cputest.Bound(t, 10*time.Second, "compilation", func() { s = compile(t, large()) }) // the benchmark has the figure
	cputest.Bound(t, 10*time.Second, "comparison", func() {
		puts, deletes := Diff(digests(s), s)
		testkit.ErrorIf(t, len(puts)+len(deletes) != 0, "a state differs from itself")
	})
	both := strings.Replace(large(), "mru: 1400", `mru: 1400, ipv6: "2001:db8:9::/64"`, 1)
	_, err := config.Parse("x", []byte(both))
	want := "x:17: firewall.downlink: 131070 rules with those per subscriber; at most 65536"
	testkit.ErrorIf(t, err == nil || err.Error() != want, "the allowlist of 64 K homes with two stacks: %v", err)
}

func BenchmarkParse64K(b *testing.B) {
	data := []byte(large())
	for b.Loop() {
		if _, err := config.Parse("x.yaml", data); err != nil {
			b.Fatalf("%v", err)
		}
	}
}

func BenchmarkCompile64K(b *testing.B) {
	cfg, err := config.Parse("x.yaml", []byte(large()))
	testkit.Must(b, err)
	for b.Loop() {
		if _, err := Compile(cfg); err != nil {
			b.Fatal(err)
		}
	}
}

// QoS rules are PDRs of the endpoint before the default one; each has the subscriber's QER, and behind it its own,
// whose QFI counts.
func TestQoSRules(t *testing.T) {
	rules := `qos_rules: [` +
		`{precedence: 20, qfi: 3, protocol: udp, destination: 192.0.2.0/24, destination_port: 5060}, ` +
		`{precedence: 10, qfi: 4, dscp: [46, 10], s_tag_priority: [6], c_tag_priority: [0, 5], policer: one}` +
		`], mru: 1400`
	body := find(t, compile(t, strings.Replace(text, "mru: 1400", rules, 1)), api.KindSession, "home-00002")
	_, rest, err := api.TakeRows[api.Session](body)
	pdrs, rest, err1 := api.TakeRows[api.PDR](rest)
	fars, rest, err2 := api.TakeRows[api.FAR](rest)
	qers, rest, err3 := api.TakeRows[api.QER](rest)
	sdfs, _, err4 := api.TakeRows[api.SDF](rest)
	testkit.Must(t, errors.Join(err, err1, err2, err3, err4))
	var got []any
	for _, p := range pdrs {
		got = append(got, p.ID, p.Precedence, p.Match, p.FAR, p.QER[:p.QERs], p.SDFFirst, p.SDFCount)
	}
	equal(t, got, []any{1, 100, 5, 1, []uint32{1}, 0, 0, 2, 100, 6, 2, []uint32{2}, 0, 0,
		3, 20, 21, 1, []uint32{1, 3}, 0, 1, 4, 10, 21, 1, []uint32{1, 4}, 1, 2})
	got = nil
	for _, q := range qers {
		got = append(got, q.ID, q.QFI, api.CString(q.UplinkPolicer[:]))
	}
	equal(t, append(got, len(fars)), []any{1, 9, "two", 2, 5, "", 3, 3, "", 4, 4, "one", 2})
	got = nil
	for _, f := range sdfs {
		got = append(got, f.Remote.String(), f.RemotePort, f.Protocol, f.Flags, f.TOS, f.TOSMask, f.SPcp, f.CPcp)
	}
	any16, none := [2]uint16{0, 65535}, api.Address{}.String()
	equal(t, got, []any{"192.0.2.0/24", [2]uint16{5060, 5060}, 17, api.SDFProtocol, 0, 0, 0, 0,
		none, any16, 0, api.SDFTOS, 46 << 2, 0xfc, 0x40, 0x21, none, any16, 0, api.SDFTOS, 10 << 2, 0xfc, 0x40, 0x21})
}

// Packets to an unused address of ours end here; a discard route of the file decides otherwise how.
func TestOwnedPrefixes(t *testing.T) {
	s := compile(t, mobile+"routes:\n  - {prefix: 100.64.0.0/22, discard: unreachable}\n"+
		"pools:\n  - {name: a, prefix: 100.64.0.0/22}\n  - {name: b, prefix: \"2001:db8:4000::/40\"}\n")
	for prefix, how := range map[string]uint32{"100.64.0.0/22": api.DiscardUnreachable,
		"2001:db8:4000::/40": api.DiscardUnassigned} {
		route, _ := decoded[api.Route](t, find(t, s, api.KindRoute, prefix))
		equal(t, []any{route.Prefix.Netip(), route.Discard, route.Interface[0]}, []any{prefix, how, 0})
	}
}
