// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"isthmus/controlplane/pfcp"
)

const (
	firstBackoff = time.Second
	lastBackoff  = time.Minute
)

// dial is a configured peer to which we set the association up (TS 29.244 §6.2.6.3). The owner's alone.
type dial struct {
	peer    *Peer
	backoff time.Duration
	timer   *time.Timer
	open    bool // a request is under way
}

// dialNow sends the request, unless the peer is associated already.
func (s *Server) dialNow(d *dial) {
	if d.open || s.associated(d.peer) {
		d.backoff = 0
		return
	}
	d.open = true
	k := s.sockets[s.cfg.listenerOf(d.peer.Addr.Addr())]
	m := &pfcp.AssociationSetupRequest{
		Node: s.cfg.Node, Recovery: s.recovery, FromUP: true, Features: s.cfg.Features, UEPools: s.cfg.UEPools,
	}
	s.requests.send(k, d.peer.Addr, pfcp.Header{}, m, func(m pfcp.Message, err error) {
		s.post(func() {
			d.open = false
			if r, ok := m.(*pfcp.AssociationSetupResponse); ok && err == nil {
				err = s.dialled(d, k, r)
			}
			if err != nil {
				s.log.Warn("PFCP association could not be set up", "peer", d.peer.Addr, "error", err)
				s.redial(d)
			}
		})
	})
}

func (s *Server) redial(d *dial) {
	stopTimer(d.timer)
	d.backoff = min(max(d.backoff*2, firstBackoff), lastBackoff)
	d.timer = s.later(d.backoff/2+time.Duration(rand.Int64N(int64(d.backoff/2))), func() { s.dialNow(d) })
}

// dialled takes the peer's answer.
func (s *Server) dialled(d *dial, k *socket, r *pfcp.AssociationSetupResponse) error {
	if r.Cause != pfcp.CauseAccepted {
		return &pfcp.Error{Cause: r.Cause, Offending: r.Offend, Text: "refused by the peer"}
	}
	id := nodeName(r.Node.String())
	if d.peer.Node != "" && d.peer.Node != id {
		return fmt.Errorf("the peer's node id is %q, not %q", id, d.peer.Node)
	}
	from, old := d.peer.Addr.Addr(), s.table.associations[id]
	switch {
	case !s.mayHave(from, id, old):
		return fmt.Errorf("node id %q is another peer's", id)
	case old != nil && old.owns(from):
		// Both sides asked at the same time; the association of the other request is as good.
		d.backoff = 0
		s.heard(old, r.Recovery.Unix(), nil)
		return nil
	case old == nil && len(s.table.associations) >= s.cfg.Associations:
		return fmt.Errorf("there are %d associations already", len(s.table.associations))
	}
	d.backoff = 0
	a := &association{
		Association: Association{ID: id, Set: s.setOf(id, d.peer, from, r.SetID), Addr: d.peer.Addr, Features: r.Features},
		node:        r.Node, k: k, others: otherAddresses(r.Addresses), configured: d.peer, since: time.Now(),
		associationCounts: newCounts(&s.requests),
	}
	a.recovery.Store(r.Recovery.Unix())
	if err := s.sessions.KeepAssociation(a.stored()); err != nil {
		s.event(eventStoreFailed)
		return err
	}
	if old != nil {
		s.reassociated(old, nil)
	}
	s.answers.forgetPeer(a.Addr.Addr())
	s.install(a)
	s.scheduleBeat(a, s.cfg.HeartbeatInterval)
	s.record(eventAssociated, slog.LevelInfo, a.ID, "address", a.Addr, "set", a.Set, "dialled", true)
	return nil
}
