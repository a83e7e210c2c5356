// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

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

// Clear ends the subscribers that find finds, and returns their number. An address in several network instances selects
// none. Loop's goroutine (Ask).
func (l *Loop) Clear(what string, cause access.Cause) (int, error) {
	list := l.by.find(what)
	for _, s := range list {
		if other := list[0]; s.plan.Instance != other.plan.Instance && s.user != what && isAddress(what) {
			return 0, fmt.Errorf("%s is an address in network instances %q and %q: "+
				"choose by session id, such as %s", what, other.plan.Instance, s.plan.Instance,
				other.ID())
		}
	}
	for _, s := range list {
		s.end(cause)
	}
	return len(list), nil
}

func isAddress(word string) bool {
	_, noAddress := netip.ParseAddr(word)
	_, noPrefix := netip.ParsePrefix(word)
	return noAddress == nil || noPrefix == nil
}

// drainTime bounds Drain: a data plane that is away takes no session out, and its last reports do not come.
const drainTime = 10 * time.Second

// Drain refuses new sign-ins and ends all sessions, then sends Accounting-Off: a planned shutdown. drained is closed
// when that was sent. Loop's goroutine (Ask).
func (l *Loop) Drain() (count int, drained <-chan struct{}) {
	if l.draining {
		return 0, l.drained
	}
	l.draining = true
	for s := range l.by.all {
		s.end(access.AdminReboot)
		count++
	}
	l.lastWord(l.opt.Now().Add(drainTime))
	return count, l.drained
}

// Resume takes new sign-ins again, behind Accounting-On; false: sessions that a Drain ended are not gone yet. Loop's
// goroutine (Ask).
func (l *Loop) Resume() bool {
	if !l.draining {
		return true
	}
	select {
	case <-l.drained:
	default:
		return false
	}
	l.draining, l.drained = false, make(chan struct{})
	l.bill(&aaa.Record{Kind: aaa.On, At: l.opt.Now()})
	return true
}

// lastWord is Accounting-Off, behind every Accounting-Stop: at the latest moment also of the remaining ones, with their
// counts.
func (l *Loop) lastWord(latest time.Time) {
	now := l.opt.Now()
	if len(l.by.seid) > 0 && now.Before(latest) {
		l.timers.add(now.Add(usageTime/20), func() { l.lastWord(latest) })
		return
	}
	for _, seid := range slices.Sorted(maps.Keys(l.by.seid)) {
		if s := l.by.seid[seid]; s.up != (time.Time{}) {
			l.stats.reportsLost += uint64(s.owed())
			accounting{s}.bill(s.cause, now)
		}
	}
	l.bill(&aaa.Record{Kind: aaa.Off, At: now})
	close(l.drained)
}

// Configure takes another configuration over. Subscribers on line keep their addresses, and all they have if the
// profile is gone. They end where their port or protocol is not served any more. Unchanged sessions are not committed
// again.
func (l *Loop) Configure(set *Settings) {
	l.retire(set)
	former := l.set
	l.set = set
	again := func(p *access.Plan) bool { return !sameService(p, former, set) }
	for s := range l.by.all {
		if p := set.Port(&s.at.line); p == nil || s.at.kind == access.PPPoE && !p.PPPoE ||
			s.at.kind != access.PPPoE && !p.IPoE {
			s.end(access.AdminReset)
			continue
		}
		s.replan(again, func(said *access.Plan) (access.Plan, error) {
			plan, left, err := l.set.plan(&s.at.line, said)
			if err == nil {
				l.leftOut(s.about(), left)
			}
			if err == nil && plan.Instance != s.plan.Instance {
				err = errInstance
			}
			return plan, err
		}, func(err error) {
			if err != nil && err != errEnded {
				l.log.Warn("a subscriber goes on as it was under the former configuration",
					"user", s.about(), "session", s.ID(), "error", err)
			}
		})
	}
	l.admission.advance()
}

// sameService: two configurations make the same session of a plan.
func sameService(p *access.Plan, former, set *Settings) bool {
	was, is := former.profiles[p.Profile], set.profiles[p.Profile]
	return was != nil && is != nil && was.UplinkPolicer == is.UplinkPolicer &&
		was.DownlinkPolicer == is.DownlinkPolicer && was.Mirror == is.Mirror && was.Counter == is.Counter &&
		reflect.DeepEqual(former.lists[p.ACLUp], set.lists[p.ACLUp]) &&
		reflect.DeepEqual(former.lists[p.ACLDown], set.lists[p.ACLDown])
}

var (
	errInstance = errors.New("another network instance")
	errKept     = errors.New("a session keeps its addresses and pools")
)

// Disconnect is aaa.Sessions'. Any goroutine.
func (l *Loop) Disconnect(sel *aaa.Selector, done aaa.Answer) {
	l.Post(func() {
		list := l.by.selected(sel)
		switch {
		case len(list) == 0:
			done(aaa.NoSession, "")
			return
		case len(list) > 1 && sel.OnlyAddresses(): // of several network instances
			done(aaa.Several, several(list))
			return
		}
		for _, s := range list {
			s.end(access.AdminReset)
		}
		done(aaa.OK, "")
	})
}

// severalShown of the sessions that a request means are named in an answer.
const severalShown = 4

// several says which sessions a request for one means, and how to mean one.
func several(list []*Subscriber) string {
	var ids []string
	for _, s := range list[:min(len(list), severalShown)] {
		ids = append(ids, s.ID())
	}
	slices.Sort(ids)
	return fmt.Sprintf("%d sessions match, %s among them: Acct-Session-Id names one", len(list),
		strings.Join(ids, ", "))
}

// Change is aaa.Sessions'. Any goroutine.
func (l *Loop) Change(sel *aaa.Selector, c *aaa.Change, done aaa.Answer) {
	l.Post(func() {
		list := l.by.selected(sel)
		switch {
		case len(list) == 0:
			done(aaa.NoSession, "")
			return
		case len(list) > 1: // RFC 5176 §3: all of them or none; a session is changed in a transaction of its own
			done(aaa.Several, several(list))
			return
		}
		s, result := list[0], aaa.NotPossible
		always := func(*access.Plan) bool { return true }
		s.replan(always, func(said *access.Plan) (access.Plan, error) {
			left, err := c.Apply(said, &s.addresses)
			if err != nil {
				result = aaa.ResultOf(err)
				return access.Plan{}, err
			}
			plan, more, err := l.set.plan(&s.at.line, said, s.plan.ACLUp, s.plan.ACLDown)
			if err == nil && said.Scheduler != s.auth.Scheduler && plan.Scheduler != said.Scheduler &&
				said.Scheduler != "" { // on line, a changed value is not left out
				err = errors.New(more[0].Why)
			}
			if err == nil && !(sameAddresses(s.plan, &plan) && s.keepsPools(said, &plan)) {
				err = errKept
			}
			if err != nil {
				result = aaa.BadValue
				return plan, err
			}
			l.leftOut(s.about(), append(left, more...))
			return plan, nil
		}, func(err error) {
			switch err {
			case nil:
				done(aaa.OK, "")
				return
			case errEnded:
				result = aaa.NoSession
			}
			l.history.note(s.at.request(), s.user, "a change is refused: "+err.Error())
			done(result, err.Error())
		})
	})
}

// sameAddresses: a session can change plans and keep its addresses.
func sameAddresses(was, is *access.Plan) bool {
	return was.Instance == is.Instance && was.IPv4 == is.IPv4 && was.IPv6 == is.IPv6 &&
		was.Delegated == is.Delegated &&
		was.InterfaceID == is.InterfaceID
}

// keepsPools: a change names only pools in effect. Another profile's pools apply to families that open later.
func (s *Subscriber) keepsPools(said, plan *access.Plan) bool {
	keeps := func(named, before, is, was string) bool { return named == before || is == was }
	return keeps(said.Pool4, s.auth.Pool4, plan.Pool4, s.plan.Pool4) &&
		keeps(said.Pool6, s.auth.Pool6, plan.Pool6, s.plan.Pool6) &&
		keeps(said.PoolPD, s.auth.PoolPD, plan.PoolPD, s.plan.PoolPD)
}

// replan changes a session's plan in one step of the data plane: each packet passes by the old or the new one. plan
// runs at the change's turn. It edits said, a copy of authentication's last answer, and applies it over the profile.
// again: an equal plan of a profile makes another session.
func (s *Subscriber) replan(again func(*access.Plan) bool, plan func(said *access.Plan) (access.Plan, error),
	done func(error)) {
	s.do(func() {
		if s.ending {
			done(errEnded)
			return
		}
		said := *s.auth
		is, err := plan(&said)
		if err != nil {
			done(err)
			return
		}
		s.change(again, said, is, done)
	})
}

// change is replan when all is known.
func (s *Subscriber) change(again func(*access.Plan) bool, said, plan access.Plan, done func(error)) {
	formerAuth, former, quota, grant, base := s.auth, s.plan, s.quota, s.grant, s.base
	spent := former.Quota > 0 && s.quota == 0 && plan.Quota == former.Quota
	if spent && former.Redirect != "" && said.Redirect == formerAuth.Redirect &&
		said.Without == formerAuth.Without {
		plan.Redirect = former.Redirect
	}
	if reflect.DeepEqual(*former, plan) && (!s.put || s.loop.set.profiles[plan.Profile] == nil ||
		!again(&plan)) {
		s.auth = s.loop.plans.shared(said)
		done(nil)
		return
	}
	if plan.Quota != former.Quota {
		s.renew(plan.Quota)
	}
	s.auth, s.plan = s.loop.plans.shared(said), s.loop.plans.shared(plan)
	servers := s.addresses.DNS
	if len(plan.DNS) > 0 {
		s.addresses.DNS = plan.DNS // for the next query: PPP has no message for it
	}
	if !s.put {
		done(nil)
		return
	}
	s.query++
	s.commit(func(err error) {
		if err != nil {
			s.auth, s.plan, s.quota, s.grant, s.base = formerAuth, former, quota, grant, base
			s.addresses.DNS = servers
			s.loop.log.Warn("a subscriber's plan is not changed", "user", s.about(),
				"session", s.ID(), "error", err)
			done(err)
			return
		}
		if s.grant != grant && s.base != s.used[0].volume() { // the answer has what was used before
			s.base, s.dirty = s.used[0].volume(), true
		}
		s.watch()
		accounting{s}.account(aaa.Interim)
		if s.client != nil {
			s.client.Replanned()
		}
		done(nil)
	})
}
