// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
)

// Settings are the configuration as the loop needs it. Never changed once in use.
type Settings struct {
	ports    map[string][]*config.AccessPort
	profiles map[string]*config.AccessProfile
	lists    map[string]*accessList
	pipes    map[string][]config.Profile // of the schedulers, by port
	profile  string                      // the default one
	Replace  bool                        // a user or line with too many sessions loses the oldest
	Limits   config.AccessLimits
}

// SettingsOf makes settings of a configuration that was checked.
func SettingsOf(c *config.Config) *Settings {
	a := &c.Access
	s := &Settings{ports: map[string][]*config.AccessPort{}, profiles: map[string]*config.AccessProfile{},
		lists: map[string]*accessList{}, pipes: map[string][]config.Profile{},
		profile: string(a.Profile), Replace: a.Duplicates == "replace",
		Limits: a.Limits}
	for i := range a.Ports {
		p := &a.Ports[i]
		s.ports[string(p.Port)] = append(s.ports[string(p.Port)], p)
	}
	for i := range a.Profiles {
		s.profiles[string(a.Profiles[i].Name)] = &a.Profiles[i]
	}
	for i := range a.Lists {
		s.lists[string(a.Lists[i].Name)] = accessListOf(&a.Lists[i])
	}
	for i := range c.Schedulers {
		s.pipes[string(c.Schedulers[i].Port)] = c.Schedulers[i].Profiles
	}
	if s.profile == "" && len(a.Profiles) > 0 {
		s.profile = string(a.Profiles[0].Name)
	}
	return s
}

// Port is the first entry that a line fits, nil without one.
func (s *Settings) Port(l *access.Line) *config.AccessPort {
	for _, p := range s.ports[l.Port] {
		if p.STags.Has(l.STag) && p.CTags.Has(l.CTag) {
			return p
		}
	}
	return nil
}

// plan lays authentication's answer over its named profile, or the line's. kept are access lists in use that the
// configuration has no more. Missing tuning values are left out.
func (s *Settings) plan(l *access.Line, said *access.Plan, kept ...string) (access.Plan, []access.Left, error) {
	name := said.Profile
	if name == "" {
		name = s.profile
		if p := s.Port(l); p != nil && p.Profile != "" {
			name = string(p.Profile)
		}
	}
	p := s.profiles[name]
	if p == nil {
		return access.Plan{}, nil, fmt.Errorf("there is no profile %q", name)
	}
	if said.Path != "" {
		return access.Plan{}, nil, errGTPU
	}
	plan := *said
	plan.Profile, plan.Without, plan.MSS = name, 0, uint16(p.MSS)
	text := func(to *string, profile config.Name) {
		if *to == "" {
			*to = string(profile)
		}
	}
	if plan.MTU == 0 {
		plan.MTU = p.MRU
	}
	var left []access.Left
	plan.Scheduler, left = s.scheduler(l, said.Scheduler, string(p.Scheduler))
	text(&plan.ACLUp, p.UplinkList)
	text(&plan.ACLDown, p.DownlinkList)
	for _, name := range []string{plan.ACLUp, plan.ACLDown} {
		if name != "" && s.lists[name] == nil && !slices.Contains(kept, name) {
			return access.Plan{}, nil, fmt.Errorf("there is no access list %q", name)
		}
	}
	text(&plan.Instance, p.Instance)
	text(&plan.Pool4, p.PoolIPv4)
	text(&plan.Pool6, p.PoolIPv6)
	text(&plan.PoolPD, p.PoolPD)
	without := func(one access.Setting) bool { return said.Without&one != 0 }
	if p.Captive && !without(access.RedirectSetting) {
		text(&plan.Redirect, config.Name(p.Redirect))
	}
	if len(plan.Portal) == 0 {
		for _, to := range p.Portal {
			plan.Portal = append(plan.Portal, to.String())
		}
	}
	period := func(to *time.Duration, profile time.Duration, one access.Setting) {
		if *to == 0 && !without(one) {
			*to = profile
		}
	}
	period(&plan.SessionTimeout, p.SessionTimeout, access.SessionTimeoutSetting)
	period(&plan.IdleTimeout, p.IdleTimeout, access.IdleTimeoutSetting)
	period(&plan.Interim, p.Interim, access.InterimSetting)
	if plan.Quota == 0 && !without(access.QuotaSetting) {
		plan.Quota = p.Quota
	}
	if plan.Max == 0 {
		plan.Max = p.Max
	}
	if len(plan.Routes) == 0 {
		plan.Routes = config.Prefixes(p.FramedRoutes)
	}
	if len(plan.DNS) == 0 {
		plan.DNS = config.Addresses(p.DNS)
	}
	return plan, left, nil
}

// scheduler is the first of names that the port's scheduler has a profile of; left are those before it that it has not.
func (s *Settings) scheduler(l *access.Line, names ...string) (found string, left []access.Left) {
	for _, name := range names {
		is := func(p config.Profile) bool { return string(p.Name) == name }
		switch {
		case name == "":
		case slices.ContainsFunc(s.pipes[l.Port], is):
			return name, left
		default:
			left = append(left, access.Left{What: "scheduler",
				Why: fmt.Sprintf("port %q has no scheduler with a profile %q", l.Port, name)})
		}
	}
	return "", left
}

var errGTPU = errors.New("a GTP-U path is not served: tunnels of who signs in come with N1/N2")
