// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"net/netip"
	"slices"
	"time"

	"isthmus/api"
	"isthmus/controlplane/access"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

// Ids of a subscriber's rules.
const (
	uplinkRule   = 1
	downlinkRule = 2
	gardenRule   = 3 // the walled garden's, of a captive subscriber
	uplinkDeny   = 4 // what access lists do not let pass
	downlinkDeny = 5

	allURR  = 1 // all packets
	ipv6URR = 2 // IPv6 packets alone

	precedence  = 100
	gardenFirst = 50
	denied      = 200
)

var (
	accessSide, coreSide = pfcp.Access, pfcp.Core
	open                 = uint8(0)
)

// object makes the session object of a subscriber.
type object struct{ *Subscriber }

// session is the object in its wanted state.
func (s object) session() *rules.Session {
	o := &rules.Session{SEID: s.seid, UserID: s.user, APN: s.plan.Instance, Line: s.line(),
		Inactivity: uint32(s.plan.IdleTimeout / time.Second)}
	profile := s.loop.set.profiles[s.plan.Profile]
	pdi := pfcp.PDI{NetworkInstance: s.plan.Instance}
	if s.families.V4 {
		pdi.UEIP = append(pdi.UEIP, pfcp.UEIP{IPv4: s.addresses.IPv4})
		pdi.FramedRoutes = append(pdi.FramedRoutes, routesOf(s.plan.Routes, true)...)
	}
	if s.families.V6 && s.addresses.IPv6.IsValid() {
		pdi.UEIP = append(pdi.UEIP, pfcp.UEIP{IPv6: s.addresses.IPv6})
	}
	if s.families.Delegated && s.addresses.Delegated.IsValid() {
		pdi.FramedRoutes = append(pdi.FramedRoutes, s.addresses.Delegated)
	}
	if s.families.V6 || s.families.Delegated {
		pdi.FramedRoutes = append(pdi.FramedRoutes, routesOf(s.plan.Routes, false)...)
	}
	pdr := func(id uint16, first uint32, from pfcp.Interface) pfcp.CreatePDR {
		p := pfcp.CreatePDR{ID: id, Precedence: first, PDI: pdi, FAR: new(uint32), URR: []uint32{allURR,
			ipv6URR}}
		*p.FAR, p.PDI.Source = uint32(id), from
		return p
	}
	up, down := pdr(uplinkRule, precedence, pfcp.Access), pdr(downlinkRule, precedence, pfcp.Core)
	up.QER, down.QER = []uint32{1}, []uint32{1}
	o.PDR = []pfcp.CreatePDR{up, down}
	far := func(id uint32, to *pfcp.Interface, instance *string, redirect *pfcp.Redirect) rules.FAR {
		return rules.FAR{CreateFAR: pfcp.CreateFAR{ID: id, Action: pfcp.ActionForward,
			Forwarding: &pfcp.Forwarding{Destination: to, NetworkInstance: instance, Redirect: redirect}}}
	}
	var redirect *pfcp.Redirect
	if s.plan.Redirect != "" {
		redirect = &pfcp.Redirect{Type: 2, Address: s.plan.Redirect}
	}
	o.FAR = []rules.FAR{far(uplinkRule, &coreSide, &o.APN, redirect), far(downlinkRule, &accessSide, nil, nil)}
	if redirect != nil {
		garden := pdr(gardenRule, gardenFirst, pfcp.Access)
		o.PDR, o.FAR = append(o.PDR, garden), append(o.FAR, far(gardenRule, &coreSide, &o.APN, nil))
	}
	s.filter(o)
	if redirect != nil {
		s.admit(o)
	}
	if len(pdi.UEIP)+len(pdi.FramedRoutes) == 0 { // no address yet (PPP): nothing from the core side matches
		o.PDR = slices.DeleteFunc(o.PDR, func(p pfcp.CreatePDR) bool { return p.PDI.Source == pfcp.Core })
	}
	q := rules.QER{CreateQER: pfcp.CreateQER{ID: 1, GateUplink: &open, GateDownlink: &open},
		Uplink: policer(s.plan.Up), Downlink: policer(s.plan.Down)}
	if profile != nil {
		if q.Uplink == nil {
			q.UplinkPolicer = string(profile.UplinkPolicer)
		}
		if q.Downlink == nil {
			q.DownlinkPolicer = string(profile.DownlinkPolicer)
		}
		api.PutCString(o.Line.Mirror[:], string(profile.Mirror))
		api.PutCString(o.Line.Counter[:], string(profile.Counter))
	}
	o.QER = []rules.QER{q}
	o.URR = s.urrs(s.plan.Interim)
	return o
}

func routesOf(list []netip.Prefix, v4 bool) (routes []netip.Prefix) {
	for _, r := range list {
		if r.Addr().Is4() == v4 {
			routes = append(routes, r)
		}
	}
	return routes
}

func dns(protocol uint8) api.SDF {
	return api.SDF{Flags: api.SDFProtocol, Protocol: protocol, RemotePort: [2]uint16{53, 53},
		LocalPort: [2]uint16{0, 65535}}
}

// policer is that of a rate, nil without one.
func policer(r access.Rate) *api.Policer {
	if r.CIR == 0 {
		return nil
	}
	const bytesPerKilobit, least = 125, 3044 // two full frames
	burst := func(given uint32, rate uint64) uint64 {
		if given != 0 {
			return uint64(given)
		}
		return max(rate/10, least)
	}
	cir, pir := r.CIR*bytesPerKilobit, r.PIR*bytesPerKilobit
	p := &api.Policer{Type: api.MeterSRTCM, CIR: cir, CBS: burst(r.CBS, cir),
		Action: [3]byte{api.ColourActionPass, api.ColourActionPass, api.ColourActionDrop}}
	if pir > cir {
		p.Type, p.PIR, p.PBS = api.MeterTRTCM, pir, burst(r.PBS, pir)
	}
	return p
}

// line is where the subscriber is attached.
func (s object) line() *api.Session {
	l := &s.at.line
	o := &api.Session{Encap: api.EncapQinQ, OuterTPID: l.TPID, STag: l.STag, CTag: l.CTag, MAC: l.MAC,
		PPPoESession: s.at.pppoe, MRU: s.mtu, MSS: s.plan.MSS}
	if o.OuterTPID == 0 {
		o.OuterTPID = 0x8100
	}
	if s.at.kind == access.PPPoE {
		o.Encap, o.LCPOpened = api.EncapQinQPPPoE, 1
		o.LCPMagic, o.LCPInterval, o.LCPCount = s.alive.Magic, uint16(s.alive.Interval/time.Second),
			s.alive.Count
	}
	if m := s.plan.MTU; m != 0 && (o.MRU == 0 || m < o.MRU) {
		o.MRU = m
	}
	api.PutCString(o.Port[:], l.Port)
	api.PutCString(o.PipeProfile[:], s.plan.Scheduler)
	return o
}

// urrs count for accounting. A record in between is asked for by raising Query, or comes each period.
func (c *counted) urrs(period time.Duration) []rules.URR {
	const volume = 2 // TS 29.244 §8.2.40: VOLUM
	all := rules.URR{CreateURR: pfcp.CreateURR{ID: allURR, Method: new(uint8), Triggers: new(uint32)},
		Query: c.query, Grant: c.grant}
	*all.Method = volume
	information := uint8(1 << 4) // MNOP: packets, too (TS 29.244 §8.2.68)
	all.Information = &information
	if period > 0 {
		*all.Triggers, all.Period = *all.Triggers|api.URRPerio, &period
	}
	if c.quota > 0 {
		quota := c.quota
		*all.Triggers, all.VolumeQuota = *all.Triggers|api.URRVolqu, &pfcp.Volumes{Total: &quota}
	}
	six := rules.URR{CreateURR: pfcp.CreateURR{ID: ipv6URR, Method: all.Method, Triggers: new(uint32),
		Linked: []uint32{allURR}, Information: &information}, Query: c.query, IPv6: true}
	*six.Triggers = api.URRLiusa
	return []rules.URR{all, six}
}
