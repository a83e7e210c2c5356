// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"isthmus/controlplane/view"
)

// Busy is the share of its time, in percent, in which a worker's walks found packets.
const Busy = "busy_percent"

// watched is a table's own description; tables without one are watched as they are.
func watched(table string) view.Watched {
	if t := view.Lookup(table); t != nil {
		return t.Watched
	}
	return view.Watched{}
}

// HasRates: a table has counters.
func HasRates(table string) bool { return len(watched(table).Counters) > 0 }

// Rate is one row's counters per second; NaN for a new row or a counter that restarted.
type Rate struct {
	Row       Row
	PerSecond map[string]float64
}

// Rates are those of the rows of a table, in their order, between two moments.
func Rates(table string, before, after []Row, elapsed time.Duration) []Rate {
	w := watched(table)
	old := make(map[string]Row, len(before))
	for _, r := range before {
		old[r.identity(w.Key)] = r
	}
	rates := make([]Rate, len(after))
	for i, r := range after {
		rates[i] = Rate{r, make(map[string]float64, len(w.Counters)+1)}
		was, known := old[r.identity(w.Key)]
		for _, name := range w.Counters {
			rates[i].PerSecond[name] = math.NaN()
			from, okFrom := was.Number(name)
			to, okTo := r.Number(name)
			if known && okFrom && okTo && to >= from && elapsed > 0 {
				rates[i].PerSecond[name] = (to - from) / elapsed.Seconds()
			}
		}
		if table == "worker" {
			busy, idle := rates[i].PerSecond["busy_ticks"], rates[i].PerSecond["idle_ticks"]
			rates[i].PerSecond[Busy] = 100 * busy / (busy + idle) // NaN where either is
		}
	}
	return rates
}

func (r Row) identity(key []string) string {
	words := make([]string, len(key))
	for i, name := range key {
		words[i] = r.Text(name)
	}
	return strings.Join(words, "\x00")
}

// SortRates orders rows by a counter's rate, the highest first, or by another field as Sort does.
func SortRates(table string, rates []Rate, field string) error {
	name, reversed := strings.CutPrefix(field, "-")
	counter := slices.Contains(watched(table).Counters, name) || name == Busy
	rows := make([]Row, len(rates))
	for i := range rates {
		rows[i] = rates[i].Row
	}
	if err := known(rows, name); err != nil && !counter {
		return err
	}
	slices.SortStableFunc(rates, func(a, b Rate) int {
		order := compareFields(a.Row, b.Row, name)
		if counter {
			order = cmp.Compare(orNone(b.PerSecond[name]), orNone(a.PerSecond[name]))
		}
		if reversed {
			return -order
		}
		return order
	})
	return nil
}

func orNone(v float64) float64 {
	if math.IsNaN(v) {
		return -1
	}
	return v
}

// Table is the printed form: titles, which columns are numbers, cells. Counters that no row has are left out, and
// reasons that never happened.
func Table(table string, rates []Rate) (titles []string, right []bool, cells [][]string) {
	w := watched(table)
	if table == "drop" || table == "punt" {
		rates = slices.DeleteFunc(slices.Clone(rates), func(r Rate) bool {
			return r.Row.Text("packets") == "0"
		})
	}
	counters := slices.DeleteFunc(slices.Clone(w.Counters), func(name string) bool {
		return len(rates) > 0 && !hasNumber(rates, name)
	})
	if table == "worker" { // one share in place of two counts of ticks
		counters = slices.DeleteFunc(counters, func(name string) bool {
			return strings.HasSuffix(name, "_ticks")
		})
		counters = append([]string{Busy}, counters...)
	}
	words := append(slices.Clone(w.Key), w.Beside...)
	for i, name := range words {
		titles = append(titles, title(name))
		right = append(right, i > 0 && hasNumber(rates, name))
	}
	for _, name := range counters {
		titles, right = append(titles, rateTitle(name)), append(right, true)
	}
	for _, r := range rates {
		var line []string
		for _, name := range words {
			line = append(line, r.Row.Text(name))
		}
		for _, name := range counters {
			line = append(line, RateText(name, r.PerSecond[name]))
		}
		cells = append(cells, line)
	}
	return titles, right, cells
}

func hasNumber(rates []Rate, name string) bool {
	return slices.ContainsFunc(rates, func(r Rate) bool {
		_, ok := r.Row.Number(name)
		return ok
	})
}

func title(name string) string {
	return strings.ToUpper(strings.NewReplacer("_", " ", ".", " ").Replace(name))
}

// Title is what Table calls a field's column.
func Title(table, name string) string {
	if slices.Contains(watched(table).Counters, name) || name == Busy {
		return rateTitle(name)
	}
	return title(name)
}

func rateTitle(name string) string {
	if name == Busy {
		return "BUSY %"
	}
	if isBytes(name) {
		return title(strings.TrimSuffix(name, "bytes") + "bit/s")
	}
	return title(name) + "/S"
}

func isBytes(name string) bool { return name == "bytes" || strings.HasSuffix(name, "_bytes") }

// RateText prints a counter's rate, bytes as bits.
func RateText(name string, v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	if isBytes(name) {
		v *= 8
	}
	return SI(v)
}

// SI prints three or four digits and a unit: 0, 12.5, 999, 1.23k, 45.6M.
func SI(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= unit.size*0.9995 {
			return digits(v/unit.size) + unit.name
		}
	}
	return digits(v)
}

func digits(v float64) string {
	switch {
	case v == math.Trunc(v) && v < 1000:
		return fmt.Sprintf("%.0f", v)
	case v < 9.995:
		return fmt.Sprintf("%.2f", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Snapshot is what `show --watch -j` prints of one moment.
type Snapshot struct {
	Table   string           `json:"table"`
	Seconds float64          `json:"seconds"` // since the moment before
	Rows    []map[string]any `json:"rows"`    // fields of the row; COUNTER_per_second, null without a rate yet
}

// Report is the rates as JSON.
func Report(table string, rates []Rate, elapsed time.Duration) Snapshot {
	s := Snapshot{table, elapsed.Seconds(), make([]map[string]any, len(rates))}
	for i, r := range rates {
		s.Rows[i] = maps.Clone(r.Row.Fields)
		for name, v := range r.PerSecond {
			if name != Busy {
				name += "_per_second"
			}
			s.Rows[i][name] = nil
			if !math.IsNaN(v) {
				s.Rows[i][name] = v
			}
		}
	}
	return s
}
