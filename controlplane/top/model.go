// SPDX-License-Identifier: Apache-2.0

package top

import (
	"math"
	"slices"
	"strings"
	"time"

	"isthmus/controlplane/watch"
)

// look is one of the views: tables, and the fields by which the first can be sorted.
type look struct {
	title  string
	tables []string
	sorts  []string
}

// looks in the order of their keys, 1 to 9. The first is the overview.
var looks = []look{
	{title: "overview"},
	{"ports", []string{"port"}, []string{"", "rx_bytes", "tx_bytes", "rx_packets", "tx_packets",
		"tx_dropped", "name"}},
	{"drops", []string{"drop"}, []string{"packets", "name"}},
	{"sessions", []string{"session"}, []string{"downlink_bytes", "uplink_bytes", "downlink_packets",
		"uplink_packets",
		"downlink_dropped", "uplink_dropped", "name"}},
	{"workers", []string{"worker"}, []string{"worker", watch.Busy, "packets"}},
	{"peers", []string{"association", "path"}, []string{"", "sessions", "state", "id"}},
	{"nodes", []string{"graph"}, []string{"ticks", "packets", "calls", "name"}},
	{"homes", []string{"subscriber"}, []string{"downlink_bytes", "uplink_bytes", "downlink_packets",
		"uplink_packets",
		"-since", "state", "user"}},
	{"aaa", []string{"radius", "pool", "subscriber"}, []string{"", "requests", "rejects", "timeouts", "name"}},
}

// called are the tables where they stand with others.
var called = map[string]string{"association": "PFCP peers", "path": "GTP-U peers", "radius": "RADIUS servers",
	"pool": "pools", "subscriber": "sign-ins"}

// overviewTables are asked for in every view: the head is made of them.
var overviewTables = []string{"total", "port", "drop", "worker", "association", "path"}

const historyLength = 240 // samples of the plot

// Model is the state of the view. It is one goroutine's.
type Model struct {
	look     int
	sort     []int // of each view
	reversed bool
	paused   bool
	help     bool
	scroll   int
	rows     int // that the last screen could show, for the keys that page
	period   time.Duration
	was, is  *Sample // nil: none yet
	history  []float64
}

// NewModel looks each period, which keys may change.
func NewModel(period time.Duration) *Model {
	return &Model{sort: make([]int, len(looks)), period: period}
}

// Tables are those to ask for next.
func (m *Model) Tables() []string {
	tables := slices.Clone(overviewTables)
	for _, t := range looks[m.look].tables {
		if !slices.Contains(tables, t) {
			tables = append(tables, t)
		}
	}
	return tables
}

// Update takes a sample in.
func (m *Model) Update(s *Sample) {
	m.was, m.is = m.is, s
	if total := m.rates("total"); len(total) == 1 && !math.IsNaN(total[0].PerSecond["in"]) {
		m.history = append(m.history, total[0].PerSecond["in"])
		m.history = m.history[max(0, len(m.history)-historyLength):]
	}
}

// rates of a table between the last two samples; nil: one of them has not got it.
func (m *Model) rates(table string) []watch.Rate {
	if m.is == nil || m.is.Tables[table] == nil {
		return nil
	}
	var before []watch.Row
	var elapsed time.Duration
	if m.was != nil {
		before, elapsed = m.was.Tables[table], m.is.Time.Sub(m.was.Time)
	}
	return watch.Rates(table, before, m.is.Tables[table], elapsed)
}

// Key does what a key asks for: a letter, or the name of another key. quit: to end; look: to look again now.
func (m *Model) Key(key string) (quit, again bool) {
	switch key {
	case "q", "ctrl-c", "esc":
		if m.help && key != "ctrl-c" {
			m.help = false
			return false, false
		}
		return true, false
	case "tab", "right":
		return false, m.turn(m.look + 1)
	case "backtab", "left":
		return false, m.turn(m.look + len(looks) - 1)
	case "s":
		if n := len(looks[m.look].sorts); n > 0 {
			m.sort[m.look] = (m.sort[m.look] + 1) % n
		}
	case "r":
		m.reversed = !m.reversed
	case "p", " ":
		m.paused = !m.paused
	case "h", "?":
		m.help = !m.help
	case "+":
		m.period = max(m.period/2, 250*time.Millisecond)
	case "-":
		m.period = min(m.period*2, 8*time.Second)
	case "down", "j":
		m.scroll++
	case "up", "k":
		m.scroll--
	case "pgdown":
		m.scroll += m.rows
	case "pgup":
		m.scroll -= m.rows
	case "home", "g":
		m.scroll = 0
	default:
		if len(key) == 1 && key[0] >= '1' && int(key[0]-'1') < len(looks) {
			return false, m.turn(int(key[0] - '1'))
		}
	}
	m.scroll = max(0, m.scroll)
	return false, false
}

// turn goes to a view; true: its table has to be asked for.
func (m *Model) turn(to int) bool {
	m.look, m.scroll, m.help = to%len(looks), 0, false
	return true
}

// sorted are a table's rates in the order of its view.
func (m *Model) sorted(i int) []watch.Rate {
	l := looks[i]
	rates := m.rates(l.tables[0])
	field := l.sorts[m.sort[i]]
	if field == "" {
		if m.reversed {
			slices.Reverse(rates)
		}
		return rates
	}
	if m.reversed {
		name, turned := strings.CutPrefix(field, "-")
		if field = "-" + name; turned {
			field = name
		}
	}
	_ = watch.SortRates(l.tables[0], rates, field) // a field that no row has leaves them as they are
	return rates
}
