// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"isthmus/controlplane/internal/pfcp"
)

// Whatever comes, ends, is asked again, forgotten or driven out: an answer that is given is the one of that request.
func TestAnswersAreThoseOfTheirRequests(t *testing.T) {
	a := newAnswers(4096, time.Hour)
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
			if known && !was.done {
				t.Fatal("a request in progress was begun anew")
			}
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
			if !known || was.done {
				t.Fatal("in progress, but it ended")
			}
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
	if hits < 1000 {
		t.Errorf("only %d answers were given again: a poor test", hits)
	}
	size := 0
	for i := range a.shards {
		size += len(a.shards[i].open) + len(a.shards[i].known)
	}
	if int64(size) != a.size.Load() {
		t.Errorf("%d are there, %d are counted", size, a.size.Load())
	}
}

// What is expired is memory no more, and a chunk is used again.
func TestAnswersGiveMemoryBack(t *testing.T) {
	a := newAnswers(1<<20, 0)
	for i := range uint32(50000) {
		k := transactionKey{sequence: i}
		if b, _, _ := a.begin(k, nil); b != fresh {
			t.Fatal("not fresh")
		}
		a.finish(k, make([]byte, 70))
	}
	a.start = a.start.Add(-time.Second) // all end in the past, whatever the clock's resolution
	a.sweep()
	for i := range a.shards {
		if l := &a.shards[i].log; len(l.chunks) != 0 || len(a.shards[i].known) != 0 {
			t.Fatalf("%d chunks, %d answers are left", len(l.chunks), len(a.shards[i].known))
		}
	}
	if n := a.size.Load(); n != 0 {
		t.Errorf("%d are counted", n)
	}
}

// A peer that sends ever new requests under one number has no more memory than others.
func TestAnswersOfOneNumberAreBounded(t *testing.T) {
	a := newAnswers(64*answerShards, time.Hour)
	k := transactionKey{addr: netip.MustParseAddr("192.0.2.1").As16(), port: 8805, typ: 50, sequence: 1}
	for i := range uint32(10000) {
		if b, _, _ := a.begin(k, binary.BigEndian.AppendUint32(nil, i)); b != fresh {
			t.Fatalf("request %d: %d", i, b)
		}
		a.finish(k, make([]byte, 1000))
	}
	bytes := 0
	for _, c := range a.shard(k).log.chunks {
		bytes += cap(c)
	}
	if most := 64*(1000+answerHeader) + 3*answerChunk; bytes > most {
		t.Errorf("%d bytes, at most %d", bytes, most)
	}
}
