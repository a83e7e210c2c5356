// SPDX-License-Identifier: Apache-2.0

// Package pppoe is the access concentrator of PPPoE (RFC 2516): discovery, sessions, sign-in. It is a front end of
// access: one goroutine, that of access.Host, calls it and is called by it.
package pppoe

import (
	crand "crypto/rand"
	"math/rand/v2"
	"net/netip"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/bucket"
	"isthmus/controlplane/config"
	"isthmus/controlplane/ppp"
)

// EtherTypes of PPPoE.
const (
	EtherDiscovery = 0x8863
	EtherSession   = 0x8864
)

// Config of a Server: the configuration's section, and other options. A limit of 0 is none.
type Config struct {
	config.AccessPPPoE
	PPP        ppp.Config
	MaxPayload map[string]uint16 // of a port: largest PPP packet where that is not 1492; at most 1500 (RFC 4638)
	Delay      time.Duration     // before a PADO, so that another concentrator is first
	// PortOf is how a line is served; nil: as the zero Port.
	PortOf     func(l *access.Line) Port
	Begin      int           // sessions without network protocol that spoke in the last second: more PADI wait
	Quarantine time.Duration // before a MAC may have a session id again
	Strangers  int           // PADTs a second to frames of sessions that are not known
}

// Port is how lines of an access port, or of some of its VLANs, are served.
type Port struct {
	Relayed bool // IPv6 addresses come from DHCPv6 servers, behind sign-in
	Trusted bool // access nodes' tags are trusted
	Moves   bool // a dial from another circuit is answered at once; else it waits until the old session has ended
}

var methods = map[string]access.Method{"pap": access.PAP, "chap": access.CHAP, "mschapv2": access.MSCHAPv2}

// ConfigOf is a section, and values for a large concentrator.
func ConfigOf(p *config.AccessPPPoE) Config {
	c := Config{AccessPPPoE: *p, PPP: ppp.DefaultConfig(), Begin: 2048, Quarantine: 10 * time.Second,
		Strangers: 2000}
	c.PPP.Name = p.ACName
	if len(p.Auth) > 0 {
		c.PPP.Methods = nil
	}
	for _, word := range p.Auth {
		if word != "none" {
			c.PPP.Methods = append(c.PPP.Methods, methods[word])
		}
	}
	return c
}

// Link6 is IPv6 over a session: router advertisements and DHCPv6.
type Link6 interface {
	Packet(ipv6 []byte) // punted; nothing in it is checked
	Opened(local, peer netip.Addr)
	Closed(tell bool) // true: the link is still there
	State() []byte    // to continue after a restart: at most 255 octets
}

// IPv6 makes a Link6.
type IPv6 func(s access.Session, line access.Line, b access.Bearer, was access.BearerState) Link6

// key is what the data plane knows a session by.
type key struct {
	peer
	id uint16
}

// peer is a MAC on a line.
type peer struct {
	lineKey
	mac [6]byte
}

type lineKey struct{ port, sTag, cTag uint16 }

type port struct {
	name     string
	index    uint16
	sessions int
	offers   bucket.Bucket
}

// offerBuckets are as many lines as speak at once, and more than that.
const offerBuckets = 1 << 14

type lineCount struct{ sessions, halfOpen int32 }

// Server is the concentrator: an access.FrontEnd.
type Server struct {
	host     access.Host
	config   *Config
	v6       IPv6
	began    time.Time
	random   *rand.ChaCha8
	cookies  cookies
	ports    map[string]*port
	sessions map[key]*session
	peers    map[peer]*session // the latest of each
	lines    map[lineKey]lineCount
	wheel    wheel
	ticking  bool
	halfOpen int
	underWay underWay
	waiting  waiting
	delayed  int // PADOs
	lastID   uint16
	gone     quarantine
	told     bucket.Bucket          // PADTs to strangers
	answered *bucket.Table[lineKey] // of PADOs
	counts   [counters]uint64
	frame    access.Frame // being sent
	buffer   [2048]byte
}

// New makes a server; v6 may be nil, then there are neither router advertisements nor DHCPv6.
func New(host access.Host, c Config, v6 IPv6) *Server {
	var seed [32]byte
	crand.Read(seed[:]) // never fails
	s := &Server{host: host, v6: v6, began: host.Now().Add(-time.Second),
		random: rand.NewChaCha8(seed), cookies: newCookies(),
		ports: map[string]*port{}, sessions: map[key]*session{}, peers: map[peer]*session{},
		lines: map[lineKey]lineCount{}, answered: bucket.NewTable[lineKey](offerBuckets)}
	s.lastID = uint16(s.random.Uint64())
	s.Configure(c)
	return s
}

// Configure sets values for later sessions; present ones keep theirs.
func (s *Server) Configure(c Config) {
	const front = headerSize + 2 // PPPoE's header and the PPP protocol, in front of a link's packet
	c.PPP.Now, c.PPP.Random, c.PPP.Buffer = s.now, s.random.Uint64, s.buffer[front:front]
	s.config = &c
	s.underWay.setShare(c.Begin / lineShare)
}

// now is time since shortly before the server was made.
func (s *Server) now() time.Duration { return s.host.Now().Sub(s.began) }

// Sessions counts them, and those of them that have no network protocol yet.
func (s *Server) Sessions() (all, halfOpen int) { return len(s.sessions), s.halfOpen }

// Frame takes a frame of EtherType 0x8863 or 0x8864, punted for any reason.
func (s *Server) Frame(f *access.Frame) {
	code, id, payload, ok := Header(f.Payload)
	switch {
	case !ok:
		s.turnAway(&f.Line, malformed, "a header of PPPoE that does not fit")
	case f.EtherType == EtherSession && code == 0:
		s.session(f, id, payload)
	case f.EtherType == EtherDiscovery:
		s.discovery(f, code, id, payload)
	default:
		s.counts[malformed]++
	}
}

func (s *Server) port(name string) *port {
	p := s.ports[name]
	if p == nil {
		p = &port{name: name, index: uint16(len(s.ports))}
		s.ports[name] = p
	}
	return p
}

func (s *Server) portOf(l *access.Line) (p Port) {
	if s.config.PortOf != nil {
		p = s.config.PortOf(l)
	}
	return p
}

func (s *Server) peerOf(l *access.Line) (peer, *port) {
	p := s.port(l.Port)
	return peer{lineKey{p.index, l.STag, l.CTag}, l.MAC}, p
}

// session takes a frame of one.
func (s *Server) session(f *access.Frame, id uint16, payload []byte) {
	who, _ := s.peerOf(&f.Line)
	x := s.sessions[key{who, id}]
	switch {
	case x == nil:
		s.stranger(f, who, id)
	case len(payload) < 2:
		s.counts[malformed]++
	default:
		protocol := uint16(payload[0])<<8 | uint16(payload[1])
		if protocol == ppp.IPv6 && x.v6 != nil {
			x.v6.Packet(payload[2:])
			return
		}
		x.speak()
		switch x.link.Receive(protocol, payload[2:]) {
		case ppp.Taken:
			if x.halfOpen {
				s.spoke(x, false)
			}
		case ppp.Malformed:
			s.counts[pppMalformed]++
		case ppp.Unexpected:
			s.counts[pppUnexpected]++
		case ppp.Stale:
			s.counts[pppStale]++
		}
	}
}

// stranger answers with a PADT for an unknown session, so that the peer dials again soon; not for a session that just
// ended.
func (s *Server) stranger(f *access.Frame, who peer, id uint16) {
	s.counts[unknownSession]++
	if s.gone.has(key{who, id}) || id == 0 || id == 0xffff {
		return
	}
	if _, ok := s.told.Take(s.host.Now(), s.config.Strangers, time.Second); !ok {
		return
	}
	s.counts[padtSent]++
	s.send(&f.Line, Finish(s.packet(PADT, id)))
}

// packet begins a discovery packet in the buffer.
func (s *Server) packet(code uint8, id uint16) []byte { return AppendHeader(s.buffer[:0], code, id) }

func (s *Server) send(line *access.Line, packet []byte) {
	s.frame = access.Frame{Line: *line, EtherType: EtherDiscovery, Payload: packet}
	s.host.Send(&s.frame)
}

// ticks keeps the wheel turning while sessions wait.
func (s *Server) ticks() {
	if !s.ticking && s.wheel.waiting > 0 {
		s.ticking = true
		s.host.After(tick, s.turn)
	}
}

func (s *Server) turn() {
	s.ticking = false
	for now := s.now(); ; {
		x := s.wheel.turn(now)
		if x == nil {
			break
		}
		x.expire()
	}
	s.ticks()
}
