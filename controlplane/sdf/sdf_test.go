// SPDX-License-Identifier: Apache-2.0

package sdf

import (
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

func TestCompile(t *testing.T) {
	prefix := func(text string) api.Address {
		if text == "" {
			return api.Address{}
		}
		return api.FromPrefix(netip.MustParsePrefix(text))
	}
	alternative := func(flags, protocol byte, remote string, r0, r1 uint16, local string, l0, l1 uint16) api.SDF {
		return api.SDF{Flags: flags, Protocol: protocol, Remote: prefix(remote), RemotePort: [2]uint16{r0, r1},
			Local: prefix(local), LocalPort: [2]uint16{l0, l1}}
	}
	const all, proto = 65535, api.SDFProtocol
	for text, want := range map[string][]api.SDF{
		"permit out ip from any to assigned": {alternative(0, 0, "", 0, all, "", 0, all)},
		"permit out 17 from 10.0.0.0/8 53 to assigned": {alternative(proto, 17, "10.0.0.0/8", 53, 53, "", 0,
			all)},
		"permit out 6 from 10.1.2.3 to any": {alternative(proto, 6, "10.1.2.3/32", 0, all, "", 0,
			all)},
		"permit out 0 from any to any": {alternative(proto, 0, "", 0, all, "", 0, all)},
		"  permit  out ip   from 10.9.9.9/8 to 192.0.2.0/24": {alternative(0, 0, "10.0.0.0/8", 0, all,
			"192.0.2.0/24", 0, all)},
		"permit out ip from 2001:db8::/32 to 2001:db8:1::1": {alternative(0, 0, "2001:db8::/32", 0, all,
			"2001:db8:1::1/128", 0, all)},
		"permit in 6 from 192.0.2.1 5 to 10.0.0.1 7": {alternative(proto, 6, "10.0.0.1/32", 7, 7,
			"192.0.2.1/32", 5, 5)},
		"permit out ip from assigned 5 to 10.0.0.1 7": {alternative(0, 0, "10.0.0.1/32", 7, 7, "", 5, 5)},
		"permit in ip from any 5 to assigned 7":       {alternative(0, 0, "", 5, 5, "", 7, 7)},
		"deny out 1 from any to assigned": {alternative(proto|api.SDFDeny, 1, "", 0, all, "", 0,
			all)},
		"permit out 6 from any 80,443,8000-8010 to assigned": {
			alternative(proto, 6, "", 80, 80, "", 0, all), alternative(proto, 6, "", 443, 443, "", 0, all),
			alternative(proto, 6, "", 8000, 8010, "", 0, all)},
		"permit out 6 from any 1-5,6,3 to any 0-65535": {alternative(proto, 6, "", 1, 6, "", 0, all)},
		"permit out ip from !128.0.0.0/2 to any": {
			alternative(0, 0, "0.0.0.0/1", 0, all, "", 0, all), alternative(0, 0, "192.0.0.0/2", 0, all, "", 0, all)},
	} {
		got, err := Flow(text)
		testkit.ErrorIf(t, err != nil || !reflect.DeepEqual(got, want), "%s: %+v %v", text, got, err)
	}
}

// Row P22, and more of its kind.
func TestRefused(t *testing.T) {
	for _, text := range []string{
		"", " ", "permit", "aaaaaaaa", "unknown action aaaaaaaa", "permit out", "permit out ip", "permit out ip from",
		"permit out ip from any", "permit out ip from any to", "permit out ip to any from any",
		"permit both ip from any to any", "PERMIT out ip from any to any", "permit out gre from any to any",
		"permit out 256 from any to any", "permit out -1 from any to any", "permit out +6 from any to any",
		"permit out ip from 10.0.0.0/33 to any", "permit out ip from 2001:db8::/129 to any",
		"permit out ip from 10.0.0.0/ to any",
		"permit out ip from 10.0.0.0/-1 to any", "permit out ip from 10.0.0 to any",
		"permit out ip from 10.0.0.256 to any",
		"permit out ip from fe80::1%eth0 to any", "permit out ip from !any to any",
		"permit out ip from !0.0.0.0/0 to any",
		"permit out 6 from any 65536 to any", "permit out 6 from any 10-9 to any", "permit out 6 from any 1- to any",
		"permit out 6 from any 1,,2 to any", "permit out 6 from any 1, to any", "permit out 6 from any -5 to any",
		"permit out 1 from any 5 to any", "permit out ip from any to any frag",
		"permit out 6 from any to any established",
		"permit out ip from 10.0.0.1 to 2001:db8::1", "permit out ip from assigned to assigned",
		"permit out ip from any to any\x00", "permit out ip from any to \xff\xfe", "permit\nout ip from any to any",
		"permit out ip from any to any " + strings.Repeat("a", 65000),
		"permit out 6 from any " + strings.Repeat("1,", 40) + "1 to any",
		"permit out ip from !2001:db8::1 to any",
		"permit out 6 from any 1,3,5,7,9,11,13,15,17 to any 1,3,5,7,9,11,13,15,17",
	} {
		if list, err := Flow(text); err == nil {
			t.Errorf("%.60q is taken: %+v", text, list)
		} else if len(err.Error()) > 200 {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// SD-Core names protocols.
func TestProtocolNames(t *testing.T) {
	for name, number := range map[string]string{"icmp": "1", "tcp": "6", "udp": "17", "icmp6": "58", "sctp": "132"} {
		named, err1 := Parse("permit out " + name + " from any to assigned")
		numbered, err2 := Parse("permit out " + number + " from any to assigned")
		testkit.ErrorIf(t, err1 != nil || err2 != nil || named.Protocol != numbered.Protocol,
			"%s: %+v %v, %+v %v", name, named, err1, numbered, err2)
	}
}

func TestCompileFilter(t *testing.T) {
	f := pfcp.SDFFilter{Flow: "permit out 17 from any 53,123 to assigned", ToS: 0xbb, Mask: 0xfc, HasToS: true,
		SPI: 5, HasSPI: true,
		FlowLabel: 0xfabcde, HasLabel: true, ID: 9, HasID: true}
	list, err := Compile(&f)
	testkit.FatalIf(t, err != nil || len(list) != 2, "%+v %v", list, err)
	for _, s := range list {
		if s.Flags != api.SDFProtocol|api.SDFTOS|api.SDFSPI|api.SDFFlowLabel || s.TOS != 0xb8 || s.TOSMask != 0xfc ||
			s.SPI != 5 ||
			s.FlowLabel != 0xabcde {
			t.Errorf("%+v", s)
		}
	}
	if list, err := Compile(&pfcp.SDFFilter{HasSPI: true,
		SPI: 1}); err != nil || len(list) != 1 || list[0].RemotePort != anyPort {
		t.Errorf("SPI alone: %+v %v", list, err)
	}
	if _, err := Compile(&pfcp.SDFFilter{HasID: true, ID: 1}); err == nil {
		t.Error("an id alone is taken")
	}
}

// packet is what filters look at, written as a packet towards the UE.
type packet struct {
	protocol      int
	remote, local netip.Addr
	rport, lport  uint16
}

// matches is the rule as RFC 6733 words it, without alternatives.
func (r *Rule) matches(p packet) bool {
	source, destination := End{}, End{}
	sa, sp, da, dp := p.remote, p.rport, p.local, p.lport
	if source, destination = r.Source, r.Destination; r.Source.Assigned || r.In && !r.Destination.Assigned {
		sa, sp, da, dp = p.local, p.lport, p.remote, p.rport
	}
	return (r.Protocol == Any || r.Protocol == p.protocol) && source.matches(sa, sp) && destination.matches(da, dp)
}

func (e *End) matches(a netip.Addr, port uint16) bool {
	if e.Prefix.IsValid() && (e.Prefix.Addr().Is4() != a.Is4() || e.Prefix.Contains(a) == e.Not) {
		return false
	}
	for _, p := range e.Ports {
		if port >= p.Low && port <= p.High {
			return true
		}
	}
	return e.Ports == nil
}

// accepts is what the data plane does with an alternative.
func accepts(s *api.SDF, p packet) bool {
	in := func(a api.Address, host netip.Addr) bool { return a.Family == 0 || a.Netip().Contains(host) }
	return in(s.Remote, p.remote) && in(s.Local,
		p.local) && (s.Flags&api.SDFProtocol == 0 || int(s.Protocol) == p.protocol) &&
		p.rport >= s.RemotePort[0] && p.rport <= s.RemotePort[1] && p.lport >= s.LocalPort[0] &&
		p.lport <= s.LocalPort[1]
}

func randomEnd(r *rand.Rand, v4 bool) End {
	var e End
	switch r.IntN(4) {
	case 0:
		e.Assigned = true
	case 1, 2:
		e.Prefix = netip.PrefixFrom(randomAddress(r, v4), 1+r.IntN(8)).Masked()
		e.Not = r.IntN(2) == 0
	}
	if r.IntN(2) == 0 {
		var list []Ports
		for range 1 + r.IntN(3) {
			low := uint16(r.IntN(20))
			list = append(list, Ports{low, low + uint16(r.IntN(5))})
		}
		e.Ports = merge(list)
	}
	return e
}

func randomAddress(r *rand.Rand, v4 bool) netip.Addr {
	var b [16]byte
	b[0] = byte(r.UintN(256))
	if v4 {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	return netip.AddrFrom16(b)
}

// The alternatives together match what the rule matches, and the text of a rule is read as the rule.
func TestAlternativesAreTheRule(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	compiled := 0
	for range 20000 {
		v4 := r.IntN(2) == 0
		rule := Rule{Deny: r.IntN(4) == 0, In: r.IntN(4) == 0, Protocol: []int{Any, 6, 17, 1}[r.IntN(4)],
			Source:      randomEnd(r, v4),
			Destination: randomEnd(r, v4)}
		text := rule.String()
		back, err := Parse(text)
		if rule.check() != nil {
			testkit.FatalIf(t, err == nil, "%s is taken", text)
			continue
		}
		testkit.FatalIf(t, err != nil || !reflect.DeepEqual(rule, back), "%s: %+v %v", text, back, err)
		list, err := rule.Compile()
		if err != nil {
			continue
		}
		compiled++
		for range 20 {
			same := r.IntN(8) != 0 == v4
			p := packet{[]int{6, 17, 1}[r.IntN(3)], randomAddress(r, same), randomAddress(r, same), uint16(r.IntN(25)),
				uint16(r.IntN(25))}
			got := false
			for i := range list {
				got = got || accepts(&list[i], p)
			}
			want := rule.matches(p)
			testkit.FatalIf(t, got != want, "%s: %+v: alternatives say %t, the rule %t", text, p, got, want)
		}
	}
	testkit.ErrorIf(t, compiled < 5000, "only %d rules were compared", compiled)
}

// An accepted rule has a text that is read as the same rule, and alternatives that the data plane takes.
func FuzzSDF(f *testing.F) {
	for _, seed := range []string{
		"permit out ip from any to assigned", "permit out 17 from 10.0.0.0/8 53,100-200 to assigned 1-2",
		"deny in 6 from !10.0.0.0/7 to any",
		"permit out ip from 2001:db8::/32 1 to ::1", "permit out 58 from ::ffff:1.2.3.4 to assigned",
		"permit out ip from any to any frag",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		back, err := Parse(r.String())
		if err != nil || !reflect.DeepEqual(r, back) {
			t.Fatalf("%q is %+v, its text %q is %+v, %v", text, r, r.String(), back, err)
		}
		list, err := r.Compile()
		if err != nil {
			return
		}
		testkit.FatalIf(t, len(list) == 0 || len(list) > MaxAlternatives,
			"%q: %d alternatives", text, len(list))
		for _, s := range list {
			if s.RemotePort[0] > s.RemotePort[1] || s.LocalPort[0] > s.LocalPort[1] ||
				s.Remote.Family != 0 && !s.Remote.Netip().IsValid() || s.Local.Family != 0 &&
				!s.Local.Netip().IsValid() ||
				s.Remote.Family != 0 && s.Local.Family != 0 && s.Remote.Family != s.Local.Family {
				t.Fatalf("%q: %+v", text, s)
			}
		}
	})
}
