// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"isthmus/controlplane/pfcp"
)

// offer sends establishments, and deletions of the oldest sessions, at the rate, for the time or until all exist.
func (r *run) offer(ctx context.Context) error {
	start := time.Now()
	end := time.Duration(r.opt.Seconds * float64(time.Second))
	out := newOutbox(r)
	sent, full := 0, false
	for ctx.Err() == nil {
		elapsed := time.Since(start)
		due := int(elapsed.Seconds() * r.opt.Rate)
		if end == 0 {
			due = min(due, r.opt.Sessions)
		}
		for sent < due && (end == 0 || elapsed < end) {
			if !r.establish(out) {
				full = true
				break
			}
			sent++
		}
		out.flush()
		if r.opt.Progress != nil {
			share := float64(sent) / float64(r.opt.Sessions)
			if end > 0 {
				share = float64(elapsed) / float64(end)
			}
			r.opt.Progress("sessions", share)
		}
		if end == 0 && sent == r.opt.Sessions || end > 0 && elapsed >= end {
			break
		}
		waitBriefly()
	}
	elapsed := time.Since(start).Seconds()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Seconds = elapsed
	r.result.Achieved = float64(r.latency[establishment].count) / elapsed
	if due := int(elapsed * r.opt.Rate); full && end > 0 && due > sent {
		r.result.HeldBack = uint64(due - sent)
	}
	return context.Cause(ctx)
}

// idle leaves the sessions alone for the time they are to be held, while there are any.
func (r *run) idle(ctx context.Context) error {
	over := time.After(r.opt.Hold)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over:
			return nil
		case <-look.C:
			r.mu.Lock()
			none := r.live == 0 && len(r.oldest) == 0
			r.mu.Unlock()
			if none {
				return nil
			}
		}
	}
}

func waitBriefly() { time.Sleep(100 * time.Microsecond) }

// establish sends the next establishment, and the deletion of the oldest session when there are enough; false: the
// window is full.
func (r *run) establish(out *outbox) bool {
	if out.count+2 > atOnce {
		out.flush() // not under the lock
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live+1 >= r.opt.Window || len(r.unused) == 0 {
		return false
	}
	slot := r.unused[len(r.unused)-1]
	r.unused = r.unused[:len(r.unused)-1]
	out.put(r.begin(out.room(), establishment, slot))
	if len(r.oldest) >= r.opt.Sessions {
		old := r.oldest[0]
		r.oldest = r.oldest[1:]
		out.put(r.begin(out.room(), deletion, old))
	}
	return true
}

// begin notes a new request of a slot and encodes it. The lock is held.
func (r *run) begin(buffer []byte, k kind, slot uint32) []byte {
	for {
		r.sequence = (r.sequence + 1) & 0xffffff
		if !r.table[r.sequence%tableSize].live { // the window is half the table, so there is one
			break
		}
	}
	now := time.Now().Round(0) // without the monotonic clock: the kernel's stamps have none
	q := &r.table[r.sequence%tableSize]
	*q = request{sequence: r.sequence, slot: slot, kind: k, live: true, first: now, next: now.Add(r.opt.T1)}
	r.waiting = append(r.waiting, r.sequence)
	r.live++
	r.slots[slot].state = busy
	return r.encode(buffer, q)
}

func (r *run) encode(buffer []byte, q *request) []byte {
	s := &r.slots[q.slot]
	v := values{seid: s.up, cp: r.cp(q.slot), teid: 0x10000000 + q.slot + s.modify<<22}
	v.ue = r.opt.FirstUE.As4()
	binary.BigEndian.PutUint32(v.ue[:], binary.BigEndian.Uint32(v.ue[:])+q.slot)
	if q.kind == establishment {
		v.seid = 0 // TS 29.244 §7.2.2.4.2: the peer's is not known yet
	}
	return r.tmpl[q.kind].fill(buffer, q.sequence, &v)
}

// cp is the SEID that we give a slot's session.
func (r *run) cp(slot uint32) uint64 { return 1<<32 + uint64(slot) }

// read takes answers until the socket is closed. What follows from them goes out when all that came at once are read.
func (r *run) read() error {
	in, err := newInbox(r)
	if err != nil {
		return err
	}
	out := newOutbox(r)
	for {
		n, err := in.batch.Receive(r.raw)
		if errors.Is(err, net.ErrClosed) {
			return err
		} // another is an ICMP error: the peer is not there, which missing answers will show
		for i := range n {
			r.take(in.buffers[i][:in.batch.Length(i)], in.batch.Stamp(i), out)
		}
		out.flush()
	}
}

// take deals with one message that came in at a moment.
func (r *run) take(b []byte, at time.Time, out *outbox) {
	h, err := pfcp.DecodeHeader(b)
	if err != nil {
		r.wrong("a message that is not PFCP: " + err.Error())
		return
	}
	if h.Type.Request() {
		r.serve(b)
		return
	}
	var a answer
	var bad error
	if h.HasSEID {
		bad = a.parse(h, b)
	}
	a.at = at
	out.put(r.answered(out.room(), h, &a, bad))
}

func (r *run) wrong(what string) {
	r.mu.Lock()
	r.result.Wrong[what]++
	r.mu.Unlock()
}

// answered checks an answer and returns the request that follows from it, or an empty buffer.
func (r *run) answered(buffer []byte, h pfcp.Header, a *answer, bad error) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := &r.table[h.Sequence%tableSize]
	if !q.live || q.sequence != h.Sequence {
		r.result.Stray++
		return buffer[:0]
	}
	q.live = false
	r.live--
	defer r.finished()
	r.latency[q.kind].add(max(a.at.Sub(q.first), 0))
	what := ""
	if bad != nil {
		what = bad.Error()
	} else {
		a.header = h
		what = a.check(q.kind, r.cp(q.slot))
	}
	s := &r.slots[q.slot]
	if what != "" {
		r.result.Wrong[fmt.Sprintf("%s: %s", q.kind, what)]++
		r.refused(q, a.cause)
		return buffer[:0]
	}
	switch q.kind {
	case establishment:
		r.established(s, a)
	case modification:
		s.modify = (s.modify + 1) % 64
		s.pending--
	case deletion:
		r.vacate(q.slot)
		return buffer[:0]
	}
	switch {
	case s.pending > 0:
		return r.begin(buffer, modification, q.slot)
	case r.ending:
		return r.begin(buffer, deletion, q.slot)
	}
	r.hold(q.slot)
	return buffer[:0]
}

// established notes what the peer chose: SEIDs and F-TEIDs of live sessions are unique (TS 29.244 §5.5, §8.2.37).
func (r *run) established(s *session, a *answer) {
	s.up, s.teid = a.seid, tunnel{a.teid, a.address}
	if _, twice := r.seids[s.up]; twice {
		r.result.Wrong["establishment: the UP SEID is another live session's"]++
	}
	if _, twice := r.tunnels[s.teid]; twice {
		r.result.Wrong["establishment: the F-TEID is another live session's"]++
	}
	r.seids[s.up] = struct{}{}
	r.tunnels[s.teid] = struct{}{}
	r.result.Most = max(r.result.Most, len(r.seids))
	r.due += r.opt.ModifyRatio
	s.pending = uint32(r.due)
	r.due -= float64(s.pending)
}

// mostRefusals is how often a deletion is tried that the user plane refuses for congestion.
const mostRefusals = 20

// refused decides what becomes of a session after a wrong answer. A session that the user plane still has is deleted
// later.
func (r *run) refused(q *request, cause pfcp.Cause) {
	s := &r.slots[q.slot]
	switch {
	case q.kind == modification && cause != pfcp.CauseContextNotFound:
		s.pending = 0
		r.hold(q.slot)
	case q.kind == deletion && cause == pfcp.CauseCongestion && s.refusals < mostRefusals:
		s.refusals++
		r.hold(q.slot)
	default:
		r.vacate(q.slot)
	}
}

func (r *run) hold(slot uint32) {
	r.slots[slot].state = held
	r.oldest = append(r.oldest, slot)
}

func (r *run) vacate(slot uint32) {
	s := &r.slots[slot]
	delete(r.seids, s.up)
	delete(r.tunnels, s.teid)
	*s = session{modify: s.modify}
	r.unused = append(r.unused, slot)
}

// finished reports the end when the last session is gone. The lock is held.
func (r *run) finished() {
	if r.ending && r.live == 0 && len(r.oldest) == 0 {
		select {
		case <-r.drained:
		default:
			close(r.drained)
		}
	}
}

// repeat sends again what was not answered within T1, N1 times at most.
func (r *run) repeat(stop chan struct{}) {
	tick := time.NewTicker(max(r.opt.T1/10, time.Millisecond))
	defer tick.Stop()
	buffer := make([]byte, 0, 2048)
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			for again := true; again; {
				r.mu.Lock()
				buffer, again = r.overdue(buffer, now)
				r.mu.Unlock()
				if len(buffer) > 0 {
					r.conn.Write(buffer)
				}
			}
		}
	}
}

// overdue takes the request with the earliest deadline, if that has passed. It returns what is to be sent, and
// whether there may be more.
func (r *run) overdue(buffer []byte, now time.Time) ([]byte, bool) {
	for len(r.waiting) > 0 {
		q := &r.table[r.waiting[0]%tableSize]
		if !q.live || q.sequence != r.waiting[0] {
			r.waiting = r.waiting[1:]
			continue
		}
		if now.Before(q.next) {
			return buffer[:0], false
		}
		r.waiting = r.waiting[1:]
		if int(q.tries) >= r.opt.N1 {
			q.live = false
			r.live--
			r.result.Unanswered++
			r.vacate(q.slot)
			r.finished()
			return buffer[:0], true
		}
		q.tries++
		q.next = now.Add(r.opt.T1)
		r.result.Resent++
		r.waiting = append(r.waiting, q.sequence)
		return r.encode(buffer, q), true
	}
	return buffer[:0], false
}

// drain deletes all sessions, within the window and not faster than they were made, and waits for the answers.
func (r *run) drain() error {
	r.mu.Lock()
	r.ending = true
	r.finished()
	held := len(r.oldest)
	r.mu.Unlock()
	buffer := make([]byte, 0, 2048)
	patience := r.opt.T1*time.Duration(r.opt.N1+1) + time.Second
	for last := time.Now(); time.Since(last) < patience; waitTurn() {
		select {
		case <-r.drained:
			return nil
		default:
		}
		for range max(1, int(r.opt.Rate/1000)) {
			var ok bool
			if buffer, ok = r.remove(buffer); !ok {
				break
			}
			last = time.Now()
		}
		r.tellDrained(held)
	}
	return errors.New("the last sessions were not deleted in time")
}

// tellDrained reports how many of the held sessions were sent off.
func (r *run) tellDrained(held int) {
	if r.opt.Progress == nil || held == 0 {
		return
	}
	r.mu.Lock()
	left := len(r.oldest)
	r.mu.Unlock()
	r.opt.Progress("deleting sessions", 1-float64(left)/float64(held))
}

// remove sends the deletion of the oldest session. It returns false when none is held or the window is full.
func (r *run) remove(buffer []byte) ([]byte, bool) {
	r.mu.Lock()
	if len(r.oldest) == 0 || r.live >= r.opt.Window {
		r.mu.Unlock()
		return buffer, false
	}
	slot := r.oldest[0]
	r.oldest = r.oldest[1:]
	buffer = r.begin(buffer, deletion, slot)
	r.mu.Unlock()
	r.conn.Write(buffer)
	return buffer, true
}

func waitTurn() { time.Sleep(time.Millisecond) }
