// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/radius"
	"isthmus/controlplane/testkit"
)

// An address identifies a subscriber only within its network instance. A request by an address alone must not reach
// other instances; the instance's name narrows it (RFC 5176 §3.5, Error-Cause 508).
func TestAddressInSeveralInstances(t *testing.T) {
	b := start(t, nil)
	b.pools.Configure([]config.AddressPool{
		pool("homes", "internet", "10.64.0.0/16"),
		pool("others", "other", "10.64.0.0/16"),
		pool("six", "internet", "2001:db8:100::/48"),
		pool("more", "other", "2001:db8:200::/48")})
	address := netip.MustParseAddr("10.64.0.9")
	b.judge.verdict.Plan.IPv4 = address
	one := b.up(request("anna", 1))
	b.judge.verdict.Plan.Instance = "other"
	b.judge.verdict.Plan.Pool4, b.judge.verdict.Plan.Pool6 = "others", "more"
	two := b.up(request("bob", 2))
	disconnect := func(s aaa.Selector) (r aaa.Result) {
		b.Disconnect(&s, func(is aaa.Result, _ string) { r = is })
		b.turn()
		return r
	}
	here := func() int { return len(b.Rows("")) }
	testkit.Equal(t, disconnect(aaa.Selector{IPv4: address}), aaa.Several, "by an address of two")
	testkit.Equal(t, here(), 2, "on line")
	_, err := b.Clear(address.String(), access.AdminReset)
	testkit.Refused(t, err, `network instances "`)
	testkit.Equal(t, here(), 2, "on line")
	testkit.Equal(t, disconnect(aaa.Selector{IPv4: address, Instance: "third"}), aaa.NoSession, "elsewhere")
	testkit.Equal(t, disconnect(aaa.Selector{IPv4: address, Instance: "other"}), aaa.OK, "by address and instance")
	testkit.ErrorIf(t, here() != 1 || one.cause != 0 || two.cause != access.AdminReset, "%d on line", here())
	testkit.Equal(t, disconnect(aaa.Selector{IPv4: address}), aaa.OK, "by an address of one")

	b.judge.verdict.Plan = access.Plan{}
	b.up(request("carl", 3))
	b.up(request("carl", 4))
	change := func(s aaa.Selector) (r aaa.Result, words string) {
		b.Change(&s, &aaa.Change{List: []radius.Attribute{{Type: radius.SessionTimeout, Value: []byte{0, 0, 0, 60}}}},
			func(is aaa.Result, said string) { r, words = is, said })
		b.turn()
		return r, words
	}
	r, words := change(aaa.Selector{User: "carl"})
	testkit.Equal(t, r, aaa.Several, "a change of both")
	id := b.Rows("carl")[0].Session
	testkit.ErrorIf(t, !strings.Contains(words, "2 sessions match") || !strings.Contains(words, id) ||
		!strings.Contains(words, "Acct-Session-Id"), "%s", words)
	r, words = change(aaa.Selector{User: "carl", Session: id})
	testkit.ErrorIf(t, r != aaa.OK, "a change of one: %v, %s", r, words)
	testkit.Equal(t, disconnect(aaa.Selector{User: "carl"}), aaa.OK, "all of a user")
	testkit.Equal(t, here(), 0, "on line")
}

// A change that waits for its turn finds no session when that ended meanwhile: 503, not 506.
func TestChangeOfWhoEnds(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	b.layer.hold = true
	var results []aaa.Result
	for _, seconds := range []byte{60, 61} {
		b.Change(&aaa.Selector{User: "anna"}, &aaa.Change{List: []radius.Attribute{
			{Type: radius.CiscoAVPair, Value: []byte("subscriber:up=1Mbit")},
			{Type: radius.SessionTimeout, Value: []byte{0, 0, 0, seconds}}}},
			func(r aaa.Result, _ string) { results = append(results, r) })
	}
	b.turn()
	testkit.Equal(t, len(b.layer.late), 1, "changes under way")
	h.session.Down(access.UserRequest)
	b.layer.hold = false
	b.layer.late[0]()
	b.pass(time.Second)
	testkit.ErrorIf(t, len(results) != 2 || results[1] != aaa.NoSession, "%v", results)
}
