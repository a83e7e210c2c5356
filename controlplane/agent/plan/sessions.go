// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"reflect"
	"slices"

	"isthmus/controlplane/config"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

// sessionSettings is the configuration as the session layer needs it.
func sessionSettings(c *config.Config) *rules.Settings {
	set := &rules.Settings{PFCP: c.PFCP, Node: pfcp.ParseNodeID(c.PFCP.Node()), Workers: int(c.Engine.Workers)}
	if set.Limits.Sessions == 0 {
		set.Limits.Sessions = max(c.Engine.Limits.Sessions-uint32(len(c.Subscribers)), 1)
	}
	for _, in := range c.Instances {
		made := rules.Instance{Name: string(in.Name), Names: in.Names, Lookup: intent.Lookups[in.Lookup],
			UDPPort: in.UDPPort, DSCP: in.DSCP,
			QFIDSCP: intent.QFIDSCP(in.QFIDSCP), Shaping: shapingOf(c, &in.Shaping)}
		for _, e := range in.Endpoints {
			made.Endpoints = append(made.Endpoints, e.Addr)
		}
		for _, p := range in.Pools {
			made.Pools = append(made.Pools, p.Prefix)
		}
		for _, s := range in.Sources {
			made.Sources = append(made.Sources, pfcp.Interface(slices.Index(rules.Sides, s)))
		}
		set.Instances = append(set.Instances, made)
	}
	set.Lines = lineShaping(c)
	return set
}

// lineShaping are the schedulers of ports where subscribers sign in, beside those of the file.
func lineShaping(c *config.Config) map[string]*rules.Shaping {
	by := map[string]*rules.Shaping{}
	for i := range c.Access.Ports {
		port := c.Access.Ports[i].Port
		if h := shapingOf(c, &config.Shaping{Port: port}); h != nil {
			by[string(port)] = h
		}
	}
	for i := range c.Subscribers {
		s := &c.Subscribers[i]
		if h := by[string(s.From.Port)]; h != nil {
			h.Taken = append(h.Taken, rules.PipeAt(int(s.Subport), s.Pipe))
		}
	}
	return by
}

func shapingOf(c *config.Config, h *config.Shaping) *rules.Shaping {
	at := slices.IndexFunc(c.Schedulers, func(s config.Scheduler) bool { return s.Port == h.Port })
	if h.Port == "" || at < 0 {
		return nil
	}
	s := &c.Schedulers[at]
	made := &rules.Shaping{Port: string(h.Port), Profile: string(cmp.Or(h.Profile, s.Profiles[0].Name))}
	for i := range s.Profiles {
		made.Profiles = append(made.Profiles, string(s.Profiles[i].Name))
	}
	for _, g := range s.Groups {
		made.Subports = append(made.Subports, rules.ShapingSubport{Worker: uint16(g.Worker), Pipes: g.Pipes})
	}
	return made
}

// Server is the configuration as the PFCP server needs it.
func (p *Plan) Server() n4.Config {
	c := p.PFCP
	gateway := c.Is("upf") || c.Is("sgwu") || c.Is("pgwu") || len(c.Roles) == 0
	pools := []pfcp.UEPool{}
	for _, in := range p.Settings.Instances {
		for _, u := range in.Pools {
			pools = append(pools, pfcp.UEPool{NetworkInstance: in.Name, Pool: u.String()})
		}
	}
	cfg := n4.ConfigOf(c)
	cfg.UEPools = pools
	cfg.Features = n4.Features(n4.Capabilities{
		UserPlane: gateway, PDN: c.Is("upf") || c.Is("pgwu") || len(c.Roles) == 0,
		ChooseFTEID: c.FTEID != rules.FTEIDCp, Pools: len(pools) > 0, Applications: c.Limits.Applications > 0,
	})
	return cfg
}

// restartsPFCP: the change needs a new PFCP server. Limits, F-TEID allocation, takeover and instances change while it
// runs.
func restartsPFCP(was, is *Plan) bool {
	on := func(p *Plan) bool { return p.PFCP != nil && p.PFCP.Enabled() }
	if !on(was) || !on(is) {
		return on(was) != on(is)
	}
	return was.PFCP.Store != is.PFCP.Store || !reflect.DeepEqual(was.Server(), is.Server())
}
