// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

// line is the stored form of a subscriber's traffic endpoint.
func (c *codec) line(l *api.Session) {
	number(c, &l.Encap)
	number(c, &l.OuterTPID)
	number(c, &l.STag)
	number(c, &l.CTag)
	number(c, &l.PPPoESession)
	for i := range l.MAC {
		number(c, &l.MAC[i])
	}
	number(c, &l.MRU)
	number(c, &l.LCPMagic)
	number(c, &l.LCPInterval)
	number(c, &l.LCPCount)
	number(c, &l.LCPOpened)
	number(c, &l.MSS)
	number(c, &l.Subport)
	number(c, &l.Pipe)
	for _, name := range [][]byte{l.Port[:], l.PipeProfile[:], l.Mirror[:], l.Counter[:]} {
		text := api.CString(name)
		c.text(&text)
		if c.reading && api.PutCString(name, text) != nil {
			c.fail()
		}
	}
}

// filters are those of a line's PDRs, in the order of ids.
func (c *codec) filters(by *map[uint16][]api.SDF) {
	type of struct {
		id   uint16
		list []api.SDF
	}
	var all []of
	for _, id := range slices.Sorted(maps.Keys(*by)) {
		all = append(all, of{id, (*by)[id]})
	}
	list(c, &all, func(o *of) {
		number(c, &o.id)
		list(c, &o.list, func(f *api.SDF) { row(c, f) })
	})
	if c.reading && len(all) > 0 && !c.failed {
		*by = map[uint16][]api.SDF{}
		for _, o := range all {
			(*by)[o.id] = o.list
		}
	}
}

// row is a struct of the contract, as a part: fields that it gets later are zero when it is read.
func row[T any, P api.Row[T]](c *codec, v *T) {
	if !c.reading {
		b := api.AppendRow[T, P](nil, v)
		c.bytes(&b)
	} else if rest, err := api.ReadRow[T, P](c.take(), v); err != nil || len(rest) != 0 {
		c.fail()
	}
}

// Rules of a wireline subscriber: its packets are found by the traffic endpoint, and by the F-TEID. Where the core side
// is IP (a BNG) the addresses in a network instance replace the F-TEID. They leave by a configured path, by the
// instance, or by the endpoint (TS 23.316 §4.10: one session with a rule for each side).

// linePDR compiles a PDR of a subscriber. Without an F-TEID, packets from the core are found by the UE's addresses in
// the PDR's network instance, with its framed routes, such as a delegated prefix.
func (c *Compiler) linePDR(p *pfcp.CreatePDR, pdi *pfcp.PDI, out api.PDR) *pfcp.Error {
	out.Instance, out.OuterHeaderRemoval, out.Match = noIndex, uint8(api.RemovalOuter), api.PDREndpoint|api.PDRUEIP
	if f := pdi.LocalFTEID; f != nil {
		out.Match, out.TEID, out.Local = api.PDRFTEID|api.PDRUEIP, f.TEID, api.FromAddr(f.IPv4)
		if f.IPv6.IsValid() {
			out.Local = api.FromAddr(f.IPv6)
		}
	}
	if list := c.s.LineFilters[out.ID]; list != nil {
		out.Match |= api.PDRSDF
		out.SDFFirst, out.SDFCount = uint16(len(c.sdfs)), uint16(len(list))
		c.sdfs = append(c.sdfs, list...)
	}
	if name := pdi.NetworkInstance; name != "" {
		instance, err := c.lineInstance(name)
		if err != nil {
			return Fault(pfcp.RulePDR, uint32(p.ID), ieNetworkInstance, err.Text)
		}
		if pdi.Source == pfcp.Core {
			out.Match &^= api.PDREndpoint
			out.Instance, _ = c.instance(instance)
		}
		c.match(pdi, instance, &out)
	}
	c.pdrs = append(c.pdrs, out)
	return nil
}

func (c *Compiler) lineFAR(f *FAR, w *pfcp.Forwarding, out *api.FAR) *pfcp.Error {
	out.Destination, out.Outer = byte(*w.Destination), api.OuterEndpoint
	set(&out.DSCP, w.TransportMarking)
	if f.Path != "" {
		out.Outer, out.TEID, out.PDUType = api.OuterGTPU, w.OuterHeader.TEID, api.PDUTypeUL
		copy(out.Path[:api.NameSize-1], f.Path)
	}
	if w.NetworkInstance == nil {
		return nil
	}
	instance, err := c.lineInstance(*w.NetworkInstance)
	if err != nil {
		return Fault(pfcp.RuleFAR, f.ID, ieNetworkInstance, err.Text)
	}
	out.Outer = api.OuterNone
	out.Instance, _ = c.instance(instance)
	return nil
}

// lineInstance is where a subscriber's core side is IP.
func (c *Compiler) lineInstance(name string) (*Instance, *pfcp.Error) {
	i := c.Set.byName(name)
	if i == nil || !i.can(needLookup) {
		return nil, Refuse(pfcp.CauseRuleFailure, ieNetworkInstance,
			fmt.Sprintf("no network instance %q in which subscribers are looked up", name))
	}
	if _, ok := c.instance(i); !ok {
		return nil, Refuse(pfcp.CauseNoResources, ieNetworkInstance, "more than 4 network instances")
	}
	return i, nil
}
