// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"isthmus/api"
	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session"
)

// stored is what the store has of a subscriber beside its session: JSON, as `isthmus store dump` shows it.
type stored struct {
	User      string           `json:"user,omitzero"`
	Request   *access.Request  `json:"request,omitzero"`
	Plan      *access.Plan     `json:"plan,omitzero"`     // as authentication said
	Redirect  string           `json:"redirect,omitzero"` // in effect
	Instance  string           `json:"instance,omitzero"`
	Addresses access.Addresses `json:"addresses,omitzero"`
	Families  access.Families  `json:"families,omitzero"`
	MTU       uint16           `json:"mtu,omitzero"`
	Alive     access.KeepAlive `json:"alive,omitzero"`
	Keep      []byte           `json:"keep,omitzero"` // the front end's
	Up        time.Time        `json:"up,omitzero"`
	Used      [2]storedUsage   `json:"used,omitzero"` // all, IPv6
	Boot      uint64           `json:"boot,omitzero"` // of the data plane
	Query     uint32           `json:"query,omitzero"`
	Grant     uint32           `json:"grant,omitzero"`
	Quota     uint64           `json:"quota,omitzero"` // as it was granted last
	Base      uint64           `json:"base,omitzero"`  // bytes that were used then

	Ended *time.Time   `json:"ended,omitzero"`
	Cause access.Cause `json:"cause,omitzero"`
}

// storedUsage: uplink and downlink, and which reports are in them.
type storedUsage struct {
	Bytes   [2]uint64 `json:"bytes,omitzero"`
	Packets [2]uint64 `json:"packets,omitzero"`
	Next    uint32    `json:"next,omitzero"`
	Owed    []uint32  `json:"owed,omitzero"`
}

func (s *Subscriber) toStore() *stored {
	r := &stored{User: s.user, Request: s.at.request(), Plan: s.auth, Redirect: s.plan.Redirect,
		Instance:  s.plan.Instance,
		Addresses: s.addresses, Families: s.families, MTU: s.mtu, Alive: s.alive, Keep: []byte(s.keep), Up: s.up,
		Boot: s.boot, Query: s.query, Grant: s.grant, Quota: s.quota, Base: s.base}
	for i := range r.Used {
		r.Used[i] = storedUsage{s.used[i].bytes, s.used[i].packets, s.seen[i].next, s.seen[i].list()}
	}
	return r
}

func encode(r *stored) []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // no type in it can fail
	}
	return b
}

func (s *Subscriber) record() []byte { return encode(s.toStore()) }

func (s *Subscriber) recordEnded(cause access.Cause, at time.Time) []byte {
	r := s.toStore()
	r.Ended, r.Cause = &at, cause
	return encode(r)
}

// fromStore is a subscriber of a record, without what only lives in memory.
func (l *Loop) fromStore(seid uint64, r *stored) *Subscriber {
	s := &Subscriber{loop: l, seid: seid, user: r.User, addresses: r.Addresses, families: r.Families, mtu: r.MTU,
		alive: r.Alive, keep: string(r.Keep), up: r.Up, put: true,
		counted: counted{boot: r.Boot, query: r.Query, grant: r.Grant, quota: r.Quota, base: r.Base}}
	s.at = attachmentOf(cmp.Or(r.Request, &access.Request{}))
	s.auth = l.plans.shared(*cmp.Or(r.Plan, &access.Plan{}))
	for i := range r.Used {
		u := &r.Used[i]
		s.used[i] = counters{u.Bytes, u.Packets}
		s.seen[i] = owes(u.Next, u.Owed)
	}
	return s
}

// Restore brings the stored subscribers back: before Run and any sign-in. A subscriber that cannot be restored is
// ended. Without stored subscribers it sends Accounting-On.
func (l *Loop) Restore(records []session.LineRecord) {
	if len(records) == 0 {
		l.bill(&aaa.Record{Kind: aaa.On, At: l.opt.Now()})
		return
	}
	restored := 0
	for i := range records {
		if err := l.restore(&records[i]); err != nil {
			l.log.Error("a subscriber is not restored", "session", sessionID(records[i].SEID), "error", err)
		} else {
			restored++
		}
	}
	l.log.Info("subscribers restored", "count", restored, "records", len(records))
}

func (l *Loop) restore(from *session.LineRecord) error {
	var r stored
	if err := json.Unmarshal(from.Data, &r); err != nil {
		l.discard(from.SEID)
		return err
	}
	s := l.fromStore(from.SEID, &r)
	if r.Ended != nil { // it ended before accounting had it
		s.plan = s.auth
		l.by.seid[s.seid] = s
		s.ending = true
		s.stopped(r.Cause, *r.Ended)
		return nil
	}
	if now := l.opt.Now(); s.up.After(now) { // the clock was put back: its time-out is no longer for that
		s.up = now
	}
	plan, left, err := l.set.plan(&s.at.line, s.auth)
	if err == nil {
		l.leftOut(s.about(), left)
		plan.Redirect = cmp.Or(r.Redirect, plan.Redirect)
		s.plan = l.plans.shared(plan)
		l.by.add(s)
		err = addresses{s}.holdAgain(r.Instance, from.Session)
		if plan.Redirect != "" {
			object{s}.gardenFilters() // names are looked up again
		}
	} else {
		plan = *s.auth
		plan.Instance = r.Instance
		s.plan = l.plans.shared(plan)
		l.by.add(s)
	}
	front := l.ipoe
	if s.at.kind == access.PPPoE {
		front = l.pppoe
	}
	if err == nil && front == nil {
		err = fmt.Errorf("its protocol is not served any more")
	}
	if err == nil {
		if s.client = front.Restore(s, s.at.request(), []byte(s.keep)); s.client == nil {
			err = fmt.Errorf("its front end does not know how it was")
		}
	}
	if err != nil {
		s.end(access.NASError)
		return err
	}
	s.watch()
	if !(object{s}).sameAs(from.Session) { // the configuration is another
		s.do(func() { s.commit(func(error) {}) })
	}
	return nil
}

// discard ends a session whose record cannot be read. The data plane may be away still.
func (l *Loop) discard(seid uint64) {
	l.opt.Sessions.DropLine(seid, nil, func(_ []api.Usage, err error) {
		if err != nil {
			l.Post(func() { l.After(time.Second, func() { l.discard(seid) }) })
		}
	})
}

// sameAs: a stored session equals what it must be now.
func (s object) sameAs(is *rules.Session) bool {
	o := s.session()
	o.Owner, o.Association, o.Worker, o.Pipe = is.Owner, is.Association, is.Worker, is.Pipe
	return bytes.Equal(rules.AppendSession(nil, o), rules.AppendSession(nil, is))
}
