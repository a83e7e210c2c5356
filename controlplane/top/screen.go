// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"isthmus/controlplane/view"
	"isthmus/controlplane/watch"
)

// Styles of a line.
const (
	plain = ""
	bold  = "\x1b[1m"
	alarm = "\x1b[1;31m"
	good  = "\x1b[32m"
	faint = "\x1b[2m"
	bar   = "\x1b[7m"
	reset = "\x1b[0m"
)

// line is one of the screen, in one style.
type line struct{ text, style string }

// Screen draws the model: at most height lines of at most width columns; height 0: all there is. Without colour a line
// is its text alone.
func (m *Model) Screen(width, height int, colour bool) []string {
	lines := m.head(width)
	var foot []line
	room := math.MaxInt
	if height > 0 {
		foot = m.foot(width)
		room = max(0, height-len(lines)-len(foot))
	}
	m.rows = max(1, min(room, 1000)-2)
	lines = append(lines, m.body(width, room)...)
	if height > 0 {
		lines = lines[:min(len(lines), max(0, height-len(foot)))]
		for len(lines) < height-len(foot) {
			lines = append(lines, line{})
		}
	}
	var out []string
	for _, l := range append(lines, foot...) {
		text := cut(l.text, width)
		if l.style == bar {
			text += strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
		}
		if colour && l.style != plain {
			text = l.style + text + reset
		}
		out = append(out, text)
	}
	return out
}

func cut(s string, width int) string {
	runes := []rune(s)
	return string(runes[:min(len(runes), width)])
}

// spread puts one text at the left end and one at the right.
func spread(left, right string, width int) string {
	gap := width - utf8.RuneCountInString(left) - utf8.RuneCountInString(right)
	return left + strings.Repeat(" ", max(1, gap)) + right
}

// head is what stands above every view.
func (m *Model) head(width int) []line {
	if m.is == nil {
		return []line{{"isthmus: no answer yet", bar}}
	}
	s := m.is.Status
	clock := m.is.Time.Format(time.TimeOnly)
	if m.paused {
		clock = "PAUSED  " + clock
	}
	if m.is.Err != nil {
		return []line{{spread("isthmus", clock, width), bar}, {m.is.Err.Error(), alarm}}
	}
	name := fmt.Sprintf("isthmus %s  %s  up %s", s.Version, s.File, age(m.is.Time.Sub(s.Started)))
	lines := []line{{spread(name, clock, width), bar}}
	state := line{"data plane " + s.DataPlane, good}
	if s.DataPlane != "ready" {
		state.style = alarm
		state.text += "  " + s.Why
	}
	total := m.rates("total")
	if len(total) == 0 {
		return append(lines, state)
	}
	t := total[0]
	bits := func(field string) string {
		sum := 0.0
		for _, p := range m.rates("port") {
			sum += p.PerSecond[field]
		}
		return rate(8*sum) + "bit/s"
	}
	lines = append(lines, line{fmt.Sprintf("%s  sessions %s  held %s  buffers free %s of %s", state.text,
		t.Row.Text("sessions"), t.Row.Text("held"), t.Row.Text("buffers_free"), t.Row.Text("buffers")),
		state.style})
	lines = append(lines, line{fmt.Sprintf("in %s/s %s  out %s/s %s  punted %s/s", rate(t.PerSecond["in"]),
		bits("rx_bytes"),
		rate(t.PerSecond["out"]), bits("tx_bytes"), rate(t.PerSecond["punted"])), bold})
	dropped := line{fmt.Sprintf("dropped %s/s", rate(t.PerSecond["dropped"])), plain}
	served := 0.0
	for _, r := range m.rates("drop") {
		if v := r.PerSecond["packets"]; v > 0 && view.Served(r.Row.Text("name")) {
			served += v
		}
	}
	if served > 0 {
		dropped.text += fmt.Sprintf(", %s/s of them served", rate(served))
	}
	if t.PerSecond["dropped"]-served > 0.001 { // what division leaves of equal counts
		dropped.style = alarm
	}
	label := "  in "
	plot := sparkline(m.history, width-len(dropped.text)-len(label)-1)
	if plot != "" {
		dropped.text += label + plot
	}
	return append(lines, dropped)
}

func rate(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return watch.SI(v)
}

// age is a duration in its two largest units.
func age(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}

// sparkline draws the last values, the highest as a full block.
func sparkline(values []float64, width int) string {
	if width < 1 || len(values) < 2 {
		return ""
	}
	values = values[max(0, len(values)-width):]
	most := slices.Max(values)
	var b strings.Builder
	for _, v := range values {
		level := 0
		if most > 0 {
			level = int(math.Round(7 * v / most))
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[level])
	}
	return b.String()
}

func (m *Model) foot(width int) []line {
	var names []string
	for i, l := range looks {
		name := fmt.Sprintf("%d %s", i+1, l.title)
		if i == m.look {
			name = fmt.Sprintf("[%s]", l.title)
		}
		names = append(names, name)
	}
	left, right := strings.Join(names, " "), "h help q quit"
	if len(left)+1+len(right) > width {
		right = "h"
	}
	return []line{{spread(left, right, width), bar}}
}

var helpText = []line{
	{"Keys", bold},
	{"  1 to 9, Tab     view: overview, ports, drops, sessions, workers, peers, nodes,", plain},
	{"                  homes who sign in, aaa: RADIUS servers, pools, sign-ins", plain},
	{"  s, r            sort by the next column; turn the order round", plain},
	{"  p, Space        pause, go on", plain},
	{"  +, -            look twice, half as often", plain},
	{"  arrows, PgUp, PgDn, Home   scroll", plain},
	{"  q, Esc, Ctrl-C  quit", plain},
}

// body is the view itself, in up to room lines.
func (m *Model) body(width, room int) []line {
	switch {
	case m.help:
		return helpText
	case m.is == nil || m.is.Err != nil:
		return nil
	case m.look == 0:
		return m.overview(width, room)
	}
	l := looks[m.look]
	field := strings.TrimPrefix(l.sorts[m.sort[m.look]], "-")
	rates := m.sorted(m.look)
	lines, hidden := m.table(l.tables[0], rates, width, field)
	order := "in their order"
	if field != "" {
		order = "by " + field
	}
	if m.reversed {
		order += ", turned round"
	}
	title := fmt.Sprintf("%s, %d, %s, every %s%s", l.title, max(0, len(lines)-1), order, m.period,
		columnsMore(hidden))
	if bounded(l.tables[0]) && len(rates) >= mostSessions {
		title += fmt.Sprintf(" (the first %d)", mostSessions)
	}
	for _, table := range l.tables[1:] {
		further, hidden := m.below(table, width)
		if len(further) > 0 {
			lines = append(lines, line{}, line{called[table] + columnsMore(hidden), faint})
			lines = append(lines, further...)
		}
	}
	if len(lines) > 1 { // titles stay
		m.scroll = min(m.scroll, max(0, len(lines)-max(1, room-1)))
		lines = append(lines[:1:1], lines[1+m.scroll:]...)
	}
	return append([]line{{title, faint}}, lines...)
}

func columnsMore(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " (1 column more)"
	}
	return fmt.Sprintf(" (%d columns more)", n)
}

// below is a table below another one; of subscribers how many are in which state, and since when the last of them.
func (m *Model) below(table string, width int) (lines []line, hidden int) {
	rates := m.rates(table)
	if table != "subscriber" {
		return m.table(table, rates, width, "")
	}
	type group struct {
		all, minute int
		newest      string
	}
	groups := map[string]*group{}
	for i := range rates {
		row := &rates[i].Row
		g := groups[row.Text("state")]
		if g == nil {
			g = &group{}
			groups[row.Text("state")] = g
		}
		g.all++
		if since, err := time.Parse(time.RFC3339,
			row.Text("since")); err == nil && m.is.Time.Sub(since) < time.Minute {
			g.minute++
		}
		g.newest = max(g.newest, row.Text("since"))
	}
	var cells [][]string
	for _, state := range slices.Sorted(maps.Keys(groups)) {
		g := groups[state]
		cells = append(cells, []string{state, strconv.Itoa(g.all), strconv.Itoa(g.minute), g.newest})
	}
	titles := []string{"STATE", "SUBSCRIBERS", "IN THE LAST MINUTE", "NEWEST SINCE"}
	return fit(titles, []bool{false, true, true, false}, cells, width, "")
}

// overview is the head of several tables; those that the height has no room for are named.
func (m *Model) overview(width, room int) []line {
	each := max(2, min(room, 100)/5)
	room-- // for the names
	var all []line
	var left []string
	add := func(title, table string, rates []watch.Rate, style string) {
		lines, hidden := m.table(table, rates, width, "")
		if len(lines) < 2 {
			return
		}
		if len(all)+4 > room {
			left = append(left, fmt.Sprintf("%s (%d)", title, len(lines)-1))
			return
		}
		shown := slices.Clone(lines[:min(len(lines), each+1, room-len(all)-2)])
		for i := 1; i < len(shown) && style != plain; i++ {
			shown[i].style = style
		}
		if more := len(lines) - len(shown); more > 0 {
			title = fmt.Sprintf("%s (%d more)", title, more)
		}
		all = append(append(all, line{}, line{title + columnsMore(hidden), faint}), shown...)
	}
	rising := slices.DeleteFunc(m.rates("drop"), func(r watch.Rate) bool {
		return !(r.PerSecond["packets"] > 0) || view.Served(r.Row.Text("name"))
	})
	_ = watch.SortRates("drop", rising, "packets")
	add("ports", "port", m.rates("port"), plain)
	add("drops that rise", "drop", rising, alarm)
	add("workers", "worker", m.rates("worker"), plain)
	add(called["association"], "association", m.rates("association"), plain)
	add(called["path"], "path", m.rates("path"), plain)
	if len(left) > 0 {
		all = append(all, line{"no room for " + strings.Join(left, ", "), bold})
	}
	return all
}

// table prints rows in lines, titles first.
func (m *Model) table(table string, rates []watch.Rate, width int, keep string) (lines []line, hidden int) {
	titles, right, cells := watch.Table(table, rates)
	if keep != "" {
		keep = watch.Title(table, keep)
	}
	return fit(titles, right, cells, width, keep)
}

// fit leaves out columns above the width, the last ones first; never the first one, nor the one to keep.
func fit(titles []string, right []bool, cells [][]string, width int, keep string) (lines []line, hidden int) {
	if len(titles) == 0 || len(cells) == 0 {
		return nil, 0
	}
	places := make([]int, len(titles))
	for i := range places {
		places[i] = i
	}
	for {
		part := make([][]string, len(cells)+1)
		sides := make([]bool, len(places))
		for k, i := range places {
			part[0], sides[k] = append(part[0], titles[i]), right[i]
			for r := range cells {
				part[r+1] = append(part[r+1], cells[r][i])
			}
		}
		var text strings.Builder
		if view.WriteTable(&text, part[0], sides, part[1:]) != nil {
			return nil, 0
		}
		list := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
		widest := 0
		for _, s := range list {
			widest = max(widest, utf8.RuneCountInString(s))
		}
		last := len(places) - 1
		if last > 0 && titles[places[last]] == keep {
			last--
		}
		if widest > width && last > 0 {
			places = slices.Delete(places, last, last+1)
			continue
		}
		lines = make([]line, len(list))
		for i, s := range list {
			lines[i].text = s
		}
		lines[0].style = bold
		return lines, len(titles) - len(places)
	}
}
