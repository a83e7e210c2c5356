// SPDX-License-Identifier: Apache-2.0

package pppoe_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/testkit"
	"isthmus/lab/dialer"
)

var both = access.Families{V4: true, V6: true}

func homer(m ...access.Method) *dialer.Config { return dialer.NewConfig("homer", "secret", m...) }

func TestSignIn(t *testing.T) {
	for _, m := range []access.Method{access.None, access.PAP, access.CHAP, access.MSCHAPv2} {
		w := newWorld(t, func(c *pppoe.Config) {
			c.PPP.Methods = []access.Method{m}
			if m == access.None {
				c.PPP.Methods = nil
			}
			c.MaxPayload = map[string]uint16{"access": 1500}
			c.Services = []string{"internet", "voice"}
		})
		c := homer(m)
		c.Service, c.MaxPayload = "voice", 1500
		c.Vendor = []byte{1, 3, 'c', 'i', 'd', 2, 3, 'r', 'i', 'd', 0x81, 4, 0, 0, 1, 0, 0x82, 4, 0, 0, 2, 0}
		h := w.homeAt(1, 100, c)
		h.Dial()
		w.run(10 * time.Second)
		testkit.Equal(t, h.open, both, "method %d: the home's families (%s)", m, h.ended)
		testkit.FatalIf(t, len(w.users) != 1, "method %d: %d sessions", m, len(w.users))
		u := w.users[0]
		testkit.Equal(t, u.families, both, "families")
		testkit.Equal(t, u.mtu, 1500, "MTU")
		testkit.Equal(t, u.alive, access.KeepAlive{Magic: u.alive.Magic, Interval: 30 * time.Second, Count: 3},
			"keep-alive")
		testkit.ErrorIf(t, u.alive.Magic == 0, "no magic number")
		testkit.Equal(t, u.request.Line, h.line, "line")
		testkit.Equal(t, u.request.PPPoE, h.ID, "session id")
		testkit.Equal(t, u.request.Service, "voice", "service")
		testkit.Equal(t, string(u.request.Agent.CircuitID)+string(u.request.Agent.RemoteID), "cidrid",
			"ids of the line")
		testkit.Equal(t, binary.BigEndian.Uint32(u.request.Agent.Of(0x82)), 512, "rate of the line")
		testkit.Equal(t, h.Network().Local, u.addresses.IPv4.As4(), "address")
		testkit.Equal(t, h.Network().DNS, [2][4]byte{{9, 9, 9, 9}}, "name servers")

		id := h.ID
		h.HangUp()
		w.run(time.Second)
		testkit.Equal(t, u.cause, access.UserRequest, "cause")
		all, half := w.server.Sessions()
		testkit.Equal(t, all+half, 0, "sessions left")
		h.Dial()
		w.run(10 * time.Second)
		testkit.ErrorIf(t, h.ID == id, "the id is used again at once")
		testkit.Equal(t, h.open, both, "families of the second session")
	}
}

// A home that refuses a family holds no address of it; one transaction permits the rest, and another removes the
// address.
func TestRefusedFamily(t *testing.T) {
	for _, f := range []access.Families{{V4: true}, {V6: true}, both} {
		w := newWorld(t, nil)
		c := homer(access.CHAP)
		c.PPP.Families = f
		h := w.homeAt(1, 100, c)
		h.Dial()
		w.run(10 * time.Second)
		u := w.users[0]
		testkit.Equal(t, h.open, f, "the home's families (%s)", h.ended)
		testkit.Equal(t, u.passing, f, "families that pass")
		if f == both {
			testkit.Equal(t, u.ups, 1, "transactions")
			continue
		}
		testkit.Equal(t, u.ups, 2, "transactions of %v", f)
		testkit.Equal(t, u.wants, f, "addresses that are held")
	}
}

// The subscriber speaks first, unless it is silent for half a second.
func TestFirstWord(t *testing.T) {
	w := newWorld(t, nil)
	line := access.Line{Port: "access", MAC: [6]byte{2, 1, 1, 1, 1, 1}}
	service := tag(pppoe.TagService)
	cookie := tag(pppoe.TagCookie, w.cookie(line)...)
	w.server.Frame(frameOf(line, pppoe.PADR, 0, service, cookie))
	w.run(400 * time.Millisecond)
	last := w.seen[len(w.seen)-1]
	testkit.Equal(t, last.Payload[1], pppoe.PADS, "code of the last frame")
	w.run(200 * time.Millisecond)
	testkit.Equal(t, w.seen[len(w.seen)-1].EtherType, pppoe.EtherSession, "after half a second")
	w.server.Frame(frameOf(line, pppoe.PADT, binary.BigEndian.Uint16(last.Payload[2:])))
	w.server.Frame(frameOf(line, pppoe.PADR, 0, service, cookie, tag(pppoe.TagHostUniq, 1)))
	id := w.seen[len(w.seen)-1].Payload[2:4]
	w.server.Frame(&access.Frame{Line: line, EtherType: pppoe.EtherSession,
		Payload: append([]byte{0x11, 0, id[0], id[1], 0, 6}, 0xc0, 0x21, 1, 1, 0, 4)})
	got := w.seen[len(w.seen)-2:]
	testkit.ErrorIf(t, got[0].EtherType != pppoe.EtherSession || got[1].EtherType != pppoe.EtherSession ||
		got[0].Payload[8] != 1 || got[1].Payload[8] != 2, "no request and answer at once: %x", got)
}

// Retransmissions get on over a way that loses frames.
func TestLossyWay(t *testing.T) {
	w := newWorld(t, nil)
	w.lost = func(bool, *access.Frame) bool { return w.random.IntN(10) == 0 }
	open := 0
	for n := range 200 {
		w.homeAt(n, 100, homer(access.CHAP)).Dial()
	}
	w.run(2 * time.Minute)
	for _, h := range w.homes {
		if h.open.V4 {
			open++
		}
	}
	testkit.ErrorIf(t, open < 180, "only %d of 200 are on line", open)
	_, half := w.server.Sessions()
	testkit.Equal(t, half, 0, "half-open sessions after two minutes")
}

// A subscriber without power dials again: the old session ends, the new one comes in.
func TestPowerCut(t *testing.T) {
	w := newWorld(t, nil)
	h := w.homeAt(1, 100, homer(access.PAP))
	h.Dial()
	w.run(5 * time.Second)
	old := h.ID
	h.Vanish()
	h.Dial()
	w.run(5 * time.Second)
	testkit.Equal(t, len(w.users), 2, "sessions")
	testkit.Equal(t, w.users[0].cause, access.LostCarrier, "cause of the old one")
	testkit.Equal(t, w.users[1].cause, 0, "cause of the new one")
	testkit.ErrorIf(t, h.ID == old || !h.open.V4, "not on line again")
	testkit.Equal(t, w.count("replaced"), 1, "replaced")
	// The data plane reports unanswered echoes.
	w.users[1].client.Silent()
	w.run(time.Second)
	testkit.Equal(t, w.users[1].cause, access.LostCarrier, "cause of a silent one")
	testkit.ErrorIf(t, h.ended == "", "the home is not told")
}

// Others end sessions: the home is notified, and Down is not called.
func TestEnded(t *testing.T) {
	w := newWorld(t, nil)
	h := w.homeAt(1, 100, homer(access.PAP))
	h.Dial()
	w.run(5 * time.Second)
	w.users[0].client.Ended(access.AdminReset)
	w.run(time.Second)
	testkit.Equal(t, h.ended, "the peer ended the link", "the home's end")
	testkit.Equal(t, w.users[0].cause, 0, "Down")
	all, _ := w.server.Sessions()
	testkit.Equal(t, all, 0, "sessions")
}

// A subscriber's Host-Uniq may be long, as far as the answer fits a frame.
func TestLongHostUniq(t *testing.T) {
	w := newWorld(t, func(c *pppoe.Config) {
		for i := range 20 {
			c.Services = append(c.Services, strings.Repeat(string(rune('a'+i)), 60))
		}
	})
	h := w.homeAt(1, 100, homer(access.PAP))
	for _, size := range []int{300, 1024, 1025} {
		unique := bytes.Repeat([]byte{7}, size)
		w.keep, w.seen = true, nil
		before := w.count("malformed")
		w.server.Frame(frameOf(h.line, pppoe.PADI, 0, tag(pppoe.TagService), tag(pppoe.TagHostUniq, unique...)))
		w.run(time.Second)
		if size > 1024 {
			testkit.Equal(t, w.count("malformed"), before+1, "%d octets: malformed", size)
			testkit.Equal(t, len(w.seen), 0, "%d octets: answers", size)
			continue
		}
		testkit.FatalIf(t, len(w.seen) != 1, "%d octets: %d answers", size, len(w.seen))
		_, _, payload, ok := pppoe.Header(w.seen[0].Payload)
		tags, sound := pppoe.ParseTags(payload)
		testkit.ErrorIf(t, !ok || !sound || !bytes.Equal(tags.HostUniq, unique) || tags.Cookie == nil,
			"%d octets: %x", size, payload)
		testkit.ErrorIf(t, len(w.seen[0].Payload) > 1500, "a frame of %d octets", len(w.seen[0].Payload))
	}
}

// RFC 2516 §5.5: behind a PADT, not even packets that terminate PPP are sent.
func TestNothingBehindPADT(t *testing.T) {
	for _, when := range []time.Duration{time.Second, 5 * time.Second} { // LCP is being negotiated; on line
		w := newWorld(t, nil)
		h := w.homeAt(1, 100, homer(access.PAP))
		w.keep = true
		w.lost = func(_ bool, f *access.Frame) bool {
			return when == time.Second && f.EtherType == pppoe.EtherSession
		}
		h.Dial()
		w.run(when)
		all, _ := w.server.Sessions()
		testkit.FatalIf(t, all != 1, "%d sessions", all)
		w.seen, w.lost = nil, nil
		w.server.Frame(frameOf(h.line, pppoe.PADT, h.ID))
		w.run(time.Minute)
		for _, f := range w.seen {
			testkit.ErrorIf(t, f.EtherType == pppoe.EtherSession, "PPP: %x", f.Payload)
		}
		all, _ = w.server.Sessions()
		testkit.Equal(t, all, 0, "sessions")
	}
}

func TestRefused(t *testing.T) {
	w := newWorld(t, nil)
	c := homer(access.CHAP)
	c.PPP.Password = "wrong"
	h := w.homeAt(1, 100, c)
	h.Dial()
	w.run(10 * time.Second)
	testkit.Equal(t, h.ended, "CHAP: refused: no", "the home's end")
	all, half := w.server.Sessions()
	testkit.Equal(t, all+half, 0, "sessions")
	testkit.Equal(t, len(w.failed), 0, "attempts that did not come to SignIn")

	w.silent = true
	h = w.homeAt(2, 100, homer(access.CHAP))
	h.Dial()
	w.run(10 * time.Second)
	testkit.Equal(t, h.ended, "the peer ended the link", "the home's end when nobody decides")

	w.silent, w.full = false, true
	h = w.homeAt(4, 100, homer(access.CHAP))
	h.Dial()
	w.run(10 * time.Second)
	testkit.Equal(t, h.ended, "the peer ended the link", "the home's end when there is no address")

	w.full, w.wait = false, time.Hour
	h = w.homeAt(3, 100, homer(access.CHAP))
	h.Dial()
	w.run(5 * time.Second)
	h.HangUp()
	w.run(2 * time.Hour)
	testkit.Equal(t, len(w.users), 0, "sessions after the home left during sign-in")
	testkit.Equal(t, len(w.failed), 1, "attempts")
}

// A restart of the control plane: homes are unaffected, and sessions missing in the store get a PADT.
func TestRestore(t *testing.T) {
	w := newWorld(t, nil)
	for n := range 3 {
		w.homeAt(n, 100, homer(access.CHAP)).Dial()
	}
	w.run(10 * time.Second)
	w.queue = nil
	w.server = pppoe.New(w, w.config, nil)
	for _, u := range w.users[:2] {
		u.client = w.server.Restore(u, &u.request, u.state)
		testkit.FatalIf(t, u.client == nil, "not restored from %x", u.state)
		testkit.ErrorIf(t, w.server.Restore(u, &u.request, u.state) != nil,
			"restored twice")
	}
	w.keep = true
	w.run(time.Minute)
	testkit.Equal(t, len(w.seen), 0, "frames after the restart")
	for _, h := range w.homes {
		h.Echo()
	}
	w.run(time.Second)
	for i, u := range w.users {
		h := w.homes[u.request.Line.MAC]
		testkit.Equal(t, h.Online(), i < 2, "home %d is on line", i)
	}
	testkit.Equal(t, w.count("unknown-session"), 1, "frames of the third")
	h := w.homes[w.users[0].request.Line.MAC]
	h.HangUp()
	w.run(time.Second)
	testkit.Equal(t, w.users[0].cause, access.UserRequest, "cause")
	for n, bad := range [][]byte{nil, {1}, make([]byte, 22), append([]byte{9}, w.users[2].state[1:]...)} {
		request := w.users[2].request
		request.PPPoE = 9
		testkit.ErrorIf(t, w.server.Restore(w.users[2], &request, bad) != nil,
			"state %d is taken", n)
	}
}

// restless is a Link6 that has a delegated prefix pass.
type restless struct {
	access.BearerState
	access.Bearer
	late  bool // not by itself
	state string
}

func (l *restless) Packet([]byte) {}
func (l *restless) Closed(bool)   {}
func (l *restless) State() []byte { return []byte(l.state) }
func (l *restless) Opened(_, _ netip.Addr) {
	if want := (access.Families{V6: true, Delegated: true}); l.Passing != want && !l.late {
		l.PassIPv6(want, func(error) {})
	}
}

// IPv6 packets that DHCPv6 permitted still pass after a restart, without another request: the data plane may be away.
func TestRestoreIPv6(t *testing.T) {
	w := newWorld(t, nil)
	var links []*restless
	open := func() {
		w.server = pppoe.New(w, w.config, func(_ access.Session, _ access.Line, b access.Bearer,
			was access.BearerState) pppoe.Link6 {
			links = append(links, &restless{BearerState: was, Bearer: b})
			return links[len(links)-1]
		})
	}
	open()
	w.homeAt(1, 100, homer(access.CHAP)).Dial()
	w.run(10 * time.Second)
	u, all := w.users[0], access.Families{V4: true, V6: true, Delegated: true}
	ups := u.ups
	testkit.Equal(t, u.families, all, "passing")
	w.queue = nil
	open()
	u.client = w.server.Restore(u, &u.request, u.state)
	w.run(time.Minute)
	testkit.ErrorIf(t, u.client == nil || u.ups != ups || len(links) != 2, "let pass %d times, not %d", u.ups, ups)
	links[1].PassIPv6(access.Families{V6: true}, func(error) {})
	testkit.Equal(t, u.families, access.Families{V4: true, V6: true}, "passing, once it is another")
}

// With relayed DHCPv6 a home signs in without IPv6 addresses, and still has IPv6CP. Permitted packets and the stored
// state name the relay.
func TestRelayed(t *testing.T) {
	w := newWorld(t, func(c *pppoe.Config) {
		c.PortOf = func(l *access.Line) pppoe.Port { return pppoe.Port{Relayed: l.STag == 100} }
	})
	var links []*restless
	open := func() {
		w.server = pppoe.New(w, w.config, func(_ access.Session, _ access.Line, b access.Bearer,
			was access.BearerState) pppoe.Link6 {
			links = append(links, &restless{BearerState: was, Bearer: b, late: true, state: "leases"})
			return links[len(links)-1]
		})
	}
	open()
	h := w.homeAt(1, 100, homer(access.CHAP))
	h.relayed = true
	h.Dial()
	w.run(10 * time.Second)
	u, four := w.users[0], access.Families{V4: true}
	testkit.Equal(t, u.request.Wants, four, "asked for")
	testkit.Equal(t, h.open, both, "open")
	testkit.Equal(t, u.families, four, "passing without a lease")
	u.addresses.IPv6 = netip.MustParsePrefix("fd02::1/128") // asked for, but not yet a lease
	links[0].PassIPv6(access.Families{Delegated: true}, func(error) {})
	testkit.Equal(t, u.families, access.Families{V4: true, Delegated: true}, "passing with a prefix")
	links[0].PassIPv6(access.Families{V6: true, Delegated: true}, func(error) {})
	links[0].state = "others"
	links[0].KeepIPv6()
	w.queue = nil
	for n := range len(u.state) - 22 {
		open()
		testkit.ErrorIf(t, w.server.Restore(u, &u.request, u.state[:22+n]) != nil,
			"restored from %d octets", 22+n)
	}
	open()
	ups := u.ups
	u.client = w.server.Restore(u, &u.request, u.state)
	testkit.FatalIf(t, u.client == nil, "not restored")
	testkit.Equal(t, string(links[1].Kept), "others", "kept")
	testkit.Equal(t, links[1].BearerState.Passing, access.Families{V6: true, Delegated: true}, "passing")
	testkit.Equal(t, links[1].Relayed, true, "relayed")
	links[1].PassIPv6(access.Families{}, func(error) {})
	testkit.Equal(t, u.families, four, "passing when the leases are over")
	testkit.Equal(t, u.ups, ups+1, "how often it was to pass")
	w.homeAt(2, 200, homer(access.CHAP)).Dial()
	w.run(10 * time.Second)
	testkit.Equal(t, links[2].Relayed, false, "relayed on another line")
}

// Limits: of a line, of a port, of all, of half-open sessions. Other lines are unaffected.
func TestLimits(t *testing.T) {
	for _, r := range []struct {
		name   string
		change func(*pppoe.Config)
		want   int
	}{
		{"limit-line", func(c *pppoe.Config) { c.Limits.PerLine = 3 }, 3},
		{"limit-port", func(c *pppoe.Config) { c.Limits.PerPort = 4 }, 4},
		{"limit-sessions", func(c *pppoe.Config) { c.Limits.Sessions = 5 }, 5},
	} {
		w := newWorld(t, r.change)
		for n := range 10 {
			w.homeAt(n, 100, homer(access.PAP)).Dial()
			w.run(2 * time.Second)
		}
		all, _ := w.server.Sessions()
		testkit.Equal(t, all, r.want, "%s: sessions", r.name)
		testkit.Equal(t, w.count(r.name), uint64(10-r.want), "%s", r.name)
		testkit.Equal(t, len(w.failed), 10-r.want, "%s: attempts that are told: %q", r.name, w.failed)
		other := w.homeAt(100, 200, homer(access.PAP))
		other.Dial()
		w.run(5 * time.Second)
		testkit.Equal(t, other.open.V4, r.name == "limit-line", "%s: another line", r.name)
	}
	// Homes silent behind PADR are bounded, and make room after a while.
	w := newWorld(t, func(c *pppoe.Config) { c.Limits.HalfOpen, c.Limits.HalfLine = 100, 20 })
	w.lost = func(up bool, f *access.Frame) bool {
		return up && f.EtherType == pppoe.EtherSession && f.Line.STag == 100
	}
	for n := range 1000 {
		w.homeAt(n, 100, homer(access.PAP)).Dial()
	}
	other := w.homeAt(5000, 200, homer(access.PAP))
	other.Dial()
	w.run(5 * time.Second)
	_, half := w.server.Sessions()
	testkit.Equal(t, half, 20, "half-open sessions")
	testkit.Equal(t, other.open, both, "another line's families")
	w.run(5 * time.Minute)
	all, half := w.server.Sessions()
	testkit.Equal(t, half, 0, "half-open sessions after five minutes")
	testkit.Equal(t, all, 1, "sessions")
}

// Row B17: 20,000 homes of one VLAN dial after a power cut. Homes not accepted at once wait, all are on line in the
// end, and homes on line stay.
func TestStorm(t *testing.T) {
	w := newWorld(t, func(c *pppoe.Config) { c.Begin = 500 })
	before := w.homeAt(0, 100, homer(access.CHAP))
	before.Dial()
	w.run(5 * time.Second)
	for n := range 20_000 {
		h := w.homeAt(n+1, 100, homer(access.CHAP))
		h.stubborn = true
		h.Dial()
	}
	half := 0
	for range 600 {
		w.run(200 * time.Millisecond)
		_, now := w.server.Sessions()
		half = max(half, now)
	}
	all, now := w.server.Sessions()
	testkit.Equal(t, all, 20_001, "sessions")
	testkit.Equal(t, now, 0, "half-open sessions in the end")
	testkit.ErrorIf(t, half > 1000, "%d half-open sessions", half)
	testkit.ErrorIf(t, w.count("begin-waits") == 0, "nobody had to wait")
	testkit.Equal(t, before.open, both, "families of who was on line: %s", before.ended)
	testkit.Equal(t, len(w.users), 20_001, "sign-ins")
}

// More sign-ins than may be under way: the others wait, and each gets its PADO without asking again.
func TestBegin(t *testing.T) {
	const lines = 8
	w := newWorld(t, func(c *pppoe.Config) { c.Begin = 100 })
	w.wait = 300 * time.Millisecond
	for n := range 2000 {
		c := homer(access.PAP)
		c.Repeat = time.Minute
		w.homeAt(n, uint16(100+n%lines), c).Dial()
	}
	half := 0
	for range 200 {
		w.run(100 * time.Millisecond)
		_, now := w.server.Sessions()
		half = max(half, now)
	}
	testkit.ErrorIf(t, half < 100 || half > 200, "%d half-open sessions", half)
	testkit.Equal(t, len(w.online), 2000, "on line")
	testkit.Equal(t, w.count("padi"), 2000, "PADI")
	testkit.Equal(t, w.count("begin-waits"), 1900, "PADI that waited")
}

// Silent half-open sessions block others for a second at most. Waiting PADI are bounded, and each home waits once.
func TestBeginSilent(t *testing.T) {
	w := newWorld(t, func(c *pppoe.Config) { c.Begin, c.OffersPerLine = 10, 100_000 })
	w.lost = func(up bool, f *access.Frame) bool {
		return up && f.EtherType == pppoe.EtherSession && f.Line.STag < 105
	}
	for n := range 10 {
		w.homeAt(n, uint16(100+n%5), homer(access.PAP)).Dial()
	}
	w.run(100 * time.Millisecond)
	other := w.homeAt(5000, 200, homer(access.PAP))
	other.Dial()
	w.run(500 * time.Millisecond)
	testkit.Equal(t, other.open, access.Families{}, "families at once")
	w.run(time.Second)
	testkit.Equal(t, other.open, both, "families a second later")

	for n := range 10 { // again, and behind them a flood
		w.homeAt(100+n, uint16(100+n%5), homer(access.PAP)).Dial()
	}
	w.run(100 * time.Millisecond)
	line := access.Line{Port: "access", TPID: 0x8100}
	for n := range 40_000 {
		line.STag = uint16(300 + n%5)
		line.MAC = [6]byte{2, 2, 2, byte(n >> 16), byte(n >> 8), byte(n)}
		w.server.Frame(frameOf(line, pppoe.PADI, 0, tag(pppoe.TagService)))
	}
	testkit.Equal(t, w.count("begin-waits"), 1+1<<15, "PADI that wait")
	testkit.Equal(t, w.count("begin-full"), 40_000-1<<15, "PADI beyond")
	line.MAC, line.STag = [6]byte{2, 2, 2}, 300
	w.server.Frame(frameOf(line, pppoe.PADI, 0, tag(pppoe.TagService)))
	testkit.Equal(t, w.count("begin-again"), 1, "PADI of who waits")
	pado := w.count("pado")
	w.run(time.Minute)
	testkit.Equal(t, w.count("pado")-pado+w.count("begin-stale"), 1<<15, "PADI of who waited")
	testkit.ErrorIf(t, w.count("begin-stale") == 0, "nobody gave up")
}

// An accepted home that rejects both network protocols: the session ends, and the history has the reason.
func TestNoNetwork(t *testing.T) {
	w := newWorld(t, nil)
	c := homer(access.PAP)
	c.PPP.Families = access.Families{}
	h := w.homeAt(1, 100, c)
	h.Dial()
	w.run(time.Minute)
	testkit.Equal(t, len(w.users), 1, "sessions")
	testkit.Equal(t, w.users[0].cause, access.UserError, "cause")
	testkit.ErrorIf(t, len(w.failed) != 1 || w.failed[0] != "no network protocol is left", "history: %q", w.failed)
}

func frameOf(line access.Line, code uint8, id uint16, tags ...[]byte) *access.Frame {
	b := pppoe.AppendHeader(nil, code, id)
	for _, tag := range tags {
		b = append(b, tag...)
	}
	return &access.Frame{Line: line, EtherType: pppoe.EtherDiscovery, Payload: pppoe.Finish(b)}
}

func tag(kind uint16, value ...byte) []byte {
	return pppoe.AppendTag(nil, kind, append([]byte{}, value...))
}

// cookie gets one for a line.
func (w *world) cookie(line access.Line) []byte {
	w.keep = true
	w.server.Frame(frameOf(line, pppoe.PADI, 0, tag(pppoe.TagService)))
	_, _, payload, _ := pppoe.Header(w.seen[len(w.seen)-1].Payload)
	t, ok := pppoe.ParseTags(payload)
	testkit.FatalIf(w.t, !ok || t.Cookie == nil, "no cookie")
	return bytes.Clone(t.Cookie)
}

// Row B3: only a cookie of ours, for this line, not too old, begins a session, and begins one.
func TestCookies(t *testing.T) {
	w := newWorld(t, func(c *pppoe.Config) { c.PerMAC = 8 })
	line := access.Line{Port: "access", TPID: 0x8100, STag: 5, MAC: [6]byte{2, 1, 1, 1, 1, 1}}
	good := w.cookie(line)
	service := tag(pppoe.TagService)
	other := func(change func(*access.Line)) access.Line {
		l := line
		change(&l)
		return l
	}
	wrong := bytes.Clone(good)
	wrong[19] ^= 1
	for i, f := range []*access.Frame{
		frameOf(line, pppoe.PADR, 0, service),
		frameOf(line, pppoe.PADR, 0, service, tag(pppoe.TagCookie)),
		frameOf(line, pppoe.PADR, 0, service, tag(pppoe.TagCookie, good[:19]...)),
		frameOf(line, pppoe.PADR, 0, service, tag(pppoe.TagCookie, wrong...)),
		frameOf(other(func(l *access.Line) { l.MAC[5]++ }), pppoe.PADR, 0, service, tag(pppoe.TagCookie,
			good...)),
		frameOf(other(func(l *access.Line) { l.STag++ }), pppoe.PADR, 0, service, tag(pppoe.TagCookie,
			good...)),
		frameOf(other(func(l *access.Line) { l.CTag++ }), pppoe.PADR, 0, service, tag(pppoe.TagCookie,
			good...)),
		frameOf(other(func(l *access.Line) { l.Port = "else" }), pppoe.PADR, 0, service, tag(pppoe.TagCookie,
			good...)),
	} {
		before := len(w.seen)
		w.server.Frame(f)
		testkit.Equal(t, w.count("cookie"), uint64(i+1), "row %d: cookies refused", i)
		testkit.Equal(t, len(w.seen), before, "row %d: frames", i)
	}
	all, _ := w.server.Sessions()
	testkit.Equal(t, all, 0, "sessions")
	padr := frameOf(line, pppoe.PADR, 0, service, tag(pppoe.TagCookie, good...))
	w.server.Frame(padr)
	first := w.seen[len(w.seen)-1].Payload
	w.server.Frame(padr)
	testkit.ErrorIf(t, !bytes.Equal(w.seen[len(w.seen)-1].Payload, first),
		"the same PADR does not get the same PADS")
	all, _ = w.server.Sessions()
	testkit.Equal(t, all, 1, "sessions of one cookie")
	for n := range 8 { // in other words it is the same PADR
		w.server.Frame(frameOf(line, pppoe.PADR, 0, service, tag(pppoe.TagCookie, good...),
			tag(pppoe.TagHostUniq, byte(n))))
		pads := w.seen[len(w.seen)-1].Payload
		testkit.Equal(t, [2]byte(pads[2:]), [2]byte(first[2:]), "session")
	}
	all, _ = w.server.Sessions()
	testkit.Equal(t, all, 1, "sessions of one cookie, where a MAC may have eight")
	w.server.Frame(frameOf(line, pppoe.PADT, binary.BigEndian.Uint16(first[2:])))
	w.now += 61 * time.Second
	w.server.Frame(padr)
	testkit.Equal(t, w.count("cookie"), 9, "an old cookie")
}

// Rows B1, B2, B4: malformed frames change nothing; a flood of PADI leaves nothing behind; only the line of a session
// ends it.
func TestBadDiscovery(t *testing.T) {
	w := newWorld(t, nil)
	h := w.homeAt(1, 100, homer(access.PAP))
	h.Dial()
	w.run(5 * time.Second)
	many := bytes.Repeat(tag(pppoe.TagName, 'x'), 100)
	raw := func(b ...byte) *access.Frame {
		return &access.Frame{Line: h.line, EtherType: pppoe.EtherDiscovery, Payload: b}
	}
	for i, f := range []*access.Frame{
		raw(), raw(0x11, 9), raw(0x11, 9, 0, 0, 0, 1), raw(0x21, 9, 0, 0, 0, 0), raw(0x11, 9, 0, 0, 0xff, 0xff),
		raw(0x11, 9, 0, 0, 0, 0), // no tags
		raw(0x11, 9, 0, 0, 0, 4, 1, 1, 0, 1), raw(0x11, 9, 0, 0, 0, 3, 1, 1, 0), raw(0x11, 9, 0, 0, 0, 4, 1, 1,
			0xff, 0xff),
		frameOf(h.line, pppoe.PADI, 0, tag(pppoe.TagService), many),
		frameOf(h.line, pppoe.PADI, 0, tag(pppoe.TagService), tag(pppoe.TagHostUniq, make([]byte, 1025)...)),
		frameOf(h.line, pppoe.PADI, 0, tag(pppoe.TagService, make([]byte, 257)...)),
		frameOf(h.line, pppoe.PADI, 7, tag(pppoe.TagService)), frameOf(h.line, pppoe.PADO, 0,
			tag(pppoe.TagService)),
		frameOf(h.line, pppoe.PADS, 7, tag(pppoe.TagService)), frameOf(h.line, pppoe.PADT, 0), frameOf(h.line,
			0, 0),
		{Line: h.line, EtherType: pppoe.EtherSession, Payload: []byte{0x11, 0, byte(h.ID >> 8), byte(h.ID), 0,
			1, 0xc0}},
		{Line: h.line, EtherType: pppoe.EtherSession, Payload: []byte{0x11, 0, byte(h.ID >> 8), byte(h.ID), 0,
			9, 0xc0, 0x21}},
		{Line: h.line, EtherType: pppoe.EtherSession, Payload: []byte{0x11, 9, byte(h.ID >> 8), byte(h.ID), 0,
			2, 0xc0, 0x21}},
	} {
		before := w.count("malformed")
		w.keep, w.seen = true, nil
		w.server.Frame(f)
		testkit.Equal(t, w.count("malformed"), before+1, "row %d", i)
		testkit.Equal(t, len(w.seen), 0, "row %d: frames", i)
	}
	for i, change := range []func(*access.Line){
		func(l *access.Line) { l.MAC[0] ^= 4 }, func(l *access.Line) { l.STag++ },
		func(l *access.Line) { l.CTag++ },
		func(l *access.Line) { l.Port = "else" }} {
		line := h.line
		change(&line)
		w.server.Frame(frameOf(line, pppoe.PADT, h.ID))
		w.server.Frame(&access.Frame{Line: line, EtherType: pppoe.EtherSession,
			Payload: []byte{0x11, 0, byte(h.ID >> 8), byte(h.ID), 0, 6, 0xc0, 0x21, 5, 1, 0, 4}})
		testkit.Equal(t, w.users[0].cause, 0, "line %d ends it", i)
	}
	w.keep = false
	all, _ := w.server.Sessions()
	for n := range 100_000 {
		line := access.Line{Port: "access", STag: uint16(n % 4096), MAC: [6]byte{6, 0, byte(n >> 24),
			byte(n >> 16), byte(n >> 8), byte(n)}}
		w.server.Frame(frameOf(line, pppoe.PADI, 0, tag(pppoe.TagService)))
	}
	now, _ := w.server.Sessions()
	testkit.Equal(t, now, all, "sessions after a flood of PADI")
	testkit.Equal(t, w.users[0].cause, 0, "the subscriber")
}

// PADTs to strangers are limited.
func TestStrangers(t *testing.T) {
	w := newWorld(t, func(c *pppoe.Config) { c.Strangers = 50 })
	w.keep = true
	for n := range 1000 {
		line := access.Line{Port: "access", MAC: [6]byte{2, 2, 2, 2, byte(n >> 8), byte(n)}}
		w.server.Frame(&access.Frame{Line: line, EtherType: pppoe.EtherSession, Payload: []byte{0x11, 0, 0, 9,
			0, 2, 0xc0, 0x21}})
	}
	testkit.Equal(t, len(w.seen), 50, "PADTs in no time")
	testkit.Equal(t, w.seen[0].Payload[1], pppoe.PADT, "code")
	testkit.Equal(t, w.count("unknown-session"), 1000, "counted")
}

// A line that keeps requesting offers gets its share, and takes none from others of its port; all together get the
// port's.
func TestOffers(t *testing.T) {
	w := newWorld(t, func(c *pppoe.Config) { c.OffersPerLine, c.OffersPerPort = 20, 90 })
	ask := func(cTag uint16) {
		for n := range 100 {
			line := access.Line{Port: "access", TPID: 0x8100, STag: 7, CTag: cTag}
			line.MAC = [6]byte{2, 2, 2, 2, 9, byte(n)}
			w.server.Frame(frameOf(line, pppoe.PADI, 0, tag(pppoe.TagService)))
		}
	}
	ask(1)
	testkit.Equal(t, w.count("pado"), 20, "PADOs of a line")
	testkit.Equal(t, w.count("offers-line"), 80, "PADIs beyond")
	for cTag := range uint16(20) {
		ask(100 + cTag)
	}
	testkit.Equal(t, w.count("pado"), 90, "PADOs of a port")
	testkit.Equal(t, w.count("offers-line")+w.count("offers-port"), 2100-90, "PADIs beyond")
	testkit.ErrorIf(t, w.count("offers-port") < 100, "the port's limit does not show")
	w.run(100 * time.Millisecond)
	ask(1)
	testkit.Equal(t, w.count("pado"), 92, "PADOs a tenth of a second later")
}

func TestServices(t *testing.T) {
	w := newWorld(t, func(c *pppoe.Config) { c.Services, c.Delay = []string{"internet"}, 500*time.Millisecond })
	c := homer(access.PAP)
	c.Service = "other"
	h := w.homeAt(1, 100, c)
	h.Dial()
	w.run(2 * time.Minute)
	testkit.Equal(t, h.ended, "no concentrator answers", "end")
	h = w.homeAt(2, 100, homer(access.PAP)) // any service
	h.Dial()
	w.run(400 * time.Millisecond)
	testkit.Equal(t, w.count("pado"), 0, "PADO before the delay")
	w.run(10 * time.Second)
	testkit.Equal(t, h.open, both, "families")
	line := h.line
	line.MAC[5] = 99
	cookie := w.cookieAfter(line, time.Second)
	w.server.Frame(frameOf(line, pppoe.PADR, 0, tag(pppoe.TagService, 'x'), tag(pppoe.TagCookie, cookie...),
		tag(pppoe.TagRelay, 1, 2)))
	_, id, payload, _ := pppoe.Header(w.seen[len(w.seen)-1].Payload)
	tags, _ := pppoe.ParseTags(payload)
	testkit.Equal(t, id, 0, "session id of a refusal")
	testkit.ErrorIf(t, tags.Error == nil || !bytes.Equal(tags.Relay, []byte{1, 2}),
		"no Service-Name-Error, or no Relay-Session-Id: %x", payload)
}

func (w *world) cookieAfter(line access.Line, d time.Duration) []byte {
	w.keep = true
	w.server.Frame(frameOf(line, pppoe.PADI, 0, tag(pppoe.TagService)))
	w.run(d)
	_, _, payload, _ := pppoe.Header(w.seen[len(w.seen)-1].Payload)
	t, _ := pppoe.ParseTags(payload)
	return bytes.Clone(t.Cookie)
}

// tshark has no remark on anything that the server or the client sends.
func TestTshark(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("no tshark")
	}
	w := newWorld(t, func(c *pppoe.Config) {
		c.MaxPayload, c.Services = map[string]uint16{"access": 1500}, []string{"internet", "voice"}
	})
	w.pcap = &bytes.Buffer{}
	// magic, 2.4, zone, accuracy, length, Ethernet
	for _, v := range []uint32{0xa1b2c3d4, 4<<16 | 2, 0, 0, 65535, 1} {
		testkit.Must(t, binary.Write(w.pcap, binary.LittleEndian, v))
	}
	for n, m := range []access.Method{access.PAP, access.CHAP, access.MSCHAPv2, access.PAP, access.MSCHAPv2} {
		c := homer(m)
		c.Vendor, c.MaxPayload = []byte{1, 3, 'c', 'i', 'd', 0x81, 4, 0, 0, 1, 0}, 1500
		if n >= 3 {
			c.PPP.Password = "wrong"
		}
		h := w.homeAt(n, 100, c)
		h.Dial()
		w.run(5 * time.Second)
		h.Echo()
		w.run(time.Second)
		h.HangUp()
		w.run(time.Second)
	}
	file := filepath.Join(t.TempDir(), "pppoe.pcap")
	testkit.Must(t, os.WriteFile(file, w.pcap.Bytes(), 0o600))
	out, err := exec.Command("tshark", "-n", "-r", file, "-Y", "_ws.malformed || _ws.expert.severity >= 6291456",
		"-V").CombinedOutput()
	testkit.Must(t, err)
	testkit.ErrorIf(t, bytes.Contains(out, []byte("Frame ")), "tshark's remarks:\n%s", out)
	out, err = exec.Command("tshark", "-n", "-r", file, "-Y", "pppoes && ipcp").CombinedOutput()
	testkit.Must(t, err)
	testkit.ErrorIf(t, bytes.Count(out, []byte("\n")) < 10, "tshark sees no IPCP:\n%s", out)
}
