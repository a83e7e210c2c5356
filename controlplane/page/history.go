// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

const (
	samples   = 600  // of each line: ten minutes
	maxKept   = 512  // lines with a history
	maxSeries = 4096 // of all
)

// figure is one value of a sample. Group and name identify its line.
type figure struct {
	group, name string
	v           float32 // NaN: not known
	keep        bool    // its line has a history; of others only the last value counts
}

var unknown = float32(math.NaN())

// series is one line of figures.
type series struct {
	id          uint32 // of this history, never given again
	group, name string
	ring        []float32 // by tick modulo samples; nil: only the last value is kept
	last        float32
	known       uint64 // tick of its last known value
	at          uint64 // tick of its last value
}

type seriesKey struct{ group, name string }

// history is the figures of the last ten minutes. It is bounded, whichever names come and go. The owner guards it.
type history struct {
	times   [samples]int64 // milliseconds since 1970
	tick    uint64         // samples so far
	series  map[seriesKey]*series
	order   []*series // by id
	next    uint32
	kept    int
	ignored uint64 // figures beyond the bounds
}

func newHistory() *history { return &history{series: map[seriesKey]*series{}} }

// change is what a sample brought.
type change struct {
	fresh []*series // lines that begin with it
	gone  []uint32  // lines that were unknown for ten minutes
	moved []*series // lines whose value is another than before, the fresh ones among them
}

// add appends a sample. Lines without a figure are unknown.
func (h *history) add(now time.Time, figures []figure) change {
	h.tick++
	slot := h.tick % samples
	h.times[slot] = now.UnixMilli()
	var c change
	for i := range figures {
		f := &figures[i]
		s := h.series[seriesKey{f.group, f.name}]
		if s == nil {
			if s = h.begin(f); s == nil {
				h.ignored++
				continue
			}
			c.fresh = append(c.fresh, s)
		}
		s.put(h.tick, round(f.v), &c)
	}
	order := h.order[:0]
	for _, s := range h.order {
		if s.at != h.tick {
			s.put(h.tick, unknown, &c)
		}
		if h.tick-s.known < samples {
			order = append(order, s)
			continue
		}
		c.gone = append(c.gone, s.id)
		delete(h.series, seriesKey{s.group, s.name})
		if s.ring != nil {
			h.kept--
		}
	}
	clear(h.order[len(order):])
	h.order = order
	return c
}

func (h *history) begin(f *figure) *series {
	if len(h.series) >= maxSeries || f.keep && h.kept >= maxKept {
		return nil
	}
	h.next++
	s := &series{id: h.next, group: f.group, name: f.name, last: unknown, known: h.tick}
	if f.keep {
		h.kept++
		s.ring = make([]float32, samples)
		for i := range s.ring {
			s.ring[i] = unknown
		}
	}
	h.series[seriesKey{f.group, f.name}] = s
	h.order = append(h.order, s)
	return s
}

func (s *series) put(tick uint64, v float32, c *change) {
	if v != s.last && !(isUnknown(v) && isUnknown(s.last)) {
		c.moved = append(c.moved, s)
	}
	if s.at, s.last = tick, v; s.ring != nil {
		s.ring[tick%samples] = v
	}
	if !isUnknown(v) {
		s.known = tick
	}
}

func isUnknown(v float32) bool { return v != v }

// round keeps four digits: more are not visible, and fewer octets are sent. Whole numbers up to 2^24 stay as they are.
func round(v float32) float32 {
	if v == 0 || isUnknown(v) || v == float32(int32(v)) && v < 1<<24 {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(float64(v))))-3)
	return float32(math.Round(float64(v)/unit) * unit)
}

// from is the first tick that is still there.
func (h *history) from() uint64 {
	if h.tick > samples {
		return h.tick - samples + 1
	}
	return 1
}

// encode writes the whole history as JSON:
//
//	{"t": [first, then differences], "series": [{"id", "g", "n", "v": [ten minutes] or "l": last}]}
func (h *history) encode(b []byte) []byte {
	b = append(b, `{"t":[`...)
	for t, before := h.from(), int64(0); t <= h.tick; t++ {
		b = comma(b, '[')
		at := h.times[t%samples]
		b, before = strconv.AppendInt(b, at-before, 10), at
	}
	b = append(b, `],"series":[`...)
	for _, s := range h.order {
		b = append(s.head(comma(b, '[')), ',')
		if s.ring == nil {
			b = append(number(append(b, `"l":`...), s.last), '}')
			continue
		}
		b = append(b, `"v":[`...)
		for t := h.from(); t <= h.tick; t++ {
			b = number(comma(b, '['), s.ring[t%samples])
		}
		b = append(b, `]}`...)
	}
	return append(b, `]}`...)
}

// encodeChange writes what one sample changed: {"t": time, "new": [heads], "gone": [ids], "v": {id: value}}.
func (h *history) encodeChange(b []byte, c *change) []byte {
	b = strconv.AppendInt(append(b, `{"t":`...), h.times[h.tick%samples], 10)
	if len(c.fresh) > 0 {
		b = append(b, `,"new":[`...)
		for _, s := range c.fresh {
			b = s.head(comma(b, '['))
			b = append(strconv.AppendBool(append(b, `,"keep":`...), s.ring != nil), '}')
		}
		b = append(b, ']')
	}
	if len(c.gone) > 0 {
		b = append(b, `,"gone":[`...)
		for _, id := range c.gone {
			b = strconv.AppendUint(comma(b, '['), uint64(id), 10)
		}
		b = append(b, ']')
	}
	b = append(b, `,"v":{`...)
	for _, s := range c.moved {
		b = strconv.AppendUint(append(comma(b, '{'), '"'), uint64(s.id), 10)
		b = number(append(b, `":`...), s.last)
	}
	return append(b, `}}`...)
}

// head writes an object that is still open.
func (s *series) head(b []byte) []byte {
	b = strconv.AppendUint(append(b, `{"id":`...), uint64(s.id), 10)
	b = append(append(b, `,"g":`...), quote(s.group)...)
	return append(append(b, `,"n":`...), quote(s.name)...)
}

func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`)
	}
	return b
}

// comma separates what follows, unless it is the first behind open.
func comma(b []byte, open byte) []byte {
	if b[len(b)-1] == open {
		return b
	}
	return append(b, ',')
}

func number(b []byte, v float32) []byte {
	if isUnknown(v) || math.IsInf(float64(v), 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, float64(v), 'g', -1, 32)
}
