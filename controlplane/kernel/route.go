// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"unique"

	"isthmus/api"
)

// Route is the fate of packets to a destination: next hops of equal cost, or the end here. Equal routes share one copy.
// The zero Route is none.
type Route struct{ of unique.Handle[fate] }

// Hop is a next hop.
type Hop struct {
	Via       netip.Addr // not valid: the destination is on the link; IPv6 also of IPv4 destinations
	Interface string
	OnLink    bool // Via is on the interface's link, in any network; of routes given to the kernel
}

// mostHops is how many the data plane has room for.
const mostHops = 1 + api.RouteFurther

type fate struct {
	hops    [mostHops]Hop
	discard uint32 // api.Discard…
	left    left   // what of the kernel's route is not followed
}

// left is a route, or are next hops of one, that cannot be followed.
type left struct {
	reason Reason
	hops   int        // that are left out; 0: all of it is
	via    netip.Addr // of the first one
	device uint32     // of the first one
}

func routeOf(f *fate) Route { return Route{unique.Make(*f)} }

// RouteBy makes a route of as many next hops as the data plane has room for.
func RouteBy(list ...Hop) Route {
	var f fate
	if copy(f.hops[:], list) == 0 {
		return Route{}
	}
	return routeOf(&f)
}

// Discarding makes a route at which packets end (api.Discard…).
func Discarding(how uint32) Route { return routeOf(&fate{discard: how}) }

func (r Route) fate() fate {
	if r == (Route{}) {
		return fate{}
	}
	return r.of.Value()
}

// Hops are the next hops.
func (r Route) Hops() []Hop {
	f := r.fate()
	n := slices.Index(f.hops[:], Hop{})
	if n < 0 {
		n = len(f.hops)
	}
	return f.hops[:n]
}

// Discard is how packets end here (api.Discard…); api.DiscardNone: they do not.
func (r Route) Discard() uint32 { return r.fate().discard }

// Reason is why something of the kernel's is not followed.
type Reason uint8

// Reasons, as words for programs; Text is for people.
const (
	Followed Reason = iota
	OtherTable
	OtherType
	ForTOS
	ForSource
	Encapsulated
	NoClone
	Dead
	TooMany
	NoGateway
	BadGateway
	NoNextHop
	Configured
	OurAddress
	Unassignable
	NoRoom
	Refused
	Reasons // how many there are
)

var reasons = [Reasons]struct{ word, text string }{
	OtherTable:   {"table", "of another table than main"},
	OtherType:    {"type", "of a type that the data plane has not"},
	ForTOS:       {"tos", "for packets of one TOS alone"},
	ForSource:    {"source", "for packets from some sources alone"},
	Encapsulated: {"encapsulation", "its packets get a header of MPLS or another tunnel"},
	NoClone:      {"device", "by a device that is no clone"},
	Dead:         {"dead", "its next hop's device is down"},
	TooMany:      {"many", "more next hops than the data plane has room for"},
	NoGateway:    {"link", "one of several next hops has no address"},
	BadGateway:   {"family", "a next hop of a family that the data plane has not"},
	NoNextHop:    {"object", "its next hop object is not there"},
	Configured:   {"configured", "the configuration has a route there"},
	OurAddress:   {"ours", "its next hop is an address of ours"},
	Unassignable: {"gateway", "its next hop is no host's address"},
	NoRoom:       {"limit", "more routes than engine.limits.routes allows"},
	Refused:      {"refused", "the data plane refuses it"},
}

func (r Reason) String() string { return reasons[r].word }

// Text is a reason in words.
func (r Reason) Text() string { return reasons[r].text }

// ---- gathering next hops --------------------------------------------------------------------------------------------

// gathered are the next hops of one of the kernel's routes that the data plane can have.
type gathered struct {
	list  [mostHops]Hop
	count int
	left  left
}

func (g *gathered) leave(why Reason, via netip.Addr, device uint32) {
	if g.left.hops++; g.left.hops == 1 {
		g.left.reason, g.left.via, g.left.device = why, via, device
	}
}

// add takes one over: beside gateways a gateway, once.
func (g *gathered) add(hop Hop, device uint32) {
	switch {
	case slices.Contains(g.list[:g.count], hop):
	case g.count > 0 && (!hop.Via.IsValid() || !g.list[0].Via.IsValid()):
		g.leave(NoGateway, hop.Via, device)
	case g.count == len(g.list):
		g.leave(TooMany, hop.Via, device)
	default:
		g.list[g.count] = hop
		g.count++
	}
}

// route is what was gathered. Next hops are in an order of their own: the kernel's changes.
func (g *gathered) route() Route {
	if g.count > 1 {
		slices.SortFunc(g.list[:g.count], func(a, b Hop) int {
			return cmp.Or(strings.Compare(a.Interface, b.Interface), a.Via.Compare(b.Via))
		})
	}
	f := fate{hops: g.list, left: g.left}
	if g.count == 0 {
		f.left.reason, f.left.hops = cmp.Or(g.left.reason, NoNextHop), 0
	}
	return routeOf(&f)
}
