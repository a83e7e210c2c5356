// SPDX-License-Identifier: Apache-2.0

package pppoe_test

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/ppp/chap"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/testkit"
	"isthmus/lab/dialer"
)

// world is the owner of a server and of dialling homes: time, frames, an authenticator that knows "homer" with the
// password "secret".
type world struct {
	t      testing.TB
	now    time.Duration
	queue  happenings
	events int
	random *rand.Rand
	server *pppoe.Server
	config pppoe.Config
	homes  map[[6]byte]*home
	seen   []access.Frame // from the server, when it is kept
	keep   bool
	pcap   *bytes.Buffer
	lost   func(up bool, f *access.Frame) bool
	users  []*user // signed in, ever
	online map[*user]bool
	failed []string
	wait   time.Duration // for a verdict
	silent bool
	full   bool // authenticated, but without an address
}

type happening struct {
	at      time.Duration
	n       int
	do      func()
	stopped bool
}

func (h *happening) Stop() { h.stopped = true }

type happenings []*happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(*happening)) }
func (h *happenings) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newWorld(t testing.TB, change func(*pppoe.Config)) *world {
	w := &world{t: t, now: 1, random: rand.New(rand.NewPCG(1, 2)), homes: map[[6]byte]*home{},
		online: map[*user]bool{},
		config: pppoe.ConfigOf(config.Default[config.AccessPPPoE]()), wait: 10 * time.Millisecond}
	if change != nil {
		change(&w.config)
	}
	w.server = pppoe.New(w, w.config, nil)
	return w
}

// ---- access.Host ----------------------------------------------------------------------------------------------------

func (w *world) Now() time.Time { return time.Unix(1_800_000_000, 0).Add(w.now) }

func (w *world) After(d time.Duration, fn func()) access.Timer {
	w.events++
	h := &happening{at: w.now + max(d, 0), n: w.events, do: fn}
	heap.Push(&w.queue, h)
	return h
}

func (w *world) Send(f *access.Frame) {
	w.write(f, false)
	if w.keep {
		g := *f
		g.Payload = bytes.Clone(f.Payload)
		w.seen = append(w.seen, g)
	}
	h := w.homes[f.Line.MAC]
	if h == nil || h.line.STag != f.Line.STag || w.lost != nil && w.lost(false, f) {
		return
	}
	etherType, payload := f.EtherType, bytes.Clone(f.Payload)
	w.After(time.Millisecond, func() { h.Receive(etherType, payload) })
}

func (w *world) Failed(_ *access.Request, why string) { w.failed = append(w.failed, why) }

// user is an access.Session.
type user struct {
	w         *world
	request   access.Request
	client    access.Client
	addresses access.Addresses
	plan      access.Plan
	families  access.Families // asked for
	passing   access.Families // done
	wants     access.Families
	mtu       uint16
	alive     access.KeepAlive
	state     []byte
	cause     access.Cause
	ups       int
}

func (u *user) Grant() access.Grant { return access.Grant{Plan: &u.plan, Addresses: &u.addresses} }
func (u *user) Keep(state []byte)   { u.state = bytes.Clone(state) }
func (u *user) Want(f access.Families, _ *access.Request, done func(error)) {
	u.wants = f
	u.w.After(0, func() { done(nil) })
}
func (u *user) Up(f access.Families, mtu uint16, alive access.KeepAlive, done func(error)) {
	u.families, u.mtu, u.alive = f, mtu, alive
	u.ups++
	u.w.After(time.Millisecond, func() {
		u.passing = f
		done(nil)
	})
}
func (u *user) Down(cause access.Cause) {
	testkit.ErrorIf(u.w.t, u.cause != 0, "a session ends twice")
	u.cause = cause
	delete(u.w.online, u)
}

func (w *world) SignIn(r *access.Request, c access.Client, done func(access.Session, *access.Verdict)) func() {
	h := w.After(w.wait, func() {
		v := &access.Verdict{Accept: w.knows(r), Silent: w.silent, Proven: w.full}
		if w.silent || w.full || !v.Accept {
			v.Accept, v.Why, v.Message = false, "wrong password", "no"
			done(nil, v)
			return
		}
		if r.Method == access.MSCHAPv2 {
			response, _ := chap.ParseResponse(r.Response)
			challenge := [16]byte(r.Challenge)
			v.Success = chap.AuthenticatorResponse(chap.NTHash("secret"), &response.NT, &challenge,
				&response.PeerChallenge, r.User)
		}
		n := uint32(len(w.users) + 2)
		u := &user{w: w, request: *r, client: c, addresses: access.Addresses{
			IPv4:    netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}),
			Gateway: netip.MustParseAddr("10.0.0.1"),
			DNS:     []netip.Addr{netip.MustParseAddr("9.9.9.9"), netip.MustParseAddr("2620:fe::fe")}}}
		if r.Wants.V6 {
			u.addresses.IPv6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 1, byte(n >> 16),
				byte(n >> 8), byte(n)}), 64)
		}
		w.users = append(w.users, u)
		w.online[u] = true
		done(u, v)
	})
	return h.(*happening).Stop
}

func (w *world) knows(r *access.Request) bool {
	switch r.Method {
	case access.None:
		return true
	case access.PAP:
		return r.User == "homer" && string(r.Password) == "secret"
	case access.CHAP:
		want := chap.MD5(r.Identifier, "secret", r.Challenge)
		return r.User == "homer" && bytes.Equal(r.Response, want[:])
	}
	response, _ := chap.ParseResponse(r.Response)
	challenge := [16]byte(r.Challenge)
	return r.User == "homer" && response.NT == chap.NTResponse(&challenge, &response.PeerChallenge, r.User,
		chap.NTHash("secret"))
}

// ---- homes ----------------------------------------------------------------------------------------------------------

// home is a subscriber and its Env.
type home struct {
	*dialer.Client
	w        *world
	line     access.Line
	wakes    int
	open     access.Families
	ended    string
	stubborn bool     // dials again
	relayed  bool     // IPv6 passes later
	got      [][]byte // IPv6 packets
}

// homeAt makes a home with a MAC and an outer tag.
func (w *world) homeAt(n int, sTag uint16, c *dialer.Config) *home {
	h := &home{w: w, line: access.Line{Port: "access", TPID: 0x88a8, STag: sTag, CTag: 7,
		MAC: [6]byte{2, 1, 0, byte(n >> 16), byte(n >> 8), byte(n)}}}
	c.PPP.Now, c.PPP.Random = func() time.Duration { return w.now }, w.random.Uint64
	h.Client = dialer.New(h, c)
	w.homes[h.line.MAC] = h
	return h
}

func (h *home) Send(_ *dialer.Client, etherType uint16, payload []byte) {
	h.w.up(&access.Frame{Line: h.line, EtherType: etherType, Payload: bytes.Clone(payload)})
}

// up brings a frame to the server.
func (w *world) up(f *access.Frame) {
	w.write(f, true)
	if w.lost == nil || !w.lost(true, f) {
		w.After(time.Millisecond, func() { w.server.Frame(f) })
	}
}

func (h *home) Wake(_ *dialer.Client, at time.Duration) {
	h.wakes++
	mine := h.wakes
	if at != 0 {
		h.w.After(at-h.w.now, func() {
			if h.wakes == mine {
				h.Expire()
			}
		})
	}
}

// Up: open families pass already, so that none of the first packets is lost.
func (h *home) Up(_ *dialer.Client, f access.Families) {
	h.open = f
	passes := slices.ContainsFunc(h.w.users, func(u *user) bool {
		return u.request.Line == h.line && (!f.V4 || u.passing.V4) && (!f.V6 || u.passing.V6 || h.relayed)
	})
	testkit.ErrorIf(h.w.t, !passes, "a home has %v open, which does not pass yet", f)
}
func (h *home) Packet(_ *dialer.Client, ipv6 []byte) { h.got = append(h.got, bytes.Clone(ipv6)) }
func (h *home) Ended(_ *dialer.Client, _ access.Cause, why string) {
	h.ended, h.open = why, access.Families{}
	if h.stubborn {
		h.w.After(time.Second, h.Dial)
	}
}

// run lets happen what happens within a time.
func (w *world) run(d time.Duration) {
	until := w.now + d
	for len(w.queue) > 0 && w.queue[0].at <= until {
		h := heap.Pop(&w.queue).(*happening)
		w.now = h.at
		if !h.stopped {
			h.do()
		}
	}
	w.now = until
}

func (w *world) count(name string) uint64 {
	all := w.server.Counts()
	at := slices.IndexFunc(all, func(c pppoe.Count) bool { return c.Name == name })
	testkit.FatalIf(w.t, at < 0, "no counter %s", name)
	return all[at].Value
}

// write puts a frame into the capture.
func (w *world) write(f *access.Frame, up bool) {
	if w.pcap == nil {
		return
	}
	ours := [6]byte{2, 0, 0, 0, 0, 1}
	from, to := ours[:], f.Line.MAC[:]
	if up {
		from, to = f.Line.MAC[:], ours[:]
		if f.EtherType == pppoe.EtherDiscovery && f.Payload[1] == pppoe.PADI {
			to = []byte{255, 255, 255, 255, 255, 255}
		}
	}
	b := append(append([]byte{}, to...), from...)
	b = binary.BigEndian.AppendUint16(b, f.Line.TPID)
	b = binary.BigEndian.AppendUint16(b, f.Line.STag)
	b = binary.BigEndian.AppendUint16(b, 0x8100)
	b = binary.BigEndian.AppendUint16(b, f.Line.CTag)
	b = binary.BigEndian.AppendUint16(b, f.EtherType)
	b = append(b, f.Payload...)
	head := make([]byte, 0, 16)
	head = binary.LittleEndian.AppendUint32(head, uint32(w.now/time.Second))
	head = binary.LittleEndian.AppendUint32(head, uint32(w.now%time.Second/time.Microsecond))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(b)))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(b)))
	w.pcap.Write(append(head, b...))
}
