// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"isthmus/controlplane/cputest"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
)

func ueOf(prefix netip.Prefix) rules.UEAddress {
	return rules.UEAddress{Instance: "internet", Prefix: prefix}
}

func slash64(n int) netip.Prefix {
	a := [16]byte{0x20, 0x01}
	binary.BigEndian.PutUint32(a[4:], uint32(n))
	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}

// manyPrefixes has n sessions with a /64 each, and one with a longer prefix.
func manyPrefixes(n int) *index {
	x := newIndex(testSettings())
	for i := range n {
		x.add(uint64(i+1), &rules.Compiled{UEs: []rules.UEAddress{ueOf(slash64(i))}})
	}
	x.add(uint64(n+1), &rules.Compiled{UEs: []rules.UEAddress{ueOf(netip.MustParsePrefix("2001:0:ffff:ffff:1::/80"))}})
	return x
}

// One session with a prefix longer than /64 does not make others' establishments slow.
func TestLongPrefixCostsOthersNothing(t *testing.T) {
	const n, asked = 100000, 10000
	x := manyPrefixes(n)
	cputest.Bound(t, 2*time.Second, "look-ups of UE prefixes", func() {
		for i := range asked {
			seid, used := x.ueOwner(ueOf(slash64(n + i)))
			testkit.FatalIf(t, used, "a free prefix is %x's", seid)
		}
	})
}

// For any lengths the answer equals a search of all prefixes.
func TestUEPrefixesOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	random := func() rules.UEAddress { // few bits differ, so that prefixes meet
		a := [16]byte{0x20, 0x01, 15: byte(r.UintN(4))}
		a[5], a[7], a[9] = byte(r.UintN(3)), byte(r.UintN(4))<<6, byte(r.UintN(3))
		u := ueOf(netip.PrefixFrom(netip.AddrFrom16(a), []int{48, 56, 60, 64, 64, 64, 66, 80, 128}[r.IntN(9)]).Masked())
		if r.IntN(8) == 0 {
			u.Instance = "ims"
		}
		u.Framed = r.IntN(8) == 0
		return u
	}
	x := newIndex(testSettings())
	held := map[rules.UEAddress]uint64{}
	for i := range 20000 {
		u := random()
		var want []uint64
		for other, seid := range held {
			if other.Instance == u.Instance && other.Framed == u.Framed &&
				(other == u || !u.Framed && other.Prefix.Overlaps(u.Prefix)) {
				want = append(want, seid)
			}
		}
		got, used := x.ueOwner(u)
		testkit.FatalIf(t, used != (len(want) > 0), "%v: %x %v, held by %x", u, got, used, want)
		ok := !used
		for _, seid := range want {
			ok = ok || seid == got
		}
		testkit.FatalIf(t, !ok, "%v is %x's, held by %x", u, got, want)
		one := &rules.Compiled{UEs: []rules.UEAddress{u}}
		switch {
		case !used:
			held[u] = uint64(i + 1)
			x.add(uint64(i+1), one)
		case held[u] != 0:
			x.remove(held[u]+1, one) // not its own: nothing happens
			x.remove(held[u], one)
			delete(held, u)
		}
	}
	testkit.FatalIf(t, len(held) < 5, "only %d prefixes are held at the end", len(held))
}

// BenchmarkUEPrefix is the look-up that each establishment with IPv6 makes.
func BenchmarkUEPrefix(b *testing.B) {
	const n = 500000
	x := manyPrefixes(n)
	b.ResetTimer()
	for i := range b.N {
		if _, used := x.ueOwner(ueOf(slash64(n + i%n))); used {
			b.Fatalf("a free prefix is used")
		}
	}
}

func (p prefixes) size() (n int) {
	for _, t := range p {
		n += t.Size()
	}
	return n
}

// String is what is held, in an order of its own.
func (p prefixes) String() string {
	var rows []string
	for kind, t := range p {
		for prefix, seid := range t.All() {
			rows = append(rows, fmt.Sprint(kind, prefix, seid))
		}
	}
	slices.Sort(rows)
	return fmt.Sprint(rows)
}
