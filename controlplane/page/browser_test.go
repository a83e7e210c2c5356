// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
	"isthmus/controlplane/testkit/pagetest"
)

// open starts a browser that looks at a gateway with ten minutes behind it.
func open(t *testing.T, g *gateway, opt Options) (*live, *pagetest.Browser) {
	b := pagetest.Start(t)
	l := newLive(t, g, opt)
	l.seconds(samples + 20)
	b.Size(1600, 1000, "light")
	b.Open(l.server.URL + "/")
	b.Until("the figures are there", `document.querySelector(".tile dd").textContent.includes("b/s")`)
	return l, b
}

// Everything is drawn at both widths in both colour schemes, no element is wider than the window, and the console is
// empty.
func TestBrowserShowsEverything(t *testing.T) {
	l, b := open(t, &gateway{sessions: 300, mobile: true}, Options{})
	for _, width := range []int{375, 1600} {
		for _, scheme := range []string{"light", "dark"} {
			b.Size(width, 1000, scheme)
			l.seconds(1)
			b.Until("plots, graph and tables are drawn",
				`document.querySelectorAll(".plot canvas").length >= 12 &&
				document.querySelectorAll("#graph .node").length === 10 &&
					document.querySelectorAll("#top tbody tr").length === 12 &&
				[...document.querySelectorAll(".plot canvas")].every((c) =>
					c.clientWidth <= c.closest(".plot").clientWidth + 1)`)
			overflow := b.Overflow()
			testkit.ErrorIf(t, overflow > 0, "%d columns: the page is %d columns wider", width, overflow)
			b.Shot(fmt.Sprintf("page-%d-%s", width, scheme))
		}
	}
	lines := pagetest.Eval[[]string](b, `[...document.querySelectorAll(".lines tbody tr td:first-child")].map((c) =>
		c.textContent)`)
	testkit.ErrorIf(t, len(lines) < 14, "lines under the plots: %q", lines)
	for _, view := range []string{"session", "peers", "route"} {
		pagetest.Eval[string](b, `location.hash = "#/`+view+`"`)
		b.Until("table of "+view, `document.querySelectorAll("#view-tables tbody tr").length > 0`)
		b.Shot("page-" + view)
	}
	b.Quiet()
}

// scripts/picture.sh: pictures of the page of a gateway that runs, for README.
func TestBrowserPicture(t *testing.T) {
	url := os.Getenv("PICTURE_OF")
	if url == "" {
		t.Skip("PICTURE_OF names no page: scripts/picture.sh")
	}
	b := pagetest.Start(t)
	for _, scheme := range []string{"light", "dark"} {
		b.Size(1280, 1200, scheme)
		b.Open(url)
		b.Until("figures, plots and graph", `document.querySelector(".tile dd").textContent.includes("b/s") &&
			document.querySelectorAll(".plot canvas").length >= 12 && document.querySelector("#graph .node") &&
			!document.body.innerText.includes("measuring")`)
		b.Window("page-" + scheme)
	}
	b.Quiet()
}

// The graph of an access gateway beside a UPF is shown whole, in a readable size. A legend longer than its panel
// scrolls.
func TestBrowserCutsNothing(t *testing.T) {
	l, b := open(t, &gateway{sessions: 300, homes: 20, mobile: true, both: true, drops: 9}, Options{})
	for _, width := range []int{1100, 1440, 1920} {
		b.Size(width, 1000, "light")
		l.seconds(1)
		b.Until("the graph is drawn", `document.querySelectorAll("#graph .node").length === 32`)
		b.Until("legends are there", `document.querySelectorAll(".lines tbody tr").length > 20`)
		b.Shot(fmt.Sprintf("page-both-%d", width))
		b.Until("the graph fits", `((g, s) => s.width < g.clientWidth + 1 && s.height < g.clientHeight + 1)(
			document.getElementById("graph"), document.querySelector("#graph svg").getBoundingClientRect())`)
		size := pagetest.Eval[float64](b, `11 * document.querySelector("#graph svg").getBoundingClientRect().width /
			document.querySelector("#graph svg").viewBox.baseVal.width`)
		testkit.ErrorIf(t, size < 8, "%d columns: names are %.1f px high", width, size)
		cut := pagetest.Eval[[]string](b, `[...document.querySelectorAll(".panel:not([hidden]) .lines")].filter((e) =>
			e.scrollHeight > e.clientHeight + 1 && e.nextElementSibling?.matches(".more:not([hidden])") !== true)
			.map((e) => e.getAttribute("aria-labelledby"))`)
		testkit.ErrorIf(t, len(cut) > 0, "%d columns: cut without a sign: %q", width, cut)
	}
	more := `[...document.querySelectorAll(".panel")].find((p) => p.textContent.includes("reason-00"))`
	b.Until("how many are below", `/^\d+ more below$/.test(`+more+`.querySelector(".more").textContent)`)
	pagetest.Eval[string](b,
		`((e) => { e.scrollTop = e.scrollHeight; return ""; })(`+more+`.querySelector(".lines"))`)
	b.Until("the end", more+`.querySelector(".more").textContent === "end of the list"`)
	b.Quiet()
}

// Subscribers' names are text, wherever they are shown.
func TestBrowserEscapesNames(t *testing.T) {
	l, b := open(t, &gateway{sessions: 20, mobile: true}, Options{})
	pagetest.Eval[string](b, `location.hash = "#/session"`)
	b.Until("the sessions", `document.querySelectorAll("#view-tables tbody tr").length === 20`)
	b.Until("the name as text",
		`document.getElementById("view-tables").textContent.includes("<script>document.title")`)
	pagetest.Eval[string](b, `[...document.querySelectorAll("#view-tables a")].find((a) =>
		a.textContent.startsWith("<b")).click() ?? ""`)
	testkit.Until(t, "its own page", func() bool {
		l.seconds(1)
		return pagetest.Eval[bool](b, `document.querySelector("#view-subscriber h2")?.textContent ===
			'<b onclick="x">&amp;"' &&
			document.querySelectorAll("#view-subscriber .facts dd").length > 3`)
	})
	testkit.ErrorIf(t, pagetest.Eval[bool](b, `document.querySelector("main script, main img, main b") !== null ||
		document.title === "owned"`),
		"a name became part of the page")
	b.Quiet()
}

// A subscriber that signed in is found by its circuit id. Its page has the plan, the addresses, the attempts and the
// trace of its session; its names are text.
func TestBrowserAccessLines(t *testing.T) {
	traced := make(chan string, 1)
	l, b := open(t, &gateway{homes: 120, mobile: true}, Options{Trace: func(_ context.Context, session string,
		_ func(string) error) error {
		traced <- session
		return errors.New("subscriber is starting")
	}})
	b.Until("sign-ins beside PFCP", `[...document.querySelectorAll("#panels section")].some((s) => !s.hidden &&
		s.textContent.includes("Sign-ins by phase") && s.textContent.includes("total, median"))`)
	pagetest.Eval[string](b, `location.hash = "#/subscribers"`)
	b.Until("the subscribers", `document.querySelectorAll("#view-tables tbody tr").length === 50`)
	b.Until("the name as text",
		`document.getElementById("view-tables").textContent.includes("<script>document.title")`)
	search := func(what string) {
		pagetest.Eval[string](b, `(() => { const i = document.querySelector("input[type=search]");
			i.value = "`+what+`"; i.form.requestSubmit(); return ""; })()`)
	}
	open := func(link, title string) {
		pagetest.Eval[string](b, `[...document.querySelectorAll("#view-tables a")].find((a) =>
			a.textContent.startsWith("`+link+`")).click() ?? ""`)
		testkit.Until(t, "the page of "+title, func() bool {
			l.seconds(1)
			return pagetest.Eval[bool](b, `((view) => view.querySelector("h2")?.textContent.startsWith("`+title+`") &&
				view.querySelectorAll("[aria-label='Attempts to sign in'] tbody tr").length === 2)(
				document.getElementById("view-subscriber"))`)
		})
	}
	search("OLT-7/77")
	b.Until("one is found", `document.querySelectorAll("#view-tables tbody tr").length === 1`)
	open("home0077", "home0077")
	text := pagetest.Eval[string](b, `document.getElementById("view-subscriber").textContent`)
	for _, want := range []string{"10.64.0.77", "2001:db8:4d::/48", "40.0 Mb/s", "access:100.77", "let in",
		"refused: <script>", "000000000000104d"} {
		testkit.ErrorIf(t, !strings.Contains(text, want), "no %q on the page", want)
	}
	b.Shot("page-home")
	b.Size(375, 1000, "dark")
	testkit.Until(t, "no column too many", func() bool { return b.Overflow() <= 0 })
	b.Shot("page-home-375-dark")
	pagetest.Eval[string](b, `location.hash = "#/subscribers"`)
	b.Until("the subscribers again", `document.querySelectorAll("#view-tables tbody tr").length === 50`)
	open("<script>", "<script>")
	b.Until("it is starting",
		`document.querySelector("#view-subscriber [role=status]").textContent.startsWith("is starting")`)
	pagetest.Eval[string](b, `document.querySelector("[aria-label=Trace] button").click() ?? ""`)
	testkit.Equal(t, testkit.Receive(t, traced), l.gateway.home(0).Object, "traced")
	b.Until("why", `document.querySelector(".trace").textContent.includes("is starting")`)
	testkit.ErrorIf(t, pagetest.Eval[bool](b, `document.querySelector("main script, main img, main b") !== null ||
		document.title === "owned"`), "a name became part of the page")
	pagetest.Eval[string](b, `location.hash = "#/subscribers"`)
	b.Until("the subscribers once more", `document.querySelectorAll("#view-tables tbody tr").length === 50`)
	search("nobody <b>")
	b.Until("a way to the attempts of who is away", `document.querySelector(".empty a")?.textContent ===
		"Attempts to sign in of nobody <b>"`)
	b.Quiet()
}

// A search and a sort go to the server; a subscriber's page has figures, rules, usage.
func TestBrowserSearchAndSubscriber(t *testing.T) {
	l, b := open(t, &gateway{sessions: 5000, mobile: true}, Options{})
	pagetest.Eval[string](b, `location.hash = "#/session"`)
	b.Until("the sessions", `document.querySelectorAll("#view-tables tbody tr").length === 50`)
	pagetest.Eval[string](b, `(() => { const i = document.querySelector("input[type=search]"); i.value = "UE-0432";
		i.form.requestSubmit(); return ""; })()`)
	b.Until("ten are found", `document.querySelectorAll("#view-tables tbody tr").length === 10`)
	pagetest.Eval[string](b, `document.querySelector("#view-tables th button").click() ?? ""`)
	b.Until("sorted by name", `document.querySelector("#view-tables tbody a").textContent === "ue-04320" &&
		document.querySelector("#view-tables th").getAttribute("aria-sort") === "ascending"`)
	pagetest.Eval[string](b, `document.querySelector("#view-tables tbody a").click() ?? ""`)
	b.Until("asked for", `document.querySelector("#view-subscriber h2")?.textContent === "ue-04320"`)
	testkit.Until(t, "the subscriber is sampled", func() bool {
		l.seconds(1)
		return pagetest.Eval[bool](b,
			`document.querySelectorAll("#view-subscriber .panels tbody tr").length >= 6 &&
			document.querySelectorAll("#view-subscriber [aria-label=Rules] tbody tr").length === 2`)
	})
	// 2^60 + 4321: no number of JavaScript.
	testkit.ErrorIf(t, !pagetest.Eval[bool](b, `[...document.querySelectorAll("#view-subscriber .facts dd")].some(
		(d) => d.textContent === "0x10000000000010e1")`), "the SEID is another one")
	b.Shot("page-subscriber")
	testkit.ErrorIf(t, pagetest.Eval[bool](b, `document.querySelector(".trace") !== null`),
		"a trace is offered that the server has not")
	b.Quiet()
}

// Where the server offers traces, a button shows a subscriber's packets as they come, as text, and ends the trace.
func TestBrowserTrace(t *testing.T) {
	b := pagetest.Start(t)
	ended := make(chan string, 1)
	l := newLive(t, &gateway{sessions: 5}, Options{
		Trace: func(ctx context.Context, session string, give func(string) error) error {
			for i := range 700 {
				if err := give(fmt.Sprintf("packet %d %s\n  port-rx\n", i, hostile)); err != nil {
					return err
				}
			}
			if session == "ue-00004" {
				return errors.New("the data plane is away")
			}
			<-ctx.Done()
			ended <- session
			return nil
		},
	})
	l.seconds(3)
	b.Size(375, 800, "dark")
	b.Open(l.server.URL + "/#/subscriber/ue-00003")
	b.Until("a button", `document.querySelector("[aria-label=Trace] button")`)
	pagetest.Eval[string](b, `document.querySelector("[aria-label=Trace] button").click() ?? ""`)
	b.Until("the last lines", `document.querySelector(".trace").childElementCount === 500 &&
		document.querySelector(".trace").lastElementChild.textContent.startsWith("packet 699 <script>")`)
	pagetest.Eval[string](b, `document.querySelector("[aria-label=Trace] button").click() ?? ""`)
	l.seconds(3)
	b.Until("figures", `document.querySelectorAll("#view-subscriber .facts dd").length > 3`)
	for _, view := range []string{"subscriber/ue-00003", "session", "peers", "route"} {
		pagetest.Eval[string](b, `location.hash = "#/`+view+`"`)
		b.Until(view, `document.querySelector("main > section:not([hidden]) td")`)
		overflow := b.Overflow()
		testkit.ErrorIf(t, overflow > 0, "%s: the page is %d columns wider than a telephone", view, overflow)
	}
	testkit.Equal(t, <-ended, "ue-00003", "session of the trace that ended")
	pagetest.Eval[string](b, `location.hash = "#/subscriber/ue-00004"`)
	b.Until("another subscriber", `document.querySelector("#view-subscriber h2")?.textContent === "ue-00004"`)
	pagetest.Eval[string](b, `document.querySelector("[aria-label=Trace] button").click() ?? ""`)
	b.Until("why it ended", `document.querySelector(".trace").lastElementChild?.textContent ===
		"the data plane is away" &&
		document.querySelector("[aria-label=Trace] button").ariaPressed === "false"`)
	b.Quiet()
}

// The control plane restarts: a banner shows it, and the page recovers. The same while only the data plane is away.
func TestBrowserSurvivesRestart(t *testing.T) {
	b := pagetest.Start(t)
	l := newLive(t, &gateway{sessions: 10}, Options{})
	address := l.server.Listener.Addr().String()
	l.seconds(5)
	b.Size(1600, 1000, "light")
	b.Open(l.server.URL + "/")
	b.Until("connected", `document.getElementById("state").classList.contains("good") &&
		document.getElementById("banner").hidden`)
	l.gateway.set(func() { l.gateway.away = true })
	l.seconds(2)
	b.Until("the data plane is away",
		`document.getElementById("banner").textContent.includes("ended by signal 6 (SIGABRT)")`)
	l.gateway.set(func() { l.gateway.away = false })
	l.seconds(2)
	b.Until("it is back", `document.getElementById("banner").hidden`)
	b.Quiet()

	l.server.CloseClientConnections()
	l.server.Close()
	b.Until("the control plane is away",
		`document.getElementById("banner").textContent.includes("does not answer") &&
		document.getElementById("state").classList.contains("bad")`)
	b.Shot("page-away")
	again := newLive(t, &gateway{sessions: 11}, Options{})
	listener, err := listenAt(address)
	testkit.Must(t, err)
	server := httptest.NewUnstartedServer(again.Handler())
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()
	defer server.CloseClientConnections()
	again.seconds(3)
	b.Until("the new one is shown", `document.getElementById("banner").hidden &&
		document.getElementById("tiles").textContent.includes("11")`)
}

// A page is drawn within a second, and what it loads is small.
func TestBrowserFirstPaint(t *testing.T) {
	_, b := open(t, &gateway{sessions: 1000, mobile: true}, Options{})
	b.Until("painted", `performance.getEntriesByName("first-contentful-paint").length === 1`)
	paint := pagetest.Eval[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
	t.Logf("first paint after %.0f ms", paint)
	// The bound is that of a quiet machine, times what others may do to this one.
	testkit.ErrorIf(t, paint > 10_000, "first paint after %.0f ms", paint)
	size := pagetest.Eval[int](b, `performance.getEntriesByType("resource").filter((e) =>
		/\.(js|css)$/.test(e.name)).reduce((a, e) => a + e.decodedBodySize, 0)`)
	t.Logf("%d octets of script and style", size)
	testkit.ErrorIf(t, size < 100_000 || size > 250_000, "%d octets of script and style", size)
	others := pagetest.Eval[[]string](b, `performance.getEntriesByType("resource").map((e) => e.name).filter((n) =>
		!n.startsWith(location.origin))`)
	testkit.ErrorIf(t, len(others) > 0, "asked of others: %q", others)
}

// A day of samples (--long; three hours else) makes neither the page nor the process grow.
func TestBrowserDay(t *testing.T) {
	l, b := open(t, &gateway{sessions: 50, mobile: true}, Options{})
	day := 3 * 3600
	if os.Getenv("LONG") != "" { // ./dev test --long
		day = 24 * 3600
	}
	pass := func(n int) {
		for i := range n {
			testkit.Until(t, "the browser reads", func() bool {
				l.lock.Lock()
				defer l.lock.Unlock()
				return len(l.hub.clients) == 1 && len(l.hub.clients[0].queue) < queued/2
			})
			l.seconds(1)
			if i%1000 == 0 {
				b.Until("it draws", `document.querySelector("#graph .node") !== null`)
			}
		}
	}
	pass(2 * samples)
	heap, process := b.Heap(), allocated()
	begin := time.Now()
	pass(day)
	t.Logf("%d samples in %v", day, time.Since(begin).Round(time.Second))
	l.gateway.set(func() { l.gateway.sessions = 51 })
	l.seconds(1)
	b.Until("the last sample is shown", `[...document.querySelectorAll(".tile dd")].some((d) =>
		d.textContent.trim() === "51")`)
	grown, more := b.Heap()-heap, allocated()-process
	t.Logf("JavaScript heap %.1f MB, %+.2f MB; process %+.2f MB", heap/1e6, grown/1e6, float64(more)/1e6)
	testkit.ErrorIf(t, grown > 3e6, "the page grew by %.1f MB", grown/1e6)
	testkit.ErrorIf(t, more > 3<<20, "the process grew by %d octets", more)
	b.Quiet()
}

// allocated is what the process holds after a collection.
func allocated() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The report, opened as a file, draws every plot, of one sample too. The legend has the values beneath the pointer,
// names are text, and its policy refuses nothing.
func TestBrowserDrawsTheReport(t *testing.T) {
	b := pagetest.Start(t)
	l := newLive(t, &gateway{sessions: 3, homes: 3, mobile: true}, Options{})
	file := filepath.Join(t.TempDir(), "report.html")
	for n, seconds := range []int{1, 90} {
		l.seconds(seconds)
		l.gateway.set(func() { l.gateway.away = n > 0 })
		l.seconds(9 * n)
		k := l.history.keep()
		for group := range k.groups {
			k.groups[group][0].name = hostile
		}
		var text bytes.Buffer
		testkit.Must(t, reportTemplate.Execute(&text, k.data(Status{Host: hostile}, "{}")))
		testkit.Must(t, os.WriteFile(file, text.Bytes(), 0o600))
		b.Size(1200, 1000, "light")
		b.Open("file://" + file)
		b.Until("each plot is drawn", `document.querySelectorAll(".plot").length > 4 &&
			[...document.querySelectorAll(".plot")].every((p) => p.querySelector("canvas") &&
				p.nextElementSibling.textContent.includes("<script>"))`)
		b.Shot(fmt.Sprintf("report-%d", n))
	}
	b.Until("the legend has time and value", `((box) => {
		const at = box.getBoundingClientRect();
		box.querySelector("canvas:last-of-type").dispatchEvent(new MouseEvent("mousemove",
			{ bubbles: true, clientX: at.left + at.width / 2, clientY: at.top + at.height / 2 }));
		return /\d\d:\d\d:\d\d: .*\d Gb\/s/s.test(box.nextElementSibling.textContent);
	})(document.querySelector(".plot"))`)
	testkit.ErrorIf(t, pagetest.Eval[bool](b, `document.title === "owned" ||
		document.querySelector("img") !== null || document.querySelectorAll("script").length !== 1`),
		"a name became part of the page")
	b.Quiet()
}
