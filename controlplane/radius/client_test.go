// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

func TestExchange(t *testing.T) {
	var seen atomic.Pointer[Packet]
	r := respond(t, func(p *Packet, reply func(*Packet)) {
		seen.Store(p)
		a := &Packet{Code: AccessAccept}
		a.Text(ReplyMessage, "welcome")
		a.Text(CiscoAVPair, "subscriber:profile=gold")
		reply(a)
	})
	c := clientOf(t, nil, r)
	got := ask(t, c, request())
	testkit.Must(t, got.err)
	testkit.Equal(t, got.p.Code, AccessAccept, "code")
	testkit.Equal(t, string(got.p.Get(CiscoAVPair)), "subscriber:profile=gold", "AVPair")
	p := seen.Load()
	testkit.Equal(t, p.Attributes[0].Type, MessageAuthenticator, "first attribute")
	hidden := p.Get(UserPassword)
	testkit.Equal(t, len(hidden), 16, "hidden password's length")
	testkit.ErrorIf(t, bytes.Contains(hidden, []byte("secret")), "the password was sent as it is")
	testkit.Equal(t, string(bytes.TrimRight(Hide(hidden, []byte(secret), &p.Authenticator), "\x00")), "secret word",
		"one block hides and shows alike")
	s := c.State()[0]
	testkit.Equal(t, s.Counters.Accepts, 1, "accepts")
	testkit.Equal(t, s.Counters.Outstanding, 0, "outstanding")
	sum := uint64(0)
	for _, n := range s.RTT.Counts {
		sum += n
	}
	testkit.Equal(t, sum, 1, "round trips")
}

// What an answer must be (rows B12 and B14): each wrong one is dropped and counted by its name, and the right one
// behind it is accepted.
func TestAnswersDropped(t *testing.T) {
	sign := func(out, p *Packet, key string) []byte {
		out.ID = p.ID
		b, _ := out.Encode(nil, []byte(key), &p.Authenticator)
		return b
	}
	resealed := func(b []byte, p *Packet) []byte { // with a right Response Authenticator for any content
		copy(b[4:], p.Authenticator[:])
		a := seal(b, []byte(secret))
		copy(b[4:], a[:])
		return b
	}
	rows := []struct {
		name  string
		wrong func(p *Packet) []byte
		count func(c *Counters) uint64
	}{
		{"other secret", func(p *Packet) []byte { return sign(&Packet{Code: AccessAccept}, p, "wrong") },
			func(c *Counters) uint64 { return c.WrongAuthenticator }},
		{"unsigned", func(p *Packet) []byte {
			return resealed([]byte{byte(AccessAccept), p.ID, 0, 20, 19: 0}, p)
		}, func(c *Counters) uint64 { return c.Unsigned }},
		{"wrong signature", func(p *Packet) []byte {
			b := sign(&Packet{Code: AccessAccept}, p, secret)
			b[25] ^= 1
			return resealed(b, p)
		}, func(c *Counters) uint64 { return c.WrongSignature }},
		{"signature of wrong length", func(p *Packet) []byte {
			return resealed([]byte{byte(AccessAccept), p.ID, 0, 24, 20: 80, 21: 4, 23: 0}, p)
		}, func(c *Counters) uint64 { return c.WrongSignature }},
		{"signature not first", func(p *Packet) []byte { return signedLate(p) },
			func(c *Counters) uint64 { return c.SignatureLate }},
		{"other identifier", func(p *Packet) []byte {
			b := sign(&Packet{Code: AccessAccept}, p, secret)
			b[1]++
			return b
		}, func(c *Counters) uint64 { return c.UnknownID }},
		{"code of accounting", func(p *Packet) []byte {
			return sign(&Packet{Code: AccountingResponse}, p,
				secret)
		},
			func(c *Counters) uint64 { return c.UnexpectedCode }},
		{"length beyond the datagram", func(p *Packet) []byte {
			b := sign(&Packet{Code: AccessAccept}, p, secret)
			b[3]++
			return b
		}, func(c *Counters) uint64 { return c.Malformed }},
		{"nothing", func(*Packet) []byte { return []byte{2} }, func(c *Counters) uint64 { return c.Malformed }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			tries := atomic.Int32{}
			r := respondRaw(t, func(p *Packet, from netip.AddrPort, conn *net.UDPConn) {
				if tries.Add(1) == 1 {
					conn.WriteToUDPAddrPort(row.wrong(p), from)
					return
				}
				conn.WriteToUDPAddrPort(sign(&Packet{Code: AccessAccept}, p, secret), from)
			})
			patient := func(_ int, s *ServerConfig) { s.Timeout, s.Tries = 200*time.Millisecond, 4 }
			c := clientOf(t, patient, r)
			testkit.Must(t, ask(t, c, request()).err)
			counters := c.State()[0].Counters
			testkit.Equal(t, row.count(&counters), 1, "counted")
			testkit.Equal(t, counters.Accepts, 1, "accepts")
			testkit.ErrorIf(t, counters.Retransmitted == 0, "not sent again")
		})
	}
}

// signedLate is an accept whose right Message-Authenticator comes second.
func signedLate(p *Packet) []byte {
	out := &Packet{Code: AccessAccept, ID: p.ID}
	out.Text(ReplyMessage, "x")
	b, _ := out.Encode(nil, []byte(secret), &p.Authenticator)
	swapped := append([]byte(nil), b[:20]...)
	swapped = append(append(swapped, b[38:]...), b[20:38]...)
	copy(swapped[4:], p.Authenticator[:])
	at := len(swapped) - 16
	clear(swapped[at:])
	copy(swapped[at:], hmacOf(swapped))
	a := seal(swapped, []byte(secret))
	copy(swapped[4:], a[:])
	return swapped
}

// The opt-outs of a server.
func TestPolicies(t *testing.T) {
	for _, row := range []struct {
		policy string
		signed bool
		ok     bool
	}{{"required", false, false}, {"anywhere", false, false}, {"optional", false, true},
		{"required", true, false}, {"anywhere", true, true}, {"optional", true, true}} {
		r := respondRaw(t, func(p *Packet, from netip.AddrPort, conn *net.UDPConn) {
			b := signedLate(p)
			if !row.signed {
				b = []byte{byte(AccessAccept), p.ID, 0, 20, 19: 0}
				copy(b[4:], p.Authenticator[:])
				a := seal(b, []byte(secret))
				copy(b[4:], a[:])
			}
			conn.WriteToUDPAddrPort(b, from)
		})
		policy := func(_ int, s *ServerConfig) { s.Policy, s.Timeout = row.policy, 5*time.Millisecond }
		c := clientOf(t, policy, r)
		err := ask(t, c, request()).err
		testkit.Equal(t, err == nil, row.ok, "policy %s, signed %t: %v", row.policy, row.signed, err)
	}
}

// An answer from another address does not count (row B14).
func TestWrongAddress(t *testing.T) {
	other, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)})
	testkit.Must(t, err)
	defer other.Close()
	r := respondRaw(t, func(p *Packet, from netip.AddrPort, _ *net.UDPConn) {
		out := &Packet{Code: AccessAccept, ID: p.ID}
		b, _ := out.Encode(nil, []byte(secret), &p.Authenticator)
		other.WriteToUDPAddrPort(b, from)
	})
	c := clientOf(t, nil, r)
	testkit.ErrorIf(t, !errors.Is(ask(t, c, request()).err, ErrAway), "taken")
	testkit.Until(t, "both were counted", func() bool { return c.State()[0].Counters.Dropped()["source"] == 2 })
}

// A silent server: its requests go to the next one, pending ones too, and new ones do not wait for it.
func TestFailover(t *testing.T) {
	asked := atomic.Int32{}
	first := respond(t, func(p *Packet, _ func(*Packet)) { asked.Add(1) })
	second := respond(t, accept)
	// The second always answers, however late on a busy machine.
	c := clientOf(t, func(i int, s *ServerConfig) {
		s.Timeout, s.Tries = []time.Duration{200 * time.Millisecond, time.Minute}[i], uint8(1+4*i)
	}, first, second)
	var wg sync.WaitGroup
	for range 100 {
		wg.Add(1)
		c.Exchange(request(), func(p *Packet, err error) {
			testkit.ErrorIf(t, err != nil, "%v", err)
			wg.Done()
		})
	}
	wg.Wait()
	s := c.State()
	testkit.ErrorIf(t, s[0].Alive, "the silent server is alive")
	testkit.Equal(t, s[0].Counters.Deaths, 1, "deaths")
	testkit.Equal(t, s[1].Counters.Accepts, 100, "accepts of the second")
	testkit.Equal(t, s[0].Counters.Outstanding, 0, "outstanding")
	before := asked.Load()
	testkit.Must(t, ask(t, c, request()).err)
	testkit.Equal(t, asked.Load(), before, "packets to the dead server")
}

// All silent: bounded, and over in words; a probe brings the server back.
func TestAllSilentAndBack(t *testing.T) {
	up := atomic.Bool{}
	r := respond(t, func(p *Packet, reply func(*Packet)) {
		if up.Load() {
			accept(p, reply)
		}
	})
	back := make(chan bool, 10)
	one := serverAt("a", r.address, 3*time.Second)
	one.Probe = 5 * time.Millisecond
	c, err := NewClient([]ServerConfig{one}, func(_ string, is News) { back <- is.Alive })
	testkit.Must(t, err)
	defer c.Close()
	results := make(chan error, 300)
	for range 300 { // 256 identifiers and 10 places in the queue
		c.Exchange(request(), func(_ *Packet, err error) { results <- err })
	}
	busy, away := 0, 0
	for range 300 {
		switch err := testkit.Receive(t, results); {
		case errors.Is(err, ErrBusy):
			busy++
		case errors.Is(err, ErrAway):
			away++
		default:
			t.Fatal(err)
		}
	}
	testkit.ErrorIf(t, busy != 34 || away != 266, "%d busy, %d away", busy, away)
	testkit.ErrorIf(t, !errors.Is(ask(t, c, request()).err, ErrAway), "asked a dead server")
	up.Store(true)
	testkit.ErrorIf(t, testkit.Receive(t, back), "back before it was gone")
	testkit.ErrorIf(t, !testkit.Receive(t, back), "not back")
	testkit.Must(t, ask(t, c, request()).err)
	testkit.ErrorIf(t, c.State()[0].Counters.ProbeAnswers == 0, "no probe was answered")
}

// An answer after the time-out is counted as late and changes nothing.
func TestLate(t *testing.T) {
	hold := make(chan func(), 10)
	r := respond(t, func(p *Packet, reply func(*Packet)) { hold <- func() { accept(p, reply) } })
	c := clientOf(t, func(_ int, s *ServerConfig) { s.Tries = 1 }, r)
	testkit.ErrorIf(t, !errors.Is(ask(t, c, request()).err, ErrAway), "answered")
	testkit.Receive(t, hold)()
	testkit.Until(t, "late", func() bool { return c.State()[0].Counters.Dropped()["late"] == 1 })
}

// Accounting sends its age with each try, under another identifier; an answer to any of them is valid.
func TestDelayGrows(t *testing.T) {
	var mu sync.Mutex
	var delays []uint32
	var ids []uint8
	r := respond(t, func(p *Packet, reply func(*Packet)) {
		mu.Lock()
		defer mu.Unlock()
		for i := range p.Attributes {
			if p.Attributes[i].Type == AcctDelayTime {
				v, _ := p.Attributes[i].Uint32()
				delays = append(delays, v)
			}
		}
		ids = append(ids, p.ID)
		if len(ids) == 2 {
			accept(p, reply)
		}
	})
	c := clientOf(t, func(_ int, s *ServerConfig) { s.Timeout = 1300 * time.Millisecond }, r) // less a tenth at most
	got := ask(t, c, &Packet{Code: AccountingRequest, Since: time.Now().Add(-time.Minute)})
	testkit.Must(t, got.err)
	mu.Lock()
	defer mu.Unlock()
	testkit.ErrorIf(t, len(delays) != 2 || delays[0] != 60 || delays[1] < 61, "delays %v", delays)
	testkit.ErrorIf(t, len(ids) != 2 || ids[0] == ids[1], "identifiers %v", ids)
	testkit.Equal(t, c.State()[0].Counters.Outstanding, 0, "outstanding")
}

// An authentic answer that is malformed ends that request, and its server stays alive (rows B13, B16).
func TestMalformedAnswer(t *testing.T) {
	r := respond(t, func(p *Packet, reply func(*Packet)) {
		a := &Packet{Code: AccessAccept}
		a.Add(FramedIPv6Address, make([]byte, 32))
		reply(a)
	})
	c := clientOf(t, nil, r)
	got := ask(t, c, request())
	testkit.ErrorIf(t, !errors.Is(got.err, ErrMalformed), "%v", got.err)
	testkit.Refused(t, got.err, "Framed-IPv6-Address of 32 octets")
	testkit.ErrorIf(t, !c.Alive(), "the server is dead")
}

// Servers of one priority are asked in turn.
func TestInTurn(t *testing.T) {
	a, b := respond(t, accept), respond(t, accept)
	c := clientOf(t, func(_ int, s *ServerConfig) { s.Priority = 1 }, a, b)
	for range 10 {
		testkit.Must(t, ask(t, c, request()).err)
	}
	var counts []uint64
	for _, s := range c.State() {
		counts = append(counts, s.Counters.Accepts)
	}
	testkit.ErrorIf(t, !slices.Equal(counts, []uint64{5, 5}), "%v", counts)
}

func TestImpossibleRequest(t *testing.T) {
	c := clientOf(t, nil, respond(t, accept))
	p := &Packet{Code: AccessRequest}
	p.Text(UserName, string(make([]byte, 254)))
	testkit.Refused(t, ask(t, c, p).err, "User-Name of 254 octets")
	p = &Packet{Code: AccessRequest}
	for range 20 {
		p.Text(ReplyMessage, string(make([]byte, 253)))
	}
	testkit.Refused(t, ask(t, c, p).err, "at most 4096")
	testkit.Equal(t, c.State()[0].Counters.Outstanding, 0, "outstanding")
}

func TestClosed(t *testing.T) {
	c := clientOf(t, func(_ int, s *ServerConfig) { s.Timeout = time.Hour }, respond(t, silent))
	ch := make(chan error, 1)
	c.Exchange(request(), func(_ *Packet, err error) { ch <- err })
	c.Close()
	testkit.Equal(t, testkit.Receive(t, ch), ErrClosed, "under way")
	testkit.Equal(t, ask(t, c, request()).err, ErrClosed, "after")
}

func BenchmarkExchange(b *testing.B) {
	r := respond(b, accept)
	c := clientOf(b, func(_ int, s *ServerConfig) { s.Timeout, s.Sockets = 5*time.Second, 8 }, r)
	window := make(chan struct{}, 512)
	b.ReportAllocs()
	for b.Loop() {
		window <- struct{}{}
		c.Exchange(request(), func(_ *Packet, err error) {
			if err != nil {
				b.Error(err)
			}
			<-window
		})
	}
	for range cap(window) {
		window <- struct{}{}
	}
}
