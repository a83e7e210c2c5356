// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"bytes"
	"hash/maphash"
	"math"
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

// answers remembers requests in progress, and answers for as long as the peer may repeat its request. At 10,000 requests a
// second that is 300,000 answers, so they are kept as bytes in a log, without a pointer to each: 150 bytes for an
// establishment, of which its answer is 70.
type answers struct {
	keep   time.Duration
	seed   maphash.Seed
	start  time.Time // what expires is counted from here
	shards [answerShards]answerShard
	size   atomic.Int64
}

// answerShard: lock guards all of it. The log has the answers in the order of their end, which is that of their expiry; known
// is where in it, by the hash of the key. Of two keys with one hash (that nobody can choose) the later answer is kept.
type answerShard struct {
	lock  sync.Mutex
	open  map[transactionKey]uint64 // in progress: digest of the request
	known map[uint64]place
	log   answerLog
	limit int
}

// kept is an answer in the log.
type kept struct {
	key     transactionKey
	digest  uint64 // of the request
	expires int64
	answer  []byte
}

func newAnswers(limit int, keep time.Duration) *answers {
	a := &answers{keep: keep, seed: maphash.MakeSeed(), start: time.Now()}
	for i := range a.shards {
		sh := &a.shards[i]
		sh.open, sh.known = make(map[transactionKey]uint64), make(map[uint64]place)
		sh.limit = max(limit/answerShards, 1)
	}
	return a
}

func (a *answers) shard(k transactionKey) *answerShard {
	return &a.shards[(k.sequence^uint32(k.port))%answerShards]
}

func (a *answers) now() int64 { return int64(time.Since(a.start)) }

func (a *answers) hash(k transactionKey) uint64 { return maphash.Comparable(a.seed, k) }

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
	hash := a.hash(k)
	sh.lock.Lock()
	defer sh.lock.Unlock()
	a.expire(sh)
	if _, there := sh.open[k]; there {
		return inProgress, nil, false
	}
	if at, there := sh.known[hash]; there {
		if t := sh.log.at(at); t.key == k {
			if t.digest == digest {
				return answered, bytes.Clone(t.answer), false // the log's memory is used again
			}
			a.remove(sh, hash, at)
		}
	}
	// What the log holds counts, also answers that are not known any more: a peer that uses one number for ever new requests would
	// else fill the memory.
	for len(sh.open)+sh.log.count >= sh.limit {
		before := len(sh.known)
		if !a.drop(sh, math.MaxInt64) {
			return full, nil, evicted
		}
		evicted = evicted || len(sh.known) < before
	}
	sh.open[k] = digest
	a.size.Add(1)
	return fresh, nil, evicted
}

// finish keeps the answer, which stays the caller's.
func (a *answers) finish(k transactionKey, answer []byte) {
	sh := a.shard(k)
	hash := a.hash(k)
	sh.lock.Lock()
	defer sh.lock.Unlock()
	digest, there := sh.open[k]
	if !there {
		return
	}
	delete(sh.open, k)
	if _, there := sh.known[hash]; there {
		a.size.Add(-1)
	}
	sh.known[hash] = sh.log.add(&kept{k, digest, a.now() + int64(a.keep), answer})
}

// forget makes a request in progress unknown: its retransmission is tried anew.
func (a *answers) forget(k transactionKey) {
	sh := a.shard(k)
	sh.lock.Lock()
	defer sh.lock.Unlock()
	if _, there := sh.open[k]; there {
		delete(sh.open, k)
		a.size.Add(-1)
	}
}

// forgetPeer drops the answers to an address: its CP function begins anew, and may repeat itself to the byte.
func (a *answers) forgetPeer(addr netip.Addr) {
	from := addr.As16()
	for i := range a.shards {
		sh := &a.shards[i]
		sh.lock.Lock()
		for hash, at := range sh.known {
			if sh.log.at(at).key.addr == from {
				a.remove(sh, hash, at)
			}
		}
		sh.lock.Unlock()
	}
}

// remove makes an answer unknown, if it is the one under its hash; in the log it stays until its time.
func (a *answers) remove(sh *answerShard, hash uint64, at place) {
	if now, there := sh.known[hash]; there && now == at {
		delete(sh.known, hash)
		a.size.Add(-1)
	}
}

func (a *answers) expire(sh *answerShard) {
	for now := a.now(); a.drop(sh, now); {
	}
}

// drop takes the first answer out of the log when it ends before now; false: there is none.
func (a *answers) drop(sh *answerShard, now int64) bool {
	at, t, ok := sh.log.first()
	if !ok || t.expires >= now {
		return false
	}
	a.remove(sh, a.hash(t.key), at)
	sh.log.drop()
	return true
}

// sweep drops what expired while nothing came in.
func (a *answers) sweep() {
	for i := range a.shards {
		sh := &a.shards[i]
		sh.lock.Lock()
		a.expire(sh)
		if len(sh.known)+len(sh.open) == 0 { // maps do not shrink by themselves
			sh.known, sh.open = make(map[uint64]place), make(map[transactionKey]uint64)
		}
		sh.lock.Unlock()
	}
}
