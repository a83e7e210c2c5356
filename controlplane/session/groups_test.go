// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/controlplane/cputest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

func webOf(flows int) *pfcp.PFDManagementRequest {
	a := pfcp.ApplicationPFDs{Application: "web"}
	for i := range flows {
		a.PFDs = append(a.PFDs, pfcp.PFD{Flow: fmt.Sprintf("permit out 6 from any %d to assigned", 80+i)})
	}
	return &pfcp.PFDManagementRequest{Applications: []pfcp.ApplicationPFDs{a}}
}

// many has n sessions of smf1 that use the application "web", on a data plane that takes everything, and one of smf2's.
func many(t *testing.T, n int) (b *bench, other uint64) {
	t.Helper()
	set := testSettings()
	set.Limits.Filters = 8
	p, err := Open("", set, nil)
	testkit.Must(t, err)
	p.Attach(willing{})
	testkit.Run(t, p.Run)
	b = &bench{Manager: p, t: t}
	testkit.Must(t, b.setPFDs(webOf(1)))
	var all sync.WaitGroup
	made := func(r *pfcp.SessionEstablishmentResponse) {
		if other = r.UP.SEID; r.Cause != pfcp.CauseAccepted {
			t.Errorf("%+v", r)
		}
		all.Done()
	}
	room := make(chan struct{}, 256)
	for i := range n {
		all.Add(1)
		room <- struct{}{}
		req := request(uint32(i+1), netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}).String())
		req.PDR[1].PDI.Application = "web"
		if i == 0 {
			req.FQCSID = [][]byte{{1, 2, 3}}
		}
		p.Establish(smf1, req, func(r *pfcp.SessionEstablishmentResponse) { made(r); <-room })
	}
	all.Wait()
	all.Add(1)
	p.Establish(&n4.Association{ID: "smf2"}, request(uint32(n+1), "10.46.0.1"), made)
	all.Wait()
	return b, other
}

// precedence changes that of PDR 1.
func precedence(p uint32) *pfcp.SessionModificationRequest {
	return &pfcp.SessionModificationRequest{UpdatePDR: []pfcp.UpdatePDR{{ID: 1, Precedence: &p}}}
}

// New PFDs for many sessions: another's requests are carried out one after the other while they are looked at.
func TestOthersAreServedWhilePFDsAreTried(t *testing.T) {
	p, other := many(t, 10000)
	var replied atomic.Bool
	over := make(chan *pfcp.Error, 1)
	go p.SetPFDs(webOf(2), func(err *pfcp.Error) { replied.Store(true); over <- err })
	served := 0
	for i := uint32(0); !replied.Load(); i++ {
		wants(t, pfcp.CauseAccepted, p.modify(&n4.Association{ID: "smf2"}, other, precedence(i)))
		if !replied.Load() {
			served++
		}
	}
	testkit.Must(t, testkit.Receive(t, over))
	testkit.ErrorIf(t, served < 10, "%d requests were answered meanwhile", served)
}

// A session that comes while PFDs are tried, and could not have them, has them refused: all or nothing.
func TestPFDsAreTriedOnSessionsThatComeMeanwhile(t *testing.T) {
	p, _ := many(t, 2000)
	over := make(chan *pfcp.Error, 1)
	p.mu.Lock() // both exist before either is begun
	tried := make(chan struct{})
	go func() {
		p.SetPFDs(webOf(3), func(err *pfcp.Error) { over <- err })
		close(tried)
	}()
	p.mu.Unlock()
	<-tried
	req := request(50000, "10.46.0.2")
	for id := range uint16(4) { // one filter each now; three each are more than eight
		pdr := req.PDR[1]
		pdr.ID, pdr.Precedence, pdr.PDI.Application = 10+id, 10, "web"
		req.PDR = append(req.PDR, pdr)
	}
	made := make(chan *pfcp.SessionEstablishmentResponse, 1)
	p.Establish(smf1, req, func(r *pfcp.SessionEstablishmentResponse) { made <- r })
	r, err := testkit.Receive(t, made), testkit.Receive(t, over)
	testkit.ErrorIf(t, r.Cause == pfcp.CauseAccepted && (err == nil || err.Cause != pfcp.CauseNoResources),
		"a session with four filters is there, and PFDs that make twelve of them: %v", err)
	testkit.ErrorIf(t, r.Cause != pfcp.CauseAccepted && err != nil, "both are refused: %+v, %v", r, err)
}

// The deletion of a session set costs what is in it.
func TestSetDeletionLooksAtItsMembersAlone(t *testing.T) {
	p, _ := many(t, 10000)
	cputest.Bound(t, 2*time.Second, "deletions of sessions sets", func() {
		for i := range 1000 {
			if n := p.released("smf1", []byte{9, byte(i >> 8), byte(i)}); n != 0 {
				t.Fatalf("%d deleted", n)
			}
		}
	})
	if n := p.released("smf1", []byte{1, 2, 3}); n != 1 || p.Count("smf1") != 9999 {
		t.Errorf("%d deleted, %d left", n, p.Count("smf1"))
	}
}

// Releases of new sets do not pile up; a second one of a set joins the first; later sessions stay.
func TestReleasesAreBounded(t *testing.T) {
	p := idle(t, "")
	req := request(1, "10.46.0.1")
	for i := range byte(100) {
		req.FQCSID = append(req.FQCSID, []byte{i})
	}
	first := p.establishNow(t, smf1, req)
	refused := 0
	for i := range 1000 {
		if p.Release("smf1", [][]byte{{byte(i % 100)}}, nil) != nil {
			refused++
		}
	}
	testkit.ErrorIf(t, len(p.commits.deferredJobs) != maxSetDeletions || refused == 0 || refused == 1000,
		"%d deferredJobs wait, %d were refused", len(p.commits.deferredJobs), refused)
	later := request(2, "10.46.0.2")
	later.FQCSID = [][]byte{{5}}
	second := p.establishNow(t, smf1, later) // in the batch that carries the deletion out
	for len(p.commits.deferredJobs) > 0 {
		p.runBatch(nil)
	}
	testkit.ErrorIf(t, p.Session(first) != nil || p.Session(second) == nil,
		"the first session stays, or the second one went")
}
