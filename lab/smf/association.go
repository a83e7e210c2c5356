// SPDX-License-Identifier: Apache-2.0

package smf

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"isthmus/controlplane/pfcp"
)

// Association is one user plane that we may have sessions on (TS 29.244 §6.2.6).
type Association struct {
	client *Client
	Peer   netip.AddrPort
	ID     string // its Node ID

	mu       sync.Mutex
	features uint64
	recovery time.Time
	beaten   time.Time // when the last heartbeat was sent
	beating  bool
	leaving  bool // the user plane asked for the release
}

// Refusal is a response whose cause is not "accepted".
type Refusal struct {
	What      string
	Cause     pfcp.Cause
	Offending uint16
	Failed    *pfcp.FailedRule
}

func (r *Refusal) Error() string {
	text := fmt.Sprintf("%s refused: cause %d", r.What, r.Cause)
	if r.Offending != 0 {
		text += fmt.Sprintf(", offending IE %d", r.Offending)
	}
	if r.Failed != nil {
		text += fmt.Sprintf(", rule %d of type %d", r.Failed.ID, r.Failed.Type)
	}
	return text
}

// Features are the user plane's UP function features (UP* bits of package pfcp).
func (a *Association) Features() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.features
}

// Recovery is the user plane's recovery time stamp.
func (a *Association) Recovery() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.recovery
}

// Sessions counts the association's sessions.
func (a *Association) Sessions() int {
	a.client.mu.Lock()
	defer a.client.mu.Unlock()
	n := 0
	for _, s := range a.client.sessions {
		if s.Association == a {
			n++
		}
	}
	return n
}

// Associate sets an association up.
func (c *Client) Associate(ctx context.Context, peer netip.AddrPort) (*Association, error) {
	m, err := c.request(ctx, peer, pfcp.Header{}, &pfcp.AssociationSetupRequest{Node: c.opt.Node, Recovery: c.recovery})
	if err != nil {
		return nil, err
	}
	r, ok := m.(*pfcp.AssociationSetupResponse)
	if !ok {
		return nil, errors.New("no Association Setup Response")
	}
	if r.Cause != pfcp.CauseAccepted {
		return nil, &Refusal{What: "association", Cause: r.Cause, Offending: r.Offend}
	}
	return c.associated(peer, r.Node.String(), r.Features, r.Recovery), nil
}

// associated stores an association. A restarted peer's new association replaces the old one, whose sessions are gone.
func (c *Client) associated(peer netip.AddrPort, id string, features uint64, recovery time.Time) *Association {
	a := &Association{client: c, Peer: peer, ID: id, features: features, recovery: recovery, beaten: time.Now()}
	c.mu.Lock()
	old := c.associations[id]
	c.associations[id] = a
	c.mu.Unlock()
	if old != nil {
		c.forget(old)
	}
	return a
}

// forget drops an association's sessions.
func (c *Client) forget(a *Association) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.associations[a.ID] == a {
		delete(c.associations, a.ID)
	}
	for seid, s := range c.sessions {
		if s.Association == a {
			delete(c.sessions, seid)
		}
	}
}

// lose forgets an association that the user plane ended in one way or the other.
func (c *Client) lose(a *Association, reason error) {
	c.forget(a)
	c.opt.Log.Warn("association lost", "node", a.ID, "reason", reason)
	if f := c.opt.Handlers.Lost; f != nil {
		go f(a, reason)
	}
}

// Release ends the association; the user plane deletes its sessions (TS 29.244 §6.2.8).
func (a *Association) Release(ctx context.Context) error {
	m, err := a.client.request(ctx, a.Peer, pfcp.Header{}, &pfcp.AssociationReleaseRequest{Node: a.client.opt.Node})
	if err != nil {
		return err
	}
	if r, ok := m.(*pfcp.AssociationReleaseResponse); !ok || r.Cause != pfcp.CauseAccepted {
		return &Refusal{What: "association release", Cause: causeOf(m)}
	}
	a.client.forget(a)
	return nil
}

// SetPFDs replaces the packet flow descriptions of applications (TS 29.244 §6.2.5).
func (a *Association) SetPFDs(ctx context.Context, list ...pfcp.ApplicationPFDs) error {
	m, err := a.client.request(ctx, a.Peer, pfcp.Header{}, &pfcp.PFDManagementRequest{Applications: list})
	if err != nil {
		return err
	}
	if r, ok := m.(*pfcp.PFDManagementResponse); !ok || r.Cause != pfcp.CauseAccepted {
		return &Refusal{What: "PFD management", Cause: causeOf(m)}
	}
	return nil
}

// Beat sends one Heartbeat Request and compares the recovery time stamp in the answer (TS 23.527 §4.2).
func (a *Association) Beat(ctx context.Context) error {
	m, err := a.client.request(ctx, a.Peer, pfcp.Header{}, &pfcp.HeartbeatRequest{Recovery: a.client.recovery})
	if err != nil {
		return err
	}
	r, ok := m.(*pfcp.HeartbeatResponse)
	if !ok {
		return errors.New("no Heartbeat Response")
	}
	a.mu.Lock()
	restarted := !a.recovery.IsZero() && r.Recovery.After(a.recovery)
	a.recovery = r.Recovery
	a.mu.Unlock()
	if restarted {
		return errRestarted
	}
	return nil
}

var errRestarted = errors.New("the user plane restarted")

// beat sends the heartbeats that are due, one at a time to each peer.
func (c *Client) beat(now time.Time) {
	if c.opt.Heartbeat <= 0 {
		return
	}
	for _, a := range c.Associations() {
		a.mu.Lock()
		due := !a.beating && now.Sub(a.beaten) >= c.opt.Heartbeat-c.opt.Heartbeat/10
		if due {
			a.beating, a.beaten = true, now
		}
		a.mu.Unlock()
		if !due {
			continue
		}
		go func() {
			err := a.Beat(context.Background())
			a.mu.Lock()
			a.beating = false
			a.mu.Unlock()
			if err != nil && !errors.Is(err, ErrClosed) {
				c.lose(a, err)
			}
		}()
	}
}

// Alive: the association still holds.
func (a *Association) Alive() bool { return a.client.find(a.ID) == a }
