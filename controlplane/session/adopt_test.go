// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// The sessions of a failed association change hands while another's requests are carried out: one in each batch.
func TestOthersAreServedWhileSessionsAreAdopted(t *testing.T) {
	const n = 12 * pace
	p := idle(t, "")
	setOf(p, t, n)
	other := p.establishNow(t, &n4.Association{ID: "smf2", Set: "set1"}, request(9999, "10.47.0.1"))
	if got := p.Adopt("smf1", "smf3"); got != n || p.Count("smf3") != n || p.Count("smf1") != 0 {
		t.Fatalf("%d adopted, %d and %d sessions", got, p.Count("smf3"), p.Count("smf1"))
	}
	p.ForgetAssociation("smf1")
	served := uint32(0)
	for ; p.adopting(); served++ {
		testkit.FatalIf(t, served == n, "the sessions stay")
		answered := make(chan pfcp.Cause, 1)
		p.Modify([]*n4.Association{{ID: "smf2", Set: "set1"}}, other, precedence(served),
			func(r *pfcp.SessionModificationResponse, _ uint64) { answered <- r.Cause })
		p.step(t, 1)
		testkit.FatalIf(t, len(answered) == 0 || <-answered != pfcp.CauseAccepted, "request %d waits or is refused",
			served)
	}
	testkit.ErrorIf(t, served < n/pace, "%d requests were answered meanwhile", served)
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.x.known["smf3"]; o.sessions != n || len(p.x.groups[groupKey{owner: o.number}]) != n ||
		p.x.known["smf1"] != nil {
		t.Errorf("%+v", o)
	}
}

// idle is a Manager without Run: only step carries deferred jobs out.
func idle(t *testing.T, path string) *Manager {
	t.Helper()
	p, err := Open(path, testSettings(), nil)
	testkit.Must(t, err)
	p.Attach(willing{})
	t.Cleanup(p.Close)
	return p
}

// step carries out some batches.
func (p *Manager) step(t *testing.T, batches int) {
	t.Helper()
	for range batches {
		p.commits.rouse()
		j, _ := p.next(t.Context(), nil)
		p.runBatch(j)
	}
}

func (p *Manager) establishNow(t *testing.T, from *n4.Association, req *pfcp.SessionEstablishmentRequest) uint64 {
	t.Helper()
	ch := make(chan *pfcp.SessionEstablishmentResponse, 1)
	p.Establish(from, req, func(r *pfcp.SessionEstablishmentResponse) { ch <- r })
	p.step(t, 1)
	r := testkit.Receive(t, ch)
	wants(t, pfcp.CauseAccepted, r)
	return r.UP.SEID
}

func setOf(p *Manager, t *testing.T, n int) (seids []uint64) {
	t.Helper()
	for _, id := range []string{"smf1", "smf2", "smf3"} {
		testkit.Must(t, p.KeepAssociation(n4.StoredAssociation{ID: id, Set: "set1"}))
	}
	for i := range n {
		req := request(uint32(i+1), fmt.Sprintf("10.46.%d.%d", i/200, i%200+1))
		req.FQCSID = [][]byte{{1, 2, byte(i % 2)}}
		seids = append(seids, p.establishNow(t, &n4.Association{ID: "smf1", Set: "set1"}, req))
	}
	return seids
}

// Reports, requests and deletions while sessions move to a successor find them at the right association.
func TestWhileSessionsAreAdopted(t *testing.T) {
	p := idle(t, "")
	seids := setOf(p, t, 3*pace)
	last := seids[len(seids)-1]
	p.Adopt("smf1", "smf2")
	p.ForgetAssociation("smf1")
	for _, seid := range []uint64{seids[0], last} {
		s, req := p.reports.sessionReport([]api.Event{{Type: api.EventTypeInactive, SEID: seid}})
		if to := s.to; req == nil || to.Association != "smf2" || !to.Moved || to.CP != p.Session(seid).CP {
			t.Errorf("%+v", to)
		}
	}
	p.step(t, 1)
	// Its id comes back meanwhile: what it establishes then is its own.
	p.KeepAssociation(n4.StoredAssociation{ID: "smf1", Set: "set1"})
	own := p.establishNow(t, &n4.Association{ID: "smf1", Set: "set1"}, request(9999, "10.47.0.1"))
	testkit.ErrorIf(t, p.Count("smf1") != 1 || p.Count("smf2") != len(seids),
		"%d and %d sessions", p.Count("smf1"), p.Count("smf2"))
	// The successor takes one over before it is moved, and fails itself.
	answered := make(chan pfcp.Cause, 1)
	p.Modify([]*n4.Association{{ID: "smf2", Set: "set1"}}, last,
		&pfcp.SessionModificationRequest{CP: &pfcp.FSEID{SEID: 77, IPv4: addr("10.0.0.3")}},
		func(r *pfcp.SessionModificationResponse, _ uint64) { answered <- r.Cause })
	p.step(t, 1)
	if cause := testkit.Receive(t, answered); cause != pfcp.CauseAccepted || p.Session(last).Owner != "smf2" ||
		p.Session(last).Moved {
		t.Errorf("cause %d, %+v", cause, p.Session(last))
	}
	p.Adopt("smf2", "smf3")
	p.ForgetAssociation("smf2")
	testkit.ErrorIf(t, p.Count("smf3") != len(seids) || p.Count("smf2") != 0,
		"%d and %d sessions", p.Count("smf3"), p.Count("smf2"))
	// A deletion means all that the last one inherits, wherever it is.
	p.Release("smf3", [][]byte{{1, 2, 0}}, func(int) {})
	p.step(t, 20)
	testkit.ErrorIf(t, p.Count("smf3") != len(seids)/2 || p.adopting(), "%d sessions are left", p.Count("smf3"))
	p.ForgetAssociation("smf3")
	p.Release("smf3", nil, func(int) {})
	p.step(t, 20)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.x.session) != 1 || p.x.session[own] == 0 || len(p.x.known) != 1 || len(p.x.owned) != 1 {
		t.Errorf("%d sessions, %v", len(p.x.session), p.x.known)
	}
}

// A successor may end before it inherited the first session.
func TestSuccessorGoesBeforeItInherits(t *testing.T) {
	p := idle(t, "")
	setOf(p, t, 5)
	p.Adopt("smf1", "smf2")
	p.ForgetAssociation("smf1")
	p.ForgetAssociation("smf2")
	deleted := make(chan int, 1)
	p.Release("smf2", nil, func(n int) { deleted <- n })
	p.step(t, 10)
	if p.Count("") != 0 || testkit.Receive(t, deleted) == 0 || p.x.known["smf2"] != nil || len(p.x.owned) != 1 {
		t.Errorf("%d sessions, %v", p.Count(""), p.x.owned)
	}
}

// A control plane that ends meanwhile knows the association at its next start, which then fails again.
func TestRestartWhileSessionsAreAdopted(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	p := idle(t, path)
	setOf(p, t, 3*pace)
	p.Adopt("smf1", "smf2")
	p.ForgetAssociation("smf1")
	p.step(t, 1)
	p.Close()
	p = idle(t, path)
	if p.ReleaseOrphans(); len(p.Associations()) != 3 {
		t.Fatalf("%v", p.Associations())
	}
	a, b := p.Count("smf1"), p.Count("smf2")
	testkit.ErrorIf(t, a != 2*pace || b != pace, "%d and %d sessions", a, b)
	testkit.Equal(t, p.Adopt("smf1", "smf2"), 2*pace, "adopted")
	p.ForgetAssociation("smf1")
	p.step(t, 5)
	testkit.ErrorIf(t, len(p.Associations()) != 2 || p.Count("smf2") != 3*pace,
		"%v, %d sessions", p.Associations(), p.Count("smf2"))
}
