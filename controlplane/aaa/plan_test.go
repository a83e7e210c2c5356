// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/radius"
	"isthmus/controlplane/testkit"
)

type attrs []radius.Attribute

func text(t radius.Type, s string) radius.Attribute {
	return radius.Attribute{Type: t, Value: []byte(s)}
}

func number(t radius.Type, v uint32) radius.Attribute {
	return radius.Attribute{Type: t, Value: binary.BigEndian.AppendUint32(nil, v)}
}

func address(t radius.Type, s string) radius.Attribute {
	return radius.Attribute{Type: t, Value: netip.MustParseAddr(s).AsSlice()}
}

func network(t radius.Type, s string) radius.Attribute {
	p := &radius.Packet{}
	p.Prefix(t, netip.MustParsePrefix(s))
	return p.Attributes[0]
}

func pair(s string) radius.Attribute { return text(radius.CiscoAVPair, "subscriber:"+s) }

func ignore(radius.Type) error { return nil }

// What a server puts in is in the plan.
func TestPlan(t *testing.T) {
	p := netip.MustParsePrefix
	for _, row := range []struct {
		list attrs
		want access.Plan
	}{
		{attrs{address(radius.FramedIPAddress, "100.64.0.7")},
			access.Plan{IPv4: netip.MustParseAddr("100.64.0.7")}},
		{attrs{address(radius.FramedIPAddress, "255.255.255.254")}, access.Plan{}},
		{attrs{text(radius.FramedPool, "homes")}, access.Plan{Pool4: "homes"}},
		{attrs{network(radius.FramedIPv6Prefix, "2001:db8:1::/64")}, access.Plan{IPv6: p("2001:db8:1::/64")}},
		{attrs{address(radius.FramedIPv6Address, "2001:db8::7")}, access.Plan{IPv6: p("2001:db8::7/128")}},
		{attrs{text(radius.FramedIPv6Pool, "six")}, access.Plan{Pool6: "six"}},
		{attrs{text(radius.StatefulIPv6AddressPool, "na")}, access.Plan{Pool6: "na"}},
		{attrs{network(radius.DelegatedIPv6Prefix, "2001:db8:aa00::/56")},
			access.Plan{Delegated: p("2001:db8:aa00::/56")}},
		{attrs{text(radius.DelegatedIPv6PrefixPool, "pd")}, access.Plan{PoolPD: "pd"}},
		{attrs{{Type: radius.FramedInterfaceId, Value: []byte{0, 0, 0, 0, 0, 0, 1, 2}}},
			access.Plan{InterfaceID: 0x102}},
		{attrs{address(radius.DNSServerIPv6Address, "2001:db8::53"), address(radius.MSPrimaryDNSServer,
			"9.9.9.9"),
			text(radius.CiscoAVPair, "ip:dns-servers=1.1.1.1 8.8.8.8")}, access.Plan{DNS: []netip.Addr{
			netip.MustParseAddr("2001:db8::53"), netip.MustParseAddr("9.9.9.9"),
			netip.MustParseAddr("1.1.1.1"),
			netip.MustParseAddr("8.8.8.8")}}},
		{attrs{text(radius.FramedRoute, "10.9.0.0/16 0.0.0.0 1"), text(radius.FramedIPv6Route,
			"2001:db8:9::/48 :: 1")},
			access.Plan{Routes: []netip.Prefix{p("10.9.0.0/16"), p("2001:db8:9::/48")}}},
		{attrs{network(radius.RouteIPv6Information, "2001:db8:7::/48"),
			network(radius.RouteIPv6Information, "::/0")},
			access.Plan{Announced: []netip.Prefix{p("2001:db8:7::/48"), p("::/0")}}},
		{attrs{address(radius.FramedIPAddress, "100.64.0.7"), text(radius.FramedRoute,
			"10.9.0.0/16 100.64.0.7")},
			access.Plan{IPv4: netip.MustParseAddr("100.64.0.7"), Routes: []netip.Prefix{p("10.9.0.0/16")}}},
		{attrs{number(radius.SessionTimeout, 3600), number(radius.IdleTimeout, 300)},
			access.Plan{SessionTimeout: time.Hour, IdleTimeout: 5 * time.Minute}},
		{attrs{number(radius.AcctInterimInterval, 300)}, access.Plan{Interim: 5 * time.Minute}},
		{attrs{number(radius.AcctInterimInterval, 5)}, access.Plan{Interim: time.Minute}},
		{attrs{text(radius.Class, "a"), text(radius.Class, "b")}, access.Plan{Class: [][]byte{[]byte("a"),
			[]byte("b")}}},
		{attrs{text(radius.ChargeableUserIdentity, "me")}, access.Plan{CUI: []byte("me")}},
		{attrs{text(radius.UserName, "real")}, access.Plan{User: "real"}},
		{attrs{text(radius.FilterId, "strict")}, access.Plan{ACLUp: "strict", ACLDown: "strict"}},
		{attrs{text(radius.FilterId, "a.in"), text(radius.FilterId, "b.out")}, access.Plan{ACLUp: "a",
			ACLDown: "b"}},
		{attrs{text(radius.FilterId, "in=a"), text(radius.FilterId, "out=b"), text(radius.FilterId,
			"profile=gold"),
			text(radius.FilterId, "scheduler=pipe")},
			access.Plan{ACLUp: "a", ACLDown: "b", Profile: "gold", Scheduler: "pipe"}},
		{attrs{number(radius.PortLimit, 2), number(radius.FramedMTU, 1492)}, access.Plan{Max: 2, MTU: 1492}},
		{attrs{number(radius.WISPrBandwidthMaxUp, 10_000_000), number(radius.WISPrBandwidthMaxDown, 64_001)},
			access.Plan{Up: access.Rate{CIR: 10_000}, Down: access.Rate{CIR: 65}}},
		{attrs{text(radius.MikrotikRateLimit, "2M/10M 4M/20M")},
			access.Plan{Up: access.Rate{CIR: 2000, PIR: 4000}, Down: access.Rate{CIR: 10_000,
				PIR: 20_000}}},
		{attrs{text(radius.MikrotikRateLimit, "512k")}, access.Plan{Up: access.Rate{CIR: 512},
			Down: access.Rate{CIR: 512}}},
		{attrs{pair("up=1Mbit/2Mbit"), pair("up-burst=64kB/128kB"), number(radius.WISPrBandwidthMaxUp, 5),
			text(radius.MikrotikRateLimit, "9M/8M")},
			access.Plan{Up: access.Rate{CIR: 1000, PIR: 2000, CBS: 64_000, PBS: 128_000},
				Down: access.Rate{CIR: 8000}}},
		{attrs{pair("profile=gold"), pair("instance=red"), pair("path=upf"), pair("pool=a"), pair("pool6=b"),
			pair("pool-pd=c")},
			access.Plan{Profile: "gold", Instance: "red", Path: "upf", Pool4: "a", Pool6: "b",
				PoolPD: "c"}},
		{attrs{pair("quota=50GB"), pair("max=3"), pair("redirect=https://pay.example/x?a=b")},
			access.Plan{Quota: 50e9, Max: 3, Redirect: "https://pay.example/x?a=b"}},
		{attrs{text(radius.CiscoAVPair, "lcp:interface-config=x"), text(radius.TunnelType, "x")},
			access.Plan{}},
	} {
		var got access.Plan
		testkit.Must(t, apply(&got, row.list, ignore))
		testkit.Equal(t, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", row.want), "%v", row.list)
	}
}

// What is impossible refuses, in words (row B16).
func TestPlanRefused(t *testing.T) {
	for _, row := range []struct {
		list attrs
		want string
	}{
		{attrs{{Type: radius.FramedIPAddress, Value: make([]byte, 3)}}, "Framed-IP-Address of 3 octets"},
		{attrs{address(radius.FramedIPAddress, "224.0.0.1")}, "no host's address"},
		{attrs{address(radius.FramedIPAddress, "10.0.0.1"), address(radius.FramedIPAddress, "10.0.0.2")},
			"given twice"},
		{attrs{{Type: radius.FramedIPv6Prefix, Value: []byte{0, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 1}}},
			"bits behind its length"},
		{attrs{{Type: radius.FramedIPv6Prefix, Value: []byte{0, 129}}}, "of 2 octets"},
		{attrs{{Type: radius.FramedIPv6Prefix, Value: []byte{0, 0}}}, "::/0 is no subscriber's"},
		{attrs{{Type: radius.DelegatedIPv6Prefix, Value: make([]byte, 32)}}, "of 32 octets"},
		{attrs{address(radius.FramedIPv6Address, "fe80::1")}, "no host's address"},
		{attrs{text(radius.FramedPool, strings.Repeat("x", 200))}, "no name of ours looks so"},
		{attrs{text(radius.FilterId, strings.Repeat("x", 253))}, "no name of ours looks so"},
		{attrs{text(radius.FilterId, "a"), text(radius.FilterId, "b")}, "given twice"},
		{attrs{text(radius.FilterId, "colour=red")}, "none of profile, scheduler, in, out"},
		{attrs{text(radius.NASFilterRule, "permit in ip from any to any")}, "cannot be applied"},
		{attrs{text(radius.FramedRoute, "10.0.0.0")}, "needs a prefix with its length"},
		{attrs{text(radius.FramedRoute, "10.0.0.1/8")}, "needs a prefix with its length"},
		{attrs{text(radius.FramedRoute, "2001:db8::/32")}, "needs a prefix with its length"},
		{attrs{text(radius.FramedRoute, "10.0.0.0/8 192.0.2.1")}, "only the subscriber"},
		{attrs{text(radius.FramedRoute, " ")}, "is empty"},
		{attrs{number(radius.FramedMTU, 60)}, "576 to 9216"},
		{attrs{text(radius.SessionTimeout, "abc")}, "of 3 octets"},
		{attrs{text(radius.MikrotikRateLimit, "1M/1M 2M/2M 1M/1M 8/8")}, "needs rx/tx"},
		{attrs{text(radius.MikrotikRateLimit, "fast")}, "is no rate"},
		{attrs{text(radius.MikrotikRateLimit, "2M/2M 1M/1M")}, "lower than the rate"},
		{attrs{pair("up=quick")}, "is no rate"},
		{attrs{pair("up=2Mbit/1Mbit")}, "peak is lower"},
		{attrs{pair("up-burst=10ms")}, "is in bytes"},
		{attrs{pair("colour=red")}, "no such setting"},
		{attrs{pair("profile")}, "KEY=VALUE"},
		{attrs{pair("redirect=javascript:alert(1)")}, "no URL"},
		{attrs{pair("quota=-1")}, "no volume"},
		{attrs{text(radius.CiscoAVPair, "ip:dns-servers=x")}, "is no address"},
	} {
		var p access.Plan
		testkit.Refused(t, apply(&p, row.list, ignore), row.want)
	}
	many := attrs{}
	for range maxLists + 1 {
		many = append(many, text(radius.Class, "x"))
	}
	testkit.Refused(t, apply(&access.Plan{}, many, ignore), "more than 16 of Class")
}

// A change takes the place of what was there, and leaves the old plan as it was.
func TestChange(t *testing.T) {
	old := access.Plan{Up: access.Rate{CIR: 1000}, Class: [][]byte{[]byte("old")}, Redirect: "http://pay.example"}
	plan := old
	c := Change{attrs{pair("up=500kbit"), text(radius.Class, "new"), pair("redirect=")}}
	testkit.Must(t, c.Apply(&plan))
	testkit.Equal(t, plan.Up.CIR, 500, "rate")
	testkit.Equal(t, string(plan.Class[0]), "new", "class")
	testkit.Equal(t, plan.Redirect, "", "redirect")
	testkit.Equal(t, string(old.Class[0]), "old", "the old plan's class")
	testkit.Equal(t, ResultOf((&Change{attrs{text(radius.CiscoAVPair, "other:x=y")}}).Apply(&plan)),
		radius.UnsupportedAttribute, "other")
	testkit.Equal(t, ResultOf((&Change{attrs{pair("up=x")}}).Apply(&plan)), BadValue, "bad")
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte{1, 6, 'a', 'b', 'c', 'd'})
	f.Add([]byte("\x1a\x1f\x00\x00\x00\x09\x01\x19subscriber:up=1Mbit/2Mbit"))
	f.Add([]byte{97, 4, 0, 64, 11, 6, 'a', '.', 'i', 'n', 22, 12, '1', '0', '.', '0', '.', '0', '.', '0', '/', '8'})
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := radius.ParseAttributes(b)
		if err != nil {
			return
		}
		var p access.Plan
		if apply(&p, list, ignore) != nil {
			return
		}
		if p.IPv6.IsValid() && p.IPv6.Masked() != p.IPv6 || len(p.Class) > maxLists ||
			len(p.Routes) > maxLists {
			t.Fatalf("%+v", p)
		}
	})
}
