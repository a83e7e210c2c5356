// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

type world struct {
	*Pools
	now    time.Time
	events []Event
}

func pools(t testing.TB, pools ...config.AddressPool) *world {
	w := &world{now: time.Unix(1_000_000, 0)}
	w.Pools = New(Options{Now: func() time.Time { return w.now },
		Event: func(e Event) { w.events = append(w.events, e) }})
	w.Configure(pools)
	return w
}

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func network(s string) config.Prefix { return config.Prefix{Prefix: prefix(s)} }

func span(first, last string) config.AddressRange {
	return config.AddressRange{First: addr(first), Last: addr(last)}
}

func user(n int) Who { return Who{User: fmt.Sprint("u", n)} }

var four = config.AddressPool{Name: "four", Prefix: network("192.0.2.0/29"), Length: 32,
	Gateway: config.Address{Addr: addr("192.0.2.1")},
	Hold:    time.Minute, Excluded: []config.AddressRange{span("192.0.2.3", "192.0.2.3")},
	Reservations: []config.Reservation{{User: "boss", Address: config.Address{Addr: addr("192.0.2.6")}}}}

func (w *world) take(t testing.TB, pool string, who Who) netip.Prefix {
	t.Helper()
	l, err := w.Take(pool, who, netip.Addr{})
	testkit.Must(t, err)
	return l.Prefix
}

func TestOrder(t *testing.T) {
	w := pools(t, four)
	for i, want := range []string{"192.0.2.2/32", "192.0.2.4/32", "192.0.2.5/32"} {
		testkit.Equal(t, w.take(t, "four", user(i)), prefix(want), "next")
	}
	_, err := w.Take("four", user(9), netip.Addr{})
	testkit.ErrorIf(t, err == nil || !strings.Contains(err.Error(), "nothing free: 3 of 4 in use"), "full: %v", err)
	l, err := w.Take("four", Who{User: "boss"}, netip.Addr{})
	testkit.Must(t, err)
	testkit.Equal(t, fmt.Sprint(l), "{four 192.0.2.6/32 192.0.2.1 29 []}", "reserved")
	w.Release("", prefix("192.0.2.4/32"))
	w.now = w.now.Add(10 * time.Second)
	w.Release("", prefix("192.0.2.2/32"))
	if _, err = w.Take("four", user(9), netip.Addr{}); err == nil {
		t.Error("given out within its hold time")
	}
	w.now = w.now.Add(51 * time.Second)
	testkit.Equal(t, w.take(t, "four", user(9)), prefix("192.0.2.4/32"), "longest free")
	testkit.Equal(t, w.take(t, "four", user(0)), prefix("192.0.2.2/32"), "own again within hold time")
}

func TestThis(t *testing.T) {
	w := pools(t, four, config.AddressPool{Name: "pd", Prefix: network("2001:db8::/40"), Length: 56},
		config.AddressPool{Name: "other", Instance: "vrf", Prefix: network("192.0.2.0/24"), Length: 32})
	for _, c := range []struct{ instance, prefix, why string }{
		{"", "192.0.2.3/32", ""}, // excluded from what is given out unasked
		{"", "192.0.2.3/32", "192.0.2.3 is in use"},
		{"vrf", "192.0.2.3/32", ""},
		{"", "192.0.2.1/32", "our own address"},
		{"", "192.0.2.0/32", "network or broadcast"},
		{"", "192.0.2.7/32", "network or broadcast"},
		{"", "198.51.100.7/32", ""},
		{"", "198.51.100.7/32", "in use"},
		{"", "198.51.100.0/24", "in use"},
		{"", "192.0.0.0/16", "holds a pool"},
		{"", "2001:db8:0:100::/56", ""},
		{"", "2001:db8:0:180::/60", "in use"},
		{"", "2001:db8::/48", "more than the /56"},
		{"", "2001:db8:0:200::/60", ""},
		{"", "2001:db8:0:200::/56", "in use"},
		{"", "224.0.0.1/32", "nobody's"}, {"", "0.0.0.0/0", "nobody's"}, {"", "255.255.255.255/32", "nobody's"},
		{"", "127.0.0.1/32", "nobody's"}, {"", "10.0.0.1/24", "nobody's"}, {"", "fe80::1/64", "nobody's"},
	} {
		_, err := w.TakeThis(c.instance, prefix(c.prefix), user(1))
		var in *InUse
		switch {
		case c.why == "" && err != nil, c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%s: %v, want %q", c.prefix, err, c.why)
		case strings.HasSuffix(c.why, "in use") && !errors.As(err, &in):
			t.Errorf("%s: %T", c.prefix, err)
		}
	}
	w.Release("", prefix("2001:db8:0:200::/60"))
	testkit.Equal(t, w.take(t, "pd", user(2)), prefix("2001:db8::/56"), "first")
	testkit.Equal(t, w.take(t, "pd", user(3)), prefix("2001:db8:0:300::/56"), "past what was asked for")
}

// A prefix with an owner that did not ask here is passed over, and used again when it is free.
func TestLive(t *testing.T) {
	w := pools(t, config.AddressPool{Name: "p", Prefix: network("10.0.0.0/30"), Length: 32, Hold: time.Second})
	theirs := prefix("10.0.0.1/32")
	w.o.Live = func(_ string, v netip.Prefix) bool { return v == theirs }
	testkit.Equal(t, w.take(t, "p", user(1)), prefix("10.0.0.2/32"), "the other one")
	_, err := w.Take("p", user(2), netip.Addr{})
	testkit.Refused(t, err, "nothing free")
	_, err = w.TakeThis("", theirs, user(2))
	testkit.Refused(t, err, "in use")
	theirs = netip.Prefix{}
	w.now = w.now.Add(time.Second)
	testkit.Equal(t, w.take(t, "p", user(2)), prefix("10.0.0.1/32"), "free again")
}

// A client that declines everything takes an eighth of the pool out of use, for an hour.
func TestDecline(t *testing.T) {
	w := pools(t, config.AddressPool{Name: "p", Prefix: network("10.0.0.0/24"), Length: 32})
	seen := map[netip.Prefix]bool{}
	for range 100 {
		v := w.take(t, "p", user(1))
		testkit.ErrorIf(t, seen[v], "%v again", v)
		seen[v] = true
		w.Decline("", v)
	}
	testkit.Equal(t, w.Rows()[0].Declined, 254/8, "declined")
	testkit.Equal(t, w.Rows()[0].Used, 254/8, "used")
	w.now = w.now.Add(declined)
	w.take(t, "p", user(2))
	testkit.Equal(t, w.Rows()[0].Declined, 0, "declined")
	testkit.Equal(t, w.Rows()[0].Used, 1, "used")
}

func TestLevels(t *testing.T) {
	w := pools(t, config.AddressPool{Name: "p", Prefix: network("10.0.0.0/24"), Length: 32,
		Ranges: []config.AddressRange{span("10.0.0.100", "10.0.0.199")}})
	var all []netip.Prefix
	say := func(text string) {
		t.Helper()
		var have []string
		for _, e := range w.events {
			have = append(have, fmt.Sprintf("%d%t%d", e.Level, e.Rising, e.Used))
		}
		testkit.Equal(t, strings.Join(have, " "), text, "events")
		w.events = nil
	}
	for i := range 100 {
		all = append(all, w.take(t, "p", user(i)))
	}
	say("80true80 95true95 100true100")
	for _, v := range all[:20] {
		w.Release("", v)
	}
	say("95false94 80false89")
	for i := range 5 {
		w.take(t, "p", user(i))
	}
	for i := range 5 {
		w.Release("", all[i])
	}
	say("")
	for _, v := range all[20:] {
		w.Release("", v)
	}
	say("0false74")
}

func TestReload(t *testing.T) {
	w := pools(t, four)
	a, b := w.take(t, "four", user(0)), w.take(t, "four", user(1))
	other := four
	other.Prefix, other.Gateway = network("192.0.2.4/30"), config.Address{}
	other.Excluded, other.Reservations = nil, nil
	w.Configure([]config.AddressPool{other})
	testkit.Equal(t, w.Rows()[0].Used, 0, "used") // .4 is the network's own there, and .2 outside
	for _, v := range []netip.Prefix{a, b} {
		if _, err := w.TakeThis("", v, user(7)); err == nil {
			t.Errorf("%v is free", v)
		}
	}
	w.Configure([]config.AddressPool{four})
	testkit.Equal(t, w.Rows()[0].Used, 2, "used")
	w.Release("", a)
	testkit.Equal(t, w.Rows()[0].Used, 1, "used")
	w.Configure(nil)
	w.Release("", b)
	w.Configure([]config.AddressPool{four})
	testkit.Equal(t, w.Rows()[0].Used, 0, "used")
}

// Random calls, compared with a list of owners.
func TestModel(t *testing.T) {
	list := []config.AddressPool{
		{Name: "a", Prefix: network("10.0.0.0/26"), Length: 32, Gateway: config.Address{Addr: addr("10.0.0.62")},
			Hold: 5 * time.Second,
			Ranges: []config.AddressRange{span("10.0.0.4", "10.0.0.20"),
				span("10.0.0.30", "10.0.0.62")},
			Excluded: []config.AddressRange{span("10.0.0.8", "10.0.0.9")}},
		{Name: "b", Prefix: network("2001:db8::/60"), Length: 64},
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := pools(t, list...)
		has := map[netip.Prefix]bool{}
		for range 3000 {
			w.now = w.now.Add(time.Duration(r.IntN(1000)) * time.Millisecond)
			one := list[r.IntN(2)]
			switch r.IntN(5) {
			case 0, 1:
				var hint netip.Addr
				for range r.IntN(70) {
					v := netip.PrefixFrom(cmp.Or(hint, one.Prefix.Addr()), int(one.Length))
					hint = next(v).Addr()
				}
				if l, err := w.Take(string(one.Name), user(r.IntN(60)), hint); err == nil {
					wrong := has[l.Prefix] || !one.Prefix.Contains(l.Prefix.Addr())
					testkit.ErrorIf(t, wrong, "%v twice", l.Prefix)
					has[l.Prefix] = true
				}
			case 2:
				v := netip.PrefixFrom(one.Prefix.Addr(), int(one.Length))
				for range r.IntN(70) {
					v = next(v)
				}
				if _, err := w.TakeThis("", v, user(r.IntN(60))); err == nil {
					testkit.ErrorIf(t, has[v], "%v twice", v)
					has[v] = true
				} else if in := (*InUse)(nil); errors.As(err, &in) {
					testkit.ErrorIf(t, !has[v], "%v: %v", v, err)
				}
			default:
				for v := range has {
					delete(has, v)
					w.Release("", v)
					break
				}
			}
		}
		for v := range has {
			w.Release("", v)
		}
		for _, row := range w.Rows() {
			testkit.Equal(t, row.Used, 0, "used %s", row.Name)
		}
		w.now = w.now.Add(time.Hour)
		got := 0
		for i := range 100 {
			if _, err := w.Take("a", user(1000+i), netip.Addr{}); err == nil {
				got++
			}
		}
		testkit.Equal(t, got, 17-2+33-1, "all are there again")
		testkit.Equal(t, w.Rows()[0].Size, uint64(got), "size")
	}
}

func next(v netip.Prefix) netip.Prefix {
	one := newPool(&config.AddressPool{Length: uint8(v.Bits()),
		Prefix: config.Prefix{Prefix: netip.PrefixFrom(v.Addr(), v.Bits()-20).Masked()}})
	n, _ := one.number(v)
	return one.ranges[0].At(n + 1)
}

// A million addresses cost at most 100 bytes each, and coming and going in a large pool fills no memory.
func TestMemory(t *testing.T) {
	const n = 1 << 20
	w := pools(t, config.AddressPool{Name: "p", Prefix: network("10.0.0.0/11"), Length: 32},
		config.AddressPool{Name: "pd", Prefix: network("2001:db8::/32"), Length: 64})
	before := heap()
	for i := range n {
		w.take(t, "p", Who{MAC: [6]byte{2, 0, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}})
	}
	each := (heap() - before) / n
	t.Logf("%d bytes an address", each)
	testkit.ErrorIf(t, each > 100, "%d bytes an address", each)
	for i := range 2 * remembered {
		v := w.take(t, "pd", Who{MAC: [6]byte{2, 0, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}})
		w.Release("", v)
	}
	o := w.pools["pd"]
	most := max(len(o.holder), len(o.had))
	testkit.ErrorIf(t, most > remembered+2, "%d are remembered", most)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkTakeRelease(b *testing.B) {
	w := pools(b, config.AddressPool{Name: "p", Prefix: network("10.0.0.0/12"), Length: 32})
	b.ReportAllocs()
	for i := range b.N {
		l, _ := w.Take("p", Who{MAC: [6]byte{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}}, netip.Addr{})
		w.Release("", l.Prefix)
	}
}

// A hint is given if it is free for all: unowned, not our own, not reserved, not just released.
func TestHint(t *testing.T) {
	pool := four
	pool.Prefix = network("192.0.2.0/28")
	w := pools(t, pool)
	ask := func(who Who, hint string) string {
		l, err := w.Take("four", who, addr(hint))
		testkit.Must(t, err)
		return l.Prefix.Addr().String()
	}
	testkit.Equal(t, ask(user(1), "192.0.2.9"), "192.0.2.9", "free")
	for i, hint := range []string{"192.0.2.9", "192.0.2.1", "192.0.2.3", "192.0.2.6", "192.0.2.0", "192.0.2.15",
		"10.0.0.1", "2001:db8::1"} {
		got := ask(user(10+i), hint)
		testkit.ErrorIf(t, got == hint, "%s is given", hint)
		w.Release("", prefix(got+"/32"))
	}
	// Ahead of the addresses given in order: it rests as all do, and comes again afterwards.
	w.Release("", prefix("192.0.2.9/32"))
	testkit.ErrorIf(t, ask(user(2), "192.0.2.9") == "192.0.2.9", "another gets what was just released")
	testkit.Equal(t, ask(user(1), "192.0.2.9"), "192.0.2.9", "who had it")
	w.Release("", prefix("192.0.2.9/32"))
	for i := range 12 {
		l, err := w.Take("four", user(100+i), netip.Addr{})
		testkit.ErrorIf(t, err == nil && l.Prefix == prefix("192.0.2.9/32"), "given in order")
	}
	w.now = w.now.Add(time.Hour)
	testkit.Equal(t, ask(user(3), "192.0.2.9"), "192.0.2.9", "free again")
	testkit.Equal(t, ask(Who{User: "boss"}, "192.0.2.10"), "192.0.2.6", "a reservation comes first")
}

// Whatever clients request, a large pool's memory is bounded.
func TestHintsAreBounded(t *testing.T) {
	w := pools(t, config.AddressPool{Name: "p", Prefix: network("2001:db8::/32"), Length: 64})
	one := w.pools["p"]
	for _, r := range one.ranges {
		r.Remembered = 100
	}
	for i := range 5000 {
		hint := netip.AddrFrom16([16]byte{0x20, 1, 0x0d, 0xb8, 0x77, 0, byte(i >> 8), byte(i)})
		l, err := w.Take("p", user(i), hint)
		testkit.Must(t, err)
		w.Release("", l.Prefix)
	}
	most := max(len(one.holder), len(one.had))
	testkit.ErrorIf(t, most > 200, "%d are remembered", most)
}
