// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"net/netip"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

func (c *codec) pdr(p *pfcp.CreatePDR) {
	number(c, &p.ID)
	number(c, &p.Precedence)
	c.optional(&p.OuterHeaderRemoval, &p.FAR)
	c.numbers32(&p.URR)
	c.numbers32(&p.QER)
	i := &p.PDI
	number(c, &i.Source)
	c.text(&i.NetworkInstance)
	c.text(&i.Application)
	c.optional(&i.LocalFTEID, &i.TrafficEndpoint, &i.InterfaceType)
	list(c, &i.UEIP, c.ueip)
	list(c, &i.SDF, c.sdf)
	c.qfis(&i.QFI)
	c.routes(&i.FramedRoutes)
}

func (c *codec) sdf(f *pfcp.SDFFilter) {
	c.text(&f.Flow)
	var bits uint8
	for i, v := range []*bool{&f.HasToS, &f.HasSPI, &f.HasLabel, &f.HasID} {
		if *v {
			bits |= 1 << i
		}
	}
	number(c, &bits)
	f.HasToS, f.HasSPI, f.HasLabel, f.HasID = bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0
	if f.HasToS {
		number(c, &f.ToS)
		number(c, &f.Mask)
	}
	if f.HasSPI {
		number(c, &f.SPI)
	}
	if f.HasLabel {
		number(c, &f.FlowLabel)
	}
	if f.HasID {
		number(c, &f.ID)
	}
}

func (c *codec) ueip(u *pfcp.UEIP) {
	c.addr(&u.IPv4)
	c.prefix(&u.IPv6)
	c.flag(&u.Destination)
}

// fteid: what was to be chosen is chosen by now.
func (c *codec) fteid(f *pfcp.FTEID) {
	c.fixed32(&f.TEID)
	c.addr(&f.IPv4)
	c.addr(&f.IPv6)
	if c.flag(&f.HasChooseID); f.HasChooseID {
		number(c, &f.ChooseID)
	}
}

func (c *codec) endpoint(e *pfcp.CreateTrafficEndpoint) {
	number(c, &e.ID)
	c.text(&e.NetworkInstance)
	some(c, &e.LocalFTEID)
	list(c, &e.UEIP, c.ueip)
	c.routes(&e.FramedRoutes)
	c.qfis(&e.QFI)
}

func (c *codec) qfis(v *[]uint8)          { list(c, v, func(x *uint8) { number(c, x) }) }
func (c *codec) routes(v *[]netip.Prefix) { list(c, v, c.prefix) }

func (s *Session) checkPDR(p *pfcp.CreatePDR) *pfcp.Error {
	id := uint32(p.ID)
	switch {
	case p.FAR == nil: // row P13
		return Lacks(pfcp.RulePDR, id, pfcp.CauseConditionalIEMissing, ieFAR, "a PDR without FAR")
	case s.far(*p.FAR) == nil:
		return Fault(pfcp.RulePDR, id, ieFAR, fmt.Sprintf("FAR %d is not there", *p.FAR))
	case len(p.ActivatePredefined) > 0:
		return Lacks(pfcp.RulePDR, id, pfcp.CauseServiceNotSupported, iePredefined, "there are no predefined rules")
	case !p.Activation.IsZero() || !p.Deactivation.IsZero(): // DPDRA is not announced as a feature
		return Lacks(pfcp.RulePDR, id, pfcp.CauseServiceNotSupported, 0, "deferred activation and deactivation")
	case p.PDI.Source > pfcp.CPSide:
		return Fault(pfcp.RulePDR, id, 20, "no such source interface")
	case p.PDI.TrafficEndpoint != nil && s.endpoint(*p.PDI.TrafficEndpoint) == nil:
		return Fault(pfcp.RulePDR, id, 131, fmt.Sprintf("traffic endpoint %d is not there", *p.PDI.TrafficEndpoint))
	case len(p.QER) > maxQERsOfPDR:
		return Lacks(pfcp.RulePDR, id, pfcp.CauseNoResources, 109,
			fmt.Sprintf("%d QERs, at most %d", len(p.QER), maxQERsOfPDR))
	case len(p.URR) > maxURRsOfPDR:
		return Lacks(pfcp.RulePDR, id, pfcp.CauseNoResources, 81,
			fmt.Sprintf("%d URRs, at most %d", len(p.URR), maxURRsOfPDR))
	}
	for _, q := range p.QER {
		if s.qer(q) == nil {
			return Fault(pfcp.RulePDR, id, 109, fmt.Sprintf("QER %d is not there", q))
		}
	}
	for _, u := range p.URR {
		if s.urr(u) == nil {
			return Fault(pfcp.RulePDR, id, 81, fmt.Sprintf("URR %d is not there", u))
		}
	}
	if repeats(p.QER) {
		return Fault(pfcp.RulePDR, id, 109, "a QER stands twice")
	}
	if repeats(p.URR) {
		return Fault(pfcp.RulePDR, id, 81, "a URR stands twice")
	}
	return nil
}

func (c *Compiler) pdr(p *pfcp.CreatePDR) *pfcp.Error {
	pdi := c.s.pdi(p)
	id := uint32(p.ID)
	// TS 29.244 §5.2.1: first the session is found, then the PDR in it. A rule of flows alone (Open5GS' dedicated
	// QoS flows) is for the session's UE.
	if pdi.LocalFTEID == nil && len(pdi.UEIP) == 0 && len(pdi.FramedRoutes) == 0 &&
		(c.out.v4.IsValid() || c.out.v6.IsValid()) {
		pdi.UEIP = []pfcp.UEIP{{IPv4: c.out.v4, IPv6: c.out.v6}}
	}
	out := api.PDR{Precedence: p.Precedence, ID: p.ID, Source: byte(pdi.Source), FAR: *p.FAR,
		QERs: byte(len(p.QER)), URRs: byte(len(p.URR))}
	copy(out.QER[:], p.QER)
	copy(out.URR[:], p.URR)
	if c.s.Line != nil {
		return c.linePDR(p, &pdi, out)
	}
	instance, err := c.where(p, &pdi)
	if err != nil {
		return err
	}
	var ok bool
	if out.Instance, ok = c.instance(instance); !ok {
		return Lacks(pfcp.RulePDR, id, pfcp.CauseNoResources, ieNetworkInstance,
			"more than 4 network instances in one session")
	}
	if err := c.outer(p, &pdi, instance, &out); err != nil {
		return err
	}
	for _, q := range pdi.QFI {
		if q > 63 {
			return Fault(pfcp.RulePDR, id, 124, "QFI above 63")
		}
		out.Match |= api.PDRQFI
		out.QFIs |= 1 << q
	}
	if !c.Bare {
		if err := c.filters(p, &pdi, &out); err != nil {
			return err
		}
	}
	c.match(&pdi, instance, &out)
	if out.Match&api.PDRUEIP == 0 && pdi.LocalFTEID == nil {
		return Fault(pfcp.RulePDR, id, 2, "neither F-TEID nor UE address: no packet could be found to belong to it")
	}
	return c.tunnels(p, &pdi, instance, out)
}

// where finds a PDR's network instance. If the F-TEID was given, its address's instance counts.
func (c *Compiler) where(p *pfcp.CreatePDR, pdi *pfcp.PDI) (*Instance, *pfcp.Error) {
	if f := pdi.LocalFTEID; f != nil {
		a := f.IPv4
		if !a.IsValid() {
			a = f.IPv6
		}
		i := c.Set.Owner(a)
		if i == nil || f.IPv4.IsValid() && f.IPv6.IsValid() && c.Set.Owner(f.IPv6) != i {
			return nil, Fault(pfcp.RulePDR, uint32(p.ID), IEFTEID, "the F-TEID is at no address of ours")
		}
		return i, nil
	}
	need := needLookup
	if r := p.OuterHeaderRemoval; r != nil && (*r == 2 || *r == 3) { // UDP
		need = needNothing
	}
	if i := c.Set.find(pdi.NetworkInstance, pdi.Source, need); i != nil {
		return i, nil
	}
	return nil, Fault(pfcp.RulePDR, uint32(p.ID), ieNetworkInstance, c.Set.lacks(pdi.NetworkInstance, pdi.Source))
}

// outer is Outer Header Removal (TS 29.244 §8.2.64): 0, 1, 6 GTP-U over IPv4, IPv6, any; 2, 3 UDP.
func (c *Compiler) outer(p *pfcp.CreatePDR, pdi *pfcp.PDI, instance *Instance, out *api.PDR) *pfcp.Error {
	tunnelled := pdi.LocalFTEID != nil
	if p.OuterHeaderRemoval == nil {
		if !tunnelled || c.Set.relay() {
			out.OuterHeaderRemoval = 1 // there is nothing to keep; Open5GS' SGW-C requests it nowhere
		}
		return nil
	}
	out.OuterHeaderRemoval = uint8(api.RemovalOuter)
	if *p.OuterHeaderRemoval&pfcp.RemoveContainer != 0 {
		out.OuterHeaderRemoval = uint8(api.RemovalContainer)
	}
	switch *p.OuterHeaderRemoval &^ pfcp.RemoveContainer {
	case 0, 1, 6:
		return nil
	case 2, 3:
		if tunnelled || instance.UDPPort == 0 {
			return Fault(pfcp.RulePDR, uint32(p.ID), ieOuterRemoval, "no UDP port in network instance "+instance.Name)
		}
		return nil
	}
	return Lacks(pfcp.RulePDR, uint32(p.ID), pfcp.CauseServiceNotSupported, ieOuterRemoval,
		fmt.Sprintf("outer header removal %d", *p.OuterHeaderRemoval))
}

func (c *Compiler) match(pdi *pfcp.PDI, instance *Instance, out *api.PDR) {
	v4, v6, _ := address(pdi.UEIP)
	switch {
	case v4.IsValid() && v6.IsValid():
		out.Match |= api.PDRUEIP
	case v4.IsValid():
		out.Match |= api.PDRUEIP | api.PDRUe4Only
	case v6.IsValid():
		out.Match |= api.PDRUEIP | api.PDRUe6Only
	}
	if len(pdi.FramedRoutes) > 0 {
		out.Match |= api.PDRUEIP | api.PDRFramed
	}
	if pdi.LocalFTEID != nil {
		return
	}
	own := func(p netip.Prefix, framed bool) {
		u := UEAddress{instance.Name, p, framed}
		if !slices.Contains(c.out.UEs, u) {
			c.out.UEs = append(c.out.UEs, u)
			c.out.UEOf = append(c.out.UEOf, out.ID)
		}
	}
	if v4.IsValid() {
		own(netip.PrefixFrom(v4, 32), false)
	}
	if v6.IsValid() {
		own(v6, false)
	}
	for _, r := range pdi.FramedRoutes {
		own(r.Masked(), true)
	}
}

// tunnels adds the PDR. One whose F-TEID has an address of either family stands twice, the second time under an id that
// the CP function does not use: the contract's F-TEID has one address.
func (c *Compiler) tunnels(p *pfcp.CreatePDR, pdi *pfcp.PDI, instance *Instance, out api.PDR) *pfcp.Error {
	f := pdi.LocalFTEID
	if f == nil {
		c.pdrs = append(c.pdrs, out)
		return nil
	}
	first := true
	for _, a := range []netip.Addr{f.IPv4, f.IPv6} {
		if !a.IsValid() {
			continue
		}
		if !first {
			if len(c.s.PDR)+c.twins() >= api.MaxPDR {
				return Lacks(pfcp.RulePDR, uint32(p.ID), pfcp.CauseNoResources, IEFTEID,
					"no room for F-TEIDs of both families")
			}
			out.ID = c.freeID()
		}
		out.Match |= api.PDRFTEID
		out.TEID, out.Local = f.TEID, api.FromAddr(a)
		c.pdrs = append(c.pdrs, out)
		if t := (Tunnel{a, f.TEID}); !slices.Contains(c.out.Local, t) {
			c.out.Local = append(c.out.Local, t)
			c.out.LocalOf = append(c.out.LocalOf, p.ID)
		}
		first = false
	}
	return nil
}

// twins counts the PDRs that stand for another of the CP function's.
func (c *Compiler) twins() int {
	n := 0
	for i := range c.pdrs {
		if c.s.pdr(c.pdrs[i].ID) == nil {
			n++
		}
	}
	return n
}

func (c *Compiler) freeID() uint16 {
	for id := uint16(0xffff); ; id-- {
		if c.s.pdr(id) == nil && !slices.ContainsFunc(c.pdrs, func(p api.PDR) bool { return p.ID == id }) {
			return id
		}
	}
}

// RealPDR is the CP function's PDR that a rule of the data plane stands for.
func (s *Session) RealPDR(set *Settings, pfds PFDs, id uint16) uint16 {
	if s.pdr(id) != nil {
		return id
	}
	c := &Compiler{Context: Context{Set: set, PFDs: pfds}, s: s}
	if each(s.PDR, c.pdr) != nil {
		return id
	}
	for i := range c.pdrs {
		if c.pdrs[i].ID == id && i > 0 {
			return c.pdrs[i-1].ID // twins follow each other
		}
	}
	return id
}
