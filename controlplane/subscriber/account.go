// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"math/bits"
	"time"

	"isthmus/api"
	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
)

// counters of one family: uplink, downlink.
type counters struct{ bytes, packets [2]uint64 }

func (c *counters) add(u *api.Usage) {
	for i := range c.bytes {
		c.bytes[i] += u.Bytes[1+i]
		c.packets[i] += u.Packets[1+i]
	}
}

// seen has the counted reports of a URR: all below next except the missing ones.
type seen struct {
	next uint32
	owed uint64 // bit n: next-1-n, which a later one overtook: events come by another way than answers
}

// mostOwed bounds how late a report may be; what is older was lost with a data plane.
const mostOwed = 64

// fresh takes note of a report; false: it was counted before.
func (n *seen) fresh(sequence uint32) bool {
	if sequence < n.next {
		late := uint64(1) << (n.next - 1 - sequence) // 0 from mostOwed on
		was := n.owed&late != 0
		n.owed &^= late
		return was
	}
	more := sequence - n.next // are owed
	n.owed = n.owed<<(more+1) | (uint64(1)<<(more+1) - 2)
	n.next = sequence + 1
	return true
}

// list are the reports that are owed, and owes is its inverse.
func (n *seen) list() (list []uint32) {
	for left := n.owed; left != 0; left &= left - 1 {
		list = append(list, n.next-1-uint32(bits.TrailingZeros64(left)))
	}
	return list
}

func owes(next uint32, list []uint32) seen {
	n := seen{next: next}
	for _, sequence := range list {
		n.owed |= 1 << (next - 1 - sequence)
	}
	return n
}

// counted is what a subscriber has used, and may use.
type counted struct {
	used  [2]counters // all, IPv6
	seen  [2]seen     // reports of the URRs
	boot  uint64      // of the data plane that seen is of
	query uint32
	grant uint32
	quota uint64 // as it was granted last
	base  uint64 // bytes that were used then
}

// accounting sends a subscriber's records to the accounting server.
type accounting struct{ *Subscriber }

// measured adds what an answer of the data plane reports.
func (s accounting) measured(rows []api.Usage) {
	for i := range rows {
		s.count(&rows[i])
	}
	if len(rows) > 0 && s.put {
		s.dirty = true
	}
}

// count adds a report; false: it is counted, or of no URR of ours.
func (c *counted) count(u *api.Usage) bool {
	if u.URR != allURR && u.URR != ipv6URR || !c.seen[u.URR-1].fresh(u.Sequence) {
		return false
	}
	c.used[u.URR-1].add(u)
	return true
}

// usageTime is how long the report of a period, or the last one, may be late.
const usageTime = 2 * time.Second

// owed is how many reports are to come still.
func (c *counted) owed() int {
	return bits.OnesCount64(c.seen[0].owed) + bits.OnesCount64(c.seen[1].owed)
}

// whenCounted calls fn when no report is owed, or will not come any more.
func (s accounting) whenCounted(fn func()) {
	if s.owed() == 0 {
		fn()
		return
	}
	s.lost = s.loop.timers.add(s.loop.opt.Now().Add(usageTime), func() {
		s.loop.stats.reportsLost += uint64(s.owed())
		s.seen[0].owed, s.seen[1].owed = 0, 0
		fn()
	})
}

// LineEvent is session.Lines'. Any goroutine.
func (l *Loop) LineEvent(e *api.Event, done func()) {
	event := *e
	l.Post(func() { l.event(&event, done) })
}

// LineLost is session.Lines'. Any goroutine. A record of another boot has it already.
func (l *Loop) LineLost(seid, boot uint64, usage []api.Usage, done func()) {
	l.Post(func() {
		s := l.by.seid[seid]
		if s == nil || s.boot != boot {
			done()
			return
		}
		s.acks = append(s.acks, done)
		if (accounting{s}).measured(usage); !s.ending {
			s.changed()
		}
	})
}

// LinesBoot is session.Lines'. Any goroutine.
func (l *Loop) LinesBoot(id uint64) {
	l.Post(func() {
		if id == l.boot {
			return
		}
		l.former, l.boot = l.boot, id
		for _, s := range l.by.seid {
			accounting{s}.bootIs(id)
		}
	})
}

// bootIs notes the data plane's boot: a new one numbers reports from the start, and has granted the whole quota again.
func (s accounting) bootIs(id uint64) {
	if s.boot == id {
		return
	}
	s.loop.stats.reportsLost += uint64(s.owed())
	s.seen, s.boot = [2]seen{}, id
	switch {
	case !s.put || s.ending:
	case s.quota == 0:
		s.changed()
	default:
		s.do(func() {
			if s.ending || s.quota == 0 {
				return
			}
			s.renew(s.left())
			s.query++
			s.commit(func(err error) {
				if err != nil {
					s.loop.log.Warn("a subscriber's quota began anew with the data plane",
						"user", s.about(), "session", s.ID(), "error", err)
				}
			})
		})
	}
}

// renew grants a quota.
func (c *counted) renew(quota uint64) {
	c.quota, c.base = quota, c.used[0].volume()
	c.grant++
}

// left is the rest of the quota: 1 for none, as 0 is no quota.
func (c *counted) left() uint64 {
	used := c.used[0].volume() - c.base
	return max(c.quota, used+1) - used
}

func (c *counters) volume() uint64 { return c.bytes[0] + c.bytes[1] }

// LineEnded is session.Lines'. Any goroutine.
func (l *Loop) LineEnded(seid uint64, usage []api.Usage) {
	l.Post(func() {
		s := l.by.seid[seid]
		if s == nil {
			return
		}
		accounting{s}.measured(usage)
		if !s.ending {
			l.log.Warn("a subscriber's session was ended by the session layer", "user", s.about(),
				"session", s.ID())
			s.end(access.NASError)
		}
	})
}

func (l *Loop) event(e *api.Event, done func()) {
	seid := e.SEID
	if e.Type == api.EventTypeUsage && e.Usage.SEID != 0 {
		seid = e.Usage.SEID
	}
	s := l.by.seid[seid]
	if s == nil {
		done()
		return
	}
	switch {
	case e.BootID == 0:
	case e.BootID != l.former:
		accounting{s}.bootIs(e.BootID)
	case e.Type == api.EventTypeUsage: // too late to know whether it is counted
		l.stats.reportsLost++
		done()
		return
	}
	switch e.Type {
	case api.EventTypeUsage:
		accounting{s}.usage(&e.Usage, done)
		return
	case api.EventTypeInactive:
		s.acks = append(s.acks, done) // the event comes once: first the end must be stored
		s.end(access.IdleTimeout)
		return
	case api.EventTypeLCPDown:
		s.acks = append(s.acks, done)
		if s.client != nil {
			s.client.Silent()
		}
		if !s.ending {
			s.changed()
		}
		return
	}
	done()
}

// usage counts a report that came as an event. done is called when the store has it.
func (s accounting) usage(u *api.Usage, done func()) {
	if !s.count(u) {
		done()
		return
	}
	s.acks = append(s.acks, done)
	if s.lost != nil && s.owed() == 0 { // the last of a session that has ended
		timer := s.lost
		fn := timer.fn
		timer.Stop()
		s.lost = nil
		fn()
		return
	}
	switch {
	case s.ending:
		return
	case u.Triggers&api.UsageVolqu != 0:
		s.exhausted()
	case u.URR == allURR && u.Triggers&api.UsagePerio != 0:
		s.interim.Stop() // IPv6's part comes in the same step
		s.interim = s.loop.timers.add(s.loop.opt.Now().Add(linkedTime), func() {
			s.account(aaa.Interim)
			s.expectUsage()
		})
	}
	s.changed()
}

// linkedTime is how long IPv6's report may come behind that of all packets.
const linkedTime = 100 * time.Millisecond

// expectUsage has a record sent also when the data plane reports nothing for a period.
func (s accounting) expectUsage() {
	s.interim.Stop()
	s.interim = nil
	if s.plan.Interim > 0 && !s.ending {
		s.interim = s.loop.timers.add(s.loop.opt.Now().Add(s.plan.Interim+usageTime), func() {
			s.account(aaa.Interim)
			s.expectUsage()
		})
	}
}

// exhausted is called when the quota is used up.
func (s accounting) exhausted() {
	profile := s.loop.set.profiles[s.plan.Profile]
	s.loop.opt.Notify("subscriber.quota", s.about(), "session", s.ID(), "bytes", s.plan.Quota)
	if profile == nil || profile.Exhausted != "redirect" {
		s.end(access.SessionTimeout)
		return
	}
	s.do(func() {
		if s.ending {
			return
		}
		plan := *s.plan
		plan.Redirect = profile.Redirect
		s.plan, s.quota = s.loop.plans.shared(plan), 0
		s.query++
		s.commit(func(err error) {
			if err != nil {
				s.end(access.NASError)
				return
			}
			s.account(aaa.Interim)
			if s.client != nil {
				s.client.Replanned()
			}
		})
	})
}

func (s accounting) account(kind aaa.Kind) { s.accountAt(kind, 0, s.loop.opt.Now()) }

// accountAt sends an accounting record.
func (s accounting) accountAt(kind aaa.Kind, cause access.Cause, at time.Time) {
	s.loop.bill(&aaa.Record{Kind: kind, Session: s.ID(), At: at, Began: s.up, User: s.user, Request: s.at.request(),
		Addresses: s.addresses, Class: s.plan.Class, CUI: s.plan.CUI, Total: s.used[0].record(),
		V6:    s.used[1].record(),
		Cause: cause, Local: s.plan.Local})
}

func (c *counters) record() aaa.Counters {
	return aaa.Counters{UpBytes: c.bytes[0], DownBytes: c.bytes[1], UpPackets: c.packets[0],
		DownPackets: c.packets[1]}
}

// bill sends the accounting record of the end, once.
func (s accounting) bill(cause access.Cause, ended time.Time) {
	if !s.billed {
		s.billed = true
		s.accountAt(aaa.Stop, cause, ended)
	}
}

// bill hands a record to accounting.
func (l *Loop) bill(r *aaa.Record) {
	if err := l.opt.Auth.Account(r); err != nil {
		l.log.Error("a record of accounting is lost", "session", r.Session, "error", err)
	}
}
