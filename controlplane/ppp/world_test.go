// SPDX-License-Identifier: Apache-2.0

package ppp

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/ppp/chap"
	"isthmus/controlplane/testkit"
)

// world has time, and what happens in it.
type world struct {
	now    time.Duration
	random *rand.Rand
	queue  happenings
	events int
	loss   float64 // of packets; as many again come twice or late
	log    []string
}

type happening struct {
	at time.Duration
	n  int // in order of arrival
	do func()
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newWorld(seed uint64) *world { return &world{random: rand.New(rand.NewPCG(seed, 1)), now: 1} }

func (w *world) after(d time.Duration, do func()) {
	w.events++
	heap.Push(&w.queue, happening{w.now + d, w.events, do})
}

// run lets everything happen until nothing is left to, or until a time.
func (w *world) run(t testing.TB, until time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		h := heap.Pop(&w.queue).(happening)
		w.now = h.at
		h.do()
		testkit.FatalIf(t, w.events > 100_000, "it never ends")
	}
	w.now = max(w.now, until)
}

// end is one end of a link in a world.
type end struct {
	Link
	w        *world
	name     string
	peer     *end
	sends    func(protocol uint16, packet []byte) // in place of a peer
	mangle   func(protocol uint16, packet []byte) []byte
	buffer   []byte
	wakes    int
	network  access.Families
	verdict  Result
	delay    time.Duration // of the verdict
	asked    []access.Credentials
	ended    string
	cause    access.Cause
	discards [4]int
}

// with is a configuration in the end's world.
func (e *end) with(c Config) *Config {
	c.Now, c.Random, c.Buffer = func() time.Duration { return e.w.now }, e.w.random.Uint64, e.buffer[:0:1700]
	return &c
}

func (e *end) Send(protocol uint16, packet []byte) {
	e.w.log = append(e.w.log, fmt.Sprintf("%v %s %04x %x", e.w.now, e.name, protocol, packet))
	b := bytes.Clone(packet)
	if e.sends != nil {
		e.sends(protocol, b)
		return
	}
	if e.mangle != nil {
		if b = e.mangle(protocol, b); b == nil {
			return
		}
	}
	arrive := func() { e.peer.discards[e.peer.Receive(protocol, b)]++ }
	delay := time.Millisecond
	switch r := e.w.random.Float64(); {
	case r < e.w.loss:
		return
	case r < 2*e.w.loss:
		delay = time.Duration(e.w.random.IntN(5_000)) * time.Millisecond
	case r < 3*e.w.loss:
		e.w.after(time.Duration(e.w.random.IntN(5_000))*time.Millisecond, arrive)
	}
	e.w.after(delay, arrive)
}

func (e *end) Wake(at time.Duration) {
	if e.ended != "" {
		panic("a link that is over has its owner's time changed") // the owner may dial again, and wait for that
	}
	e.wakes++
	mine := e.wakes
	if at != 0 {
		e.w.after(max(0, at-e.w.now), func() {
			if e.wakes == mine {
				e.Expire()
			}
		})
	}
}

func (e *end) Authenticate(c *access.Credentials) {
	e.asked = append(e.asked, *c)
	r := e.verdict
	if c.Method == access.MSCHAPv2 && r.Accept { // judged by the password, which is "secret"
		response, _ := chap.ParseResponse(c.Response)
		challenge, hash := [16]byte(c.Challenge), chap.NTHash("secret")
		r.Accept = response.NT == chap.NTResponse(&challenge, &response.PeerChallenge, c.User, hash)
		r.Success = chap.AuthenticatorResponse(hash, &response.NT, &challenge, &response.PeerChallenge, c.User)
	}
	e.w.after(e.delay, func() { e.Authenticated(&r) })
}

func (e *end) Network(f access.Families) { e.network = f }

func (e *end) Closed(cause access.Cause, why string) {
	if e.ended != "" {
		panic("closed twice")
	}
	e.cause, e.ended = cause, why
}

func newEnd(w *world, name string) *end { return &end{w: w, name: name, buffer: make([]byte, 1700)} }

var both = access.Families{V4: true, V6: true}

func given() Network {
	return Network{Families: both, Local: [4]byte{10, 0, 0, 1}, Remote: [4]byte{10, 1, 2, 3},
		DNS: [2][4]byte{{9, 9, 9, 9}, {8, 8, 8, 8}}, RemoteID: 0xabcdef}
}

// pair is a server that accepts every client, and a client.
func pair(w *world, server, client Config) (*end, *end) {
	s, c := newEnd(w, "server"), newEnd(w, "client")
	s.peer, c.peer = c, s
	s.verdict = Result{Accept: true, Message: "welcome", Network: given()}
	s.Start(s, s.with(server), Server, 1492)
	c.Start(c, c.with(client), Client, 1492)
	return s, c
}

func clientConfig(methods ...access.Method) Config {
	c := DefaultConfig()
	c.Methods, c.User, c.Password, c.Families, c.ID = methods, "homer", "secret", both, 0
	return c
}

func serverConfig(methods ...access.Method) Config {
	c := DefaultConfig()
	c.Methods = methods
	return c
}
