// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Announcements: blackhole routes of our protocol in the namespaces of clones, for prefixes of subscribers. Routing
// daemons redistribute them; the kernel itself forwards nothing there. They exist while the data plane holds the
// intent, and survive the control plane, as forwarding does.

// announceMetric is below the metric of routing daemons (zebra: 20), so that an announcement is never shadowed by the
// same prefix learnt from another gateway.
const announceMetric = 1

// announcements of one namespace.
type announcements struct {
	decided  bool                  // false: what a control plane before this one left stays
	on       bool                  // they are in the kernel
	sessions map[netip.Prefix]bool // beside the clones' own
	pending  map[netip.Prefix]bool // of sessions: not given to the kernel yet
	whole    bool                  // nor is anything else
	told     chan struct{}
}

func newAnnouncements() announcements {
	return announcements{sessions: map[netip.Prefix]bool{}, pending: map[netip.Prefix]bool{},
		told: make(chan struct{}, 1)}
}

// Announce puts the announcements into the kernel, or withdraws them. Before the first call existing ones stay.
func (k *Kernel) Announce(on bool) {
	k.decided, k.on = true, on
	for _, s := range k.spaces {
		s.announce(on)
	}
}

// Sessions sets which prefixes of sessions are announced in which namespace (false: no more); all: no others.
func (k *Kernel) Sessions(all bool, changes map[string]map[netip.Prefix]bool) {
	for name, s := range k.spaces {
		s.announceSessions(all, changes[name])
	}
}

func (s *space) announce(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &s.announced
	if a.decided && a.on == on {
		return
	}
	a.decided, a.on, a.whole = true, on, true
	signal(a.told)
}

func (s *space) announceSessions(all bool, changes map[netip.Prefix]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &s.announced
	if all {
		clear(a.sessions)
		clear(a.pending)
		a.whole = true
	}
	for p, there := range changes {
		if there {
			a.sessions[p] = true
		} else {
			delete(a.sessions, p)
		}
		a.pending[p] = true
	}
	if all || len(changes) > 0 {
		signal(a.told)
	}
}

// giveAnnouncements gives the kernel what is new of sessions; false: all is to be compared.
func (s *space) giveAnnouncements(h *netlink.Handle) bool {
	s.mu.Lock()
	a := &s.announced
	wanted := map[netip.Prefix]bool{}
	whole := a.whole || !a.on
	if !whole {
		own := s.ownAnnouncements()
		for p := range a.pending {
			wanted[p] = a.sessions[p] || own[p]
		}
		clear(a.pending)
		s.tellAnnounced()
	}
	s.mu.Unlock()
	var all error
	for p, there := range wanted {
		all = errors.Join(all, announceOne(h, p, there))
	}
	if all != nil {
		s.log.Warn("the kernel does not take announcements", "error", all)
	}
	return !whole
}

// ownAnnouncements are the configuration's.
func (s *space) ownAnnouncements() map[netip.Prefix]bool {
	own := map[netip.Prefix]bool{}
	for i := range s.clones {
		for _, p := range s.clones[i].Announced {
			own[p] = true
		}
	}
	return own
}

// announcements are those that the kernel should have; not decided: leave existing ones.
func (s *space) announcements() (wanted map[netip.Prefix]bool, decided bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &s.announced
	a.whole = false
	clear(a.pending)
	wanted = map[netip.Prefix]bool{}
	if a.on {
		wanted = s.ownAnnouncements()
		maps.Copy(wanted, a.sessions)
	}
	s.tellAnnounced()
	return wanted, a.decided
}

// tellAnnounced brings the number of announcements up to date.
func (s *space) tellAnnounced() {
	count := 0
	if a := &s.announced; a.on {
		count = len(a.sessions)
		for p := range s.ownAnnouncements() {
			if !a.sessions[p] {
				count++
			}
		}
	}
	if s.state.Announced != count {
		s.state.Announced = count
		signal(s.changed)
	}
}

func announceOne(h *netlink.Handle, p netip.Prefix, there bool) error {
	r := &netlink.Route{Dst: ipNet(p), Type: unix.RTN_BLACKHOLE, Protocol: protocol, Priority: announceMetric}
	if there {
		if err := h.RouteReplace(r); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		return nil
	}
	if err := h.RouteDel(r); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("without %s: %w", p, err)
	}
	return nil
}
