// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"slices"
	"strings"

	"isthmus/api"
)

// notDynamic refuses names that could be those of objects which PFCP sessions make.
func (k *checker) notDynamic(at At, name Name) {
	if strings.HasPrefix(string(name), DynamicPrefix) {
		k.fail(at, "name", "%q: names beginning with %q belong to sessions over PFCP", name, DynamicPrefix)
	}
}

const maxGuarded = 64 // hosts that UEs may not send to, as the data plane has it

// owners remembers who has what only one may have.
type owners[T comparable] map[T]*Instance

func take[T comparable](k *checker, o owners[T], in *Instance, key string, what T) {
	if first, taken := o[what]; taken {
		k.fail(in.At, key, "%v is already of instance %q, line %d", what, first.Name, first.Line(key))
		return
	}
	o[what] = in
}

func checkInstances(k *checker) {
	interfaces, endpoints, sources := owners[Name]{}, owners[netip.Addr]{}, owners[string]{}
	furtherNames(k)
	for i := range k.Instances {
		in := &k.Instances[i]
		for _, name := range in.Interfaces {
			f := refer(k, in.At, "interfaces", "interface", name, k.interfaces)
			if f == nil {
				continue
			}
			take(k, interfaces, in, "interfaces", name)
			if f.VRF != k.vrfOf(in) {
				k.fail(in.At, "interfaces", "interface %q is in %s, the first one in %s: one VRF each",
					name, vrfText(f.VRF), vrfText(k.vrfOf(in)))
			}
			if p := k.ports[f.Port]; p != nil && p.Role != "core" {
				k.fail(in.At, "interfaces", "interface %q is on an access port, where wireline subscribers are", name)
			}
		}
		for _, e := range in.Endpoints {
			take(k, endpoints, in, "endpoints", e.Addr)
			in.endpoint(k, e.Addr)
		}
		for _, s := range in.Sources {
			take(k, sources, in, "sources", s)
		}
		in.Shaping.check(k)
		in.NAT.check(k, in)
		in.nptv6(k)
		in.announce(k)
		in.ends(k)
		each(k, in.AccessList.Rules, (*Rule).check)
		if in.AccessList.PerSubscriber {
			k.fail(in.AccessList.At, "per_subscriber",
				"sessions of an instance come over PFCP; a rule names the pool instead")
		}
		if n := api.NameSize - 1 - len(api.ACLOfInstance); !in.AccessList.Empty() && len(in.Name) > n {
			k.fail(in.At, "name", "an instance with an access list has a name of at most %d characters", n)
		}
		if in.UDPPort == 2152 {
			k.fail(in.At, "udp_port", "2152 is GTP-U's (TS 29.281 clause 4.4.2)")
		}
	}
	instancePools(k)
}

// furtherNames are Network Instances (TS 29.244 clause 8.2.4) of one instance each.
func furtherNames(k *checker) {
	taken := owners[string]{}
	for i := range k.Instances {
		taken[string(k.Instances[i].Name)] = &k.Instances[i]
	}
	for i := range k.Instances {
		in := &k.Instances[i]
		for _, name := range in.Names {
			if name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
				k.fail(in.At, "names", "%q is no Network Instance", clip(name))
				continue
			}
			take(k, taken, in, "names", name)
		}
	}
}

func (in *Instance) ends(k *checker) {
	if n := len(k.Ends(in)); n > api.InstancePools {
		k.fail(in.At, "ue_to_ue", "out, and %d pools, those of the section pools among them: at most %d", n,
			api.InstancePools)
	}
}

func (in *Instance) announce(k *checker) {
	if in.Announce == "none" {
		return
	}
	if in.Lookup != "destination" {
		k.fail(in.At, "announce", "given with lookup %s: packets to UEs come in by lookup destination",
			in.Lookup)
	}
	cloned := func(n Name) bool { return k.interfaces[n] != nil && k.interfaces[n].Clone.Device != "" }
	if !slices.ContainsFunc(in.Interfaces, cloned) {
		k.fail(in.At, "announce", "none of the instance's interfaces has a clone, so there is nobody to tell")
	}
	if in.Announce == "pool" && len(k.PoolsOf(in)) == 0 {
		k.fail(in.At, "announce", "pool, and there are no pools; host announces each session's addresses")
	}
}

func (h *Shaping) check(k *checker) {
	if h.Port == "" {
		return
	}
	s := refer(k, h.At, "port", "scheduler of port", h.Port, k.schedulers)
	if s == nil || len(s.Profiles) == 0 {
		return
	}
	if p := k.ports[h.Port]; p != nil && p.Role != "core" {
		k.fail(h.At, "port", "%q is no core port: tunnels leave by one", h.Port)
	}
	if h.Profile == "" {
		h.Profile = s.Profiles[0].Name
	}
	if !s.has(h.Profile) {
		k.fail(h.At, "profile", "the scheduler of port %q has no profile %q", h.Port, h.Profile)
	}
}

// endpoint checks one GTP-U address of an instance.
func (in *Instance) endpoint(k *checker, a netip.Addr) {
	ours := slices.ContainsFunc(in.Interfaces,
		func(n Name) bool { return k.interfaces[n] != nil && k.interfaces[n].has(a) })
	if !ours {
		k.fail(in.At, "endpoints", "%s is no address of the instance's interfaces", a)
	}
	k.tunnelEnd(in.At, "endpoints", a)
	for i := range k.Paths {
		if p := &k.Paths[i]; p.Local.Addr == a { // the address distinguishes wireline from mobile tunnels
			k.fail(in.At, "endpoints", "%s is the local end of path %q, line %d", a, p.Name, p.Line("local"))
		}
	}
}

// instancePools: those of all instances are networks, apart from others of the VRF and from our own addresses in it.
func instancePools(k *checker) {
	type pool struct {
		in *Instance
		netip.Prefix
	}
	var all []pool
	for i := range k.Instances {
		in := &k.Instances[i]
		if len(in.Pools) > 0 && in.Lookup == "none" {
			k.fail(in.At, "pools", "given with lookup none, where no packet is looked up by a UE's address")
		}
		for _, p := range in.Pools {
			addr := p.Addr()
			switch {
			case !k.network(in.At, "pools", p):
			case addr.Is6() && p.Bits() > 64:
				k.fail(in.At, "pools", "%s is longer than /64, which one UE has", p)
			case addr.IsMulticast() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || p.Bits() == 0:
				k.fail(in.At, "pools", "%s holds more than global unicast addresses", p)
			}
			for _, other := range all {
				if other.Overlaps(p.Prefix) && k.vrfOf(other.in) == k.vrfOf(in) {
					k.fail(in.At, "pools", "%s overlaps %s of instance %q, line %d", p, other.Prefix, other.in.Name,
						other.in.Line("pools"))
				}
			}
			all = append(all, pool{in, p.Prefix})
			k.notOurs(in.At, "pools", in, p)
		}
	}
}

func (p *PFCP) check(k *checker) {
	if !p.Enabled() {
		if len(p.Roles) > 0 || len(p.Peers) > 0 {
			k.fail(p.At, "listen", "missing: without it roles and peers have no use")
		}
		return
	}
	p.listen(k)
	p.roles(k)
	p.peers(k)
	checkNodeID(k, p.At, p.NodeID)
	if p.Limits.Sessions > k.Engine.Limits.Sessions {
		k.fail(p.Limits.At, "sessions", "%d is more than engine.limits.sessions (%d)", p.Limits.Sessions,
			k.Engine.Limits.Sessions)
	}
}

func checkNodeID(k *checker, at At, id string) {
	if reason := nodeIDReason(id); id != "" && reason != "" {
		k.fail(at, "node_id", "%q %s", clip(id), reason)
	}
}

func (p *PFCP) listen(k *checker) {
	seen := map[netip.AddrPort]bool{}
	for _, s := range p.Listen {
		a := s.Addr()
		if a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() {
			k.fail(p.At, "listen", "%s is no address that a peer could send to; it stands in F-SEIDs", a)
		}
		if seen[s.AddrPort] {
			k.fail(p.At, "listen", "%s given twice", s)
		}
		seen[s.AddrPort] = true
	}
}

func (p *PFCP) roles(k *checker) {
	if len(p.Roles) == 0 {
		k.fail(p.At, "roles", "missing: upf, sgwu, pgwu, gnb or enb")
		return
	}
	seen := map[string]bool{}
	endpoint, source := false, false
	for i := range k.Instances {
		endpoint = endpoint || len(k.Instances[i].Endpoints) > 0
		source = source || k.Instances[i].Lookup == "source"
	}
	if !endpoint && !source { // an access side of plain IP has no tunnels
		k.fail(p.At, "roles", "no instance has endpoints or lookup source, so there is no access side")
	}
	for _, role := range p.Roles {
		if seen[role] {
			k.fail(p.At, "roles", "%s given twice", role)
		}
		seen[role] = true
		if (role == "gnb" || role == "enb") && !source {
			k.fail(p.At, "roles", "%s needs an instance with lookup source, where its UEs are", role)
		}
		if (role == "gnb" || role == "enb" || role == "sgwu") && !endpoint && source {
			k.fail(p.At, "roles", "%s needs an instance with endpoints, where its tunnels end", role)
		}
	}
}

func (p *PFCP) peers(k *checker) {
	if len(p.Peers) == 0 && !p.AllowUnknown {
		k.fail(p.At, "peers", "missing: nobody could set up an association (or set allow_unknown)")
	}
	if most := p.Limits.Associations; len(p.Peers) > int(most) {
		k.fail(p.At, "peers", "%d, but limits.associations is %d", len(p.Peers), most)
	}
	// A peer sends from any port (TS 29.244 §6.3), so on one address only the node id identifies it.
	type id struct {
		addr netip.Addr
		node string
	}
	seen := map[id]Line{}
	if n := len(p.Infrastructure()); n > maxGuarded {
		k.fail(p.At, "guard", "%d hosts are guarded, with those of listen and peers; at most %d", n, maxGuarded)
	}
	for _, one := range p.Peers {
		a := one.Address.Addr()
		if a.IsUnspecified() || a.IsMulticast() {
			k.fail(one.At, "address", "%s is no unicast address", a)
		}
		if !slices.ContainsFunc(p.Listen, func(s Socket) bool { return s.Addr().Is4() == a.Is4() }) {
			k.fail(one.At, "address", "%s: we listen on no address of that family", a)
		}
		if slices.ContainsFunc(p.Listen, func(s Socket) bool { return s.AddrPort == one.Address.AddrPort }) {
			k.fail(one.At, "address", "%s is our own", one.Address)
		}
		checkNodeID(k, one.At, one.NodeID)
		key := id{a, strings.ToLower(strings.TrimSuffix(one.NodeID, "."))}
		once(k, one.At, "address", seen, key,
			"the peer in line %d has the same address and node_id, so messages could be of both")
	}
}
