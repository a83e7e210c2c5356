// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// A modification's IEs outside of rules take effect.
func TestModificationOfTheSessionItself(t *testing.T) {
	b := start(t, "", testSettings())
	one, two := &n4.Association{ID: "smf1", Set: "set1"}, &n4.Association{ID: "smf2", Set: "set1"}
	seid := b.establish(one, request(1, "10.45.0.5")).UP.SEID
	key := heldID(seid)
	b.s.Usage(func(id dptest.ID, was, is []byte) []api.Usage {
		if id == key && is != nil {
			return []api.Usage{{SEID: seid, URR: 1, Triggers: api.UsageImmer}}
		}
		return nil
	})
	if m := b.modify(one, seid, &pfcp.SessionModificationRequest{QueryAll: true,
		QueryReference: ptr(uint32(77))}); len(m.Usage) != 1 ||
		m.Usage[0].Query == nil || *m.Usage[0].Query != 77 {
		t.Errorf("%+v", m)
	}
	if m := b.modify(one, seid, &pfcp.SessionModificationRequest{QueryAll: true}); len(m.Usage) != 1 ||
		m.Usage[0].Query != nil {
		t.Errorf("%+v", m)
	}
	if m := b.modify(two, seid, &pfcp.SessionModificationRequest{QueryAll: true}); m.Cause != pfcp.CauseAccepted ||
		b.Count("smf1") != 1 {
		t.Errorf("%+v", m) // a member that only asks does not take over
	}
	m := b.modify(two, seid, &pfcp.SessionModificationRequest{Node: &pfcp.NodeID{FQDN: "smf2"},
		FQCSID: [][]byte{{1, 2}}})
	if m.Cause != pfcp.CauseAccepted || b.Count("smf2") != 1 || b.Count("smf1") != 0 ||
		b.Session(seid).Owner != "smf2" {
		t.Errorf("%+v", m)
	}
	b.checkConsistent()
	done := make(chan int, 1)
	b.Release("smf2", [][]byte{{9}}, func(n int) { done <- n })
	testkit.Equal(t, testkit.Receive(t, done), 0, "of another FQ-CSID deleted")
	b.Release("smf2", [][]byte{{1, 2}}, func(n int) { done <- n })
	if n := testkit.Receive(t, done); n != 1 || b.Count("") != 0 {
		t.Errorf("%d deleted", n)
	}
}

// The RQI of a QER comes to the data plane, and goes when the CP function takes it back (TS 29.244 §8.2.88).
func TestReflectiveQoS(t *testing.T) {
	b := start(t, "", testSettings())
	flags := func(seid uint64) uint8 {
		t.Helper()
		var head api.Session
		rest, err := api.ReadRow(b.s.Held()[heldID(seid)], &head)
		_, rest, err1 := api.TakeRows[api.PDR](rest)
		_, rest, err2 := api.TakeRows[api.FAR](rest)
		qers, _, err3 := api.TakeRows[api.QER](rest)
		if err := errors.Join(err, err1, err2, err3); err != nil || len(qers) != 1 {
			t.Fatal(err, qers)
		}
		return qers[0].Flags
	}
	req := request(1, "10.45.0.5")
	req.QER[0].RQI = ptr(true)
	seid := b.establish(smf1, req).UP.SEID
	testkit.Equal(t, flags(seid), api.QERRqi, "established")
	for _, on := range []bool{false, true} {
		m := b.modify(smf1, seid, &pfcp.SessionModificationRequest{UpdateQER: []pfcp.UpdateQER{{ID: 1, RQI: ptr(on)}}})
		f := flags(seid)
		testkit.ErrorIf(t, m.Cause != pfcp.CauseAccepted || (f != 0) != on, "%v: %d, %+v", on, f, m)
	}
}

// Sessions that come and go leave nothing that grows.
func TestNothingGrows(t *testing.T) {
	b := start(t, "", testSettings())
	b.KeepAssociation(n4.StoredAssociation{ID: "smf1"})
	bad := request(1, "10.45.0.5")
	bad.PDR[0].PDI.LocalFTEID.TEID = 0
	for range 10 {
		chosen := request(1, "10.45.0.1")
		chosen.PDR[1].PDI.UEIP = []pfcp.UEIP{{ChooseIPv4: true, Destination: true}}
		b.delete(smf1, b.establish(smf1, chosen).UP.SEID)
	}
	for range 50 { // the same address again and again, by name
		b.delete(smf1, b.establish(smf1, request(1, "10.45.0.2")).UP.SEID)
		b.establish(&n4.Association{ID: "ended"}, bad)
		b.delete(&n4.Association{ID: "ended"}, b.establish(&n4.Association{ID: "ended"},
			request(3, "10.45.0.3")).UP.SEID)
	}
	b.mu.Lock()
	for _, list := range b.x.pools {
		for _, p := range list {
			testkit.ErrorIf(t, p.Quarantined() > 6, "%v: %d in quarantine", p.Prefix, p.Quarantined())
		}
	}
	testkit.ErrorIf(t, len(b.x.known) != 1 || b.x.known["smf1"] == nil, "%d associations", len(b.x.known))
	b.mu.Unlock()
	seid := b.establish(smf1, request(1, "10.46.0.1")).UP.SEID
	for range 50 { // put by, fetched by a request, put by again, without a turn of the queue in between
		b.reports.deferred.deferUsage(seid, []api.Usage{{SEID: seid, URR: 1}}, false, func() {})
		b.mu.Lock()
		b.reports.deferred.join(seid, nil, true)
		b.storeUsage()
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	testkit.ErrorIf(t, len(b.reports.deferred.queue) > 1 || len(b.reports.deferred.there) > 1,
		"%d in the queue", len(b.reports.deferred.queue))
}

// PFDs are taken all or not at all, and a session whose filters the data plane refuses has those that it had.
func TestPFDsAllOrNothing(t *testing.T) {
	set := testSettings()
	set.Limits.Filters = 3
	b := start(t, "", set)
	apps := func(web, mail int) *pfcp.PFDManagementRequest {
		list := func(n int) (l []pfcp.PFD) {
			for i := range n {
				l = append(l, pfcp.PFD{Flow: fmt.Sprintf("permit out 6 from any %d to assigned", 80+i)})
			}
			return l
		}
		return &pfcp.PFDManagementRequest{Applications: []pfcp.ApplicationPFDs{{Application: "mail", PFDs: list(mail)},
			{Application: "web", PFDs: list(web)}}}
	}
	testkit.Must(t, b.setPFDs(apps(2, 1)))
	req := request(1, "10.46.0.1")
	req.PDR[1].PDI.Application = "web"
	seid := b.establish(smf1, req).UP.SEID
	before := string(b.s.Held()[heldID(seid)])
	if err := b.setPFDs(apps(4, 2)); err == nil || err.Cause != pfcp.CauseNoResources || len(b.apps["mail"]) != 1 ||
		len(b.apps["web"]) != 2 {
		t.Errorf("%v %v", err, b.apps)
	}
	b.s.Refuse("no room", func(dptest.ID, []byte) bool { return true })
	testkit.Must(t, b.setPFDs(apps(3, 2)))
	testkit.Until(t, "refused", func() bool { return b.Counts().FiltersKept == 1 })
	b.s.Refuse("", nil)
	testkit.ErrorIf(t, string(b.s.Held()[heldID(seid)]) != before || b.Session(seid) == nil, "the session changed")
	testkit.Must(t, b.setPFDs(apps(3, 2)))
	testkit.Until(t, "new filters", func() bool { return string(b.s.Held()[heldID(seid)]) != before })
	b.checkConsistent()
}
