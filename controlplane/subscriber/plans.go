// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"hash/maphash"
	"reflect"
	"slices"

	"isthmus/controlplane/access"
)

// plans keeps one copy of equal plans. A plan in it is immutable: changes are made to a copy.
type plans struct {
	seed  maphash.Seed
	known map[uint64]*access.Plan // by what plans mostly differ in
}

// mostPlans bounds the table; forgotten plans stay in use.
const mostPlans = 1024

func newPlans() plans { return plans{maphash.MakeSeed(), map[uint64]*access.Plan{}} }

// shared is a plan like p.
func (x *plans) shared(p access.Plan) *access.Plan {
	p.DNS, p.Routes, p.Class = slices.Clip(p.DNS), slices.Clip(p.Routes), slices.Clip(p.Class)
	p.Announced, p.Portal = slices.Clip(p.Announced), slices.Clip(p.Portal)
	if p.IPv4.IsValid() || p.IPv6.IsValid() || p.Delegated.IsValid() || p.InterfaceID != 0 || p.User != "" ||
		len(p.Routes) > 0 || len(p.CUI) > 0 {
		return &p // not shared
	}
	key := maphash.Comparable(x.seed, struct {
		profile, redirect, instance string
		up, down                    access.Rate
		quota                       uint64
	}{p.Profile, p.Redirect, p.Instance, p.Up, p.Down, p.Quota})
	if known := x.known[key]; known != nil && reflect.DeepEqual(*known, p) {
		return known
	}
	if len(x.known) >= mostPlans {
		clear(x.known)
	}
	x.known[key] = &p
	return &p
}

// attachment is what is needed of an access.Request behind the sign-in.
type attachment struct {
	line  access.Line
	pppoe uint16
	kind  access.Kind
	agent *access.Agent // never nil, never written to
}

var silentAgent = &access.Agent{}

// attachmentOf copies what stays: the request's bytes are of a frame.
func attachmentOf(r *access.Request) attachment {
	t := attachment{r.Line, r.PPPoE, r.Kind, silentAgent}
	if a := r.Agent; !reflect.DeepEqual(a, *silentAgent) {
		a.CircuitID, a.RemoteID = slices.Clone(a.CircuitID), slices.Clone(a.RemoteID)
		a.Line = slices.Clone(a.Line)
		t.agent = &a
	}
	return t
}

// request is the sign-in's identity and place for authentication and accounting.
func (t *attachment) request() *access.Request {
	return &access.Request{Kind: t.kind, Line: t.line, PPPoE: t.pppoe, Agent: *t.agent}
}
