// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"isthmus/controlplane/pfcp"
)

// How many refusals are remembered: of known peers, and apart of unknown ones, which must not displace them.
const (
	refusalsOfPeers   = 32
	refusalsOfUnknown = 8
)

// Refusal is the reason of a refused request, as text. Equal ones of one peer are one, with the last time.
type Refusal struct {
	Time    time.Time `json:"time"`
	Count   uint64    `json:"count"`
	Peer    string    `json:"peer"`
	Message string    `json:"message"`
	Reason  string    `json:"reason"` // as in `rejected`
	Cause   uint8     `json:"cause"`
	IE      uint16    `json:"offending_ie,omitempty"`
	Rule    string    `json:"rule,omitempty"`
	Text    string    `json:"text" private:"words"`
}

func (r *Refusal) same(o *Refusal) bool {
	return r.Peer == o.Peer && r.Message == o.Message && r.Reason == o.Reason && r.IE == o.IE && r.Rule == o.Rule &&
		r.Text == o.Text
}

// refusals are the last ones, the newest last; lock guards them.
type refusals struct {
	lock           sync.Mutex
	peers, unknown []Refusal
}

// note remembers a refusal in the place of the oldest.
func note(list []Refusal, r Refusal, most int) []Refusal {
	if i := slices.IndexFunc(list, func(o Refusal) bool { return o.same(&r) }); i >= 0 {
		r.Count += list[i].Count
		list = slices.Delete(list, i, i+1)
	} else if len(list) >= most {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, r)
}

func (x *refusals) add(r Refusal, unknown bool) {
	x.lock.Lock()
	defer x.lock.Unlock()
	if unknown {
		x.unknown = note(x.unknown, r, refusalsOfUnknown)
	} else {
		x.peers = note(x.peers, r, refusalsOfPeers)
	}
}

// newestFirst returns a copy.
func (x *refusals) newestFirst() []Refusal {
	x.lock.Lock()
	defer x.lock.Unlock()
	list := append([]Refusal{}, slices.Concat(x.peers, x.unknown)...)
	slices.SortStableFunc(list, func(a, b Refusal) int { return b.Time.Compare(a.Time) })
	return list
}

// tellRefused publishes a refusal that was logged: one a second for each reason.
func (j *journal) tellRefused(from netip.AddrPort, args ...any) {
	if j.tell != nil {
		j.tell("n4.refused", from.Addr().String(), args...)
	}
}

// refused counts a request that is answered with a refusal, remembers why, and logs it unless too many are logged. why
// is 0 when the cause is the reason.
func (j *journal) refused(why reject, from netip.AddrPort, t pfcp.MessageType, e *pfcp.Error) reject {
	if why == 0 {
		why = causeReject(e.Cause)
	}
	j.count.rejected[why].Add(1)
	now := time.Now()
	r := Refusal{Time: now.UTC(), Count: 1, Peer: from.Addr().String(), Message: messageName(int(t)),
		Reason: why.String(),
		Cause:  uint8(e.Cause), IE: e.Offending, Rule: e.Rule.String(), Text: e.Text}
	j.count.refusals.add(r, j.peers.source(from.Addr()) == nil)
	if held, ok := j.count.logged[why].open(now); ok {
		j.log.Warn("PFCP request refused", "reason", r.Reason, "from", from.String(), "message", r.Message, "cause",
			r.Cause,
			"ie", r.IE, "rule", r.Rule, "detail", r.Text, "not_logged", held)
		j.tellRefused(from, "message", r.Message, "reason", r.Reason, "cause", r.Cause, "ie", r.IE, "rule", r.Rule,
			"why", r.Text, "more", held)
	}
	return why
}
