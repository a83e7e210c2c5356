// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"net/netip"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// A subscriber's URRs: all packets, and IPv6 alone, which is reported together with the first.
const (
	urrAll  = 1
	urrIPv6 = 2
)

// signedIn is a subscriber of both families with a delegated prefix, whose core side is IP.
func signedIn() *Session {
	var (
		up, down, open = uint32(1), uint32(2), uint8(0)
		instance       = "internet"
		access, core   = pfcp.Access, pfcp.Core
		volume         = uint8(2)           // VOLUM
		periodic       = uint32(1)          // PERIO
		linked         = uint32(0x80)       // LIUSA
		quota          = uint64(10_000_000) // bytes, both directions
	)
	ue := []pfcp.UEIP{{IPv4: addr("100.64.0.7"), IPv6: netip.MustParsePrefix("2001:db8:1:7::/64")}}
	behind := []netip.Prefix{netip.MustParsePrefix("2001:db8:4700::/56"), netip.MustParsePrefix("203.0.113.8/29")}
	pdr := func(id uint16, from pfcp.Interface, far uint32) pfcp.CreatePDR {
		pdi := pfcp.PDI{Source: from, NetworkInstance: instance, UEIP: ue, FramedRoutes: behind}
		return pfcp.CreatePDR{ID: id, Precedence: 100, PDI: pdi, FAR: &far, QER: []uint32{1},
			URR: []uint32{urrAll, urrIPv6}}
	}
	far := func(id uint32, w *pfcp.Forwarding) FAR {
		return FAR{CreateFAR: pfcp.CreateFAR{ID: id, Action: pfcp.ActionForward, Forwarding: w}}
	}
	rate := api.Policer{Type: api.MeterTRTCM, CIR: 6_250_000, CBS: 100_000, PIR: 12_500_000, PBS: 200_000}
	qer := pfcp.CreateQER{ID: 1, GateUplink: &open, GateDownlink: &open, MBRUplink: ptr(uint64(20000))}
	all := pfcp.CreateURR{ID: urrAll, Method: &volume, Triggers: &periodic, Period: ptr(5 * time.Minute),
		VolumeQuota: &pfcp.Volumes{Total: &quota}}
	six := pfcp.CreateURR{ID: urrIPv6, Method: &volume, Triggers: &linked, Linked: []uint32{urrAll}}
	s := &Session{SEID: 7,
		Line: &api.Session{Encap: api.EncapQinQPPPoE, OuterTPID: 0x88a8, STag: 100, CTag: 7, PPPoESession: 7,
			MAC: [6]byte{2, 0, 0, 0, 0, 7}, MRU: 1492, MSS: 1400,
			LCPMagic: 0x01020304, LCPInterval: 10, LCPCount: 3, LCPOpened: 1},
		PDR: []pfcp.CreatePDR{pdr(1, pfcp.Access, up), pdr(2, pfcp.Core, down)},
		FAR: []FAR{far(up, &pfcp.Forwarding{Destination: &core, NetworkInstance: &instance}),
			far(down, &pfcp.Forwarding{Destination: &access})},
		QER: []QER{{CreateQER: qer, Downlink: &rate}},
		URR: []URR{{CreateURR: all}, {CreateURR: six, IPv6: true}},
	}
	copy(s.Line.Port[:], "access")
	return s
}

func compiledLine(t *testing.T, s *Session) *Compiler {
	t.Helper()
	c := new(Compiler)
	if _, refusal := c.Compile(Context{Set: testSettings()}, s); refusal != nil {
		t.Fatal(refusal)
	}
	return c
}

func TestSubscriberWithIPOnTheCoreSide(t *testing.T) {
	c := compiledLine(t, signedIn())
	up, down := c.pdrs[0], c.pdrs[1]
	testkit.Equal(t, up.Match, uint16(api.PDREndpoint|api.PDRUEIP|api.PDRFramed), "uplink match")
	testkit.Equal(t, down.Match, uint16(api.PDRUEIP|api.PDRFramed), "downlink match")
	testkit.Equal(t, down.Instance, 0, "instance of the downlink PDR")
	testkit.Equal(t, api.CString(c.head.Instance[0][:]), "internet", "instance")
	testkit.Equal(t, c.fars[0].Outer, byte(api.OuterNone), "uplink header")
	testkit.Equal(t, c.fars[0].Instance, 0, "instance of the uplink FAR")
	testkit.Equal(t, c.fars[1].Outer, byte(api.OuterEndpoint), "downlink header")
	testkit.Equal(t, len(c.route), 2, "framed routes")
	testkit.Equal(t, len(c.out.UEs), 4, "addresses occupied")
	testkit.Equal(t, len(c.out.Objects), 2, "policers")
	testkit.Equal(t, c.qers[0].UplinkPolicer != c.qers[0].DownlinkPolicer, true, "a policer each")
	testkit.Equal(t, c.urrs[0].Flags&api.URRIP6, 0, "all packets")
	testkit.Equal(t, c.urrs[1].Flags&api.URRIP6, api.URRIP6, "IPv6 alone")
	testkit.Equal(t, c.head.LCPMagic, 0x01020304, "magic number")
	testkit.Equal(t, c.head.MSS, 1400, "MSS")
}

// A captive subscriber: one rule for permitted traffic; another redirects HTTP and drops the rest.
func TestCaptiveSubscriber(t *testing.T) {
	s := signedIn()
	dns := uint32(1)
	s.FAR[0].Forwarding.Redirect = &pfcp.Redirect{Type: 2, Address: "http://portal.example/"}
	garden := s.PDR[0]
	garden.ID, garden.Precedence, garden.FAR = 3, 10, ptr(uint32(3))
	s.PDR = append(s.PDR, garden)
	passes := *s.FAR[0].Forwarding
	passes.Redirect = nil
	s.FAR = append(s.FAR, FAR{CreateFAR: pfcp.CreateFAR{ID: 3, Action: pfcp.ActionForward, Forwarding: &passes}})
	filter := api.SDF{RemotePort: [2]uint16{53, 53}, LocalPort: [2]uint16{0, 65535}}
	filter.Protocol, filter.Flags = 17, api.SDFProtocol
	s.LineFilters = map[uint16][]api.SDF{3: {filter}}
	c := compiledLine(t, s)
	testkit.Equal(t, c.pdrs[2].SDFCount, uint16(dns), "filters")
	testkit.Equal(t, c.fars[0].More, 1, "redirection")
	testkit.Equal(t, c.mores[0].Redirect, byte(api.RedirectURL), "to a URL")
}

func TestRefusedLineInstances(t *testing.T) {
	for _, name := range []string{"nowhere", "n9"} { // n9 finds no subscriber
		s := signedIn()
		s.PDR[1].PDI.NetworkInstance = name
		_, refusal := Compile(Context{Set: testSettings()}, s)
		testkit.FatalIf(t, refusal == nil || refusal.Rule.ID != 2, "%q: %v", name, refusal)
		s = signedIn()
		s.FAR[0].Forwarding.NetworkInstance = &name
		_, refusal = Compile(Context{Set: testSettings()}, s)
		testkit.FatalIf(t, refusal == nil || refusal.Rule.ID != 1, "%q: %v", name, refusal)
	}
}
