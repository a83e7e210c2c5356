// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
)

// How F-TEIDs come about (row P18).
const (
	FTEIDBoth = "both" // CHOOSE or given
	FTEIDUp   = "up"   // CHOOSE only, given ones with the restoration indication
	FTEIDCp   = "cp"   // given only
)

// Instance is a network instance (TS 29.244 §8.2.4) as sessions see it. It lacks config.Instance's fields that do not
// affect sessions, such as NAT44: their change would make all sessions again (SameFor).
type Instance struct {
	Name      string
	Names     []string // further ones in rules of CP functions; AllNames: all others
	Endpoints []netip.Addr
	Lookup    uint32 // api.Lookup*
	Pools     []netip.Prefix
	Sources   []pfcp.Interface
	UDPPort   uint16
	Shaping   *Shaping // of the downlink of its sessions; nil: none
	DSCP      uint8    // of the outer headers of its tunnels, where the FAR has no Transport Level Marking
	QFIDSCP   [64]byte // the same by QFI, as in api.Path
}

// endpoint returns the instance's GTP-U address of a family, invalid without one.
func (i *Instance) endpoint(v4 bool) netip.Addr {
	for _, a := range i.Endpoints {
		if a.Is4() == v4 {
			return a
		}
	}
	return netip.Addr{}
}

// AllNames among an instance's Names stands for those that no instance has.
const AllNames = "*"

// Settings are the configuration as this package needs it. Never changed once in use.
type Settings struct {
	config.PFCP             // a limit of 0 is no limit
	Node        pfcp.NodeID // ours
	Instances   []Instance
	Lines       map[string]*Shaping // of sign-in, by access port; absent: no scheduler
	Workers     int
}

// relay: we are an SGW-U alone, from tunnel to tunnel, never IP.
func (s *Settings) relay() bool { return len(s.Roles) == 1 && s.Is("sgwu") }

func limit(value uint32, most int) int {
	if value == 0 {
		return most
	}
	return min(int(value), most)
}

func (s *Settings) maxPDRs() int    { return limit(s.Limits.PDRs, api.MaxPDR) }
func (s *Settings) maxFARs() int    { return limit(s.Limits.FARs, api.MaxFAR) }
func (s *Settings) maxQERs() int    { return limit(s.Limits.QERs, api.MaxQER) }
func (s *Settings) maxURRs() int    { return limit(s.Limits.URRs, api.MaxURR) }
func (s *Settings) maxFilters() int { return limit(s.Limits.Filters, api.MaxSDF) }

// Requirements of a rule on its instance.
const (
	needNothing = iota
	needEndpoint
	needLookup
)

func (i *Instance) can(need int) bool {
	switch need {
	case needEndpoint:
		return len(i.Endpoints) > 0
	case needLookup:
		return i.Lookup != api.LookupNone
	}
	return true
}

// find returns the network instance of a rule, nil without one. Many CP functions send the DNN as the network instance
// of both sides. So the named instance counts if it serves the interface and has what the rule needs. Otherwise the
// first that serves the interface does; then the named one, if it has that (N9 over the interface of N3). An unknown
// name is no match.
func (s *Settings) find(name string, side pfcp.Interface, need int) *Instance {
	var named *Instance
	if name != "" {
		named = s.named(name)
		if named == nil {
			return nil
		}
		if named.can(need) && (len(named.Sources) == 0 || slices.Contains(named.Sources, side)) {
			return named
		}
	}
	for n := range s.Instances {
		if i := &s.Instances[n]; slices.Contains(i.Sources, side) && i.can(need) {
			return i
		}
	}
	if named != nil && named.can(need) {
		return named
	}
	if side == pfcp.CPSide { // tunnels of the CP function end where the radio's do, unless an instance is for them
		return s.find(name, pfcp.Access, need)
	}
	return nil
}

// Sides are the configuration's words for interfaces, in their order.
var Sides = []string{pfcp.Access: "access", pfcp.Core: "core", pfcp.SGiLAN: "sgi-lan", pfcp.CPSide: "cp"}

// mostNames is how many instances a refusal lists.
const mostNames = 8

// lacks says why find returned nil, with the names that an operator compares the CP function's with.
func (s *Settings) lacks(name string, side pfcp.Interface) string {
	word := fmt.Sprintf("interface %d", side)
	if int(side) < len(Sides) {
		word = Sides[side]
	}
	if name == "" {
		return "no suitable network instance has " + word + " in its sources"
	}
	if i := s.named(name); i != nil {
		return fmt.Sprintf("network instance %q is not suitable here, and no suitable one has %s in its sources",
			i.Name, word)
	}
	var names []string
	for n := range s.Instances {
		if n == mostNames {
			names = append(names, "…")
			break
		}
		names = append(names, s.Instances[n].Name)
	}
	return fmt.Sprintf("no network instance %q; there are %s", name, strings.Join(names, ", "))
}

// named is the instance of a CP function's name, nil without one: by name, further name, or the instance for all other
// names.
func (s *Settings) named(name string) *Instance {
	if i := s.byName(name); i != nil || name == "" {
		return i
	}
	for _, one := range []string{name, AllNames} {
		for n := range s.Instances {
			if slices.Contains(s.Instances[n].Names, one) {
				return &s.Instances[n]
			}
		}
	}
	return nil
}

func (s *Settings) byName(name string) *Instance {
	for n := range s.Instances {
		if s.Instances[n].Name == name {
			return &s.Instances[n]
		}
	}
	return nil
}

// Owner returns the instance whose endpoint an address is, nil when none.
func (s *Settings) Owner(a netip.Addr) *Instance {
	for n := range s.Instances {
		if slices.Contains(s.Instances[n].Endpoints, a) {
			return &s.Instances[n]
		}
	}
	return nil
}

// SameFor: the configuration compiles every session to the same result. Limits, for instance, only concern new
// sessions.
func (set *Settings) SameFor(other *Settings) bool {
	return reflect.DeepEqual(set.Instances, other.Instances) && reflect.DeepEqual(set.Lines, other.Lines) &&
		set.Workers == other.Workers && set.relay() == other.relay() && set.MBRBurst == other.MBRBurst &&
		set.Limits.Filters == other.Limits.Filters
}

// Fit moves a session to an existing worker, with those that share its meters. It returns whether it moved.
func (set *Settings) Fit(s *Session) bool {
	workers := uint16(max(set.Workers, 1))
	if s.Worker < workers {
		return false
	}
	s.Worker %= workers
	return true
}
