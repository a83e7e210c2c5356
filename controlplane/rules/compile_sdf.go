// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/sdf"
)

// PFDs are the filters of each application from PFD management; nil: the application has PFDs, but no filter can
// express them.
type PFDs map[string][]api.SDF

// nothing matches no packet.
var nothing = api.SDF{RemotePort: [2]uint16{0, 65535}, LocalPort: [2]uint16{0, 65535}, Flags: api.SDFDeny}

// filters makes a PDR's alternatives: its SDF filters, or those of its application.
func (c *Compiler) filters(p *pfcp.CreatePDR, pdi *pfcp.PDI, out *api.PDR) *pfcp.Error {
	id := uint32(p.ID)
	if len(pdi.SDF) == 0 && pdi.Application == "" {
		return nil
	}
	out.Match |= api.PDRSDF
	out.SDFFirst = uint16(len(c.sdfs))
	defer func() {
		if out.Match&api.PDRSDF != 0 && uint16(len(c.sdfs)) == out.SDFFirst {
			c.sdfs = append(c.sdfs, nothing) // an application whose PFDs were taken away
		}
		out.SDFCount = uint16(len(c.sdfs)) - out.SDFFirst
	}()
	for i := range pdi.SDF {
		list, err := c.filter(&pdi.SDF[i])
		if err != nil && !c.Lenient { // row P22: the refusal names the rule
			return Fault(pfcp.RulePDR, id, ieSDF, err.Error())
		}
		if len(c.sdfs)+len(list) > c.Set.maxFilters() && !c.Lenient {
			return Lacks(pfcp.RulePDR, id, pfcp.CauseNoResources, ieSDF,
				fmt.Sprintf("more than %d filters in one session", c.Set.maxFilters()))
		}
		c.sdfs = append(c.sdfs, list...)
	}
	if pdi.Application != "" {
		list, known := c.PFDs[pdi.Application]
		if !known && !c.Lenient {
			return Fault(pfcp.RulePDR, id, ieApplication, fmt.Sprintf("no PFDs of application %.40q", pdi.Application))
		}
		if room := c.Set.maxFilters() - len(c.sdfs); len(list) > room && c.Lenient {
			list = list[:max(room, 0)]
		} else if len(list) > room {
			return Lacks(pfcp.RulePDR, id, pfcp.CauseNoResources, ieApplication,
				fmt.Sprintf("more than %d filters in one session", c.Set.maxFilters()))
		}
		c.sdfs = append(c.sdfs, list...)
	}
	return nil
}

// filter expands one SDF Filter (TS 29.244 §8.2.5). A filter of an id alone refers to a bidirectional one of this
// session.
func (c *Compiler) filter(f *pfcp.SDFFilter) ([]api.SDF, error) {
	if f.HasID && f.Flow == "" && !f.HasToS && !f.HasSPI && !f.HasLabel {
		whole := c.bidirectional(f.ID)
		if whole == nil {
			return nil, fmt.Errorf("SDF filter %d is defined nowhere in the session", f.ID)
		}
		f = whole
	}
	return sdf.Compile(f)
}

// bidirectional finds what an SDF filter id stands for.
func (c *Compiler) bidirectional(id uint32) *pfcp.SDFFilter {
	for i := range c.s.PDR {
		list := c.s.PDR[i].PDI.SDF
		for k := range list {
			f := &list[k]
			if f.HasID && f.ID == id && (f.Flow != "" || f.HasToS || f.HasSPI || f.HasLabel) {
				return f
			}
		}
	}
	return nil
}

// ExpandPFDs makes filters of an application's PFDs (TS 29.244 §8.2.39). Only flow descriptions describe a packet:
// names and URLs would need the inside of the UE's TLS, which this data plane does not read.
func ExpandPFDs(list []pfcp.PFD) ([]api.SDF, *pfcp.Error) {
	var all []api.SDF
	for _, f := range list {
		if f.URL != "" || f.Domain != "" || f.Custom != "" || f.Flow == "" {
			return nil, Refuse(pfcp.CauseServiceNotSupported, 61, "PFDs with URLs, domain names or custom contents")
		}
		filters, err := sdf.Flow(f.Flow)
		if err != nil {
			return nil, Refuse(pfcp.CauseMandatoryIEIncorrect, 61, err.Error())
		}
		if all = append(all, filters...); len(all) > api.MaxSDF {
			return nil, Refuse(pfcp.CauseNoResources, 61, fmt.Sprintf("more than %d filters in one application",
				api.MaxSDF))
		}
	}
	return all, nil
}

// FiltersOf checks that the filters of a session exist with these PFDs.
func (set *Settings) FiltersOf(with PFDs, s *Session) *pfcp.Error {
	c := &Compiler{Context: Context{Set: set, PFDs: with}, s: s}
	for i := range s.PDR {
		pdi := s.pdi(&s.PDR[i])
		if err := c.filters(&s.PDR[i], &pdi, &api.PDR{}); err != nil {
			return err
		}
	}
	return nil
}
