// SPDX-License-Identifier: Apache-2.0

package pppoe

import (
	"bytes"
	"slices"
	"time"

	"isthmus/controlplane/access"
)

const maxDelayed = 4096 // PADOs

// firstWord is the wait for a subscriber's first packet. Linux drops a session's packets before pppd has read the PADS:
// a request right behind it would be lost, and repeated after three seconds only.
const firstWord = 500 * time.Millisecond

// discovery handles PADI, PADR and PADT. There is no state until a PADR with our cookie (row B2).
func (s *Server) discovery(f *access.Frame, code uint8, id uint16, payload []byte) {
	t, ok := ParseTags(payload)
	switch {
	case !ok:
		s.turnAway(&f.Line, malformed, "tags that do not fit")
	case code == PADI && id == 0 && t.Service != nil:
		s.counts[padiReceived]++
		s.padi(&f.Line, &t, payload)
	case code == PADR && id == 0 && t.Service != nil:
		s.counts[padrReceived]++
		s.padr(&f.Line, &t)
	case code == PADT && id != 0:
		s.padt(&f.Line, &t, id)
	default: // row B1: a PADI without tags, too
		s.turnAway(&f.Line, malformed, "neither PADI, PADR nor PADT")
	}
}

// turnAway counts a frame that gets nothing, and publishes its line's owner and the reason.
func (s *Server) turnAway(line *access.Line, reason int, why string) {
	s.counts[reason]++
	s.host.Failed(&access.Request{Kind: access.PPPoE, Line: *line}, why)
}

func (s *Server) offers(service []byte) bool {
	return len(s.config.Services) == 0 || len(service) == 0 || slices.Contains(s.config.Services, string(service))
}

func (s *Server) padi(line *access.Line, t *Tags, payload []byte) {
	if !s.offers(t.Service) {
		s.counts[noService]++
		return // RFC 2516 §5.2: no answer
	}
	// The line's limit first: a flooding line takes nothing from others of its port.
	who, p := s.peerOf(line)
	if s.waits(who, payload) {
		return
	}
	now := s.host.Now()
	if _, ok := s.answered.Of(who.lineKey).Take(now, int(s.config.OffersPerLine), time.Second); !ok {
		s.counts[offersLine]++
		return
	}
	if _, ok := p.offers.Take(now, int(s.config.OffersPerPort), time.Second); !ok {
		s.counts[offersPort]++
		return
	}
	if len(s.waiting.queue) > 0 || s.mayBegin() <= 0 || s.hasShare(who.lineKey) {
		s.hold(who, line, payload)
		return
	}
	s.offer(line, t)
}

// offer answers a PADI.
func (s *Server) offer(line *access.Line, t *Tags) {
	s.underWay.offers[s.underWay.slot%offerSlots]++
	b := s.packet(PADO, 0)
	b = AppendTag(b, TagName, []byte(s.config.ACName))
	b = AppendTag(b, TagService, t.Service)
	for _, name := range s.config.Services {
		if name != string(t.Service) && len(b)+len(name)+len(t.HostUniq)+len(t.Relay) < largestMTU-ownTags {
			b = AppendTag(b, TagService, []byte(name))
		}
	}
	var cookie [cookieSize]byte
	b = AppendTag(b, TagCookie, s.cookies.make(cookie[:0], line, s.host.Now()))
	b = Finish(s.common(b, line, t))
	if s.config.Delay == 0 {
		s.counts[padoSent]++
		s.send(line, b)
		return
	}
	if s.delayed == maxDelayed {
		s.counts[tooManyDelayed]++
		return
	}
	s.delayed++
	later, to := bytes.Clone(b), *line
	s.host.After(s.config.Delay, func() {
		s.delayed--
		s.counts[padoSent]++
		s.send(&to, later)
	})
}

// common adds what the subscriber, or a relay before it, wants to have back.
func (s *Server) common(b []byte, line *access.Line, t *Tags) []byte {
	b = AppendTag(b, TagHostUniq, t.HostUniq)
	b = AppendTag(b, TagRelay, t.Relay)
	// RFC 4638 §4: only in answer to a request.
	if mru := s.payload(line.Port, t); mru != plainMTU && t.MaxPayload != 0 {
		b = AppendTag(b, TagMaxPayload, []byte{byte(mru >> 8), byte(mru)})
	}
	return b
}

// payload is the largest PPP packet of a session (RFC 4638 §4): 1492 unless both ends permit more.
func (s *Server) payload(port string, t *Tags) uint16 {
	ours := s.config.MaxPayload[port]
	switch {
	case ours == 0:
		return plainMTU
	case ours < plainMTU:
		return ours
	}
	return max(plainMTU, min(ours, t.MaxPayload, largestMTU))
}

func (s *Server) padr(line *access.Line, t *Tags) {
	cookie, ok := s.cookies.good(t.Cookie, line, s.host.Now())
	if !ok {
		s.turnAway(line, badCookie, "a PADR without a cookie of ours for this line, of the last seconds")
		return // row B3
	}
	if !s.offers(t.Service) {
		s.turnAway(line, noService, "access.pppoe.service_names has no such Service-Name")
		s.refuse(line, t, TagServiceError, "no such service")
		return
	}
	who, p := s.peerOf(line)
	said, circuit := s.agentOf(line, t)
	if !s.stays(who, line, said, circuit) {
		s.refuse(line, t, TagSystemError, "there is a session by another circuit")
		return
	}
	for x := s.peers[who]; x != nil; x = x.older {
		if x.cookie == cookie {
			s.counts[again]++
			s.sendPADS(x, line, t)
			return // our PADS was lost; a cookie is good for one session at a time
		}
	}
	s.makeRoom(who)
	if reason, why := s.full(who, p); reason != 0 {
		s.turnAway(line, reason, why)
		if reason != limitHalfOpen { // a dropped one comes again; others need an answer
			s.refuse(line, t, TagSystemError, why)
		}
		return
	}
	x := &session{server: s, config: s.config, port: p, tpid: line.TPID, key: key{who, s.freeID(who)},
		cookie: cookie, circuit: circuit, relayed: s.portOf(line).Relayed}
	x.pending = &pending{agent: said, service: string(t.Service), quiet: true}
	if t.Relay != nil {
		x.relay = append(x.relay, t.Relay...)
	}
	s.underWay.redeemed()
	s.add(x, true)
	s.counts[padsSent]++
	s.sendPADS(x, line, t)
	x.pending.mru = s.payload(line.Port, t)
	x.Wake(s.now() + firstWord)
}

// agentOf is the access node's tag of a line, and its circuit id, if trusted.
func (s *Server) agentOf(line *access.Line, t *Tags) (a access.Agent, circuit string) {
	if t.Vendor == nil {
		return a, ""
	}
	a, ok := agent(t.Vendor)
	if !ok {
		s.counts[badAgent]++
	}
	if s.portOf(line).Trusted {
		circuit = string(a.CircuitID)
	}
	return a, circuit
}

// elsewhere: a session is on line by another circuit of its access node.
func (x *session) elsewhere(circuit string) bool {
	return circuit != "" && x.circuit != "" && x.circuit != circuit && !x.halfOpen
}

// stays: a subscriber may dial by a circuit. Where homes move, its sessions on other circuits end.
func (s *Server) stays(who peer, line *access.Line, said access.Agent, circuit string) bool {
	for x := s.peers[who]; x != nil; x = x.older {
		switch {
		case !x.elsewhere(circuit):
		case !s.portOf(line).Moves:
			s.counts[circuitChanged]++
			s.host.Failed(&access.Request{Kind: access.PPPoE, Line: *line, Agent: said},
				"another circuit id than that of the line's session")
			return false
		default:
			s.counts[replaced]++
			x.end(access.LostCarrier, "the subscriber dialled by another circuit")
		}
	}
	return true
}

func (s *Server) sendPADS(x *session, line *access.Line, t *Tags) {
	b := s.packet(PADS, x.id)
	b = AppendTag(b, TagService, t.Service)
	s.send(line, Finish(s.common(b, line, t)))
}

// refuse is a PADS without a session (RFC 2516 §5.4).
func (s *Server) refuse(line *access.Line, t *Tags, tag uint16, why string) {
	b := AppendTag(s.packet(PADS, 0), TagService, t.Service)
	b = AppendTag(b, tag, []byte(why))
	s.send(line, Finish(s.common(b, line, t)))
}

// padt ends the session of its own line alone (row B4). RFC 2516 §5.5: no PPP packet may follow.
func (s *Server) padt(line *access.Line, t *Tags, id uint16) {
	who, _ := s.peerOf(line)
	x := s.sessions[key{who, id}]
	if x == nil {
		s.counts[unknownSession]++
		return
	}
	if _, circuit := s.agentOf(line, t); x.elsewhere(circuit) {
		s.counts[circuitChanged]++
		return
	}
	s.counts[padtReceived]++
	x.link.Drop()
	x.Closed(access.UserRequest, "PADT")
}

// makeRoom ends sessions of a MAC that dials again: the half-open one, or the oldest, whose owner lost power.
func (s *Server) makeRoom(who peer) {
	n := 0
	var victim *session
	for x := s.peers[who]; x != nil; x = x.older {
		n++
		if victim == nil || !victim.halfOpen {
			victim = x
		}
	}
	if n > 0 && n >= max(1, int(s.config.PerMAC)) {
		s.counts[replaced]++
		victim.end(access.LostCarrier, "the subscriber dialled again")
	}
}

func (s *Server) full(who peer, p *port) (reason int, why string) {
	c, at := &s.config.Limits, s.lines[who.lineKey]
	over := func(n int, limit uint32) bool { return limit > 0 && n >= int(limit) }
	switch {
	case over(s.halfOpen, c.HalfOpen) || over(int(at.halfOpen), c.HalfLine):
		return limitHalfOpen, "too many sessions are being set up"
	case over(len(s.sessions), c.Sessions):
		return limitSessions, "too many sessions"
	case over(p.sessions, c.PerPort):
		return limitPort, "too many sessions of this port"
	case over(int(at.sessions), c.PerLine):
		return limitLine, "too many sessions of this line"
	}
	return 0, ""
}

// freeID goes round, from a random start; a MAC does not get its recent ids.
func (s *Server) freeID(who peer) uint16 {
	s.gone.expire(s.now())
	for range 1 << 16 {
		s.lastID++
		k := key{who, s.lastID}
		if s.lastID != 0 && s.lastID != 0xffff && s.sessions[k] == nil && !s.gone.has(k) {
			break
		}
	}
	return s.lastID
}

// quarantine has the ids of sessions that ended lately; when it is full, the oldest are let out.
type quarantine struct {
	set   map[key]struct{}
	order []departed // a ring
	first int
}

type departed struct {
	key
	until time.Duration
}

const maxQuarantine = 1 << 16

func (q *quarantine) has(k key) bool {
	_, in := q.set[k]
	return in
}

func (q *quarantine) add(k key, until time.Duration) {
	if q.set == nil {
		q.set = map[key]struct{}{}
	}
	if len(q.order)-q.first >= maxQuarantine {
		q.release()
	}
	q.set[k] = struct{}{}
	q.order = append(q.order, departed{k, until})
}

func (q *quarantine) release() {
	delete(q.set, q.order[q.first].key)
	if q.first++; q.first > len(q.order)/2 && q.first > 1024 || q.first == len(q.order) {
		q.order = q.order[:copy(q.order, q.order[q.first:])]
		q.first = 0
	}
}

func (q *quarantine) expire(now time.Duration) {
	for q.first < len(q.order) && q.order[q.first].until <= now {
		q.release()
	}
}
