// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"net/netip"
	"time"

	"isthmus/controlplane/access"
)

// Host is access.Host that knows the addresses of ports.
type Host interface {
	access.Host
	Port(name string) access.PortAddresses
}

// Server is the front end.
type Server struct {
	host Host
	c    Config
	// Upstream sends to a server of a port with Upstream; set before the first frame of one.
	Upstream  func(server netip.AddrPort, packet []byte) error
	Upstream6 func(server netip.AddrPort, packet []byte) error // the same for DHCPv6

	subscribers map[key]*subscriber
	vlans       map[key]int    // MACs of a VLAN; mac is zero
	circuits    map[string]int // subscribers of a trusted circuit id
	relays      map[relayKey]*subscriber
	relays6     map[relayKey6]*subscriber
	waiting     int       // sign-ins under way
	refusals    []refusal // that are remembered for Limits.Retry, the oldest first
	counts      [whys]uint64
}

// key is one subscriber's line: mac is zero where the VLAN is one subscriber's.
type key struct {
	port       string
	sTag, cTag uint16
	mac        [6]byte
}

// New makes a front end without subscribers.
func New(host Host, c Config) *Server {
	return &Server{host: host, c: c, subscribers: map[key]*subscriber{}, vlans: map[key]int{},
		circuits: map[string]int{}, relays: map[relayKey]*subscriber{}, relays6: map[relayKey6]*subscriber{}}
}

// Configure sets the configuration of later frames. Subscribers stay as long as their leases, also of ports that serve
// none any more.
func (s *Server) Configure(c Config) { s.c = c }

func (s *Server) count(w why) { s.counts[w]++ }

// Frame takes what the data plane punted.
func (s *Server) Frame(f *access.Frame) {
	if f.Reason == access.PortChanged {
		s.introduce(f.Line.Port)
		return
	}
	p, ok := s.c.PortOf(&f.Line)
	if !ok || f.Line.MAC[0]&1 != 0 {
		s.count(disabled)
		return
	}
	switch f.Reason {
	case access.DHCP:
		s.frame4(&p, f)
	case access.DHCPv6, access.RouterSolicitation:
		s.frame6(&p, f)
	case access.FirstPacket:
		s.first(&p, f)
	case access.NeighbourAnswer:
		if s.find(&p, &access.Request{Kind: access.Packet, Line: f.Line}, known) == nil {
			s.count(notTheirs)
		}
	default:
		s.count(disabled)
	}
}

// reject counts a message, and publishes an event where its line is attached otherwise than configured.
func (s *Server) reject(kind access.Kind, f *access.Frame, w why) {
	if w == otherServer { // nothing is wrong with it
		s.count(w)
		return
	}
	s.refuse(&access.Request{Kind: kind, Line: f.Line}, w, words[w][1])
}

// refuse counts a message that gets nothing, and publishes its line's owner and the reason.
func (s *Server) refuse(r *access.Request, w why, why string) {
	s.count(w)
	s.host.Failed(r, why)
}

// refuse is the server's for a subscriber that it knows.
func (u *subscriber) refuse(kind access.Kind, w why, why string) {
	u.s.refuse(&access.Request{Kind: kind, Line: u.line}, w, why)
}

func (s *Server) keyOf(p *Port, l *access.Line) key {
	k := key{l.Port, l.STag, l.CTag, l.MAC}
	if p.OneToOne {
		k.mac = [6]byte{}
	}
	return k
}

// need is what a message takes of its line.
type need uint8

const (
	known need = iota // an existing subscriber
	made              // one is made
	begun             // with it one begins, so another MAC on a 1:1 line is another device
)

// find returns the subscriber of a line, created if needed and within limits; nil: none. r has the kind of the message,
// its line, and the access node's tags.
func (s *Server) find(p *Port, r *access.Request, n need) *subscriber {
	k := s.keyOf(p, &r.Line)
	u := s.subscribers[k]
	if u != nil {
		// Two devices must not throw each other out all the time.
		young := s.host.Now().Sub(u.since) < s.c.Limits.Retry
		w, replaced := taken, p.Replace && n == begun && !young
		same := u.line.MAC == r.Line.MAC
		if same {
			w, replaced = circuitChanged, n != known && (u.denied || p.Moves && !young)
			same = !u.elsewhere(r)
		}
		switch {
		case same:
			u.alive()
			u.learn(r)
			return u
		case !replaced:
			why := "another MAC address is on the 1:1 line"
			if w == circuitChanged {
				why = "another circuit id than that of the line's session"
			}
			s.refuse(r, w, why)
			return nil
		}
		u.end(access.LostCarrier)
	}
	if n == known {
		return nil
	}
	vlan := key{port: r.Line.Port, sTag: r.Line.STag, cTag: r.Line.CTag}
	if key := s.full(vlan, r); key != "" {
		s.refuse(r, tooMany, "as many subscribers as dhcp.limits."+key+" lets in")
		return nil
	}
	now := s.host.Now()
	u = &subscriber{s: s, key: k, line: r.Line, since: now, until: now.Add(s.c.Limits.Offer)}
	u.alive()
	s.add(u)
	u.learn(r)
	u.sleep()
	return u
}

// full is the key of the limit that a new subscriber would be above; empty: none.
func (s *Server) full(vlan key, r *access.Request) string {
	switch limits := &s.c.Limits; {
	case s.vlans[vlan] >= int(limits.PerVLAN):
		return "per_vlan"
	case s.circuits[circuitOf(r)] >= int(limits.PerCircuit):
		return "per_circuit"
	case len(s.subscribers) >= int(limits.Subscribers) && !s.makeRoom():
		return "subscribers"
	}
	return ""
}

// refusal is a line that was refused.
type refusal struct {
	u     *subscriber
	until time.Time
}

// makeRoom forgets the line refused first, so that a flood of made-up MAC addresses does not block other lines:
// admission bounds how many sign in.
func (s *Server) makeRoom() bool {
	for len(s.refusals) > 0 {
		u := s.refusals[0].u
		s.refusals[0], s.refusals = refusal{}, s.refusals[1:]
		if !u.dead && u.denied && u.session == nil && u.cancel == nil {
			u.leave()
			return true
		}
	}
	return false
}

// refused remembers one more.
func (s *Server) refused(u *subscriber) {
	s.pardon()
	s.refusals = append(s.refusals, refusal{u, u.until})
}

// pardon forgets the refusals whose time is over.
func (s *Server) pardon() {
	for now := s.host.Now(); len(s.refusals) > 0; s.refusals = s.refusals[1:] {
		if r := &s.refusals[0]; !r.u.dead && now.Before(r.until) {
			return
		}
		s.refusals[0] = refusal{}
	}
	s.refusals = nil
}

func (s *Server) add(u *subscriber) {
	s.subscribers[u.key] = u
	s.vlans[key{port: u.key.port, sTag: u.key.sTag, cTag: u.key.cTag}]++
	if u.circuit != nil {
		s.circuits[u.circuit.counted]++
	}
}

func (s *Server) remove(u *subscriber) {
	v4{u}.forget()
	v6{u}.forget()
	s.pardon()
	if s.subscribers[u.key] != u {
		return
	}
	delete(s.subscribers, u.key)
	less(s.vlans, key{port: u.key.port, sTag: u.key.sTag, cTag: u.key.cTag})
	if u.circuit != nil {
		less(s.circuits, u.circuit.counted)
	}
}

func less[K comparable](m map[K]int, k K) {
	if m[k]--; m[k] <= 0 {
		delete(m, k)
	}
}

// first signs the sender of a packet in: a static subscriber gets a session, but no answer.
func (s *Server) first(p *Port, f *access.Frame) {
	from, ok := source(f)
	if !p.FirstPacket || !ok || from.Is4() && !p.V4 || from.Is6() && !p.V6 {
		s.count(disabled)
		return
	}
	u := s.find(p, &access.Request{Kind: access.Packet, Line: f.Line}, made)
	if u == nil || u.session != nil { // known, and the packet is not of its address
		s.count(notTheirs)
		return
	}
	u.firstPacket(from)
}

// source is the sender's address of an IP or ARP packet. A link-local address only counts in a neighbour solicitation:
// the host asks for a router that it had before.
func source(f *access.Frame) (a netip.Addr, ok bool) {
	b := f.Payload
	switch {
	case f.EtherType == ethernetIPv4 && len(b) >= 20 && b[0]>>4 == 4:
		a = netip.AddrFrom4([4]byte(b[12:16]))
	case f.EtherType == ethernetARP && len(b) >= 28 && binary.BigEndian.Uint64(b)>>16 == 0x000108000604:
		a = netip.AddrFrom4([4]byte(b[14:18]))
	case f.EtherType == ethernetIPv6 && len(b) >= 40 && b[0]>>4 == 6:
		a = netip.AddrFrom16([16]byte(b[8:24]))
		if a.IsLinkLocalUnicast() && b[6] == protocolICMP && len(b) > 40 && b[40] == neighbourSolicitation {
			return a, true
		}
	}
	return a, a.IsGlobalUnicast()
}
