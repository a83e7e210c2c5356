// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// slow is a data plane that takes its time, so that requests wait and are taken together.
type slow struct {
	Committer
	gate    chan struct{}
	largest atomic.Int64
}

func (s *slow) Commit(ctx context.Context, changes []dp.Change) ([]api.Usage, error) {
	<-s.gate
	s.largest.Store(max(s.largest.Load(), int64(len(changes))))
	return s.Committer.Commit(ctx, changes)
}

// A change that the data plane refuses does not fail the others of its batch; the answer names its rule.
func TestGroupCommit(t *testing.T) {
	b := start(t, "", testSettings())
	gate := &slow{Committer: b.c, gate: make(chan struct{}, 1000)}
	b.Attach(gate)
	b.s.Blame(api.RuleFAR, 2)
	b.s.Refuse("the text names PDR 7, which no program reads", func(id dptest.ID, body []byte) bool {
		var head api.Session
		_, err := api.ReadRow(body, &head)
		return err == nil && id.Kind == api.KindSession && head.UEIP4.String() == "10.46.0.13"
	})
	const count = 100
	var all sync.WaitGroup
	answers := make([]*pfcp.SessionEstablishmentResponse, count)
	for i := range count {
		all.Add(1)
		b.Establish(smf1, request(uint32(i+1), fmt.Sprintf("10.46.0.%d", i)),
			func(r *pfcp.SessionEstablishmentResponse) {
				answers[i] = r
				all.Done()
			})
	}
	for range 1000 {
		gate.gate <- struct{}{}
	}
	all.Wait()
	for i, r := range answers {
		switch {
		case i == 13 && (r.Cause != pfcp.CauseRuleFailure || r.Failed == nil ||
			*r.Failed != pfcp.FailedRule{Type: pfcp.RuleFAR, ID: 2}):
			t.Errorf("%d: %+v", i, r)
		case i != 13 && r.Cause != pfcp.CauseAccepted:
			t.Errorf("%d: %+v", i, r)
		}
	}
	testkit.ErrorIf(t, gate.largest.Load() < 10, "at most %d changes together", gate.largest.Load())
	b.checkConsistent()
}

// The order of one session's requests is kept, although many sessions' are taken together.
func TestOrderOfASession(t *testing.T) {
	b := start(t, "", testSettings())
	var seids []uint64
	for i := range uint32(8) {
		seids = append(seids, b.establish(smf1, request(i+1, fmt.Sprintf("10.46.0.%d", i+1))).UP.SEID)
	}
	var all sync.WaitGroup
	for n := range 50 {
		for _, seid := range seids {
			all.Add(1)
			b.Modify([]*n4.Association{smf1}, seid, precedence(uint32(n)),
				func(r *pfcp.SessionModificationResponse, cp uint64) {
					testkit.ErrorIf(t, r.Cause != pfcp.CauseAccepted || cp < 0x1000, "%+v", r)
					all.Done()
				})
		}
	}
	all.Wait()
	for _, seid := range seids {
		testkit.Equal(t, b.Session(seid).PDR[0].Precedence, 49, "precedence")
	}
	b.checkConsistent()
}

// While the data plane is away there are no new sessions, and no changes; what was there stays, deletions are done.
func TestDataPlaneAway(t *testing.T) {
	b := start(t, "", testSettings())
	seid := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	gone := b.establish(smf1, request(2, "10.45.0.6")).UP.SEID
	b.s.Kill() // not noticed by the agent yet: the outcome is unknown, nothing is promised
	wants(t, pfcp.CauseSystemFailure, b.establish(smf1, request(3, "10.45.1.1")))
	b.Attach(nil)
	wants(t, pfcp.CauseNoResources, b.establish(smf1, request(3, "10.45.1.1")))
	wants(t, pfcp.CauseSystemFailure,
		b.modify(smf1, seid, &pfcp.SessionModificationRequest{RemoveQER: []uint32{1}}))
	d := b.delete(smf1, gone)
	testkit.ErrorIf(t, d.Cause != pfcp.CauseAccepted || b.Count("") != 1, "%+v", d)
}

// Row A12: jobOf an association's sessions neither touches others' nor holds up their requests.
func TestReleaseIsPaced(t *testing.T) {
	b := start(t, "", testSettings())
	var all sync.WaitGroup
	const count = 3000
	for i := range uint32(count) {
		all.Add(1)
		req := request(i+1, netip.AddrFrom4([4]byte{10, 60, byte(i >> 8), byte(i)}).String())
		if i%3 == 0 {
			req.FQCSID = [][]byte{{1, 2, 3}}
		}
		b.Establish(smf1, req, func(*pfcp.SessionEstablishmentResponse) { all.Done() })
	}
	all.Wait()
	other := &n4.Association{ID: "smf2"}
	keep := b.establish(other, request(9999, "10.61.0.1"))
	if n := b.released("smf1", []byte{9}, []byte{1, 2, 3}); n != count/3 || b.Count("smf1") != count-count/3 {
		t.Fatalf("%d deleted, %d left", n, b.Count("smf1"))
	}
	// Another asks while a transaction of the release is under way; what is released before its turn is counted.
	var asked, turn, deleted int
	answer := make(chan *pfcp.SessionModificationResponse, 1)
	b.s.Usage(func(id dptest.ID, _, is []byte) []api.Usage {
		switch {
		case id.Kind != api.KindSession:
		case id == heldID(keep.UP.SEID):
			turn = deleted
		case is == nil:
			if deleted++; deleted == 100 {
				asked = deleted
				b.Modify([]*n4.Association{other}, keep.UP.SEID, precedence(7),
					func(m *pfcp.SessionModificationResponse, _ uint64) { answer <- m })
			}
		}
		return nil
	})
	done := make(chan int, 1)
	b.Release("smf1", nil, func(n int) { done <- n })
	wants(t, pfcp.CauseAccepted, testkit.Receive(t, answer))
	if n := turn - asked; n > 2*pace { // the rest of one transaction, and those beside the request
		t.Errorf("%d sessions were released while a request of another waited", n)
	}
	if n := testkit.Receive(t, done); n != count-count/3 || b.Count("") != 1 {
		t.Errorf("%d deleted, %d left", n, b.Count(""))
	}
	b.checkConsistent()
	testkit.ErrorIf(t, b.released("nobody") != 0, "of nobody")
}

func TestSetRetention(t *testing.T) {
	b := start(t, "", testSettings())
	for i := range uint32(4) {
		req := request(i+1, fmt.Sprintf("10.46.0.%d", i+1))
		if i > 0 {
			req.CP.IPv4 = addr("10.0.0.3")
		}
		b.establish(&n4.Association{ID: "smf1", Set: "set1"}, req)
	}
	done := make(chan int, 1)
	b.Retain("smf1", []netip.Addr{addr("10.0.0.3")}, func(n int) { done <- n })
	if n := testkit.Receive(t, done); n != 1 || b.Count("smf1") != 3 {
		t.Errorf("%d deleted", n)
	}
	if n := b.adopt("smf1", "smf2"); n != 3 || b.Count("smf2") != 3 || b.Count("smf1") != 0 {
		t.Errorf("%d adopted", n)
	}
}

func TestApplications(t *testing.T) {
	b := start(t, "", testSettings())
	web := func(flows ...string) *pfcp.PFDManagementRequest {
		a := pfcp.ApplicationPFDs{Application: "web"}
		for _, f := range flows {
			a.PFDs = append(a.PFDs, pfcp.PFD{Flow: f})
		}
		return &pfcp.PFDManagementRequest{Applications: []pfcp.ApplicationPFDs{a}}
	}
	filters := func(seid uint64) int {
		var head api.Session
		api.ReadRow(b.s.Held()[heldID(seid)], &head)
		return int(head.SDFs)
	}
	testkit.Must(t, b.setPFDs(web("permit out 6 from any 80 to assigned")))
	req := request(1, "10.45.0.5")
	req.PDR[1].PDI.Application = "web"
	r := b.establish(smf1, req)
	testkit.FatalIf(t, r.Cause != pfcp.CauseAccepted || filters(r.UP.SEID) != 1, "%+v", r)
	testkit.Must(t, b.setPFDs(web("permit out 6 from any 80 to assigned", "permit out 17 from any 443 to assigned")))
	testkit.Until(t, "two filters", func() bool { return filters(r.UP.SEID) == 2 })
	for _, bad := range []pfcp.PFD{{URL: "http://example.org"}, {Domain: "example.org"}, {Flow: "permit"}} {
		err := b.setPFDs(&pfcp.PFDManagementRequest{Applications: []pfcp.ApplicationPFDs{{Application: "web",
			PFDs: []pfcp.PFD{bad}}}})
		testkit.ErrorIf(t, err == nil || bad.Flow == "" && err.Cause != pfcp.CauseServiceNotSupported,
			"%+v: %v", bad, err)
	}
	testkit.Must(t, b.setPFDs(&pfcp.PFDManagementRequest{}))
	testkit.Until(t, "a filter that matches nothing", func() bool { return filters(r.UP.SEID) == 1 })
	wants(t, pfcp.CauseAccepted, b.delete(smf1, r.UP.SEID))
	b.checkConsistent()
}

// The data plane knows whose sessions are whose, so that none takes all the room where packets wait.
func TestAssociationNumber(t *testing.T) {
	b := start(t, "", testSettings())
	number := func(from *n4.Association, n uint32, ue string) uint32 {
		var s api.Session
		r := b.establish(from, request(n, ue))
		api.ReadRow(b.s.Held()[heldID(r.UP.SEID)], &s)
		return s.Association
	}
	alone := func(id, set string) *n4.Association { return &n4.Association{ID: id, Set: set} }
	first := number(alone("a.test", ""), 1, "10.45.0.1")
	again := number(alone("a.test", ""), 2, "10.45.0.2")
	testkit.ErrorIf(t, first == 0 || again != first, "%#x and %#x of one association", first, again)
	other := number(alone("b.test", ""), 3, "10.45.0.3")
	testkit.ErrorIf(t, other == first, "%#x of two associations", other)
	one, two := number(alone("c.test", "set"), 4, "10.45.0.4"), number(alone("d.test", "set"), 5, "10.45.0.5")
	testkit.ErrorIf(t, one != two, "%#x and %#x of one SMF set", one, two)
}

// DROBU is in the transaction that changes the FARs: packets that wait are dropped with it, or not at all (TS 29.244
// §8.2.31).
func TestDropBuffered(t *testing.T) {
	b := start(t, "", testSettings())
	req := request(1, "10.45.0.5")
	req.FAR[1].Action = pfcp.ActionBuffer | pfcp.ActionNotify
	seid := b.establish(smf1, req).UP.SEID
	type version struct {
		discard uint16
		action  byte
	}
	of := func(body []byte) version {
		var s api.Session
		rest, _ := api.ReadRow(body, &s)
		_, rest, _ = api.TakeRows[api.PDR](rest)
		fars, _, _ := api.TakeRows[api.FAR](rest)
		return version{s.Discard, fars[1].Action}
	}
	var versions []version // that came into force
	b.s.Usage(func(id dptest.ID, _, is []byte) []api.Usage {
		if id == heldID(seid) {
			versions = append(versions, of(is))
		}
		return nil
	})
	forward, both := pfcp.ActionForward, pfcp.ActionBuffer|pfcp.ActionNotify
	action := func(a pfcp.ApplyAction) *pfcp.SessionModificationRequest {
		return &pfcp.SessionModificationRequest{UpdateFAR: []pfcp.UpdateFAR{{ID: 2, Action: &a}}}
	}
	change := func(req *pfcp.SessionModificationRequest, want pfcp.Cause) {
		t.Helper()
		wants(t, want, b.modify(smf1, seid, req))
	}
	change(&pfcp.SessionModificationRequest{DropBuffered: true}, pfcp.CauseAccepted)
	drop := action(forward)
	drop.DropBuffered = true
	b.s.Refuse("not now", func(id dptest.ID, body []byte) bool {
		return id == heldID(seid) && of(body).action == byte(forward)
	})
	change(drop, pfcp.CauseRuleFailure)
	b.s.Refuse("", nil)
	change(drop, pfcp.CauseAccepted)
	change(action(both), pfcp.CauseAccepted)
	drop = action(forward)
	drop.UpdateFAR[0].Forwarding = &pfcp.Forwarding{DropBuffered: true}
	change(drop, pfcp.CauseAccepted)
	want := []version{{1, byte(both)}, {2, byte(forward)}, {2, byte(both)}, {3, byte(forward)}}
	testkit.ErrorIf(t, !slices.Equal(versions, want), "%v, expected %v", versions, want)
	b.checkConsistent()
}

func BenchmarkEstablish(b *testing.B) {
	set := testSettings()
	set.Limits = config.SessionLimits{}
	p := start(b, b.TempDir()+"/sessions.db", set)
	b.ResetTimer()
	var all sync.WaitGroup
	room := make(chan struct{}, 1024)
	for i := range b.N {
		room <- struct{}{}
		all.Add(1)
		n := uint32(i + 1)
		p.Establish(smf1, request(n, netip.AddrFrom4([4]byte{11 + byte(n>>24), byte(n >> 16), byte(n >> 8),
			byte(n)}).String()),
			func(r *pfcp.SessionEstablishmentResponse) {
				if r.Cause != pfcp.CauseAccepted {
					b.Errorf("%+v", r)
				}
				<-room
				all.Done()
			})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sessions/s")
}

// A request made while the session layer ends is answered.
func TestEveryRequestAnswered(t *testing.T) {
	b := start(t, "", testSettings())
	seid := b.establish(smf1, request(1, "10.46.0.1")).UP.SEID
	var answers, asked atomic.Int64
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for late := 0; late < 10; {
				select {
				case <-stop:
					late++
				default:
				}
				asked.Add(1)
				b.Modify([]*n4.Association{smf1}, seid, &pfcp.SessionModificationRequest{},
					func(*pfcp.SessionModificationResponse, uint64) { answers.Add(1) })
			}
		}()
	}
	testkit.Until(t, "requests under way", func() bool { return answers.Load() > 1000 })
	b.end()
	close(stop)
	all.Wait()
	testkit.ErrorIf(t, answers.Load() != asked.Load(), "%d of %d requests answered", answers.Load(), asked.Load())
}
