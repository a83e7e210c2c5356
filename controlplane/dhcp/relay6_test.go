// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

var (
	sixA       = netip.MustParseAddrPort("[2001:db8:9::1]:547")
	sixB       = netip.MustParseAddrPort("[2001:db8:9::2]:547")
	ourselves6 = netip.MustParseAddr("2001:db8:8::1")
)

func theirs(m dhcpv6.DHCPv6) {
	m.AddOption(dhcpv6.OptServerID(must(dhcpv6.DUIDFromBytes(DUID("upstream")))))
}

// upstream6 is what servers were asked.
type upstream6 struct {
	w     *world
	asked map[netip.AddrPort][][]byte
}

func newRelay6(t *testing.T) (*world, *upstream6, *home) {
	w := newWorld(t)
	w.c.Address6.Addr = ourselves6
	p := Port{V4: true, V6: true, Replace: true, Upstream6: []netip.AddrPort{sixA, sixB}}
	w.ports["relay"] = p
	p.Trusted = true
	w.ports["ldra"] = p
	w.configure()
	s := &upstream6{w, map[netip.AddrPort][][]byte{}}
	w.s.Upstream6 = func(server netip.AddrPort, packet []byte) error {
		s.asked[server] = append(s.asked[server], packet)
		return nil
	}
	h := w.home(1)
	h.line.Port = "relay"
	return w, s, h
}

// take is the one message that both servers were asked.
func (s *upstream6) take() []byte {
	s.w.t.Helper()
	s.w.run()
	a, b := s.asked[sixA], s.asked[sixB]
	clear(s.asked)
	testkit.FatalIf(s.w.t, len(a) != 1 || len(b) != 1, "asked %d and %d times", len(a), len(b))
	return a[0]
}

// replyTo makes Relay-Replies around a message, as a server does for a Relay-Forward (RFC 8415 §19.3).
func replyTo(forward, inner []byte) []byte {
	r := &request6{}
	r.unwrap(dhcpv6.MessageTypeRelayForward, mostRelays+1, forward)
	return r.wrap(inner)
}

// answer6 is a server's message, edited by change.
func answer6(forward []byte, kind dhcpv6.MessageType, change ...dhcpv6.Modifier) []byte {
	r := &request6{}
	b, _, ok := r.unwrap(dhcpv6.MessageTypeRelayForward, mostRelays+1, forward)
	if !ok || !r.read(b) {
		panic("malformed relay-forward")
	}
	m := must(dhcpv6.NewMessage(append(change, theirs)...))
	m.MessageType, m.TransactionID = kind, r.TransactionID
	m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionClientID, OptionData: r.client})
	return replyTo(forward, m.ToBytes())
}

func lent6(a string, seconds int) dhcpv6.Option {
	valid := time.Duration(seconds) * time.Second
	return &dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(a), PreferredLifetime: valid, ValidLifetime: valid}
}

func delegated6(p string, seconds int) dhcpv6.Option {
	valid := time.Duration(seconds) * time.Second
	return &dhcpv6.OptIAPrefix{Prefix: network(netip.MustParsePrefix(p)), PreferredLifetime: valid,
		ValidLifetime: valid}
}

func (h *home) answers6() (all []string) {
	for _, d := range h.datagrams6() {
		if d.protocol == protocolUDP {
			m := must(dhcpv6.MessageFromBytes(d.body))
			all = append(all, fmt.Sprint(m.MessageType, " ", leases(m)))
		}
	}
	return all
}

// exchange6 sends a message and both servers' answers; the client gets want.
func (h *home) exchange6(s *upstream6, kind, answers dhcpv6.MessageType, want string, ask, lends []dhcpv6.Modifier) {
	h.w.t.Helper()
	h.put6(h.six(kind, ask...))
	h.w.s.FromUpstream6(sixA, answer6(s.take(), answers, lends...))
	testkit.Equal(h.w.t, fmt.Sprint(h.answers6()), want, "%v", kind)
}

type mods = []dhcpv6.Modifier

const (
	theirAddress = "2001:db8:500::77"
	theirPrefix  = "2001:db8:600::/56"
	lentBoth     = "[REPLY " + theirAddress + " 4h0m0s " + theirPrefix + " 8h0m0s ]"
)

var lendBoth = mods{na(lent6(theirAddress, 4*3600)), pd(delegated6(theirPrefix, 8*3600))}

func (h *home) join6(s *upstream6) {
	h.w.t.Helper()
	h.exchange6(s, dhcpv6.MessageTypeSolicit, dhcpv6.MessageTypeAdvertise, "[ADVERTISE"+lentBoth[6:],
		mods{na(), pd()}, lendBoth)
	h.exchange6(s, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeReply, lentBoth, mods{theirs, na(), pd()}, lendBoth)
}

func TestRelay6(t *testing.T) {
	w, s, h := newRelay6(t)
	h.put6(h.six(dhcpv6.MessageTypeSolicit, na(), pd()))
	testkit.Equal(t, len(s.asked), 0, "servers asked before sign-in")
	asked := s.take()
	testkit.Equal(t, w.signIns, 1, "sign-ins")
	m := must(dhcpv6.RelayMessageFromBytes(asked))
	testkit.Equal(t, fmt.Sprint(m.HopCount, m.LinkAddr, m.PeerAddr, string(m.Options.InterfaceID())),
		fmt.Sprint(0, ourselves6, h.linkLocal(), "relay:100.7"), "Relay-Forward")
	_, mac := m.Options.ClientLinkLayerAddress()
	testkit.Equal(t, mac.String(), net.HardwareAddr(h.line.MAC[:]).String(), "client's link-layer address")
	good := answer6(asked, dhcpv6.MessageTypeAdvertise, lendBoth...)
	w.s.FromUpstream6(netip.MustParseAddrPort("[2001:db8:9::3]:547"), good)
	for _, at := range []int{2, 33, 40, len(good) - 1} { // link-address, peer-address, Interface-Id, DUID
		bad := append([]byte(nil), good...)
		bad[at]++
		w.s.FromUpstream6(sixA, bad)
	}
	testkit.Equal(t, w.counted("upstream_unknown"), 5, "strangers' answers")
	testkit.Equal(t, len(h.answers6()), 0, "answers of strangers")
	w.s.FromUpstream6(sixA, good)
	w.s.FromUpstream6(sixB, good) // the client chooses
	testkit.Equal(t, len(h.answers6()), 2, "advertises")
	testkit.Equal(t, w.live[0].has.IPv6, netip.Prefix{}, "an Advertise lends nothing")
	h.exchange6(s, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeReply, lentBoth, mods{theirs, na(), pd()}, lendBoth)
	both := access.Families{V6: true, Delegated: true}
	testkit.Equal(t, w.live[0].up, both, "passing")
	testkit.Equal(t, w.live[0].has.IPv6, netip.MustParsePrefix(theirAddress+"/128"), "address")
	testkit.Equal(t, w.live[0].has.Delegated, netip.MustParsePrefix(theirPrefix), "prefix")
	w.s.FromUpstream6(sixB, answer6(asked, dhcpv6.MessageTypeReply, lendBoth...))
	testkit.Equal(t, w.counted("upstream_unknown"), 6, "after the Reply")

	h.join() // DHCPv4 is served beside it
	testkit.Equal(t, w.live[0].up, access.Families{V4: true, V6: true, Delegated: true}, "passing")
	h.ask(0, 7, ciaddr(h.ip))
	w.wait(3 * time.Hour)
	h.exchange6(s, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeReply, lentBoth, mods{theirs, na(), pd()}, lendBoth)
	w.wait(3 * time.Hour)
	testkit.Equal(t, w.live[0].up, both, "passing after a renewal")
	w.wait(time.Hour + time.Minute)
	testkit.Equal(t, w.live[0].up, access.Families{Delegated: true}, "passing when the address is over")
	h.exchange6(s, dhcpv6.MessageTypeInformationRequest, dhcpv6.MessageTypeReply, "[REPLY ]", nil, nil)
	h.exchange6(s, dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeReply, "[REPLY Success ]",
		mods{theirs, pd(delegated6(theirPrefix, 0))},
		mods{func(m dhcpv6.DHCPv6) { m.AddOption(status(0, "")) }})
	testkit.Equal(t, len(w.live)+len(w.s.relays6)+len(w.s.subscribers), 0, "sessions and transactions")
	for _, row := range w.pools.Rows() {
		testkit.Equal(t, row.Used, 0, "used of %s", row.Name)
	}
}

// A refused client reaches no server; what is the line's alone can be released, declined or confirmed.
func TestRelay6Theirs(t *testing.T) {
	w, s, h := newRelay6(t)
	w.verdict = &access.Verdict{Why: "no"}
	h.ask6(0, dhcpv6.MessageTypeSolicit, na())
	testkit.Equal(t, len(s.asked), 0, "asked for who was refused")
	w.verdict = nil
	w.wait(time.Minute)
	h.ask6(0, dhcpv6.MessageTypeRelease, theirs, na(held(theirAddress)))
	h.join6(s)
	for _, change := range []mods{{na(held("2001:db8:500::78"))}, {pd(delegated6("2001:db8:601::/56", 0))}, {},
		{pd(&dhcpv6.OptIAPrefix{})}} {
		h.ask6(0, dhcpv6.MessageTypeRelease, append(change, theirs)...)
	}
	h.ask6(0, dhcpv6.MessageTypeDecline, theirs, pd())
	testkit.Equal(t, len(s.asked), 0, "servers asked")
	testkit.Equal(t, w.counted("not_theirs"), 6, "not theirs")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeConfirm, na(held(theirAddress))),
		"Success ", "")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeConfirm, na(held("2001:db8:500::78"))),
		"NotOnLink ", "")
	testkit.Equal(t, w.live[0].up, access.Families{V6: true, Delegated: true}, "passing")

	// The leases of a Release that no server answers end soon.
	h.put6(h.six(dhcpv6.MessageTypeRelease, theirs, na(held(theirAddress)), pd()))
	s.take()
	testkit.Equal(t, len(w.live), 1, "sessions")
	w.wait(2 * time.Minute)
	testkit.Equal(t, len(w.live)+len(w.s.relays6), 0, "sessions and transactions")
}

// A server gives another address, withdraws one, or gives another's.
func TestRelay6Changes(t *testing.T) {
	w, s, h := newRelay6(t)
	h.join6(s)
	renew, other := mods{theirs, na(), pd()}, "2001:db8:500::78"
	h.exchange6(s, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeReply,
		"[REPLY "+theirAddress+" 0s "+other+" 1h0m0s "+theirPrefix+" 1h0m0s ]", renew,
		mods{na(lent6(theirAddress, 0), lent6(other, 3600)), pd(delegated6(theirPrefix, 3600))})
	testkit.Equal(t, w.live[0].has.IPv6, netip.MustParsePrefix(other+"/128"), "address")
	testkit.Equal(t, w.live[0].up, access.Families{V6: true, Delegated: true}, "passing")
	testkit.Equal(t, w.signIns, 1, "sign-ins")

	second := w.home(2)
	second.line.Port = "relay"
	second.exchange6(s, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeReply, "[]", renew,
		mods{na(lent6(other, 3600))}) // the first one's
	testkit.Equal(t, w.counted("no_address"), 1, "what another has")
	testkit.Equal(t, w.live[1].up, access.Families{}, "passing of the second")

	none := func(code iana.StatusCode) dhcpv6.Option { return status(code, "") }
	h.exchange6(s, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeReply,
		"[REPLY NoBinding "+theirPrefix+" 1h0m0s ]", renew,
		mods{na(none(iana.StatusNoBinding)), pd(delegated6(theirPrefix, 3600))})
	testkit.Equal(t, w.live[0].up, access.Families{Delegated: true}, "passing")
	testkit.Equal(t, w.live[0].has.IPv6, netip.Prefix{}, "address")
	h.exchange6(s, dhcpv6.MessageTypeRebind, dhcpv6.MessageTypeReply, "[REPLY 2001:db8:601::/56 1h0m0s ]",
		mods{pd()}, mods{pd(delegated6("2001:db8:601::/56", 3600))}) // all that there was, so another session
	testkit.Equal(t, w.signIns, 3, "sign-ins")
	testkit.Equal(t, w.live[1].has.Delegated, netip.MustParsePrefix("2001:db8:601::/56"), "prefix")
}

// A client that declines every address waits, as with our server (row B10).
func TestRelay6Declines(t *testing.T) {
	w, s, h := newRelay6(t)
	for range 3 {
		h.exchange6(s, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeReply, "[REPLY "+theirAddress+" 1h0m0s ]",
			mods{theirs, na()}, mods{na(lent6(theirAddress, 3600))})
		h.exchange6(s, dhcpv6.MessageTypeDecline, dhcpv6.MessageTypeReply, "[REPLY ]",
			mods{theirs, na(held(theirAddress))}, nil)
		testkit.Equal(t, len(w.live), 0, "sessions")
	}
	h.ask6(0, dhcpv6.MessageTypeSolicit, na())
	testkit.Equal(t, len(s.asked), 0, "asked for who declines all")
	testkit.Equal(t, w.counted("refused"), 1, "refused")
}

// asksThroughNode has an access node wrap a Request, which it returns as the node sends it.
func (h *home) asksThroughNode() []byte {
	inner, _ := ipv6(h.six(dhcpv6.MessageTypeRequest, theirs, na(), pd()))
	peer := h.linkLocal().As16()
	b := append(append([]byte{12, 0}, make([]byte, 16)...), peer[:]...)
	b = option16(option16(b, 18, []byte("eth 0/7")), 9, inner.body)
	h.put6(h.udp6(b, relaysAndServers))
	return b
}

// An access node's Relay-Forward goes unchanged into ours, one hop further (RFC 8415 §19.1.2), its Relay-Reply back.
func TestRelay6LDRA(t *testing.T) {
	w, s, h := newRelay6(t)
	h.line.Port = "ldra"
	b := h.asksThroughNode()
	asked := s.take()
	m := must(dhcpv6.RelayMessageFromBytes(asked))
	testkit.Equal(t, fmt.Sprint(m.HopCount, string(m.Options.InterfaceID())), "1ldra:100.7", "Relay-Forward")
	testkit.Equal(t, string(m.Options.RelayMessage().ToBytes()), string(b), "the access node's")
	testkit.Equal(t, string(w.live[0].request.Agent.CircuitID), "eth 0/7", "circuit id")
	good := answer6(asked, dhcpv6.MessageTypeReply, lendBoth...)
	ours := &request6{}
	flat, _, _ := ours.unwrap(dhcpv6.MessageTypeRelayReply, 9, good)
	w.s.FromUpstream6(sixA, (&request6{relays: ours.relays[:1]}).wrap(flat))
	testkit.Equal(t, w.counted("upstream_unknown"), 1, "without the access node's")
	w.s.FromUpstream6(sixA, good)
	var relay *dhcpv6.RelayMessage
	for _, d := range h.datagrams6() {
		if d.protocol == protocolUDP {
			testkit.Equal(t, d.dest, 547, "port")
			relay = must(dhcpv6.RelayMessageFromBytes(d.body))
		}
	}
	testkit.FatalIf(t, relay == nil, "no answer")
	testkit.Equal(t, string(relay.Options.InterfaceID()), "eth 0/7", "interface id")
	testkit.Equal(t, fmt.Sprint("[REPLY ", leases(must(relay.GetInnerMessage())), "]"), lentBoth, "lent")
}

// After a restart renewals go to the servers, and leases end on time.
func TestRelay6Restore(t *testing.T) {
	w, s, h := newRelay6(t)
	h.join6(s)
	one, send := w.live[0], w.s.Upstream6
	w.s, w.timers = New(w, w.c), nil
	w.s.Upstream6 = send
	w.wait(2 * time.Hour)
	one.client = w.s.Restore(one, &one.request, one.kept)
	testkit.FatalIf(t, one.client == nil, "not restored")
	h.exchange6(s, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeReply, lentBoth, mods{theirs, na(), pd()}, lendBoth)
	testkit.Equal(t, w.signIns, 1, "sign-ins")
	w.wait(8*time.Hour - time.Minute)
	testkit.Equal(t, one.up, access.Families{Delegated: true}, "passing")
	w.wait(2 * time.Minute)
	testkit.Equal(t, len(w.live), 0, "sessions")
}

// Router advertisements direct hosts that may sign in to DHCPv6, and take nothing from pools.
func TestRelay6Solicited(t *testing.T) {
	w, s, h := newRelay6(t)
	h.solicit()
	all := h.datagrams6()
	testkit.FatalIf(t, len(all) != 1 || all[0].body[0] != 134, "%v", all)
	testkit.Equal(t, all[0].body[5], 0xc0, "M and O")
	testkit.Equal(t, w.signIns, 0, "sign-ins")
	h.join6(s)
	h.solicit()
	testkit.Equal(t, len(h.datagrams6()), 1, "advertisements")
	testkit.Equal(t, w.pools.Rows()[1].Used+w.pools.Rows()[2].Used, 0, "used of IPv6 pools")
}

func TestRelay6Many(t *testing.T) {
	w, s, h := newRelay6(t)
	for name, lends := range map[string]mods{
		"leases_many": {na(lent6(theirAddress, 3600), lent6("2001:db8:500::78", 3600))},
		"lease_short": {pd(delegated6(theirPrefix, 29))},
		"malformed":   {pd(delegated6("2000::/3", 3600))},
	} {
		h.exchange6(s, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeReply, "[]", mods{theirs, na(), pd()},
			lends)
		testkit.Equal(t, w.counted(name), 1, "%s", name)
	}
	h.exchange6(s, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeReply, "[]", mods{theirs, na()},
		mods{na(lent6("fe80::1", 3600))})
	temporary := dhcpv6.WithIATA([4]byte{9}, dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(theirAddress)})
	h.exchange6(s, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeReply, "[]", mods{theirs, na()}, mods{temporary})
	testkit.Equal(t, w.counted("leases_many"), 2, "temporary addresses")
	testkit.Equal(t, w.live[0].up, access.Families{}, "passing")
	h.put6(h.six(dhcpv6.MessageTypeRequest, theirs, na(), pd()))
	asked := answer6(s.take(), dhcpv6.MessageTypeReply, lendBoth...)
	for i := range asked {
		w.s.FromUpstream6(sixA, asked[:i])
	}
	testkit.Equal(t, len(h.answers6()), 0, "answers to parts of a message")
}

func sixAddress(r *rand.Rand) string { return fmt.Sprintf("2001:db8:500::%d", 1+r.IntN(20)) }

// randomReply answers a Relay-Forward, and not always well.
func randomReply(r *rand.Rand, forward []byte) []byte {
	seconds := []int{0, 10, 60, 3600, 86400}[r.IntN(5)]
	p := fmt.Sprintf("2001:db8:6%02d::/56", r.IntN(20))
	change := []mods{{na(lent6(sixAddress(r), seconds))}, {pd(delegated6(p, seconds))},
		{na(lent6(sixAddress(r), seconds)), pd(delegated6(p, seconds))}, {na(), pd()}}[r.IntN(4)]
	return answer6(forward, []dhcpv6.MessageType{2, 7, 7}[r.IntN(3)], change...)
}

// A line with only a delegated prefix gets advertisements while it has it.
func TestAdvertisedWithPrefixAlone(t *testing.T) {
	w, s, h := newRelay6(t)
	h.exchange6(s, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeReply, "[REPLY "+theirPrefix+" 8h0m0s ]",
		mods{theirs, pd()}, mods{pd(delegated6(theirPrefix, 8*3600))})
	w.wait(time.Hour + time.Second)
	testkit.Equal(t, len(h.datagrams6()), 6, "advertisements")
}
