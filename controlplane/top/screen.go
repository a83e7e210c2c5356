// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"math"
	"slices"
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
		state.text += "  " + s.LastError
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
	if t.PerSecond["dropped"] > 0 {
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
	return []line{{spread(strings.Join(names, " "), "h help q quit", width), bar}}
}

var helpText = []line{
	{"Keys", bold},
	{"  1 to 7, Tab     view: overview, ports, drops, sessions, workers, peers, nodes", plain},
	{"  s, r            sort by the next column; turn the order round", plain},
	{"  p, Space        pause, go on", plain},
	{"  +, -            look twice, half as often", plain},
	{"  arrows, PgUp, PgDn, Home   scroll", plain},
	{"  q, Esc, Ctrl-C  quit", plain},
}

// body is the view itself, in so many lines.
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
	lines := m.table(l.table, m.sorted(m.look), width)
	order := "in their order"
	if field := l.sorts[m.sort[m.look]]; field != "" {
		order = "by " + field
	}
	if m.reversed {
		order += ", turned round"
	}
	title := fmt.Sprintf("%s, %d, %s, every %s", l.title, max(0, len(lines)-1), order, m.period)
	if l.table == "session" && len(lines) > mostSessions {
		title += fmt.Sprintf(" (the first %d)", mostSessions)
	}
	if l.table == "association" {
		lines = append(lines, line{})
		lines = append(lines, m.table("path", m.rates("path"), width)...)
	}
	if len(lines) > 1 { // titles stay
		m.scroll = min(m.scroll, max(0, len(lines)-max(1, room-1)))
		lines = append(lines[:1:1], lines[1+m.scroll:]...)
	}
	return append([]line{{title, faint}}, lines...)
}

// overview is the head of several tables.
func (m *Model) overview(width, room int) []line {
	each := max(2, min(room, 100)/5)
	var all []line
	add := func(title string, lines []line) {
		if len(lines) < 2 || len(all)+4 > room {
			return
		}
		shown := lines[:min(len(lines), each+1)]
		if left := len(lines) - len(shown); left > 0 {
			title = fmt.Sprintf("%s (%d more)", title, left)
		}
		all = append(append(all, line{}, line{title, faint}), shown...)
	}
	rising := slices.DeleteFunc(m.rates("drop"), func(r watch.Rate) bool { return !(r.PerSecond["packets"] > 0) })
	_ = watch.SortRates("drop", rising, "packets")
	drops := m.table("drop", rising, width)
	for i := 1; i < len(drops); i++ {
		drops[i].style = alarm
	}
	add("ports", m.table("port", m.rates("port"), width))
	add("drops that rise", drops)
	add("workers", m.table("worker", m.rates("worker"), width))
	add("PFCP peers", m.table("association", m.rates("association"), width))
	add("GTP-U peers", m.table("path", m.rates("path"), width))
	return all
}

// table prints rows in lines, titles first; columns that the width has no room for are left out, the last ones first.
func (m *Model) table(table string, rates []watch.Rate, width int) []line {
	titles, right, cells := watch.Table(table, rates)
	if len(titles) == 0 || len(cells) == 0 {
		return nil
	}
	for n := len(titles); ; n-- {
		part := make([][]string, len(cells))
		for i := range cells {
			part[i] = slices.Clone(cells[i][:n])
		}
		var text strings.Builder
		if view.WriteTable(&text, slices.Clone(titles[:n]), right[:n], part) != nil {
			return nil
		}
		list := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
		widest := 0
		for _, s := range list {
			widest = max(widest, utf8.RuneCountInString(s))
		}
		if widest > width && n > 1 {
			continue
		}
		lines := make([]line, len(list))
		for i, s := range list {
			lines[i].text = s
		}
		lines[0].style = bold
		return lines
	}
}
