// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"net/netip"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

// fixed has authentication return fixed addresses, for one session of a user at once.
func fixed(b *bench, ipv4, ipv6 string) {
	p := &b.judge.verdict.Plan
	p.Max = 1
	if p.IPv4 = netip.MustParseAddr(ipv4); ipv6 != "" {
		p.IPv6 = netip.MustParsePrefix(ipv6)
	}
}

func has(h *home, ipv4 string) bool {
	return h.session != nil && h.session.Grant().Addresses.IPv4 == netip.MustParseAddr(ipv4)
}

// The replaced session gives its fixed address to its successor.
func TestReplacedGivesItsAddress(t *testing.T) {
	b := start(t, nil)
	fixed(b, "10.64.0.9", "2001:db8:100:9::/64")
	old := b.up(request("anna", 1))
	r := request("anna", 1)
	r.PPPoE++ // of the same line, dialled again
	anew := b.up(r)
	testkit.ErrorIf(t, old.cause != access.NASRequest || !has(anew, "10.64.0.9"), "%+v %+v", old, anew.verdict)
	other := b.up(request("anna", 2))
	testkit.ErrorIf(t, anew.cause != access.NASRequest || !has(other, "10.64.0.9"), "%+v %+v", anew, other.verdict)
	testkit.Equal(t, len(b.layer.sessions), 1, "sessions")
	testkit.Equal(t, b.pools.Rows()[0].Used, 1, "addresses")
	testkit.ErrorIf(t, len(b.leaving)+len(b.waiting) != 0, "%v %v stay", b.leaving, b.waiting)
}

// While the old session cannot leave the data plane, the new one waits without an answer, and may try again.
func TestReplacedCannotEnd(t *testing.T) {
	b := start(t, nil)
	fixed(b, "10.64.0.9", "")
	b.up(request("anna", 1))
	b.layer.away = true
	late, gaveUp := b.signIn(request("anna", 2)), &home{t: t}
	testkit.ErrorIf(t, late.verdict != nil, "answered at once: %+v", late.verdict)
	cancel := b.SignIn(request("anna", 3), gaveUp, func(access.Session, *access.Verdict) { t.Error("answered") })
	b.turn()
	cancel()
	b.pass(patience)
	testkit.ErrorIf(t, late.verdict == nil || late.session != nil || !late.verdict.Silent, "%+v", late.verdict)
	next := b.signIn(request("anna", 4))
	b.layer.away = false
	b.pass(time.Second)
	testkit.ErrorIf(t, !has(next, "10.64.0.9"), "%+v", next.verdict)
	testkit.ErrorIf(t, len(b.leaving)+len(b.waiting) != 0, "%v %v stay", b.leaving, b.waiting)
	rows := b.pools.Rows()
	testkit.ErrorIf(t, rows[0].Used != 1 || rows[1].Used != 1, "%+v", rows)
}

// A session's own end is waited for, too: a home dials again faster than the data plane answers.
func TestDialledAgainAtOnce(t *testing.T) {
	b := start(t, nil)
	fixed(b, "10.64.0.9", "")
	old := b.up(request("anna", 1))
	b.layer.away = true
	old.session.Down(access.UserRequest)
	b.turn()
	anew := b.signIn(request("anna", 1))
	b.layer.away = false
	b.pass(time.Second)
	testkit.ErrorIf(t, !has(anew, "10.64.0.9"), "%+v", anew.verdict)
}

// No session ends for a successor that is refused.
func TestNotReplacedInVain(t *testing.T) {
	b := start(t, nil)
	fixed(b, "10.64.0.8", "2001:db8:100:8::/64")
	b.up(request("bert", 8))
	fixed(b, "10.64.0.9", "2001:db8:100:9::/64")
	old := b.up(request("anna", 1))
	for _, taken := range [][2]string{{"10.64.0.8", ""}, {"10.64.0.9", "2001:db8:100:8::/64"}, {"10.64.0.1", ""}} {
		fixed(b, taken[0], taken[1])
		anew := b.signIn(request("anna", 2))
		testkit.ErrorIf(t, anew.session != nil || !anew.verdict.Proven || old.cause != 0, "%v: %+v %v", taken,
			anew.verdict, old.cause)
	}
	rows := b.pools.Rows()
	testkit.ErrorIf(t, rows[0].Used != 2 || rows[1].Used != 2, "%+v", rows)
}

// A user's reserved address, or the last one of a pool, goes over as well.
func TestReplacedGivesWhatIsOfAPool(t *testing.T) {
	one := netip.MustParseAddr("10.64.0.9")
	for name, homes := range map[string]config.AddressPool{
		"reserved": {Reservations: []config.Reservation{{User: "anna", Address: config.Address{Addr: one}}}},
		"last":     {Ranges: []config.AddressRange{{First: one, Last: one}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, nil)
			homes.Name, homes.Instance, homes.Length = "homes", "internet", 32
			homes.Prefix.Prefix = netip.MustParsePrefix("10.64.0.0/16")
			b.pools.Configure([]config.AddressPool{homes, pool("six", "internet", "2001:db8:100::/48")})
			b.judge.verdict.Plan.Max = 1
			old := b.up(request("anna", 1))
			anew := b.up(request("anna", 2))
			testkit.ErrorIf(t, old.cause != access.NASRequest || !has(anew, "10.64.0.9"), "%+v %+v", old,
				anew.verdict)
		})
	}
}

// Of several sign-ins for one session at once, as many succeed as permitted.
func TestReplacedBySeveral(t *testing.T) {
	b := start(t, nil)
	fixed(b, "10.64.0.9", "")
	b.up(request("anna", 1))
	b.layer.away = true
	b.signIn(request("anna", 2))
	b.judge.verdict.Plan.IPv4 = netip.Addr{}
	second := b.signIn(request("anna", 3))
	b.layer.away = false
	b.pass(2 * time.Second)
	testkit.Equal(t, len(ringOf(b.by.user["anna"], ofUser, 9)), 1, "sessions")
	testkit.ErrorIf(t, second.session == nil || second.cause != access.NASRequest, "%+v", second)
}
