// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	retry    = 500 * time.Millisecond // also how often a namespace is looked at
	period   = 30 * time.Second       // all is read again: the kernel does not report everything
	calm     = time.Second            // without messages of routes, before that: a table of a million takes seconds
	patience = 10 * period            // however many messages there are
	settling = 20 * time.Millisecond  // after a change, before the kernel is given the configuration's part
	receive  = 64 << 20               // socket buffer: 80,000 routes; what overflows it is read again
)

// Tests make the buffer small, and control when all is read again.
var (
	receiveBuffer = receive
	readAgain     = period
)

// space follows one namespace. run's goroutine writes the table; the lock is for readers.
type space struct {
	name    string
	log     *slog.Logger
	changed chan<- struct{}
	cancel  context.CancelFunc
	wake    chan struct{} // clones changed
	known   chan struct{} // closed when all was read, or cannot be
	once    sync.Once
	buffer  int // of sockets

	mu        sync.Mutex
	clones    []Clone
	table     *table
	whole     bool // the fields below do not count: all is new
	others    map[Neighbour]bool
	state     Status
	announced announcements
	former    map[string][]netip.Prefix // by device: addresses that it was given before
	owing     bool                      // memory is to be updated when they are taken back
	left      bool                      // the configuration has no clone here any more

	memory *memory
	after  *space        // of the same name, that is being left; may be nil
	back   chan struct{} // closed when the configuration has clones here again
	gone   chan struct{} // closed at the end
}

func newSpace(name string, clones []Clone, k *Kernel) *space {
	s := &space{name: name, log: k.log.With("namespace", cmp.Or(name, "own")), changed: k.changed,
		wake: make(chan struct{}, 1), known: make(chan struct{}), gone: make(chan struct{}),
		back: make(chan struct{}), memory: &k.memory,
		clones: clones, table: newTable(clones), buffer: receiveBuffer, announced: newAnnouncements(),
		former: map[string][]netip.Prefix{}}
	s.forget()
	return s
}

// forget: everything is new.
func (s *space) forget() {
	s.table.settle(func(Prefix, Route) {})
	s.whole, s.others = true, map[Neighbour]bool{}
}

// configure makes these the clones; all is read again. former: what devices were given before.
func (s *space) configure(clones []Clone, former map[string][]netip.Prefix) {
	s.mu.Lock()
	s.clones = clones
	s.owe(former)
	s.mu.Unlock()
	signal(s.wake)
}

// owe has what is not the configuration's any more taken back. The lock is held.
func (s *space) owe(former map[string][]netip.Prefix) {
	s.former = Given{"": s.former}.add(Given{"": former})[""]
	s.owing = true
}

// leave: the configuration has no clone here any more.
func (s *space) leave() {
	s.mu.Lock()
	s.left = true
	s.mu.Unlock()
	s.cancel()
}

// ---- what others read -----------------------------------------------------------------------------------------------

// take adds what changed; true: everything did.
func (s *space) take(c *Changes) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole := s.whole
	if !whole {
		vrf := s.vrf()
		c.Routes = slices.Grow(c.Routes, len(s.table.noted))
		s.table.settle(func(p Prefix, r Route) {
			c.Routes = append(c.Routes, RouteChange{Destination{vrf, p.Netip()}, r})
		})
		for n := range s.others {
			c.Neighbours[n] = MAC{}
		}
	}
	s.forget()
	s.whole = false
	return whole
}

// vrf is what the namespace's main table is the table of. The lock is held.
func (s *space) vrf() string { return s.clones[0].VRF }

func (s *space) best(d Destination) (Route, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vrf() != d.VRF {
		return Route{}, false
	}
	p := PrefixOf(d.Prefix)
	e := s.table.routes[p]
	r := s.table.best(p, &e)
	return r, r != Route{}
}

func (s *space) neighbour(n Neighbour) (MAC, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mac, ok := s.table.neighbours[n]
	return mac, ok
}

func (s *space) addTo(all *State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.table.links {
		d := Device{Up: l.up, MTU: l.mtu}
		if l.of == "" {
			continue
		}
		for p := range l.addresses {
			d.Addresses = append(d.Addresses, p)
		}
		slices.SortFunc(d.Addresses, comparePrefixes)
		all.Devices[l.of] = d
	}
	if own := append(all.Loopback[s.vrf()], s.table.loopback()...); len(own) > 0 {
		slices.SortFunc(own, netip.Addr.Compare)
		all.Loopback[s.vrf()] = slices.Compact(own)
	}
	for p, e := range s.table.routes {
		d := Destination{s.vrf(), p.Netip()}
		r := s.table.best(p, &e)
		if _, twice := all.Routes[d]; !twice && r != (Route{}) {
			all.Routes[d] = r
		}
	}
	for n, mac := range s.table.neighbours {
		all.Neighbours[n] = mac
	}
}

func (s *space) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	st.Namespace = s.name
	st.Devices = []string{}
	for _, l := range s.table.links {
		if l.of != "" {
			st.Devices = append(st.Devices, l.of)
			st.Addresses += len(l.addresses)
		}
	}
	st.Loopback = len(s.table.loopback())
	for _, n := range s.table.left[Followed+1:] {
		st.Ignored += n
	}
	slices.Sort(st.Devices)
	st.Routes, st.Neighbours = s.table.prefixes, len(s.table.neighbours)
	return st
}

// ---- following ------------------------------------------------------------------------------------------------------

// errLost: messages were lost, or the socket ended.
var errLost = errors.New("netlink messages were lost")

// run follows until ctx ends; what is left is withdrawn until all ends.
func (s *space) run(ctx, all context.Context) {
	defer close(s.gone)
	if s.after != nil {
		<-s.after.gone
	}
	s.followOn(ctx)
	s.mu.Lock()
	left := s.left
	s.mu.Unlock()
	if left {
		s.withdraw(all)
	}
}

func (s *space) followOn(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.follow(ctx)
		lost := errors.Is(err, errLost)
		s.mu.Lock()
		if lost {
			s.state.Lost++
		} else {
			s.forget()
			s.table = newTable(s.clones)
		}
		told := s.state.Error
		s.state.Error = ""
		if err != nil && !lost {
			s.state.Error = err.Error()
		}
		news := s.state.Error
		s.mu.Unlock()
		signal(s.changed)
		if !lost {
			s.once.Do(func() { close(s.known) })
		}
		if ctx.Err() != nil {
			return
		}
		if lost {
			s.log.Warn("netlink messages were lost, reading everything again")
			continue
		}
		if news != told && news != "" {
			s.log.Warn("the kernel's state is not known", "error", news)
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
		}
	}
}

// streams are the subscriptions; each channel ends when its socket does.
type streams struct {
	links      chan netlink.LinkUpdate
	addresses  chan netlink.AddrUpdate
	routes     *routeStream
	neighbours chan netlink.NeighUpdate
}

// follow reads everything, and then changes, until a message is lost or the namespace is gone.
func (s *space) follow(ctx context.Context) error {
	ns, id, err := s.open()
	if err != nil {
		return err
	}
	if ns.IsOpen() {
		defer ns.Close()
	}
	h, err := handlesAt(ns)
	if err != nil {
		return err
	}
	defer h.close()
	done := make(chan struct{})
	c, err := s.subscribe(&ns, done)
	if err != nil {
		close(done)
		return err
	}
	defer drain(c, done)
	if err := s.readAll(h); err != nil {
		return err
	}
	return s.loop(ctx, h, c, id)
}

// open returns the namespace and its identity.
func (s *space) open() (netns.NsHandle, string, error) {
	if s.name == "" {
		return netns.None(), "", nil
	}
	ns, err := netns.GetFromPath(s.name)
	if err != nil {
		return ns, "", fmt.Errorf("network namespace %s: %w", s.name, err)
	}
	return ns, identity(s.name), nil
}

func identity(file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(st.Dev, st.Ino)
	}
	return ""
}

// handles are the sockets by which the kernel is asked.
type handles struct {
	*netlink.Handle
	routes nl.SocketHandle // for routes as the kernel writes them
}

func handlesAt(ns netns.NsHandle) (*handles, error) {
	var all handles
	var err error
	if !ns.IsOpen() {
		all.Handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
	} else {
		all.Handle, err = netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	}
	if err != nil {
		return nil, err
	}
	all.routes.Socket, err = nl.GetNetlinkSocketAt(ns, netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		all.Handle.Close()
		return nil, err
	}
	return &all, nil
}

func (h *handles) close() {
	h.routes.Close()
	h.Handle.Close()
}

func (s *space) subscribe(ns *netns.NsHandle, done <-chan struct{}) (*streams, error) {
	// The library enters the namespace on this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own := *ns
	if !ns.IsOpen() {
		ns = nil
	}
	c := &streams{make(chan netlink.LinkUpdate, 64), make(chan netlink.AddrUpdate, 64),
		nil, make(chan netlink.NeighUpdate, 256)}
	say := func(err error) { s.log.Debug("netlink", "error", err) }
	o := netlink.RouteSubscribeOptions{Namespace: ns, ErrorCallback: say,
		ReceiveBufferSize: s.buffer, ReceiveBufferForceSize: mayForce()}
	err := netlink.LinkSubscribeWithOptions(c.links, done, netlink.LinkSubscribeOptions(o))
	if err == nil {
		err = netlink.AddrSubscribeWithOptions(c.addresses, done, netlink.AddrSubscribeOptions(o))
	}
	if err == nil {
		err = netlink.NeighSubscribeWithOptions(c.neighbours, done, netlink.NeighSubscribeOptions(o))
	}
	if err == nil {
		c.routes, err = openRoutes(own, s.buffer, mayForce())
	}
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	return c, nil
}

// mayForce: we have CAP_NET_ADMIN, which permits buffers beyond net.core.rmem_max.
func mayForce() bool {
	var data [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
	return err == nil && data[0].Effective>>unix.CAP_NET_ADMIN&1 != 0
}

// drain ends the subscriptions; their goroutines may be about to send.
func drain(c *streams, done chan struct{}) {
	close(done)
	c.routes.close()
	go func() {
		for range c.links {
		}
	}()
	go func() {
		for range c.addresses {
		}
	}()
	go func() {
		for range c.neighbours {
		}
	}()
}

func (s *space) loop(ctx context.Context, h *handles, c *streams, id string) error {
	look, again := time.NewTicker(retry), time.NewTicker(readAgain)
	defer look.Stop()
	defer again.Stop()
	settle := time.NewTimer(0)
	defer settle.Stop()
	stale := false // the table is not all that the kernel has
	read, told := time.Now(), time.Time{}
	for {
		settled := true
		select {
		case <-ctx.Done():
			return nil
		case u, ok := <-c.links:
			if !ok {
				return errLost
			}
			stale, settled = s.linkChanged(&u) || stale, false
		case u, ok := <-c.addresses:
			if !ok {
				return errLost
			}
			stale, settled = s.addressChanged(&u) || stale, false
		case b, ok := <-c.routes.full:
			if !ok {
				return errLost
			}
			whole, old := s.routesChanged(b)
			if !whole {
				return errLost
			}
			c.routes.free <- b
			stale, settled, told = old || stale, !old, time.Now()
		case u, ok := <-c.neighbours:
			if !ok {
				return errLost
			}
			s.neighbourChanged(&u)
		case <-s.announced.told:
			settled = s.giveAnnouncements(h.Handle)
		case <-s.wake:
			stale, settled = true, false
		case <-again.C:
			if time.Since(told) < calm && time.Since(read) < patience {
				again.Reset(calm)
				break
			}
			again.Reset(readAgain)
			stale, settled = true, false
		case <-look.C:
			if identity(s.name) != id {
				return fmt.Errorf("network namespace %s is gone", s.name)
			}
		case <-settle.C:
			if stale {
				if err := s.readAll(h); err != nil {
					return err
				}
				stale, read = false, time.Now()
			}
			s.giveBack(h.Handle)
		}
		if !settled {
			settle.Reset(settling)
		}
	}
}
