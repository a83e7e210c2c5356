// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"isthmus/controlplane/pfcp"
)

// Why a request of ours has no answer.
var (
	ErrTimeout       = errors.New("no answer from the peer")
	ErrNoAssociation = errors.New("no association")
	ErrPathFailed    = errors.New("the path to the CP function has failed")
	ErrNotKnown      = errors.New("no living member of the SMF set knows the session")
	ErrBusy          = errors.New("too many requests wait for the CP function")
	ErrStopped       = errors.New("the PFCP server has stopped")
	ErrVersion       = errors.New("the peer does not support our version of PFCP")
)

// noAnswerError is ErrTimeout of a request that cannot be sent, or whose answers cannot be read.
type noAnswerError struct {
	what string
	why  error
}

func (e *noAnswerError) Error() string   { return e.what + ": " + e.why.Error() }
func (e *noAnswerError) Unwrap() []error { return []error{ErrTimeout, e.why} }

type requestKey struct {
	peer     netip.AddrPort
	sequence uint32
}

// request is a request of ours. done is called once, from the goroutine that found the end.
type request struct {
	key   requestKey
	k     *socket
	typ   pfcp.MessageType
	b     []byte
	left  int // retransmissions
	timer *time.Timer
	at    time.Time // when it was sent first
	fault error     // of the last time; nil: it was sent, and nothing came
	done  func(pfcp.Message, error)
}

// requests are those of ours without an answer. lock guards the map and the timers.
type requests struct {
	*journal
	cfg     *Config
	lock    sync.Mutex
	open    map[requestKey]*request
	stopped bool
}

// send sends a message and repeats it N1 times, T1 apart (TS 29.244 §6.4).
func (q *requests) send(k *socket, to netip.AddrPort, h pfcp.Header, m pfcp.Message, done func(pfcp.Message, error)) {
	h.Type = m.MessageType()
	r := &request{k: k, typ: h.Type, left: int(q.cfg.Heartbeat.Retries), done: done, at: time.Now()}
	q.lock.Lock()
	if q.stopped {
		q.lock.Unlock()
		done(nil, ErrStopped)
		return
	}
	// Random sequence numbers: without seeing our requests an answer cannot be forged.
	for {
		r.key = requestKey{to, rand.Uint32() & 0xffffff}
		if q.open[r.key] == nil {
			break
		}
	}
	h.Sequence = r.key.sequence
	b, err := pfcp.Encode(h, m)
	if err != nil {
		q.lock.Unlock()
		done(nil, err)
		return
	}
	r.b = b
	q.open[r.key] = r
	r.timer = time.AfterFunc(q.cfg.Heartbeat.Timeout, func() { q.again(r) })
	q.lock.Unlock()
	k.send(to, b)
}

// again is a timer's: retransmit, or give up.
func (q *requests) again(r *request) {
	q.lock.Lock()
	if q.open[r.key] != r {
		q.lock.Unlock()
		return
	}
	if r.left == 0 {
		delete(q.open, r.key)
		q.lock.Unlock()
		q.event(eventTimedOut)
		r.done(nil, cmp.Or(r.fault, ErrTimeout))
		return
	}
	r.left--
	r.fault = nil
	r.timer.Reset(q.cfg.Heartbeat.Timeout)
	q.lock.Unlock()
	q.event(eventRetransmitted)
	r.k.send(r.key.peer, r.b)
}

// awaited: a response matches a pending request by peer, sequence and type.
func (q *requests) awaited(from netip.AddrPort, h pfcp.Header) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	return q.open[requestKey{from, h.Sequence}].answeredBy(h.Type)
}

func (r *request) answeredBy(t pfcp.MessageType) bool {
	return r != nil && (t == r.typ+1 || t == pfcp.VersionNotSupportedResponseType)
}

// take ends a request; nil: it has ended already.
func (q *requests) take(from netip.AddrPort, h pfcp.Header) *request {
	q.lock.Lock()
	defer q.lock.Unlock()
	key := requestKey{from, h.Sequence}
	r := q.open[key]
	if !r.answeredBy(h.Type) {
		return nil
	}
	delete(q.open, key)
	r.timer.Stop()
	return r
}

// blame records why a request to a peer will have no answer; it may be repeated yet.
func (q *requests) blame(peer netip.AddrPort, sequence uint32, what string, why error) {
	q.lock.Lock()
	defer q.lock.Unlock()
	if r := q.open[requestKey{peer, sequence}]; r != nil {
		r.fault = &noAnswerError{what, why}
	}
}

// stop ends all.
func (q *requests) stop() {
	q.lock.Lock()
	q.stopped = true
	open := q.open
	q.open = make(map[requestKey]*request)
	q.lock.Unlock()
	for _, r := range open {
		r.timer.Stop()
		r.done(nil, ErrStopped)
	}
}

func (q *requests) size() int {
	q.lock.Lock()
	defer q.lock.Unlock()
	return len(q.open)
}

// answer handles a response, readable or not. It runs in a worker, the owner or, for heartbeats, the reader.
func (q *requests) answer(p *packet) {
	m, err := decode(p.b)
	if err != nil {
		// §7.6: an incomplete response is discarded; the request is repeated as if it had been lost.
		q.blame(p.from, p.h.Sequence, "the peer's answer cannot be read", err)
		q.reject(rejectResponse, p.from, err.Error())
		return
	}
	r := q.take(p.from, p.h)
	if r == nil {
		q.reject(rejectUnmatched, p.from, "response to nothing")
		return
	}
	if p.h.Type == pfcp.VersionNotSupportedResponseType {
		r.done(nil, ErrVersion)
		return
	}
	q.cfg.Measures.OwnRequest(messageNames[r.typ], time.Since(r.at))
	q.unreadable(m)
	r.done(m, nil)
}
