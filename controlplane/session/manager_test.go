// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net/netip"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
	"isthmus/controlplane/testkit/pfcptest"
)

func ptr[T any](v T) *T { return &v }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

var request = pfcptest.Request

// testSettings: a UPF with N3 and N6, each IPv4 and IPv6.
func testSettings() *rules.Settings {
	return &rules.Settings{
		Node:    pfcp.NodeID{FQDN: "upf1.isthmus"},
		Workers: 4, PFCP: config.PFCP{FTEID: rules.FTEIDBoth,
			MBRBurst: config.MBRBurst{Window: 100 * time.Millisecond, Least: 16 << 10}},
		Instances: []rules.Instance{
			{Name: "access", Endpoints: []netip.Addr{addr("10.1.0.1"), addr("2001:db8:f::1")},
				Sources: []pfcp.Interface{pfcp.Access}},
			{Name: "internet", Lookup: api.LookupDestination, Sources: []pfcp.Interface{pfcp.Core, pfcp.SGiLAN},
				Pools: []netip.Prefix{netip.MustParsePrefix("10.45.0.0/29"), netip.MustParsePrefix("2001:db8:1::/62")}},
			{Name: "n9", Endpoints: []netip.Addr{addr("10.9.0.1")}},
		},
	}
}

var smf1 = &n4.Association{ID: "smf1"}

// bench is a Manager on a fake data plane.
type bench struct {
	*Manager
	s *dptest.Server
	t testing.TB
	c *dp.Client

	end func() // ends Run
}

func start(t testing.TB, path string, set *rules.Settings) *bench {
	t.Helper()
	s := dptest.Start(t)
	return startOn(t, s, path, set)
}

func startOn(t testing.TB, s *dptest.Server, path string, set *rules.Settings) *bench {
	t.Helper()
	p, err := Open(path, set, nil)
	testkit.Must(t, err)
	c, err := dp.Dial(t.Context(), s.Path)
	testkit.Must(t, err)
	held, err := dp.Held(t.Context(), c, nil)
	testkit.Must(t, err)
	d := p.compare(held)
	for _, parts := range [][][]dp.Change{d.Before, d.After} {
		if _, err := p.send(t.Context(), c, parts); err != nil {
			t.Fatal(err)
		}
	}
	p.Attach(c)
	t.Cleanup(func() { c.Close() })
	return &bench{p, s, t, c, testkit.Run(t, p.Run)}
}

func (b *bench) establish(from *n4.Association,
	req *pfcp.SessionEstablishmentRequest) *pfcp.SessionEstablishmentResponse {
	b.t.Helper()
	ch := make(chan *pfcp.SessionEstablishmentResponse, 2)
	b.Establish(from, req, func(r *pfcp.SessionEstablishmentResponse) { ch <- r })
	return testkit.Receive(b.t, ch)
}

func (b *bench) setPFDs(req *pfcp.PFDManagementRequest) *pfcp.Error {
	b.t.Helper()
	ch := make(chan *pfcp.Error, 2)
	b.SetPFDs(req, func(err *pfcp.Error) { ch <- err })
	return testkit.Receive(b.t, ch)
}

func (b *bench) modify(from *n4.Association, seid uint64,
	req *pfcp.SessionModificationRequest) *pfcp.SessionModificationResponse {
	b.t.Helper()
	ch := make(chan *pfcp.SessionModificationResponse, 2)
	b.Modify([]*n4.Association{from}, seid, req, func(r *pfcp.SessionModificationResponse, _ uint64) { ch <- r })
	return testkit.Receive(b.t, ch)
}

func (b *bench) delete(from *n4.Association, seid uint64) *pfcp.SessionDeletionResponse {
	b.t.Helper()
	ch := make(chan *pfcp.SessionDeletionResponse, 2)
	b.Delete([]*n4.Association{from}, seid, func(r *pfcp.SessionDeletionResponse, _ uint64) { ch <- r })
	return testkit.Receive(b.t, ch)
}

// released is how many sessions go, of all or of those that have one of some FQ-CSIDs.
func (b *bench) released(association string, fqcsid ...[]byte) int {
	b.t.Helper()
	ch := make(chan int, 1)
	b.Release(association, fqcsid, func(n int) { ch <- n })
	return testkit.Receive(b.t, ch)
}

// adopt is Adopt until the last session has changed hands.
func (b *bench) adopt(from, to string) int {
	b.t.Helper()
	n := b.Adopt(from, to)
	testkit.Until(b.t, "all adopted", func() bool { return !b.adopting() })
	return n
}

// reconfigured applies another configuration, and returns the changes that go to the data plane first.
func (b *bench) reconfigured(set *rules.Settings) []dp.Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	changes, _, accept := b.plans.reconfigure(set)
	accept(nil)
	return changes
}

func (p *Manager) adopting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.x.owned {
		if o.successor != nil {
			return true
		}
	}
	return false
}

func TestSessionComesChangesAndGoes(t *testing.T) {
	b := start(t, "", testSettings())
	r := b.establish(smf1, request(7, "10.45.0.5"))
	if r.Cause != pfcp.CauseAccepted || r.UP.SEID == 0 || r.Node.FQDN != "upf1.isthmus" || len(r.Created) != 0 {
		t.Fatalf("%+v", r)
	}
	key := dptest.ID{Kind: api.KindSession, Key: rules.Key(r.UP.SEID)}
	body := b.s.Held()[key]
	var head api.Session
	rest, err := api.ReadRow(body, &head)
	if err != nil || head.SEID != r.UP.SEID || head.PDRs != 2 || head.FARs != 2 || head.QERs != 1 || head.URRs != 1 ||
		head.UEIP4.String() != "10.45.0.5" {
		t.Fatalf("%+v %v", head, err)
	}
	pdrs, _, _ := api.TakeRows[api.PDR](rest)
	pdr := pdrs[0]
	if pdr.TEID != 7 || pdr.Local.String() != "10.1.0.1" || pdr.Match != api.PDRFTEID|api.PDRUEIP|api.PDRUe4Only {
		t.Errorf("%+v", pdr)
	}
	if len(b.s.Held()) != 4 { // session, path, two policers
		t.Errorf("held: %v", b.s.Held())
	}
	b.s.Usage(func(id dptest.ID, was, is []byte) []api.Usage {
		if id == key && is == nil {
			return []api.Usage{{SEID: head.SEID, URR: 1, Triggers: api.UsageTermr, Bytes: [3]uint64{30, 10, 20}}}
		}
		return nil
	})
	m := b.modify(smf1, r.UP.SEID, &pfcp.SessionModificationRequest{UpdateFAR: []pfcp.UpdateFAR{{ID: 2,
		Action: ptr(pfcp.ActionBuffer | pfcp.ActionNotify)}}})
	wants(t, pfcp.CauseAccepted, m)
	d := b.delete(smf1, r.UP.SEID)
	if d.Cause != pfcp.CauseAccepted || len(d.Usage) != 1 || *d.Usage[0].Volume != [3]uint64{30, 10, 20} ||
		d.Usage[0].Packets != nil {
		t.Fatalf("%+v", d)
	}
	testkit.ErrorIf(t, b.s.Held()[key] != nil || b.Count("") != 0, "something is left")
}

func heldID(seid uint64) dptest.ID { return dptest.ID{Kind: api.KindSession, Key: rules.Key(seid)} }

// wants ends the test when an answer has another cause.
func wants(t testing.TB, cause pfcp.Cause, answer pfcp.Message) {
	t.Helper()
	var is pfcp.Cause
	switch r := answer.(type) {
	case *pfcp.SessionEstablishmentResponse:
		is = r.Cause
	case *pfcp.SessionModificationResponse:
		is = r.Cause
	case *pfcp.SessionDeletionResponse:
		is = r.Cause
	}
	testkit.FatalIf(t, is != cause, "cause %d, not %d: %+v", is, cause, answer)
}
