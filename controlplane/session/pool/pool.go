// SPDX-License-Identifier: Apache-2.0

// Package pool allocates the addresses, or prefixes of one length, of one range: for UEs (session) and for sign-in
// (lease).
package pool

import (
	"encoding/binary"
	"math"
	"math/bits"
	"net/netip"
	"time"
)

// Pool allocates the addresses, or the prefixes of one length, of a UE address pool. It gives unused ones in order
// first, then the longest released, never within the quarantine. The caller checks them against sessions, so addresses
// chosen by CP functions are safe.
type Pool struct {
	Prefix netip.Prefix
	Bits   uint8 // length of what is given out: 32, or of an IPv6 prefix
	// Remembered is how many released prefixes are kept at least, before they are reused ahead of unused ones. 0:
	// all, which fills memory for a large IPv6 pool.
	Remembered int
	first      uint64
	next       uint64
	size       uint64 // offset behind the last address or prefix
	free       []released
	head       int // first of free
	// last is the last release of each free offset: a CP function may choose an address in quarantine, and release
	// it again, any number of times
	last map[uint64]int64
}

type released struct {
	offset uint64
	at     int64 // Stamp
}

// New makes a pool that gives out prefixes of a length: 32, or of IPv6.
func New(prefix netip.Prefix, length uint8) *Pool {
	p := &Pool{Prefix: prefix.Masked(), Bits: length, last: map[uint64]int64{}}
	width := int(length) - prefix.Bits()
	if width < 0 {
		return p
	}
	p.size = 1 << min(width, 62)
	if prefix.Addr().Is4() && width >= 2 { // neither the network's own address nor the broadcast address
		p.first, p.next, p.size = 1, 1, p.size-1
	}
	return p
}

// NewRange makes a pool that gives out the part of a network from first to last, both of its length.
func NewRange(network, first, last netip.Prefix) *Pool {
	p := New(network, uint8(first.Bits()))
	from, ok := p.Number(first)
	to, also := p.Number(last)
	if !ok || !also || to < from {
		return &Pool{Prefix: p.Prefix, Bits: p.Bits, last: p.last}
	}
	p.first, p.next, p.size = max(p.first, from), max(p.first, from), min(p.size, to+1)
	return p
}

// Holds: the pool contains the prefix; n is its number, unique in the pool's network.
func (p *Pool) Holds(v netip.Prefix) (n uint64, ok bool) {
	n, ok = p.Number(v)
	return n, ok && n >= p.first && n < p.size
}

// At is the n-th prefix of the pool.
func (p *Pool) At(n uint64) netip.Prefix {
	if p.Prefix.Addr().Is4() {
		a := p.Prefix.Addr().As4()
		binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(a[:])+uint32(n))
		return netip.PrefixFrom(netip.AddrFrom4(a), 32)
	}
	a := p.Prefix.Addr().As16()
	hi, lo := binary.BigEndian.Uint64(a[:8]), binary.BigEndian.Uint64(a[8:])
	shift := 128 - uint(p.Bits)
	var addHi, addLo uint64
	if shift >= 64 {
		addHi = n << (shift - 64)
	} else {
		addLo, addHi = n<<shift, n>>(64-shift)
		if shift == 0 {
			addHi = 0
		}
	}
	lo, carry := bits.Add64(lo, addLo, 0)
	hi, _ = bits.Add64(hi, addHi, carry)
	binary.BigEndian.PutUint64(a[:8], hi)
	binary.BigEndian.PutUint64(a[8:], lo)
	return netip.PrefixFrom(netip.AddrFrom16(a), int(p.Bits))
}

// Number is the inverse of At; false for addresses outside of the pool.
func (p *Pool) Number(v netip.Prefix) (uint64, bool) {
	if v.Bits() != int(p.Bits) || !p.Prefix.Contains(v.Addr()) {
		return 0, false
	}
	if v.Addr().Is4() {
		a, base := v.Addr().As4(), p.Prefix.Addr().As4()
		return uint64(binary.BigEndian.Uint32(a[:]) - binary.BigEndian.Uint32(base[:])), true
	}
	a, base := v.Addr().As16(), p.Prefix.Addr().As16()
	hi := binary.BigEndian.Uint64(a[:8])
	lo, borrow := bits.Sub64(binary.BigEndian.Uint64(a[8:]), binary.BigEndian.Uint64(base[8:]), 0)
	hi, _ = bits.Sub64(hi, binary.BigEndian.Uint64(base[:8]), borrow)
	if shift := 128 - uint(p.Bits); shift >= 64 {
		return hi >> (shift - 64), true
	} else if shift > 0 {
		return lo>>shift | hi<<(64-shift), true
	}
	return lo, true
}

// Take returns a prefix that live does not report; fresh: it was never given out before.
func (p *Pool) Take(now time.Time, quarantine time.Duration, live func(netip.Prefix) bool) (v netip.Prefix, ok bool) {
	if p.Remembered > 0 && p.Quarantined() > p.Remembered {
		if v, ok = p.again(now, quarantine, live); ok {
			return v, true
		}
	}
	for p.next < p.size {
		n := p.next
		p.next++
		if _, waits := p.last[n]; waits { // it was named, and released: again has it
			continue
		}
		if v = p.At(n); !live(v) {
			return v, true
		}
	}
	return p.again(now, quarantine, live)
}

// again is the prefix released first, if its quarantine is over.
func (p *Pool) again(now time.Time, quarantine time.Duration, live func(netip.Prefix) bool) (v netip.Prefix, ok bool) {
	for p.head < len(p.free) && Stamp(now)-p.free[p.head].at >= int64(quarantine) {
		first := p.free[p.head]
		p.head++
		if last := p.last[first.offset]; last != first.at { // it was in use again since
			p.free = append(p.free, released{first.offset, last})
			continue
		}
		v = p.At(first.offset)
		delete(p.last, first.offset)
		if p.head > 1024 && p.head*2 > len(p.free) {
			p.free = append(p.free[:0], p.free[p.head:]...)
			p.head = 0
		}
		if !live(v) {
			return v, true
		}
	}
	return netip.Prefix{}, false
}

// Untake gives back a prefix of a failed request: it was never in use.
func (p *Pool) Untake(v netip.Prefix) {
	if n, ok := p.Number(v); ok {
		if n+1 == p.next {
			p.next = n
			return
		}
		if _, there := p.last[n]; there {
			return
		}
		p.last[n] = longAgo
		p.free = append(p.free, released{n, longAgo})
		// It goes before those in quarantine.
		last := len(p.free) - 1
		p.free[last], p.free[p.head] = p.free[p.head], p.free[last]
	}
}

// epoch is what stamps count from.
var epoch = time.Now()

const longAgo = math.MinInt64 / 2 // no quarantine

// Stamp is a moment in nanoseconds of a clock that NTP does not put back, if t is of time.Now.
func Stamp(t time.Time) int64 { return int64(t.Sub(epoch)) }

// Rests: a prefix was released less than the quarantine ago.
func (p *Pool) Rests(v netip.Prefix, now time.Time, quarantine time.Duration) bool {
	n, _ := p.Number(v)
	at, released := p.last[n]
	return released && Stamp(now)-at < int64(quarantine)
}

// Fresh: releasing the prefix would exceed Remembered.
func (p *Pool) Fresh(v netip.Prefix) bool {
	n, _ := p.Number(v)
	_, released := p.last[n]
	return n >= p.next && !released && p.Quarantined() > p.Remembered
}

// Release takes back a session's prefix. Without Remembered, the cursor reaches prefixes ahead of it in time.
func (p *Pool) Release(v netip.Prefix, now time.Time) {
	if n, ok := p.Holds(v); ok && (n < p.next || p.Remembered > 0) {
		at := Stamp(now)
		if _, there := p.last[n]; !there {
			p.free = append(p.free, released{n, at})
		}
		p.last[n] = at
	}
}

// Quarantined is how many wait to be given out again.
func (p *Pool) Quarantined() int { return len(p.free) - p.head }

// Use returns how many prefixes are given out, of how many. Those chosen by CP functions do not count.
func (p *Pool) Use() (used, size uint64) { return p.next - uint64(p.Quarantined()), p.size }

// Size is how many prefixes there are to give out.
func (p *Pool) Size() uint64 { return p.size - p.first }

// Bounds are the numbers that are given out, the second is behind the last.
func (p *Pool) Bounds() (first, end uint64) { return p.first, p.size }
