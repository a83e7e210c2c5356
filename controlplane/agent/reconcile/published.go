// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"sync/atomic"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/spawn"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/events"
)

// ErrAway answers requests that need the data plane while it is away.
var ErrAway = errors.New("the data plane is away; isthmus status says why")

// Published is what the owner's goroutine shows to all others. Methods may be called from any goroutine.
type Published struct {
	client atomic.Pointer[dp.Client] // nil while the data plane is away
	status atomic.Pointer[v1.Status]
	plan   atomic.Pointer[plan.Plan] // the running one
	events *events.Log
	guard  *auth.Guard    // of the API by TCP
	starts *spawn.Spawner // nil: something else starts the data plane
	turned atomic.Int64   // when the owner's loop turned, in ns since begun
}

// begun is what turns are measured from: the wall clock may be set.
var begun = time.Now()

// turn notes that the owner's loop does not hang.
func (p *Published) turn() { p.turned.Store(int64(time.Since(begun))) }

// Turned is how long ago the owner's loop turned.
func (p *Published) Turned() time.Duration { return time.Since(begun) - time.Duration(p.turned.Load()) }

// Client is the connection to the data plane; nil while it is away.
func (p *Published) Client() *dp.Client { return p.client.Load() }

// DataPlane returns the connection, or ErrAway.
func (p *Published) DataPlane() (*dp.Client, error) {
	if c := p.client.Load(); c != nil {
		return c, nil
	}
	return nil, ErrAway
}

// Plan is the running one.
func (p *Published) Plan() *plan.Plan { return p.plan.Load() }

// Status is the control plane's own state.
func (p *Published) Status() v1.Status {
	s, e := *p.status.Load(), p.events.Stats()
	s.RefusedRequests, s.Events = p.guard.Refused(), e.Published
	s.Followers, s.DroppedFollowers = e.Followers, e.Dropped
	s.DPRestart, s.DPEnded = p.starts.Policy(), p.starts.LastEnd()
	s.Explain()
	return s
}
