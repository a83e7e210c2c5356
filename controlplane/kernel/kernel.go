// SPDX-License-Identifier: Apache-2.0

// Package kernel follows the kernel's network devices that stand for data plane interfaces (clones): state, addresses,
// neighbours and routes, over netlink, one namespace at a time. After lost messages it reads all again. It also puts
// the configuration of these interfaces into the kernel.
package kernel

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
)

// Clone is one interface and its device, with its configuration.
type Clone struct {
	Interface string
	Device    string
	Namespace string // file; empty: our own
	VRF       string // of the interface, and of all others in the namespace
	MTU       uint32 // of the port: the device may have less
	Addresses []netip.Prefix
	Routes    map[netip.Prefix]Route // that leave by it
	Announced []netip.Prefix         // announced by its namespace's routing daemons
}

// Device is a clone as the kernel has it.
type Device struct {
	Up        bool // by the administrator; the data plane sets the carrier
	MTU       uint32
	Addresses []netip.Prefix // sorted
}

// Destination is a prefix of a VRF.
type Destination struct {
	VRF    string
	Prefix netip.Prefix
}

// Neighbour names one.
type Neighbour struct {
	Interface string
	Address   netip.Addr
}

// MAC of a neighbour.
type MAC [6]byte

// State is what the kernel has.
type State struct {
	Devices    map[string]Device       // existing ones, by interface
	Loopback   map[string][]netip.Addr // by VRF: addresses of devices without a link, sorted
	Routes     map[Destination]Route
	Neighbours map[Neighbour]MAC
}

// RouteChange is the route that a destination has now, if any.
type RouteChange struct {
	At    Destination
	Route Route
}

// Changes since the last ones.
type Changes struct {
	All        *State // replaces the known state; nil: the changes below
	Routes     []RouteChange
	Neighbours map[Neighbour]MAC // zero: gone
}

// Status of one namespace, for people.
type Status struct {
	Namespace  string   `json:"namespace"`
	Devices    []string `json:"devices"` // interfaces with a device
	Addresses  int      `json:"addresses"`
	Loopback   int      `json:"loopback"` // addresses of devices without a link
	Routes     int      `json:"routes"`
	Ignored    int      `json:"ignored"` // routes that are not followed, or only in part
	Neighbours int      `json:"neighbours"`
	Announced  int      `json:"announced"` // prefixes
	Read       uint64   `json:"read"`      // how often all was read
	Lost       uint64   `json:"lost"`      // of them because messages were lost
	Error      string   `json:"error"`
}

// Kernel follows all namespaces. Its methods may be called from one goroutine.
type Kernel struct {
	log     *slog.Logger
	changed chan struct{}
	group   sync.WaitGroup
	spaces  map[string]*space
	order   []string          // of spaces: in which of them a destination counts that several have
	all     bool              // the next Changes are whole: spaces came or went
	leaving map[string]*space // that no clone is in any more: what they were given is taken back
	decided bool              // Announce was called
	on      bool              // by it
	memory
}

// New makes a Kernel that follows nothing yet.
func New(log *slog.Logger) *Kernel {
	return &Kernel{log: log, changed: make(chan struct{}, 1), spaces: map[string]*space{},
		leaving: map[string]*space{}}
}

// Changed can be read when there are Changes.
func (k *Kernel) Changed() <-chan struct{} { return k.changed }

// Follow makes these the clones. Namespaces are followed until ctx ends.
func (k *Kernel) Follow(ctx context.Context, clones []Clone) {
	by := map[string][]Clone{}
	for _, c := range clones {
		by[c.Namespace] = append(by[c.Namespace], c)
	}
	before, err := k.remember(givenOf(clones))
	if err != nil {
		k.log.Error("it is not kept what the kernel is given", "error", err)
	}
	for name, s := range k.spaces {
		if by[name] == nil {
			k.leaving[name] = s
			s.leave()
			delete(k.spaces, name)
			k.all = true
		}
	}
	for name, devices := range before {
		if by[name] == nil && k.leaving[name] == nil { // of the control plane before us
			s := newSpace(name, nil, k)
			s.former, s.left = devices, true
			k.leaving[name] = s
			k.start(ctx, s)
			s.cancel()
		}
	}
	for name, list := range by {
		if s := k.spaces[name]; s != nil {
			s.configure(list, before[name])
			continue
		}
		s := newSpace(name, list, k)
		s.owe(before[name])
		s.announced.decided, s.announced.on = k.decided, k.on
		if s.after = k.leaving[name]; s.after != nil {
			close(s.after.back)
			delete(k.leaving, name)
		}
		k.spaces[name] = s
		k.start(ctx, s)
	}
	k.order = slices.Sorted(maps.Keys(k.spaces))
	if k.all {
		signal(k.changed)
	}
}

func (k *Kernel) start(ctx context.Context, s *space) {
	var own context.Context
	own, s.cancel = context.WithCancel(ctx)
	k.group.Add(1)
	go func() {
		defer k.group.Done()
		s.run(own, ctx)
	}()
}

// Known waits until all namespaces were read, or cannot be: otherwise a start would take the kernel for empty.
func (k *Kernel) Known(ctx context.Context) {
	for _, s := range k.spaces {
		select {
		case <-s.known:
		case <-ctx.Done():
			return
		}
	}
}

// Wait returns when nothing is followed any more: after the context of Follow has ended.
func (k *Kernel) Wait() { k.group.Wait() }

// Changes returns what is new since the last call.
func (k *Kernel) Changes() Changes {
	c := Changes{Neighbours: map[Neighbour]MAC{}}
	all := k.all
	for _, name := range k.order {
		all = k.spaces[name].take(&c) || all
	}
	k.all = false
	if all {
		st := k.State()
		return Changes{All: &st}
	}
	if len(k.order) > 1 { // several may have the destination
		for i := range c.Routes {
			c.Routes[i].Route = k.route(c.Routes[i].At)
		}
	}
	for n := range c.Neighbours {
		c.Neighbours[n] = k.neighbour(n)
	}
	return c
}

// State returns everything.
func (k *Kernel) State() State {
	all := newState()
	for _, name := range k.order {
		k.spaces[name].addTo(&all)
	}
	return all
}

func (k *Kernel) route(d Destination) Route {
	for _, name := range k.order {
		if r, ok := k.spaces[name].best(d); ok {
			return r
		}
	}
	return Route{}
}

func (k *Kernel) neighbour(n Neighbour) MAC {
	for _, name := range k.order {
		if mac, ok := k.spaces[name].neighbour(n); ok {
			return mac
		}
	}
	return MAC{}
}

// Status of all namespaces.
func (k *Kernel) Status() []Status {
	list := make([]Status, 0, len(k.order))
	for _, name := range k.order {
		list = append(list, k.spaces[name].status())
	}
	return list
}

func newState() State {
	return State{map[string]Device{}, map[string][]netip.Addr{}, map[Destination]Route{}, map[Neighbour]MAC{}}
}

// signal makes a channel of one readable.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
