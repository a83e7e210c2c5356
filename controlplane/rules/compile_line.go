// SPDX-License-Identifier: Apache-2.0

package rules

import (
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

// What a wireline subscriber's rules say in place of a network instance: its packets are found by the traffic endpoint,
// or by the F-TEID, and go out by a path of the configuration, or by the endpoint (TS 23.316 §4.10: one session with a
// rule for each side).

func (c *Compiler) linePDR(pdi *pfcp.PDI, out api.PDR) {
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
	c.pdrs = append(c.pdrs, out)
}

func lineFAR(f *FAR, w *pfcp.Forwarding, out *api.FAR) {
	out.Destination, out.Outer = byte(*w.Destination), api.OuterEndpoint
	set(&out.DSCP, w.TransportMarking)
	if f.Path != "" {
		out.Outer, out.TEID, out.PDUType = api.OuterGTPU, w.OuterHeader.TEID, api.PDUTypeUL
		copy(out.Path[:api.NameSize-1], f.Path)
	}
}
