// SPDX-License-Identifier: Apache-2.0

package dp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/cputest"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/testkit"
)

func dial(t testing.TB, s *dptest.Server) *dp.Client {
	t.Helper()
	c, err := dp.Dial(t.Context(), s.Path)
	testkit.Must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

var port = api.Body(&api.Port{Role: api.RoleAccess, MTU: 1500})

func TestApplyAndList(t *testing.T) {
	s := dptest.Start(t)
	c := dial(t, s)
	route := api.Body(&api.Route{Prefix: api.Address{Family: 4}})
	changes := []dp.Change{
		{Kind: api.KindPort, Key: "access", Body: port},
		{Kind: api.KindPort, Key: "core", Body: port},
		{Kind: api.KindRoute, Key: "0.0.0.0/0", Body: route},
	}
	testkit.Must(t, c.Apply(t.Context(), changes))
	testkit.Must(t, c.Apply(t.Context(), []dp.Change{{Kind: api.KindPort, Key: "core"}}))
	held, err := dp.Held(t.Context(), c, nil)
	testkit.Must(t, err)
	want := map[string]uint64{"access": api.BodyDigest(port), "0.0.0.0/0": api.BodyDigest(route)}
	testkit.ErrorIf(t, len(held) != len(want), "%d objects held, want %d", len(held), len(want))
	for _, h := range held {
		key := api.CString(h.Key[:])
		testkit.ErrorIf(t, want[key] != h.Digest, "%s: digest %#x", key, h.Digest)
	}
}

func TestRefusedTransactionNamesTheObject(t *testing.T) {
	s := dptest.Start(t)
	c := dial(t, s)
	s.Refuse("no such device", func(id dptest.ID, _ []byte) bool { return id.Key == "core" })
	err := c.Apply(t.Context(), []dp.Change{{Kind: api.KindPort, Key: "access", Body: port},
		{Kind: api.KindPort, Key: "core", Body: port}})
	var refused *dp.RefusedError
	if !errors.As(err, &refused) || refused.Key != "core" ||
		!strings.Contains(err.Error(), `port "core": no such device`) {
		t.Fatalf("got %v", err)
	}
	testkit.ErrorIf(t, len(s.Held()) != 0, "a refused transaction changed %v", s.Held())
	if _, err := dp.Held(t.Context(), c, nil); err != nil {
		t.Errorf("connection unusable after a refusal: %v", err)
	}
}

func TestBadNamesNeverReachTheSocket(t *testing.T) {
	s := dptest.Start(t)
	c := dial(t, s)
	for _, key := range []string{"", strings.Repeat("x", api.NameSize), "a\x00b"} {
		err := c.Apply(t.Context(), []dp.Change{{Kind: api.KindPort, Key: key, Body: port}})
		testkit.ErrorIf(t, err == nil, "key %q accepted", key)
	}
	testkit.Must(t, c.Apply(t.Context(), []dp.Change{{Kind: api.KindPort, Key: "ok", Body: port}}))
}

func TestVersionMismatchIsExplained(t *testing.T) {
	s := dptest.Start(t)
	for _, version := range []uint32{3, 77} { // 3: of before the first release
		s.SetVersion(version)
		_, err := dp.Dial(t.Context(), s.Path)
		words := fmt.Sprintf("data plane speaks contract versions %d to %d and the control plane 1 to 1", version,
			version)
		testkit.FatalIf(t, err == nil || !strings.Contains(err.Error(), words), "got %v", err)
	}
	s.SetVersion(api.Version)
	l := api.Layouts()
	l[5].Digest++
	s.SetLayouts(l)
	_, err := dp.Dial(t.Context(), s.Path)
	if err == nil || !strings.Contains(err.Error(), "struct api_acl is laid out otherwise") {
		t.Fatalf("got %v", err)
	}
	l[5].Size += 8 // it knows more of it, so it compares
	if _, err = dp.Dial(t.Context(), s.Path); err != nil {
		t.Fatal(err)
	}
}

func TestLossIsSeenWhileIdle(t *testing.T) {
	s := dptest.Start(t)
	c := dial(t, s)
	s.Kill()
	testkit.Receive(t, c.Done())
	_, err := dp.Held(t.Context(), c, nil)
	testkit.ErrorIf(t, err == nil, "request on a dead connection succeeded")
}

func TestTables(t *testing.T) {
	s := dptest.Start(t)
	c := dial(t, s)
	row := api.TotalRow{In: 5, Out: 4, Dropped: 1}
	s.SetTable(api.TableTotal, api.Body(&row))
	got, err := dp.Table[api.TotalRow](t.Context(), c, api.TableTotal, "", 0)
	testkit.ErrorIf(t, err != nil || len(got) != 1 || got[0] != row, "got %v, %v", got, err)
	s.SetTable(api.TableTotal, api.Body(&row)[:17])
	if _, err := dp.Table[api.TotalRow](t.Context(), c, api.TableTotal, "", 0); !errors.Is(err, dp.ErrProtocol) {
		t.Errorf("half a row: got %v", err)
	}
	if err := c.Stream(t.Context(), "up", true); err != nil || !s.Running("up") {
		t.Errorf("stream not started: %v", err)
	}
}

// 64 K sessions travel in one transaction (BenchmarkManyChanges measures it). The rows of a long table come a message
// at a time. Stopping in between ends the connection: the rest is on its way.
func TestRowsInMessages(t *testing.T) {
	s := dptest.Start(t)
	c := dial(t, s)
	rows := func(names ...string) []byte {
		list := make([]api.URRRow, len(names))
		for i := range names {
			copy(list[i].Session[:], names[i])
		}
		return api.AppendRows(nil, list)
	}
	s.SetTable(api.TableURR, rows("a", "b"), rows("c"))
	var read []string
	take := func(some []api.URRRow) error {
		for i := range some {
			read = append(read, api.CString(some[i].Session[:]))
		}
		read = append(read, ".")
		return nil
	}
	testkit.Must(t, dp.EachRows(t.Context(), c, api.TableURR, take))
	testkit.Equal(t, strings.Join(read, ""), "ab.c.", "rows")
	s.SetTable(api.TableURR)
	testkit.Must(t, dp.EachRows(t.Context(), c, api.TableURR, take))
	s.SetTable(api.TableURR, rows("a"), rows("b"), rows("c"))
	enough := errors.New("enough")
	err := dp.EachRows(t.Context(), c, api.TableURR, func([]api.URRRow) error { return enough })
	testkit.ErrorIf(t, !errors.Is(err, enough), "%v", err)
	testkit.Receive(t, c.Done())
	err = dp.EachRows(t.Context(), c, api.TableURR, take)
	testkit.ErrorIf(t, err == nil, "rows of a connection that has ended")
}

func TestManyChanges(t *testing.T) {
	s := dptest.Start(t)
	c := dial(t, s)
	changes := manyChanges()
	cputest.Bound(t, 10*time.Second, "transaction", func() { // both sides of it
		testkit.Must(t, c.Apply(t.Context(), changes))
	})
	if commits, n := s.Counts(); commits != 1 || n != len(changes) || len(s.Held()) != len(changes) {
		t.Errorf("%d changes in %d transactions, %d held", n, commits, len(s.Held()))
	}
}

func manyChanges() []dp.Change {
	changes := make([]dp.Change, 64<<10)
	for i := range changes {
		changes[i] = dp.Change{Kind: api.KindSession, Key: fmt.Sprintf("home-%d", i), Body: make([]byte, 600)}
	}
	return changes
}

// BenchmarkManyChanges is 64 K sessions in one transaction; the goal is less than a second.
func BenchmarkManyChanges(b *testing.B) {
	c := dial(b, dptest.Start(b))
	changes := manyChanges()
	for b.Loop() {
		testkit.Must(b, c.Apply(b.Context(), changes))
	}
}

func TestSilentDataPlaneTimesOut(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go io.Copy(io.Discard, theirs)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := dp.NewClient(ctx, ours)
	testkit.ErrorIf(t, !errors.Is(err, context.DeadlineExceeded), "got %v", err)
}

// A caller that gives up, like a closed browser, ends neither the request nor the shared connection.
func TestWhoGivesUpLeavesTheConnection(t *testing.T) {
	s := dptest.Start(t)
	c := dial(t, s)
	entered, goOn := make(chan struct{}), make(chan struct{})
	s.Refuse("no", func(dptest.ID, []byte) bool {
		close(entered)
		<-goOn
		return false
	})
	ctx, cancel := context.WithCancel(t.Context())
	change := []dp.Change{{Kind: api.KindPort, Key: "p", Body: port}}
	applied := make(chan error)
	go func() { applied <- c.Apply(ctx, change) }()
	<-entered
	cancel()
	close(goOn)
	testkit.Must(t, <-applied)
	testkit.ErrorIf(t, !errors.Is(c.Apply(ctx, change), context.Canceled), "who has given up before is served")
	_, err := dp.Held(t.Context(), c, nil)
	testkit.Must(t, err)
}

// A caller that waits behind another's request may give up, and the request goes on.
func TestWaitingForATurnEnds(t *testing.T) {
	s := dptest.Start(t)
	c := dial(t, s)
	entered, goOn := make(chan struct{}), make(chan struct{})
	s.Refuse("no", func(dptest.ID, []byte) bool {
		close(entered)
		<-goOn
		return false
	})
	applied, waited := make(chan error, 1), make(chan error, 1)
	go func() { applied <- c.Apply(t.Context(), []dp.Change{{Kind: api.KindPort, Key: "p", Body: port}}) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := dp.Held(ctx, c, nil)
		waited <- err
	}()
	cancel()
	err := testkit.Receive(t, waited)
	testkit.ErrorIf(t, !errors.Is(err, context.Canceled), "got %v", err)
	close(goOn)
	testkit.Must(t, <-applied)
}

func TestRepliesWithoutEndTimeOut(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go io.Copy(io.Discard, theirs)
	go func() {
		h := api.Header{Magic: api.Magic, Type: api.TypeHello, Sequence: 1}
		for {
			if _, err := theirs.Write(api.Encode(&h)); err != nil {
				return
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := dp.NewClient(ctx, ours); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// FuzzReplies answers every request with random bytes: errors are fine, panics and hangs are not.
func FuzzReplies(f *testing.F) {
	hello := api.Hello{Version: api.Version, Oldest: api.Version}
	h := api.Header{Magic: api.Magic, Type: api.TypeHello, Flags: api.FLast, Length: uint32(len(api.Body(&hello))),
		Sequence: 1}
	good := append(api.Encode(&h), api.Body(&hello)...)
	f.Add(good)
	h = api.Header{Magic: api.Magic, Type: api.TypeList, Flags: api.FLast, Length: uint32(len(api.Body(&api.Digest{}))),
		Sequence: 2}
	f.Add(append(append(good, api.Encode(&h)...), api.Body(&api.Digest{})...))
	h = api.Header{Magic: api.Magic, Type: api.TypeList, Flags: api.FError, Length: 0xffffffff, Sequence: 2}
	f.Add(append(append([]byte{}, good...), api.Encode(&h)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs)
		go func() {
			theirs.Write(data)
			theirs.Close()
		}()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c, err := dp.NewClient(ctx, ours)
		if err != nil {
			return
		}
		defer c.Close()
		dp.Held(ctx, c, nil)
		dp.Table[api.SessionRow](ctx, c, api.TableSession, "", 0)
		c.Apply(ctx, []dp.Change{{Kind: api.KindPort, Key: "p", Body: port}})
	})
}

func TestRefusalsNameTheObjectOnce(t *testing.T) {
	for _, r := range []struct {
		key, text, want string
	}{
		{"access", "port access: no such device", "refused by the data plane: port access: no such device"},
		{"access", "mtu is 7", `refused by the data plane: port "access": mtu is 7`},
		{"a", "an MTU that nobody can have", `refused by the data plane: port "a": an MTU that nobody can have`},
		{"home-1", "session home-12 and home-1 have the same MAC",
			"refused by the data plane: session home-12 and home-1 have the same MAC"},
		{"home-1", "session home-12", `refused by the data plane: port "home-1": session home-12`},
		{"a", "", `refused by the data plane: port "a": error 22`},
		{"", "text", `refused by the data plane: port "": text`},
	} {
		e := &dp.RefusedError{Code: 22, Kind: api.KindPort, Key: r.key, Text: r.text}
		testkit.Equal(t, e.Error(), r.want, "error")
	}
}

func TestCommitReturnsUsage(t *testing.T) {
	s := dptest.Start(t)
	c := dial(t, s)
	s.Usage(func(id dptest.ID, was, is []byte) []api.Usage {
		if is == nil {
			return []api.Usage{{SEID: 7, URR: 1, Bytes: [3]uint64{3, 1, 2}}, {SEID: 7, URR: 2}}
		}
		return nil
	})
	rows, err := c.Commit(t.Context(), []dp.Change{{Kind: api.KindSession, Key: "a", Body: port}})
	testkit.FatalIf(t, err != nil || len(rows) != 0, "%v %v", rows, err)
	rows, err = c.Commit(t.Context(), []dp.Change{{Kind: api.KindSession, Key: "a"}})
	testkit.FatalIf(t, err != nil || len(rows) != 2 || rows[0].Bytes[0] != 3 || rows[1].URR != 2,
		"%v %v", rows, err)
}

// Events come in order, unacknowledged ones come again to the next subscriber, and a lost connection is noticed.
func TestSubscription(t *testing.T) {
	s := dptest.Start(t)
	s.Raise(api.Event{Type: api.EventTypeInactive, SEID: 1})
	s.Raise(api.Event{Type: api.EventTypeInactive, SEID: 2})
	next := func(sub *dp.Subscription, count int) (seids []uint64) {
		for len(seids) < count {
			events, err := sub.Next(t.Context())
			testkit.Must(t, err)
			for _, e := range events {
				seids = append(seids, e.SEID)
				if e.SEID == 1 {
					testkit.Must(t, sub.Acknowledge(e.Sequence))
				}
			}
		}
		return seids
	}
	first, err := dp.Subscribe(t.Context(), s.Path)
	testkit.Must(t, err)
	s.Raise(api.Event{Type: api.EventTypeInactive, SEID: 3})
	if got := next(first, 3); fmt.Sprint(got) != "[1 2 3]" {
		t.Errorf("%v", got)
	}
	if _, err := dp.Held(t.Context(), dial(t, s), nil); err != nil { // other connections go on
		t.Error(err)
	}
	testkit.Until(t, "acknowledged", func() bool { return s.Unacknowledged() == 2 }) // nothing answers it
	first.Close()
	second, err := dp.Subscribe(t.Context(), s.Path)
	testkit.Must(t, err)
	defer second.Close()
	if got := next(second, 2); fmt.Sprint(got) != "[2 3]" {
		t.Errorf("%v", got)
	}
	s.Kill()
	if _, err := second.Next(t.Context()); err == nil {
		t.Error("the loss was not noticed")
	}
}

// A request's write deadline ends with the request: a later acknowledgement arrives.
func TestLateAcknowledgement(t *testing.T) {
	s := dptest.New("")
	ours, theirs := net.Pipe()
	go s.Serve(theirs)
	c, err := dp.NewClient(t.Context(), ours)
	testkit.Must(t, err)
	defer c.Close()
	sub, err := c.Subscribe()
	testkit.Must(t, err)
	s.Raise(api.Event{Type: api.EventTypeInactive})
	events, err := sub.Next(t.Context())
	testkit.Must(t, err)
	testkit.Must(t, ours.SetWriteDeadline(time.Now()))
	testkit.Must(t, sub.Acknowledge(events[0].Sequence))
	testkit.Until(t, "acknowledged", func() bool { return s.Unacknowledged() == 0 })
}

// Every kind of the contract has a word, which clients and logs have, too.
func TestKindNames(t *testing.T) {
	var list []string
	for kind := range uint32(api.KindCount + 1) {
		list = append(list, dp.KindName(kind))
	}
	testkit.Equal(t, strings.Join(list, ", "), "kind 0, engine, port, interface, route, neighbour, acl, policer, "+
		"scheduler, instance, path, session, stream, nat, mirror, counter, nptv6, clone, gtsm, lines, remark, "+
		"kind 21",
		"words")
}
