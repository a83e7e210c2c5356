// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"isthmus/controlplane/access"
)

// attempt is a sign-in on its way.
type attempt struct {
	loop      *Loop
	seid      uint64
	id        string
	user      string
	request   *access.Request
	client    access.Client
	done      func(access.Session, *access.Verdict)
	began     time.Time
	let       time.Time // when its turn came; zero: not yet
	over      bool      // answered, or cancelled
	cancelled bool      // the front end gets no answer

	late    *timer        // it has waited too long for the addresses of
	holders []*Subscriber // these
}

// SignIn is access.Host's.
func (l *Loop) SignIn(r *access.Request, c access.Client, done func(access.Session, *access.Verdict)) (cancel func()) {
	if p := l.set.Port(&r.Line); p == nil || !p.Trusted {
		r.Agent = access.Agent{} // the line is not trusted: its tags may be forged
	}
	t := &attempt{loop: l, request: r, client: c, done: done, began: l.opt.Now()}
	t.seid = l.by.freshSEID()
	t.id = sessionID(t.seid)
	if l.draining {
		t.refuse("draining", goingDown)
	} else {
		l.admission.enter(t)
	}
	return func() {
		t.cancelled = true
		if !t.over {
			t.over = true
			l.stats.failed("cancelled")
			l.history.note(r, t.user, "gave up")
		}
	}
}

var goingDown = &access.Verdict{Silent: true, Why: "the gateway is being shut down"}

// sessionID is the Acct-Session-Id.
func sessionID(seid uint64) string { return fmt.Sprintf("%016x", seid) }

// seidOf is sessionID's inverse; 0 for what it does not make.
func seidOf(id string) uint64 {
	v, err := strconv.ParseUint(id, 16, 64)
	if err != nil || sessionID(v) != id {
		return 0
	}
	return v
}

// refuse answers, later: the front end may be in the middle of SignIn.
func (t *attempt) refuse(reason string, v *access.Verdict) {
	if t.over {
		return
	}
	t.loop.stats.failed(reason)
	t.loop.history.note(t.request, t.user, v.Why)
	t.loop.opt.Notify("subscriber.refused", t.about(), "why", v.Why, "reason", reason, "line",
		LineText(&t.request.Line))
	t.over = true
	t.loop.Post(func() {
		if !t.cancelled {
			t.done(nil, v)
		}
	})
}

// about is the subject of an event.
func (t *attempt) about() string { return cmp.Or(t.user, macText(t.request.Line.MAC)) }

// authenticate is called when its turn came.
func (t *attempt) authenticate() {
	l := t.loop
	t.let = l.opt.Now()
	l.opt.Measures.SignIn(phaseQueue, t.let.Sub(t.began))
	t.user = l.opt.Auth.UserName(t.request)
	l.opt.Auth.Authenticate(t.request, t.id, func(v *access.Verdict) {
		l.Post(func() {
			l.admission.leave()
			if !t.over {
				l.opt.Measures.SignIn(phaseAuth, l.opt.Now().Sub(t.let))
				t.decided(v)
			}
		})
	})
}

func (t *attempt) decided(v *access.Verdict) {
	l := t.loop
	switch {
	case l.draining:
		t.refuse("draining", goingDown)
		return
	case v.Accept:
	case v.Silent:
		t.refuse("no answer", v)
		return
	default:
		t.refuse("authentication", v)
		return
	}
	plan, left, err := l.set.plan(&t.request.Line, &v.Plan)
	if err != nil { // as if it had been rejected (RFC 2865 §5.6, RFC 2868 §3.1)
		t.refuse("plan", &access.Verdict{Why: err.Error(), Message: v.Message, Failure: v.Failure})
		return
	}
	s := &Subscriber{loop: l, seid: t.seid, user: cmp.Or(v.Plan.User, t.user),
		at:   attachmentOf(t.request),
		auth: l.plans.shared(v.Plan), plan: l.plans.shared(plan),
		client: t.client, coming: &comingUp{began: t.began, let: l.opt.Now()},
		counted: counted{quota: plan.Quota, boot: l.boot}}
	t.seat(s, v, append(v.Left, left...))
}

// enter puts a subscriber with its addresses on line.
func (t *attempt) enter(s *Subscriber, v *access.Verdict, left []access.Left) {
	l := t.loop
	t.late.Stop()
	l.opt.Measures.SignIn(phaseAddress, l.opt.Now().Sub(s.coming.let))
	t.over = true
	l.by.add(s)
	s.limit = l.timers.add(l.opt.Now().Add(untilUp), func() { s.end(access.LostService) })
	l.history.note(t.request, t.user, l.leftOut(s.about(), left))
	answer := *v
	answer.Plan = *s.plan
	t.done(s, &answer)
}

// leftOut publishes an event for each part left out of a plan. known: the parts left out with a reason, for the
// history.
func (l *Loop) leftOut(about string, list []access.Left) (known string) {
	for _, one := range list {
		l.opt.Notify("subscriber.left-out", one.What, "subscriber", about, "why", cmp.Or(one.Why, "not known"))
		if one.Why != "" {
			known += "; " + one.What + ": " + one.Why
		}
	}
	if known != "" {
		known = "let in without " + known[2:]
	}
	return known
}

// untilUp is how long an accepted subscriber may take until its packets pass.
const untilUp = time.Minute
