// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/cputest"
	"isthmus/controlplane/sheet"
	"isthmus/controlplane/testkit"
	"isthmus/controlplane/view"
)

func listenAt(address string) (net.Listener, error) { return net.Listen("tcp", address) }

// get reads a whole answer.
func get(t testing.TB, l *live, path string) (int, string) {
	t.Helper()
	r, err := l.server.Client().Get(l.server.URL + path)
	testkit.Must(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	testkit.Must(t, err)
	return r.StatusCode, string(body)
}

func getJSON[T any](t testing.TB, l *live, path string) T {
	t.Helper()
	code, body := get(t, l, path)
	testkit.FatalIf(t, code != 200, "%s: %d %s", path, code, body)
	var v T
	testkit.Must(t, json.Unmarshal([]byte(body), &v))
	return v
}

type helloData struct {
	Trace   bool
	Status  Status
	History struct {
		T      []int64
		Series []struct {
			ID   uint32
			G, N string
			V    []*float64
			L    *float64
		}
	}
}

// events opens the stream.
func events(t testing.TB, l *live) (next func() (name string, data []byte)) {
	t.Helper()
	r, err := l.server.Client().Get(l.server.URL + "/page/stream")
	testkit.Must(t, err)
	t.Cleanup(func() { r.Body.Close() })
	testkit.FatalIf(t, r.StatusCode != 200, "stream: %s", r.Status)
	lines := bufio.NewReaderSize(r.Body, 1<<20)
	return func() (name string, data []byte) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return "end", nil
			}
			if v, ok := strings.CutPrefix(line, "event: "); ok {
				name = strings.TrimSpace(v)
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				return name, []byte(strings.TrimSpace(v))
			}
		}
	}
}

func hello(t testing.TB, next func() (string, []byte)) helloData {
	t.Helper()
	name, data := next()
	testkit.FatalIf(t, name != "hello", "the stream begins with %s", name)
	var h helloData
	testkit.Must(t, json.Unmarshal(data, &h))
	return h
}

// A client with the hello and every tick has the same figures as a later one.
func TestTicksAddUpToTheHistory(t *testing.T) {
	l := newLive(t, &gateway{sessions: 3, mobile: true}, Options{})
	l.seconds(5)
	next := events(t, l)
	values := map[uint32]*float64{}
	for _, s := range hello(t, next).History.Series {
		values[s.ID] = s.L
		if s.V != nil {
			values[s.ID] = s.V[len(s.V)-1]
		}
	}
	for range 10 {
		l.seconds(1)
		name, data := next()
		testkit.Equal(t, name, "tick", "event")
		var tick struct {
			T    int64
			New  []struct{ ID uint32 }
			Gone []uint32
			V    map[uint32]*float64
		}
		testkit.Must(t, json.Unmarshal(data, &tick))
		testkit.Equal(t, tick.T, l.clock.UnixMilli(), "time")
		for id, v := range tick.V {
			values[id] = v
		}
	}
	later := hello(t, events(t, l))
	testkit.Equal(t, len(later.History.T), 15, "samples")
	testkit.ErrorIf(t, len(later.History.Series) < 30, "%d lines", len(later.History.Series))
	for _, s := range later.History.Series {
		last := s.L
		if s.V != nil {
			last = s.V[len(s.V)-1]
		}
		have := values[s.ID]
		testkit.ErrorIf(t, (last == nil) != (have == nil) || last != nil && *last != *have,
			"%s %s: %v, not %v", s.G, s.N, have, last)
	}
}

func last(t *testing.T, l *live, group, name string) *float64 {
	t.Helper()
	for _, s := range hello(t, events(t, l)).History.Series {
		if s.G == group && s.N == name {
			if s.V != nil {
				return s.V[len(s.V)-1]
			}
			return s.L
		}
	}
	return nil
}

// Rates are those of the counters; unknown ones are null, and there is none over a restart.
func TestRates(t *testing.T) {
	r := rates{}
	now := time.Now()
	for i, c := range []struct {
		count uint64
		want  float32
	}{{1000, unknown}, {3000, 1000}, {3000, 0}, {10, unknown}, {30, 10}} {
		r.begin(now.Add(time.Duration(2*i) * time.Second))
		got := r.rate("x", c.count)
		testkit.ErrorIf(t, got != c.want && !(isUnknown(got) && isUnknown(c.want)), "sample %d: %v, not %v",
			i, got, c.want)
	}
	l := newLive(t, &gateway{sessions: 3, homes: 2}, Options{})
	l.seconds(3)
	in, busy := last(t, l, "bps", "n6 in"), last(t, l, "load", "worker 0")
	testkit.FatalIf(t, in == nil || *in < 2e10 || *in > 4e10, "n6 in: %v b/s", in)
	testkit.FatalIf(t, busy == nil || *busy < 52 || *busy > 53, "worker 0: %v %%", busy)
	testkit.ErrorIf(t, last(t, l, "pfcp", "received") != nil, "PFCP is shown by a gateway that has none")
	testkit.ErrorIf(t, last(t, l, "drop", "no-route") != nil, "a reason is shown that never was one")
	up, down := last(t, l, "dnn", "internet up"), last(t, l, "dnn", "internet down")
	testkit.FatalIf(t, up == nil || down == nil || *up < 7e8 || *up > 2e9 || *down < 10**up,
		"internet: %v b/s up, %v b/s down", up, down)
	l.gateway.set(func() { l.gateway.mobile = true })
	l.seconds(2)
	mean, most := last(t, l, "latency", "establishment, mean"), last(t, l, "latency", "99 % of all")
	testkit.ErrorIf(t, mean == nil || *mean < 0.39 || *mean > 0.41, "mean latency %v", mean)
	testkit.ErrorIf(t, most == nil || *most != 1, "of 99 %%: %v", most)
	most, median := last(t, l, "signin", "total, 99 %"), last(t, l, "signin", "total, median")
	testkit.ErrorIf(t, most == nil || median == nil || *most != 100 || *median != 50, "sign-ins: %v, %v",
		most, median)
	l.gateway.set(func() { l.gateway.dnns = 200 })
	l.seconds(2)
	other := last(t, l, "dnn", "other up")
	testkit.ErrorIf(t, other == nil || last(t, l, "dnn", "dnn-199 up") != nil, "DNNs without end: other %v", other)
	l.gateway.set(func() { l.gateway.away = true })
	l.seconds(1)
	testkit.ErrorIf(t, last(t, l, "bps", "n6 in") != nil, "a rate while the data plane is away")
}

// The ring keeps ten minutes, lines unknown for that long are gone, and it is bounded for any number of names.
func TestHistoryIsBounded(t *testing.T) {
	h := newHistory()
	now := time.Now()
	add := func(list ...figure) change {
		now = now.Add(time.Second)
		return h.add(now, list)
	}
	add(figure{"g", "old", 1, true})
	var gone []uint32
	for range samples + 5 {
		c := add(figure{"g", "x", 2, true})
		gone = append(gone, c.gone...)
	}
	testkit.Equal(t, len(gone), 1, "lines gone")
	testkit.Equal(t, len(h.series), 1, "lines")
	var data struct{ T []int64 }
	testkit.Must(t, json.Unmarshal(h.encode(nil), &data))
	testkit.Equal(t, len(data.T), samples, "samples")
	for i := range 3 * maxSeries {
		add(figure{"g", fmt.Sprint("kept ", i), 1, true}, figure{"g", fmt.Sprint("not ", i), 1, false})
		testkit.FatalIf(t, h.kept > maxKept || len(h.series) > maxSeries, "%d kept of %d", h.kept,
			len(h.series))
		if i > 2*maxKept && i < maxSeries {
			testkit.FatalIf(t, h.ignored == 0, "nothing is ignored")
		}
	}
}

func TestRound(t *testing.T) {
	for in, want := range map[float32]string{0: "0", 123456: "123456", 1234567.5: "1.235e+06",
		0.000123456: "0.0001235", 12.3456: "12.35", -98765.43: "-98770"} {
		testkit.Equal(t, string(number(nil, round(in))), want, "%v", in)
	}
}

// An edge's flow follows from the nodes where it can be known, and stays unknown elsewhere.
func TestEdgeFlows(t *testing.T) {
	edges := []view.Edge{{From: "rx", To: "a"}, {From: "rx", To: "b"}, {From: "rx", To: "b"}, {From: "a",
		To: "tx"}, {From: "b", To: "tx"}, {From: "a", To: "drop"},
		{From: "b", To: "drop"}, {From: "a", To: "idle"}, {From: "hold", To: "wait"}, {From: "wait", To: "tx2"}}
	rate := map[string]float64{"rx": 100, "a": 70, "b": 30, "tx": 95, "drop": 5, "idle": 0, "hold": 10,
		"wait": 10, "tx2": 4}
	want := map[string]float32{"rx > a": 70, "rx > b": 30, "a > tx": unknown, "b > tx": unknown,
		"a > drop": unknown, "b > drop": unknown, "a > idle": 0,
		"hold > wait": 10, "wait > tx2": 4}
	flows := edgeFlows(edges, rate)
	testkit.Equal(t, len(flows), len(want), "edges")
	for _, f := range flows {
		w := want[f.From+" > "+f.To]
		testkit.ErrorIf(t, f.pps != w && !(isUnknown(f.pps) && isUnknown(w)), "%s > %s: %v, not %v", f.From,
			f.To, f.pps, w)
	}
	rate["drop"] = 0
	for _, f := range edgeFlows(edges, rate) {
		testkit.ErrorIf(t, f.From == "a" && f.To == "tx" && f.pps != 70, "without drops a sends %v", f.pps)
	}
}

// A client that does not read is let go with a reason; others do not notice.
func TestSlowClientIsLetGo(t *testing.T) {
	l := newLive(t, &gateway{sessions: 1}, Options{})
	l.seconds(2)
	good := events(t, l)
	hello(t, good)
	slow := l.join()
	for range queued + 1 {
		l.seconds(1)
		name, _ := good()
		testkit.Equal(t, name, "tick", "event of the client that reads")
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	testkit.ErrorIf(t, slow.why != "this page is 16 seconds behind", "why: %q", slow.why)
	testkit.Equal(t, l.hub.slow, 1, "clients let go")
	testkit.Equal(t, len(l.hub.clients), 1, "clients left")
}

func (l *live) join() *client {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.hub.join("another")
}

// A thousand connections of one client: it gets half of the places, the others are refused with a reason, and memory
// stays.
func TestThousandConnections(t *testing.T) {
	l := newLive(t, &gateway{sessions: 1, mobile: true}, Options{Streams: 8})
	l.seconds(samples)
	before := allocated()
	var served, refused int
	for range 1000 {
		c, err := net.Dial("tcp", l.server.Listener.Addr().String())
		testkit.Must(t, err)
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(testkit.Limit))
		io.WriteString(c, "GET /page/stream HTTP/1.1\r\nHost: x\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReaderSize(c, 512), nil)
		testkit.Must(t, err)
		switch res.StatusCode {
		case http.StatusOK:
			served++
		case http.StatusServiceUnavailable:
			refused++
			text, _ := io.ReadAll(res.Body)
			testkit.FatalIf(t, !strings.Contains(string(text), "no place for one more page: 8 in all"),
				"refused with %q", text)
		}
	}
	testkit.Equal(t, served, 4, "served, all of one client")
	testkit.Equal(t, refused, 996, "refused")
	l.seconds(3 * queued) // of which none reads
	grown := allocated() - before
	t.Logf("%d octets for 1,000 connections", grown)
	testkit.ErrorIf(t, grown > 64<<20, "%d octets for 1,000 connections", grown)
}

// Search, order and pages are the server's; one look serves many questions.
func TestTables(t *testing.T) {
	l := newLive(t, &gateway{sessions: 1000, mobile: true}, Options{})
	ask := func(name, query string) tableAnswer { return getJSON[tableAnswer](t, l, "/page/table/"+name+"?"+query) }
	name := func(a tableAnswer, i int) any { return a.Rows[i].(map[string]any)["name"] }
	a := ask("session", "sort=-downlink_bytes&limit=3")
	testkit.FatalIf(t, len(a.Rows) != 3 || a.Total != 1000 || a.Matched != 1000 || name(a, 0) != "ue-00999",
		"%+v", a)
	a = ask("session", "q=UE-0001&limit=20")
	testkit.FatalIf(t, len(a.Rows) != 10 || a.Matched != 10, "%d rows, %d found", len(a.Rows), a.Matched)
	a = ask("session", "q=0x1005")
	testkit.FatalIf(t, len(a.Rows) != 1 || name(a, 0) != "ue-00005", "by TEID: %+v", a)
	a = ask("association", "sort=-since")
	testkit.FatalIf(t, len(a.Rows) != 1 || a.Rows[0].(map[string]any)["heartbeat_us"] == nil, "peers: %+v", a)
	a = ask("session", "offset=990")
	testkit.FatalIf(t, len(a.Rows) != 10 || a.Offset != 990, "the last page: %d rows at %d", len(a.Rows), a.Offset)
	a = ask("session", "limit=100000")
	testkit.Equal(t, len(a.Rows), maxPage, "rows of an answer")
	testkit.Equal(t, l.gateway.asked["session"], 1, "looks at all sessions")
	a = ask("route", "q=254")
	testkit.FatalIf(t, len(a.Rows) != 1, "routes: %+v", a)
	for path, want := range map[string]string{
		"/page/table/config": "no such table", "/page/table/session?sort=x": "no field",
		"/page/table/session?offset=-1":                    "numbers",
		"/page/table/session?q=" + strings.Repeat("x", 65): "at most 64",
		"/page/table/instance":                             "nothing called", "/page/subscriber": "1 to 253",
	} {
		code, body := get(t, l, path)
		testkit.ErrorIf(t, code < 400 || !strings.Contains(body, want), "%s: %d %s", path, code, body)
	}
	l.tables.forget(time.Now().Add(2 * keepRows))
	testkit.ErrorIf(t, l.tables.of["session"].last != nil, "rows are kept that nobody asks for")
}

// A bounded number of subscribers is sampled; the least wanted one makes room, those on view do not.
func TestWatchesAreBounded(t *testing.T) {
	l := newLive(t, &gateway{sessions: 100}, Options{})
	for i := range maxWatches {
		getJSON[subscriberAnswer](t, l, fmt.Sprintf("/page/subscriber?name=ue-%05d", i+1))
	}
	code, body := get(t, l, "/page/subscriber?name=ue-00099")
	testkit.ErrorIf(t, code != 503 || !strings.Contains(body, "limit"), "%d %s", code, body)
	l.watches.of["ue-00003"].asked = time.Now().Add(-time.Minute)
	getJSON[subscriberAnswer](t, l, "/page/subscriber?name=ue-00099")
	testkit.ErrorIf(t, l.watches.of["ue-00003"] != nil || len(l.watches.of) != maxWatches, "another one made room")
	name := url.QueryEscape(`<b onclick="x">&amp;"`)
	l.watches.of["ue-00004"].asked = time.Now().Add(-time.Minute)
	getJSON[subscriberAnswer](t, l, "/page/subscriber?name="+name)
	l.clock = time.Now()
	l.seconds(3)
	var a struct {
		Session view.Session
		Rules   []view.Rule
		History struct{ Series []struct{ G string } }
	}
	_, body = get(t, l, "/page/subscriber?name="+name)
	testkit.Must(t, json.Unmarshal([]byte(body), &a))
	testkit.ErrorIf(t, a.Session.User != hostile || len(a.Rules) != 2 || len(a.History.Series) != 6, "%+v", a)
}

// A signed-in subscriber is found by what people know of it; its page has the attempts, and why there is no session.
func TestSubscribersOfLines(t *testing.T) {
	l := newLive(t, &gateway{homes: 200}, Options{})
	for what, want := range map[string]int{"home0042": 1, "02:00:00:00:AB:2a": 1, "10.64.0.42": 1, "OLT-7/42": 1,
		"access:100.42": 1, "2001:db8:2a:7::1": 1, "isp.example": 199, "nobody": 0} {
		a := getJSON[tableAnswer](t, l, "/page/table/subscriber?q="+url.QueryEscape(what))
		testkit.Equal(t, a.Matched, want, "found by %q", what)
	}
	ask := func(name string) (a subscriberAnswer) {
		path := "/page/subscriber?name=" + url.QueryEscape(name)
		get(t, l, path)
		l.clock = time.Now()
		l.seconds(1)
		return getJSON[subscriberAnswer](t, l, path)
	}
	for _, name := range []string{l.gateway.home(7).Object, "home0007@isp.example", "02:00:00:00:ab:07"} {
		a := ask(name)
		testkit.ErrorIf(t, a.Error != "" || a.Session == nil || a.Session.Name != l.gateway.home(7).Object ||
			len(a.Homes) != 1 || len(a.Homes[0].Attempts) != 2, "%s: %+v", name, a.look)
	}
	for name, want := range map[string]string{hostile: "is starting", hostile + "away": "is not on line",
		"nobody": "no session of this name"} {
		a := ask(name)
		testkit.ErrorIf(t, !strings.Contains(a.Error, want) || a.Session != nil, "%s: %+v", name, a.look)
	}
	l.gateway.set(func() { l.gateway.away = true })
	a := ask("home0007@isp.example")
	testkit.ErrorIf(t, !strings.Contains(a.Error, "away") || len(a.Homes) != 1, "%+v", a.look)
	// A tunnel's session has no subscriber to ask for: that may mean to look at all sessions.
	l.gateway.set(func() { l.gateway.away, l.gateway.sessions, l.gateway.asked = false, 5, nil })
	l.watches.of = map[string]*watch{}
	testkit.ErrorIf(t, ask("ue-00003").Session == nil || l.gateway.asked["subscriber"] > 0, "%v", l.gateway.asked)
}

// Every answer forbids what the page does not need, and no file is served but the page's own.
func TestPolicyAndFiles(t *testing.T) {
	l := newLive(t, &gateway{}, Options{})
	for _, path := range []string{"/", "/assets/app.js", "/page/table/route", "/nothing"} {
		r, err := l.server.Client().Get(l.server.URL + path)
		testkit.Must(t, err)
		r.Body.Close()
		policy := r.Header.Get("Content-Security-Policy")
		testkit.ErrorIf(t, !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") ||
			strings.Contains(policy, "unsafe"), "%s: policy %q", path, policy)
	}
	for _, path := range []string{"/assets/", "/assets/vendor/", "/assets/../page.go",
		"/assets/%2e%2e/page.go", "/assets/vendor"} {
		code, body := get(t, l, path)
		testkit.ErrorIf(t, code == 200, "%s: %d %.80s", path, code, body)
	}
	total := 0
	for name, content := range l.assets.files {
		if !strings.HasSuffix(name, ".html") {
			total += len(content)
		}
	}
	testkit.ErrorIf(t, total > 250_000, "%d octets of script and style, 250,000 may be", total)
}

// A minute with one page open costs little, with 64 K sessions, all tables on view and a subscriber's page.
func TestOnePageIsCheap(t *testing.T) {
	l := newLive(t, &gateway{sessions: 65536, mobile: true}, Options{})
	l.seconds(samples)
	next := events(t, l)
	hello(t, next)
	cputest.Bound(t, 18*time.Second, "a minute of samples for one page (1.8 s are 3 % of a core)", func() {
		for range 60 {
			getJSON[subscriberAnswer](t, l, "/page/subscriber?name=ue-00077")
			l.seconds(1)
			next()
		}
	})
	cputest.Bound(t, 6*time.Second, "one look at 65,536 sessions", func() {
		getJSON[tableAnswer](t, l, "/page/table/session?sort=-bps&limit=12")
	})
	table := l.tables.of["session"]
	testkit.ErrorIf(t, table.every(table.last) < rest*table.last.took, "looks at all sessions come too often")
}

// Run samples and ends with its context, and clients get the reason.
func TestRun(t *testing.T) {
	l := newLive(t, &gateway{}, Options{})
	stop := testkit.Run(t, func(ctx context.Context) error { return l.Run(ctx) })
	next := events(t, l)
	hello(t, next)
	name, _ := next()
	testkit.Equal(t, name, "tick", "event")
	stop()
	for name == "tick" {
		name, _ = next()
	}
	testkit.Equal(t, name, "bye", "the last event")
}

// The report is one file: every line of every plot with its figures, no request, names as text.
func TestReport(t *testing.T) {
	g := &gateway{sessions: 3, homes: 3, mobile: true}
	l := newLive(t, g, Options{})
	code, body := get(t, l, "/page/report.html")
	testkit.ErrorIf(t, code != 200 || !strings.Contains(body, "no sample yet"),
		"before the first sample: %d %.200s", code, body)
	l.seconds(samples + 60)
	g.set(func() { g.away = true })
	l.seconds(30)
	code, body = get(t, l, "/page/report.html")
	testkit.FatalIf(t, code != 200, "%d %s", code, body)
	for _, want := range []string{"ten minutes of gateway", "AWAY", "ended by signal 6", "n6 out", "policer-red",
		"worker 1", "establishment, mean", "Gb/s", "&#34;style&#34;:1"} {
		testkit.ErrorIf(t, !strings.Contains(body, want), "the report does not have %q", want)
	}
	testkit.Equal(t, strings.Count(body, `class="plot"`), len(reportGroups), "plots")
	testkit.Equal(t, strings.Count(body, `.csv" href="data:text/csv`), len(reportGroups), "tables to save")
	body = strings.ReplaceAll(body, `href="data:`, "") // held in the page itself
	body = strings.Replace(body, string(sheet.Head()), "", 1)
	for _, not := range []string{"<script", "src=", "href=", "http:", "https:", "NaN", "%!"} {
		testkit.ErrorIf(t, strings.Contains(body, not), "the report has %q", not)
	}
	hostileName := &kept{times: []int64{0, 1000}, groups: map[string][]line{"bps": {{hostile, []float32{1, 2}, 2}}}}
	var b strings.Builder
	testkit.Must(t, reportTemplate.Execute(&b, hostileName.data(Status{Host: hostile, DataPlane: "ready"}, "{}")))
	text := strings.Replace(b.String(), string(sheet.Head()), "", 1)
	testkit.ErrorIf(t, strings.Contains(text, "<script") || strings.Contains(text, "<img"),
		"a name became part of the report")
}

// A session's text is sent line by line, the end has a reason, and a closed browser ends its trace.
func TestTraces(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	l := newLive(t, &gateway{}, Options{Trace: func(ctx context.Context, session string,
		give func(string) error) error {
		if session == "short" {
			give("packet\n  port-rx\r\n")
			return errors.New("the data plane is away")
		}
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil
	}})
	_, body := get(t, l, "/page/trace?session=short")
	want := "event: begin\ndata: {}\n\ndata: packet\ndata:   port-rx\n\nevent: bye\ndata: \"the data plane is " +
		"away\"\n\n"
	testkit.Equal(t, body, want, "trace")
	ctx, stop := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "GET", l.server.URL+"/page/trace?session=x", nil)
	testkit.Must(t, err)
	answer, err := l.server.Client().Do(r)
	testkit.Must(t, err)
	defer answer.Body.Close()
	<-begun
	stop()
	<-ended
	code, _ := get(t, newLive(t, &gateway{}, Options{}), "/page/trace?session=x")
	testkit.Equal(t, code, 404, "where there are no traces")
}
