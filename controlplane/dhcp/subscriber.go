// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"math"
	"net/netip"
	"time"

	"isthmus/controlplane/access"
)

// subscriber is one line's. It holds at most one waiting message of each kind; a newer one replaces it, so
// retransmissions are answered once.
//
//	none ─ message ─► signing in ─ accepted ─► session ─ message ─► Want ─► Up ─► answered
//	                         └──────── refused ─► remembered for Limits.Retry
type subscriber struct {
	s       *Server
	key     key
	line    access.Line
	circuit *circuit // nil: its access node has sent none
	since   time.Time
	session access.Session // nil: none (yet)
	cancel  func()         // of the sign-in under way
	timer   access.Timer
	wake    time.Time // when timer fires

	busy     bool // Want or Up is under way
	static   bool // by first packet
	dead     bool
	denied   bool      // refused
	told     bool      // the refusal may be answered; false: silence
	until    time.Time // without a session: the line is forgotten then
	declines uint8

	wants, asked, passing access.Families // asked: Want came back
	kept                  access.Families // that pass after a restart
	again                 time.Time       // when what was asked in vain may be asked again

	waiting4  *request4
	waiting6  *request6
	waitingRS bool
	upstream4 *exchange4 // with upstream servers; nil: none
	upstream6 *exchange6

	four       lease4
	peer       netip.Addr // its IPv6 address on the link; invalid: not known
	iid        uint8      // of its IA_NA address, less one: rises when it declines one
	ppp        *PPP       // nil: IPoE
	slaac      bool       // it asked for router advertisements, and got them
	ra         time.Time  // next
	probe      time.Time  // next, where no lease ends it
	unanswered uint8      // probes
	leased     [kinds]lease6
}

func (u *subscriber) port() *Port {
	p, _ := u.s.c.PortOf(&u.line)
	return &p
}

func union(a, b access.Families) access.Families {
	return access.Families{V4: a.V4 || b.V4, V6: a.V6 || b.V6, Delegated: a.Delegated || b.Delegated}
}

func without(a, b access.Families) access.Families {
	return access.Families{V4: a.V4 && !b.V4, V6: a.V6 && !b.V6, Delegated: a.Delegated && !b.Delegated}
}

// ready has the session hold f, and with pass its packets permitted. False: pending, the waiting message is looked at
// again. True: done as far as possible; Addresses has the result.
func (u *subscriber) ready(f access.Families, pass bool, r *access.Request) bool {
	now := u.s.host.Now()
	switch {
	case u.busy || u.cancel != nil:
		u.s.count(waits)
		return false
	case u.denied && now.Before(u.until):
		u.s.count(refusedBefore)
		u.forgetWaiting()
		return false
	case u.session == nil:
		u.signIn(f, r)
		return false
	}
	if !now.Before(u.again) {
		u.asked = u.have(u.asked)
	}
	if lacks := without(f, u.asked); lacks != (access.Families{}) {
		u.wants = union(u.held(), f)
		u.want(r)
		return false
	}
	if f = u.have(f); pass && without(f, u.passing) != (access.Families{}) {
		u.up(union(u.passing, f))
		return false
	}
	return true
}

// have is what of f the session has addresses for.
func (u *subscriber) have(f access.Families) access.Families {
	a := u.session.Grant().Addresses
	return access.Families{V4: f.V4 && a.IPv4.IsValid(), V6: f.V6 && a.IPv6.IsValid(),
		Delegated: f.Delegated && a.Delegated.IsValid()}
}

// held are the wanted families that the session keeps: an upstream server's address cannot be replaced from a pool.
func (u *subscriber) held() access.Families {
	six := v6{u}.relays()
	relayed := access.Families{V4: u.ppp != nil || len(u.port().Upstream) > 0, V6: six, Delegated: six}
	return without(u.wants, without(relayed, u.have(relayed)))
}

func (u *subscriber) signIn(f access.Families, r *access.Request) {
	if u.s.waiting >= int(u.s.c.Limits.Waiting) {
		u.refuse(r.Kind, tooMany, "as many sign-ins wait as dhcp.limits.waiting lets")
		u.forgetWaiting()
		u.s.remove(u)
		return
	}
	u.denied = false
	u.wants, r.Wants, r.Line = f, f, u.line
	u.s.waiting++
	cancel := u.s.host.SignIn(r, u, func(session access.Session, v *access.Verdict) {
		u.s.waiting--
		u.cancel = nil
		if session == nil {
			u.refused(v)
			return
		}
		u.session, u.asked, u.since = session, f, u.s.host.Now()
		u.again = u.since.Add(u.s.c.Limits.Retry)
		u.resume()
	})
	u.cancel = func() {
		u.s.waiting--
		cancel()
	}
}

func (u *subscriber) refused(v *access.Verdict) {
	u.denied, u.told = true, !v.Silent
	u.until = u.s.host.Now().Add(u.s.c.Limits.Retry)
	u.s.refused(u)
	if u.told && u.waiting4 != nil {
		v4{u}.denyWaiting()
	}
	u.forgetWaiting()
	u.sleep()
}

func (u *subscriber) want(r *access.Request) {
	u.busy = true
	f, session := u.wants, u.session
	session.Want(f, r, func(err error) {
		if u.session != session { // ended meanwhile
			return
		}
		u.busy = false
		u.asked, u.again = f, u.s.host.Now().Add(u.s.c.Limits.Retry)
		if err != nil { // waiting requests are served again, without the address
			u.refuse(r.Kind, noAddress, err.Error())
		}
		u.resume()
	})
}

func (u *subscriber) up(f access.Families) {
	u.busy = true
	u.keep(f)
	session := u.session
	done := func(err error) {
		if u.session != session {
			return
		}
		u.busy = false
		if err != nil {
			u.s.count(refusedByDataPlane)
			u.forgetWaiting()
			return
		}
		u.passing = f
		if (f.V6 || f.Delegated) && u.ra.IsZero() && u.s.c.RA.Interval > 0 {
			u.ra = u.s.host.Now() // unless it asked, which resume answers
		}
		u.resume()
	}
	u.pass(f, done)
}

func (u *subscriber) pass(f access.Families, done func(error)) {
	if u.ppp != nil {
		u.ppp.bearer.PassIPv6(f, done)
		return
	}
	u.session.Up(f, u.s.c.MTU, access.KeepAlive{}, done)
}

// resume looks at what waited.
func (u *subscriber) resume() {
	four, six, rs := u.waiting4, u.waiting6, u.waitingRS
	var answer, answer6 []byte
	if u.upstream4 != nil {
		answer = u.upstream4.answer
	}
	if u.upstream6 != nil {
		answer6 = u.upstream6.answer
	}
	u.forgetWaiting()
	if u.static && u.session != nil && !u.busy {
		u.passStatic()
	}
	if answer != nil {
		v4{u}.answer(answer, true)
	}
	if answer6 != nil && !u.dead {
		v6{u}.answer(answer6, true)
	}
	if four != nil && !u.dead {
		if p := u.port(); len(p.Upstream) > 0 {
			v4{u}.relay(p, four)
		} else {
			v4{u}.serve(four)
		}
	}
	if rs && !u.dead {
		v6{u}.solicited()
	}
	if six != nil && !u.dead {
		v6{u}.message(six)
	}
	if !u.dead {
		u.sleep()
	}
}

func (u *subscriber) forgetWaiting() {
	u.waiting4, u.waiting6, u.waitingRS = nil, nil, false
	if u.upstream4 != nil {
		u.upstream4.answer = nil
	}
	if u.upstream6 != nil {
		u.upstream6.answer = nil
	}
}

// firstPacket signs a subscriber in that only sends packets.
func (u *subscriber) firstPacket(from netip.Addr) {
	u.static = true
	if from.Is6() {
		u.peer = from
	}
	f, hint := access.Families{V4: from.Is4(), V6: from.Is6()}, access.Addresses{}
	if f.V4 {
		hint.IPv4 = from
	} else {
		hint.IPv6 = netip.PrefixFrom(from, 128)
	}
	if u.ready(f, false, &access.Request{Kind: access.Packet, Hint: hint}) {
		u.passStatic()
	}
}

// passStatic lets pass what a static subscriber's plan gave: the packet's source was a hint alone.
func (u *subscriber) passStatic() {
	f := u.have(access.Families{V4: true, V6: true, Delegated: true})
	if f == (access.Families{}) {
		u.s.count(noAddress)
		u.end(access.UserError)
		return
	}
	if without(f, u.passing) != (access.Families{}) {
		u.up(union(u.passing, f))
	}
}

// drop ends families of a session, and the session with the last one.
func (u *subscriber) drop(f access.Families, cause access.Cause) {
	if u.ppp != nil && !u.ppp.relayed { // the link is another's, and so are its addresses
		return
	}
	rest := without(u.passing, f)
	if f.V6 && u.passing.V6 || f.Delegated && u.passing.Delegated && !rest.V6 {
		v6{u}.advertise(f)
		u.slaac = u.slaac && !f.V6
	}
	u.wants, u.asked = without(u.wants, f), without(u.asked, f)
	if u.ppp == nil &&
		(u.session == nil || u.wants == (access.Families{}) || rest == (access.Families{})) {
		u.passing = rest
		u.end(cause)
		return
	}
	u.keep(rest)
	u.passing, u.busy = rest, true
	session := u.session
	u.pass(rest, func(err error) {
		if err != nil {
			u.s.count(refusedByDataPlane)
		}
		switch {
		case u.session != session:
			return
		case err != nil: // the data plane has the address still: it cannot be another's yet
			u.end(cause)
			return
		}
		session.Want(u.held(), nil, func(error) {
			if u.session == session {
				u.busy = false
				u.resume()
			}
		})
	})
	u.sleep()
}

// end ends it all from our side.
func (u *subscriber) end(cause access.Cause) {
	session := u.session
	u.leave()
	if session != nil {
		session.Down(cause)
	}
}

// left is the rest of the session, which bounds all times sent. At least a second, since 0 withdraws.
func (u *subscriber) left() time.Duration {
	if u.session != nil {
		if end := u.session.Grant().Ends; !end.IsZero() {
			return max(end.Sub(u.s.host.Now()).Truncate(time.Second), time.Second)
		}
	}
	return math.MaxInt64
}

// farewell sends the subscriber the possible messages about its end.
func (u *subscriber) farewell() {
	if u.session != nil && (u.passing.V6 || u.passing.Delegated) {
		v6{u}.advertise(u.passing)
	}
}

// restart ends the session and keeps the line, to count its declines. The next one has a prefix again for SLAAC.
func (u *subscriber) restart(cause access.Cause) {
	v4{u}.forget()
	v6{u}.forget()
	u.farewell()
	session, declines, kind := u.session, u.declines, access.IPoE6
	if u.wants.V4 {
		kind = access.IPoE4
	}
	now := u.s.host.Now()
	*u = subscriber{s: u.s, key: u.key, line: u.line, circuit: u.circuit, since: now, timer: u.timer, wake: u.wake,
		declines: declines, until: now.Add(u.s.c.Limits.Offer), peer: u.peer, waitingRS: u.slaac}
	u.penalise(kind)
	if session != nil {
		session.Down(cause)
	}
	u.sleep()
}

// penalise makes a client that declines every address wait (row B10).
func (u *subscriber) penalise(kind access.Kind) {
	if uint32(u.declines) >= u.s.c.Limits.Declines {
		u.denied, u.declines, u.until = true, 0, u.s.host.Now().Add(u.s.c.Limits.Penalty)
		u.refuse(kind, penalised,
			"it declines every address, and waits dhcp.limits.penalty: "+u.s.c.Limits.Penalty.String())
	}
}

// leave sends the farewell, and forgets the subscriber.
func (u *subscriber) leave() {
	if u.dead {
		return
	}
	u.farewell()
	if u.cancel != nil {
		u.cancel()
		u.cancel = nil
	}
	if u.timer != nil {
		u.timer.Stop()
	}
	u.dead, u.session = true, nil
	u.forgetWaiting()
	u.s.remove(u)
}

// Ended is access.Client's. No message of either family withdraws an address (but for RFC 3203, which clients lack). So
// router advertisements do, and the next renewal is denied or signs in again.
func (u *subscriber) Ended(access.Cause) { u.leave() }

// Replanned is access.Client's.
func (u *subscriber) Replanned() {
	if u.session != nil && (u.passing.V6 || u.passing.Delegated) {
		v6{u}.advertise(access.Families{})
	}
}

// Silent is access.Client's.
func (u *subscriber) Silent() { u.end(access.LostCarrier) }

// unused are addresses without a lease: the message that requested them was overtaken, or was the only one. They go
// back at unusedAt.
func (u *subscriber) unused() access.Families {
	if u.session == nil || u.static || u.ppp != nil && !u.ppp.relayed {
		return access.Families{}
	}
	had := union(u.wants, u.passing)
	return access.Families{V4: u.ppp == nil && had.V4 && u.four.expires.IsZero(),
		V6:        had.V6 && !u.slaac && !v6{u}.bound(address),
		Delegated: had.Delegated && !v6{u}.bound(prefix)}
}

func (u *subscriber) unusedAt() (none time.Time) {
	if u.unused() == (access.Families{}) {
		return none
	}
	return u.again.Add(u.s.c.Limits.Offer - u.s.c.Limits.Retry)
}

// sleep arms the timer for the next thing that time brings, unless it fires before that anyhow.
func (u *subscriber) sleep() {
	if u.dead || u.cancel != nil {
		return
	}
	next := u.until
	if u.session != nil {
		next = time.Time{}
	}
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	sooner(u.four.expires)
	sooner(u.leased[0].expires)
	sooner(u.leased[1].expires)
	if u.passing.V6 || u.passing.Delegated {
		sooner(u.ra)
	}
	sooner(u.unusedAt())
	if u.leaseless() {
		sooner(u.probe)
	}
	now := u.s.host.Now()
	if next.IsZero() {
		if u.session == nil || u.passing != (access.Families{}) || u.busy || u.ppp != nil {
			return
		}
		next = u.since.Add(u.s.c.Limits.Offer) // signed in, and has nothing: it lost interest
		if !now.Before(next) {
			next = now.Add(u.s.c.Limits.Offer)
		}
	}
	if u.timer != nil {
		if !u.wake.After(next) && u.wake.After(now) {
			return
		}
		u.timer.Stop()
	}
	u.wake = next
	u.timer = u.s.host.After(max(next.Sub(now), 0), u.tick)
}

// tick does what time brought.
func (u *subscriber) tick() {
	u.timer = nil
	if u.dead {
		return
	}
	now := u.s.host.Now()
	over := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	if u.session == nil {
		if u.cancel == nil && !now.Before(u.until) {
			if u.upstream4 != nil && !u.denied {
				u.refuse(access.IPoE4, unanswered, "no upstream server has answered with an address")
			}
			u.leave()
		} else {
			u.sleep()
		}
		return
	}
	if u.busy {
		u.timer = u.s.host.After(time.Second, u.tick)
		u.wake = now.Add(time.Second)
		return
	}
	var gone access.Families
	if over(u.four.expires) {
		u.four, gone.V4 = lease4{}, true
	}
	for i := range u.leased {
		if over(u.leased[i].expires) {
			u.leased[i] = lease6{}
			gone = union(gone, v6{u}.unleased(i))
		}
	}
	if over(u.unusedAt()) {
		gone = union(gone, u.unused())
	}
	switch {
	case gone != access.Families{}:
		if u.drop(gone, access.LostCarrier); u.dead {
			return
		}
	case u.ppp != nil: // its end is pppoe's
	case u.passing == access.Families{} && !u.leases() && over(u.since.Add(u.s.c.Limits.Offer)):
		u.end(access.LostCarrier)
		return
	case u.leaseless() && over(u.probe):
		if !u.ask() {
			return
		}
	}
	if (u.passing.V6 || u.passing.Delegated) && over(u.ra) {
		v6{u}.advertise(access.Families{})
	}
	u.sleep()
}
