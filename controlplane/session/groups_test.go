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
)

func webOf(flows int) *pfcp.PFDManagementRequest {
	a := pfcp.ApplicationPFDs{Application: "web"}
	for i := range flows {
		a.PFDs = append(a.PFDs, pfcp.PFD{Flow: fmt.Sprintf("permit out 6 from any %d to assigned", 80+i)})
	}
	return &pfcp.PFDManagementRequest{Applications: []pfcp.ApplicationPFDs{a}}
}

// many has n sessions of smf1 that use the application "web", on a data plane that takes everything, and one of smf2's.
func many(t *testing.T, n int) (p *Manager, other uint64) {
	t.Helper()
	set := testSettings()
	set.Limits.Filters = 8
	p, err := Open("", set, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Attach(willing{})
	done := make(chan error, 1)
	go func() { done <- p.Run(t.Context()) }()
	t.Cleanup(func() { <-done })
	ch := make(chan *pfcp.Error, 1)
	p.SetPFDs(webOf(1), func(err *pfcp.Error) { ch <- err })
	if err := wait(t, ch); err != nil {
		t.Fatal(err)
	}
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
	return p, other
}

// New PFDs for many sessions: another's requests are carried out one after the other while they are looked at.
func TestOthersAreServedWhilePFDsAreTried(t *testing.T) {
	p, other := many(t, 10000)
	var replied atomic.Bool
	over := make(chan *pfcp.Error, 1)
	go p.SetPFDs(webOf(2), func(err *pfcp.Error) { replied.Store(true); over <- err })
	served := 0
	for i := uint32(0); !replied.Load(); i++ {
		ch := make(chan *pfcp.SessionModificationResponse, 1)
		p.Modify([]*n4.Association{{ID: "smf2"}}, other, &pfcp.SessionModificationRequest{UpdatePDR: []pfcp.UpdatePDR{{ID: 1, Precedence: &i}}},
			func(r *pfcp.SessionModificationResponse, _ uint64) { ch <- r })
		if m := wait(t, ch); m.Cause != pfcp.CauseAccepted {
			t.Fatalf("%+v", m)
		}
		if !replied.Load() {
			served++
		}
	}
	if err := wait(t, over); err != nil {
		t.Fatal(err)
	}
	if served < 10 {
		t.Errorf("%d requests were answered meanwhile", served)
	}
}

// A session that comes while PFDs are tried, and could not have them, has them refused: all or nothing.
func TestPFDsAreTriedOnSessionsThatComeMeanwhile(t *testing.T) {
	p, _ := many(t, 2000)
	over := make(chan *pfcp.Error, 1)
	p.mu.Lock() // both are there before either is begun
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
	r, err := wait(t, made), wait(t, over)
	if r.Cause == pfcp.CauseAccepted && (err == nil || err.Cause != pfcp.CauseNoResources) {
		t.Errorf("a session with four filters is there, and PFDs that make twelve of them: %v", err)
	}
	if r.Cause != pfcp.CauseAccepted && err != nil {
		t.Errorf("both are refused: %+v, %v", r, err)
	}
}

// The deletion of a session set costs what is in it.
func TestSetDeletionLooksAtItsMembersAlone(t *testing.T) {
	p, _ := many(t, 10000)
	cputest.Bound(t, 2*time.Second, "deletions of sessions sets", func() {
		for i := range 1000 {
			done := make(chan int, 1)
			p.Release("smf1", [][]byte{{9, byte(i >> 8), byte(i)}}, func(n int) { done <- n })
			if n := wait(t, done); n != 0 {
				t.Fatalf("%d deleted", n)
			}
		}
	})
	done := make(chan int, 1)
	p.Release("smf1", [][]byte{{1, 2, 3}}, func(n int) { done <- n })
	if n := wait(t, done); n != 1 || p.Count("smf1") != 9999 {
		t.Errorf("%d deleted, %d left", n, p.Count("smf1"))
	}
}

// Releases of ever new sets do not pile up; a second one of the same is one with the first; who comes later stays.
func TestReleasesAreBounded(t *testing.T) {
	p, err := Open("", testSettings(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Attach(willing{})
	req := request(1, "10.46.0.1")
	for i := range byte(100) {
		req.FQCSID = append(req.FQCSID, []byte{i})
	}
	establish := func(req *pfcp.SessionEstablishmentRequest) uint64 {
		ch := make(chan *pfcp.SessionEstablishmentResponse, 1)
		p.Establish(smf1, req, func(r *pfcp.SessionEstablishmentResponse) { ch <- r })
		p.runBatch(<-p.jobs)
		return wait(t, ch).UP.SEID
	}
	first := establish(req)
	refused := 0
	for i := range 1000 {
		if p.Release("smf1", [][]byte{{byte(i % 100)}}, nil) != nil {
			refused++
		}
	}
	if len(p.deferredJobs) != maxSetDeletions || refused == 0 || refused == 1000 {
		t.Errorf("%d deferredJobs wait, %d were refused", len(p.deferredJobs), refused)
	}
	later := request(2, "10.46.0.2")
	later.FQCSID = [][]byte{{5}}
	second := establish(later) // in the batch that carries the deletion out
	for len(p.deferredJobs) > 0 {
		p.runBatch(nil)
	}
	if p.Session(first) != nil || p.Session(second) == nil {
		t.Error("the first session stays, or the second one went")
	}
}
