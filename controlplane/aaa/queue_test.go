// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/cputest"
	"isthmus/controlplane/radius"
	"isthmus/controlplane/testkit"
)

// taker is an accounting server that can be away, and returns what it accepted.
type taker struct {
	conn *net.UDPConn
	mu   sync.Mutex
	away bool
	took []string // "session kind"
}

func newTaker(t testing.TB, away bool) *taker {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	k := &taker{conn: conn, away: away}
	go k.serve()
	return k
}

func (k *taker) serve() {
	buffer := make([]byte, 4096)
	for {
		n, from, err := k.conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		p, err := radius.Parse(append([]byte(nil), buffer[:n]...))
		k.mu.Lock()
		if err != nil || k.away {
			k.mu.Unlock()
			continue
		}
		if p.Code == radius.AccountingRequest {
			a := radius.Attribute{Type: radius.AcctStatusType, Value: p.Get(radius.AcctStatusType)}
			kind, _ := a.Uint32()
			k.took = append(k.took, fmt.Sprintf("%s %s", p.Get(radius.AcctSessionId), Kind(kind)))
		}
		k.mu.Unlock()
		out := &radius.Packet{Code: radius.AccountingResponse, ID: p.ID}
		b, _ := out.Encode(nil, []byte(sharedSecret), &p.Authenticator)
		k.conn.WriteToUDPAddrPort(b, from)
	}
}

func (k *taker) list() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.took)
}

func (k *taker) set(away bool) {
	k.mu.Lock()
	k.away = away
	k.mu.Unlock()
}

func (k *taker) yaml(limit, drain int) string {
	return fmt.Sprintf(`radius:
  servers: [{address: 127.0.0.1, accounting_port: %d, secret: %s, timeout_ms: 300, tries: 1, status: 1, dead_time: 1}]
  accounting: {queue: %d, drain: %d}
`, k.conn.LocalAddr().(*net.UDPAddr).Port, sharedSecret, limit, drain)
}

// memory is a store.
type memory struct {
	mu   sync.Mutex
	kept map[uint64][]byte
}

func (m *memory) Keep(id uint64, b []byte) {
	m.mu.Lock()
	m.kept[id] = b
	m.mu.Unlock()
}

func (m *memory) Forget(id uint64) {
	m.mu.Lock()
	delete(m.kept, id)
	m.mu.Unlock()
}

func (m *memory) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.kept)
}

func account(t testing.TB, a *AAA, session string, kinds ...Kind) {
	t.Helper()
	for _, kind := range kinds {
		testkit.Must(t, a.Account(sample(kind, session)))
	}
}

// Without a server, interims of a session become one; with a server, none is sent twice or out of order.
func TestLateRatherThanLost(t *testing.T) {
	k := newTaker(t, true)
	store := &memory{kept: map[uint64][]byte{}}
	a := aaaOf(t, k.yaml(1000, 100_000), Options{Store: store})
	account(t, a, "s1", Start)
	testkit.Until(t, "away", func() bool { return a.State().Queue.Away })
	account(t, a, "s1", Interim, Interim, Interim)
	account(t, a, "s2", Start, Interim, Stop)
	account(t, a, "s3", Interim, Interim)
	q := a.State().Queue
	testkit.Equal(t, q.Merged, 4, "merged")
	testkit.Equal(t, q.Waiting, 5, "waiting")
	testkit.Equal(t, store.len(), 5, "kept")
	k.set(false)
	testkit.Until(t, "all sent", func() bool { return a.State().Queue.Sent == 5 })
	got := k.list()
	for _, session := range []string{"s1", "s2", "s3"} {
		var own []string
		for _, one := range got {
			if one[:2] == session {
				own = append(own, one)
			}
		}
		want := map[string][]string{"s1": {"s1 start", "s1 interim"}, "s2": {"s2 start", "s2 stop"},
			"s3": {"s3 interim"}}[session]
		testkit.ErrorIf(t, !slices.Equal(own, want), "%v, not %v", own, want)
	}
	testkit.Until(t, "nothing kept", func() bool { return store.len() == 0 })
	testkit.Until(t, "not draining", func() bool { return !a.State().Queue.Draining })
}

// A full queue drops interims first, then starts, and stops last; each is counted.
func TestFullQueue(t *testing.T) {
	k := newTaker(t, true)
	store := &memory{kept: map[uint64][]byte{}}
	a := aaaOf(t, k.yaml(16, 1000), Options{Store: store})
	account(t, a, "first", Start)
	testkit.Until(t, "away", func() bool { return a.State().Queue.Away })
	for i := range 15 {
		account(t, a, fmt.Sprint("i", i), Interim)
	}
	for i := range 15 {
		account(t, a, fmt.Sprint("s", i), Start)
	}
	q := a.State().Queue
	testkit.Equal(t, q.DroppedInterims, 15, "interims dropped")
	for i := range 16 {
		account(t, a, fmt.Sprint("e", i), Stop)
	}
	q = a.State().Queue
	testkit.Equal(t, q.DroppedStarts, 16, "starts dropped")
	testkit.Equal(t, q.DroppedStops, 0, "stops dropped")
	account(t, a, "more", Interim, Start, Stop)
	q = a.State().Queue
	testkit.Equal(t, q.DroppedInterims, 16, "interims dropped")
	testkit.Equal(t, q.DroppedStarts, 17, "starts dropped")
	testkit.Equal(t, q.DroppedStops, 1, "stops dropped")
	testkit.Equal(t, q.Waiting, 16, "waiting")
	testkit.Equal(t, store.len(), 16, "kept")
	k.set(false)
	testkit.Until(t, "all sent", func() bool { return a.State().Queue.Sent == 16 })
	testkit.Equal(t, a.State().Queue.Waiting, 0, "waiting")
	testkit.Until(t, "no line is left", func() bool {
		a.queue.mu.Lock()
		defer a.queue.mu.Unlock()
		return len(a.queue.lines) == 0
	})
}

// Records are dropped for lack of room while the servers are away: their sessions leave nothing behind, and stops find
// room while there is a start.
func TestFullForLong(t *testing.T) {
	const limit = 100
	q := newQueue(nil, t.Logf)
	q.use(&radius.Client{}, limit, 1)
	q.counts.Away = true
	for i := range limit {
		q.add(&record{kind: Start, session: fmt.Sprint("start ", i)}, false)
	}
	for i := range limit {
		q.add(&record{kind: Stop, session: fmt.Sprint("stop ", i)}, false)
	}
	testkit.Equal(t, q.counts.DroppedStarts, limit, "starts dropped")
	testkit.Equal(t, q.counts.DroppedStops, 0, "stops dropped")
	testkit.Equal(t, len(q.lines), limit, "sessions")
	testkit.Equal(t, len(q.ready), limit, "sessions whose turn comes")
}

// An early Accounting-On does not block the Accounting-Off that comes while records wait.
func TestOffAfterOn(t *testing.T) {
	q := newQueue(nil, t.Logf)
	q.use(&radius.Client{}, 100, 1)
	q.counts.Draining = true
	q.add(&record{kind: On}, false)
	q.add(&record{kind: Start, session: "s"}, false)
	sends := func(kind Kind) {
		q.tokens = 1
		r, _ := q.take()
		testkit.ErrorIf(t, r == nil || r.kind != kind, "%v in place of %s", r, kind)
		q.done(r, nil)
	}
	sends(On)
	q.add(&record{kind: Off}, false)
	sends(Start)
	sends(Off)
	testkit.Equal(t, len(q.lines)+len(q.ready)+len(q.behind), 0, "left")
}

// A record that a server is slow to accept delays Accounting-On and newer records: these are not visited at each
// arrival.
func TestManyBehindOn(t *testing.T) {
	const sessions = 40_000
	q := newQueue(nil, t.Logf)
	q.use(&radius.Client{}, 2*sessions, 1)
	q.counts.Draining = true
	q.add(&record{kind: Stop, session: "former"}, false)
	q.tokens = 1
	former, _ := q.take()
	q.add(&record{kind: On}, false)
	cputest.Bound(t, 2*time.Second, "sessions behind Accounting-On", func() {
		for n := range sessions {
			q.tokens = 1
			q.add(&record{kind: Start, session: strconv.Itoa(n)}, false)
		}
	})
	q.tokens = 0
	q.done(former, nil)
	for n := range sessions + 1 {
		q.tokens = 1
		r, _ := q.take()
		q.tokens = 0
		testkit.FatalIf(t, r == nil || (r.kind == On) != (n == 0), "%v is record %d", r, n)
		testkit.FatalIf(t, n > 0 && r.session != strconv.Itoa(n-1), "%s is record %d", r.session, n)
		q.done(r, nil)
	}
	testkit.Equal(t, len(q.lines)+len(q.ready)+len(q.behind), 0, "left")
}

// restore gives a process what another kept.
func (m *memory) restore(t *testing.T, to *AAA) {
	m.mu.Lock()
	kept := maps.Clone(m.kept)
	m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(kept)) {
		testkit.Must(t, to.Restore(id, kept[id]))
	}
}

// Stored records are sent by the next process, in order, with their age.
func TestRestored(t *testing.T) {
	k := newTaker(t, true)
	store := &memory{kept: map[uint64][]byte{}}
	a := aaaOf(t, k.yaml(100, 1000), Options{Store: store})
	account(t, a, "s1", Start, Stop)
	account(t, a, "s2", Start)
	a.Close(t.Context())
	testkit.Equal(t, store.len(), 3, "kept")

	k.set(false)
	b := aaaOf(t, k.yaml(100, 1000), Options{Store: store})
	store.restore(t, b)
	testkit.Until(t, "all sent", func() bool { return b.State().Queue.Sent == 3 })
	account(t, b, "s2", Stop)
	testkit.Until(t, "the next", func() bool { return b.State().Queue.Sent == 4 && store.len() == 0 })
	got := k.list()
	testkit.ErrorIf(t, slices.Index(got, "s1 start") > slices.Index(got, "s1 stop"), "%v", got)
	testkit.Equal(t, got[3], "s2 stop", "last")
	testkit.Refused(t, b.Restore(9, []byte{1, 2, 3}), "cannot be read")
}

// Nothing of a session overtakes Accounting-On.
func TestOnFirst(t *testing.T) {
	k := newTaker(t, true)
	a := aaaOf(t, k.yaml(100, 100_000), Options{})
	account(t, a, "", On)
	account(t, a, "s1", Start)
	account(t, a, "s2", Start)
	testkit.Until(t, "away", func() bool { return a.State().Queue.Away })
	k.set(false)
	testkit.Until(t, "all sent", func() bool { return a.State().Queue.Sent == 3 })
	testkit.ErrorIf(t, !strings.HasSuffix(k.list()[0], " on"), "%v", k.list())
}

// Loss and return of a server are published.
func TestServersEvents(t *testing.T) {
	k := newTaker(t, true)
	told := make(chan string, 8)
	a := aaaOf(t, k.yaml(100, 100), Options{Notify: func(kind, about string, fields ...any) {
		told <- fmt.Sprint(kind, " ", about, " ", fields[1])
	}})
	account(t, a, "s1", Start)
	testkit.Equal(t, <-told, "radius.down 127.0.0.1 accounting", "event")
	k.set(false)
	testkit.Equal(t, <-told, "radius.up 127.0.0.1 accounting", "event")
}

// Accounting-On does not overtake a former process' unsent records: the server would end the new sessions with it.
func TestOnBehindFormerRecords(t *testing.T) {
	k := newTaker(t, true)
	store := &memory{kept: map[uint64][]byte{}}
	a := aaaOf(t, k.yaml(100, 100_000), Options{Store: store})
	account(t, a, "s1", Start, Stop)
	account(t, a, "s2", Stop)
	account(t, a, "", Off)
	a.Close(t.Context())
	b := aaaOf(t, k.yaml(100, 100_000), Options{Store: store})
	store.restore(t, b)
	account(t, b, "", On)
	account(t, b, "s3", Start)
	k.set(false)
	testkit.Until(t, "all sent", func() bool { return b.State().Queue.Sent == 6 })
	got := k.list()
	for i, suffix := range []string{" off", " on", " start"} {
		testkit.ErrorIf(t, !strings.HasSuffix(got[3+i], suffix), "%q", got)
	}
}

func TestImpossibleRecord(t *testing.T) {
	a := aaaOf(t, newTaker(t, false).yaml(100, 100), Options{})
	testkit.Refused(t, a.Account(sample(Start, "")), "a session of the name")
	r := sample(Start, "s")
	for range 16 {
		r.Class = append(r.Class, make([]byte, 253))
	}
	testkit.Refused(t, a.Account(r), "too long")
	r = sample(Start, "s")
	r.User = string(make([]byte, 254))
	testkit.Refused(t, a.Account(r), "User-Name of 254 octets")
}

func BenchmarkAccount(b *testing.B) {
	k := newTaker(b, false)
	a := aaaOf(b, k.yaml(1<<20, 1_000_000), Options{})
	r := sample(Interim, "s")
	r.Cause = access.UserRequest
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Session = fmt.Sprint(i % 100_000)
		testkit.Must(b, a.Account(r))
	}
}

// Accounting-Off ends all sessions at the server: no Stop comes behind it.
func TestOffIsLast(t *testing.T) {
	k := newTaker(t, true)
	a := aaaOf(t, k.yaml(1000, 100_000), Options{})
	account(t, a, "s1", Start, Stop)
	account(t, a, "s2", Start, Stop)
	account(t, a, "", Off)
	k.set(false)
	testkit.Until(t, "all sent", func() bool { return a.State().Queue.Sent == 5 })
	got := k.list()
	testkit.ErrorIf(t, len(got) != 5 || !strings.HasSuffix(got[4], " off"), "%q", got)
}

// A waiter for settled accounting returns when servers have all records, or accept none.
func TestSettled(t *testing.T) {
	there := newTaker(t, false)
	a := aaaOf(t, there.yaml(100, 100_000), Options{})
	account(t, a, "s1", Start, Stop)
	testkit.Equal(t, a.Settled(t.Context()), 0, "waiting, a server is there")
	testkit.Equal(t, len(there.list()), 2, "records that it has")
	a = aaaOf(t, newTaker(t, true).yaml(100, 100_000), Options{})
	account(t, a, "s1", Start, Stop)
	testkit.Equal(t, a.Settled(t.Context()), 2, "waiting, none is there")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.Equal(t, a.Settled(over), 2, "waiting, when nobody waits any more")
}
