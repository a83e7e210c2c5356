// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// stuck is a connection on which applying the configuration waits.
type stuck struct {
	*dp.Client
	arrived, gate chan struct{}
	first         sync.Once
}

func (s *stuck) Commit(ctx context.Context, changes []dp.Change) ([]api.Usage, error) {
	s.first.Do(func() { close(s.arrived) })
	<-s.gate
	return s.Client.Commit(ctx, changes)
}

// While the data plane takes its time over a configuration, requests for sessions wait; associations, reports and
// displays do not.
func TestDataPlaneIsSlowToTakeAConfiguration(t *testing.T) {
	b := start(t, "", testSettings())
	seid := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	link := &stuck{Client: b.c, arrived: make(chan struct{}), gate: make(chan struct{})}
	set := testSettings()
	set.Limits.Sessions = 1
	over := make(chan Outcome, 1)
	go func() {
		out, err := b.Synchronise(t.Context(), link, set, true, func([]api.Digest) []dp.Change { return nil })
		testkit.ErrorIf(t, err != nil, "%v", err)
		over <- out
	}()
	testkit.Receive(t, link.arrived)
	if err := b.KeepAssociation(n4.StoredAssociation{ID: "smf2"}); err != nil || b.Count("") != 1 ||
		b.Session(seid) == nil {
		t.Error(err)
	}
	s, req := b.reports.sessionReport([]api.Event{{Type: api.EventTypeInactive, SEID: seid}})
	testkit.ErrorIf(t, req == nil || s.to.Association != "smf1", "%+v", s.to)
	answered := make(chan *pfcp.SessionEstablishmentResponse, 1)
	b.Establish(smf1, request(2, "10.45.0.6"), func(r *pfcp.SessionEstablishmentResponse) { answered <- r })
	testkit.ErrorIf(t, b.Settings() == set || len(answered) != 0, "the configuration counts before it is accepted")
	close(link.gate)
	testkit.Receive(t, over)
	wants(t, pfcp.CauseNoResources, testkit.Receive(t, answered)) // of the new configuration
	b.checkConsistent()
}
