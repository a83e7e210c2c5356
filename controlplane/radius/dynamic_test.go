// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

// changer is a server of changes on loopback, and a socket of a client.
type changer struct {
	*Dynamic
	t     testing.TB
	conn  *net.UDPConn
	to    netip.AddrPort
	asked atomic.Int32
	clock atomic.Int64 // seconds that have passed for it
	put   atomic.Int64 // seconds that its clock was put forward since
	why   chan string  // of each refusal
}

func from(prefix, secret, policy string) config.CoAClient {
	return config.CoAClient{Address: config.Prefix{Prefix: netip.MustParsePrefix(prefix)},
		Secret: config.Secret(secret), Policy: policy}
}

func newChanger(t testing.TB, c config.CoA, handle func(p *Packet, answer Answer)) *changer {
	t.Helper()
	d := &changer{t: t, why: make(chan string, 64)}
	d.Dynamic = NewDynamic(func(p *Packet, answer Answer) {
		d.asked.Add(1)
		handle(p, answer)
	}, func(r *Refused) { d.why <- r.Why })
	up := d.up
	d.up = func() time.Duration { return up() + time.Duration(d.clock.Load())*time.Second }
	d.now = func() time.Time {
		return time.Now().Add(time.Duration(d.clock.Load()+d.put.Load()) * time.Second)
	}
	if c.Clients == nil {
		c.Clients = []config.CoAClient{from("127.0.0.1/32", secret, "optional")}
	}
	if c.ReplayWindow == 0 {
		c.ReplayWindow, c.Rate = 300*time.Second, 1000
	}
	bound, err := d.Bind([]netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")})
	testkit.Must(t, err)
	d.Use(c, bound)
	t.Cleanup(d.Close)
	d.to = d.Addresses()[0]
	d.conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	t.Cleanup(func() { d.conn.Close() })
	return d
}

func change(id uint8, at time.Time, key string) []byte {
	p := &Packet{Code: CoARequest, ID: id}
	p.Text(AcctSessionId, "s1")
	if !at.IsZero() {
		p.Integer(EventTimestamp, uint32(at.Unix()))
	}
	p.Text(ProxyState, "one")
	p.Text(ProxyState, "two")
	b, _ := p.Encode(nil, []byte(key), nil)
	return b
}

// ask sends octets and waits for an answer, which it checks.
func (d *changer) ask(b []byte) *Packet {
	d.t.Helper()
	d.send(b)
	buffer := make([]byte, maxPacket)
	testkit.Must(d.t, d.conn.SetReadDeadline(time.Now().Add(testkit.Limit)))
	n, err := d.conn.Read(buffer)
	testkit.Must(d.t, err)
	request := [16]byte(b[4:20])
	testkit.Must(d.t, Verify(buffer[:n], []byte(secret), &request, First))
	p, err := Parse(buffer[:n])
	testkit.Must(d.t, err)
	return p
}

func (d *changer) send(b []byte) {
	_, err := d.conn.WriteToUDPAddrPort(b, d.to)
	testkit.Must(d.t, err)
}

func causeOf(p *Packet) Cause {
	a := Attribute{ErrorCause, p.Get(ErrorCause)}
	v, _ := a.Uint32()
	return Cause(v)
}

func obey(_ *Packet, answer Answer) { answer(0, "") }

func TestChangeObeyed(t *testing.T) {
	d := newChanger(t, config.CoA{}, obey)
	p := d.ask(change(1, time.Now(), secret))
	testkit.Equal(t, p.Code, CoAACK, "code")
	var states []string
	for _, a := range p.Attributes {
		if a.Type == ProxyState {
			states = append(states, string(a.Value))
		}
	}
	testkit.ErrorIf(t, len(states) != 2 || states[0] != "one" || states[1] != "two", "Proxy-State %v", states)
	testkit.Equal(t, d.Counters().ACKs, 1, "ACKs")
}

func TestChangeRefused(t *testing.T) {
	d := newChanger(t, config.CoA{}, func(_ *Packet, answer Answer) {
		go answer(SessionNotFound, "")
	})
	p := d.ask(change(1, time.Now(), secret))
	testkit.Equal(t, p.Code, CoANAK, "code")
	testkit.Equal(t, causeOf(p), SessionNotFound, "cause")
	testkit.Equal(t, d.Counters().Causes[SessionNotFound], 1, "counted")
	testkit.Equal(t, <-d.why, "no such session", "why")
}

// The same packet again gets the same answer, without a second effect; much later it gets none (row B15).
func TestChangeReplayed(t *testing.T) {
	d := newChanger(t, config.CoA{}, obey)
	b := change(1, time.Now(), secret)
	d.ask(b)
	d.ask(b)
	testkit.Equal(t, d.asked.Load(), 1, "carried out")
	testkit.Equal(t, d.Counters().Duplicates, 1, "duplicates")
	d.clock.Store(360)
	other := change(2, time.Now(), secret) // a new one of six minutes ago
	d.send(other)
	testkit.Until(t, "replayed", func() bool { return d.Counters().Replayed == 1 })
	d.clock.Store(900)
	d.send(b) // not remembered any more
	testkit.Until(t, "replayed", func() bool { return d.Counters().Replayed == 2 })
	testkit.Equal(t, d.asked.Load(), 1, "carried out")
	testkit.Equal(t, len(d.seen), 0, "remembered")
}

// The same packet from elsewhere counts as the same, and one older than the process may have been carried out before.
func TestChangeFromElsewhere(t *testing.T) {
	d := newChanger(t, config.CoA{ReplayWindow: time.Minute, Rate: 100, Clients: []config.CoAClient{
		from("127.0.0.0/8", secret, "optional")}}, obey)
	b := change(1, time.Now(), secret)
	d.ask(b)
	other, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 3)})
	testkit.Must(t, err)
	defer other.Close()
	_, err = other.WriteToUDPAddrPort(b, d.to)
	testkit.Must(t, err)
	testkit.Until(t, "duplicate", func() bool { return d.Counters().Duplicates == 1 })
	d.send(change(2, time.Now().Add(-30*time.Second), secret))
	testkit.Until(t, "replayed", func() bool { return d.Counters().Replayed == 1 })
	testkit.Equal(t, d.asked.Load(), 1, "carried out")
}

// A clock ahead of ours cannot make a request outlive what is remembered of it.
func TestChangeFromTheFuture(t *testing.T) {
	d := newChanger(t, config.CoA{}, obey)
	b := change(1, time.Now().Add(299*time.Second), secret)
	d.ask(b)
	d.clock.Store(598)
	d.ask(b)
	testkit.Equal(t, d.asked.Load(), 1, "carried out")
}

// A clock set back neither makes requests old nor repeats one.
func TestChangeClockPutBack(t *testing.T) {
	d := newChanger(t, config.CoA{}, obey)
	d.clock.Store(7200)
	d.put.Store(-7200 - 3600) // an hour before what was thought to be the start
	b := change(1, time.Now().Add(-3600*time.Second), secret)
	testkit.Equal(t, d.ask(b).Code, CoAACK, "a request by the right time")
	d.ask(b)
	testkit.Equal(t, d.asked.Load(), 1, "carried out")
	d.put.Store(-7200 - 7200) // theirs is ahead now
	d.send(change(2, time.Now().Add(-3600*time.Second), secret))
	why := <-d.why
	testkit.ErrorIf(t, !strings.HasSuffix(why, "s ahead of our clock: radius.coa.replay_window is 5m0s"), "%s", why)
	testkit.Equal(t, d.Counters().Replayed, 1, "dropped")
}

func TestChangeWithoutTimestamp(t *testing.T) {
	d := newChanger(t, config.CoA{ReplayWindow: time.Minute, Rate: 10, Timestamp: "required"}, obey)
	p := d.ask(change(1, time.Time{}, secret))
	testkit.Equal(t, causeOf(p), MissingAttribute, "cause")
	testkit.Equal(t, <-d.why, "without Event-Timestamp: radius.coa.event_timestamp: optional takes such", "why")
	testkit.Equal(t, d.asked.Load(), 0, "carried out")
}

// A request that is not authentic, or from an unlisted address, gets no answer and is counted.
func TestChangeDropped(t *testing.T) {
	d := newChanger(t, config.CoA{}, obey)
	signed := change(1, time.Now(), secret)
	signed[25] ^= 1 // in Message-Authenticator
	clear(signed[4:20])
	a := seal(signed, []byte(secret))
	copy(signed[4:], a[:])
	access, _ := (&Packet{Code: AccountingRequest}).Encode(nil, []byte(secret), nil)
	cut := change(1, time.Now(), secret)
	for _, row := range []struct {
		name string
		b    []byte
		of   func(c DynamicCounters) uint64
	}{
		{"other secret", change(1, time.Now(), "wrong"),
			func(c DynamicCounters) uint64 { return c.WrongAuthenticator }},
		{"signature", signed, func(c DynamicCounters) uint64 { return c.WrongSignature }},
		{"code", access, func(c DynamicCounters) uint64 { return c.UnexpectedCode }},
		{"cut", cut[:len(cut)-1], func(c DynamicCounters) uint64 { return c.Malformed }},
		{"empty", []byte{}, func(c DynamicCounters) uint64 { return c.Malformed }},
	} {
		before := row.of(d.Counters())
		d.send(row.b)
		testkit.Until(t, row.name, func() bool { return row.of(d.Counters()) == before+1 })
		testkit.ErrorIf(t, <-d.why == "", "%s: dropped in silence", row.name)
	}
	bound, err := d.Bind([]netip.AddrPort{d.to})
	testkit.Must(t, err)
	d.Use(config.CoA{Clients: []config.CoAClient{from("10.0.0.0/8", secret, "optional")}}, bound)
	d.send(change(1, time.Now(), secret))
	testkit.Equal(t, <-d.why, "no client of radius.coa.clients", "why")
	testkit.Equal(t, d.Counters().Unlisted, 1, "unlisted")
	testkit.Equal(t, d.asked.Load(), 0, "carried out")
}

func TestChangeRate(t *testing.T) {
	d := newChanger(t, config.CoA{ReplayWindow: time.Minute, Rate: 3}, obey)
	for i := range 50 {
		d.send(change(uint8(i), time.Now(), secret))
	}
	testkit.Until(t, "all counted", func() bool {
		c := d.Counters()
		return c.RateLimited+c.ACKs == 50
	})
	testkit.ErrorIf(t, d.Counters().RateLimited < 40, "%+v", d.Counters())
}

// A client's longest prefix has its secret; listening elsewhere keeps what was seen.
func TestChangeClients(t *testing.T) {
	d := newChanger(t, config.CoA{ReplayWindow: time.Minute, Rate: 100, Clients: []config.CoAClient{
		from("127.0.0.0/8", "other", "optional"), from("127.0.0.1/32", secret, "required")}}, obey)
	b := change(1, time.Now(), secret)
	d.ask(b)
	bound, err := d.Bind([]netip.AddrPort{d.to})
	testkit.Must(t, err)
	d.Use(d.config, bound)
	d.ask(b)
	testkit.Equal(t, d.asked.Load(), 1, "carried out")
	taken := d.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	_, err = d.Bind([]netip.AddrPort{netip.MustParseAddrPort("127.0.0.2:0"), taken})
	testkit.ErrorIf(t, err == nil, "an address of somebody else")
	d.ask(change(2, time.Now(), secret))
}
