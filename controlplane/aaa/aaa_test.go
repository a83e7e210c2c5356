// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/radius"
	"isthmus/controlplane/testkit"
)

// answering is a server of one answer, and the configuration of a client of it.
func answering(t testing.TB, answer *radius.Packet, methods string) string {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			p, err := radius.Parse(buffer[:n])
			if err != nil || answer == nil {
				continue
			}
			out := radius.Packet{Code: answer.Code, ID: p.ID, Attributes: answer.Attributes}
			b, _ := out.Encode(nil, []byte(sharedSecret), &p.Authenticator)
			conn.WriteToUDPAddrPort(b, from)
		}
	}()
	return fmt.Sprintf(`radius:
  servers: [{address: 127.0.0.1, port: %d, secret: %s, timeout_ms: 30, tries: 1, use: authentication}]
aaa: {methods: %s, users: [{name: known, password: pw}]}
`, conn.LocalAddr().(*net.UDPAddr).Port, sharedSecret, methods)
}

// Methods are asked in turn: local for its users, RADIUS while a server answers.
func TestMethods(t *testing.T) {
	reject := &radius.Packet{Code: radius.AccessReject}
	for _, row := range []struct {
		name, methods string
		answer        *radius.Packet
		r             *access.Request
		accept        bool
		silent        bool
	}{
		{"known", "[local, radius]", reject, pap("known", "pw"), true, false},
		{"known, wrong", "[local, accept]", reject, pap("known", "x"), false, false},
		{"left to RADIUS", "[local, radius, accept]", reject, pap("other", "x"), false, false},
		{"left to accept", "[local, accept]", reject, pap("other", "x"), true, false},
		{"silent", "[radius]", nil, pap("known", "pw"), false, true},
		{"silent, then local", "[radius, local]", nil, pap("known", "pw"), true, false},
		{"silent, local does not know", "[radius, local]", nil, pap("other", "pw"), false, true},
		{"silent, then accept", "[radius, accept]", nil, pap("other", "pw"), true, false},
		{"challenge", "[radius]", &radius.Packet{Code: radius.AccessChallenge}, pap("known", "pw"), false,
			false},
		{"MS-CHAPv2 without proof", "[radius]", &radius.Packet{Code: radius.AccessAccept}, exampleMSCHAP(t),
			false, false},
	} {
		a := aaaOf(t, answering(t, row.answer, row.methods), Options{})
		v := decide(t, a, row.r)
		testkit.Equal(t, v.Accept, row.accept, "%s: %s, accepted", row.name, v.Why)
		testkit.Equal(t, v.Silent, row.silent, "%s: %s, silent", row.name, v.Why)
		testkit.Equal(t, v.Why != "", !row.accept, "%s: words", row.name)
	}
}

func take(t *testing.T, a *AAA, c *config.Config) {
	t.Helper()
	p, err := a.Prepare(c)
	testkit.Must(t, err)
	p.Take()
}

// A new configuration's servers get the records that wait for the old ones; unchanged servers keep their counters.
func TestReplaceServers(t *testing.T) {
	gone, there := newTaker(t, true), newTaker(t, false)
	parse := func(k *taker) *config.Config {
		c, err := config.Parse("x", []byte("ports: []\n"+k.yaml(100, 100_000)))
		testkit.Must(t, err)
		return c
	}
	a, err := New(parse(gone), Options{})
	testkit.Must(t, err)
	t.Cleanup(func() { a.Close(t.Context()) })
	account(t, a, "s1", Start, Stop)
	testkit.Until(t, "away", func() bool { return a.State().Queue.Away })
	before := a.now.Load().acct
	take(t, a, parse(gone))
	testkit.ErrorIf(t, a.now.Load().acct != before, "the same servers have another client")
	take(t, a, parse(there))
	testkit.Until(t, "sent", func() bool { return a.State().Queue.Sent == 2 })
	got := there.list()
	testkit.ErrorIf(t, len(got) != 2 || got[0] != "s1 start" || got[1] != "s1 stop", "%v", got)
}

// tshark reads what is sent about every kind of subscriber without a remark.
func TestTshark(t *testing.T) {
	a := aaaOf(t, answering(t, nil, "[radius]"), Options{})
	s := a.now.Load()
	line := home()
	line.Kind = access.IPoE4
	six := sample(Interim, "s1")
	six.Addresses.IPv6 = netip.MustParsePrefix("2001:db8::7/128")
	var requests, records [][]byte
	for _, r := range []*access.Request{with(pap("anna", "pw").Credentials), with(byCHAP("anna", "pw").Credentials),
		with(exampleMSCHAP(t).Credentials), line} {
		b, err := s.accessRequest(r, a.UserName(r), "s1").Encode(nil, []byte(sharedSecret), nil)
		testkit.Must(t, err)
		requests = append(requests, b)
	}
	for _, r := range []*Record{sample(On, ""), sample(Start, "s1"), six, sample(Stop, "s1"), sample(Off, "")} {
		one, err := encode(r, s)
		testkit.Must(t, err)
		p, err := one.packet()
		testkit.Must(t, err)
		b, err := p.Encode(nil, []byte(sharedSecret), nil)
		testkit.Must(t, err)
		records = append(records, b)
	}
	for port, messages := range map[uint16][][]byte{1812: requests, 1813: records} {
		for i, layers := range testkit.Dissect(t, port, messages, "-o", "radius.shared_secret:"+sharedSecret) {
			for _, r := range testkit.Remarks("", layers) {
				t.Errorf("port %d, %d: %s", port, i, r)
			}
		}
	}
}

// BenchmarkFreeRADIUS is CHAP by a real server on this machine, 256 at a time: it takes most of the time.
func BenchmarkFreeRADIUS(b *testing.B) {
	f := server(b, users, true)
	a := aaaOf(b, f.yaml(", message_authenticator: anywhere, timeout_ms: 10000"), Options{})
	r := with(byCHAP("anna", "pw").Credentials)
	window := make(chan struct{}, 256)
	for b.Loop() {
		window <- struct{}{}
		a.Authenticate(r, "s", func(v *access.Verdict) {
			if !v.Accept {
				b.Error(v.Why)
			}
			<-window
		})
	}
	for range cap(window) {
		window <- struct{}{}
	}
}
