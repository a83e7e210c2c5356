// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
)

const (
	firstBackoff = time.Second
	lastBackoff  = time.Minute
)

// dialler sets associations up to configured peers (TS 29.244 §6.2.6.3). The owner's alone.
type dialler struct {
	*owner
	dials []*dial
}

// dial is one of these peers.
type dial struct {
	peer    *config.PFCPPeer
	backoff time.Duration
	timer   *time.Timer
	open    bool // a request is under way
}

func (l *dialler) start() {
	for i := range l.cfg.Peers {
		if l.cfg.Peers[i].Connect {
			d := &dial{peer: &l.cfg.Peers[i]}
			l.dials = append(l.dials, d)
			l.dial(d)
		}
	}
}

func (l *dialler) stop() {
	for _, d := range l.dials {
		stopTimer(d.timer)
	}
}

// resume begins again with all that a drain kept from it.
func (l *dialler) resume() {
	for _, d := range l.dials {
		stopTimer(d.timer)
		l.dial(d)
	}
}

// lost begins again with a peer whose association ended.
func (l *dialler) lost(p *config.PFCPPeer) {
	for _, d := range l.dials {
		if d.peer == p {
			l.again(d)
		}
	}
}

// dial sends the request, unless the peer is associated already.
func (l *dialler) dial(d *dial) {
	if d.open || l.drained || l.table.associated(d.peer) {
		d.backoff = 0
		return
	}
	d.open = true
	k := l.sockets[l.cfg.listenerOf(d.peer.Address.Addr())]
	m := &pfcp.AssociationSetupRequest{
		Node: l.cfg.Node, Recovery: l.recovery, FromUP: true, Features: l.cfg.Features, UEPools: l.cfg.UEPools,
	}
	l.requests.send(k, d.peer.Address.AddrPort, pfcp.Header{}, m, func(m pfcp.Message, err error) {
		l.post(func() {
			d.open = false
			if r, ok := m.(*pfcp.AssociationSetupResponse); ok && err == nil {
				err = l.dialled(d, k, r)
			}
			if err != nil {
				l.log.Warn("PFCP association could not be set up", "peer", d.peer.Address, "error", err)
				l.again(d)
			}
		})
	})
}

func (l *dialler) again(d *dial) {
	stopTimer(d.timer)
	d.backoff = min(max(d.backoff*2, firstBackoff), lastBackoff)
	d.timer = l.later(d.backoff/2+time.Duration(rand.Int64N(int64(d.backoff/2))), func() { l.dial(d) })
}

// dialled takes the peer's answer.
func (l *dialler) dialled(d *dial, k *socket, r *pfcp.AssociationSetupResponse) error {
	if r.Cause != pfcp.CauseAccepted {
		return &pfcp.Error{Cause: r.Cause, Offending: r.Offend, Text: "refused by the peer"}
	}
	id := nodeName(r.Node.String())
	if d.peer.NodeID != "" && d.peer.NodeID != id {
		return fmt.Errorf("the peer's node id is %q, not %q", id, d.peer.NodeID)
	}
	from, old := d.peer.Address.Addr(), l.table.associations[id]
	switch {
	case !l.table.mayHave(from, id, old):
		return fmt.Errorf("node id %q is another peer's", id)
	case old != nil && old.owns(from):
		// Both sides asked at the same time; the association of the other request is as good.
		d.backoff = 0
		l.paths.heard(old, r.Recovery.Unix(), nil)
		return nil
	case old == nil && len(l.table.associations) >= l.cfg.Associations:
		return fmt.Errorf("there are %d associations already", len(l.table.associations))
	}
	d.backoff = 0
	a := &association{
		Association: Association{
			ID: id, Set: l.table.setOf(id, d.peer, from, r.SetID), Addr: d.peer.Address.AddrPort,
			Features: r.Features,
		},
		node: r.Node, k: k, others: otherAddresses(r.Addresses), configured: d.peer, since: time.Now(),
		associationCounts: newCounts(l.requests),
	}
	a.recovery.Store(r.Recovery.Unix())
	if err := l.sessions.KeepAssociation(a.stored()); err != nil {
		l.event(eventStoreFailed)
		return err
	}
	if old != nil {
		l.reassociated(old, nil)
	}
	l.answers.forgetPeer(a.Addr.Addr())
	l.install(a)
	l.paths.schedule(a, l.cfg.Heartbeat.Interval)
	l.record(eventAssociated, slog.LevelInfo, a.ID, "address", a.Addr, "set", a.Set, "dialled", true)
	return nil
}
