// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// quiet is a configuration without heartbeats, and without repetitions: nothing comes into the way of a test.
func quiet(peers ...config.PFCPPeer) Config {
	p := config.Default[config.PFCP]()
	p.Listen, p.Peers, p.Heartbeat = on("127.0.0.1:0"), peers, config.Heartbeat{Timeout: testkit.Limit}
	return ConfigOf(p)
}

func on(addresses ...string) (list []config.Socket) {
	for _, a := range addresses {
		list = append(list, config.Socket{AddrPort: netip.MustParseAddrPort(a)})
	}
	return list
}

func peerAt(a netip.AddrPort, node string) config.PFCPPeer {
	return config.PFCPPeer{Address: config.Socket{AddrPort: a}, NodeID: node}
}

// fast finds out within a fraction of a second that a peer is gone.
func fast(peers ...config.PFCPPeer) Config {
	c := quiet(peers...)
	c.Heartbeat = config.Heartbeat{Interval: 40 * time.Millisecond, Timeout: 40 * time.Millisecond, Retries: 1}
	return c
}

func TestAssociationLife(t *testing.T) {
	m := newSMF(t, "smf1.isthmus", "127.0.0.1:0")
	cfg := quiet(m.peer())
	cfg.UEPools = []pfcp.UEPool{{NetworkInstance: "core", Pool: "core"}}
	h := start(t, cfg, nil, m)
	r := m.setUp(ie(89, 0))
	r.wants(pfcp.CauseAccepted)
	if got := binary.BigEndian.Uint32(r.ies[96]); got != uint32(h.fake.recovery.Unix()+ntpEpoch) {
		t.Errorf("recovery time stamp %d is not the store's", got)
	}
	if f := r.ies[43]; len(f) < 4 || f[0]&(1<<4) == 0 || f[1]&1 == 0 || f[2]&(1<<2|1<<3) != 1<<2|1<<3 || f[3]&1 == 0 {
		t.Errorf("features %x: FTUP, EMPU, UEIP, SSET, MPAS wanted", f)
	}
	testkit.ErrorIf(t, len(r.ies[233]) == 0, "no UE IP address pool information")
	if st := h.fake.Associations(); len(st) != 1 || st[0].Addr != m.addr {
		t.Errorf("stored %+v", st)
	}
	r = m.ask(message(pfcp.AssociationUpdateRequestType, 0, m.next(), nodeIE(m.node), ie(89, 3),
		ie(178, 2, 10, 7, 7, 7)))
	r.wants(pfcp.CauseAccepted, "update")
	if st := h.fake.Associations(); len(st) != 1 || !slices.Equal(st[0].Others,
		[]netip.Addr{netip.MustParseAddr("10.7.7.7")}) {
		t.Errorf("alternative addresses after the update: %+v", st)
	}
	a := h.s.Find("smf1.isthmus")
	testkit.ErrorIf(t, a == nil || a.Features != pfcp.CPLoad|pfcp.CPOvrl, "after the update: %+v", a)
	m.establish(1)
	m.ask(message(pfcp.AssociationReleaseRequestType, 0, m.next(), nodeIE(m.node))).wants(pfcp.CauseAccepted, "release")
	testkit.Until(t, "sessions deleted", func() bool {
		return h.fake.Count("") == 0 && len(h.fake.Associations()) == 0
	})
	testkit.ErrorIf(t, h.s.Find("smf1.isthmus") != nil, "the association is still there")
	h.told("association.released")
	h.rises("no-association", 1, func() {
		m.ask(establishment(m.next(), m.node, 2, m.addr.Addr())).wants(pfcp.CauseNoAssociation,
			"establishment without association")
	})
	for _, typ := range []pfcp.MessageType{3, 7, 9, 14} {
		h.rises("no-association", 1, func() {
			r := m.ask(message(typ, 0, m.next(), nodeIE(m.node)))
			r.wants(pfcp.CauseNoAssociation, "message", typ, "without association")
		})
	}
}

// Rows P1, P2: the missing IE is named; nothing stays.
func TestSetUpIncomplete(t *testing.T) {
	h, m := served(t)
	for missing, ies := range map[byte][]byte{60: recoveryIE(m.recovery), 96: nodeIE("smf1")} {
		h.rises("mandatory-ie-missing", 1, func() {
			r := m.ask(message(pfcp.AssociationSetupRequestType, 0, m.next(), ies))
			if r.cause() != pfcp.CauseMandatoryIEMissing || len(r.ies[40]) != 2 || r.ies[40][1] != missing {
				t.Errorf("cause %d, offending %x", r.cause(), r.ies[40])
			}
		})
	}
	m.mustSetUp()
}

// Row A1.
func TestUnknownAddress(t *testing.T) {
	m := newSMF(t, "smf1", "127.0.0.1:0")
	unknown := newSMF(t, "smf2", "127.0.0.2:0")
	h := start(t, quiet(m.peer()), nil, m, unknown)
	m.mustSetUp()
	h.rises("peer-not-allowed", 1, func() { unknown.setUp().wants(pfcp.CauseRejected) })
	other := newSMF(t, "smf3", "127.0.0.1:0") // the address is listed, with another node id
	other.server = m.server
	h.rises("peer-not-allowed", 1, func() { other.setUp().wants(pfcp.CauseRejected) })
	testkit.Equal(t, h.s.Snapshot().Refusals[0].Text, "Node ID smf3; pfcp.peers has smf1 for this address", "text")
	m.establish(1)
}

// Row A2: one datagram must not delete another's sessions.
func TestLiveNodeID(t *testing.T) {
	m := newSMF(t, "smf1", "127.0.0.1:0")
	thief := newSMF(t, "smf1", "127.0.0.2:0")
	other := newSMF(t, "smf2", "127.0.0.2:0")
	h := start(t, quiet(m.peer(), peerAt(thief.addr, "")), nil, m, thief, other)
	m.mustSetUp()
	seid := m.establish(1)
	h.rises("node-id-taken", 1, func() { thief.setUp().wants(pfcp.CauseRejected) })
	other.mustSetUp()
	for _, typ := range []pfcp.MessageType{pfcp.AssociationReleaseRequestType, pfcp.AssociationUpdateRequestType} {
		h.rises("no-association", 1, func() {
			r := other.ask(message(typ, 0, other.next(), nodeIE("smf1")))
			r.wants(pfcp.CauseNoAssociation, typ, "in another's name")
		})
	}
	h.rises("no-association", 1, func() {
		other.ask(establishment(other.next(), "smf1", 7, other.addr.Addr())).wants(pfcp.CauseNoAssociation,
			"establishment in another's name")
	})
	if r := m.delete(seid); r.cause() != pfcp.CauseAccepted || r.seid != 1 {
		t.Errorf("deletion by the owner: cause %d", r.cause())
	}
}

// Row A3: unknown peers fill neither the table nor a configured peer's place.
func TestAssociationLimit(t *testing.T) {
	m := newSMF(t, "smf1", "127.0.0.1:0")
	flood := newSMF(t, "x", "127.0.0.2:0")
	cfg := quiet(m.peer())
	cfg.AllowUnknown, cfg.Associations, cfg.AssociationsPerAddress, cfg.Rates.Heartbeats = true, 6, 100, 1<<20
	h := start(t, cfg, nil, m, flood)
	const ids = 5000
	acceptedIDs := 0
	for i := range ids {
		r := flood.ask(message(pfcp.AssociationSetupRequestType, 0, flood.next(), nodeIE(fmt.Sprintf("x%d", i)),
			recoveryIE(time.Now())))
		switch r.cause() {
		case pfcp.CauseAccepted:
			acceptedIDs++
		case pfcp.CauseNoResources:
		default:
			t.Fatalf("cause %d", r.cause())
		}
	}
	testkit.ErrorIf(t, acceptedIDs != 5 || len(h.s.Snapshot().Associations) != 5,
		"%d accepted, five wanted", acceptedIDs)
	testkit.Equal(t, h.s.Snapshot().Rejected["association-limit"], ids-5, "counted")
	m.mustSetUp()
	m.establish(1)

	one := quiet()
	one.AllowUnknown, one.AssociationsPerAddress = true, 2
	start(t, one, nil, flood)
	for i, want := range []pfcp.Cause{1, 1, 75} {
		flood.node = fmt.Sprintf("y%d", i)
		flood.setUp().wants(want, "association", i, "of one address")
	}
}

// The sessions of a CP function that associates again are deleted, except those that it asks to retain.
func TestReassociation(t *testing.T) {
	h, m := associated(t)
	m.establish(1)
	m.mustSetUp(group(183)) // PFCP Session Retention Information: all
	testkit.ErrorIf(t, h.fake.Count("smf1") != 1, "retained sessions are gone")
	m.mustSetUp(group(183, ie(185, append([]byte{2}, m.addr.Addr().AsSlice()...)...)))
	if h.fake.Count("smf1") != 1 || len(h.fake.seen().retained) != 1 || h.fake.seen().retained[0][0] != m.addr.Addr() {
		t.Errorf("retained by address: %v", h.fake.seen().retained)
	}
	m.mustSetUp()
	testkit.Until(t, "sessions deleted", func() bool { return h.fake.Count("smf1") == 0 })
	m.establish(2)
}

func TestNodeRequests(t *testing.T) {
	h, m := associated(t)
	m.establish(1)
	r := m.ask(message(pfcp.SessionSetDeletionRequestType, 0, m.next(), nodeIE(m.node), ie(65, 1, 10, 0, 0, 1, 0, 5)))
	testkit.ErrorIf(t, r.cause() != pfcp.CauseAccepted || h.fake.seen().fqcsid != 1,
		"session set deletion: cause %d", r.cause())
	pfds := message(pfcp.PFDManagementRequestType, 0, m.next(), group(58, ie(24, []byte("app")...)))
	if r := m.ask(pfds); r.cause() != pfcp.CauseAccepted || h.fake.seen().pfds != 1 {
		t.Errorf("PFD management: cause %d", r.cause())
	}
	done := make(chan error, 1)
	h.s.RequestRelease("smf1", time.Minute, func(err error) { done <- err })
	ask := m.must("a request")
	if ask.typ != pfcp.AssociationUpdateRequestType || len(ask.ies[111]) != 1 || ask.ies[111][0]&1 == 0 {
		t.Fatalf("release request: %+v", ask)
	}
	m.send(message(pfcp.AssociationUpdateResponseType, 0, ask.sequence, nodeIE(m.node), ie(19, 1)))
	testkit.Must(t, <-done)
	testkit.Equal(t, h.s.Snapshot().Associations[0].State, "releasing", "state")
	h.s.NodeReport(&pfcp.NodeReportRequest{Failed: []pfcp.RemotePeer{{Addr: netip.MustParseAddr("192.0.2.1")}}})
	ask = m.must("a node report")
	testkit.FatalIf(t, ask.typ != pfcp.NodeReportRequestType || len(ask.ies[102]) == 0, "node report: %+v", ask)
	m.send(message(pfcp.NodeReportResponseType, 0, ask.sequence, nodeIE(m.node), ie(19, 1)))
	testkit.Until(t, "node report answered", func() bool { return h.s.Snapshot().Requests == 0 })
}

// A drained user plane refuses associations until it is resumed; what there is stays. Meanwhile it dials no peer.
func TestDrained(t *testing.T) {
	other := newSMF(t, "smf2", "127.0.0.1:0")
	h, m := associated(t, func(c *Config) { c.Peers = append(c.Peers, other.peer()) })
	other.server = m.server
	drained := func(on bool) {
		h.s.SetDrained(on)
		h.own(func() { testkit.Equal(t, h.s.drained, on, "drained") }) // jobs run in turn
	}
	drained(true)
	other.setUp().wants(pfcp.CauseNoResources)
	testkit.Equal(t, len(h.s.Snapshot().Associations), 1, "associations")
	h.own(func() {
		d := &dial{peer: &h.s.cfg.Peers[1]}
		h.s.dialler.dials = append(h.s.dialler.dials, d)
		h.s.dialler.dial(d)
		testkit.Equal(t, d.open, false, "a request of ours under way")
	})
	drained(false)
	testkit.Equal(t, other.must("a request of ours").typ, pfcp.AssociationSetupRequestType, "what comes")
	other.mustSetUp()
}

// A session that was under way when its association ended does not stay behind.
func TestReleaseDuringEstablishment(t *testing.T) {
	h, m := associated(t)
	hold := make(chan struct{})
	h.fake.with(func() { h.fake.hold = hold })
	m.send(establishment(m.next(), m.node, 1, m.addr.Addr()))
	testkit.Until(t, "under way", func() bool { return h.s.Snapshot().InFlight == 1 })
	m.ask(message(pfcp.AssociationReleaseRequestType, 0, m.next(), nodeIE(m.node)))
	h.fake.with(func() { h.fake.hold = nil })
	close(hold)
	m.must("an answer").wants(pfcp.CauseNoAssociation)
	testkit.Until(t, "session deleted", func() bool { return h.fake.Count("") == 0 })
}

// Claiming another's SMF set, or its address as an alternative one, gives no access to its sessions (row A4).
func TestClaims(t *testing.T) {
	m, thief := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0")
	peer := m.peer()
	peer.Set = "set1"
	cfg := quiet(peer)
	cfg.AllowUnknown = true
	h := start(t, cfg, nil, m, thief)
	m.mustSetUp()
	seid := m.establish(1)
	set := ie(180, append([]byte{0, 4}, "set1"...)...)
	other := ie(178, append([]byte{2}, m.addr.Addr().AsSlice()...)...)
	thief.mustSetUp(set, other)
	a := h.s.Find("smf2")
	testkit.ErrorIf(t, a.Set != "", "set %q", a.Set)
	thief.delete(seid).wants(pfcp.CauseContextNotFound)
	elsewhere := newSMF(t, "smf1", "127.0.0.1:0") // the owner, from another port
	elsewhere.server = m.server
	elsewhere.delete(seid).wants(pfcp.CauseAccepted)
}

// TS 29.244 §7.6: an unreadable optional IE counts as absent. It costs its own purpose, not the association.
func TestUnreadableOptionalIE(t *testing.T) {
	h, m := served(t)
	for name, bad := range map[string][]byte{
		"SMF set of nothing": ie(180), "SMF set, no name": ie(180, 0, 3, 's', 1, 2), "CP features of nothing": ie(89),
		"UP features too short": ie(43, 1), "alternative address, cut": ie(178, 2, 127, 0),
		"alternative address, none": ie(178, 2, 0, 0, 0, 0),
		"retention":                 group(183, ie(185, 2, 127)), "UE pool": group(233, ie(22, 1)),
	} {
		before := h.happened("ie-unreadable")
		if r := m.setUp(bad); r.cause() != pfcp.CauseAccepted {
			t.Errorf("%s: cause %d", name, r.cause())
			continue
		}
		a := h.s.Find("smf1")
		testkit.ErrorIf(t, a.Set != "" || h.happened("ie-unreadable") != before+1, "%s: %+v", name, a)
	}
	r := m.ask(message(pfcp.AssociationUpdateRequestType, 0, m.next(), nodeIE(m.node), ie(89)))
	r.wants(pfcp.CauseAccepted, "update")
	if r := m.ask(message(pfcp.HeartbeatRequestType, 0, m.next(), recoveryIE(m.recovery),
		ie(192, 2, 127))); r.typ != pfcp.HeartbeatResponseType {
		t.Errorf("heartbeat: %+v", r)
	}
	// A malformed structure is no optional IE, and mandatory IEs are required.
	for want, bad := range map[byte][]byte{185: ie(183, 0, 185, 0, 9, 2), 60: ie(60, 0, 1)} {
		if r := m.ask(message(pfcp.AssociationSetupRequestType, 0, m.next(), bad, nodeIE(m.node),
			recoveryIE(m.recovery))); r.cause() !=
			pfcp.CauseInvalidLength || r.ies[40][1] != want {
			t.Errorf("IE %d: cause %d", want, r.cause())
		}
	}
}

// Versions of go-pfcp leave out the spare octet before the name (TS 29.244 §8.2.131).
func TestSetIDWithoutSpareOctet(t *testing.T) {
	h, m := served(t)
	for _, v := range []string{"\x04set1\x03smf", "\x00\x04set1\x03smf", "\x01\x04set1\x03smf"} {
		if r := m.setUp(ie(180, []byte(v)...)); r.cause() != pfcp.CauseAccepted {
			t.Errorf("%q: cause %d", v, r.cause())
		} else if a := h.s.Find("smf1"); a.Set != "set1.smf" {
			t.Errorf("%q: set %q", v, a.Set)
		}
	}
}

func TestStoreFails(t *testing.T) {
	h, m := associated(t)
	m.establish(1)
	h.fake.with(func() { h.fake.failKeep = true })
	h.rises("system-failure", 1, func() { m.setUp().wants(pfcp.CauseSystemFailure) })
	h.told("association.store-failed")
	h.fake.with(func() { h.fake.failKeep = false })
	m.mustSetUp()
}

// A returning control plane continues with the same time stamp, association and sessions.
func TestRestartOfOurs(t *testing.T) {
	h, m := associated(t)
	seid := m.establish(1)
	h.stop()
	cfg := fast(m.peer())
	cfg.Listen = on(h.s.Listening()[0].String())
	again := start(t, cfg, h.fake, m)
	if r := m.ask(message(pfcp.HeartbeatRequestType, 0, m.next(),
		recoveryIE(m.recovery))); r.typ != pfcp.HeartbeatResponseType ||
		binary.BigEndian.Uint32(r.ies[96]) != uint32(h.fake.recovery.Unix()+ntpEpoch) {
		t.Error("the recovery time stamp moved")
	}
	testkit.Until(t, "heartbeats go on", func() bool { return again.s.Snapshot().Associations[0].Heartbeats > 1 })
	m.delete(seid).wants(pfcp.CauseAccepted, "deletion after the restart")
	testkit.ErrorIf(t, len(h.fake.seen().released) > 0, "sessions were released")
}

func TestConnect(t *testing.T) {
	m := newSMF(t, "smf1", "127.0.0.1:0")
	peer := m.peer()
	peer.Connect = true
	h := start(t, quiet(peer), nil, m)
	answer := func(cause byte, node string) {
		r := m.must("an association set-up request")
		testkit.FatalIf(t, r.typ != pfcp.AssociationSetupRequestType || len(r.ies[43]) < 4,
			"no association set-up request: %+v", r)
		m.send(message(pfcp.AssociationSetupResponseType, 0, r.sequence, nodeIE(node), ie(19, cause),
			recoveryIE(m.recovery), ie(89, 1)))
	}
	answer(64, "smf1") // refused: once more, later
	answer(1, "other") // from another node id
	answer(1, "smf1")
	testkit.Until(t, "association", func() bool { return h.s.Find("smf1") != nil })
	m.establish(1)
	m.ask(message(pfcp.AssociationReleaseRequestType, 0, m.next(), nodeIE("smf1")))
	answer(1, "smf1")
	testkit.Until(t, "association again", func() bool { return h.s.Find("smf1") != nil })
}

func TestAddressOfAnotherHost(t *testing.T) {
	cfg := quiet()
	cfg.Listen = on("192.0.2.1:8805")
	_, err := New(cfg, newFake().all(), nil)
	testkit.Refused(t, err, "pfcp.listen: 192.0.2.1 is no address of this host: give it one (`ip addr add`)")
}

func TestFeatures(t *testing.T) {
	all := Features(Capabilities{UserPlane: true, PDN: true, ChooseFTEID: true, Pools: true, Applications: true})
	for _, never := range []uint64{pfcp.UPBucp, pfcp.UPHeeu, pfcp.UPTrst, pfcp.UPBundl} {
		if all&never != 0 {
			t.Errorf("%v is told", nameBits(never, featureNames))
		}
	}
	some := Features(Capabilities{})
	for _, bit := range []uint64{pfcp.UPFtup, pfcp.UPUeip, pfcp.UPPfdm, pfcp.UPFrrt, pfcp.UPTreu, pfcp.UPDdnd} {
		if all&bit == 0 || some&bit != 0 {
			t.Errorf("%v does not follow what is configured", nameBits(bit, featureNames))
		}
	}
}

// A node report that is not answered comes again, with what is still true, while the association lives.
func TestNodeReportAgain(t *testing.T) {
	h, m := associated(t, func(c *Config) { c.Heartbeat.Timeout, c.Heartbeat.Retries = 50*time.Millisecond, 1 })
	seen := make(map[uint32]bool) // sequence numbers
	// again waits until each of these was sent, given up and sent again under another sequence number. Other
	// reports may be pending only from before the first of them.
	again := func(what ...string) {
		t.Helper()
		numbers := make(map[string]map[uint32]bool)
		end := time.Now().Add(testkit.Limit)
		for slices.ContainsFunc(what, func(w string) bool { return len(numbers[w]) < 2 }) {
			r := m.must("a node report of " + strings.Join(what, " and "))
			testkit.FatalIf(t, time.Now().After(end), "not told again: %q, but %v", what, numbers)
			told := nodeReportOf(r)
			switch {
			case slices.Contains(what, told):
				if numbers[told] == nil {
					numbers[told] = make(map[uint32]bool)
				}
				numbers[told][r.sequence] = true
			case !seen[r.sequence] && len(numbers) > 0:
				t.Fatalf("told %q, not only %q", told, what)
			}
			seen[r.sequence] = true
		}
	}
	peer := func(n byte) []pfcp.RemotePeer {
		return []pfcp.RemotePeer{{Addr: netip.AddrFrom4([4]byte{192, 0, 2, n})}}
	}
	h.s.NodeReport(&pfcp.NodeReportRequest{Failed: slices.Concat(peer(1), peer(2))})
	again("failed 1 2")
	h.s.NodeReport(&pfcp.NodeReportRequest{Restored: peer(1)}) // so it is no longer down
	again("failed 2", "restored 1")
	// Answers all reports but one, until at most so many peers are pending.
	answer := func(left int, but string) {
		t.Helper()
		testkit.Until(t, "answered", func() bool {
			for len(m.in) > 0 {
				r := <-m.in
				seen[r.sequence] = true
				if nodeReportOf(r) != but {
					m.send(message(pfcp.NodeReportResponseType, 0, r.sequence, nodeIE(m.node), ie(19, 1)))
				}
			}
			return h.pending() == left
		})
	}
	// An answer is for the report that it answers, and no other.
	answer(1, "failed 2")
	again("failed 2")
	// An answered report is not sent again while a new one is.
	answer(0, "")
	h.s.NodeReport(&pfcp.NodeReportRequest{Failed: peer(3)})
	again("failed 3")
}

// nodeReportOf returns the last octets of the GTP-U peers in a report's User Plane Path Failure Report (102) and User
// Plane Path Recovery Report (187).
func nodeReportOf(r *reply) (told string) {
	for _, list := range []struct {
		name string
		ie   uint16
	}{{"failed", 102}, {"restored", 187}} {
		if b := r.ies[list.ie]; b != nil {
			told += list.name
			for ; len(b) >= 9; b = b[9:] { // 103: Remote GTP-U Peer, with an IPv4 address
				told += fmt.Sprintf(" %d", b[8])
			}
		}
	}
	return told
}

// pending is how much associations have not acknowledged.
func (h *harness) pending() (n int) {
	h.own(func() {
		for _, a := range h.s.table.associations {
			n += len(a.pending)
		}
	})
	return n
}

// waitOut lets time pass in which something must not happen.
func waitOut(d time.Duration) { time.Sleep(d) }
