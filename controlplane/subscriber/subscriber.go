// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"cmp"
	"errors"
	"time"

	"isthmus/api"
	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
)

// Subscriber is an accepted subscriber. access.Session is its front end's view.
//
// The session layer has one request of a subscriber at a time; what else is to be done waits in ops.
type Subscriber struct {
	loop      *Loop
	seid      uint64
	user      string
	at        attachment
	auth      *access.Plan // as authenticated; of plans, immutable
	plan      *access.Plan // laid over the profile
	addresses access.Addresses
	client    access.Client // nil: not yet, or no more
	rings     [rings]ring

	alive   access.KeepAlive
	keep    string    // the front end's
	coming  *comingUp // nil: it is up
	up      time.Time // packets passed for the first time
	limit   *timer    // until it must be up; then the session time-out
	interim *timer

	mtu      uint16
	families access.Families // whose packets pass
	put      bool            // the session layer has it
	ending   bool
	billed   bool         // accounting knows of its end
	cause    access.Cause // of that
	// declined: an unknown host uses the IPv4 address
	declined bool
	busy     bool // a request to the session layer is under way
	dirty    bool // the record is to be written
	ops      []func()
	acks     []func() // of events that are counted, and not in the store yet

	counted
	lost *timer // waits for the rest of the reports
}

// comingUp is the time before its packets pass.
type comingUp struct{ began, let time.Time } // SignIn, let in

// errEnded answers requests about an ended session.
var errEnded = errors.New("the session has ended")

// ID is the Acct-Session-Id.
func (s *Subscriber) ID() string { return sessionID(s.seid) }

// Grant is access.Session's.
func (s *Subscriber) Grant() access.Grant {
	return access.Grant{Plan: s.plan, Addresses: &s.addresses, Ends: s.ends()}
}

// do has fn called when no request is under way.
func (s *Subscriber) do(fn func()) {
	if s.busy || len(s.ops) > 0 {
		s.ops = append(s.ops, fn)
		return
	}
	fn()
}

// next continues after a request.
func (s *Subscriber) next() {
	for !s.busy && len(s.ops) > 0 {
		fn := s.ops[0]
		s.ops[0], s.ops = nil, s.ops[1:]
		fn()
	}
	if len(s.ops) == 0 {
		s.ops = nil
	}
	if !s.busy && s.dirty && s.put && !s.ending {
		s.write()
	}
}

// request asks the session layer; put: it has the session then. The stored record covers s.acks.
func (s *Subscriber) request(put bool, ask func(answer func([]api.Usage, error)), done func(error)) {
	l := s.loop
	s.busy, s.dirty = true, false
	acks := s.acks
	s.acks = nil
	l.window.enter(func() {
		ask(func(usage []api.Usage, err error) {
			l.Post(func() {
				l.window.leave()
				s.busy = false
				if err != nil {
					s.acks, s.dirty = append(acks, s.acks...), s.put
				} else {
					s.put = put
					s.stored(acks)
					accounting{s}.measured(usage)
				}
				done(err)
			})
		})
	})
}

// commit makes the session's new state, in the data plane and in the store.
func (s *Subscriber) commit(done func(error)) {
	o, record := object{s}.session(), s.record()
	s.request(true, func(answer func([]api.Usage, error)) {
		s.loop.opt.Sessions.PutLine(o, record, answer)
	}, func(err error) {
		done(err)
		s.next()
	})
}

// write keeps the record.
func (s *Subscriber) write() {
	record := s.record()
	s.request(true, func(answer func([]api.Usage, error)) {
		s.loop.opt.Sessions.KeepLine(s.seid, record, func(err error) { answer(nil, err) })
	}, func(err error) {
		if err != nil {
			s.loop.After(time.Second, s.next)
			return
		}
		s.next()
	})
}

// stored acknowledges events.
func (s *Subscriber) stored(acks []func()) {
	for _, ack := range acks {
		ack()
	}
}

// changed has the record written soon.
func (s *Subscriber) changed() {
	s.dirty = true
	s.next()
}

// Want is access.Session's.
func (s *Subscriber) Want(f access.Families, r *access.Request, done func(error)) {
	if s.ending {
		s.loop.Post(func() { done(errEnded) })
		return
	}
	err := addresses{s}.want(f, cmp.Or(r, &access.Request{}))
	if s.put {
		s.changed()
	}
	s.loop.Post(func() { done(err) })
}

// Up is access.Session's.
func (s *Subscriber) Up(f access.Families, mtu uint16, alive access.KeepAlive, done func(error)) {
	s.do(func() {
		if s.ending {
			s.loop.Post(func() { done(errEnded) })
			return
		}
		families, formerMTU, formerAlive := s.families, s.mtu, s.alive
		s.families, s.mtu, s.alive = f, mtu, alive
		if s.up.IsZero() {
			s.up = s.loop.opt.Now()
		}
		fresh, others := !s.put, f != families
		if !fresh && others {
			s.query++ // the answer has what was used before
		}
		asked := s.loop.opt.Now()
		s.commit(func(err error) {
			switch {
			case err != nil && fresh:
				s.up = time.Time{}
				s.loop.stats.failed("session")
				s.loop.log.Warn("a subscriber's session is refused", "user", s.about(),
					"session", s.ID(), "error", err)
				s.loop.history.note(s.at.request(), s.user, "the session is refused: "+err.Error())
			case err != nil:
				s.families, s.mtu, s.alive = families, formerMTU, formerAlive
			case fresh:
				s.loop.opt.Measures.SignIn(phaseSession, s.loop.opt.Now().Sub(asked))
				s.cameUp()
			case others:
				accounting{s}.account(aaa.Interim)
			}
			done(err)
		})
	})
}

// cameUp is called once: the first packets pass.
func (s *Subscriber) cameUp() {
	l := s.loop
	l.stats.signedIn++
	l.opt.Measures.SignIn(phaseTotal, l.opt.Now().Sub(s.coming.began))
	s.coming = nil
	s.watch()
	accounting{s}.account(aaa.Start)
	l.opt.Notify("subscriber.up", s.about(), "session", s.ID(), "line", LineText(&s.at.line), "ipv4",
		addrText(s.addresses.IPv4),
		"ipv6", prefixText(s.addresses.IPv6), "profile", s.plan.Profile)
}

// watch starts the timers of a session that is up.
func (s *Subscriber) watch() {
	if s.ending { // while the data plane took it
		return
	}
	l := s.loop
	s.limit.Stop()
	s.limit = nil
	if end := s.ends(); !end.IsZero() {
		s.limit = l.timers.add(end, func() { s.end(access.SessionTimeout) })
	}
	accounting{s}.expectUsage()
}

// ends is when its session time-out is, or would be.
func (s *Subscriber) ends() (never time.Time) {
	switch {
	case s.plan.SessionTimeout == 0:
		return never
	case s.up.IsZero():
		return s.loop.opt.Now().Add(s.plan.SessionTimeout)
	}
	return s.up.Add(s.plan.SessionTimeout)
}

// Keep is access.Session's.
func (s *Subscriber) Keep(state []byte) {
	s.keep = string(state)
	if !s.ending {
		s.changed() // also behind Up that is under way
	}
}

// Down is access.Session's.
func (s *Subscriber) Down(cause access.Cause) {
	s.client = nil
	s.declined = cause == access.UserError && s.at.kind == access.IPoE4
	s.end(cause)
}

// end ends the session, for any cause.
func (s *Subscriber) end(cause access.Cause) {
	if s.ending {
		return
	}
	s.ending, s.cause = true, cause
	s.loop.leaves(s)
	s.limit.Stop()
	s.interim.Stop()
	if c := s.client; c != nil {
		s.client = nil
		c.Ended(cause)
	}
	s.loop.by.leave(s)
	if !s.put && !s.busy {
		s.gone(cause)
		return
	}
	s.do(func() { s.drop(cause) })
}

// drop takes the session out of the data plane. The record has its cause, until accounting has it.
func (s *Subscriber) drop(cause access.Cause) {
	l := s.loop
	if !s.put { // it was refused meanwhile
		s.gone(cause)
		return
	}
	ended := l.opt.Now()
	record := s.recordEnded(cause, ended)
	s.request(false, func(answer func([]api.Usage, error)) {
		l.opt.Sessions.DropLine(s.seid, record, answer)
	}, func(err error) {
		if err != nil { // the session layer is full: it is tried again
			l.After(time.Second, func() { s.do(func() { s.drop(cause) }) })
			return
		}
		addresses{s}.release()
		accounting{s}.whenCounted(func() { s.stopped(cause, ended) })
	})
}

// stopped is called when all is counted.
func (s *Subscriber) stopped(cause access.Cause, ended time.Time) {
	l := s.loop
	s.stored(s.acks)
	s.acks = nil
	accounting{s}.bill(cause, ended)
	l.by.forget(s)
	l.stats.ended[cause]++
	l.opt.Notify("subscriber.down", s.about(), "session", s.ID(), "cause", CauseText(cause), "line",
		LineText(&s.at.line),
		"seconds", int64(ended.Sub(s.up)/time.Second), "uplink_bytes", s.used[0].bytes[0], "downlink_bytes",
		s.used[0].bytes[1])
	l.removeRecord(s.seid) // behind accounting's own, in one queue
}

// removeRecord has the store forget a session.
func (l *Loop) removeRecord(seid uint64) {
	l.window.enter(func() {
		l.opt.Sessions.KeepLine(seid, nil, func(err error) {
			l.Post(func() {
				l.window.leave()
				if err != nil {
					l.After(time.Second, func() { l.removeRecord(seid) })
				}
			})
		})
	})
}

// gone is the end of one whose packets never passed.
func (s *Subscriber) gone(cause access.Cause) {
	s.stored(s.acks)
	s.acks = nil
	addresses{s}.release()
	s.loop.by.forget(s)
	s.loop.stats.ended[cause]++
}
