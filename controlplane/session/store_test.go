// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
)

// A control plane that comes back has all sessions and sends nothing: the data plane's state is as it was.
func TestRestart(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	s := dptest.Start(t)
	var recovery time.Time
	seids := map[uint64]bool{}
	t.Run("first", func(t *testing.T) {
		b := startOn(t, s, path, testSettings())
		recovery = b.Recovery()
		for i := range uint32(50) {
			req := request(i+1, fmt.Sprintf("10.46.0.%d", i+1))
			if i%5 == 0 {
				req.QER[0].Correlation = ptr(i % 3)
			}
			seids[b.establish(&n4.Association{ID: "smf1", Set: "set1"}, req).UP.SEID] = true
		}
		for seid := range seids {
			if len(seids) > 40 {
				b.delete(&n4.Association{ID: "smf1", Set: "set1"}, seid)
				delete(seids, seid)
			} else {
				b.modify(&n4.Association{ID: "smf1", Set: "set1"}, seid,
					&pfcp.SessionModificationRequest{QueryAll: true})
			}
		}
		b.KeepAssociation(n4.StoredAssociation{ID: "smf1", Set: "set1", Features: 5})
		if err := b.setPFDs(&pfcp.PFDManagementRequest{Applications: []pfcp.ApplicationPFDs{{Application: "web",
			PFDs: []pfcp.PFD{{Flow: "permit out 6 from any 80 to assigned"}}}}}); err != nil {
			t.Fatal(err)
		}
	})
	held := s.Held()
	t.Run("second", func(t *testing.T) {
		_, before := s.Counts()
		b := startOn(t, s, path, testSettings())
		_, after := s.Counts()
		testkit.ErrorIf(t, after != before || !equalHeld(held, s.Held()), "%d changes were sent", after-before)
		if !b.Recovery().Equal(recovery) || b.Count("smf1") != len(seids) || len(b.Associations()) != 1 ||
			b.Associations()[0].Features != 5 {
			t.Errorf("%v %d %v", b.Recovery(), b.Count("smf1"), b.Associations())
		}
		b.checkConsistent()
		for seid := range seids {
			wants(t, pfcp.CauseAccepted, b.delete(&n4.Association{ID: "smf9", Set: "set1"}, seid))
		}
		req := request(1, "10.46.0.1")
		req.PDR[1].PDI.Application = "web"
		wants(t, pfcp.CauseAccepted, b.establish(smf1, req))
	})
	t.Run("association forgotten", func(t *testing.T) { // we ended while its sessions were being released
		b := startOn(t, s, path, testSettings())
		other := b.establish(&n4.Association{ID: "smf2"}, request(2, "10.46.0.2"))
		if b.ReleaseOrphans(); other.Cause != pfcp.CauseAccepted {
			t.Fatal(other)
		}
		testkit.Until(t, "one session", func() bool { return b.Count("") == 1 })
		b.checkConsistent()
	})
	t.Run("data plane forgot, and has what nobody wants", func(t *testing.T) {
		body := s.Held()
		s.SetHeld(map[dptest.ID][]byte{heldID(77): {1}, {Kind: api.KindPath, Key: rules.Key(5)}: {2},
			{Kind: api.KindPolicer, Key: "gold"}: {3}})
		b := startOn(t, s, path, testSettings())
		b.checkConsistent()
		now := s.Held()
		if now[heldID(77)] != nil || now[dptest.ID{Kind: api.KindPath, Key: rules.Key(5)}] != nil ||
			now[dptest.ID{Kind: api.KindPolicer, Key: "gold"}] == nil {
			t.Errorf("%v, was %v", now, body)
		}
	})
}

// A process that is killed between two instructions loses no session that was answered.
func TestKilled(t *testing.T) {
	if path := os.Getenv("SESSION_TEST_STORE"); path != "" {
		b := start(t, path, testSettings())
		for i := uint32(1); ; i++ {
			r := b.establish(smf1, request(i, netip.AddrFrom4([4]byte{10, 50, byte(i >> 8), byte(i)}).String()))
			fmt.Printf("made %x\n", r.UP.SEID)
		}
	}
	path := t.TempDir() + "/sessions.db"
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	// what it cannot clean up goes with us
	cmd.Env = append(os.Environ(), "SESSION_TEST_STORE="+path, "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	var made []uint64
	for len(made) < 500 {
		var seid uint64
		if _, err := fmt.Fscanf(out, "made %x\n", &seid); err != nil {
			t.Fatal(err)
		}
		made = append(made, seid)
	}
	cmd.Process.Kill()
	cmd.Wait()
	b := start(t, path, testSettings())
	for _, seid := range made {
		testkit.FatalIf(t, b.Session(seid) == nil, "session %#x is lost", seid)
	}
	b.checkConsistent()
}

// A reload that takes an instance away ends the sessions in it, when it is accepted, and no others.
func TestReplan(t *testing.T) {
	b := start(t, "", testSettings())
	in := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	req := request(2, "10.45.0.6")
	req.PDR[0].PDI.LocalFTEID.IPv4 = addr("10.9.0.1")
	out := b.establish(smf1, req).UP.SEID
	set := testSettings()
	set.Instances = set.Instances[:2]
	b.mu.Lock()
	changes, _, accept := b.plans.reconfigure(set)
	if len(changes) != 1 || changes[0].Key != rules.Key(out) || changes[0].Body != nil || len(b.x.session) != 2 {
		t.Errorf("%+v", changes)
	}
	testkit.Must(t, b.c.Apply(t.Context(), changes))
	accept(nil)
	b.mu.Unlock()
	testkit.ErrorIf(t, b.Session(in) == nil || b.Session(out) != nil, "the wrong session ended")
	b.checkConsistent()
}

// After a reload that changes rules (here a new first instance takes peers' tunnels over), sessions go on. Indices,
// paths and the data plane's state are those of the new configuration, and can be rebuilt.
func TestReplanSurvivors(t *testing.T) {
	b := start(t, "", testSettings())
	var seids []uint64
	for i := range uint32(20) {
		req := request(i+1, fmt.Sprintf("10.46.0.%d", i+1))
		req.QER[0].Correlation = ptr(i % 3)
		seids = append(seids, b.establish(smf1, req).UP.SEID)
	}
	set := testSettings()
	set.Workers = 2
	set.Instances = append([]rules.Instance{{Name: "first", Endpoints: []netip.Addr{addr("10.1.0.7")},
		Sources: []pfcp.Interface{pfcp.Access}}},
		set.Instances...)
	before := b.s.Held()
	changes := b.reconfigured(set)
	testkit.ErrorIf(t, len(changes) != 0, "%+v", changes)
	settled := func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.commits.deferredJobs) == 0 && b.commits.postponed == nil
	}
	testkit.Until(t, "sent again", settled)
	b.checkConsistent()
	testkit.ErrorIf(t, equalHeld(before, b.s.Held()), "nothing is different: a poor test")
	if m := b.modify(smf1, seids[3], &pfcp.SessionModificationRequest{UpdateFAR: []pfcp.UpdateFAR{{ID: 2,
		Forwarding: &pfcp.Forwarding{
			OuterHeader: &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: 5,
				IPv4: addr("10.1.0.98")}}}}}); m.Cause != pfcp.CauseAccepted {
		t.Fatalf("%+v", m)
	}
	b.checkConsistent()
	b.s.SetHeld(nil) // the data plane lost everything
	b.mu.Lock()
	d := b.compare(nil)
	b.mu.Unlock()
	lost, err := b.send(t.Context(), b.c, d.After)
	testkit.ErrorIf(t, lost != 0 || err != nil, "%d lost, %v", lost, err)
	b.checkConsistent()
	for _, seid := range seids {
		wants(t, pfcp.CauseAccepted, b.delete(smf1, seid))
	}
	b.checkConsistent()
	testkit.ErrorIf(t, len(b.x.known) > 1 || len(b.shares.by) != 0,
		"%d owners, %d shares are left", len(b.x.known), len(b.shares.by))
}

// Two sessions that a configuration gives the same address cannot both stay.
func TestReplanConflict(t *testing.T) {
	set := testSettings()
	set.Instances = append(set.Instances, rules.Instance{Name: "ims", Lookup: api.LookupDestination,
		Sources: []pfcp.Interface{pfcp.Core}})
	b := start(t, "", set)
	older := b.establish(smf1, request(1, "10.46.0.1")).UP.SEID
	req := request(2, "10.46.0.1")
	req.PDR[1].PDI.NetworkInstance = "ims"
	younger := b.establish(smf1, req).UP.SEID
	without := testSettings()
	without.Instances = append(without.Instances, rules.Instance{Name: "ims", Sources: []pfcp.Interface{pfcp.Core}})
	b.mu.Lock()
	changes, _, accept := b.plans.reconfigure(without)
	testkit.ErrorIf(t, len(changes) != 1 || changes[0].Key != rules.Key(younger), "%+v", changes)
	testkit.Must(t, b.c.Apply(t.Context(), changes))
	accept(nil)
	b.mu.Unlock()
	testkit.ErrorIf(t, b.Session(older) == nil || b.Session(younger) != nil, "the wrong session ended")
	b.checkConsistent()
}
