// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"isthmus/api"
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

type planRow struct {
	list attrs
	want access.Plan
}

// plans compares.
func plans(t *testing.T, rows []planRow) {
	t.Helper()
	for _, row := range rows {
		var got access.Plan
		left, err := apply(&got, row.list, nil)
		testkit.Must(t, err)
		testkit.ErrorIf(t, len(left) != 0, "%v: left out: %v", row.list, left)
		testkit.Equal(t, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", row.want), "%v", row.list)
	}
}

// A server's addresses are in the plan.
func TestPlanOfAddresses(t *testing.T) {
	p := netip.MustParsePrefix
	plans(t, []planRow{
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
		{attrs{address(radius.FramedIPNetmask, "255.255.252.0")}, access.Plan{Mask: 22}},
		{attrs{text(radius.FramedRoute, "192.168.7.0 0.0.0.0 1"), text(radius.FramedRoute, "172.16.0.0")},
			access.Plan{Routes: []netip.Prefix{p("192.168.7.0/24"), p("172.16.0.0/16")}}},
		{attrs{text(radius.FramedIPv6Route, "2001:db8:9::/48 2001:db8::7 1"),
			text(radius.FramedIPv6Route, "2001:db8:a::/48 fe80::1"),
			address(radius.FramedIPv6Address, "2001:db8::7")},
			access.Plan{IPv6: p("2001:db8::7/128"), Routes: []netip.Prefix{p("2001:db8:9::/48"),
				p("2001:db8:a::/48")}}},
	})
}

func TestPlan(t *testing.T) {
	plans(t, []planRow{
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
		{attrs{pair("portal=192.0.2.0/28 pay.test 2001:db8::1")},
			access.Plan{Portal: []string{"192.0.2.0/28", "pay.test", "2001:db8::1/128"}}},
		{attrs{pair("portal=")}, access.Plan{}},
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
		{attrs{number(radius.ServiceType, 2), number(radius.FramedProtocol, 1), number(radius.FramedRouting, 0),
			number(radius.TerminationAction, 0), number(radius.MikrotikTotalLimit, 0),
			text(radius.ReplyMessage, "x")}, access.Plan{}},
	})
}

// An unusable attribute about access or the bill refuses the sign-in, with a reason (row B16).
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
		{attrs{text(radius.FilterId, "in=a/b")}, "no name of ours looks so"},
		{attrs{text(radius.NASFilterRule, "permit in ip from any to any")}, "Rule: cannot be applied"},
		{attrs{text(radius.SessionTimeout, "abc")}, "of 3 octets"},
		{attrs{number(radius.SessionTimeout, 60), number(radius.SessionTimeout, 6000)}, "given twice"},
		{attrs{pair("profile")}, "KEY=VALUE"},
		{attrs{pair("redirect")}, "KEY=VALUE"},
		{attrs{pair("redirect=javascript:alert(1)")}, "no URL"},
		{attrs{pair("redirect=http://pay.test/a b")}, "no URL has"},
		{attrs{text(radius.WISPrRedirectionURL, "http://pay.test/"+strings.Repeat("x", 112))}, "longer than 127"},
		{attrs{pair("quota=-1")}, "no volume"},
		{attrs{number(radius.ServiceType, 1)}, "Service-Type: 1: only Framed is served"},
		{attrs{number(radius.TunnelType, 3)}, "Tunnel-Type: a tunnel is not served"},
		{attrs{number(radius.TunnelType, 13), number(radius.TunnelMediumType, 6)}, "a tunnel is not served"},
		{attrs{text(radius.CiscoAVPair, "vpdn:tunnel-type=l2tp")}, "vpdn: a tunnel is not served"},
		{attrs{text(radius.CiscoAVPair, "ip:inacl#10=deny ip any any")}, "name an access list by Filter-Id"},
		{attrs{text(radius.CiscoAVPair, "ip:vrf-id=red")}, "virtual router"},
		{attrs{text(radius.CiscoAVPair, "lcp:interface-config#1=ip vrf forwarding red")}, "no command here"},
		{attrs{text(radius.ERXVirtualRouterName, "red")}, "virtual router"},
		{attrs{text(radius.ERXIngressPolicyName, "strict")}, "name an access list by Filter-Id"},
		{attrs{number(radius.MikrotikTotalLimit, 1000)}, "subscriber:quota"},
		{attrs{text(radius.WISPrSessionTerminateTime, "2030-01-01T00:00:00")}, "Session-Timeout"},
	} {
		var p access.Plan
		_, err := apply(&p, row.list, nil)
		testkit.Refused(t, err, row.want)
	}
}

type leftRow struct {
	list attrs
	want access.Plan
	left string // of the first
}

// leavesOut compares, and what is left out.
func leavesOut(t *testing.T, rows []leftRow) {
	t.Helper()
	for _, row := range rows {
		var got access.Plan
		left, err := apply(&got, row.list, nil)
		testkit.Must(t, err)
		if testkit.ErrorIf(t, len(left) == 0, "%v: nothing is left out", row.list); len(left) > 0 {
			words := left[0].What + ": " + left[0].Why
			testkit.ErrorIf(t, !strings.HasPrefix(words, row.left), "%q, not %q", words, row.left)
		}
		testkit.ErrorIf(t, len(left) > maxLeft+1, "%d are told", len(left))
		testkit.Equal(t, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", row.want), "%v", row.list)
		_, err = apply(&access.Plan{}, row.list, &access.Addresses{})
		testkit.ErrorIf(t, err == nil, "%v changes somebody on line", row.list)
	}
}

// A plan holds no more than a session can have.
func TestPlanBounds(t *testing.T) {
	var fullOfRoutes attrs
	var fifteen []netip.Prefix
	for i := range api.MaxRoutes {
		r := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 200, byte(i)}), 24)
		if fullOfRoutes = append(fullOfRoutes, text(radius.FramedRoute, r.String())); i < api.MaxRoutes-1 {
			fifteen = append(fifteen, r)
		}
	}
	leavesOut(t, []leftRow{
		{attrs{pair("up=9Tbit")}, access.Plan{}, `Cisco-AVPair: subscriber:up: "9Tbit" is more than 8 Tbit/s`},
		{attrs{text(radius.MikrotikRateLimit, "8001G")}, access.Plan{},
			`Mikrotik-Rate-Limit: "8001G" is more than 8 Tbit/s`},
		{fullOfRoutes, access.Plan{Routes: fifteen}, "Framed-Route: more than 15 of framed routes"},
	})
}

// An unusable tuning attribute is left out with a reason, and the plan keeps the rest; for a subscriber on line the
// change is refused.
func TestPlanLeavesOut(t *testing.T) {
	p := netip.MustParsePrefix
	var many attrs
	for range maxLeft + 5 {
		many = append(many, radius.Attribute{Type: radius.VendorSpecific, Value: make([]byte, 5)})
	}
	leavesOut(t, []leftRow{
		{attrs{text(radius.MikrotikRateLimit, "fast")}, access.Plan{},
			`Mikrotik-Rate-Limit: "fast" is no rate`},
		{attrs{number(radius.FramedMTU, 60)}, access.Plan{}, "Framed-MTU: 60: 576 to 9216"},
		{attrs{text(radius.FramedRoute, "10.9.0.0")}, access.Plan{},
			`Framed-Route: "10.9.0.0" has no length, and is no network of its class`},
		{attrs{text(radius.FramedRoute, "10.0.0.1/8"), text(radius.FramedRoute, "10.8.0.0/24")},
			access.Plan{Routes: []netip.Prefix{p("10.8.0.0/24")}},
			`Framed-Route: "10.0.0.1/8" has bits behind its length`},
		{attrs{text(radius.FramedRoute, "2001:db8::/32")}, access.Plan{},
			`Framed-Route: "2001:db8::/32" is no network behind a subscriber`},
		{attrs{text(radius.FramedRoute, "224.0.0.0/8")}, access.Plan{},
			`Framed-Route: "224.0.0.0/8" is no network behind a subscriber`},
		{attrs{text(radius.FramedRoute, "0.0.0.0/0")}, access.Plan{},
			`Framed-Route: "0.0.0.0/0" is no network behind a subscriber`},
		{attrs{text(radius.FramedRoute, "10.0.0.0/8 192.0.2.1")}, access.Plan{},
			"Framed-Route: by 192.0.2.1: only the subscriber can be the gateway"},
		{attrs{text(radius.FramedRoute, " ")}, access.Plan{}, "Framed-Route: is empty"},
		{attrs{pair("up=quick")}, access.Plan{}, `Cisco-AVPair: subscriber:up: "quick" is no rate`},
		{attrs{pair("up=2Mbit/1Mbit")}, access.Plan{}, "Cisco-AVPair: subscriber:up: rate"},
		{attrs{pair("up-burst=10ms")}, access.Plan{},
			"Cisco-AVPair: subscriber:up-burst: a burst by RADIUS is in bytes"},
		{attrs{pair("accounting-list=default"), pair("up=1Mbit")}, access.Plan{Up: access.Rate{CIR: 1000}},
			"Cisco-AVPair: subscriber:accounting-list: no such setting"},
		{attrs{text(radius.CiscoAVPair, "ip:dns-servers=x")}, access.Plan{},
			`Cisco-AVPair: ip:dns-servers: "x" is no address`},
		{attrs{text(radius.CiscoAVPair, "lcp:interface-config=x")}, access.Plan{},
			`Cisco-AVPair: lcp:interface-config: "x" is no command here`},
		{attrs{text(radius.CiscoAVPair, "shell:priv-lvl=15")}, access.Plan{}, "Cisco-AVPair: "},
		{attrs{text(radius.FilterId, "10M/2M")}, access.Plan{}, `Filter-Id: "10M/2M" has rates`},
		{attrs{text(radius.FilterId, "rate=10Mbit"), text(radius.FilterId, "strict.in")},
			access.Plan{ACLUp: "strict"}, `Filter-Id: "rate=10Mbit" has rates`},
		{attrs{number(radius.FramedProtocol, 2)}, access.Plan{}, "Framed-Protocol: 2: only PPP"},
		{attrs{address(radius.FramedIPNetmask, "255.0.255.0")}, access.Plan{},
			"Framed-IP-Netmask: 255.0.255.0"},
		{attrs{network(radius.FramedIPv6Prefix, "2001:db8:1::/64"),
			network(radius.FramedIPv6Prefix, "2001:db8:2::/64"),
			network(radius.DelegatedIPv6Prefix, "2001:db8:a000::/56"),
			network(radius.DelegatedIPv6Prefix, "2001:db8:b000::/56")},
			access.Plan{IPv6: p("2001:db8:1::/64"), Delegated: p("2001:db8:a000::/56")},
			"Framed-IPv6-Prefix: an IPv6 prefix was given twice"},
		{many, access.Plan{}, "Vendor-Specific: "},
	})
	// Parts of what is used otherwise, on line too.
	for _, row := range []struct{ limit, left string }{
		{"2M/10M 4M/20M 1M/1M 8/8 8 1M/1M", `"1M/1M 8/8 8 1M/1M": only rates`},
		{"2M/10M 1M/1M", `"1M/1M": the burst's rate is lower`},
	} {
		for _, at := range []*access.Addresses{nil, {}} {
			var got access.Plan
			left, err := apply(&got, attrs{text(radius.MikrotikRateLimit, row.limit)}, at)
			testkit.Must(t, err)
			testkit.ErrorIf(t, len(left) == 0 || !strings.HasPrefix(left[0].Why, row.left), "%v", left)
			testkit.Equal(t, [2]uint64{got.Up.CIR, got.Down.CIR}, [2]uint64{2000, 10_000}, "rates")
		}
	}
}

// As many classes come back in accounting as a record has room for (RFC 2865 §5.25).
func TestManyClasses(t *testing.T) {
	var list attrs
	for i := range 17 {
		list = append(list, text(radius.Class, fmt.Sprint("class ", i)))
	}
	var got access.Plan
	left, err := apply(&got, list, nil)
	testkit.Must(t, err)
	testkit.ErrorIf(t, len(got.Class) != 17 || len(left) != 0, "%d classes, %v", len(got.Class), left)
	for range 9 {
		list = append(list, text(radius.Class, strings.Repeat("x", 253)))
	}
	got = access.Plan{}
	left, err = apply(&got, list, nil)
	testkit.Must(t, err)
	testkit.ErrorIf(t, len(got.Class) != 17+7 || len(left) != 2, "%d classes, %v", len(got.Class), left)
}

// A change takes the place of what was there, and leaves the old plan as it was.
func TestChange(t *testing.T) {
	old := access.Plan{Up: access.Rate{CIR: 1000}, Class: [][]byte{[]byte("old")}, Redirect: "http://pay.example"}
	plan := old
	c := Change{attrs{pair("up=500kbit"), text(radius.Class, "new"), pair("redirect=")}}
	_, err := c.Apply(&plan, &access.Addresses{})
	testkit.Must(t, err)
	testkit.Equal(t, plan.Up.CIR, 500, "rate")
	testkit.Equal(t, string(plan.Class[0]), "new", "class")
	testkit.Equal(t, plan.Redirect, "", "redirect")
	testkit.Equal(t, string(old.Class[0]), "old", "the old plan's class")
	at := access.Addresses{IPv4: netip.MustParseAddr("100.64.0.7")}
	for _, row := range []struct {
		a    radius.Attribute
		want Result
	}{
		{text(radius.CiscoAVPair, "other:x=y"), radius.UnsupportedAttribute},
		{number(radius.TunnelType, 3), radius.UnsupportedAttribute},
		{pair("up=x"), BadValue},
		{text(radius.FramedRoute, "10.9.0.0/24 100.64.0.8"), BadValue},
		{text(radius.FramedRoute, "10.9.0.0/24 100.64.0.7"), OK}, // from a pool: not in the plan
	} {
		_, err := (&Change{attrs{row.a}}).Apply(&plan, &at)
		testkit.Equal(t, ResultOf(err), row.want, "%v: %v", row.a, err)
	}
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
		if _, err := apply(&p, list, nil); err != nil {
			return
		}
		if p.IPv6.IsValid() && p.IPv6.Masked() != p.IPv6 || len(bytes.Join(p.Class, nil)) > maxClass ||
			len(p.Routes) > maxLists {
			t.Fatalf("%+v", p)
		}
	})
}
