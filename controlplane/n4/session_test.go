// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// Row P6, P9: the header alone.
func TestHeaders(t *testing.T) {
	h, m := associated(t)
	seid := m.establish(1)
	good := func() []byte { return message(pfcp.HeartbeatRequestType, 0, 5, recoveryIE(m.recovery)) }
	with := func(b []byte, change func(b []byte)) []byte {
		change(b)
		return b
	}
	length := func(v uint16) []byte {
		return with(good(), func(b []byte) { binary.BigEndian.PutUint16(b[2:], v) })
	}
	real := uint16(len(good()) - 4)
	for _, c := range []struct {
		reason string
		b      []byte
	}{
		{"too-short", []byte{}},
		{"too-short", good()[:7]},
		{"too-short", message(pfcp.SessionDeletionRequestType, seid, 9)[:15]},
		{"length", length(real + 1)},
		{"length", length(real - 1)},
		{"length", length(0)},
		{"length", length(65535)},
		{"unknown-type", message(49, 0, 5)},
		{"unknown-type", message(99, 0, 5)},
		{"unexpected-type", message(pfcp.SessionReportRequestType, seid, 5)},
		{"unexpected-type", message(pfcp.SessionEstablishmentResponseType, seid, 5)},
		{"unexpected-type", message(pfcp.SessionSetModificationRequestType, 0, 5)},
		{"seid-flag", with(message(pfcp.SessionDeletionRequestType, seid, 5), func(b []byte) { b[0] &^= 1 })},
	} {
		h.rises(c.reason, 1, func() {
			m.send(c.b)
			m.silence(5 * time.Millisecond)
		})
	}
	h.rises("version", 1, func() {
		r := m.ask(with(good(), func(b []byte) { b[0] = 2 << 5 }))
		testkit.ErrorIf(t, r.typ != pfcp.VersionNotSupportedResponseType || r.sequence != 5 || r.raw[0]>>5 != 1,
			"%+v", r)
	})
	h.rises("version", 1, func() { // two ends without a common version must not loop
		m.send(with(message(pfcp.VersionNotSupportedResponseType, 0, 5), func(b []byte) { b[0] = 2 << 5 }))
		m.silence(5 * time.Millisecond)
	})
	for _, sequence := range []uint32{0, 1, 0x7fffff, 0x800000, 0xffffff} {
		if r := m.ask(message(pfcp.HeartbeatRequestType, 0, sequence, recoveryIE(m.recovery))); r.sequence != sequence {
			t.Errorf("sequence %d answered as %d", sequence, r.sequence)
		}
	}
	m.alive()
}

// Rows A4, P31.
func TestForeignSessions(t *testing.T) {
	a, b := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0")
	h := start(t, quiet(a.peer(), b.peer()), nil, a, b)
	a.mustSetUp()
	b.mustSetUp()
	seid := a.establish(1)
	for _, wrong := range []uint64{seid, 0, 1 << 63, 1<<64 - 1} {
		for _, typ := range []pfcp.MessageType{pfcp.SessionModificationRequestType, pfcp.SessionDeletionRequestType} {
			h.rises("session-not-found", 1, func() {
				if r := b.ask(message(typ, wrong, b.next())); r.cause() != pfcp.CauseContextNotFound || r.seid != 0 {
					t.Errorf("type %d SEID %x: cause %d", typ, wrong, r.cause())
				}
			})
		}
	}
	if r := a.ask(message(pfcp.SessionModificationRequestType, seid, a.next())); r.cause() != pfcp.CauseAccepted ||
		r.seid != 1 {
		t.Errorf("modification by the owner: cause %d", r.cause())
	}
}

// Row A13.
func TestGuessing(t *testing.T) {
	h, m := associated(t, func(c *Config) { c.MissAlarm = 20 })
	m.establish(1)
	guess := func() { // at once: the alarm is about how many there are in a second
		for i := range uint64(200) {
			m.send(message(pfcp.SessionDeletionRequestType, 0x999000+i, m.next()))
		}
		for range 200 {
			m.must("a refusal")
		}
	}
	h.rises("session-not-found", 200, guess)
	testkit.Until(t, "alarm", func() bool {
		if h.happened("session-id-guessing") > 0 {
			return true
		}
		guess()
		return false
	})
	h.told("association.guessing")
}

// Row A6, this layer's part: a refusal of the session layer goes to the requester only.
func TestQuota(t *testing.T) {
	a, b := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0")
	fake := newFake()
	fake.quota = 10
	h := start(t, quiet(a.peer(), b.peer()), fake, a, b)
	a.mustSetUp()
	b.mustSetUp()
	var last uint64
	for i := range uint64(10) {
		last = a.establish(i)
	}
	h.rises("no-resources", 50, func() {
		for i := range uint64(50) {
			r := a.ask(establishment(a.next(), a.node, 100+i, a.addr.Addr()))
			testkit.FatalIf(t, r.cause() != pfcp.CauseNoResources || r.seid != 100+i, "cause %d", r.cause())
		}
	})
	b.establish(1)
	a.delete(last)
	a.establish(11)
}

// Row A9: what does not fit into the socket's buffer is lost, and counted.
func TestKernelLoss(t *testing.T) {
	m := newSMF(t, "smf1", "127.0.0.1:0")
	cfg := quiet(m.peer())
	s, err := New(cfg, newFake().all(), nil)
	testkit.Must(t, err)
	m.server = s.Listening()[0]
	testkit.Must(t, s.sockets[0].conn.SetReadBuffer(64<<10))
	for range 2000 {
		m.send(message(pfcp.SessionDeletionRequestType, 1, m.next()))
	}
	lost := s.Snapshot().Lost
	testkit.ErrorIf(t, lost < 1000, "%d lost", lost)
	testkit.Run(t, s.Run)
	testkit.Until(t, "the others are "+
		"read", func() bool { return s.Snapshot().Received["session-deletion-request"] == 2000-lost })
	for range 2000 - lost {
		m.must("an answer to what was read")
	}
	m.alive()
}

// Row A8.
func TestRetransmission(t *testing.T) {
	a, b := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0")
	cfg := quiet(a.peer(), b.peer())
	cfg.Heartbeat.Timeout, cfg.Heartbeat.Retries, cfg.AnswerTime = time.Millisecond, 2, time.Hour
	h := start(t, cfg, nil, a, b)
	a.mustSetUp()
	b.mustSetUp()
	hold := make(chan struct{})
	h.fake.with(func() { h.fake.hold = hold })
	req := establishment(100, a.node, 1, a.addr.Addr())
	for range 3 {
		a.send(req)
	}
	testkit.Until(t, "retransmissions ignored", func() bool { return h.happened("ignored-in-progress") == 2 })
	h.fake.with(func() { h.fake.hold = nil })
	close(hold)
	first := a.must("the answer")
	waitOut(20 * cfg.Heartbeat.Timeout) // the peer's T1 may be longer than ours times N1
	again := a.ask(req)
	testkit.ErrorIf(t, string(again.raw) != string(first.raw), "the answer from the cache differs")
	testkit.Equal(t, h.fake.seen().established, 1, "established")
	if r := b.ask(establishment(100, b.node, 1, b.addr.Addr())); r.cause() != pfcp.CauseAccepted ||
		h.fake.Count("smf2") != 1 {
		t.Error("the same sequence number of another peer")
	}
	h.rises("response-unmatched", 3, func() {
		for range 3 {
			a.send(message(pfcp.SessionReportResponseType, 1, 1, ie(19, 1)))
		}
	})
}

// Stored answers expire.
func TestAnswersExpire(t *testing.T) {
	h, m := associated(t, func(c *Config) { c.AnswerTime = time.Millisecond })
	m.establish(1)
	testkit.Until(t, "answers expire", func() bool { return h.s.Snapshot().Answers == 0 })
	testkit.Equal(t, h.s.Snapshot().Received["session-establishment-request"], 1, "requests")
}

// A restarted CP function counts its requests from the start: they are no retransmissions.
func TestSequenceNumbersAgain(t *testing.T) {
	h, m := served(t)
	for range 2 {
		m.sequence = 0
		m.set(func() { m.recovery = m.recovery.Add(time.Second) })
		m.mustSetUp()
		seid := m.establish(1)
		h.fake.with(func() {
			testkit.ErrorIf(t, h.fake.sessions[seid] == nil,
				"the answer names a session of before the restart")
		})
	}
	testkit.Equal(t, h.fake.seen().established, 2, "established")
	m.sequence--
	m.establish(2) // another body under the same number
	testkit.Equal(t, h.fake.seen().established, 3, "established")
}

func TestAnswersBounded(t *testing.T) {
	a := newAnswers(answerBounds{keep: time.Hour, count: 64, most: 1 << 30, total: 1 << 30, other: 1})
	for i := range uint32(10000) {
		k := transactionKey{sequence: i}
		if b, _, _ := a.begin(k, nil); b != fresh {
			t.Fatal("not fresh")
		}
		a.finish(k, []byte{1})
	}
	if n := a.size.Load(); n > 64 {
		t.Errorf("%d kept", n)
	}
	for i := range uint32(1000) {
		a.begin(transactionKey{port: 1, sequence: i}, nil)
	}
	if b, _, _ := a.begin(transactionKey{port: 2}, nil); b != full {
		t.Error("requests in progress were forgotten")
	}
	if n := a.size.Load(); n > 64 {
		t.Errorf("%d kept", n)
	}
}

// Row A9: session messages above capacity are refused or lost, each counted, and no heartbeat waits behind them.
func TestOverload(t *testing.T) {
	h, m := associated(t, func(c *Config) { c.Queue, c.Workers = 64, 1 })
	block := make(chan struct{})
	h.fake.with(func() { h.fake.block = block })
	const burst = 5000
	beats := newSMF(t, "smf1", "127.0.0.1:0")
	beats.server = m.server
	for i := range burst {
		m.send(establishment(m.next(), m.node, uint64(i), m.addr.Addr()))
		if i%500 == 0 {
			beats.alive() // the session layer answers only at the end of this test
		}
	}
	testkit.Until(t, "all read", func() bool {
		return h.s.Snapshot().Received["session-establishment-request"] == burst
	})
	h.fake.with(func() { h.fake.block = nil })
	close(block)
	testkit.Until(t, "all accounted for", func() bool {
		s := h.s.Snapshot()
		return s.Rejected["queue-full"]+s.Rejected["congestion"]+uint64(s.Sessions) == burst
	})
	s := h.s.Snapshot()
	testkit.ErrorIf(t, s.Rejected["queue-full"] < burst-100 || s.Rejected["congestion"] == 0 || s.Lost != 0,
		"rejected %v, lost %d", s.Rejected, s.Lost)
	// One more is accepted. Like any peer we repeat the request: our own socket may be full of refusals.
	sequence := m.next()
	req := establishment(sequence, m.node, 1<<40, m.addr.Addr())
	testkit.Until(t, "established after the burst", func() bool {
		m.send(req)
		for r := m.wait(100 * time.Millisecond); r != nil; r = m.wait(100 * time.Millisecond) {
			if r.sequence == sequence {
				return r.cause() == pfcp.CauseAccepted
			}
		}
		return false
	})
}

func TestInFlightLimit(t *testing.T) {
	h, m := associated(t, func(c *Config) { c.InFlight = 5 })
	hold := make(chan struct{})
	h.fake.with(func() { h.fake.hold = hold })
	for i := range uint64(5) {
		m.send(establishment(m.next(), m.node, i, m.addr.Addr()))
	}
	testkit.Until(t, "five under way", func() bool { return h.s.Snapshot().InFlight == 5 })
	req := establishment(m.next(), m.node, 9, m.addr.Addr())
	r := m.ask(req)
	r.wants(pfcp.CauseCongestion)
	testkit.Equal(t, r.seid, 9, "SEID of a refusal")
	h.fake.with(func() { h.fake.hold = nil })
	close(hold)
	testkit.Until(t, "done", func() bool { return h.s.Snapshot().InFlight == 0 })
	for range 5 {
		m.must("an answer that was kept back")
	}
	m.ask(req).wants(pfcp.CauseAccepted) // a refusal for congestion is not kept
}

func TestPeerRate(t *testing.T) {
	a, b := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0")
	cfg := quiet(a.peer(), b.peer())
	cfg.Rates.Requests = 100
	h := start(t, cfg, nil, a, b)
	a.mustSetUp()
	b.mustSetUp()
	began := time.Now()
	for i := range 1000 {
		a.send(message(pfcp.SessionDeletionRequestType, 1, a.next()))
		if i%100 == 0 { // no more than the server's socket takes
			b.alive()
		}
	}
	var s *Snapshot
	testkit.Until(t, "counted", func() bool {
		s = h.s.Snapshot()
		return s.Rejected["rate-peer"]+s.Rejected["session-not-found"] == 1000
	})
	most, tried := int(cfg.Rates.Requests)*int(time.Since(began)/time.Second+2), s.Rejected["session-not-found"]
	testkit.ErrorIf(t, int(tried) > most, "%d worked on, at most %d wanted", tried, most)
	b.establish(1)
}

// Row P29: after a refusal the server still answers. Row P5: unknown IEs are not refused.
func TestRefusedByDecoder(t *testing.T) {
	h, m := associated(t)
	seid := m.establish(1)
	h.rises("mandatory-ie-missing", 1, func() {
		r := m.ask(message(pfcp.SessionModificationRequestType, seid, m.next(), group(1, ie(56, 0, 9))))
		r.wants(pfcp.CauseMandatoryIEMissing)
	})
	m.alive()
	h.rises("mandatory-ie-missing", 1, func() { // row P10
		r := m.ask(message(pfcp.SessionEstablishmentRequestType, 0, m.next(), nodeIE(m.node)))
		r.wants(pfcp.CauseMandatoryIEMissing)
	})
	h.rises("mandatory-ie-incorrect", 1, func() {
		r := m.ask(establishment(m.next(), m.node, 5, netip.MustParseAddr("224.0.0.1")))
		r.wants(pfcp.CauseMandatoryIEIncorrect)
	})
	vendor := append(establishment(m.next(), m.node, 6, m.addr.Addr()), ie(0x8001, 0x12, 0x34, 1)...)
	vendor = append(vendor, ie(0xffff)...)
	binary.BigEndian.PutUint16(vendor[2:], uint16(len(vendor)-4))
	m.ask(vendor).wants(pfcp.CauseAccepted, "vendor's IEs")
	m.delete(seid)
}

func TestReports(t *testing.T) {
	h, m := associated(t, func(c *Config) {
		c.Window, c.Heartbeat.Timeout, c.Heartbeat.Retries = 2, 50*time.Millisecond, 1<<20
	})
	m.establish(77)
	var answered atomic.Int64
	send := func(to netip.Addr) {
		h.s.Report(Recipient{Association: "smf1", CP: pfcp.FSEID{SEID: 77, IPv4: to}},
			&pfcp.SessionReportRequest{Inactive: true}, func(r *pfcp.SessionReportResponse, _ *Association, err error) {
				testkit.ErrorIf(t, err != nil || r.Cause != pfcp.CauseAccepted, "%+v, %v", r, err)
				answered.Add(1)
			})
	}
	send(m.addr.Addr())
	r := m.must("a session report")
	testkit.FatalIf(t, r.typ != pfcp.SessionReportRequestType || r.seid != 77 || r.from != m.server, "%+v", r)
	// Row P32: without a cause it is no answer; the request comes again, the same.
	h.rises("response-malformed", 1, func() { m.send(message(pfcp.SessionReportResponseType, 1, r.sequence)) })
	again := m.must("the report again")
	testkit.FatalIf(t, string(again.raw) != string(r.raw), "no retransmission")
	h.rises("response-unmatched", 1, func() { // the wrong type
		m.send(message(pfcp.NodeReportResponseType, 0, r.sequence, nodeIE("smf1"), ie(19, 1)))
	})
	m.send(message(pfcp.SessionReportResponseType, 1, r.sequence, ie(19, 1)))
	testkit.Until(t, "answered", func() bool { return answered.Load() == 1 })
	h.rises("response-unmatched", 1, func() {
		m.send(message(pfcp.SessionReportResponseType, 1, r.sequence, ie(19, 1)))
	})

	// Two at a time, the others in turn.
	for range 10 {
		send(netip.Addr{})
	}
	testkit.Equal(t, h.s.Snapshot().Associations[0].Reports, 10, "reports")
	testkit.Equal(t, h.s.requests.size(), 2, "under way")
	for seen := map[uint32]bool{r.sequence: true}; len(seen) < 11; { // the first may come again
		r := m.must("the next report")
		seen[r.sequence] = true
		m.send(message(pfcp.SessionReportResponseType, 1, r.sequence, ie(19, 1)))
	}
	testkit.Until(t, "all answered", func() bool { return answered.Load() == 11 })
	// To the address of the CP F-SEID, when it is another one.
	second := newSMF(t, "x", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.7"), m.addr.Port()).String())
	send(second.addr.Addr())
	r = second.must("a report at the CP F-SEID's address")
	second.server = m.server
	second.send(message(pfcp.SessionReportResponseType, 1, r.sequence, ie(19, 1)))
	testkit.Until(t, "answered from there", func() bool { return answered.Load() == 12 })
}

// An unanswered report is repeated N1 times and given up.
func TestReportGivenUp(t *testing.T) {
	h, m := associated(t, func(c *Config) { c.Heartbeat.Timeout, c.Heartbeat.Retries = 10*time.Millisecond, 2 })
	end := h.report(77, m)
	for range 3 {
		r := m.must("the report")
		testkit.ErrorIf(t, r.typ != pfcp.SessionReportRequestType, "%+v", r)
	}
	testkit.Equal(t, <-end, ErrTimeout, "end")
	s := h.s.Snapshot()
	testkit.ErrorIf(t, s.Events["request-timed-out"] != 1 || s.Events["request-retransmitted"] != 2, "%v", s.Events)
}

// Answers leave from the address that the request came to.
func TestTwoListeners(t *testing.T) {
	m := newSMF(t, "smf1", "127.0.0.1:0")
	cfg := quiet(m.peer())
	cfg.Listen = on("127.0.0.1:0", "127.0.0.5:0", "[::1]:0")
	h := start(t, cfg, nil, m)
	m.mustSetUp()
	for _, l := range h.s.Listening()[:2] {
		m.server = l
		r := m.ask(message(pfcp.HeartbeatRequestType, 0, m.next(), recoveryIE(m.recovery)))
		testkit.ErrorIf(t, r.from != l, "asked %s, answered by %s", l, r.from)
	}
	six := newSMF(t, "smf6", "[::1]:0")
	six.server = h.s.Listening()[2]
	six.alive()
	v4, v6 := h.s.Address()
	testkit.ErrorIf(t, v4 != netip.MustParseAddr("127.0.0.1") || v6 != netip.MustParseAddr("::1"), "%s %s", v4, v6)
}

// IPv6 all the way.
func TestIPv6(t *testing.T) {
	m := newSMF(t, "smf6", "[::1]:0")
	cfg := quiet(m.peer())
	cfg.Listen, cfg.Node.Addr = on("[::1]:0"), m.addr.Addr()
	start(t, cfg, nil, m)
	m.mustSetUp()
	m.establish(5)
}

func TestStats(t *testing.T) {
	h, m := associated(t)
	m.establish(1)
	m.send([]byte{1})
	testkit.Until(t, "counted", func() bool { return h.s.Snapshot().Rejected["too-short"] == 1 })
	m.ask(message(pfcp.SessionDeletionRequestType, 5, m.next()))
	stats := h.s.Stats()
	testkit.ErrorIf(t, stats.Associations != 1 || stats.Failed != 0 || stats.Sessions != 1, "%+v", stats)
	for name, list := range map[string][]Count{"received": stats.Received, "sent": stats.Sent,
		"rejected": stats.Rejected,
		"events":   stats.Events} {
		seen := map[string]bool{}
		for _, c := range list {
			testkit.ErrorIf(t, seen[c.Name] || c.Name == "", "%s: %q twice", name, c.Name)
			seen[c.Name] = true
		}
	}
	for _, c := range []struct {
		list []Count
		name string
		want uint64
	}{
		{stats.Received, "session-establishment-request", 1}, {stats.Sent, "session-establishment-response", 1},
		{stats.Rejected, "too-short", 1}, {stats.Rejected, "version", 0}, {stats.Rejected, "session-not-found", 1},
		{stats.Events, "association-up", 1},
	} {
		i := slices.IndexFunc(c.list, func(x Count) bool { return x.Name == c.name })
		testkit.ErrorIf(t, i < 0 || c.list[i].Value != c.want, "%s: not %d", c.name, c.want)
	}
	if want := []AnswerCount{{"association-setup-response", 1, 1}, {"session-establishment-response", 1, 1},
		{"session-deletion-response", 65, 1}}; !slices.Equal(stats.Answers, want) {
		t.Errorf("answers %v", stats.Answers)
	}
}

// Two CP functions behind one address: each reaches its own sessions, from any port, and only those.
func TestSharedAddress(t *testing.T) {
	a, b := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.1:0")
	third := newSMF(t, "smf2", "127.0.0.1:0") // another port of the second
	outsider := newSMF(t, "smf3", "127.0.0.3:0")
	usual := netip.MustParseAddrPort("127.0.0.1:8805")
	for _, ports := range [][2]netip.AddrPort{{a.addr, b.addr}, {usual, usual}} {
		cfg := quiet(peerAt(ports[0], "smf1"), peerAt(ports[1], "smf2"), outsider.peer())
		h := start(t, cfg, nil, a, b, third, outsider)
		for _, m := range []*smf{a, b, outsider} {
			m.mustSetUp()
		}
		mine, his, more := a.establish(1), b.establish(2), b.establish(3)
		h.rises("session-not-found", 2, func() {
			for _, seid := range []uint64{mine, his} {
				outsider.delete(seid).wants(pfcp.CauseContextNotFound)
			}
		})
		third.sequence = 1000
		for i, r := range []*reply{a.delete(mine), b.delete(his), third.delete(more)} {
			testkit.ErrorIf(t, r.cause() != pfcp.CauseAccepted, "deletion %d: cause %d", i, r.cause())
		}
		h.stop()
	}
}
