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

	"isthmus/controlplane/pfcp"
)

// transactionKey names a request that came in: peer, our address, sequence, type (TS 29.244 §6.4). It holds no pointer,
// so that the garbage collector need not look into the map's keys.
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

// answers holds requests in progress, and answers for as long as the peer may repeat its request. At 10,000 requests a
// second those are 300,000. So they are bytes in a log without pointers: 150 bytes an establishment, of which the
// answer is 70. Each peer's log is bounded in answers and bytes; a peer with long answers (usage reports) loses its own
// oldest ones.
type answers struct {
	answerBounds
	seed  maphash.Seed
	start time.Time // what expires is counted from here
	known func(peer netip.Addr) bool
	lock  sync.RWMutex // of peers
	peers map[[16]byte]*peerAnswers
	size  atomic.Int64 // answers and requests in progress
	bytes atomic.Int64 // of all logs
}

// answerBounds are for each peer and, in bytes, for all together.
type answerBounds struct {
	keep  time.Duration
	count int   // of one peer, requests in progress included
	most  int64 // bytes of one peer
	total int64 // bytes of all
	other int   // addresses that have a log, beside those that are known
}

// peerAnswers is guarded by lock. The log has the answers in the order of their expiry; known is the place in it, by
// the hash of the key. Of two keys with one hash (which a peer cannot choose) the later answer is kept.
type peerAnswers struct {
	lock  sync.Mutex
	open  map[transactionKey]uint64 // in progress: digest of the request
	known map[uint64]place
	log   answerLog
	bytes atomic.Int64 // of the log; the lock is for writers
	used  atomic.Int64 // when a request came last
}

// kept is an answer in the log.
type kept struct {
	key     transactionKey
	digest  uint64 // of the request
	expires int64
	answer  []byte
}

func newAnswers(bounds answerBounds) *answers {
	return &answers{answerBounds: bounds, seed: maphash.MakeSeed(), start: time.Now(),
		peers: map[[16]byte]*peerAnswers{},
		known: func(netip.Addr) bool { return false }}
}

func (a *answers) now() int64 { return int64(time.Since(a.start)) }

func (a *answers) hash(k transactionKey) uint64 { return maphash.Comparable(a.seed, k) }

func (a *answers) find(addr [16]byte) *peerAnswers {
	a.lock.RLock()
	defer a.lock.RUnlock()
	return a.peers[addr]
}

// peer creates the log of an address. Of unknown peers the one silent longest makes room: without configuration,
// requests may come from any number of addresses.
func (a *answers) peer(addr [16]byte) *peerAnswers {
	if p := a.find(addr); p != nil {
		return p
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	p := a.peers[addr]
	if p != nil {
		return p
	}
	var silent [16]byte
	others, oldest := 0, int64(math.MaxInt64)
	for other, q := range a.peers {
		if !a.known(netip.AddrFrom16(other).Unmap()) {
			others++
			if at := q.used.Load(); at < oldest {
				silent, oldest = other, at
			}
		}
	}
	if others >= a.other && others > 0 {
		q := a.peers[silent]
		q.lock.Lock()
		a.leave(silent, q)
		q.lock.Unlock()
	}
	p = &peerAnswers{open: make(map[transactionKey]uint64), known: make(map[uint64]place)}
	a.peers[addr] = p
	return p
}

// leave forgets a peer. The caller holds the lock of peers, and the peer's since it decided so: begin may have found
// the peer before, and wait for that lock.
func (a *answers) leave(addr [16]byte, p *peerAnswers) {
	a.size.Add(-int64(len(p.open) + len(p.known)))
	p.open, p.known, p.log = nil, nil, answerLog{} // a holder of p finds nothing, and stores nothing in it
	a.weigh(p)
	delete(a.peers, addr)
}

type beginning uint8

const (
	fresh      beginning = iota // new: the caller answers, or forgets it
	inProgress                  // a retransmission that will be answered
	answered                    // a retransmission; the answer is returned
	full                        // too many are in progress
)

// begin registers a request. evicted is how many answers were removed early. A different request under an answered
// number is no retransmission: a restarted peer counts from the start.
func (a *answers) begin(k transactionKey, request []byte) (b beginning, answer []byte, evicted int) {
	digest := maphash.Bytes(a.seed, request)
	hash := a.hash(k)
	p := a.peer(k.addr)
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.open == nil { // it left in this moment
		return full, nil, 0
	}
	p.used.Store(a.now())
	a.expire(p)
	if _, there := p.open[k]; there {
		return inProgress, nil, 0
	}
	if at, there := p.known[hash]; there {
		if t := p.log.at(at); t.key == k {
			if t.digest == digest {
				return answered, bytes.Clone(t.answer), 0 // the log's memory is used again
			}
			a.remove(p, hash, at)
		}
	}
	// All answers in the log count, also unknown ones: a peer that reuses one number for new requests would fill
	// the memory.
	for len(p.open)+p.log.count >= a.count {
		n, more := a.evict(p)
		if evicted += n; !more {
			return full, nil, evicted
		}
	}
	p.open[k] = digest
	a.size.Add(1)
	return fresh, nil, evicted
}

// finish keeps the answer, which stays the caller's. It returns how many others made room before their time.
func (a *answers) finish(k transactionKey, answer []byte) (evicted int) {
	evicted = a.add(k, answer)
	return evicted + a.shrink()
}

func (a *answers) add(k transactionKey, answer []byte) (evicted int) {
	p := a.find(k.addr)
	if p == nil {
		return 0
	}
	hash := a.hash(k)
	p.lock.Lock()
	defer p.lock.Unlock()
	digest, there := p.open[k]
	if !there {
		return 0
	}
	delete(p.open, k)
	if _, there := p.known[hash]; there {
		a.size.Add(-1)
	}
	p.known[hash] = p.log.add(&kept{k, digest, a.now() + int64(a.keep), answer})
	a.weigh(p)
	for p.log.count > 1 && p.log.bytes > a.most {
		n, _ := a.evict(p)
		evicted += n
	}
	return evicted
}

// shrink makes the peers with the most bytes give up their oldest answers until the total is within its bound.
func (a *answers) shrink() (evicted int) {
	for a.bytes.Load() > a.total {
		var most *peerAnswers
		a.lock.RLock()
		for _, p := range a.peers {
			if most == nil || p.bytes.Load() > most.bytes.Load() {
				most = p
			}
		}
		a.lock.RUnlock()
		if most == nil {
			break
		}
		most.lock.Lock()
		for before := most.log.bytes; most.log.bytes == before; {
			n, more := a.evict(most)
			if evicted += n; !more {
				break
			}
		}
		most.lock.Unlock()
	}
	return evicted
}

// forget makes a request in progress unknown: its retransmission is a new request.
func (a *answers) forget(k transactionKey) {
	p := a.find(k.addr)
	if p == nil {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	if _, there := p.open[k]; there {
		delete(p.open, k)
		a.size.Add(-1)
	}
}

// forgetPeer drops the answers to an address: its CP function has restarted, and may send identical requests.
func (a *answers) forgetPeer(addr netip.Addr) {
	p := a.find(addr.As16())
	if p == nil {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	for a.drop(p, math.MaxInt64) {
	}
}

// remove makes an answer unknown, if it is the one under its hash; it stays in the log until its expiry.
func (a *answers) remove(p *peerAnswers, hash uint64, at place) {
	if now, there := p.known[hash]; there && now == at {
		delete(p.known, hash)
		a.size.Add(-1)
	}
}

func (a *answers) expire(p *peerAnswers) {
	for now := a.now(); a.drop(p, now); {
	}
}

// evict removes the log's first answer early; false: the log is empty. n is 0 for an answer that was already
// unreachable.
func (a *answers) evict(p *peerAnswers) (n int, more bool) {
	before := len(p.known)
	more = a.drop(p, math.MaxInt64)
	return before - len(p.known), more
}

// drop takes the first answer out of the log when it ends before now; false: none.
func (a *answers) drop(p *peerAnswers, now int64) bool {
	at, t, ok := p.log.first()
	if !ok || t.expires >= now {
		return false
	}
	a.remove(p, a.hash(t.key), at)
	p.log.drop()
	a.weigh(p)
	return true
}

// weigh counts what a peer's log takes now.
func (a *answers) weigh(p *peerAnswers) { a.bytes.Add(p.log.bytes - p.bytes.Swap(p.log.bytes)) }

// sweep drops expired answers of silent peers, and empty peers.
func (a *answers) sweep() {
	a.lock.Lock()
	defer a.lock.Unlock()
	for addr, p := range a.peers {
		p.lock.Lock()
		a.expire(p)
		if len(p.known)+len(p.open) == 0 { // maps do not shrink by themselves
			a.leave(addr, p)
		}
		p.lock.Unlock()
	}
}
