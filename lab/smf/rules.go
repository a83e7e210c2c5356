// SPDX-License-Identifier: Apache-2.0

package smf

import (
	"net/netip"

	"isthmus/controlplane/pfcp"
)

// Rule ids. Every session made here has a PDR and a FAR for each direction, with the same id.
const (
	Uplink   = 1
	Downlink = 2
	Local    = 3 // uplink classifier: to the local network
	LocalIn  = 4 // and back
)

// UE is a subscriber's addresses; invalid ones it does not have.
type UE struct {
	IPv4 netip.Addr
	IPv6 netip.Prefix
}

// Measure is an anchor's treatment of a UE's traffic besides forwarding; zero values: none.
type Measure struct {
	QFI               uint8  // of the packets it sends into tunnels
	MBRUp, MBRDown    uint64 // kbit/s
	VolumeThreshold   uint64 // bytes until a usage report
	CountsForCharging bool
}

// Anchor is a function with an access network on one side and IP on the other: PGW-U (Sxb), or UPF with N3 or N9
// and N6.
type Anchor struct {
	Access, Core string // network instances
	UE           UE
	Measure      Measure
	IPv6         bool        // F-TEIDs of that family
	Peer         *pfcp.FTEID // where downlink packets go; nil: they are buffered, and we get a report
}

// Relay is a function between two tunnels: SGW-U (Sxa), or an intermediate UPF with N3 and N9.
type Relay struct {
	Access, Core string
	Measure      Measure
	IPv6         bool
	Up, Down     *pfcp.FTEID // nil: not known yet. Uplink packets are dropped then, downlink packets buffered
	Classifier   *Classifier
}

// Classifier makes a relay send some uplink packets straight to a network beside it (TS 23.501 §5.6.4.2).
type Classifier struct {
	Instance string       // network instance of the local network
	To       netip.Prefix // destinations that are there
	UE       UE
}

// Radio is an emulated gNB or eNB: IP of the UE on one side, a tunnel on the other.
type Radio struct {
	Radio, Access string // network instances: towards UEs, towards the tunnel
	UE            UE
	QFI           uint8
	IPv6          bool
	Up            pfcp.FTEID
}

func ptr[T any](v T) *T { return &v }

// Choose asks the user plane for an F-TEID.
func Choose(ipv6 bool) *pfcp.FTEID { return &pfcp.FTEID{Choose: true, WantIPv4: !ipv6, WantIPv6: ipv6} }

// anyGTPU removes GTP-U/UDP/IP of any IP version (TS 29.244 §8.2.64).
const anyGTPU = 6

// tunnel is the outer header that leads to an F-TEID.
func tunnel(to pfcp.FTEID) *pfcp.OuterHeader {
	if to.IPv4.IsValid() {
		return &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: to.TEID, IPv4: to.IPv4}
	}
	return &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv6, TEID: to.TEID, IPv6: to.IPv6}
}

// to forwards into a tunnel, or without one as plain IP.
func to(side pfcp.Interface, instance string, peer *pfcp.FTEID) *pfcp.Forwarding {
	f := &pfcp.Forwarding{Destination: &side, NetworkInstance: &instance}
	if peer != nil {
		f.OuterHeader = tunnel(*peer)
	}
	return f
}

func forward(id uint32, f *pfcp.Forwarding) pfcp.CreateFAR {
	return pfcp.CreateFAR{ID: id, Action: pfcp.ActionForward, Forwarding: f}
}

// waiting buffers and notifies until the peer is known.
func waiting(id uint32) pfcp.CreateFAR {
	return pfcp.CreateFAR{ID: id, Action: pfcp.ActionBuffer | pfcp.ActionNotify, BAR: ptr(uint8(1))}
}

func (u UE) match(destination bool) []pfcp.UEIP {
	return []pfcp.UEIP{{IPv4: u.IPv4, IPv6: u.IPv6, Destination: destination}}
}

// tunnelled is a PDR for packets of an F-TEID that the user plane chooses.
func tunnelled(id uint16, side pfcp.Interface, instance string, ipv6 bool) pfcp.CreatePDR {
	return pfcp.CreatePDR{
		ID: id, Precedence: 200, OuterHeaderRemoval: ptr(uint8(anyGTPU)), FAR: ptr(uint32(id)),
		PDI: pfcp.PDI{Source: side, LocalFTEID: Choose(ipv6), NetworkInstance: instance},
	}
}

// plain is a PDR for IP packets of a UE.
func plain(id uint16, side pfcp.Interface, instance string, ue UE, destination bool) pfcp.CreatePDR {
	return pfcp.CreatePDR{
		ID: id, Precedence: 200, FAR: ptr(uint32(id)),
		PDI: pfcp.PDI{Source: side, NetworkInstance: instance, UEIP: ue.match(destination)},
	}
}

// apply adds the QER and the URR that the measure asks for to a request and all its PDRs.
func (m *Measure) apply(req *pfcp.SessionEstablishmentRequest) {
	if m.QFI != 0 || m.MBRUp != 0 || m.MBRDown != 0 {
		q := pfcp.CreateQER{ID: 1, GateUplink: ptr(uint8(0)), GateDownlink: ptr(uint8(0))}
		if m.QFI != 0 {
			q.QFI = &m.QFI
		}
		if m.MBRUp != 0 || m.MBRDown != 0 {
			q.MBRUplink, q.MBRDownlink = &m.MBRUp, &m.MBRDown
		}
		req.QER = []pfcp.CreateQER{q}
	}
	if m.CountsForCharging {
		// Volume is measured and packets with it (MNOP); the final report comes with the deletion.
		u := pfcp.CreateURR{ID: 1, Method: ptr(uint8(2)), Triggers: ptr(uint32(triggerVolume)),
			Information: ptr(uint8(1 << 4))}
		threshold := m.VolumeThreshold
		if threshold == 0 {
			threshold = 1 << 40
		}
		u.VolumeThreshold = &pfcp.Volumes{Total: &threshold}
		req.URR = []pfcp.CreateURR{u}
	}
	for i := range req.PDR {
		if len(req.QER) > 0 {
			req.PDR[i].QER = []uint32{1}
		}
		if len(req.URR) > 0 {
			req.PDR[i].URR = []uint32{1}
		}
	}
}

const triggerVolume = 1 << 1 // VOLTH, TS 29.244 §8.2.19

// Request makes the session of an anchor.
func (r *Anchor) Request() *pfcp.SessionEstablishmentRequest {
	up := tunnelled(Uplink, pfcp.Access, r.Access, r.IPv6)
	up.PDI.UEIP = r.UE.match(false)
	req := &pfcp.SessionEstablishmentRequest{
		PDR: []pfcp.CreatePDR{up, plain(Downlink, pfcp.Core, r.Core, r.UE, true)},
		FAR: []pfcp.CreateFAR{forward(Uplink, to(pfcp.Core, r.Core, nil)),
			towards(Downlink, pfcp.Access, r.Access, r.Peer)},
	}
	if r.Peer == nil {
		buffers(req)
	}
	r.Measure.apply(req)
	return req
}

// towards forwards to a peer, or waits for it.
func towards(id uint32, side pfcp.Interface, instance string, peer *pfcp.FTEID) pfcp.CreateFAR {
	if peer == nil {
		return waiting(id)
	}
	return forward(id, to(side, instance, peer))
}

// buffers adds the BAR that waiting FARs, now or later, refer to.
func buffers(req *pfcp.SessionEstablishmentRequest) { req.BAR = []pfcp.CreateBAR{{ID: 1}} }

// Request makes the session of a relay.
func (r *Relay) Request() *pfcp.SessionEstablishmentRequest {
	up := pfcp.CreateFAR{ID: Uplink, Action: pfcp.ActionDrop}
	if r.Up != nil {
		up = forward(Uplink, to(pfcp.Core, r.Core, r.Up))
	}
	req := &pfcp.SessionEstablishmentRequest{
		PDR: []pfcp.CreatePDR{
			tunnelled(Uplink, pfcp.Access, r.Access, r.IPv6), tunnelled(Downlink, pfcp.Core, r.Core, r.IPv6),
		},
		FAR: []pfcp.CreateFAR{up, towards(Downlink, pfcp.Access, r.Access, r.Down)},
	}
	if c := r.Classifier; c != nil {
		// The same tunnel as the uplink PDR's: the same CHOOSE ID gives both one F-TEID (TS 29.244 §8.2.3).
		share := func(p *pfcp.CreatePDR) { p.PDI.LocalFTEID.HasChooseID, p.PDI.LocalFTEID.ChooseID = true, 1 }
		local := tunnelled(Local, pfcp.Access, r.Access, r.IPv6)
		local.Precedence = 100
		local.PDI.SDF = []pfcp.SDFFilter{{Flow: "permit out ip from " + c.To.String() + " to assigned"}}
		share(&req.PDR[0])
		share(&local)
		in := plain(LocalIn, pfcp.Core, c.Instance, c.UE, true)
		in.FAR = ptr(uint32(Downlink))
		req.PDR = append(req.PDR, local, in)
		req.FAR = append(req.FAR, forward(Local, to(pfcp.Core, c.Instance, nil)))
	}
	buffers(req)
	r.Measure.apply(req)
	return req
}

// Request makes the session of an emulated radio node.
func (r *Radio) Request() *pfcp.SessionEstablishmentRequest {
	req := &pfcp.SessionEstablishmentRequest{
		PDR: []pfcp.CreatePDR{
			plain(Uplink, pfcp.Access, r.Radio, r.UE, false), tunnelled(Downlink, pfcp.Core, r.Access, r.IPv6),
		},
		FAR: []pfcp.CreateFAR{
			forward(Uplink, to(pfcp.Core, r.Access, &r.Up)), forward(Downlink, to(pfcp.Access, r.Radio, nil)),
		},
	}
	m := Measure{QFI: r.QFI}
	m.apply(req)
	return req
}

// Redirect makes a FAR forward into another tunnel. With endMarker the user plane sends an End Marker on the old one
// (SNDEM, TS 29.244 §5.2.3.3).
func Redirect(far uint32, side pfcp.Interface, instance string, peer pfcp.FTEID, endMarker bool) pfcp.UpdateFAR {
	f := to(side, instance, &peer)
	f.SendEndMarker = endMarker
	return pfcp.UpdateFAR{ID: far, Action: ptr(pfcp.ActionForward), Forwarding: f}
}

// Suspend makes a FAR buffer and notify.
func Suspend(far uint32) pfcp.UpdateFAR {
	return pfcp.UpdateFAR{ID: far, Action: ptr(pfcp.ActionBuffer | pfcp.ActionNotify), BAR: ptr(uint8(1))}
}
