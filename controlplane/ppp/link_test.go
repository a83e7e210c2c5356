// SPDX-License-Identifier: Apache-2.0

package ppp

import (
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

// Each method of authentication, to addresses at both ends, and the end.
func TestSignIn(t *testing.T) {
	for _, m := range []access.Method{access.None, access.PAP, access.CHAP, access.MSCHAPv2} {
		w := newWorld(uint64(m))
		methods := []access.Method{m}
		if m == access.None {
			methods = nil
		}
		s, c := pair(w, serverConfig(methods...), clientConfig(methods...))
		s.delay = 50 * time.Millisecond
		w.run(t, 20*time.Second)
		testkit.Equal(t, s.network, both, "method %d: families of the server, %s", m, s.ended)
		testkit.Equal(t, c.network, both, "method %d: families of the client, %s", m, c.ended)
		testkit.FatalIf(t, len(s.asked) != 1, "method %d: %d credentials", m, len(s.asked))
		testkit.Equal(t, s.asked[0].Method, m, "method of the credentials")
		testkit.ErrorIf(t, m != access.None && s.asked[0].User != "homer", "user %q", s.asked[0].User)
		got, want := c.Link.Network(), given()
		testkit.Equal(t, got.Local, want.Remote, "the client's address")
		testkit.Equal(t, got.Remote, want.Local, "the server's address")
		testkit.Equal(t, got.DNS, want.DNS, "name servers")
		testkit.Equal(t, got.LocalID, want.RemoteID, "the client's identifier")
		testkit.Equal(t, got.RemoteID, 1, "the server's identifier")
		testkit.Equal(t, s.MTU(), 1492, "MTU")
		testkit.Equal(t, s.Magic(), c.peerMagic, "magic number")
		testkit.ErrorIf(t, s.auth != nil || c.auth != nil, "authentication is kept in memory")

		c.Echo()
		c.Close(access.UserRequest, "hung up")
		w.run(t, w.now+time.Second)
		testkit.Equal(t, c.ended, "hung up", "the client's end")
		testkit.Equal(t, s.ended, "the peer ended the link", "the server's end")
		testkit.Equal(t, s.cause, access.UserRequest, "cause")
	}
}

// A peer that negotiates addresses while its line is being authorised need not repeat; a peer that must authenticate
// waits.
func TestEarly(t *testing.T) {
	for _, m := range []access.Method{access.None, access.PAP} {
		w := newWorld(1)
		var methods []access.Method
		if m != access.None {
			methods = []access.Method{m}
		}
		s := alone(w, methods...)
		s.delay = time.Second
		openLCP(t, s)
		got := s.Receive(IPCP, octets(t, "01 07 000a 0306 0a010203"))
		testkit.Equal(t, got == Taken, m == access.None, "method %d: taken", m)
		w.run(t, w.now+2*time.Second)
		testkit.Equal(t, s.sent(IPCP, configureAck) == 1, m == access.None, "method %d: acknowledged", m)
	}
}

// The server ends the link: the client is notified.
func TestServerEnds(t *testing.T) {
	w := newWorld(1)
	s, c := pair(w, serverConfig(access.PAP), clientConfig(access.PAP))
	w.run(t, 10*time.Second)
	s.Close(access.AdminReset, "cleared")
	w.run(t, w.now+time.Second)
	testkit.Equal(t, s.ended, "cleared", "end")
	testkit.Equal(t, s.cause, access.AdminReset, "cause")
	testkit.Equal(t, c.ended, "the peer ended the link", "the client's end")

	s, c = pair(w, serverConfig(access.PAP), clientConfig(access.PAP))
	w.run(t, w.now+10*time.Second)
	s.Abort()
	w.run(t, w.now+time.Second)
	testkit.Equal(t, c.ended, "the peer ended the link", "the client's end after Abort")
	testkit.Equal(t, s.ended, "", "who aborts is not told")
}

// Refusals, as seen by each end.
func TestRefused(t *testing.T) {
	for _, m := range []access.Method{access.PAP, access.CHAP, access.MSCHAPv2} {
		w := newWorld(uint64(m))
		s, c := pair(w, serverConfig(m), clientConfig(m))
		s.verdict = Result{Why: "no such user", Message: "go away"}
		w.run(t, time.Minute)
		testkit.Equal(t, s.cause, access.UserError, "cause")
		testkit.ErrorIf(t, !strings.Contains(c.ended, "refused"), "method %d: the client ends by %q", m,
			c.ended)
		testkit.ErrorIf(t, s.network != access.Families{}, "method %d: families are open", m)
	}
}

// No decision is possible: the link ends without a refusal.
func TestSilent(t *testing.T) {
	w := newWorld(1)
	s, c := pair(w, serverConfig(access.PAP), clientConfig(access.PAP))
	s.verdict = Result{Silent: true, Why: "no server answers"}
	w.run(t, time.Minute)
	testkit.Equal(t, s.ended, "no server answers", "end")
	testkit.Equal(t, s.cause, access.ServiceUnavailable, "cause")
	testkit.Equal(t, c.ended, "the peer ended the link", "the client's end")
}

// The methods of both ends meet, or the link ends.
func TestMethods(t *testing.T) {
	p, c5, m2 := access.PAP, access.CHAP, access.MSCHAPv2
	for _, r := range []struct {
		server, client []access.Method
		want           access.Method // None: no agreement
	}{
		{[]access.Method{c5, m2, p}, []access.Method{p}, p}, // peers that know PAP only
		{[]access.Method{c5, m2, p}, []access.Method{m2}, m2},
		{[]access.Method{c5, m2, p}, []access.Method{p, c5}, c5},
		{[]access.Method{m2, c5}, []access.Method{p}, access.None},
		{[]access.Method{c5}, nil, access.None},
		{[]access.Method{p}, []access.Method{c5}, access.None},
	} {
		w := newWorld(1)
		s, c := pair(w, serverConfig(r.server...), clientConfig(r.client...))
		w.run(t, 2*time.Minute)
		if r.want == access.None {
			testkit.ErrorIf(t, s.ended == "" || c.ended == "" || len(s.asked) > 0, "%v with %v: %q, %q",
				r.server, r.client, s.ended, c.ended)
			continue
		}
		testkit.FatalIf(t, len(s.asked) != 1, "%v with %v: %s", r.server, r.client, s.ended)
		testkit.Equal(t, s.asked[0].Method, r.want, "%v with %v", r.server, r.client)
		testkit.Equal(t, s.network, both, "families")
	}
}

// Over a path that loses, repeats and delays packets, both ends meet, or both give up. They never go on without end,
// and one end is never open for long without the other.
func TestLossyWay(t *testing.T) {
	methods := []access.Method{access.None, access.PAP, access.CHAP, access.MSCHAPv2}
	met := 0
	const rounds = 1500
	for seed := range uint64(rounds) {
		w := newWorld(seed)
		w.loss = 0.05 * float64(seed%8)
		m := methods[seed%4 : seed%4+1]
		if m[0] == access.None {
			m = nil
		}
		s, c := pair(w, serverConfig(m...), clientConfig(m...))
		s.delay = time.Duration(w.random.IntN(4000)) * time.Millisecond
		w.run(t, 5*time.Minute)
		// Later losses concern one end alone; keep-alive is the owner's.
		up := s.ended == "" && s.network.V4 && c.network.V4
		if up {
			met++
			testkit.Equal(t, c.Link.Network().Local, given().Remote, "seed %d: address", seed)
		}
		testkit.ErrorIf(t, !up && s.ended == "" && len(w.queue) == 0 && !s.network.V4 && !s.network.V6,
			"seed %d: the server waits for nothing", seed)
		testkit.ErrorIf(t, len(w.log) > 600, "seed %d: %d packets", seed, len(w.log))
		testkit.ErrorIf(t, w.loss == 0 && (!up || len(w.log) > 30), "seed %d: without loss: %q, %d packets",
			seed, s.ended, len(w.log))
	}
	testkit.ErrorIf(t, met < rounds*85/100, "only %d of %d meet", met, rounds)
	t.Logf("%d of %d pairs met", met, rounds)
}

// Answers lost after the peer is content do not restart the negotiation.
func TestLostAck(t *testing.T) {
	for _, protocol := range []uint16{LCP, IPCP, IPv6CP} {
		w := newWorld(3)
		s, c := pair(w, serverConfig(access.CHAP), clientConfig(access.CHAP))
		lost := false
		s.mangle = func(p uint16, b []byte) []byte {
			if p == protocol && b[0] == configureAck && !lost {
				lost = true
				return nil
			}
			return b
		}
		w.run(t, 30*time.Second)
		testkit.Equal(t, s.network, both, "%04x: %s", protocol, s.ended)
		testkit.Equal(t, c.network, both, "%04x: %s", protocol, c.ended)
		testkit.Equal(t, len(s.asked), 1, "%04x: proofs", protocol)
	}
}

// A link continues elsewhere by its state, and the peer gets no packet.
func TestResume(t *testing.T) {
	w := newWorld(1)
	s, c := pair(w, serverConfig(access.CHAP), clientConfig(access.CHAP))
	w.run(t, 10*time.Second)
	config := serverConfig(access.CHAP)
	heir := newEnd(w, "heir")
	heir.peer, c.peer = c, heir
	said := len(w.log)
	heir.Resume(heir, heir.with(config), s.State(), given())
	w.run(t, w.now+time.Minute)
	testkit.Equal(t, len(w.log), said, "packets after the restart")
	c.Echo()
	w.run(t, w.now+time.Second)
	testkit.Equal(t, len(w.log), said+2, "echo and reply")
	testkit.Equal(t, heir.State(), s.State(), "state")
	c.control(nIPCP).run(down, nil, nil) // it negotiates IPCP again
	c.control(nIPCP).run(up, nil, nil)
	w.run(t, w.now+10*time.Second)
	testkit.ErrorIf(t, heir.layers[nIPCP].state != opened || c.layers[nIPCP].state != opened,
		"IPCP does not open again")
	c.Close(access.UserRequest, "")
	w.run(t, w.now+10*time.Second)
	testkit.Equal(t, heir.ended, "the peer ended the link", "end")
}

func (e *end) sent(protocol uint16, code uint8) int {
	n := 0
	for _, line := range e.w.log {
		f := strings.Fields(line)
		if f[1] == e.name && f[2] == hex4(protocol) && strings.HasPrefix(f[3], hex2(code)) {
			n++
		}
	}
	return n
}

func hex4(v uint16) string { return hex2(uint8(v>>8)) + hex2(uint8(v)) }
func hex2(v uint8) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[v>>4], digits[v&15]})
}
