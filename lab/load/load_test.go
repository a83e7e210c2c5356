// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
	"isthmus/lab/smf/smftest"
)

func options(up *smftest.Server) Options {
	return Options{
		Peer: up.Addr, Rate: 2000, Sessions: 50, Seconds: 0.3, ModifyRatio: 1.5, Window: 1000,
		T1: 500 * time.Millisecond, N1: 100,
		Access: "access", Core: "core", FirstUE: netip.MustParseAddr("10.45.0.1"),
		AccessPeer: netip.MustParseAddr("192.0.2.9"),
	}
}

func TestRun(t *testing.T) {
	up := smftest.Start(t)
	opt := options(up)
	var r *Result
	for ; ; opt.Seconds *= 2 { // until the oldest had to go: a busy machine does less in that time
		var err error
		if r, err = Run(t.Context(), opt); err != nil {
			t.Fatal(err)
		}
		if err := r.Verdict(); err != nil {
			t.Fatal(err)
		}
		if r.Established > 2*uint64(opt.Sessions) {
			break
		}
	}
	if float64(r.Established) > opt.Rate*r.Seconds+1 || r.Deleted != r.Established ||
		r.Modified < r.Established+r.Established/2-1 ||
		r.Modified > 2*r.Established {
		t.Fatalf("%d established in %g s, %d modified, %d deleted", r.Established, r.Seconds, r.Modified, r.Deleted)
	}
	if n := up.Sessions(); n != 0 {
		t.Fatalf("%d sessions are left", n)
	}
	if l := r.Latency["establishment"]; l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.Max {
		t.Fatalf("latency %+v", l)
	}
}

// Without a time, exactly the sessions asked for are established.
func TestRunOnce(t *testing.T) {
	up := smftest.Start(t)
	opt := options(up)
	opt.Seconds, opt.Sessions, opt.ModifyRatio = 0, 123, 0
	r, err := Run(t.Context(), opt)
	if err != nil || r.Verdict() != nil || r.Established != 123 || r.Most != 123 || r.Modified != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// Lost requests are repeated and the session is made once.
func TestRunLossy(t *testing.T) {
	up := smftest.Start(t)
	seen := map[uint32]bool{} // the user plane asks from one goroutine
	up.Lose(func(h pfcp.Header) bool {
		again := seen[h.Sequence]
		seen[h.Sequence] = true
		return h.Sequence%10 == 5 && !again
	})
	opt := options(up)
	opt.Seconds, opt.T1, opt.N1 = 0, 100*time.Millisecond, 100
	r, err := Run(t.Context(), opt)
	if err != nil || r.Verdict() != nil || r.Resent == 0 {
		t.Fatalf("%+v, %v, %v", r, err, r.Verdict())
	}
}

// Every kind of wrong answer is found.
func TestRunWrong(t *testing.T) {
	for _, test := range []struct {
		want string
		of   pfcp.MessageType
		bad  func(m pfcp.Message) pfcp.Message
	}{
		{"establishment: cause 75", pfcp.SessionEstablishmentRequestType, func(pfcp.Message) pfcp.Message {
			return &pfcp.SessionEstablishmentResponse{Node: pfcp.NodeID{FQDN: "x"}, Cause: pfcp.CauseNoResources}
		}},
		{"modification: cause 73", pfcp.SessionModificationRequestType, func(pfcp.Message) pfcp.Message {
			return &pfcp.SessionModificationResponse{Cause: pfcp.CauseRuleFailure}
		}},
		{"no usage report", pfcp.SessionDeletionRequestType, func(pfcp.Message) pfcp.Message {
			return &pfcp.SessionDeletionResponse{Cause: pfcp.CauseAccepted}
		}},
		{"no F-TEID", pfcp.SessionEstablishmentRequestType, func(m pfcp.Message) pfcp.Message {
			m.(*pfcp.SessionEstablishmentResponse).Created = nil
			return m
		}},
		{"the F-TEID is another", pfcp.SessionEstablishmentRequestType, func(m pfcp.Message) pfcp.Message {
			m.(*pfcp.SessionEstablishmentResponse).Created[0].LocalFTEID.TEID = 7
			return m
		}},
		{"the UP SEID is another", pfcp.SessionEstablishmentRequestType, func(m pfcp.Message) pfcp.Message {
			m.(*pfcp.SessionEstablishmentResponse).UP.SEID = 7
			return m
		}},
		{"not answered", pfcp.SessionModificationRequestType, func(pfcp.Message) pfcp.Message { return nil }},
	} {
		t.Run(test.want, func(t *testing.T) {
			t.Parallel()
			up := smftest.Start(t)
			up.Change(func(h pfcp.Header, m pfcp.Message) pfcp.Message {
				if h.Type == test.of {
					return test.bad(m)
				}
				return m
			})
			// no session goes before all have come: that two are one is seen while both live
			up.Lose(func(h pfcp.Header) bool {
				return (h.Type == pfcp.SessionModificationRequestType || h.Type == pfcp.SessionDeletionRequestType) &&
					up.Sessions() < 3
			})
			opt := options(up)
			opt.Seconds, opt.Sessions, opt.T1 = 0, 3, 30*time.Millisecond
			if test.want == "not answered" {
				opt.N1 = 1
			}
			r, err := Run(t.Context(), opt)
			if err != nil && !strings.Contains(err.Error(), "in time") {
				t.Fatal(err)
			}
			if v := r.Verdict(); v == nil || !strings.Contains(v.Error(), test.want) {
				t.Fatalf("verdict %v", v)
			}
		})
	}
}

// A patched template is the message that encoding the values would give.
func TestTemplates(t *testing.T) {
	opt := options(smftest.Start(t))
	opt.Node = pfcp.NodeID{FQDN: "load.test"}
	tmpl, err := newTemplates(&opt, netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	v := values{seid: 0, cp: 77, ue: [4]byte{10, 45, 1, 2}, teid: 0x1234}
	for kind := range kinds {
		b := tmpl[kind].fill(nil, 99, &v)
		h, m, err := pfcp.Decode(b)
		if err != nil || h.Sequence != 99 || h.Type != requestTypes[kind] {
			t.Fatalf("%v: %+v, %v", kind, h, err)
		}
		again, err := pfcp.Encode(h, m)
		if err != nil || !bytes.Equal(b, again) {
			t.Fatalf("%v: encoded again it is\n%x, not\n%x (%v)", kind, again, b, err)
		}
		if e, ok := m.(*pfcp.SessionEstablishmentRequest); ok {
			ue := netip.AddrFrom4(v.ue)
			if e.APN != "core" || e.CP.SEID != 77 ||
				e.PDR[0].PDI.UEIP[0].IPv4 != ue || e.PDR[1].PDI.UEIP[0].IPv4 != ue ||
				e.FAR[1].Forwarding.OuterHeader.TEID != v.teid || len(e.PDR) != 2 || len(e.FAR) != 2 ||
				len(e.QER) != 1 || len(e.URR) != 1 {
				t.Fatalf("%+v", e)
			}
		}
	}
}

// The quick parser sees what the decoder sees.
func TestAnswer(t *testing.T) {
	m := &pfcp.SessionEstablishmentResponse{
		Node: pfcp.NodeID{FQDN: "upf"}, Cause: pfcp.CauseAccepted,
		UP:      pfcp.FSEID{SEID: 5, IPv4: netip.MustParseAddr("192.0.2.1")},
		Created: []pfcp.CreatedPDR{{ID: 1, LocalFTEID: &pfcp.FTEID{TEID: 6, IPv4: netip.MustParseAddr("192.0.2.2")}}},
	}
	b, err := pfcp.Encode(pfcp.Header{SEID: 3, Sequence: 4}, m)
	if err != nil {
		t.Fatal(err)
	}
	h, err := pfcp.DecodeHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := a.parse(h, b); err != nil {
		t.Fatal(err)
	}
	if a.seid != 5 || a.teid != 6 || !a.node || a.cause != pfcp.CauseAccepted || a.check(establishment, 3) != "" ||
		a.check(establishment, 4) == "" {
		t.Fatalf("%+v", a)
	}
	// any cut is either an error or an answer that lacks something; never a panic
	for n := headerSize; n < len(b); n++ {
		var a answer
		if a.parse(h, b[:n]) == nil && a.check(establishment, 3) == "" {
			t.Fatalf("accepted the first %d of %d bytes", n, len(b))
		}
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Microsecond)
	}
	h.add(time.Hour)
	l := h.latency()
	near := func(have, want float64) bool { return have >= want && have <= want*1.03 }
	if !near(float64(l.P50), 501) || !near(float64(l.P90), 901) || !near(float64(l.P99), 991) || l.Max != 3.6e9 {
		t.Fatalf("%+v", l)
	}
	none, err := json.Marshal((&histogram{}).latency())
	if want := `{"count":0,"p50_us":null,"p90_us":null,"p99_us":null,"max_us":null}`; err != nil ||
		string(none) != want {
		t.Errorf("of nothing: %s, %v", none, err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(make([]byte, headerSize))
	f.Fuzz(func(_ *testing.T, b []byte) {
		if h, err := pfcp.DecodeHeader(b); err == nil && h.HasSEID {
			var a answer
			a.parse(h, b)
		}
	})
}

// The load's own cost of one session: three requests filled in, three answers checked; no socket.
func BenchmarkSession(b *testing.B) {
	opt := Options{
		Access: "access", Core: "core", FirstUE: netip.MustParseAddr("10.45.0.1"),
		AccessPeer: netip.MustParseAddr("192.0.2.9"),
		Node:       pfcp.NodeID{FQDN: "load.test"}, Sessions: 1, Window: 10, ModifyRatio: 1, T1: time.Hour,
	}
	tmpl, err := newTemplates(&opt, netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		b.Fatal(err)
	}
	r := newRun(opt, nil, tmpl)
	encode := func(m pfcp.Message) []byte {
		out, err := pfcp.Encode(pfcp.Header{SEID: r.cp(0)}, m)
		if err != nil {
			b.Fatal(err)
		}
		return out
	}
	at := time.Unix(1e9, 0)
	answers := [kinds][]byte{
		encode(&pfcp.SessionEstablishmentResponse{
			Node: pfcp.NodeID{FQDN: "upf"}, Cause: pfcp.CauseAccepted,
			UP: pfcp.FSEID{SEID: 5, IPv4: netip.MustParseAddr("192.0.2.1")},
			Created: []pfcp.CreatedPDR{{ID: 1, LocalFTEID: &pfcp.FTEID{TEID: 6,
				IPv4: netip.MustParseAddr("192.0.2.2")}}},
		}),
		encode(&pfcp.SessionModificationResponse{Cause: pfcp.CauseAccepted}),
		encode(&pfcp.SessionDeletionResponse{Cause: pfcp.CauseAccepted, Usage: []pfcp.UsageReport{
			{URR: 1, Trigger: 1 << 11, Start: at, End: at, Volume: &[3]uint64{1, 1, 0}},
		}}),
	}
	buffer := make([]byte, 0, 2048)
	for b.Loop() {
		slot := r.unused[len(r.unused)-1]
		r.unused = r.unused[:len(r.unused)-1]
		buffer = r.begin(buffer, establishment, slot)
		for kind := range kinds {
			if kind == deletion {
				r.oldest = r.oldest[1:]
				buffer = r.begin(buffer, deletion, slot)
			}
			in := answers[kind]
			binary.BigEndian.PutUint64(in[atSEID:], r.cp(slot))
			binary.BigEndian.PutUint32(in[atSequence:], r.sequence<<8)
			h, _ := pfcp.DecodeHeader(in)
			var a answer
			buffer = r.answered(buffer, h, &a, a.parse(h, in))
		}
	}
	if len(r.result.Wrong) > 0 {
		b.Fatal(r.result.Wrong)
	}
}

// A user plane sends its requests to the port of PFCP (TS 29.244 §6.3), not to where ours came from: heartbeats are
// answered there while sessions are held.
func TestRunHeartbeats(t *testing.T) {
	up := smftest.Start(t)
	ctx, stop := context.WithCancel(t.Context())
	opt := options(up)
	opt.Local = netip.MustParseAddrPort("127.77.88.99:0") // in use by no other test
	opt.Seconds, opt.Hold, opt.ModifyRatio = 0, time.Hour, 0
	done := make(chan error, 1)
	go func() {
		_, err := Run(ctx, opt)
		done <- err
	}()
	testkit.Until(t, "sessions", func() bool { return up.Sessions() == opt.Sessions })
	to := netip.AddrPortFrom(opt.Local.Addr(), pfcp.Port)
	if _, ok := up.AskAt(to, 0, &pfcp.HeartbeatRequest{Recovery: time.Unix(1e9, 0)}).(*pfcp.HeartbeatResponse); !ok {
		t.Error("no answer to a heartbeat")
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Where another process has the port of PFCP, the run says so, and what does not reach it.
func TestRunSaysThatThePortIsTaken(t *testing.T) {
	said := ""
	for _, free := range []bool{true, false} {
		opt := options(smftest.Start(t))                      // each: sequence numbers begin again
		opt.Local = netip.MustParseAddrPort("127.77.88.98:0") // in use by no other test
		opt.Warn = func(text string) { said += text }
		if !free {
			at := net.UDPAddrFromAddrPort(netip.AddrPortFrom(opt.Local.Addr(), pfcp.Port))
			other, err := net.ListenUDP("udp", at)
			testkit.Must(t, err)
			defer other.Close()
		}
		r, err := Run(t.Context(), opt)
		testkit.Must(t, errors.Join(err, r.Verdict()))
		testkit.Equal(t, free, said == "", "free")
	}
	for _, word := range []string{"127.77.88.98:8805", "address already in use", "no heartbeat", "--local"} {
		testkit.ErrorIf(t, !strings.Contains(said, word), "no %q in: %s", word, said)
	}
}

// Nothing is held when all was refused: the run ends, and says where the reason is.
func TestRunAllRefused(t *testing.T) {
	up := smftest.Start(t)
	up.Change(func(h pfcp.Header, m pfcp.Message) pfcp.Message {
		if h.Type == pfcp.SessionEstablishmentRequestType {
			return &pfcp.SessionEstablishmentResponse{Node: pfcp.NodeID{FQDN: "x"}, Cause: pfcp.CauseRuleFailure}
		}
		return m
	})
	opt := options(up)
	opt.Seconds, opt.Hold = 0, 1000*time.Hour
	r, err := Run(t.Context(), opt)
	if err != nil || r.Established != 50 {
		t.Fatalf("%+v, %v", r, err)
	}
	testkit.Refused(t, r.Verdict(), "`isthmus show n4` says why")
}

// Sessions are held for the time that was asked for.
func TestRunHold(t *testing.T) {
	up := smftest.Start(t)
	opt := options(up)
	opt.Seconds, opt.Hold, opt.ModifyRatio = 0, 300*time.Millisecond, 0
	began := time.Now()
	r, err := Run(t.Context(), opt)
	if err != nil || r.Verdict() != nil || r.Deleted != 50 || time.Since(began) < opt.Hold {
		t.Fatalf("%+v, %v", r, err)
	}
}
