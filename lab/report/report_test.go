// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"html"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"isthmus/controlplane/sheet"
)

func fixture(t *testing.T) *Report {
	t.Helper()
	r, err := Read("testdata/fixture.json")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func render(t *testing.T, r *Report) string {
	t.Helper()
	page, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	return string(page)
}

var plotData = regexp.MustCompile(`data-plot="([^"]*)"`)

// shown is the page without the raw data, in which every figure is found anyway, and as it is without scripts.
func shown(page string) string {
	before, _, _ := strings.Cut(page, `<section id="data">`)
	return plotData.ReplaceAllString(before, "")
}

// walk calls visit with every value below v that is neither struct, slice, map nor pointer.
func walk(v reflect.Value, path string, visit func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), path, visit)
		}
	case reflect.Struct:
		if s, ok := v.Interface().(Spread); ok && s.Runs < 2 {
			walk(v.FieldByName("Median"), path+".Median", visit) // the others are the same
			return
		}
		for i := range v.NumField() {
			walk(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			walk(v.Index(i), path+"[]", visit)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			visit(path+"{key}", key)
			visit(path+"{}", v.MapIndex(key))
		}
	default:
		visit(path, v)
	}
}

// unseen are figures that are drawn, or only explain others.
var unseen = regexp.MustCompile(`^\.Schema$|\.Mpps\.Each\[\]|\.LossTarget$|\.Latency\.Count$|` +
	`^\.Costs\[\]\.(TSCHz|Checked|LossRatio|Subscribers|Flows)|` +
	`\.TSCHz$|^\.Runs\[\]\.(Subscribers|Flows|Seconds|Workers|FrameBytes)$|^\.Costs\[\].*\.Runs$|` +
	`\.Runs$|^\.(Peers|Floors)\[\]\.FrameBytes$|` +
	`\.RatioRange\.Median$|\.Latency\.Buckets\[\]|\.Account\.(In|Out|Punted|Held|Other)$|\.Nodes\[\]\.Packets$`)

// forms are the ways in which a figure may stand on the page.
func forms(v float64) []string {
	list := []string{mpps(v), gbps(v), micro(v), percent(v), times(v), ticks(v), duration(v), bytesOf(v),
		fixed(v, 2)}
	return append(list, count(uint64(v)), sizeName(v, false), fixed(v, 0)+" %")
}

// TestEveryFigureIsOnThePage gives each figure a value that no other has, and looks for it.
func TestEveryFigureIsOnThePage(t *testing.T) {
	r := fixture(t)
	unique, values := 1000003.0, map[string]float64{}
	walk(reflect.ValueOf(r).Elem(), "", func(path string, v reflect.Value) {
		if unseen.MatchString(path) || !v.CanSet() || v.IsZero() { // of zeros some stand for "not measured"
			return
		}
		unique += 7
		switch {
		case v.CanFloat():
			v.SetFloat(unique)
		case v.CanInt():
			v.SetInt(int64(unique))
		case v.CanUint():
			v.SetUint(uint64(unique))
		default:
			return
		}
		values[path+" "+strconv.FormatFloat(unique, 'f', 0, 64)] = unique
	})
	page := shown(render(t, r))
	for path, value := range values {
		if !slices.ContainsFunc(forms(value), func(form string) bool { return strings.Contains(page, form) }) {
			t.Errorf("%s is not on the page", path)
		}
	}
	if len(values) < 2000 {
		t.Errorf("only %d figures were looked for", len(values))
	}
}

func TestTheWordsAreOnThePage(t *testing.T) {
	r := fixture(t)
	page := shown(render(t, r))
	for _, word := range []string{
		"paper: 2.24 Mpps a physical core", "What differs in the set-up", "none: memif", "0.001 %", "discarded: steal",
		"ticks: total", "own", "NOT MEASURED: the Debian build has no memif driver", "nothing is extrapolated",
		"1.30 ×", "MADE UP", "2,596",
	} {
		if !strings.Contains(page, word) {
			t.Errorf("%q is not on the page", word)
		}
	}
}

// plots decodes the data of every plot of a page.
func plots(t *testing.T, page string) (list []map[string]any) {
	t.Helper()
	for _, m := range plotData.FindAllStringSubmatch(page, -1) {
		var p map[string]any
		if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &p); err != nil {
			t.Errorf("%v in %.200s", err, m[1])
		}
		list = append(list, p)
	}
	return list
}

// Each plot has at least one value of each of its lines, and in each of its rows a value or nothing for each.
func TestPlotsAreWhole(t *testing.T) {
	r := fixture(t)
	list, figures := plots(t, render(t, r)), 0
	for _, s := range r.sections() {
		figures += len(s.Figures)
	}
	if len(list) < 15 || len(list) != figures {
		t.Fatalf("%d plots of %d figures", len(list), figures)
	}
	for _, p := range list {
		lines, _ := p["lines"].([]any)
		bars, _ := p["bars"].([]any)
		rows, _ := p["rows"].([]any)
		seen := map[int]bool{}
		for _, row := range rows {
			for i, v := range row.([]any)[1:] {
				seen[i] = seen[i] || v != nil
			}
			if len(row.([]any)) != len(lines)+1 {
				t.Errorf("a row of %d cells for %d lines", len(row.([]any)), len(lines))
			}
		}
		if len(seen) != len(lines) || slices.Contains(slices.Collect(maps.Values(seen)), false) ||
			len(lines)+len(bars) == 0 {
			t.Errorf("%d lines and %d bars, values of %v", len(lines), len(bars), seen)
		}
	}
}

// The page is one file: it has the library in it, names no address, and its policy lets a browser load nothing.
func TestThePageNeedsNothingElse(t *testing.T) {
	page := render(t, fixture(t))
	if strings.Count(page, "<script") != 1 || !strings.Contains(page, "Dygraph") ||
		!strings.Contains(page, `"Content-Security-Policy" content="default-src 'none'; `+
			`style-src 'unsafe-inline'; script-src 'sha256-`) {
		t.Error("the charting library or the policy is not in the page")
	}
	for _, outside := range []string{"http:", "https:", "@import", "url(", "<link", "<iframe", "<img", `href="/`,
		"sourceMappingURL=dygraph.min.js"} {
		if strings.Contains(page, outside) {
			t.Errorf("the page has %q", outside)
		}
	}
	if tags := regexp.MustCompile(`<[a-z]+[^<>]* src=`).FindAllString(page, -1); tags != nil {
		t.Errorf("the page has %q", tags)
	}
}

// hostile replaces every string of a report.
func hostile(r *Report, with string) {
	var change func(v reflect.Value)
	change = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				change(v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				change(v.Field(i))
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				change(v.Index(i))
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				value := v.MapIndex(key)
				v.SetMapIndex(key, reflect.Value{})
				v.SetMapIndex(reflect.ValueOf(with), value)
			}
		case reflect.String:
			v.SetString(with)
		}
	}
	groups := make([]string, len(r.Runs))
	for i := range r.Runs {
		groups[i] = r.Runs[i].Group
	}
	notes := slices.Clone(r.Notes)
	change(reflect.ValueOf(r).Elem())
	for i := range r.Runs {
		r.Runs[i].Group = groups[i]
	}
	for i := range notes {
		r.Notes[i].Section = notes[i].Section
	}
}

func TestHostileStrings(t *testing.T) {
	for _, bad := range []string{`<script>alert(1)</script>`, `"><img onerror=x>`, `</title></svg></pre><b>&`,
		"\x00\x1b]\xff\n"} {
		r := fixture(t)
		hostile(r, bad)
		page := strings.Replace(render(t, r), string(sheet.Head()), "", 1)
		for _, token := range []string{"<script", "<img", "<b>&", "</pre><b"} {
			if strings.Contains(page, token) {
				t.Errorf("%q came through as %q", bad, token)
			}
		}
		plots(t, page)
	}
}

func TestPartialIsMarked(t *testing.T) {
	whole := fixture(t)
	if whole.Partial() || strings.Contains(render(t, whole), "PARTIAL") {
		t.Error("a whole report is marked as partial")
	}
	for name, change := range map[string]func(r *Report){
		"interrupted": func(r *Report) { r.Interrupted = true },
		"not ended":   func(r *Report) { r.Complete = false },
		"missing":     func(r *Report) { r.Missing = []Missing{{SectionPeers, "peers", "no room"}} },
		"run":         func(r *Report) { r.Runs[1].Incomplete = "stopped" },
	} {
		r := fixture(t)
		change(r)
		page := render(t, r)
		var text bytes.Buffer
		if err := r.Text(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page, "<strong>PARTIAL RESULT</strong>") || !strings.Contains(page, "<title>PARTIAL: ") {
			t.Errorf("%s: the page does not say so", name)
		}
		if !strings.Contains(text.String(), "*** PARTIAL RESULT ***") {
			t.Errorf("%s: the text does not say so", name)
		}
	}
}

func TestBadResultsAreMarked(t *testing.T) {
	for name, test := range map[string]struct {
		change func(run *Run)
		word   string
	}{
		"wrong":         {func(run *Run) { run.Wrong = 3 }, "WRONG PACKETS"},
		"slow tester":   {func(run *Run) { run.Tester.Ratio = 1.2 }, "tester not shown fast enough"},
		"no tester":     {func(run *Run) { run.Tester = nil }, "tester not shown fast enough"},
		"limited":       {func(run *Run) { run.Goals[1].TesterLimited = true }, "tester-limited"},
		"at maximum":    {func(run *Run) { run.Goals[1].AtMaximum = true }, "at the highest rate allowed"},
		"not confirmed": {func(run *Run) { run.Goals[1].Confirmed = false }, "not confirmed"},
	} {
		r := fixture(t)
		test.change(&r.Runs[0])
		if page := shown(render(t, r)); strings.Count(page, test.word) < 2 {
			t.Errorf("%s: %q is not on the page", name, test.word)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	r := fixture(t)
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	again, err := Read(filepath.Join(dir, DataFile))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r, again) {
		t.Error("what was read is not what was written")
	}
	page, err := os.ReadFile(filepath.Join(dir, PageFile))
	if err != nil || string(page) != render(t, again) {
		t.Errorf("another page: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%d files, %v", len(left), err)
	}
}

func TestReadRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.json")
	for _, text := range []string{"", "{", "[]", `{"schema": 2}`, `{"schema": 1, "unknown": 0}`,
		`{"profile": "agf-symmetric"}`} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := Read(file); err == nil {
			t.Errorf("%q was read as %+v", text, r)
		}
	}
}

func TestAnythingMayBeMissing(t *testing.T) {
	for i := range reflect.TypeFor[Report]().NumField() {
		r := fixture(t)
		field := reflect.ValueOf(r).Elem().Field(i)
		field.SetZero()
		plots(t, render(t, r))
	}
	// One of everything, and nothing in it.
	hollow := &Report{
		Paper: make([]Paper, 1), Runs: []Run{{Group: GroupAccess}, {Group: GroupRFC2544},
			{Group: GroupJumbo, Mix: true}}, Floors: make([]Floor, 1),
		Instances: []Instances{{Points: make([]InstancePoint, 1)}}, Costs: make([]Cost, 1),
		Peers:       []PeerGroup{{Peers: make([]Peer, 1)}},
		Subscribers: []Population{{Points: make([]PopulationPoint, 2)}},
	}
	for i := range hollow.Runs {
		run := &hollow.Runs[i]
		run.Goals, run.Latency, run.Steps = make([]Goal, 2), []Load{{Latency: Latency{Buckets: [][3]float64{{}}}}},
			make([]Step, 1)
		run.Trials, run.Tester, run.Account = make([]Trial, 1), &Capability{}, &Account{}
	}
	plots(t, render(t, hollow))
}

// An unmeasured section has neither a heading nor a link.
func TestUnmeasuredSectionsAreLeftOut(t *testing.T) {
	r := fixture(t)
	*r = Report{Costs: r.Costs, Machine: r.Machine, Complete: true, Missing: []Missing{{SectionPeers,
		"peers", "no room"}}}
	page := render(t, r)
	for _, id := range []string{SectionCost, SectionMachine, SectionPeers} {
		if !strings.Contains(page, `<section id="`+id+`">`) || !strings.Contains(page, `<a href="#`+id+`">`) {
			t.Errorf("no %s", id)
		}
	}
	for _, id := range []string{SectionHeadline, SectionSizes, SectionLatency, SectionSteps,
		SectionInstances, SectionFlows,
		SectionSubscribers, SectionRouters, SectionTrials} {
		if strings.Contains(page, `"`+id+`"`) || strings.Contains(page, `"#`+id+`"`) {
			t.Errorf("%s is shown and was not measured", id)
		}
	}
	if strings.Contains(page, "Not measured in this run") {
		t.Error("a section says of itself that it was not measured")
	}
}

// saved is what the page's links to files hold, by the files' names.
func saved(t *testing.T, page string) map[string]string {
	t.Helper()
	files := map[string]string{}
	link := regexp.MustCompile(`<a class="save" download="([^"]+)" href="data:[^"]+?;base64,([^"]*)">`)
	for _, m := range link.FindAllStringSubmatch(page, -1) {
		data, err := base64.StdEncoding.DecodeString(html.UnescapeString(m[2]))
		if err != nil || files[m[1]] != "" {
			t.Fatalf("%s: %v, or twice", m[1], err)
		}
		files[m[1]] = string(data)
	}
	return files
}

// Each figure and each table can be saved as lines of values.
func TestFiguresAndTablesAreSaved(t *testing.T) {
	r := fixture(t)
	page := render(t, r)
	files := saved(t, page)
	want := 0
	for _, s := range r.sections() {
		want += len(s.Figures) + len(s.Tables)
	}
	for name, data := range files {
		if rows, err := csv.NewReader(strings.NewReader(data)).ReadAll(); err != nil || len(rows) < 2 {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	if len(files) != want || want < 40 {
		t.Errorf("%d files of %d figures and tables", len(files), want)
	}
	if csv := files["sizes-figure-packets-a-second.csv"]; !strings.Contains(csv, ", lowest") ||
		!strings.Contains(csv, "\nIMIX,") {
		t.Errorf("a figure: %s", csv)
	}
	if csv := files["headline-rate-of-one-worker-beside-the-paper-s-physical-core.csv"]; !strings.Contains(csv,
		"profile,link,result,Mpps,") || !strings.Contains(csv, "agf-symmetric,memif,good,6.78,") {
		t.Errorf("the headline: %s", csv)
	}
}

// A spreadsheet runs a cell that begins like a formula: what a profile or a peer is called is text.
func TestSavedTablesHoldNoFormula(t *testing.T) {
	r := fixture(t)
	r.Runs[0].Profile = `=HYPERLINK("http://x")`
	for name, data := range saved(t, render(t, r)) {
		if strings.Contains(data, "\n=") || strings.Contains(data, ",=") || strings.Contains(data, `"=`) {
			t.Errorf("%s has a formula", name)
		}
	}
}
