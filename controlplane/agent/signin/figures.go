// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"

	"isthmus/controlplane/metrics"
	"isthmus/controlplane/radius"
	"isthmus/controlplane/subscriber"
)

// Figures asks the loop, and RADIUS.
func (s *SignIns) Figures(ctx context.Context) *metrics.SignIns {
	if s == nil {
		return nil
	}
	m := &metrics.SignIns{}
	var c subscriber.Counts
	one := func(v uint64, labels ...string) metrics.Labelled { return metrics.Labelled{Labels: labels, Value: v} }
	err := s.Loop.Ask(ctx, func() {
		c = s.Loop.Counts()
		for _, r := range s.pools.Rows() {
			m.PoolUsed = append(m.PoolUsed, one(r.Used, r.Name))
			m.PoolSize = append(m.PoolSize, one(r.Size, r.Name))
		}
		for _, n := range s.pppoe.Counts() {
			m.Protocol = append(m.Protocol, one(n.Value, "pppoe", n.Name))
		}
		for _, n := range s.DHCP.Counts() {
			m.Protocol = append(m.Protocol, one(n.Value, "dhcp", n.Name))
		}
	})
	if err != nil {
		return &metrics.SignIns{} // Ask may still write the other one
	}
	for labels, n := range c.On {
		m.On = append(m.On, one(uint64(n), labels[:]...))
	}
	for reason, n := range c.Failures {
		m.Failures = append(m.Failures, one(n, reason))
	}
	for cause, n := range c.Ended {
		m.Ended = append(m.Ended, one(n, cause))
	}
	m.SignedIn = append(m.SignedIn, one(c.SignedIn))
	m.Replaced = append(m.Replaced, one(c.Replaced))
	m.ReportsLost = append(m.ReportsLost, one(c.ReportsLost))
	m.Waiting = append(m.Waiting, one(uint64(c.Waiting)))
	m.Running = append(m.Running, one(uint64(c.Running)))
	m.Frames = append(m.Frames, one(c.PPPoE, "pppoe"), one(c.IPoE, "ipoe"), one(c.NobodyThere, "no-port"),
		one(c.NotServed, "not-served"))
	m.FramesLost = append(m.FramesLost, one(s.Loop.FramesLost()))
	state := s.AAA.State()
	m.AccountingWaiting = append(m.AccountingWaiting, one(uint64(state.Queue.Waiting)))
	q, d := &state.Queue, &state.Changes
	m.AccountingDropped = append(m.AccountingDropped, one(q.DroppedStarts, "start"),
		one(q.DroppedInterims, "interim"), one(q.DroppedStops, "stop"), one(q.Refused, "refused"))
	m.Changes = append(m.Changes, one(d.ACKs, "ack"), one(d.NAKs, "nak"), one(d.Duplicates, "duplicate"),
		one(d.Unlisted, "unlisted"), one(d.RateLimited, "rate-limited"), one(d.Malformed, "malformed"),
		one(d.UnexpectedCode, "code"), one(d.WrongAuthenticator, "authenticator"),
		one(d.WrongSignature, "signature"), one(d.Replayed, "replayed"))
	for name, n := range state.Ignored {
		m.Ignored = append(m.Ignored, one(n, name))
	}
	servers := func(use string, list []radius.ServerState) {
		for i := range list {
			r := &list[i]
			n := &r.Counters
			m.Requests = append(m.Requests, one(n.Accepts, r.Name, use, "accept"), one(n.Rejects, r.Name,
				use, "reject"),
				one(n.Responses, r.Name, use, "accounted"), one(n.Timeouts, r.Name, use, "timeout"))
			m.RoundTrips = append(m.RoundTrips, roundTripsOf(r, use))
			up := uint64(0)
			if r.Alive {
				up = 1
			}
			m.ServersUp = append(m.ServersUp, one(up, r.Name, use))
			for reason, count := range n.Dropped() {
				m.Dropped = append(m.Dropped, one(count, r.Name, use, reason))
			}
		}
	}
	servers("authentication", state.Authentication)
	servers("accounting", state.Accounting)
	return m
}

func roundTripsOf(r *radius.ServerState, use string) metrics.RoundTrips {
	h := metrics.RoundTrips{Server: r.Name, Use: use, Seconds: r.RTT.Sum.Seconds(), Buckets: map[float64]uint64{}}
	for i, n := range r.RTT.Counts {
		h.Count += n
		if i < len(radius.Bounds) {
			h.Buckets[radius.Bounds[i].Seconds()] = h.Count
		}
	}
	return h
}
