// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"net/netip"

	"isthmus/controlplane/pfcp"
)

// The layout of an encoded session. A field that is added here raises encodingVersion, and is there from that version
// on.

func (c *codec) session(s *Session) {
	c.fixed64(&s.SEID)
	c.fixed64(&s.CP.SEID)
	c.addr(&s.CP.IPv4)
	c.addr(&s.CP.IPv6)
	c.text(&s.Owner)
	number(c, &s.Worker)
	number(c, &s.Inactivity)
	if c.version >= 2 {
		number(c, &s.Discards)
		c.fixed32(&s.Association)
	}
	c.text(&s.UserID)
	c.text(&s.APN)
	c.text(&s.SNSSAI)
	list(c, &s.FQCSID, c.bytes)
	if c.version >= 4 {
		c.flag(&s.Moved)
	}
	list(c, &s.PDR, c.pdr)
	list(c, &s.FAR, c.far)
	list(c, &s.QER, c.qer)
	list(c, &s.URR, c.urr)
	list(c, &s.BAR, c.bar)
	list(c, &s.Endpoint, c.endpoint)
}

func (c *codec) pdr(p *pfcp.CreatePDR) {
	number(c, &p.ID)
	number(c, &p.Precedence)
	bits := c.presence(p.OuterHeaderRemoval != nil, p.FAR != nil)
	opt(&bits, &p.OuterHeaderRemoval)
	opt(&bits, &p.FAR)
	c.numbers32(&p.URR)
	c.numbers32(&p.QER)
	i := &p.PDI
	number(c, &i.Source)
	c.text(&i.NetworkInstance)
	c.text(&i.Application)
	bits = c.presence(i.LocalFTEID != nil, i.TrafficEndpoint != nil, i.InterfaceType != nil)
	if has(&bits, &i.LocalFTEID) {
		c.fteid(i.LocalFTEID)
	}
	opt(&bits, &i.TrafficEndpoint)
	opt(&bits, &i.InterfaceType)
	list(c, &i.UEIP, c.ueip)
	list(c, &i.SDF, c.sdf)
	c.qfis(&i.QFI)
	c.routes(&i.FramedRoutes)
}

func (c *codec) qfis(v *[]uint8)          { list(c, v, func(x *uint8) { number(c, x) }) }
func (c *codec) routes(v *[]netip.Prefix) { list(c, v, c.prefix) }

// fteid: what was to be chosen is chosen by now.
func (c *codec) fteid(f *pfcp.FTEID) {
	c.fixed32(&f.TEID)
	c.addr(&f.IPv4)
	c.addr(&f.IPv6)
	if c.version < 3 {
		return
	}
	if c.flag(&f.HasChooseID); f.HasChooseID {
		number(c, &f.ChooseID)
	}
}

func (c *codec) ueip(u *pfcp.UEIP) {
	c.addr(&u.IPv4)
	c.prefix(&u.IPv6)
	c.flag(&u.Destination)
}

func (c *codec) sdf(f *pfcp.SDFFilter) {
	c.text(&f.Flow)
	bits := c.presence(f.HasToS, f.HasSPI, f.HasLabel, f.HasID).bits
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

func (c *codec) far(f *FAR) {
	number(c, &f.ID)
	number(c, &f.Action)
	number(c, &f.Marker)
	bits := c.presence(f.Forwarding != nil, f.Duplicating != nil, f.BAR != nil)
	if has(&bits, &f.Forwarding) {
		c.forwarding(f.Forwarding)
	}
	if has(&bits, &f.Duplicating) {
		d := f.Duplicating
		number(c, &d.Destination)
		some(c, &d.OuterHeader, c.outer)
		someNumber(c, &d.TransportMarking)
	}
	opt(&bits, &f.BAR)
}

func (c *codec) forwarding(w *pfcp.Forwarding) {
	c.text(&w.Policy)
	bits := c.presence(w.Destination != nil, w.NetworkInstance != nil, w.OuterHeader != nil, w.TransportMarking != nil,
		w.Redirect != nil, w.LinkedEndpoint != nil)
	opt(&bits, &w.Destination)
	if has(&bits, &w.NetworkInstance) {
		c.text(w.NetworkInstance)
	}
	if has(&bits, &w.OuterHeader) {
		c.outer(w.OuterHeader)
	}
	opt(&bits, &w.TransportMarking)
	if has(&bits, &w.Redirect) {
		number(c, &w.Redirect.Type)
		c.text(&w.Redirect.Address)
		c.text(&w.Redirect.Other)
	}
	opt(&bits, &w.LinkedEndpoint)
}

func (c *codec) outer(o *pfcp.OuterHeader) {
	number(c, &o.Description)
	c.fixed32(&o.TEID)
	c.addr(&o.IPv4)
	c.addr(&o.IPv6)
	number(c, &o.Port)
}

func (c *codec) qer(q *QER) {
	number(c, &q.ID)
	number(c, &q.Share)
	bits := c.presence(q.Correlation != nil, q.GateUplink != nil, q.GateDownlink != nil, q.MBRUplink != nil, q.MBRDownlink != nil,
		q.GBRUplink != nil, q.GBRDownlink != nil, q.QFI != nil, q.AveragingWindow != nil, q.RQI != nil)
	opt(&bits, &q.Correlation)
	opt(&bits, &q.GateUplink)
	opt(&bits, &q.GateDownlink)
	opt(&bits, &q.MBRUplink)
	opt(&bits, &q.MBRDownlink)
	opt(&bits, &q.GBRUplink)
	opt(&bits, &q.GBRDownlink)
	opt(&bits, &q.QFI)
	opt(&bits, &q.AveragingWindow)
	if has(&bits, &q.RQI) {
		c.flag(q.RQI)
	}
}

func (c *codec) volumes(v *pfcp.Volumes) {
	bits := c.presence(v.Total != nil, v.Uplink != nil, v.Downlink != nil)
	opt(&bits, &v.Total)
	opt(&bits, &v.Uplink)
	opt(&bits, &v.Downlink)
}

func (c *codec) urr(u *URR) {
	number(c, &u.ID)
	number(c, &u.Query)
	number(c, &u.Grant)
	c.numbers32(&u.Linked)
	bits := c.presence(u.Method != nil, u.Triggers != nil, u.Period != nil, u.VolumeThreshold != nil, u.VolumeQuota != nil,
		u.TimeThreshold != nil, u.TimeQuota != nil, u.EventThreshold != nil, u.EventQuota != nil, u.HoldingTime != nil,
		u.ValidityTime != nil, u.InactivityTime != nil, u.MonitoringTime != nil, u.SubsequentVolumeThreshold != nil,
		u.SubsequentTimeThreshold != nil, u.Information != nil, u.QuotaFAR != nil, u.DroppedPackets != nil, u.DroppedBytes != nil)
	opt(&bits, &u.Method)
	opt(&bits, &u.Triggers)
	optDuration(&bits, &u.Period)
	if has(&bits, &u.VolumeThreshold) {
		c.volumes(u.VolumeThreshold)
	}
	if has(&bits, &u.VolumeQuota) {
		c.volumes(u.VolumeQuota)
	}
	optDuration(&bits, &u.TimeThreshold)
	optDuration(&bits, &u.TimeQuota)
	opt(&bits, &u.EventThreshold)
	opt(&bits, &u.EventQuota)
	optDuration(&bits, &u.HoldingTime)
	optDuration(&bits, &u.ValidityTime)
	optDuration(&bits, &u.InactivityTime)
	if has(&bits, &u.MonitoringTime) {
		c.time(u.MonitoringTime)
	}
	if has(&bits, &u.SubsequentVolumeThreshold) {
		c.volumes(u.SubsequentVolumeThreshold)
	}
	optDuration(&bits, &u.SubsequentTimeThreshold)
	opt(&bits, &u.Information)
	opt(&bits, &u.QuotaFAR)
	opt(&bits, &u.DroppedPackets)
	opt(&bits, &u.DroppedBytes)
}

func (c *codec) bar(b *pfcp.CreateBAR) {
	number(c, &b.ID)
	bits := c.presence(b.NotifyDelay != nil, b.SuggestedPackets != nil, b.Duration != nil, b.BufferPackets != nil)
	optDuration(&bits, &b.NotifyDelay)
	opt(&bits, &b.SuggestedPackets)
	optDuration(&bits, &b.Duration)
	opt(&bits, &b.BufferPackets)
}

func (c *codec) endpoint(e *pfcp.CreateTrafficEndpoint) {
	number(c, &e.ID)
	c.text(&e.NetworkInstance)
	some(c, &e.LocalFTEID, c.fteid)
	list(c, &e.UEIP, c.ueip)
	c.routes(&e.FramedRoutes)
	c.qfis(&e.QFI)
}
