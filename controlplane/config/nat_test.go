// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"strings"
	"testing"
)

func natFile(t *testing.T, nat string) string {
	return with(t, "lookup: destination", "nat: "+nat+", lookup: destination")
}

func TestNATDefaults(t *testing.T) {
	c, err := Parse("x.yaml", []byte(natFile(t, "{addresses: [203.0.113.0/30]}")))
	if err != nil {
		t.Fatal(err)
	}
	n := c.Instances[1].NAT
	if !n.Enabled() || n.Mode != "blocks" || n.Ports.String() != "1024-65535" || n.Block != 512 || n.Blocks != 4 ||
		n.Timeouts.UDP != 300 ||
		n.Timeouts.TCP != 7440 || n.Timeouts.TCPTransitory != 240 || n.Timeouts.ICMP != 60 ||
		n.Timeouts.Hold != 120 {
		t.Errorf("%+v", n)
	}
	if len(n.Inside) != 1 || n.Inside[0].String() != "10.45.0.0/16" { // the IPv4 pool
		t.Errorf("inside %v", n.Inside)
	}
	if len(n.Pairs.Protocols) != 0 {
		t.Errorf("pairs of %v without being asked", n.Pairs.Protocols)
	}
	c, err = Parse("x.yaml", []byte(natFile(t, "{addresses: [203.0.113.0/30], pairs: {protocols: [esp, 6in4]}}")))
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Instances[1].NAT.Pairs; len(p.Protocols) != 2 || p.Most != 4096 || p.OfSubscriber != 16 ||
		p.Timeout != 300 {
		t.Errorf("%+v", p)
	}
	if c.Instances[0].NAT.Enabled() {
		t.Error("an instance without the section has NAT44")
	}
	c, err = Parse("x.yaml", []byte(natFile(t, "{addresses: [203.0.113.0/24], inside: [10.45.0.0/20],"+
		" mode: deterministic}")+
		"nat_log: {syslog: [192.0.2.9], ipfix: [\"192.0.2.9:9996\", \"2001:db8::9\"]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Instances[1].NAT.Blocks != 1 {
		t.Errorf("deterministic: %d blocks", c.Instances[1].NAT.Blocks)
	}
	for _, p := range []struct{ got, want netip.AddrPort }{
		{c.NATLog.Syslog[0].Or(514), netip.MustParseAddrPort("192.0.2.9:514")},
		{c.NATLog.IPFIX[0].Or(4739), netip.MustParseAddrPort("192.0.2.9:9996")},
		{c.NATLog.IPFIX[1].Or(4739), netip.MustParseAddrPort("[2001:db8::9]:4739")},
	} {
		if p.got != p.want {
			t.Errorf("%v, want %v", p.got, p.want)
		}
	}
}

func TestNATRefused(t *testing.T) {
	for _, r := range []struct{ nat, want string }{
		{"{}", "nat.addresses"},
		{"{addresses: [2001:db8::/64]}", "nat.addresses: 2001:db8::/64 is no IPv4 prefix"},
		{"{addresses: [203.0.113.1/24]}", "has host bits set; the network is 203.0.113.0/24"},
		{"{addresses: [203.0.113.0/24, 203.0.113.4]}", "203.0.113.4/32 overlaps 203.0.113.0/24"},
		{"{addresses: [10.45.1.0/24]}",
			"nat.addresses: 10.45.1.0/24 overlaps 10.45.0.0/16, where subscribers are"},
		{"{addresses: [10.2.0.0/24]}", "nat.addresses: 10.2.0.0/24 holds 10.2.0.1, which is an interface's"},
		{"{addresses: [203.0.113.4], block: 100}", "nat.block: 100 is no power of two"},
		{"{addresses: [203.0.113.4], ports: 2000-2100}",
			"nat.ports: 2000-2100 holds port 0, or no block of 512"},
		{"{addresses: [203.0.113.4], ports: 0-2100}", "holds port 0"},
		{"{addresses: [100.64.0.0/16]}", "65536 addresses have more than 67108864 ports"},
		{"{addresses: [203.0.113.4], mode: deterministic}",
			"nat.inside: 65536 subscribers, but blocks for 126"},
		{"{addresses: [203.0.113.0/24], inside: [10.45.0.0/24], mode: deterministic, blocks: 2}",
			"a subscriber has one block"},
		{"{addresses: [203.0.113.4], timeouts: {udp: 119}}", "nat.timeouts.udp"}, // RFC 4787 REQ-5
		{"{addresses: [203.0.113.4], timeouts: {tcp: 3600}}", "nat.timeouts.tcp"},
		{"{addresses: [203.0.113.4], pairs: {most: 9}}", "nat.pairs.protocols"},
		{"{addresses: [203.0.113.4], pairs: {protocols: [], most: 5}}", "nat.pairs.protocols: missing"},
		{"{addresses: [203.0.113.4], pairs: {protocols: null}}", "nat.pairs.protocols: missing"},
		{"{addresses: [203.0.113.4], pairs: {protocols: [ah]}}", "nat.pairs.protocols"},
		{"{addresses: [203.0.113.4], pairs: {protocols: [gre], most: 65537}}", "nat.pairs.most"},
		{"{addresses: [203.0.113.4], pairs: {protocols: [gre], of_subscriber: 0}}", "nat.pairs.of_subscriber"},
		{"{addresses: [203.0.113.4], pairs: {protocols: [gre], timeout: 59}}", "nat.pairs.timeout"},
		{"{addresses: []}", "nat.addresses: missing"},
		{"{addresses: null, mode: deterministic}", "nat.addresses: missing"},
	} {
		_, err := Parse("x.yaml", []byte(natFile(t, r.nat)))
		if err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: %v, want %q", r.nat, err, r.want)
		}
	}
	for _, r := range []struct{ old, new, want string }{
		{"{name: access,", "{name: access, nat: {addresses: [203.0.113.4], inside: [10.0.0.0/8]},",
			"the way back needs destination"},
		{"pools: [10.45.0.0/16,", "nat: {addresses: [203.0.113.4]}, pools: [", "nat.inside: missing"},
	} {
		_, err := Parse("x.yaml", []byte(with(t, r.old, r.new)))
		if err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: %v, want %q", r.new, err, r.want)
		}
	}
}
