// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

// passes are what a captive subscriber reaches beside name servers.
func (b *bench) passes(h *home) string {
	var list []string
	for _, f := range b.object(h).LineFilters[gardenRule] {
		if p := f.Remote.Netip(); p.IsValid() {
			list = append(list, p.String())
		}
	}
	return strings.Join(list, " ")
}

func (b *bench) says(server, name, addresses string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.names == nil {
		b.names = map[string]string{}
	}
	b.names[server+" "+name] = addresses
}

func (b *bench) untilPasses(h *home, want string) {
	b.t.Helper()
	testkit.Until(b.t, "passes "+want, func() bool { b.turn(); return b.passes(h) == want })
}

// The URL's host and the portal pass; names are those of the home's own server, and are followed.
func TestWalledGarden(t *testing.T) {
	b := start(t, func(set *Settings) {
		p := set.profiles["quota"]
		p.Captive = true
		p.Portal = []config.Reachable{{Prefix: netip.MustParsePrefix("192.0.2.0/28")}, {Name: "cdn.test"}}
	})
	b.says("9.9.9.9", "pay.test", "198.51.100.7 2001:db8:7::7")
	b.says("invalid IP", "pay.test", "203.0.113.1")
	b.says("9.9.9.9", "cdn.test", "198.51.100.9")
	b.judge.verdict.Plan = access.Plan{Profile: "quota", DNS: []netip.Addr{netip.MustParseAddr("9.9.9.9")}}
	h := b.up(request("anna", 1))
	b.untilPasses(h, "192.0.2.0/28 198.51.100.9/32 198.51.100.7/32 2001:db8:7::7/128")
	b.says("9.9.9.9", "cdn.test", "198.51.100.10")
	b.pass(gardenPeriod)
	b.untilPasses(h, "192.0.2.0/28 198.51.100.9/32 198.51.100.10/32 198.51.100.7/32 2001:db8:7::7/128")
	b.says("9.9.9.9", "pay.test", "") // fails now
	for range int(gardenKept / gardenPeriod) {
		asked := len(b.events)
		b.pass(gardenPeriod)
		testkit.Until(t, "an answer", func() bool { b.turn(); return len(b.events) > asked })
	}
	b.untilPasses(h, "192.0.2.0/28 198.51.100.10/32")

	b.judge.verdict.Plan.Portal = []string{"10.9.0.0/24"}
	other := b.up(request("bob", 2))
	testkit.Equal(t, b.passes(other), "10.9.0.0/24", "as authentication says")
}

// Of a name whose addresses change with every answer, the newest ones pass: first those of the last answer.
func TestGardenOfManyAddresses(t *testing.T) {
	b := start(t, func(set *Settings) { set.profiles["quota"].Captive = true })
	addresses := func(from, to int) string {
		var list []string
		for i := from; i < to; i++ {
			list = append(list, fmt.Sprintf("198.51.100.%d", i))
		}
		return strings.Join(list, " ")
	}
	leftOut := func() (n int) {
		for _, e := range b.events {
			if e == "subscriber.left-out portal" {
				n++
			}
		}
		return n
	}
	want := func(from, to int) string {
		return strings.ReplaceAll(addresses(from, to), " ", "/32 ") + "/32"
	}
	b.says("invalid IP", "pay.test", addresses(110, 110+gardenMost))
	b.judge.verdict.Plan.Profile = "quota"
	h := b.up(request("anna", 1))
	b.untilPasses(h, want(110, 110+gardenMost))
	testkit.Equal(t, leftOut(), 0, "events of a name with room")

	b.says("invalid IP", "pay.test", addresses(120, 130+gardenMost)) // ten more than may be, 22 of them known
	b.pass(gardenPeriod)
	b.untilPasses(h, want(120, 120+gardenMost))
	testkit.Equal(t, leftOut(), 1, "events after an answer with too many")

	b.says("invalid IP", "pay.test", "203.0.113.1")
	b.pass(gardenPeriod)
	b.untilPasses(h, want(120, 119+gardenMost)+" 203.0.113.1/32")
	testkit.Equal(t, leftOut(), 2, "events after one more address")
}

// Names of subscribers that are not captive any more, or have gone, are not resolved, and their number is bounded.
func TestGardenNames(t *testing.T) {
	b := start(t, func(set *Settings) { set.profiles["quota"].Captive = true })
	b.says("invalid IP", "pay.test", "198.51.100.7")
	b.judge.verdict.Plan.Profile = "quota"
	h := b.up(request("anna", 1))
	b.untilPasses(h, "198.51.100.7/32")
	h.session.Down(access.UserRequest)
	b.pass(gardenPeriod)
	testkit.Until(t, "the name is forgotten", func() bool { b.turn(); return len(b.gardens.by) == 0 })
	for i := range gardenNames + 1 {
		b.gardens.by[gardenKey{name: fmt.Sprint(i)}] = &gardenName{}
	}
	more := b.up(request("berta", 2))
	testkit.Equal(t, b.passes(more), "", "beyond the bound")
	testkit.ErrorIf(t, !strings.Contains(strings.Join(b.events, ","), "subscriber.left-out portal"), "%v", b.events)
}
