// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/agent/dynamic"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/reconcile"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/cputest"
	"isthmus/controlplane/events"
	"isthmus/controlplane/testkit"
	"isthmus/controlplane/trace"
)

// made is an API of a control plane without sessions, whose data plane is away.
func made() *API {
	none, told, log := (*dynamic.Sessions)(nil), events.New(nil), slog.New(slog.DiscardHandler)
	guard := auth.NewGuard(told)
	owner := reconcile.New(reconcile.Options{Sessions: none, Announcer: none, Events: told, Guard: guard, Log: log},
		&plan.Plan{})
	return New(Options{State: &owner.Published, Owner: owner, Sessions: none, SignIns: none.SignedIn(),
		Events: told, Guard: guard, Log: log})
}

// stream opens a stream of server-sent events.
func stream(t *testing.T, c *http.Client, url string, head http.Header) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	testkit.Must(t, err)
	r.Header = head.Clone()
	r.Header.Set("Accept", "text/event-stream")
	res, err := c.Do(r)
	testkit.Must(t, err)
	t.Cleanup(func() { res.Body.Close() })
	testkit.Equal(t, res.StatusCode, 200, "status")
	return bufio.NewScanner(res.Body)
}

// line reads until a line that begins with something, and returns what follows.
func line(t *testing.T, s *bufio.Scanner, begin string) string {
	t.Helper()
	for s.Scan() {
		if rest, ok := strings.CutPrefix(s.Text(), begin); ok {
			return rest
		}
	}
	t.Fatalf("no %q before the end: %v", begin, s.Err())
	return ""
}

func TestEventStream(t *testing.T) {
	a := made()
	server := httptest.NewServer(a.Handler())
	t.Cleanup(server.Close)
	a.Events.Publish("port.up", "core", "driver", "synth")
	s := stream(t, http.DefaultClient, server.URL+"/v1/events", http.Header{})
	testkit.Equal(t, line(t, s, "data: "), `{"lost":0}`, "lost")
	first := line(t, s, "id: ")
	a.Events.Publish("port.down", "core")
	a.Events.Publish("session.count", "")
	second := line(t, s, "id: ")
	testkit.ErrorIf(t, !strings.Contains(line(t, s, "data: "), `"kind":"port.down"`), "another event")
	s = stream(t, http.DefaultClient, server.URL+"/v1/events?kind=port", http.Header{"Last-Event-Id": {first}})
	testkit.Equal(t, line(t, s, "id: "), second, "resumed")
	s = stream(t, http.DefaultClient, server.URL+"/v1/events?live=true&kind=port", http.Header{})
	line(t, s, "event: lost")
	a.Events.Publish("session.count", "")
	a.Events.Publish("port.gone", "core")
	testkit.ErrorIf(t, !strings.Contains(line(t, s, "data: {\"id\""), `port.gone`), "not live, or not of the kind")
	for _, bad := range []string{"after=x", "kind=nonsense", "kind=" + strings.Repeat("port,", 17) + "port",
		"limit=x"} {
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/v1/events?"+bad, nil))
		testkit.Equal(t, w.Code, 422, "%s", bad)
	}
}

// A client that does not read is disconnected with a reason; publishers go on.
func TestEventStreamOfAClientThatNeverReads(t *testing.T) {
	a := made()
	blocked := &stuck{header: http.Header{}, began: make(chan bool), go1: make(chan bool)}
	ended := make(chan bool)
	go func() {
		r := httptest.NewRequest("GET", "/v1/events", nil)
		r.Header.Set("Accept", "text/event-stream")
		a.Handler().ServeHTTP(blocked, r)
		close(ended)
	}()
	<-blocked.began
	cputest.Bound(t, 5*time.Second, "publishing", func() {
		for i := range 100_000 {
			a.Events.Publish("session.count", fmt.Sprint(i))
		}
	})
	testkit.Equal(t, a.Events.Stats().Dropped, 1, "followers that were dropped")
	close(blocked.go1)
	<-ended
	text := blocked.text.String()
	testkit.ErrorIf(t, !strings.Contains(text, "event: end\ndata: {\"error\":\"the reader is too slow"),
		"it ends with %.200q",
		text[max(0, len(text)-200):])
	testkit.ErrorIf(t, strings.Count(text, "id: ") > 300, "%d events were kept for it", strings.Count(text, "id: "))
}

// stuck is a client that takes nothing until go1 is closed.
type stuck struct {
	header     http.Header
	text       strings.Builder
	began, go1 chan bool
	once       bool
}

func (s *stuck) Header() http.Header { return s.header }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Flush()              {}
func (s *stuck) Write(b []byte) (int, error) {
	if !s.once {
		s.once = true
		close(s.began)
	}
	<-s.go1
	return s.text.Write(b)
}

// More streams and traces than there are places for a client are refused; others have theirs.
func TestPlacesOfClients(t *testing.T) {
	a := made()
	var client auth.Identity
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.Handler().ServeHTTP(w, r.WithContext(auth.With(r.Context(), client)))
	}))
	t.Cleanup(server.Close)
	as := func(token string) {
		client = auth.Identity{Role: auth.Operate, Who: &events.Who{Via: "tcp", Token: token}}
	}
	as("greedy")
	for range 16 {
		stream(t, http.DefaultClient, server.URL+"/v1/events", http.Header{})
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/v1/events", nil)
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(r)
	testkit.Must(t, err)
	defer res.Body.Close()
	testkit.Equal(t, res.StatusCode, http.StatusServiceUnavailable, "status")
	for a.Tracer.places.Take(client.Holder()) != nil {
	}
	trace := func() error { return a.Tracer.Follow(auth.With(t.Context(), client), &trace.Query{}, nil) }
	testkit.ErrorIf(t, !errors.As(trace(), new(busyError)), "a trace of the greedy: %v", trace())
	as("modest")
	stream(t, http.DefaultClient, server.URL+"/v1/events", http.Header{})
	testkit.ErrorIf(t, !errors.Is(trace(), reconcile.ErrAway), "a trace of the modest: %v", trace())
}

// A stream lasts longer than the time that a request may take to be read or answered, by either version of HTTP.
func TestEventStreamOutlivesTimeouts(t *testing.T) {
	a := made()
	const limit = 2 * time.Second // for the handshake, too, on a machine that has other things to do
	var streams []*bufio.Scanner
	for _, two := range []bool{false, true} {
		server := httptest.NewUnstartedServer(a.Handler())
		server.Config.ReadTimeout, server.Config.WriteTimeout = limit, limit
		server.EnableHTTP2 = two
		server.StartTLS()
		t.Cleanup(server.Close)
		s := stream(t, server.Client(), server.URL+"/v1/events", http.Header{})
		line(t, s, "event: lost")
		streams = append(streams, s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit+limit/4)
	defer cancel()
	<-ctx.Done()
	a.Events.Publish("port.up", "late")
	for _, s := range streams {
		testkit.ErrorIf(t, !strings.Contains(line(t, s, "data: {\"id\""), "late"), "another event")
	}
}

// Clients that ask for tables and do not take them keep out neither each other nor those of the Unix socket.
func TestSlowReadersOfTables(t *testing.T) {
	a := made()
	began, release, ended := make(chan bool), make(chan bool), make(chan bool, maxRemoteShows)
	show := func(ctx context.Context, token string, w http.ResponseWriter) {
		r := httptest.NewRequest("GET", "/v1/show/association", nil)
		a.Handler().ServeHTTP(w, r.WithContext(auth.With(ctx, auth.Identity{Role: auth.Read,
			Who: &events.Who{Via: "tcp", Token: token}})))
	}
	local := func() string {
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/v1/show/association", nil))
		return w.Body.String()
	}
	for range maxRemoteShows / 2 {
		go func() {
			show(t.Context(), "slow", &stuck{header: http.Header{}, began: began, go1: release})
			ended <- true
		}()
		<-began
		began = make(chan bool)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	show(gone, "slow", w) // which waited for a place
	testkit.ErrorIf(t, w.Code != 503 || w.Header().Get("Retry-After") == "", "one more of the slow one: %d %s",
		w.Code, w.Body)
	w = httptest.NewRecorder()
	show(t.Context(), "other", w)
	testkit.ErrorIf(t, w.Body.String() != "[]\n", "another client is kept out: %d %s", w.Code, w.Body)
	testkit.ErrorIf(t, local() != "[]\n", "the Unix socket's client is kept out")
	testkit.Equal(t, a.remoteShows.Held(), maxRemoteShows/2, "places taken")
	close(release)
	for range maxRemoteShows / 2 {
		<-ended
	}
	testkit.Equal(t, a.remoteShows.Held(), 0, "places taken afterwards")
}

// What is read of a body is bounded, whatever its length says.
func TestBodiesAreBounded(t *testing.T) {
	a := made()
	a.Upload = 1 << 20
	for _, path := range []string{"/v1/config/apply", "/v1/config/check", "/v1/stream"} {
		body := &counted{}
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, httptest.NewRequest("POST", path, io.LimitReader(body, 1<<30)))
		testkit.ErrorIf(t, w.Code < 400 || w.Code >= 500 || body.read < a.Upload || body.read > 2*a.Upload,
			"%s: %d after %d octets", path, w.Code, body.read)
	}
}

// counted is an endless body of spaces; Read counts what was asked for.
type counted struct{ read int64 }

func (c *counted) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	c.read += int64(len(p))
	return len(p), nil
}
