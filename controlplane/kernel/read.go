// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const attempts = 5 // to read a table that changes meanwhile (NLM_F_DUMP_INTR)

// readAll replaces the table by the kernel's state, and notes the differences.
func (s *space) readAll(h *handles) error {
	s.mu.Lock()
	fresh := newTable(s.clones)
	for index, l := range s.table.links { // a renamed device stays what it was
		same := func(c Clone) bool { return c.Interface == l.of && s.table.clones[c.Device] == l.of }
		if slices.ContainsFunc(s.clones, same) {
			fresh.links[index] = link{of: l.of}
		}
	}
	s.mu.Unlock()
	if err := fresh.read(h); err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	s.mu.Lock()
	old := s.table
	s.table = fresh
	s.state.Read++
	s.state.Error = ""
	s.note(old, fresh)
	s.mu.Unlock()
	s.once.Do(func() { close(s.known) })
	signal(s.changed)
	return nil
}

// note marks the difference of two tables as changed, beside what is: the fresh one is ours already.
func (s *space) note(old, fresh *table) {
	for _, p := range old.noted {
		fresh.note(p)
	}
	if !maps.EqualFunc(old.links, fresh.links, func(a, b link) bool {
		return a.of == b.of && a.up == b.up && a.mtu == b.mtu && maps.Equal(a.addresses, b.addresses)
	}) {
		s.whole = true
		return
	}
	for p, e := range fresh.routes {
		if was := old.routes[p]; fresh.best(p, &e) != old.best(p, &was) {
			fresh.note(p)
		}
	}
	for p, was := range old.routes {
		if _, there := fresh.routes[p]; !there && old.best(p, &was) != (Route{}) {
			fresh.note(p)
		}
	}
	for n, mac := range fresh.neighbours {
		if old.neighbours[n] != mac {
			s.others[n] = true
		}
	}
	for n := range old.neighbours {
		if _, there := fresh.neighbours[n]; !there {
			s.others[n] = true
		}
	}
}

func (t *table) read(h *handles) error {
	if err := t.readLinks(h.Handle); err != nil {
		return err
	}
	if err := t.readAddresses(h.Handle); err != nil {
		return err
	}
	if err := t.readNextHops(&h.routes); err != nil {
		return err
	}
	if err := t.readRoutes(&h.routes); err != nil {
		return err
	}
	neighbours, err := whole(func() ([]netlink.Neigh, error) { return h.NeighList(0, 0) })
	for i := range neighbours {
		t.setNeighbour(&neighbours[i], true)
	}
	return err
}

// whole repeats a read that changes disturbed; the last one counts, since changes are reported too.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range attempts {
		all, err = list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return all, nil
}

// ofNoLink: addresses of a device are ours on no link: router ids and the like.
func ofNoLink(l netlink.Link) bool {
	return l.Attrs().RawFlags&unix.IFF_LOOPBACK != 0 || l.Type() == "dummy"
}

func (t *table) readLinks(h *netlink.Handle) error {
	links, err := whole(h.LinkList)
	if err != nil {
		return err
	}
	there := map[int]bool{}
	for _, l := range links {
		a := l.Attrs()
		there[a.Index] = true
		t.setLink(a.Index, a.Name, a.RawFlags, uint32(a.MTU), ofNoLink(l))
	}
	maps.DeleteFunc(t.links, func(index int, _ link) bool { return !there[index] })
	return nil
}

func (t *table) readAddresses(h *netlink.Handle) error {
	addresses, err := whole(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_ALL) })
	for _, a := range addresses {
		if a.IPNet != nil {
			t.setAddress(a.LinkIndex, *a.IPNet, a.Flags, true)
		}
	}
	return err
}

// readRoutes decodes by itself.
func (t *table) readRoutes(socket *nl.SocketHandle) error {
	var m message
	return dump(socket, unix.RTM_GETROUTE, unix.RTM_NEWROUTE, &nl.RtMsg{}, t.forgetRoutes, func(body []byte) {
		if m.decode(body) {
			t.setRoute(&m, unix.NLM_F_APPEND) // in the order of the answer
		}
	})
}

// dump asks by the library, which hides its sockets otherwise. begin is called before each attempt.
func dump(socket *nl.SocketHandle, request int, answer uint16, head nl.NetlinkRequestData, begin func(),
	take func(body []byte),
) error {
	for range attempts {
		begin()
		all := nl.NewNetlinkRequest(request, unix.NLM_F_DUMP)
		all.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: socket}
		all.AddData(head)
		err := all.ExecuteIter(unix.NETLINK_ROUTE, answer, func(body []byte) bool { take(body); return true })
		if !errors.Is(err, nl.ErrDumpInterrupted) {
			return err
		}
	}
	return nil
}

// ---- messages -------------------------------------------------------------------------------------------------------

// linkChanged returns whether all must be read. A clone came, so its addresses may have been reported before. Or it or
// its carrier went down, which removes routes and next hops without a message, or up.
func (s *space) linkChanged(u *netlink.LinkUpdate) (stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := u.Attrs()
	was, known := s.table.links[a.Index]
	var news bool
	if u.Header.Type == unix.RTM_DELLINK {
		if u.Family == unix.AF_BRIDGE { // left a bridge
			return false
		}
		news = s.table.deleteLink(a.Index)
		stale = news
	} else {
		news = s.table.setLink(a.Index, a.Name, a.RawFlags, uint32(a.MTU), ofNoLink(u.Link))
		is := s.table.links[a.Index]
		stale = news && !known || was.up != is.up || was.carrier != is.carrier
	}
	if news {
		s.whole = true
		signal(s.changed)
	}
	return stale
}

// addressChanged returns whether all must be read: routes go with their source address, of any device, without a
// message.
func (s *space) addressChanged(u *netlink.AddrUpdate) (stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table.setAddress(u.LinkIndex, u.LinkAddress, u.Flags, u.NewAddr) {
		s.whole = true
		signal(s.changed)
	}
	return !u.NewAddr
}

// routesChanged takes the messages of a batch; whole false: a message is lost; stale: all must be read.
func (s *space) routesChanged(b *batch) (whole, stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, left := len(s.table.noted), s.table.left
	whole = b.each(func(datagram []byte) {
		eachMessage(datagram, func(kind, flags uint16, body []byte) {
			stale = s.routeChanged(kind, flags, body) || stale
		})
	})
	s.table.settleNextHops()
	if len(s.table.noted) > before || s.table.left != left {
		signal(s.changed)
	}
	return whole, stale
}

// routeChanged takes one, and returns whether all must be read. The lock is held.
func (s *space) routeChanged(kind, flags uint16, body []byte) (stale bool) {
	var m message
	var c change
	switch kind {
	case unix.RTM_NEWNEXTHOP, unix.RTM_DELNEXTHOP:
		s.table.setNextHop(body, kind == unix.RTM_NEWNEXTHOP)
	case unix.RTM_DELROUTE:
		if m.decode(body) {
			c = s.table.deleteRoute(&m)
		}
	case unix.RTM_NEWROUTE:
		if m.decode(body) {
			c = s.table.setRoute(&m, flags)
		}
	}
	if c.best {
		s.table.note(c.prefix)
	}
	return c.stale
}

func (s *space) neighbourChanged(u *netlink.NeighUpdate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, news := s.table.setNeighbour(&u.Neigh, u.Type != unix.RTM_DELNEIGH); news {
		s.others[n] = true
		signal(s.changed)
	}
}
