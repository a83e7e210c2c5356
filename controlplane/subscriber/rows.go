// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"isthmus/controlplane/access"
)

// Row of `show subscriber`.
type Row struct {
	User, Session, Kind, State string
	Line, MAC                  string
	PPPoE                      uint16
	Circuit, Remote            string
	IPv4, IPv6, Delegated      string
	Profile, Instance          string
	UplinkList, DownlinkList   string // access lists; empty: none
	Scheduler                  string // profile of its pipe
	Since                      time.Time
	Up, Down                   access.Rate
	Quota                      uint64 // of the plan
	UpBytes, DownBytes         uint64 // reported so far
	UpPackets, DownPackets     uint64
	SEID                       uint64
}

// Attempt of `show subscriber`.
type Attempt struct {
	User, Kind, Line, MAC string
	First, Last           time.Time
	Count                 int
	Why                   string // empty: accepted, with the whole answer
}

// KindText names how a subscriber signs in.
func KindText(k access.Kind) string {
	switch k {
	case access.PPPoE:
		return "pppoe"
	case access.IPoE4:
		return "dhcp"
	case access.IPoE6:
		return "dhcpv6"
	case access.Packet:
		return "packet"
	}
	return ""
}

func (s *Subscriber) row() Row {
	state := "up"
	switch {
	case s.ending:
		state = "ending"
	case !s.put:
		state = "starting"
	case s.plan.Redirect != "":
		state = "captive"
	}
	r, a := &s.at, &s.addresses
	since := s.up
	if s.coming != nil {
		since = s.coming.let
	}
	return Row{User: s.user, Session: s.ID(), Kind: KindText(r.kind), State: state, Line: LineText(&r.line),
		MAC: macText(r.line.MAC), PPPoE: r.pppoe, Circuit: string(r.agent.CircuitID),
		Remote: string(r.agent.RemoteID),
		IPv4:   addrText(a.IPv4), IPv6: prefixText(a.IPv6), Delegated: prefixText(a.Delegated),
		Profile:  s.plan.Profile,
		Instance: s.plan.Instance, UplinkList: s.plan.ACLUp, DownlinkList: s.plan.ACLDown,
		Scheduler: s.plan.Scheduler, Since: since, Up: s.plan.Up, Down: s.plan.Down, Quota: s.plan.Quota,
		UpBytes:   s.used[0].bytes[0],
		DownBytes: s.used[0].bytes[1], UpPackets: s.used[0].packets[0], DownPackets: s.used[0].packets[1],
		SEID: s.seid}
}

// Rows are all subscribers, or those that what names: by line, then by session. Loop's goroutine (Ask).
func (l *Loop) Rows(what string) []Row {
	var rows []Row
	if what != "" {
		for _, s := range l.by.find(what) {
			rows = append(rows, s.row())
		}
	} else {
		rows = make([]Row, 0, len(l.by.seid))
		for _, s := range l.by.seid {
			rows = append(rows, s.row())
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.MAC, b.MAC), cmp.Compare(a.SEID, b.SEID))
	})
	return rows
}

// Attempts are the last attempts of what: a user, a MAC address, a line, a circuit id; empty: all.
func (l *Loop) Attempts(what string, most int) []Attempt {
	lines := map[access.Line]bool{}
	if what != "" {
		for _, s := range l.by.find(what) {
			lines[s.at.line] = true
		}
	}
	list := l.history.attempts(most, func(p *past) bool {
		return what == "" || strings.EqualFold(p.user, what) || strings.EqualFold(macText(p.line.MAC), what) ||
			strings.EqualFold(LineText(&p.line), what) || strings.EqualFold(p.circuit, what) || lines[p.line]
	})
	out := make([]Attempt, len(list))
	for i := range list {
		p := &list[i]
		out[i] = Attempt{p.user, KindText(p.kind), LineText(&p.line), macText(p.line.MAC), p.first, p.last,
			p.count, p.why}
	}
	return out
}

// Counts for metrics.
type Counts struct {
	On                     map[[2]string]int // by kind and state
	Waiting, Running       int               // sign-ins
	SignedIn, Replaced     uint64
	ReportsLost            uint64
	Failures, Ended        map[string]uint64 // by reason, by cause
	PPPoE, IPoE            uint64            // frames
	NobodyThere, NotServed uint64            // frames without a receiver
}

// Counts copies the counters. Loop's goroutine (Ask).
func (l *Loop) Counts() Counts {
	t := &l.stats
	c := Counts{On: map[[2]string]int{}, Waiting: len(l.admission.queue), Running: l.admission.running,
		SignedIn: t.signedIn,
		Replaced: t.replaced, ReportsLost: t.reportsLost, Failures: map[string]uint64{},
		Ended: map[string]uint64{},
		PPPoE: t.frames[framePPPoE], IPoE: t.frames[frameIPoE], NobodyThere: t.frames[frameNoPort],
		NotServed: t.frames[frameNotServed]}
	for _, s := range l.by.seid {
		r := s.row()
		c.On[[2]string{r.Kind, r.State}]++
	}
	for reason, n := range t.failures {
		c.Failures[reason] = n
	}
	for cause, n := range t.ended {
		c.Ended[CauseText(cause)] = n
	}
	return c
}
