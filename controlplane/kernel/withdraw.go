// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// What the kernel was given is withdrawn when its clone leaves the configuration. Otherwise routing daemons would
// attract subscribers' traffic into a namespace that does not forward. When the control plane ends all stays, since the
// data plane forwards on. The record lets its successor withdraw it, even if its configuration does not name the
// namespace.

// Given is what namespaces were given, beside routes, which bear our protocol: by namespace and device its addresses.
type Given map[string]map[string][]netip.Prefix

// memory is what the kernel was given, and what the configuration wants.
type memory struct {
	lock          sync.Mutex
	given, wanted Given
	save          func(Given) error
}

// Remember begins with the former control plane's record; save stores ours.
func (k *Kernel) Remember(given Given, save func(Given) error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.given, k.save = given, save
}

func givenOf(clones []Clone) Given {
	g := Given{}
	for i := range clones {
		c := &clones[i]
		if g[c.Namespace] == nil {
			g[c.Namespace] = map[string][]netip.Prefix{}
		}
		g[c.Namespace][c.Device] = c.Addresses
	}
	return g
}

// add makes a union.
func (g Given) add(more Given) Given {
	all := maps.Clone(g)
	if all == nil {
		all = Given{}
	}
	for name, devices := range more {
		both := maps.Clone(all[name])
		if both == nil {
			both = map[string][]netip.Prefix{}
		}
		for device, list := range devices {
			union := slices.Values(slices.Concat(both[device], list))
			both[device] = slices.Compact(slices.SortedFunc(union, comparePrefixes))
		}
		all[name] = both
	}
	return all
}

// remember stores the wanted part before it is given, and returns the former.
func (m *memory) remember(wanted Given) (before Given, err error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	before = m.given
	m.wanted = wanted
	return before, m.change(before.add(wanted))
}

// settled: a namespace has exactly the configuration's part.
func (m *memory) settled(name string) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	now := maps.Clone(m.given)
	if wanted := m.wanted[name]; wanted != nil {
		now[name] = wanted
	} else {
		delete(now, name)
	}
	return m.change(now)
}

func (m *memory) change(now Given) error {
	if m.save == nil || reflect.DeepEqual(m.given, now) {
		m.given = now
		return nil
	}
	m.given = now
	return m.save(now)
}

// ---- of a namespace -------------------------------------------------------------------------------------------------

// settle has what is not the configuration's any more forgotten, if all of it was taken back.
func (s *space) settle() {
	s.mu.Lock()
	done := len(s.former) == 0 && s.owing && !s.left
	s.owing = s.owing && !done
	s.mu.Unlock()
	if !done {
		return
	}
	if err := s.memory.settled(s.name); err != nil {
		s.log.Error("it is not kept what the kernel was given", "error", err)
	}
}

// takeFormer withdraws routes and addresses of former clones, and former addresses of present ones.
func (s *space) takeFormer(h *netlink.Handle) {
	s.mu.Lock()
	former := maps.Clone(s.former)
	is := map[string][]netip.Prefix{}
	for i := range s.clones {
		is[s.clones[i].Device] = s.clones[i].Addresses
	}
	s.mu.Unlock()
	for device, list := range former {
		wanted, clone := is[device]
		list = slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool {
			return slices.Contains(wanted, p)
		})
		if err := takeBack(h, device, list, !clone); err != nil {
			s.log.Warn("the kernel does not give back what the configuration has no more", "device", device,
				"error", err)
			continue
		}
		s.mu.Lock()
		delete(s.former, device)
		s.mu.Unlock()
	}
	s.settle()
}

// takeBack takes addresses from a device, or with all: the device, if the data plane could have made it.
func takeBack(h *netlink.Handle, name string, addresses []netip.Prefix, all bool) error {
	l, err := h.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return err
	}
	if all && l.Type() == "tuntap" {
		return gone(h.LinkDel(l))
	}
	for _, p := range addresses {
		err = errors.Join(err, gone(h.AddrDel(l, &netlink.Addr{IPNet: ipNet(p)})))
	}
	return err
}

// gone returns an error, unless it means that the object is already absent.
func gone(err error) error {
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// withdraw takes back all that the namespace was given; it tries until ctx ends, or the configuration names it again.
func (s *space) withdraw(ctx context.Context) {
	told := ""
	for {
		err := s.takeAll()
		if err == nil || errors.Is(err, fs.ErrNotExist) { // the namespace took it along
			if err := s.memory.settled(s.name); err != nil {
				s.log.Error("it is not kept what the kernel was given", "error", err)
			}
			return
		}
		if text := err.Error(); text != told {
			told = text
			s.log.Warn("what the kernel was given is not taken back", "error", err)
		}
		select {
		case <-time.After(retry):
		case <-s.back:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *space) takeAll() error {
	ns, _, err := s.open()
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
	routes, err := whole(func() ([]netlink.Route, error) { return given(h.Handle) })
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	var all error
	for i := range routes {
		all = errors.Join(all, gone(h.RouteDel(&routes[i])))
	}
	for device, list := range (Given{s.name: s.former}).add(givenOf(s.clones))[s.name] {
		all = errors.Join(all, takeBack(h.Handle, device, list, true))
	}
	return all
}
