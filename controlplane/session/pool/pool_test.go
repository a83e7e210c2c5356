// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"net/netip"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

func TestPoolArithmetic(t *testing.T) {
	for _, c := range []struct {
		prefix string
		bits   uint8
	}{{"10.0.0.0/8", 32}, {"192.0.2.128/25", 32}, {"2001:db8::/32", 64}, {"2001:db8::/48", 56}, {"2001:db8:0:1::/64",
		96}, {"2001:db8::/120", 128}} {
		p := New(netip.MustParsePrefix(c.prefix), c.bits)
		for _, n := range []uint64{0, 1, 2, 77, p.size / 2, p.size - 1} {
			v := p.At(n)
			if back, ok := p.Number(v); !ok || back != n || !p.Prefix.Overlaps(v) || v != v.Masked() {
				t.Errorf("%s: %d is %v is %d", c.prefix, n, v, back)
			}
		}
	}
}

// An address that was in use again is quarantined from its last release.
func TestQuarantineAfresh(t *testing.T) {
	p := New(netip.MustParsePrefix("10.0.0.0/30"), 32)
	now := time.Unix(1000, 0)
	none := func(netip.Prefix) bool { return false }
	one, _ := p.Take(now, time.Minute, none)
	two, _ := p.Take(now, time.Minute, none)
	p.Release(one, now)
	p.Release(two, now.Add(10*time.Second))
	p.Release(one, now.Add(30*time.Second))
	if v, ok := p.Take(now.Add(61*time.Second), time.Minute, none); ok {
		t.Errorf("%v too early", v)
	}
	if v, ok := p.Take(now.Add(71*time.Second), time.Minute, none); !ok || v != two {
		t.Errorf("%v %v", v, ok)
	}
	if v, ok := p.Take(now.Add(91*time.Second), time.Minute, none); !ok || v != one {
		t.Errorf("%v %v", v, ok)
	}
	testkit.ErrorIf(t, len(p.last) != p.Quarantined(), "%d times of %d", len(p.last), p.Quarantined())
}

// NTP puts the clock back by an hour: the quarantine of a minute is no longer for that.
func TestClockPutBack(t *testing.T) {
	p := New(netip.MustParsePrefix("10.0.0.0/30"), 32)
	now := time.Now()
	v, _ := p.Take(now, time.Minute, func(netip.Prefix) bool { return false })
	p.Release(v, now)
	testkit.ErrorIf(t, !p.Rests(v, now.Add(time.Second), time.Minute), "it does not rest")
	later := testkit.PutBack(now.Add(time.Minute), 3600)
	testkit.FatalIf(t, later.Unix() >= now.Unix(), "the clock was not put back")
	testkit.ErrorIf(t, p.Rests(v, later, time.Minute), "it rests for an hour")
}
