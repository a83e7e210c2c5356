// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"isthmus/api"
	"isthmus/controlplane/internal/dp"
	"isthmus/controlplane/internal/pfcp"
)

// drops tells which FARs' packets a request has dropped (DROBU, TS 29.244 §8.2.31): all that wait, or those of one FAR.
func drops(req *pfcp.SessionModificationRequest, far uint32) bool {
	return req.DropBuffered || slices.ContainsFunc(req.UpdateFAR, func(u pfcp.UpdateFAR) bool {
		return u.ID == far && u.Forwarding != nil && u.Forwarding.DropBuffered
	})
}

// flush makes the data plane drop what waits for a UE: a transaction of its own, before the one that is being made, in
// which the FARs that buffer drop. It comes last in a request's staging, when nothing of ours can refuse it any more.
func (p *Plane) flush(t *txn, seid uint64, old *Session, req *pfcp.SessionModificationRequest) {
	dropping := *old
	dropping.FAR = slices.Clone(old.FAR)
	waits := false
	for i := range dropping.FAR {
		if f := &dropping.FAR[i]; f.Action&pfcp.ActionBuffer != 0 && drops(req, f.ID) {
			f.Action, waits = pfcp.ActionDrop, true
		}
	}
	if !waits {
		return
	}
	send := func(s *Session) error {
		body := p.occupied(s).body
		_, err := p.commit(&txn{changes: []dp.Change{{Kind: api.KindSession, Key: Key(seid), Body: body}}})
		return err
	}
	if err := send(&dropping); err != nil {
		p.log.Warn("packets that wait could not be dropped", "session", Key(seid), "error", err)
		return
	}
	t.onUndo(func() { // the data plane must hold what the session is
		if err := send(old); err != nil {
			p.log.Error("FARs of a session drop until it changes", "session", Key(seid), "error", err)
		}
	})
}
