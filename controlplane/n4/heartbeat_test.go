// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// Row A10: every peer is answered, up to a rate; associated ones are unaffected.
func TestHeartbeatOfUnknownPeers(t *testing.T) {
	m := newSMF(t, "smf1", "127.0.0.1:0")
	unknown := newSMF(t, "x", "127.0.0.2:0")
	cfg := quiet(m.peer())
	cfg.Rates.Heartbeats = 50
	h := start(t, cfg, nil, m, unknown)
	m.mustSetUp()
	unknown.alive()
	const flood = 2000
	began := time.Now()
	for i := range flood {
		unknown.send(message(pfcp.HeartbeatRequestType, 0, uint32(i), recoveryIE(time.Now())))
		if i%100 == 0 {
			m.alive()
		}
	}
	m.alive()
	var s *Snapshot
	testkit.Until(t, "all answered or refused", func() bool {
		s = h.s.Snapshot()
		return s.Sent["heartbeat-response"]+s.Rejected["rate-unknown-peers"] == flood+22
	})
	// The burst of one second, and the rate.
	most := int(cfg.Rates.Heartbeats) * int(time.Since(began)/time.Second+2)
	answered := s.Sent["heartbeat-response"] - 22
	testkit.ErrorIf(t, int(answered) > most, "%d answered, at most %d wanted", answered, most)
	testkit.ErrorIf(t, s.Rejected["rate-peer"] != 0, "rejected %v", s.Rejected)
}

// Rows P3, P4.
func TestHeartbeatMalformed(t *testing.T) {
	h, m := associated(t)
	for _, bad := range [][]byte{nil, ie(96), ie(96, 1, 2, 3), ie(96, 1, 2, 3, 4, 5), {0, 96, 0}} {
		h.rises("heartbeat-malformed", 1, func() {
			m.send(message(pfcp.HeartbeatRequestType, 0, m.next(), bad))
			m.silence(20 * time.Millisecond)
		})
	}
	m.alive()
}

// A malformed heartbeat response does not count, so the request is repeated, and the association stays.
func TestHeartbeatResponseMalformed(t *testing.T) {
	m := newSMF(t, "smf1", "127.0.0.1:0")
	cfg := fast(m.peer())
	cfg.Heartbeat.Timeout = testkit.Limit
	h := start(t, cfg, nil, m)
	m.set(func() { m.silent = true })
	m.send(message(pfcp.AssociationSetupRequestType, 0, m.next(), nodeIE(m.node), recoveryIE(m.recovery)))
	testkit.Until(t, "a heartbeat", func() bool { return h.s.Snapshot().Sent["heartbeat-request"] > 0 })
	// None of these is an answer to our request.
	h.rises("response-unmatched", 1, func() {
		m.send(message(pfcp.HeartbeatResponseType, 0, h.asked()^1, recoveryIE(time.Now())))
	})
	sequence := h.asked()
	h.rises("response-malformed", 2, func() {
		m.send(message(pfcp.HeartbeatResponseType, 0, sequence))
		m.send(message(pfcp.HeartbeatResponseType, 0, sequence, ie(96, 1, 2, 3)))
	})
	m.send(message(pfcp.HeartbeatResponseType, 0, sequence, recoveryIE(m.recovery)))
	m.set(func() { m.silent = false })
	testkit.Until(t, "answered", func() bool { return h.s.Snapshot().Associations[0].Heartbeats > 0 })
	a := h.s.Snapshot().Associations[0]
	testkit.ErrorIf(t, a.State != "up" || a.Recovery.Unix() != m.recovery.Unix(), "%+v", a)
}

// asked is the sequence number of the pending request, which a silent peer would have seen.
func (h *harness) asked() (sequence uint32) {
	h.s.requests.lock.Lock()
	defer h.s.requests.lock.Unlock()
	for k := range h.s.requests.open {
		sequence = k.sequence
	}
	return sequence
}

// Row A7: a forged datagram of the peer cannot delete its sessions; a real restart is believed.
func TestForgedRestart(t *testing.T) {
	m := newSMF(t, "smf1", "127.0.0.1:0")
	unknown := newSMF(t, "x", "127.0.0.2:0")
	h := start(t, quiet(m.peer()), nil, m, unknown)
	m.mustSetUp()
	m.establish(1)
	newer := m.recovery.Add(time.Hour)
	forged := message(pfcp.HeartbeatRequestType, 0, 77, recoveryIE(newer))
	unknown.ask(forged)
	m.ask(forged) // from the peer's own address, which a forger can write too
	testkit.Until(t, "asked and denied", func() bool { return h.happened("restart-not-confirmed") == 1 })
	h.told("association.restart-unconfirmed")
	testkit.FatalIf(t, h.fake.Count("smf1") != 1 || h.s.Find("smf1") == nil, "a forged heartbeat deleted sessions")
	m.set(func() { m.recovery = newer })
	m.ask(forged)
	testkit.Until(t, "sessions and association deleted after a true restart", func() bool {
		return h.fake.Count("smf1") == 0 && h.s.Find("smf1") == nil && h.happened("peer-restarted") == 1
	})
	h.told("association.restarted")
	m.mustSetUp()
	m.establish(2)
}

// The time stamp in the answer to our own heartbeat is enough.
func TestRestartSeenByHeartbeat(t *testing.T) {
	m := newSMF(t, "smf1", "127.0.0.1:0")
	other := newSMF(t, "smf2", "127.0.0.2:0")
	h := start(t, fast(m.peer(), other.peer()), nil, m, other)
	m.mustSetUp()
	other.mustSetUp()
	m.establish(1)
	other.establish(1)
	m.set(func() { m.recovery = m.recovery.Add(time.Hour) })
	testkit.Until(t, "sessions deleted", func() bool { return h.fake.Count("smf1") == 0 && h.s.Find("smf1") == nil })
	testkit.ErrorIf(t, h.fake.Count("smf2") != 1 || h.s.Find("smf2") == nil, "another association suffered")
}

// The reported reason of a missing answer: silence, an unreadable answer, or a network that refuses the datagram.
func TestWhyNoAnswer(t *testing.T) {
	peer, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	defer peer.Close()
	var answers atomic.Bool
	go func() {
		b := make([]byte, 2048)
		for {
			_, from, err := peer.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			if answers.Load() { // without its Recovery Time Stamp
				peer.WriteToUDPAddrPort(message(pfcp.HeartbeatResponseType, 0, binary.BigEndian.Uint32(b[4:])>>8), from)
			}
		}
	}()
	here := peer.LocalAddr().(*net.UDPAddr).AddrPort()
	s := start(t, fast(), nil)
	for _, row := range []struct {
		peer    netip.AddrPort
		answers bool
		why     string
	}{
		{here, false, "no answer from the peer"},
		{here, true, "the peer's answer cannot be read: "},
		{netip.MustParseAddrPort("192.0.2.1:8805"), false, "the request cannot be sent: "}, // not from 127.0.0.1
	} {
		answers.Store(row.answers)
		got := make(chan error, 1)
		s.s.requests.send(s.s.sockets[0], row.peer, pfcp.Header{}, &pfcp.HeartbeatRequest{},
			func(_ pfcp.Message, err error) { got <- err })
		err := testkit.Receive(t, got)
		testkit.ErrorIf(t, !errors.Is(err, ErrTimeout) || !strings.HasPrefix(err.Error(), row.why), "%v, not %q", err,
			row.why)
	}
}

func TestPathFailure(t *testing.T) {
	m := newSMF(t, "smf1", "127.0.0.1:0")
	h := start(t, fast(m.peer()), nil, m)
	m.mustSetUp()
	seid := m.establish(1)
	m.set(func() { m.silent = true })
	testkit.Until(t, "path failure", func() bool { return h.s.Snapshot().Associations[0].State == "failed" })
	testkit.ErrorIf(t, h.fake.Count("smf1") != 1, "sessions did not outlive the path")
	testkit.Until(t, "stored as failed", func() bool { return !h.fake.Associations()[0].FailedAt.IsZero() })
	testkit.Equal(t, <-h.report(1, m), ErrPathFailed, "report while the path is down")
	m.set(func() { m.silent = false })
	testkit.Until(t, "path restored", func() bool { return h.s.Snapshot().Associations[0].State == "up" })
	testkit.Until(t, "stored as up", func() bool { return h.fake.Associations()[0].FailedAt.IsZero() })
	h.told("association.up")
	h.told("association.path-failed")
	h.told("association.path-restored")
	m.delete(seid).wants(pfcp.CauseAccepted)
}

func TestHeadlessExpires(t *testing.T) {
	h, m := associated(t, func(c *Config) { c.Headless = 0 })
	m.establish(1)
	h.failPath("smf1")
	testkit.Until(t, "sessions deleted", func() bool {
		return h.happened("headless-expired") == 1 && h.fake.Count("") == 0
	})
	h.told("association.headless-expired")
	testkit.ErrorIf(t, len(h.fake.Associations()) != 0 || h.s.Find("smf1") != nil, "the association is still there")
}

// TS 29.244 §5.22: a member of an SMF set continues the sessions of another.
func TestSetTakeover(t *testing.T) {
	a, b := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0")
	outsider := newSMF(t, "smf3", "127.0.0.3:0")
	pa, pb := a.peer(), b.peer()
	pa.Set, pb.Set = "set1", "set1"
	cfg := quiet(pa, pb, outsider.peer())
	cfg.Headless = time.Hour
	h := start(t, cfg, nil, a, b, outsider)
	a.mustSetUp()
	b.mustSetUp()
	outsider.mustSetUp()
	seid := a.establish(1)
	h.rises("session-not-found", 1, func() {
		outsider.delete(seid).wants(pfcp.CauseContextNotFound)
	})
	h.failPath("smf1")
	got := h.report(1, a)
	r := b.must("the report")
	if old := fseidIE(1, a.addr.Addr()); r.typ != pfcp.SessionReportRequestType || r.seid != 0 ||
		string(r.ies[57]) != string(old[4:]) {
		t.Fatalf("the report did not go to the other member as another one's: %+v", r)
	}
	b.send(message(pfcp.SessionReportResponseType, 0, r.sequence, ie(19, 1)))
	testkit.Must(t, <-got)
	h.own(func() { // the hour is over
		h.s.cfg.Headless = 0
		h.s.paths.headless(h.s.table.associations["smf1"])
	})
	testkit.Until(t, "adopted", func() bool { return h.fake.Count("smf2") == 1 && h.happened("sessions-adopted") == 1 })
	testkit.ErrorIf(t, len(h.fake.seen().released) != 0, "sessions were released")
	b.delete(seid).wants(pfcp.CauseAccepted, "deletion by the successor")
}

// The SMF set that a member names in its set-up request counts as the configured one does.
func TestSetFromMessage(t *testing.T) {
	h, m := served(t)
	m.mustSetUp(ie(180, append([]byte{0, 4}, "set9"...)...),
		ie(178, append([]byte{2}, netip.MustParseAddr("127.0.0.9").AsSlice()...)...))
	a := h.s.Find("smf1")
	testkit.FatalIf(t, a == nil || a.Set != "set9", "%+v", a)
	// Its other address may speak for it.
	second := newSMF(t, "smf1", "127.0.0.9:0")
	second.server = m.server
	second.establish(3)
}
