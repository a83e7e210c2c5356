// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// fakeSession is what the fake session layer holds of a session.
type fakeSession struct {
	association, set string
	cp               pfcp.FSEID
}

// fakeSessions is a session layer without rules. hold, when not nil, keeps answers back until it is closed.
type fakeSessions struct {
	lock         sync.Mutex
	sessions     map[uint64]*fakeSession
	next         uint64
	established  int
	deleted      int
	stored       map[string]StoredAssociation
	recovery     time.Time
	hold         chan struct{}
	block        chan struct{} // Establish itself does not return
	pfds         int
	released     []string
	retained     [][]netip.Addr
	fqcsid       int
	adopted      int
	failKeep     bool
	modifyAnswer pfcp.Cause
	quota        int // sessions of one association; 0: none
}

func newFake() *fakeSessions {
	return &fakeSessions{sessions: map[uint64]*fakeSession{}, next: 0x1000, stored: map[string]StoredAssociation{},
		recovery: time.Unix(1_800_000_000, 0), modifyAnswer: pfcp.CauseAccepted}
}

func (f *fakeSessions) all() Sessions { return Sessions{f, f, f} }

func (f *fakeSessions) later(reply func()) {
	f.lock.Lock()
	hold := f.hold
	f.lock.Unlock()
	if hold == nil {
		reply()
		return
	}
	go func() {
		<-hold
		reply()
	}()
}

func (f *fakeSessions) Establish(from *Association, req *pfcp.SessionEstablishmentRequest,
	reply func(*pfcp.SessionEstablishmentResponse)) {
	f.lock.Lock()
	block := f.block
	f.lock.Unlock()
	if block != nil {
		<-block
	}
	f.later(func() {
		if f.quota > 0 && f.Count(from.ID) >= f.quota {
			reply(&pfcp.SessionEstablishmentResponse{Cause: pfcp.CauseNoResources})
			return
		}
		f.lock.Lock()
		f.next++
		seid := f.next
		f.sessions[seid] = &fakeSession{from.ID, from.Set, req.CP}
		f.established++
		f.lock.Unlock()
		reply(&pfcp.SessionEstablishmentResponse{Cause: pfcp.CauseAccepted,
			UP: pfcp.FSEID{SEID: seid, IPv4: netip.MustParseAddr("127.0.0.1")}})
	})
}

func (f *fakeSessions) mine(from []*Association, seid uint64) *fakeSession {
	s := f.sessions[seid]
	if s == nil || !slices.ContainsFunc(from, func(a *Association) bool {
		return s.association == a.ID || s.set != "" && s.set == a.Set
	}) {
		return nil
	}
	return s
}

func (f *fakeSessions) Modify(from []*Association, seid uint64, _ *pfcp.SessionModificationRequest,
	reply func(*pfcp.SessionModificationResponse, uint64)) {
	f.lock.Lock()
	s, answer := f.mine(from, seid), f.modifyAnswer
	f.lock.Unlock()
	f.later(func() {
		if s == nil {
			reply(&pfcp.SessionModificationResponse{Cause: pfcp.CauseContextNotFound}, 0)
			return
		}
		reply(&pfcp.SessionModificationResponse{Cause: answer}, s.cp.SEID)
	})
}

func (f *fakeSessions) Delete(from []*Association, seid uint64, reply func(*pfcp.SessionDeletionResponse, uint64)) {
	f.later(func() {
		f.lock.Lock()
		s := f.mine(from, seid)
		if s != nil {
			delete(f.sessions, seid)
			f.deleted++
		}
		f.lock.Unlock()
		if s == nil {
			reply(&pfcp.SessionDeletionResponse{Cause: pfcp.CauseContextNotFound}, 0)
			return
		}
		reply(&pfcp.SessionDeletionResponse{Cause: pfcp.CauseAccepted}, s.cp.SEID)
	})
}

func (f *fakeSessions) Locate(from []*Association, seid uint64, reply func(uint64)) {
	f.later(func() {
		f.lock.Lock()
		var cp uint64
		if s := f.mine(from, seid); s != nil {
			cp = s.cp.SEID
		}
		f.lock.Unlock()
		reply(cp)
	})
}

func (f *fakeSessions) drop(association string, keep func(*fakeSession) bool) (n int) {
	for seid, s := range f.sessions {
		if s.association == association && !keep(s) {
			delete(f.sessions, seid)
			n++
		}
	}
	return n
}

func (f *fakeSessions) Release(association string, fqcsid [][]byte, done func(int)) *pfcp.Error {
	f.lock.Lock()
	f.released = append(f.released, association)
	f.fqcsid += len(fqcsid)
	n := f.drop(association, func(*fakeSession) bool { return false })
	f.lock.Unlock()
	go done(n)
	return nil
}

func (f *fakeSessions) Retain(association string, keep []netip.Addr, done func(int)) {
	f.lock.Lock()
	f.retained = append(f.retained, keep)
	n := f.drop(association, func(s *fakeSession) bool { return slices.Contains(keep, s.cp.IPv4) })
	f.lock.Unlock()
	go done(n)
}

func (f *fakeSessions) SetPFDs(_ *pfcp.PFDManagementRequest, reply func(*pfcp.Error)) {
	f.lock.Lock()
	f.pfds++
	f.lock.Unlock()
	go reply(nil)
}

func (f *fakeSessions) Count(association string) (n int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, s := range f.sessions {
		if association == "" || s.association == association {
			n++
		}
	}
	return n
}

func (f *fakeSessions) Associations() []StoredAssociation {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Collect(maps.Values(f.stored))
}

func (f *fakeSessions) KeepAssociation(a StoredAssociation) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.failKeep {
		return errors.New("disk full")
	}
	f.stored[a.ID] = a
	return nil
}

func (f *fakeSessions) ForgetAssociation(id string) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.stored, id)
	return nil
}

func (f *fakeSessions) Recovery() time.Time { return f.recovery }

func (f *fakeSessions) Adopt(from, to string) (n int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, s := range f.sessions {
		if s.association == from {
			s.association = to
			n++
		}
	}
	f.adopted += n
	return n
}

// seen reads what the fake counted.
func (f *fakeSessions) seen() (s struct {
	established, deleted, pfds, fqcsid int
	released                           []string
	retained                           [][]netip.Addr
}) {
	f.lock.Lock()
	defer f.lock.Unlock()
	s.established, s.deleted, s.pfds, s.fqcsid = f.established, f.deleted, f.pfds, f.fqcsid
	s.released, s.retained = slices.Clone(f.released), slices.Clone(f.retained)
	return s
}

func (f *fakeSessions) with(do func()) {
	f.lock.Lock()
	defer f.lock.Unlock()
	do()
}

// ---- messages by hand: nothing of package pfcp, so that a mistake in it does not cancel out
// ---------------------------

func ie(t uint16, value ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, t)
	b = binary.BigEndian.AppendUint16(b, uint16(len(value)))
	return append(b, value...)
}

func group(t uint16, ies ...[]byte) []byte { return ie(t, slices.Concat(ies...)...) }

func u32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }

const ntpEpoch = 2208988800

func recoveryIE(t time.Time) []byte { return ie(96, u32(uint32(t.Unix()+ntpEpoch))...) }

func nodeIE(name string) []byte {
	if a, err := netip.ParseAddr(name); err == nil && a.Is4() {
		return ie(60, append([]byte{0}, a.AsSlice()...)...)
	}
	return ie(60, labels(2, name)...)
}

// labels is a name as the DNS writes it, after an octet.
func labels(first byte, name string) []byte {
	value := []byte{first}
	for l := range strings.SplitSeq(name, ".") {
		value = append(append(value, byte(len(l))), l...)
	}
	return value
}

func fseidIE(seid uint64, a netip.Addr) []byte {
	flag := byte(2)
	if a.Is6() {
		flag = 1
	}
	return ie(57, append(binary.BigEndian.AppendUint64([]byte{flag}, seid), a.AsSlice()...)...)
}

// message builds one; seid is in the header of session messages.
func message(t pfcp.MessageType, seid uint64, sequence uint32, ies ...[]byte) []byte {
	body := slices.Concat(ies...)
	b := []byte{0x20, byte(t), 0, 0}
	if t >= 50 {
		b[0] |= 1
		b = binary.BigEndian.AppendUint64(b, seid)
	}
	b = binary.BigEndian.AppendUint32(b, sequence<<8)
	b = append(b, body...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)-4))
	return b
}

func establishment(sequence uint32, node string, cp uint64, addr netip.Addr) []byte {
	return message(pfcp.SessionEstablishmentRequestType, 0, sequence, nodeIE(node), fseidIE(cp, addr),
		group(1, ie(56, 0, 1), ie(29, 0, 0, 0, 100), group(2, ie(20, 0), ie(21, 5)), ie(108, 0, 0, 0, 1)),
		group(3, ie(108, 0, 0, 0, 1), ie(44, 2), group(4, ie(42, 1))))
}

// reply is a message that came back.
type reply struct {
	t        testing.TB
	typ      pfcp.MessageType
	sequence uint32
	seid     uint64
	ies      map[uint16][]byte
	from     netip.AddrPort
	raw      []byte
}

func (r *reply) cause() pfcp.Cause {
	if c := r.ies[19]; len(c) == 1 {
		return pfcp.Cause(c[0])
	}
	return 0
}

// wants fails the test for another cause; what names the answer, where that is not plain.
func (r *reply) wants(cause pfcp.Cause, what ...any) {
	r.t.Helper()
	if r.cause() != cause {
		r.t.Error(append(what, "cause", r.cause(), "not", cause)...)
	}
}

// parseReply copies b: the next datagram is read into it while a test still looks at this one.
func parseReply(t testing.TB, b []byte, from netip.AddrPort) *reply {
	b = slices.Clone(b)
	r := &reply{t: t, typ: pfcp.MessageType(b[1]), ies: map[uint16][]byte{}, from: from, raw: b}
	if int(binary.BigEndian.Uint16(b[2:]))+4 != len(b) {
		t.Errorf("length of an answer is wrong: %x", b)
		return r
	}
	at := 4
	if b[0]&1 != 0 {
		r.seid = binary.BigEndian.Uint64(b[4:])
		at = 12
	}
	r.sequence = binary.BigEndian.Uint32(b[at:]) >> 8
	for rest := b[at+4:]; len(rest) >= 4; {
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if n > len(rest)-4 {
			t.Errorf("an IE of an answer is too long: %x", b)
			break
		}
		r.ies[binary.BigEndian.Uint16(rest)] = rest[4 : 4+n]
		rest = rest[4+n:]
	}
	return r
}

// smf is a CP function of the tests. It answers heartbeats itself; other messages go to in.
type smf struct {
	t        testing.TB
	node     string
	conn     *net.UDPConn
	addr     netip.AddrPort
	in       chan *reply
	lock     sync.Mutex
	recovery time.Time
	silent   bool
	beats    int // heartbeat requests seen
	sequence uint32
	server   netip.AddrPort
}

func newSMF(t testing.TB, node, addr string) *smf {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
	testkit.Must(t, err)
	conn.SetReadBuffer(4 << 20)
	a := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	m := &smf{t: t, node: node, conn: conn, addr: netip.AddrPortFrom(a.Addr().Unmap(), a.Port()),
		in:       make(chan *reply, 1<<14),
		recovery: time.Unix(1_700_000_000, 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.read()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return m
}

func (m *smf) read() {
	b := make([]byte, 65536)
	for {
		n, from, err := m.conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		m.lock.Lock()
		r := parseReply(m.t, b[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
		silent, recovery := m.silent, m.recovery
		if r.typ == pfcp.HeartbeatRequestType {
			m.beats++
		}
		m.lock.Unlock()
		if silent {
			continue
		}
		if r.typ == pfcp.HeartbeatRequestType {
			m.conn.WriteToUDPAddrPort(message(pfcp.HeartbeatResponseType, 0, r.sequence, recoveryIE(recovery)), from)
			continue
		}
		select {
		case m.in <- r:
		default:
		}
	}
}

func (m *smf) set(do func()) {
	m.lock.Lock()
	defer m.lock.Unlock()
	do()
}

func (m *smf) send(b []byte) {
	m.t.Helper()
	_, err := m.conn.WriteToUDPAddrPort(b, m.server)
	testkit.Must(m.t, err)
}

func (m *smf) next() uint32 {
	m.sequence++
	return m.sequence
}

// wait returns the next message, nil when none comes within d.
func (m *smf) wait(d time.Duration) *reply {
	select {
	case r := <-m.in:
		return r
	case <-time.After(d):
		return nil
	}
}

// must returns the next message.
func (m *smf) must(what string) *reply {
	m.t.Helper()
	r := m.wait(testkit.Limit)
	testkit.FatalIf(m.t, r == nil, "nothing comes: %s", what)
	return r
}

// ask sends and returns the reply.
func (m *smf) ask(b []byte) *reply {
	m.t.Helper()
	m.send(b)
	return m.must(fmt.Sprintf("an answer to message type %d", b[1]))
}

// silence fails when something comes.
func (m *smf) silence(d time.Duration) {
	m.t.Helper()
	if r := m.wait(d); r != nil {
		m.t.Fatalf("an answer came: type %d cause %d", r.typ, r.cause())
	}
}

func (m *smf) setUp(ies ...[]byte) *reply {
	m.t.Helper()
	m.lock.Lock()
	recovery := m.recovery
	m.lock.Unlock()
	return m.ask(message(pfcp.AssociationSetupRequestType, 0, m.next(),
		append([][]byte{nodeIE(m.node), recoveryIE(recovery)}, ies...)...))
}

func (m *smf) mustSetUp(ies ...[]byte) {
	m.t.Helper()
	r := m.setUp(ies...)
	testkit.FatalIf(m.t, r.cause() != pfcp.CauseAccepted, "association set-up: cause %d", r.cause())
}

// establish returns the UP SEID.
func (m *smf) establish(cp uint64) uint64 {
	m.t.Helper()
	r := m.ask(establishment(m.next(), m.node, cp, m.addr.Addr()))
	testkit.FatalIf(m.t, r.cause() != pfcp.CauseAccepted || r.seid != cp || len(r.ies[57]) < 9,
		"establishment: cause %d seid %d", r.cause(), r.seid)
	return binary.BigEndian.Uint64(r.ies[57][1:])
}

func (m *smf) delete(seid uint64) *reply {
	m.t.Helper()
	return m.ask(message(pfcp.SessionDeletionRequestType, seid, m.next()))
}

func (m *smf) alive() {
	m.t.Helper()
	r := m.ask(message(pfcp.HeartbeatRequestType, 0, m.next(), recoveryIE(m.recovery)))
	testkit.FatalIf(m.t, r.typ != pfcp.HeartbeatResponseType, "no heartbeat response, but %d", r.typ)
}

// harness is a running server.
type harness struct {
	t    testing.TB
	fake *fakeSessions
	s    *Server
	stop func()

	lock  sync.Mutex
	heard map[string]int // by kind: what the server published (SetTell)
	odd   bool           // a name came without its value
}

// Waits until the server has published a kind of event.
func (h *harness) told(kind string) {
	h.t.Helper()
	testkit.Until(h.t, kind, func() bool {
		h.lock.Lock()
		defer h.lock.Unlock()
		return h.heard[kind] > 0 && !h.odd
	})
}

func (m *smf) peer() config.PFCPPeer { return peerAt(m.addr, m.node) }

// served is a server with one peer, smf1, and its quiet configuration, changed; associated, when that has set up.
func served(t testing.TB, change ...func(c *Config)) (*harness, *smf) {
	t.Helper()
	m := newSMF(t, "smf1", "127.0.0.1:0")
	cfg := quiet(m.peer())
	for _, fn := range change {
		fn(&cfg)
	}
	return start(t, cfg, nil, m), m
}

func associated(t testing.TB, change ...func(c *Config)) (*harness, *smf) {
	t.Helper()
	h, m := served(t, change...)
	m.mustSetUp()
	return h, m
}

func start(t testing.TB, cfg Config, fake *fakeSessions, smfs ...*smf) *harness {
	t.Helper()
	if cfg.Features == 0 {
		cfg.Features = Features(Capabilities{UserPlane: true, PDN: true, ChooseFTEID: true, Pools: true,
			Applications: true})
	}
	if fake == nil {
		fake = newFake()
	}
	s, err := New(cfg, fake.all(), slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	for _, m := range smfs {
		m.server = s.Listening()[0]
	}
	h := &harness{t: t, fake: fake, s: s, heard: map[string]int{}}
	s.SetTell(func(kind, _ string, args ...any) {
		h.lock.Lock()
		defer h.lock.Unlock()
		h.heard[kind]++
		h.odd = h.odd || len(args)%2 != 0
	})
	h.stop = testkit.Run(t, s.Run)
	return h
}

// rises runs do, and expects exactly n refused messages, all for one reason, without any other change.
func (h *harness) rises(reason string, n uint64, do func()) {
	h.t.Helper()
	before := h.s.Snapshot()
	do()
	var after *Snapshot
	testkit.Until(h.t, reason, func() bool {
		after = h.s.Snapshot()
		return after.Rejected[reason] >= before.Rejected[reason]+n && after.InFlight == before.InFlight
	})
	want := maps.Clone(before.Rejected)
	want[reason] += n
	if n == 0 {
		delete(want, reason)
		if before.Rejected[reason] > 0 {
			want[reason] = before.Rejected[reason]
		}
	}
	testkit.ErrorIf(h.t, !maps.Equal(want, after.Rejected), "rejected %v, not %v", after.Rejected, want)
	if after.Sessions != before.Sessions || len(after.Associations) != len(before.Associations) {
		h.t.Errorf("%d sessions and %d associations, before %d and %d", after.Sessions, len(after.Associations),
			before.Sessions, len(before.Associations))
	}
}

func (h *harness) happened(event string) uint64 { return h.s.Snapshot().Events[event] }

// own does something where the server's tables are written.
func (h *harness) own(do func()) {
	done := make(chan struct{})
	h.s.post(func() {
		defer close(done)
		do()
	})
	<-done
}

// failPath has the server find that nothing answers its heartbeats.
func (h *harness) failPath(id string) {
	h.own(func() { h.s.paths.failed(h.s.table.associations[id], ErrTimeout) })
}

// report sends a session report to the CP function; the channel has its outcome.
func (h *harness) report(seid uint64, m *smf) <-chan error {
	end := make(chan error, 1)
	h.s.Report(Recipient{Association: m.node, CP: pfcp.FSEID{SEID: seid, IPv4: m.addr.Addr()}},
		&pfcp.SessionReportRequest{Inactive: true},
		func(_ *pfcp.SessionReportResponse, _ *Association, err error) { end <- err })
	return end
}
