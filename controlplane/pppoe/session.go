// SPDX-License-Identifier: Apache-2.0

package pppoe

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/ppp"
)

// session is one subscriber, from PADS to PADT: the owner of its link (ppp.Env), and the front end's side of an
// access.Session (access.Client).
type session struct {
	server  *Server
	config  *Config
	port    *port
	link    ppp.Link
	session access.Session // nil until it is let in
	v6      Link6          // nil until IPv6CP is open
	pending *pending       // until it is let in
	older   *session       // of the same MAC
	relay   []byte         // Relay-Session-Id
	circuit string         // trusted circuit id of its access node; empty: not known
	waits   waits
	peer6   uint64 // interface identifier that v6 knows
	key
	spoke    int64  // slot of underWay; 0: it is not among them
	cookie   uint32 // its number; 0 after a restart
	tpid     uint16
	halfOpen bool
	removed  bool
	relayed  bool            // access.BearerState has it
	passing  access.Families // families whose packets pass, as reported to the owner of sessions
	extra    access.Families // that v6 wants to pass
}

// pending is what is needed for sign-in alone.
type pending struct {
	agent   access.Agent
	service string
	mru     uint16
	quiet   bool // not a word of PPP yet, from either end
	cancel  func()
	request *access.Request
}

func (x *session) line() access.Line {
	return access.Line{Port: x.port.name, TPID: x.tpid, STag: x.sTag, CTag: x.cTag, MAC: x.mac}
}

// add makes a session known.
func (s *Server) add(x *session, halfOpen bool) {
	s.sessions[x.key] = x
	x.older = s.peers[x.peer]
	s.peers[x.peer] = x
	x.port.sessions++
	at := s.lines[x.lineKey]
	at.sessions++
	if halfOpen {
		x.halfOpen = true
		s.halfOpen++
		at.halfOpen++
		s.spoke(x, false)
	}
	s.lines[x.lineKey] = at
}

// speak begins PPP.
func (x *session) speak() {
	if p := x.pending; p != nil && p.quiet {
		p.quiet = false
		x.link.Start(x, &x.config.PPP, ppp.Server, p.mru)
	}
}

// expire is called when the time has come that Wake was asked for.
func (x *session) expire() {
	x.speak()
	x.link.Expire()
}

// settled: it is half open no more.
func (x *session) settled() {
	if x.halfOpen {
		x.halfOpen = false
		x.server.halfOpen--
		x.server.spoke(x, true)
		at := x.server.lines[x.lineKey]
		at.halfOpen--
		x.server.lines[x.lineKey] = at
	}
}

// remove forgets a session.
func (x *session) remove() {
	if x.removed {
		return
	}
	x.removed = true
	s := x.server
	x.settled()
	s.wheel.remove(x)
	delete(s.sessions, x.key)
	if s.peers[x.peer] == x {
		if x.older == nil {
			delete(s.peers, x.peer)
		} else {
			s.peers[x.peer] = x.older
		}
	} else {
		for y := s.peers[x.peer]; y != nil; y = y.older {
			if y.older == x {
				y.older = x.older
			}
		}
	}
	x.port.sessions--
	at := s.lines[x.lineKey]
	if at.sessions--; at.sessions == 0 {
		delete(s.lines, x.lineKey)
	} else {
		s.lines[x.lineKey] = at
	}
	s.gone.expire(s.now())
	s.gone.add(x.key, s.now()+x.config.Quarantine)
	if x.v6 != nil {
		x.v6.Closed(false)
	}
}

// end ends it from this end: the subscriber and the owner of sessions are notified.
func (x *session) end(cause access.Cause, why string) {
	x.link.Abort()
	x.Closed(cause, why)
}

// ---- ppp.Env --------------------------------------------------------------------------------------------------------

// Send puts the header there.
func (x *session) Send(protocol uint16, packet []byte) {
	s := x.server
	b := s.buffer[:headerSize+2+len(packet)]
	AppendHeader(b[:0], 0, x.id)
	binary.BigEndian.PutUint16(b[headerSize:], protocol)
	if len(packet) > 0 && &packet[0] != &b[headerSize+2] {
		copy(b[headerSize+2:], packet)
	}
	s.frame = access.Frame{Line: x.line(), EtherType: EtherSession, Payload: Finish(b)}
	s.host.Send(&s.frame)
}

// Wake puts the session into the wheel.
func (x *session) Wake(at time.Duration) {
	if x.removed {
		return
	}
	x.server.wheel.put(x, at)
	x.server.ticks()
}

// Authenticate signs in.
func (x *session) Authenticate(c *access.Credentials) {
	p := x.pending
	if p.cancel != nil {
		p.cancel()
	}
	p.request = x.request(c)
	p.cancel = x.server.host.SignIn(p.request, x, x.signedIn)
}

func (x *session) request(c *access.Credentials) *access.Request {
	wants := access.Families{V4: true, V6: true, Delegated: true}
	if x.relayed {
		wants.V6, wants.Delegated = false, false
	}
	return &access.Request{Kind: access.PPPoE, Line: x.line(), PPPoE: x.id, Agent: x.pending.agent, Credentials: *c,
		Service: x.pending.service, Wants: wants}
}

func (x *session) signedIn(s access.Session, v *access.Verdict) {
	if x.removed {
		if s != nil {
			s.Down(access.LostCarrier)
		}
		return
	}
	x.pending.cancel = nil
	r := ppp.Result{Accept: s != nil, Silent: v.Silent || v.Proven, Why: v.Why, Message: v.Message,
		Success: v.Success, Failure: v.Failure}
	if s != nil {
		x.session = s
		r.Network = x.network()
		if r.Network.Families != (access.Families{}) {
			// Packets pass before the subscriber gets the answer: none of its first ones is lost.
			x.pass(r.Network.Families, func(err error) {
				if err == nil {
					x.link.Authenticated(&r)
				}
			})
			return
		}
		r.Accept, r.Silent, r.Why = false, true, without(&v.Plan)
	}
	x.link.Authenticated(&r)
}

// without says why a plan has no address: it names no pool of a family that PPP opens by itself.
func without(p *access.Plan) string {
	if p.PoolPD != "" {
		return fmt.Sprintf("no address: profile %q has pool_delegated %q alone; name pool_ipv4 or pool_ipv6",
			p.Profile, p.PoolPD)
	}
	return fmt.Sprintf("no address: profile %q names no pool (pool_ipv4, pool_ipv6), and authentication gave none",
		p.Profile)
}

// network is what the subscriber got, in PPP's words.
func (x *session) network() (n ppp.Network) {
	a := x.session.Grant().Addresses
	if n.V4 = a.IPv4.Is4(); n.V4 {
		n.Remote = a.IPv4.As4()
		if a.Gateway.Is4() {
			n.Local = a.Gateway.As4()
		}
	}
	n.V6 = a.IPv6.IsValid() || a.Delegated.IsValid() || x.relayed
	dns := 0
	for _, server := range a.DNS {
		if server.Is4() && dns < len(n.DNS) {
			n.DNS[dns] = server.As4()
			dns++
		}
	}
	n.RemoteID = a.InterfaceID
	for n.RemoteID == 0 || n.RemoteID == x.config.PPP.ID {
		n.RemoteID = x.server.random.Uint64()
	}
	n.Fixed = x.session.Grant().Plan.InterfaceID != 0
	return n
}

// Network is called by the link with the open families. A closed family's packets are dropped; a refused address is
// returned.
func (x *session) Network(f access.Families) {
	if x.session == nil || x.removed {
		return
	}
	if f != (access.Families{}) {
		if x.halfOpen {
			x.server.counts[signedIn]++
			x.settled()
		}
		x.pending = nil
	}
	x.session.Keep(x.state())
	if possible := x.link.Possible(); x.passes(possible) != x.passing {
		x.pass(possible, func(err error) {
			if a, n := x.session.Grant().Addresses, x.link.Network(); err == nil {
				x.session.Want(access.Families{V4: n.V4, V6: n.V6 && a.IPv6.IsValid(),
					Delegated: n.V6 && a.Delegated.IsValid()}, nil, func(error) {})
			}
		})
	}
	x.serve6(f.V6, nil)
}

// passes are the families of packets that pass where PPP has these.
func (x *session) passes(f access.Families) access.Families {
	own := !x.relayed && x.session.Grant().Addresses.IPv6.IsValid()
	return access.Families{V4: f.V4, V6: f.V6 && (own || x.extra.V6),
		Delegated: f.V6 && x.extra.Delegated}
}

// pass reports to the owner of sessions which packets pass now, where PPP has these families.
func (x *session) pass(f access.Families, done func(error)) {
	x.passing = x.passes(f)
	alive := access.KeepAlive{Magic: x.link.Magic(), Interval: x.config.KeepAlive.Interval,
		Count: x.config.KeepAlive.Count}
	x.session.Up(x.passing, x.link.MTU(), alive, func(err error) {
		if err != nil {
			x.pending = nil // its owner has noted why
			x.end(access.NASError, "the data plane: "+err.Error())
		}
		if done != nil {
			done(err)
		}
	})
}

// serve6 begins or ends router advertisements and DHCPv6. kept is of a former Link6, before a restart.
func (x *session) serve6(on bool, kept []byte) {
	switch {
	case on && x.server.v6 != nil:
		if x.v6 == nil {
			x.v6 = x.server.v6(x.session, x.line(), x,
				access.BearerState{Relayed: x.relayed, Passing: x.extra, Kept: kept})
		}
		if n := x.link.Network(); n.RemoteID != x.peer6 {
			x.peer6 = n.RemoteID
			x.v6.Opened(linkLocal(n.LocalID), linkLocal(n.RemoteID))
		}
	case !on && x.v6 != nil:
		x.v6.Closed(true)
		x.v6, x.extra, x.peer6 = nil, access.Families{}, 0
	}
}

func linkLocal(id uint64) netip.Addr {
	b := [16]byte{0xfe, 0x80}
	binary.BigEndian.PutUint64(b[8:], id)
	return netip.AddrFrom16(b)
}

// ---- access.Bearer --------------------------------------------------------------------------------------------------

// SendIPv6 drops what is longer than the link's MTU.
func (x *session) SendIPv6(packet []byte) {
	if !x.removed && len(packet) <= int(x.link.MTU()) {
		x.Send(ppp.IPv6, append(x.config.PPP.Buffer, packet...))
	}
}

// PassIPv6 permits DHCPv6's addresses, and router advertisements' prefixes.
func (x *session) PassIPv6(f access.Families, done func(error)) {
	if !x.removed {
		x.extra = f
		x.session.Keep(x.state())
		x.pass(x.link.Possible(), done)
	}
}

// KeepIPv6 stores v6's present State.
func (x *session) KeepIPv6() {
	if !x.removed {
		x.session.Keep(x.state())
	}
}

// ---- ends -----------------------------------------------------------------------------------------------------------

// Closed is the link's end.
func (x *session) Closed(cause access.Cause, why string) {
	if x.removed {
		return
	}
	x.sendPADT()
	x.remove()
	p := x.pending // nil: it was on line
	if x.session != nil {
		x.session.Down(cause)
	}
	switch {
	case p == nil:
	case p.request == nil:
		x.server.host.Failed(x.request(&access.Credentials{}), why)
	case p.cancel != nil:
		p.cancel()
		x.server.host.Failed(p.request, why)
	case x.session != nil:
		x.server.host.Failed(p.request, why)
	} // else SignIn refused, which its owner knows
}

func (x *session) sendPADT() {
	s, line := x.server, x.line()
	s.counts[padtSent]++
	s.send(&line, Finish(AppendTag(s.packet(PADT, x.id), TagRelay, x.relay)))
}

// ---- access.Client --------------------------------------------------------------------------------------------------

// Ended from outside: the session is gone already.
func (x *session) Ended(access.Cause) {
	if !x.removed {
		x.link.Abort()
		x.sendPADT()
		x.remove()
	}
}

// Replanned changes nothing that PPP has agreed on.
func (x *session) Replanned() {}

// Silent subscribers are gone.
func (x *session) Silent() { x.end(access.LostCarrier, "keep-alive failed") }
