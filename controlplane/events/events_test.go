// SPDX-License-Identifier: Apache-2.0

package events

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

func TestReadAndResume(t *testing.T) {
	l := New(nil)
	l.Publish("port.up", "core", "driver", "synth", "error", errors.New("why"), "wait", 2*time.Second)
	l.Publish("session.established", "n4.1", "association", "smf")
	l.Publish("port.down", "core")
	page, err := l.Read("", 0, Filter{})
	testkit.Must(t, err)
	testkit.FatalIf(t, len(page.Events) != 3 || page.Lost != 0, "%+v", page)
	first := page.Events[0]
	testkit.ErrorIf(t, first.ID != 1 || first.Fields["error"] != "why" || first.Fields["wait"] != 2.0, "%+v", first)
	page, err = l.Read(first.Cursor(), 1, Filter{})
	testkit.Must(t, err)
	testkit.ErrorIf(t, len(page.Events) != 1 || page.Events[0].ID != 2 || page.Next != page.Events[0].Cursor(),
		"%+v", page)
	page, err = l.Read("2", 0, Filter{})
	testkit.Must(t, err)
	testkit.ErrorIf(t, len(page.Events) != 1 || page.Events[0].Kind != "port.down", "%+v", page)
	page, err = l.Read("", 0, Filter{Kinds: []string{"session"}})
	testkit.Must(t, err)
	testkit.ErrorIf(t, len(page.Events) != 1 || page.Events[0].Subject != "n4.1", "%+v", page)
	page, err = l.Read("0123-7", 0, Filter{})
	testkit.Must(t, err)
	testkit.ErrorIf(t, len(page.Events) != 3, "another start's cursor: %+v", page)
	for _, bad := range []string{"x", "-", l.boot + "-x", "1 or 1=1", strings.Repeat("1", 100)} {
		_, err = l.Read(bad, 0, Filter{})
		testkit.ErrorIf(t, err == nil, "%q is taken", bad)
	}
}

// Session events displace no other kinds, and displaced events are counted.
func TestRings(t *testing.T) {
	l := New(nil)
	l.Publish("port.down", "core")
	for i := range 3 * sessionRing {
		l.Publish("session.established", fmt.Sprint(i))
	}
	page, err := l.Read("1", 0, Filter{})
	testkit.Must(t, err)
	testkit.ErrorIf(t, len(page.Events) != sessionRing || page.Lost != 2*sessionRing, "%d, lost %d",
		len(page.Events), page.Lost)
	for i := range page.Events {
		testkit.FatalIf(t, page.Events[i].ID != page.Events[0].ID+uint64(i), "out of order at %d", i)
	}
	page, err = l.Read("", 1, Filter{})
	testkit.Must(t, err)
	testkit.ErrorIf(t, page.Events[0].Kind != "port.down", "the link is forgotten")
}

// A line that is refused all the time, under ever new names, displaces neither rare events nor others'.
func TestRingsAreShared(t *testing.T) {
	l := New(nil)
	l.Publish("config.applied", "a.yaml")
	l.Publish("subscriber.refused", "anna", "line", "access:1.1")
	for i := range 3 * otherRing {
		l.Publish("subscriber.refused", fmt.Sprint("user", i), "line", "access:1.2")
	}
	page, err := l.Read("", 0, Filter{})
	testkit.Must(t, err)
	testkit.Equal(t, len(page.Events), 1+otherRing, "events in memory")
	testkit.Equal(t, page.Events[0].Kind+" "+page.Events[1].Subject, "config.applied anna", "the rare ones")
	for i := range 2 * otherRing {
		l.Publish("subscriber.refused", "berta", "line", fmt.Sprint("access:2.", i))
	}
	page, err = l.Read("", 0, Filter{Kinds: []string{"subscriber"}})
	testkit.Must(t, err)
	testkit.Equal(t, page.Events[0].Subject, "berta", "the oldest, of many lines")
}

// A slow follower is disconnected; publishers never wait, and nothing between page and follower is lost.
func TestFollowers(t *testing.T) {
	l := New(nil)
	l.Publish("port.up", "a")
	f, page, err := l.Follow("a client", "", false, Filter{})
	testkit.Must(t, err)
	testkit.Equal(t, len(page.Events), 1, "events in memory")
	for i := range followerQueue + 5 {
		l.Publish("port.down", fmt.Sprint(i))
	}
	n := 0
	var last Event
	for {
		e, err := f.Next(t.Context())
		if err != nil {
			testkit.ErrorIf(t, !errors.Is(err, ErrBehind), "%v", err)
			break
		}
		last = e
		n++
	}
	testkit.Equal(t, n, followerQueue, "events before it fell behind")
	page, err = l.Read(last.Cursor(), 0, Filter{})
	testkit.Must(t, err)
	testkit.ErrorIf(t, len(page.Events) != 5 || page.Lost != 0, "%d left, %d lost", len(page.Events), page.Lost)
	testkit.Equal(t, l.Stats(), Stats{Published: followerQueue + 6, Dropped: 1}, "counts")
	f.Close()
	for i := range maxFollowers {
		_, _, err := l.Follow(fmt.Sprint(i), "", true, Filter{})
		testkit.Must(t, err)
	}
	_, _, err = l.Follow("a client", "", true, Filter{})
	testkit.ErrorIf(t, !errors.Is(err, ErrTooMany), "%v", err)
}

// Publishers and followers beside each other (race detector).
func TestConcurrent(t *testing.T) {
	l := New(nil)
	var group sync.WaitGroup
	for range 4 {
		group.Add(2)
		go func() {
			defer group.Done()
			for i := range 2000 {
				l.Publish("session.established", fmt.Sprint(i))
			}
		}()
		go func() {
			defer group.Done()
			f, page, err := l.Follow("a client", "", false, Filter{})
			testkit.Must(t, err)
			defer f.Close()
			var id uint64
			if n := len(page.Events); n > 0 {
				id = page.Events[n-1].ID
			}
			for id < 8000 {
				e, err := f.Next(t.Context())
				if err != nil {
					return
				}
				testkit.ErrorIf(t, e.ID != id+1, "%d after %d", e.ID, id)
				id = e.ID
			}
		}()
	}
	group.Wait()
}

func TestSessionsAreCounted(t *testing.T) {
	l := New(nil)
	now := time.Unix(1000, 0)
	l.now = func() time.Time { return now }
	made := 0
	s := NewSessions(l, func(uint64) string { made++; return "n4.1" })
	for range 1000 {
		s.Established(1, "smf")
		s.Modified()
		s.Deleted(1, "smf")
	}
	s.Flush()
	s.Flush()
	page, err := l.Read("", 0, Filter{})
	testkit.Must(t, err)
	testkit.FatalIf(t, len(page.Events) != 21 || made != 20, "%d events, %d names", len(page.Events), made)
	got := page.Events[20]
	testkit.ErrorIf(t, got.Kind != "session.count" || got.Fields["established"] != uint64(990) ||
		got.Fields["modified"] != uint64(1000) || got.Fields["deleted"] != uint64(990), "%+v", got)
	now = now.Add(time.Second)
	s.Established(1, "smf")
	testkit.Equal(t, made, 21, "a second later")
}

// A session that is counted allocates nothing.
func TestCountingIsCheap(t *testing.T) {
	l := New(nil)
	s := NewSessions(l, func(uint64) string { return "n4.1" })
	for range 20 {
		s.Established(1, "smf")
	}
	s.gate.since = time.Now().Add(time.Hour)
	n := testing.AllocsPerRun(1000, func() { s.Established(1, "smf") })
	testkit.Equal(t, n, 0, "allocations")
}

func TestAuditFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "audit.log")
	a := NewAudit(path, slog.New(slog.DiscardHandler))
	a.size = 2000
	l := New(a)
	l.Publish("port.up", "core")
	for i := range 200 {
		l.By(&Who{Via: "unix", UID: 7}, "config.applied", fmt.Sprint(i), "put", i)
	}
	var subjects []string
	for _, name := range []string{".3", ".2", ".1", ""} {
		info, err := os.Stat(path + name)
		testkit.Must(t, err)
		testkit.ErrorIf(t, info.Size() > a.size || info.Mode().Perm() != 0o600, "%s: %d bytes, %v", name,
			info.Size(), info.Mode())
		f, err := os.Open(path + name)
		testkit.Must(t, err)
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var e Event
			testkit.Must(t, json.Unmarshal(lines.Bytes(), &e))
			testkit.ErrorIf(t, e.Who == nil || e.Who.UID != 7, "%s", lines.Text())
			subjects = append(subjects, e.Subject)
		}
	}
	testkit.ErrorIf(t, subjects[len(subjects)-1] != "199" || len(subjects) < 20, "%v", subjects)
	_, err := os.Stat(path + ".4")
	testkit.ErrorIf(t, err == nil, "a fifth file")
}

// A line torn by a full disk or a power cut is not joined with the next one.
func TestAuditAfterATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	testkit.Must(t, os.WriteFile(path, []byte("{\"id\":1}\n{\"id\":2,\"ki"), 0o600))
	l := New(NewAudit(path, slog.New(slog.DiscardHandler)))
	for range 2 {
		l.By(&Who{Via: "unix"}, "config.applied", "f")
	}
	text, err := os.ReadFile(path)
	testkit.Must(t, err)
	lines := strings.Split(string(text), "\n")
	testkit.Equal(t, len(lines), 5, "lines of %q", text)
	for _, i := range []int{0, 2, 3} {
		testkit.ErrorIf(t, !json.Valid([]byte(lines[i])), "line %d: %s", i, lines[i])
	}
}

// A disk that takes nothing costs a line of the log, not the change.
func TestAuditFileFails(t *testing.T) {
	var said strings.Builder
	a := NewAudit("/proc/no/audit.log", slog.New(slog.NewTextHandler(&said, nil)))
	New(a).By(&Who{Via: "unix"}, "config.applied", "f")
	testkit.ErrorIf(t, !strings.Contains(said.String(), "not in the audit file"), "%q", said.String())
}

func TestLongTextIsCut(t *testing.T) {
	l := New(nil)
	l.Publish("config.refused", "\xff", "error", strings.Repeat("é", 10000))
	page, _ := l.Read("", 0, Filter{})
	got := page.Events[0]
	testkit.ErrorIf(t, len(got.Fields["error"].(string)) > maxText+4 || got.Subject != "�", "%+v", got)
}

func TestReferenceEvents(t *testing.T) {
	var rows [][]string
	for _, k := range Kinds {
		fields := ""
		if k.Fields != "" {
			fields = "`" + k.Fields + "`"
		}
		rows = append(rows, []string{"`" + k.Name + "`", k.Subject, fields, k.Text})
	}
	var p testkit.Page
	p.Text("What happened to the gateway: [`isthmus events`](commands.md#isthmus-events), or over HTTP.")
	p.Table("field | meaning", [][]string{
		{"`id`, `boot`", "A rising number, and the start of the control plane that counts. A cursor is `BOOT-ID`; " +
			"that of an earlier boot means the first event."},
		{"`time`, `kind`, `subject`", "When, what, and of which object."},
		{"`fields`", "By kind. Not every event of a kind has every field."},
		{"`who`", "The client that asked for it: `via` (`unix`, `tcp`, `signal`); by the Unix socket `uid`, `pid`, " +
			"`program`; by TCP `token`, `address`."},
	})
	p.Section("Bounds")
	p.Table("what | bound", [][]string{
		{"in memory", fmt.Sprintf("The last %d of each kind, %d of `session.*`. An answer has the number of "+
			"lost ones (`lost`).", otherRing, sessionRing)},
		{"share", fmt.Sprintf("In a full kind a line or subject keeps at most 1/%d.", shareOfRing)},
		{"sessions", fmt.Sprintf("%d events a second; `session.count` has the others.",
			NewSessions(nil, nil).gate.Most)},
		{"followers", fmt.Sprintf("%d. One with %d waiting events gets `end`; it resumes after its last id.",
			maxFollowers, followerQueue)},
		{"samples", "Drops, ports and limits every two seconds; GTP-U peers without PFCP every ten."},
		{"audit", fmt.Sprintf("Events with `who` are lines of `audit.log` in `control.state`, mode 0600, written "+
			"before the answer. Above %d MiB it becomes `audit.log.1`, up to `.%d`.", auditSize>>20, auditFiles-1)},
	})
	p.Section("HTTP")
	p.Text("`GET /v1/events?after=CURSOR&kind=KIND&limit=N`: `boot`, `events`, `lost`, `next`; at most 1,000. " +
		"With `Accept: text/event-stream` it is a stream of server-sent events that begins with `lost`; " +
		"`Last-Event-ID` resumes, a comment follows every 15 s, `live=true` leaves out what is in memory.")
	p.Section("Kinds")
	p.Text("Limits of `limit.near` and `limit.released`: `sessions`, `buffers`, `held/QUEUE`, " +
		"`nat-blocks/INSTANCE`, `pool/INSTANCE/ipv4`, `store`.")
	p.Table("kind | subject | fields | meaning", rows)
	p.Compare(t, "events.md", "Events")
}

// Each kind is named by a test that produces it.
func TestEveryKindIsTested(t *testing.T) {
	var text strings.Builder
	testkit.Must(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") &&
			!strings.HasSuffix(path, "events/events_test.go") {
			b, err := os.ReadFile(path)
			text.Write(b)
			return err
		}
		return err
	}))
	for _, k := range Kinds {
		named := slices.ContainsFunc([]string{`"` + k.Name + `"`, "`" + k.Name + "`", `"` + k.Name + ` `},
			func(name string) bool { return strings.Contains(text.String(), name) })
		testkit.ErrorIf(t, !named, "no test names %s", k.Name)
	}
}
