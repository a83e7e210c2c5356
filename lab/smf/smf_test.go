// SPDX-License-Identifier: Apache-2.0

package smf_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/controlplane/pfcp"
	"isthmus/lab/smf"
	"isthmus/lab/smf/smftest"
)

// words are a log of the test's.
type words struct{ t *testing.T }

func (w words) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func client(t *testing.T, opt smf.Options) *smf.Client {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	opt.Conn, opt.Node, opt.Log = conn, pfcp.NodeID{FQDN: "smf.test"}, slog.New(slog.NewTextHandler(words{t}, nil))
	if opt.T1 == 0 {
		opt.T1 = limit
	}
	c := smf.New(opt)
	t.Cleanup(c.Close)
	return c
}

func associate(t *testing.T, c *smf.Client, up *smftest.Server) *smf.Association {
	t.Helper()
	a, err := c.Associate(t.Context(), up.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var ue = smf.UE{IPv4: netip.MustParseAddr("10.45.0.1"), IPv6: netip.MustParsePrefix("2001:db8:45:1::/64")}

// limit ends a test that would wait for ever. It is no measure of duration: on a busy machine anything may take
// seconds.
const limit = time.Minute

func waitUntil(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for ", what)
		}
	}
}

func TestSession(t *testing.T) {
	up := smftest.Start(t)
	c := client(t, smf.Options{})
	a := associate(t, c, up)
	if a.ID != "upf.test" || a.Features()&pfcp.UPFtup == 0 || !a.Alive() {
		t.Fatalf("association %q, features %x", a.ID, a.Features())
	}
	anchor := smf.Anchor{Access: "n3", Core: "n6", UE: ue, Measure: smf.Measure{QFI: 9, CountsForCharging: true}}
	s, err := a.Establish(t.Context(), anchor.Request(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := s.FTEID(smf.Uplink); err != nil || f.TEID == 0 || f.IPv4 != smftest.Endpoint {
		t.Fatalf("F-TEID %+v, %v", f, err)
	}
	if _, err := s.FTEID(smf.Downlink); err == nil {
		t.Fatal("the downlink PDR of an anchor has an F-TEID")
	}
	held := up.Session(s.UP().SEID)
	if held == nil || held.CP != s.CP.SEID || len(held.Request.PDR) != 2 ||
		held.Request.FAR[1].Action != pfcp.ActionBuffer|pfcp.ActionNotify {
		t.Fatalf("the user plane has %+v", held)
	}
	if _, err := s.Modify(t.Context(), &pfcp.SessionModificationRequest{QueryAll: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage()[1]; u.Total != 1100 || u.Uplink != 440 || u.Downlink != 660 || u.Reports != 2 {
		t.Fatalf("usage %+v", u)
	}
	if up.Sessions() != 0 || c.Sessions() != 0 {
		t.Fatal("a session is left")
	}
	var refused *smf.Refusal
	if _, err := s.Delete(t.Context()); !errors.As(err, &refused) || refused.Cause != pfcp.CauseContextNotFound {
		t.Fatalf("second deletion: %v", err)
	}
}

// A lost request is repeated with the same sequence number; after N1 repetitions it fails.
func TestRepeats(t *testing.T) {
	up := smftest.Start(t)
	var lost atomic.Int32
	up.Lose(func(pfcp.Header) bool { return lost.Add(1) <= 2 })
	c := client(t, smf.Options{T1: 20 * time.Millisecond, N1: 1000})
	associate(t, c, up)
	if n := up.Count(pfcp.AssociationSetupRequestType); n < 3 || int(c.Counters.Resent.Load()) < n-1 {
		t.Fatalf("%d repetitions, %d requests came", c.Counters.Resent.Load(), n)
	}
	c = client(t, smf.Options{T1: 20 * time.Millisecond, N1: 3})
	silent := smftest.Start(t)
	silent.Lose(func(pfcp.Header) bool { return true })
	if _, err := c.Associate(t.Context(), silent.Addr); !errors.Is(err, smf.ErrNoAnswer) {
		t.Fatalf("association with nobody: %v", err)
	}
	if n := silent.Count(pfcp.AssociationSetupRequestType); n != 4 {
		t.Fatalf("sent %d times", n)
	}
}

// Requests of user planes are answered; a repeated one gets the same answer and is not handled twice.
func TestServes(t *testing.T) {
	up := smftest.Start(t)
	var usage, downlink, errs atomic.Int32
	c := client(t, smf.Options{Handlers: smf.Handlers{
		Usage:           func(*smf.Session, []pfcp.UsageReport) { usage.Add(1) },
		Downlink:        func(*smf.Session, *pfcp.SessionReportRequest) { downlink.Add(1) },
		ErrorIndication: func(*smf.Session, []pfcp.FTEID) { errs.Add(1) },
	}})
	a := associate(t, c, up)
	s, err := a.Establish(t.Context(), (&smf.Anchor{Access: "n3", Core: "n6", UE: ue}).Request(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := up.Ask(0, &pfcp.HeartbeatRequest{Recovery: time.Now()}).(*pfcp.HeartbeatResponse); !ok ||
		r.Recovery.IsZero() {
		t.Fatalf("heartbeat: %+v", r)
	}
	now := time.Now().Truncate(time.Second)
	report := &pfcp.SessionReportRequest{
		DownlinkPDR: []uint16{2}, Errors: []pfcp.FTEID{{TEID: 7, IPv4: ue.IPv4}},
		Usage: []pfcp.UsageReport{{URR: 1, Trigger: 2, Start: now, End: now, Volume: &[3]uint64{5, 2, 3}}},
	}
	if r, ok := up.Ask(s.CP.SEID, report).(*pfcp.SessionReportResponse); !ok || r.Cause != pfcp.CauseAccepted {
		t.Fatalf("report: %+v", r)
	}
	waitUntil(t, "handlers", func() bool { return usage.Load() == 1 && downlink.Load() == 1 && errs.Load() == 1 })
	if r, ok := up.Ask(s.CP.SEID+1, report).(*pfcp.SessionReportResponse); !ok || r.Cause != pfcp.CauseContextNotFound {
		t.Fatalf("report of a session that is not: %+v", r)
	}
	node := &pfcp.NodeReportRequest{Node: pfcp.NodeID{FQDN: "upf.test"}, Failed: []pfcp.RemotePeer{{Addr: ue.IPv4}}}
	if r, ok := up.Ask(0, node).(*pfcp.NodeReportResponse); !ok || r.Cause != pfcp.CauseAccepted {
		t.Fatalf("node report: %+v", r)
	}
}

// A new recovery time stamp in a heartbeat means that the user plane's sessions are gone.
func TestRestartOfPeer(t *testing.T) {
	up := smftest.Start(t)
	lost := make(chan error, 1)
	c := client(t, smf.Options{Heartbeat: 20 * time.Millisecond, T1: time.Second, Handlers: smf.Handlers{
		Lost: func(_ *smf.Association, reason error) { lost <- reason },
	}})
	a := associate(t, c, up)
	if _, err := a.Establish(t.Context(), (&smf.Anchor{Access: "n3", Core: "n6", UE: ue}).Request(), nil); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "heartbeats", func() bool { return up.Count(pfcp.HeartbeatRequestType) > 1 })
	up.Restart()
	select {
	case <-lost:
	case <-time.After(limit):
		t.Fatal("the restart was not noticed")
	}
	if c.Sessions() != 0 || a.Alive() {
		t.Fatal("sessions of a restarted user plane are kept")
	}
}

// network is a chain of fake user planes: two radio nodes, a relay, an anchor.
func network(t *testing.T) (*smf.Network, []*smftest.Server) {
	n := &smf.Network{Measure: smf.Measure{QFI: 9, CountsForCharging: true}}
	var servers []*smftest.Server
	var parts []smf.Function
	for _, name := range []string{"gnb", "gnb2", "upf1", "upf"} {
		up := smftest.Start(t)
		c := client(t, smf.Options{Handlers: smf.Handlers{Downlink: n.Downlink, ErrorIndication: n.ErrorIndication}})
		parts = append(parts, smf.Function{Name: name, Association: associate(t, c, up), Access: "a", Core: "c"})
		servers = append(servers, up)
	}
	n.Radios, n.Relays, n.Anchor = parts[:2], parts[2:3], parts[3]
	return n, servers
}

func TestNetwork(t *testing.T) {
	n, up := network(t)
	b, err := n.Attach(t.Context(), ue)
	if err != nil {
		t.Fatal(err)
	}
	s := b.State()
	if s.Radio != "gnb" || len(s.Sessions) != 3 {
		t.Fatalf("state %+v", s)
	}
	radio, relay, anchor := s.Sessions[0], s.Sessions[1], s.Sessions[2]
	// Each hop sends to the F-TEID that the next one chose.
	want := func(what string, o *pfcp.OuterHeader, s *smf.Session, pdr uint16) {
		t.Helper()
		f, err := s.FTEID(pdr)
		if err != nil || o == nil || o.TEID != f.TEID || o.IPv4 != f.IPv4 {
			t.Fatalf("%s sends to %+v, not to %+v (%v)", what, o, f, err)
		}
	}
	modified := up[2].Session(relay.UP().SEID).Modified
	want("the radio node", up[0].Session(radio.UP().SEID).Request.FAR[0].Forwarding.OuterHeader, relay, smf.Uplink)
	want("the relay, up,", modified[0].UpdateFAR[0].Forwarding.OuterHeader, anchor, smf.Uplink)
	want("the relay, down,", modified[1].UpdateFAR[0].Forwarding.OuterHeader, radio, smf.Downlink)
	want("the anchor", up[3].Session(anchor.UP().SEID).Request.FAR[1].Forwarding.OuterHeader, relay, smf.Downlink)

	moved := false
	if err := b.Handover(t.Context(), 1, func() error { moved = true; return nil }); err != nil || !moved {
		t.Fatal(err)
	}
	modified = up[2].Session(relay.UP().SEID).Modified
	want("the relay after the handover", modified[2].UpdateFAR[0].Forwarding.OuterHeader, b.State().Sessions[0],
		smf.Downlink)
	if !modified[2].UpdateFAR[0].Forwarding.SendEndMarker || up[0].Sessions() != 0 || up[1].Sessions() != 1 ||
		b.State().Radio != "gnb2" {
		t.Fatal("no end marker, or the old radio session is left")
	}

	if err := b.Idle(t.Context()); err != nil || up[1].Sessions() != 0 || b.State().Radio != "" {
		t.Fatal("not idle", err)
	}
	up[2].Ask(relay.CP.SEID, &pfcp.SessionReportRequest{DownlinkPDR: []uint16{2}})
	waitUntil(t, "paging", func() bool { return b.State().Radio == "gnb2" })
	if n.Pages.Load() != 1 {
		t.Fatal("no page counted")
	}

	now, _ := b.State().Sessions[0].FTEID(smf.Downlink)
	up[2].Ask(relay.CP.SEID, &pfcp.SessionReportRequest{Errors: []pfcp.FTEID{now}})
	waitUntil(t, "repair", func() bool {
		f, err := b.State().Sessions[0].FTEID(smf.Downlink)
		return err == nil && f.TEID != now.TEID
	})
	if err := b.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range up {
		if up[i].Sessions() != 0 {
			t.Fatalf("function %d has a session left", i)
		}
	}
}

// An attachment that fails half way leaves nothing behind.
func TestAttachUndone(t *testing.T) {
	n, up := network(t)
	up[3].Change(func(h pfcp.Header, m pfcp.Message) pfcp.Message {
		if h.Type == pfcp.SessionEstablishmentRequestType {
			return &pfcp.SessionEstablishmentResponse{Node: pfcp.NodeID{FQDN: "upf.test"}, Cause: pfcp.CauseNoResources}
		}
		return m
	})
	var refused *smf.Refusal
	if _, err := n.Attach(t.Context(), ue); !errors.As(err, &refused) || refused.Cause != pfcp.CauseNoResources {
		t.Fatalf("attached: %v", err)
	}
	if up[2].Sessions() != 0 {
		t.Fatal("the relay's session is left")
	}
}

func TestClassifier(t *testing.T) {
	edge := &smf.Classifier{Instance: "edge", To: netip.MustParsePrefix("203.0.113.0/24"), UE: ue}
	r := smf.Relay{Access: "n3", Core: "n9", Classifier: edge}
	up := smftest.Start(t)
	s, err := associate(t, client(t, smf.Options{}), up).Establish(context.Background(), r.Request(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := s.FTEID(smf.Uplink)
	local, err := s.FTEID(smf.Local)
	if err != nil || all != local {
		t.Fatalf("the classifier's PDR has F-TEID %+v, the other %+v", local, all)
	}
	q := up.Session(s.UP().SEID).Request
	if q.PDR[2].Precedence >= q.PDR[0].Precedence || len(q.PDR[2].PDI.SDF) != 1 {
		t.Fatalf("the classifier's PDR is %+v", q.PDR[2])
	}
}
