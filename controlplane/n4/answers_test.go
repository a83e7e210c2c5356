// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// For any sequence of requests, answers, repetitions, removals: a given answer belongs to its request.
func TestAnswersAreThoseOfTheirRequests(t *testing.T) {
	a := newAnswers(roomy(4096, time.Hour))
	random := rand.New(rand.NewPCG(1, 2))
	peers := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	answerTo := func(k transactionKey, round uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, k.sequence*7+round+uint32(k.addr[15])<<24)
		length := int(k.sequence % 200)
		if k.sequence%97 == 0 {
			length = 3 * answerChunk // longer than a chunk
		}
		return append(b, make([]byte, length)...)
	}
	type last struct {
		round uint32
		done  bool
	}
	model := map[transactionKey]last{}
	hits := 0
	for step := range uint32(60000) {
		k := transactionKey{addr: peers[random.IntN(2)].As16(), port: 8805, socket: uint8(random.IntN(2)),
			typ: pfcp.MessageType(50 + random.IntN(3)), sequence: random.Uint32N(3000)}
		round := random.Uint32N(3)
		b, answer, _ := a.begin(k, binary.BigEndian.AppendUint32(nil, round))
		was, known := model[k]
		switch b {
		case fresh:
			testkit.FatalIf(t, known && !was.done, "a request in progress was begun anew")
			model[k] = last{round, false}
			switch random.IntN(10) {
			case 0: // stays in progress
			case 1:
				a.forget(k)
				delete(model, k)
			default:
				a.finish(k, answerTo(k, round))
				model[k] = last{round, true}
			}
		case inProgress:
			testkit.FatalIf(t, !known || was.done, "in progress, but it ended")
			a.finish(k, answerTo(k, was.round))
			model[k] = last{was.round, true}
		case answered:
			if hits++; !known || !was.done || was.round != round || !bytes.Equal(answer, answerTo(k, round)) {
				t.Fatalf("the answer of another request: %x", answer)
			}
		case full:
			t.Fatal("full")
		}
		if step%20000 == 19999 {
			a.forgetPeer(peers[0])
			for k, was := range model {
				if k.addr == peers[0].As16() && was.done {
					delete(model, k)
				}
			}
		}
	}
	testkit.ErrorIf(t, hits < 1000, "only %d answers were given again: a poor test", hits)
	a.consistent(t)
}

// roomy has no other bound than that of one peer's answers.
func roomy(count int, keep time.Duration) answerBounds {
	return answerBounds{keep: keep, count: count, most: 1 << 30, total: 1 << 30, other: 8}
}

// consistent compares the counts with the contents.
func (a *answers) consistent(t *testing.T) {
	t.Helper()
	size, bytes := 0, 0
	for _, p := range a.peers {
		size += len(p.open) + len(p.known)
		for _, c := range p.log.chunks {
			bytes += cap(c)
		}
	}
	testkit.ErrorIf(t, int64(size) != a.size.Load() || int64(bytes) != a.bytes.Load(),
		"%d answers, %d bytes are there; %d, %d are counted", size, bytes, a.size.Load(), a.bytes.Load())
}

// Expired answers return their memory, and a chunk is reused.
func TestAnswersGiveMemoryBack(t *testing.T) {
	a := newAnswers(roomy(1<<20, 0))
	for i := range uint32(50000) {
		k := transactionKey{sequence: i}
		b, _, _ := a.begin(k, nil)
		testkit.FatalIf(t, b != fresh, "not fresh")
		a.finish(k, make([]byte, 70))
	}
	a.start = a.start.Add(-time.Second) // all end in the past, at any resolution of the clock
	a.sweep()
	testkit.ErrorIf(t, len(a.peers) != 0, "%d peers are left", len(a.peers))
	a.consistent(t)
}

// A peer that sends new requests under one number has no more memory than others. TestSweepTakesNoRequestAway sweeps a
// peer's log when a request arrives: requests in progress stay, and a retransmission does nothing twice.
func TestSweepTakesNoRequestAway(t *testing.T) {
	a := newAnswers(roomy(64, time.Hour))
	k := transactionKey{addr: netip.MustParseAddr("192.0.2.1").As16(), sequence: 1}
	for range 20_000 {
		p := a.peer(k.addr)
		began := make(chan beginning)
		p.lock.Lock()
		go func() {
			b, _, _ := a.begin(k, nil)
			began <- b
		}()
		runtime.Gosched()
		p.lock.Unlock()
		a.sweep()
		if <-began == fresh {
			b, _, _ := a.begin(k, nil)
			testkit.Equal(t, b, inProgress, "a request in progress comes again")
		}
		a.forget(k)
	}
}

func TestAnswersOfOneNumberAreBounded(t *testing.T) {
	a := newAnswers(roomy(64, time.Hour))
	k := transactionKey{addr: netip.MustParseAddr("192.0.2.1").As16(), port: 8805, typ: 50, sequence: 1}
	for i := range uint32(10000) {
		b, _, _ := a.begin(k, binary.BigEndian.AppendUint32(nil, i))
		testkit.FatalIf(t, b != fresh, "request %d: %d", i, b)
		a.finish(k, make([]byte, 1000))
	}
	bytes, most := a.bytes.Load(), int64(64*(1000+answerHeader)+3*answerChunk)
	testkit.ErrorIf(t, bytes > most, "%d bytes, at most %d", bytes, most)
	a.consistent(t)
}

// answer carries out one request.
func (a *answers) answer(t *testing.T, peer string, sequence uint32, answer []byte) (evicted int) {
	t.Helper()
	k := transactionKey{addr: netip.MustParseAddr(peer).As16(), port: 8805, typ: 52, sequence: sequence}
	b, _, early := a.begin(k, nil)
	testkit.FatalIf(t, b != fresh, "%s, request %d: %d", peer, sequence, b)
	return early + a.finish(k, answer)
}

func (a *answers) has(peer string, sequence uint32) bool {
	k := transactionKey{addr: netip.MustParseAddr(peer).As16(), port: 8805, typ: 52, sequence: sequence}
	b, _, _ := a.begin(k, nil)
	if b == fresh {
		a.forget(k)
	}
	return b == answered
}

// Long answers to one peer: its own oldest ones make room, each is counted, and no other peer loses one.
func TestAnswersAreBoundedInBytes(t *testing.T) {
	const most, n = 1 << 20, 1000
	a := newAnswers(answerBounds{keep: time.Hour, count: 1 << 18, most: most, total: 8 * most, other: 8})
	for i := range uint32(100) {
		a.answer(t, "192.0.2.1", i, make([]byte, 70))
	}
	evicted := 0
	for i := range uint32(n) {
		evicted += a.answer(t, "192.0.2.2", i, make([]byte, 60000))
	}
	bytes := a.bytes.Load()
	testkit.ErrorIf(t, bytes > most+2*answerChunk, "%d bytes are kept", bytes)
	for i := range uint32(100) {
		testkit.FatalIf(t, !a.has("192.0.2.1", i), "another peer lost answer %d", i)
	}
	kept := 0
	for i := range uint32(n) {
		if a.has("192.0.2.2", i) {
			kept++
		}
	}
	testkit.ErrorIf(t, kept+evicted != n || kept < 10 || !a.has("192.0.2.2", n-1),
		"%d answers are kept, %d were evicted, of %d", kept, evicted, n)
	a.consistent(t)
}

// Many peers at once: together they have the whole's bound, and each keeps its share.
func TestAnswersOfAllPeersAreBounded(t *testing.T) {
	const share, peers = 1 << 18, 8
	a := newAnswers(answerBounds{keep: time.Hour, count: 1 << 18, most: 1 << 30, total: peers * share, other: 64})
	for i := range uint32(peers) { // none of them leaves the next one room
		peer := fmt.Sprintf("192.0.2.%d", i+1)
		for n := range uint32(300) {
			a.answer(t, peer, n, make([]byte, 10000))
		}
	}
	bytes := a.bytes.Load()
	testkit.ErrorIf(t, bytes > peers*share, "%d bytes are kept", bytes)
	for i := range uint32(peers) {
		for n := uint32(290); n < 300; n++ {
			if peer := fmt.Sprintf("192.0.2.%d", i+1); !a.has(peer, n) {
				t.Errorf("%s has not kept answer %d", peer, n)
			}
		}
	}
	a.consistent(t)
}

// Endless unknown addresses: few have a log at a time, and known ones keep theirs.
func TestAnswersOfUnknownPeersAreBounded(t *testing.T) {
	a := newAnswers(answerBounds{keep: time.Hour, count: 64, most: 1 << 20, total: 1 << 24, other: 4})
	known := netip.MustParseAddr("192.0.2.1")
	a.known = func(peer netip.Addr) bool { return peer == known }
	a.answer(t, known.String(), 1, []byte{1})
	for i := range 1000 {
		a.answer(t, fmt.Sprintf("198.51.%d.%d", i/256, i%256), 1, []byte{1})
	}
	testkit.ErrorIf(t, len(a.peers) > 5, "%d peers have a log", len(a.peers))
	testkit.ErrorIf(t, !a.has(known.String(), 1), "the known peer's answer is lost")
	a.consistent(t)
}
