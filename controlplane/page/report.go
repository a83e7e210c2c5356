// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"isthmus/controlplane/sheet"
)

//go:embed report.html
var reportSource string

var reportTemplate = template.Must(template.New("report").
	Funcs(template.FuncMap{"head": sheet.Head}).Parse(reportSource))

// reportGroups are the plots of a report, in order.
var reportGroups = []struct {
	group, title, unit string
	most               float64
}{
	{"bps", "Throughput", "b/s", 0}, {"dnn", "Throughput by DNN", "b/s", 0},
	{"pps", "Packets", "p/s", 0}, {"drop", "Drops by reason", "p/s", 0},
	{"load", "Workers' load", "%", 100}, {"sessions", "Sessions", "", 0}, {"pfcp", "PFCP messages", "/s", 0},
	{"latency", "PFCP requests, time to answer", "ms", 0},
	{"signin", "Sign-ins by phase", "ms", 0}, {"buffers", "Packet buffers in use", "%", 100},
}

// line is the copy of a series that a report is drawn from.
type line struct {
	name   string
	values []float32
	last   float32
}

// kept is the copy of a history.
type kept struct {
	times  []int64
	groups map[string][]line
}

func (h *history) keep() kept {
	k := kept{groups: map[string][]line{}}
	for t := h.from(); t <= h.tick; t++ {
		k.times = append(k.times, h.times[t%samples])
	}
	for _, s := range h.order {
		l := line{name: s.name, last: s.last}
		for t := h.from(); s.ring != nil && t <= h.tick; t++ {
			l.values = append(l.values, s.ring[t%samples])
		}
		k.groups[s.group] = append(k.groups[s.group], l)
	}
	return k
}

type reportRow struct{ Name, Last, Mean, Peak string }

type reportFigure struct {
	Title string
	Plot  *sheet.Plot
	Rows  []reportRow
	Table sheet.Saved
}

type reportCard struct{ Title, Number, Unit string }

type reportData struct {
	Title, When, Where, Away, JSON string
	Cards                          []reportCard
	Figures                        []reportFigure
	Nodes                          []reportRow
	NodeTable                      sheet.Saved
}

// cells are the first n columns of a table.
func cells(rows []reportRow, n int) [][]string {
	var list [][]string
	for _, r := range rows {
		list = append(list, []string{r.Name, r.Last, r.Mean, r.Peak}[:n])
	}
	return list
}

// report sends the last ten minutes as one file that needs nothing else.
func (p *Page) report(w http.ResponseWriter, _ *http.Request) {
	select {
	case p.tables.slots <- struct{}{}:
		defer func() { <-p.tables.slots }()
	default:
		refuse(w, http.StatusServiceUnavailable, "too much is asked for at once; ask again")
		return
	}
	inTime(w)
	p.lock.Lock()
	k, status, raw := p.history.keep(), p.status, p.history.encode(nil)
	p.lock.Unlock()
	var b bytes.Buffer
	if err := reportTemplate.Execute(&b, k.data(status, string(raw))); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="isthmus-%s.html"`,
		time.Now().UTC().Format("20060102-150405")))
	w.Write(b.Bytes()) // the client is gone when this fails
}

func (k *kept) data(s Status, raw string) reportData {
	d := reportData{Title: "Isthmus: ten minutes of " + s.Host,
		Where: fmt.Sprintf("control plane %s · data plane %s · %d objects",
			s.Version, s.DPVersion, s.Objects), When: "no sample yet", JSON: raw}
	if s.DataPlane != "ready" {
		d.Away = strings.TrimSuffix("The data plane is "+s.DataPlane+": "+s.Error, ": ")
	}
	if n := len(k.times); n > 0 {
		at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
		d.When = at(k.times[0]).Format("2006-01-02 15:04:05") + " to " + at(k.times[n-1]).Format("15:04:05 UTC")
	}
	for _, c := range []struct{ title, group, ending, unit string }{
		{"In", "bps", " in", "b/s"}, {"Out", "bps", " out", "b/s"}, {"Packets in", "total", "in", "p/s"},
		{"Packets out", "total", "out", "p/s"}, {"Dropped", "total", "dropped", "p/s"}, {"Sessions",
			"sessions", "sessions", ""},
	} {
		number, unit := si(k.sum(c.group, c.ending), c.unit)
		d.Cards = append(d.Cards, reportCard{c.title, number, unit})
	}
	files := sheet.Namer{}
	for _, g := range reportGroups {
		lines := k.groups[g.group]
		if len(lines) == 0 {
			continue
		}
		f := reportFigure{Title: g.title}
		slices.SortStableFunc(lines, func(a, b line) int { return strings.Compare(a.name, b.name) })
		for i := range lines {
			mean, peak := lines[i].summary()
			f.Rows = append(f.Rows, reportRow{lines[i].name, word(lines[i].last, g.unit), word(mean,
				g.unit), word(peak, g.unit)})
		}
		f.Plot = plot(g.title, k.times, lines, g.unit, g.most)
		f.Table = files.Table(g.title, []string{"line", "end", "mean", "peak"}, cells(f.Rows, 4))
		d.Figures = append(d.Figures, f)
	}
	d.Nodes = k.nodes()
	d.NodeTable = files.Table("nodes", []string{"node", "packets", "ticks per packet"}, cells(d.Nodes, 3))
	return d
}

// sum adds the last values of a group's lines whose names end so.
func (k *kept) sum(group, ending string) float32 {
	sum := unknown
	for _, l := range k.groups[group] {
		switch {
		case !strings.HasSuffix(l.name, ending) || isUnknown(l.last):
		case isUnknown(sum):
			sum = l.last
		default:
			sum += l.last
		}
	}
	return sum
}

// nodes are those through which packets flow, the busiest first.
func (k *kept) nodes() []reportRow {
	cost := map[string]float32{}
	for _, l := range k.groups["ticks"] {
		cost[l.name] = l.last
	}
	busy := slices.DeleteFunc(slices.Clone(k.groups["node"]), func(l line) bool { return !(l.last > 0) })
	slices.SortStableFunc(busy, func(a, b line) int { return int(b.last*cost[b.name] - a.last*cost[a.name]) })
	var rows []reportRow
	for _, l := range busy {
		rows = append(rows, reportRow{Name: l.name, Last: word(l.last, "p/s"), Mean: word(cost[l.name], "")})
	}
	return rows
}

func (l *line) summary() (mean, peak float32) {
	sum, n := 0.0, 0
	peak = unknown
	for _, v := range l.values {
		if isUnknown(v) {
			continue
		}
		sum, n = sum+float64(v), n+1
		if !(v <= peak) {
			peak = v
		}
	}
	if n == 0 {
		return unknown, unknown
	}
	return float32(sum / float64(n)), peak
}
