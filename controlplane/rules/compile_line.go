// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

// What a wireline subscriber's rules say: its packets are found by the traffic endpoint, and by the F-TEID, or by its
// addresses in a network instance where the core side is IP (a BNG). They go out by a path of the configuration, by the
// instance, or by the endpoint (TS 23.316 §4.10: one session with a rule for each side).

// linePDR is a PDR of a subscriber. What comes from the core without an F-TEID is found by the UE's addresses in the
// PDR's network instance, and its framed routes with it: a delegated prefix is one.
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
