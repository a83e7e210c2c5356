// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

// accessList is a list as filters of the permitting rule, by direction. The first matching filter decides; another rule
// drops the rest.
type accessList struct{ up, down []api.SDF }

// nothing passes: a list that is not there.
var nothing = &accessList{[]api.SDF{everything(api.SDFDeny)}, []api.SDF{everything(api.SDFDeny)}}

func everything(flags uint8) api.SDF {
	return api.SDF{Flags: flags, RemotePort: [2]uint16{0, 65535}, LocalPort: [2]uint16{0, 65535}}
}

func accessListOf(from *config.AccessList) *accessList {
	l := &accessList{}
	add := func(f api.SDF) { // Remote is the destination of packets from the subscriber
		l.up = append(l.up, f)
		f.Remote, f.Local, f.RemotePort, f.LocalPort = f.Local, f.Remote, f.LocalPort, f.RemotePort
		l.down = append(l.down, f)
	}
	deny := map[string]uint8{"deny": api.SDFDeny}
	for i := range from.Rules {
		r := &from.Rules[i]
		f := api.SDF{Flags: deny[r.Action], Remote: api.FromPrefix(r.Destination.Prefix),
			Local: api.FromPrefix(r.Source.Prefix), RemotePort: r.DestinationPort.Ports(),
			LocalPort: r.SourcePort.Ports()}
		if !r.Protocol.Any() {
			f.Flags, f.Protocol = f.Flags|api.SDFProtocol, r.Protocol.Number
		}
		add(f)
	}
	add(everything(deny[from.Default]))
	return l
}

// list finds an access list by name: of the configuration, or of a former one in use by a subscriber on line.
func (l *Loop) list(name string) *accessList {
	for _, in := range []map[string]*accessList{l.set.lists, l.retired} {
		if found := in[name]; found != nil {
			return found
		}
	}
	return nothing
}

// retire keeps lists that the configuration has no more while subscribers on line use them.
func (l *Loop) retire(set *Settings) {
	kept := map[string]*accessList{}
	for s := range l.by.all {
		for _, name := range []string{s.plan.ACLUp, s.plan.ACLDown} {
			if name != "" && set.lists[name] == nil {
				kept[name] = l.list(name)
			}
		}
	}
	l.retired = kept
}

// filter lays the plan's access lists over the rules: denied packets are dropped by rules of their own, which are
// counted but not accounted.
func (s object) filter(o *rules.Session) {
	deny := func(passes, id uint16, filters []api.SDF) {
		if o.LineFilters == nil {
			o.LineFilters = map[uint16][]api.SDF{}
		}
		o.LineFilters[passes] = filters
		p, f := o.PDR[passes-1], o.FAR[passes-1]
		p.ID, p.Precedence, p.FAR, p.QER, p.URR = id, denied, &f.ID, nil, nil
		way := *f.Forwarding // a wireline FAR has its direction, also when it drops
		way.Redirect = nil
		f.ID, f.Action, f.Forwarding = uint32(id), pfcp.ActionDrop, &way
		o.PDR, o.FAR = append(o.PDR, p), append(o.FAR, f)
	}
	if name := s.plan.ACLUp; name != "" {
		deny(uplinkRule, uplinkDeny, s.loop.list(name).up)
	}
	if name := s.plan.ACLDown; name != "" {
		deny(downlinkRule, downlinkDeny, s.loop.list(name).down)
	}
}
