// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	mathrand "math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// server is one server of a client. It is alive until a request that was sent Tries times got no answer, and no other
// did. Then for DeadTime, or until it answers a probe, it gets no requests, and its pending ones go to others.
type server struct {
	ServerConfig
	name    string
	to      netip.AddrPort
	secret  []byte
	policy  Policy
	client  *Client
	index   int         // in client.servers
	tls     *tls.Config // nil: UDP
	changed func(name string, is News)
	living  atomic.Bool

	mu       sync.Mutex
	lanes    []*lane
	dialling bool        // TLS: a connection is being made
	waiting  []*exchange // for an identifier
	since    time.Time
	answered time.Time            // last authentic answer
	fault    *FaultError          // of the last request or answer; nil: an answer was believed, or none comes any more
	faulty   time.Time            // when it came
	told     map[string]time.Time // by the fault's word
	counts   Counters
	rtt      Histogram
	revival  *time.Timer // nil: alive
	probes   *time.Timer
	shut     bool
}

var policies = map[string]Policy{"required": First, "anywhere": Anywhere, "optional": Optional}

func newServer(c *Client, of ServerConfig, changed func(string, News)) *server {
	s := &server{ServerConfig: of, name: string(of.Name), to: netip.AddrPortFrom(of.Address.Addr, of.Port),
		secret: []byte(of.Secret), policy: policies[of.Policy], client: c, changed: changed, since: time.Now(),
		told: map[string]time.Time{}}
	s.living.Store(true)
	return s
}

func (s *server) alive() bool { return s.living.Load() }

// take has the server send a request. ErrAway, ErrBusy: not accepted. Others: the request is impossible.
func (s *server) take(e *exchange) error {
	s.mu.Lock()
	if s.shut || !s.living.Load() {
		s.mu.Unlock()
		return ErrAway
	}
	e.server.Store(s)
	e.tries, e.wait, e.first = 0, s.Timeout, time.Time{}
	l := s.lane()
	if l == nil {
		defer s.mu.Unlock()
		if len(s.waiting) >= int(s.Queue) {
			s.counts.QueueFull++
			e.server.Store(nil)
			return ErrBusy
		}
		s.waiting = append(s.waiting, e)
		s.counts.PeakQueue = max(s.counts.PeakQueue, len(s.waiting))
		e.arm(s.patience())
		return nil
	}
	return s.sendFirst(e, l)
}

// patience is how long all tries of a request take (RFC 5080 §2.2.1).
func (s *server) patience() (all time.Duration) {
	for i, wait := uint8(0), s.Timeout; i < s.Tries; i, wait = i+1, backoff(wait) {
		all += wait
	}
	return all
}

const maxWait = 16 * time.Second // MRT

func backoff(wait time.Duration) time.Duration { return min(2*wait, maxWait) }

// about varies a time by a tenth, so that simultaneous requests spread (RFC 5080: RAND).
func about(d time.Duration) time.Duration {
	return d + time.Duration((mathrand.Float64()-0.5)*0.2*float64(d))
}

// sendFirst sends by a lane that has an identifier; it is called with the lock, and returns without.
func (s *server) sendFirst(e *exchange, l *lane) error {
	if err := s.prepare(e, l); err != nil {
		s.release(e)
		s.mu.Unlock()
		return err
	}
	e.first = time.Now()
	e.tries = 1
	s.counts.Requests++
	if s.tls != nil { // the transport sends again what is lost
		e.arm(s.patience())
	} else {
		e.arm(about(e.wait))
	}
	packet := e.packet
	s.mu.Unlock()
	_ = l.send(packet) // a failed send is repeated, or its lane reports the break
	return nil
}

// prepare encodes a request under a new identifier of the lane.
func (s *server) prepare(e *exchange, l *lane) error {
	p := Packet{Code: e.p.Code, ID: l.take(e), Attributes: e.p.Attributes}
	if p.Code == AccessRequest || p.Code == StatusServer {
		rand.Read(p.Authenticator[:])
	}
	if !e.p.Since.IsZero() {
		delay := binary.BigEndian.AppendUint32(nil, uint32(max(0, time.Since(e.p.Since))/time.Second))
		list := p.Attributes
		p.Attributes = append(list[:len(list):len(list)], Attribute{AcctDelayTime, delay})
	}
	var err error
	e.packet, err = p.Encode(make([]byte, 0, 512), s.secret, nil)
	at := &l.slots[p.ID]
	at.lastAuth, at.everTaken = p.Authenticator, true
	return err
}

// lane returns one with a free identifier, nil without one.
func (s *server) lane() *lane {
	for _, l := range s.lanes {
		if l.count > 0 {
			return l
		}
	}
	if len(s.lanes) >= int(s.Sockets) || s.dialling {
		return nil
	}
	if s.tls != nil {
		s.dialling = true
		go s.dial()
		return nil
	}
	l, err := s.open()
	if err != nil {
		s.unreachable(err)
		return nil
	}
	s.lanes = append(s.lanes, l)
	return l
}

// release gives a request's identifiers back. The lock is held.
func (s *server) release(e *exchange) {
	for _, at := range e.slots {
		at.lane.release(at.id)
	}
	e.slots = e.slots[:0]
}

// pump sends what waits while there are identifiers. It is called with the lock, and returns without.
func (s *server) pump() {
	for len(s.waiting) > 0 && !s.shut {
		l := s.lane()
		if l == nil {
			break
		}
		e := s.waiting[0]
		s.waiting[0] = nil
		s.waiting = s.waiting[1:]
		if err := s.sendFirst(e, l); err != nil { // unlocks
			e.finish(nil, err)
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
}

// expired is a request's timer.
func (s *server) expired(e *exchange) {
	s.mu.Lock()
	// The server first: only while it is this one does this lock guard the rest.
	if e.server.Load() != s || e.over || time.Now().Before(e.due) {
		s.mu.Unlock()
		return
	}
	if len(e.slots) == 0 { // it never got an identifier
		s.unqueue(e)
		if len(s.lanes) == 0 { // no socket, no connection
			s.die(e) // unlocks
			return
		}
		s.counts.QueueFull++
		e.server.Store(nil)
		s.mu.Unlock()
		s.client.next(e)
		return
	}
	if e.tries < int(s.Tries) && s.tls == nil {
		s.again(e) // unlocks
		return
	}
	s.counts.Timeouts++
	s.release(e)
	if s.answered.Before(e.first) {
		s.die(e) // unlocks
		return
	}
	e.server.Store(nil)
	s.pump() // unlocks
	s.client.next(e)
}

func (s *server) unqueue(e *exchange) {
	for i, w := range s.waiting {
		if w == e {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			return
		}
	}
}

// again sends a request once more: the same packet, or, where Acct-Delay-Time changed, under another identifier (RFC
// 2866 §4.1). It is called with the lock, and returns without.
func (s *server) again(e *exchange) {
	at := e.slots[len(e.slots)-1].lane
	if !e.p.Since.IsZero() {
		if l := s.lane(); l != nil && s.prepare(e, l) == nil {
			at = l
		}
	}
	e.tries++
	e.wait = backoff(e.wait)
	s.counts.Retransmitted++
	e.arm(about(e.wait))
	packet := e.packet
	s.mu.Unlock()
	_ = at.send(packet)
}

// answer is a packet that came by a lane from an address. b is not kept.
func (s *server) answer(l *lane, from netip.AddrPort, b []byte) {
	b, err := Trim(b)
	s.mu.Lock()
	if err != nil {
		if from == s.to {
			s.doubt(errGarbled) // unlocks
			return
		}
		s.counts.WrongAddress++
		s.mu.Unlock()
		return
	}
	at := &l.slots[b[1]]
	e, auth, ever := at.e, at.lastAuth, at.everTaken
	s.mu.Unlock()

	// Hashing needs no lock.
	code, policy := Code(b[0]), s.policy
	if code == AccountingResponse || e != nil && e.p.Code == StatusServer || from != s.to {
		policy = Optional // a forged one gains nothing
	}
	err = Verify(b, s.secret, &auth, policy)

	s.mu.Lock()
	switch {
	case from != s.to && e != nil && err == nil: // its sender has seen the request
		s.doubt(errAddress) // unlocks
		return
	case from != s.to:
		s.counts.WrongAddress++
	case e == nil && ever && err == nil, e != nil && err == nil && (at.e != e || at.lastAuth != auth):
		s.counts.Late++
		s.answered = time.Now()
	case e == nil:
		s.counts.UnknownID++
	case err != nil:
		s.doubt(err) // unlocks
		return
	case !code.answers(e.p.Code):
		s.doubt(errOther) // unlocks
		return
	default:
		s.settle(e, b) // unlocks
		return
	}
	s.mu.Unlock()
}

// settle ends a request with its authentic answer. It is called with the lock, and returns without.
func (s *server) settle(e *exchange, b []byte) {
	now := time.Now()
	e.over = true
	s.answered = now
	s.release(e)
	s.rtt.observe(now.Sub(e.first))
	if e.p.Code == StatusServer {
		s.counts.ProbeAnswers++
	} else {
		s.fault = nil
		s.counts.answered(Code(b[0]))
	}
	p, err := Parse(append([]byte(nil), b...))
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		s.counts.Malformed++
		p = nil
	}
	s.pump() // unlocks
	e.finish(p, err)
}

func (s *server) state() ServerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Queued = len(s.waiting)
	for _, l := range s.lanes {
		c.Outstanding += 256 - l.count
	}
	transport := "udp"
	if s.tls != nil {
		transport = "tls"
	}
	return ServerState{Name: s.name, Address: s.to.String(), Transport: transport, Priority: int(s.Priority),
		Alive: s.living.Load(), Since: s.since, LastAnswer: s.answered, Sockets: len(s.lanes), Counters: c,
		RTT: s.rtt}
}
