// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
)

var causes = map[access.Cause]string{
	access.UserRequest: "user-request", access.LostCarrier: "lost-carrier", access.LostService: "lost-service",
	access.IdleTimeout: "idle-timeout", access.SessionTimeout: "session-timeout", access.AdminReset: "admin-reset",
	access.AdminReboot: "admin-reboot", access.PortError: "port-error", access.NASError: "nas-error",
	access.NASRequest: "nas-request", access.NASReboot: "nas-reboot",
	access.ServiceUnavailable: "service-unavailable",
	access.UserError:          "user-error",
}

// CauseText is Acct-Terminate-Cause in words (RFC 2866 §5.10).
func CauseText(c access.Cause) string { return causes[c] }

// Causes are all in words.
func Causes() []string { return slices.Sorted(maps.Values(causes)) }

// CauseOf is CauseText's inverse.
func CauseOf(text string) (access.Cause, bool) {
	for c, name := range causes {
		if name == strings.ToLower(text) {
			return c, true
		}
	}
	return 0, false
}

// Clear ends the subscribers that find finds, and says how many. Loop's goroutine (Ask).
func (l *Loop) Clear(what string, cause access.Cause) int {
	list := l.find(what)
	for _, s := range list {
		s.end(cause)
	}
	return len(list)
}

// Drain lets nobody in any more and ends all, then tells accounting that we go: a planned shutdown.
func (l *Loop) Drain() int {
	l.draining = true
	count := 0
	for s := range l.by.all {
		s.end(access.AdminReboot)
		count++
	}
	l.whenEmpty(func() { l.bill(&aaa.Record{Kind: aaa.Off, At: l.opt.Now()}) })
	return count
}

// whenEmpty calls fn when nobody is left.
func (l *Loop) whenEmpty(fn func()) {
	if len(l.by.seid) == 0 {
		fn()
		return
	}
	l.timers.add(l.opt.Now().Add(usageTime/20), func() { l.whenEmpty(fn) })
}

// Configure takes another configuration over. Who is on line keeps what it has where the profile is gone.
func (l *Loop) Configure(set *Settings) {
	l.set = set
	for s := range l.by.all {
		plan, err := set.plan(&s.request.Line, &s.auth)
		if err != nil || plan.Instance != s.plan.Instance {
			l.log.Warn("a subscriber goes on as it was under the former configuration", "subscriber",
				s.about(),
				"session", s.id, "error", err)
			continue
		}
		s.replan(s.auth, plan, nil)
	}
	l.admission.advance()
}

// Disconnect is aaa.Sessions'. Any goroutine.
func (l *Loop) Disconnect(sel *aaa.Selector, done func(aaa.Result)) {
	l.Post(func() {
		list := l.selected(sel)
		if len(list) == 0 {
			done(aaa.NoSession)
			return
		}
		for _, s := range list {
			s.end(access.AdminReset)
		}
		done(aaa.OK)
	})
}

// Change is aaa.Sessions'. Any goroutine.
func (l *Loop) Change(sel *aaa.Selector, c *aaa.Change, done func(aaa.Result)) {
	l.Post(func() {
		list := l.selected(sel)
		switch {
		case len(list) == 0:
			done(aaa.NoSession)
			return
		case len(list) > 1:
			done(aaa.Several)
			return
		}
		s := list[0]
		said := s.auth
		if c.Apply(&said) != nil {
			done(aaa.BadValue)
			return
		}
		plan, err := l.set.plan(&s.request.Line, &said)
		if err != nil || !sameAddresses(&s.plan, &plan) {
			done(aaa.NotPossible)
			return
		}
		s.replan(said, plan, func(err error) {
			if err != nil {
				done(aaa.NotPossible)
				return
			}
			done(aaa.OK)
		})
	})
}

// sameAddresses tells whether a session can go from one plan to another: it keeps its addresses.
func sameAddresses(was, is *access.Plan) bool {
	return was.Instance == is.Instance && was.IPv4 == is.IPv4 && was.IPv6 == is.IPv6 &&
		was.Delegated == is.Delegated &&
		was.InterfaceID == is.InterfaceID
}

// replan has a session be of another plan: the data plane changes it in one step, and packets pass by one or the other.
// done may be nil.
func (s *Subscriber) replan(said, plan access.Plan, done func(error)) {
	s.do(func() {
		answer := func(err error) {
			if done != nil {
				done(err)
			}
		}
		switch {
		case s.ending:
			answer(errEnded)
			return
		case reflect.DeepEqual(s.plan, plan) && (!s.put || s.loop.set.profiles[plan.Profile] == nil):
			s.auth = said
			answer(nil)
			return
		}
		formerAuth, former, quota, grant := s.auth, s.plan, s.quota, s.grant
		if plan.Quota != former.Quota {
			s.quota = plan.Quota
			s.grant++
		}
		s.auth, s.plan = said, plan
		if !s.put {
			answer(nil)
			return
		}
		s.query++
		s.commit(func(err error) {
			if err != nil {
				s.auth, s.plan, s.quota, s.grant = formerAuth, former, quota, grant
				s.loop.log.Warn("a subscriber's plan is not changed", "subscriber", s.about(),
					"session", s.id, "error", err)
				answer(err)
				return
			}
			s.watch()
			s.account(interimRecord, 0)
			if s.client != nil {
				s.client.Replanned()
			}
			answer(nil)
		})
	})
}
