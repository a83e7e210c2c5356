// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/controlplane/internal/pfcp"
)

// transactionKey names a request that came in: peer, our address, sequence, type (TS 29.244 §6.4). It holds no pointer, so
// that the garbage collector need not look into the map's keys.
type transactionKey struct {
	addr     [16]byte
	port     uint16
	socket   uint8
	typ      pfcp.MessageType
	sequence uint32
}

func keyOf(k *socket, from netip.AddrPort, h pfcp.Header) transactionKey {
	return transactionKey{from.Addr().As16(), from.Port(), k.index, h.Type, h.Sequence}
}

const answerShards = 16

// answers remembers requests in progress, and answers for as long as the peer may repeat its request.
type answers struct {
	keep   time.Duration
	seed   maphash.Seed
	shards [answerShards]answerShard
	size   atomic.Int64
}

// answerShard: lock guards all of it. done holds the answered ones in the order of their end, which is that of their expiry.
type answerShard struct {
	lock  sync.Mutex
	known map[transactionKey]*transaction
	done  []*transaction // a queue: head is the first live one
	head  int
	limit int
}

type transaction struct {
	key     transactionKey
	digest  uint64 // of the request
	answer  []byte // nil: in progress
	expires time.Time
}

func newAnswers(limit int, keep time.Duration) *answers {
	a := &answers{keep: keep, seed: maphash.MakeSeed()}
	for i := range a.shards {
		a.shards[i].known = make(map[transactionKey]*transaction)
		a.shards[i].limit = max(limit/answerShards, 1)
	}
	return a
}

func (a *answers) shard(k transactionKey) *answerShard {
	return &a.shards[(k.sequence^uint32(k.port))%answerShards]
}

type beginning uint8

const (
	fresh      beginning = iota // new: the caller answers, or forgets it
	inProgress                  // a retransmission that will be answered
	answered                    // a retransmission; the answer is returned
	full                        // too many are in progress
)

// begin registers a request. evicted says that another's answer made room before its time. Another request under the number
// of one that is answered is no retransmission: a peer that restarted counts from the start again.
func (a *answers) begin(k transactionKey, request []byte) (b beginning, answer []byte, evicted bool) {
	sh := a.shard(k)
	digest := maphash.Bytes(a.seed, request)
	sh.lock.Lock()
	defer sh.lock.Unlock()
	a.expire(sh, time.Now())
	if t := sh.known[k]; t != nil {
		switch {
		case t.answer == nil:
			return inProgress, nil, false
		case t.digest == digest:
			return answered, t.answer, false
		}
		a.remove(sh, t)
	}
	if len(sh.known) >= sh.limit {
		if !a.evict(sh) {
			return full, nil, false
		}
		evicted = true
	}
	sh.known[k] = &transaction{key: k, digest: digest}
	a.size.Add(1)
	return fresh, nil, evicted
}

// finish keeps the answer.
func (a *answers) finish(k transactionKey, answer []byte) {
	sh := a.shard(k)
	sh.lock.Lock()
	defer sh.lock.Unlock()
	if t := sh.known[k]; t != nil && t.answer == nil {
		t.answer = answer
		t.expires = time.Now().Add(a.keep)
		sh.done = append(sh.done, t)
	}
}

// forget makes a request in progress unknown: its retransmission is tried anew.
func (a *answers) forget(k transactionKey) {
	sh := a.shard(k)
	sh.lock.Lock()
	defer sh.lock.Unlock()
	if t := sh.known[k]; t != nil && t.answer == nil {
		a.remove(sh, t)
	}
}

// forgetPeer drops the answers to an address: its CP function begins anew, and may repeat itself to the byte.
func (a *answers) forgetPeer(addr netip.Addr) {
	from := addr.As16()
	for i := range a.shards {
		sh := &a.shards[i]
		sh.lock.Lock()
		for _, t := range sh.done[sh.head:] {
			if t.key.addr == from {
				a.remove(sh, t)
			}
		}
		sh.lock.Unlock()
	}
}

// remove makes a transaction unknown; in the queue it stays until its time.
func (a *answers) remove(sh *answerShard, t *transaction) {
	if sh.known[t.key] == t {
		delete(sh.known, t.key)
		a.size.Add(-1)
	}
}

// evict makes room; false: all are in progress.
func (a *answers) evict(sh *answerShard) bool {
	for before := len(sh.known); len(sh.known) == before; a.drop(sh) {
		if sh.head == len(sh.done) {
			return false
		}
	}
	return true
}

func (a *answers) expire(sh *answerShard, now time.Time) {
	for sh.head < len(sh.done) && sh.done[sh.head].expires.Before(now) {
		a.drop(sh)
	}
}

func (a *answers) drop(sh *answerShard) {
	a.remove(sh, sh.done[sh.head])
	sh.done[sh.head] = nil
	sh.head++
	if sh.head*2 > len(sh.done) && sh.head > 64 || sh.head == len(sh.done) {
		sh.done = append(sh.done[:0], sh.done[sh.head:]...)
		sh.head = 0
	}
}

// sweep drops what expired while nothing came in.
func (a *answers) sweep() {
	now := time.Now()
	for i := range a.shards {
		sh := &a.shards[i]
		sh.lock.Lock()
		a.expire(sh, now)
		sh.lock.Unlock()
	}
}
