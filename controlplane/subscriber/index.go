// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/rules"
)

// index finds subscribers. by seid also has those with an end not counted yet. The others have subscribers on line
// only: the oldest, and later ones in rings.
type index struct {
	seid map[uint64]*Subscriber
	line map[access.Line]*Subscriber
	user map[string]*Subscriber
}

// The rings that a subscriber is in.
const (
	ofLine = iota
	ofUser
	rings
)

// ring is a subscriber's place in one: nil, nil in none.
type ring struct{ next, back *Subscriber }

func newIndex() index {
	return index{map[uint64]*Subscriber{}, map[access.Line]*Subscriber{}, map[string]*Subscriber{}}
}

// lineKey omits what does not identify a line.
func lineKey(l *access.Line) access.Line {
	key := *l
	key.TPID = 0
	return key
}

func (x *index) add(s *Subscriber) {
	x.seid[s.seid] = s
	join(x.line, lineKey(&s.at.line), s, ofLine)
	join(x.user, s.user, s, ofUser)
}

// leave removes a subscriber that is no longer on line.
func (x *index) leave(s *Subscriber) {
	leave(x.line, lineKey(&s.at.line), s, ofLine)
	leave(x.user, s.user, s, ofUser)
}

func join[K comparable](m map[K]*Subscriber, key K, s *Subscriber, of int) {
	first := m[key]
	if first == nil {
		m[key], first = s, s
		s.rings[of].back = s
	}
	last := first.rings[of].back
	s.rings[of] = ring{first, last}
	last.rings[of].next, first.rings[of].back = s, s
}

func leave[K comparable](m map[K]*Subscriber, key K, s *Subscriber, of int) {
	at := s.rings[of]
	switch {
	case at.next == nil:
		return
	case at.next == s:
		delete(m, key)
	case m[key] == s:
		m[key] = at.next
	}
	at.next.rings[of].back, at.back.rings[of].next = at.back, at.next
	s.rings[of] = ring{}
}

// ringOf is a ring from its oldest on, up to a bound.
func ringOf(first *Subscriber, of, most int) (list []*Subscriber) {
	for s := first; s != nil && len(list) < most; {
		list = append(list, s)
		if s = s.rings[of].next; s == first {
			break
		}
	}
	return list
}

// forget removes a counted subscriber.
func (x *index) forget(s *Subscriber) {
	x.leave(s)
	if x.seid[s.seid] == s {
		delete(x.seid, s.seid)
	}
}

// all are those on line, in no order.
func (x *index) all(yield func(*Subscriber) bool) {
	for _, s := range x.seid {
		if !s.ending && !yield(s) {
			return
		}
	}
}

// freshSEID returns an unused SEID; the session layer makes sure.
func (x *index) freshSEID() uint64 {
	for {
		var b [8]byte
		rand.Read(b[:]) // never fails (crypto/rand)
		if v := binary.BigEndian.Uint64(b[:]); v != 0 && x.seid[v] == nil {
			return v
		}
	}
}

// find are the subscribers of a name, MAC address, IP address or prefix, circuit id, line, session id, or session
// object.
func (x *index) find(what string) (list []*Subscriber) {
	seid, object := rules.SEIDOf(what)
	if !object {
		seid = seidOf(what)
	}
	if s := x.seid[seid]; s != nil && !s.ending {
		return []*Subscriber{s}
	}
	if list = ringOf(x.user[what], ofUser, math.MaxInt); len(list) > 0 {
		return list
	}
	addr, _ := netip.ParseAddr(what)
	prefix, _ := netip.ParsePrefix(what)
	for s := range x.all {
		if s.is(what, addr, prefix) {
			list = append(list, s)
		}
	}
	return list
}

func (s *Subscriber) is(word string, addr netip.Addr, prefix netip.Prefix) bool {
	a := &s.addresses
	switch {
	case addr.IsValid():
		return a.IPv4 == addr || a.IPv6.Contains(addr) || a.Delegated.Contains(addr)
	case prefix.IsValid():
		return a.IPv6 == prefix || a.Delegated == prefix || hostOf(a.IPv4) == prefix
	}
	return strings.EqualFold(macText(s.at.line.MAC), word) || strings.EqualFold(LineText(&s.at.line), word) ||
		strings.EqualFold(string(s.at.agent.CircuitID), word) || strings.EqualFold(s.user, word)
}

// selected are the subscribers that a RADIUS server means.
func (x *index) selected(sel *aaa.Selector) (list []*Subscriber) {
	match := func(s *Subscriber) bool {
		return (sel.Instance == "" || sel.Instance == s.plan.Instance) &&
			sel.Matches(&s.at.line, s.ID(), s.user, &s.addresses, s.plan.CUI)
	}
	if sel.Session != "" {
		if s := x.seid[seidOf(sel.Session)]; s != nil && !s.ending && match(s) {
			list = append(list, s)
		}
		return list
	}
	if sel.User != "" {
		for _, s := range ringOf(x.user[sel.User], ofUser, math.MaxInt) {
			if match(s) {
				list = append(list, s)
			}
		}
		return list
	}
	for s := range x.all {
		if match(s) {
			list = append(list, s)
		}
	}
	return list
}

func (s *Subscriber) about() string {
	if s.user != "" {
		return s.user
	}
	return macText(s.at.line.MAC)
}

func macText(mac [6]byte) string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5])
}

// LineText is a line as people write it: PORT:STAG.CTAG.
func LineText(l *access.Line) string {
	switch {
	case l.STag == 0:
		return l.Port
	case l.CTag == 0:
		return l.Port + ":" + strconv.Itoa(int(l.STag))
	}
	return l.Port + ":" + strconv.Itoa(int(l.STag)) + "." + strconv.Itoa(int(l.CTag))
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func prefixText(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}
