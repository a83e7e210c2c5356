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
)

// what of a table is watched: the fields that say which row it is, those shown beside, and the counters.
type watched struct{ key, beside, counters []string }

func fields(key, beside, counters string) watched {
	return watched{strings.Fields(key), strings.Fields(beside), strings.Fields(counters)}
}

// Busy is the share of its time, in percent, in which a worker's walks found packets.
const Busy = "busy_percent"

// tables that have rates. The others are watched as they are.
var tables = map[string]watched{
	"port":  fields("name", "", "rx_packets rx_bytes tx_packets tx_bytes rx_missed rx_no_buffer tx_dropped"),
	"clone": fields("name", "device", "to_kernel from_kernel refused dropped"),
	"gtsm":  fields("name", "", "passed dropped"),
	"session": fields("name", "ue_ip4 dnn user", "uplink_packets uplink_bytes downlink_packets downlink_bytes "+
		"uplink_dropped downlink_dropped"),
	"rule":      fields("session pdr", "source destination", "packets bytes dropped"),
	"instance":  fields("name", "tunnels ue_addresses", "unknown_ue unknown_teid"),
	"mss":       fields("name", "", "uplink downlink malformed"),
	"nat":       fields("name", "used mappings pairs", "made pairs_made pairs_refused"),
	"nptv6":     fields("name inside", "outside", "packets_out packets_in"),
	"mirror":    fields("name", "target", "packets bytes limited no_buffer failed"),
	"counter":   fields("name", "sessions", "packets bytes"),
	"traffic":   fields("instance dnn qfi other", "", "uplink_packets uplink_bytes downlink_packets downlink_bytes"),
	"event":     fields("name", "waiting", "raised acknowledged suppressed"),
	"acl":       fields("name rule default", "action", "packets"),
	"scheduler": fields("port subport pipe traffic_class", "queued", "packets bytes dropped_packets dropped_bytes"),
	"graph":     fields("name", "", "packets calls ticks"),
	"drop":      fields("name", "", "packets"),
	"punt":      fields("name", "", "packets"),
	"worker": fields("worker", "cpu sessions flows", "packets busy_ticks idle_ticks handed_over "+
		"flow_inserts stalls"),
	"path": fields("name", "alive local peer", "echo_sent echo_received error_indications_sent "+
		"error_indications_received"),
	"stream":      fields("name", "", "offered received offered_bytes received_bytes lost wrong"),
	"association": fields("id", "state sessions address heartbeat_us since", ""),
	"subscriber": fields("user line", "state kind ipv4 since", "downlink_bytes uplink_bytes downlink_packets "+
		"uplink_packets"),
	"radius": fields("name use", "state waiting", "requests accepts rejects responses timeouts repeated bad"),
	"pool":   fields("name", "size used reserved held declined", "given again refused"),
	"total":  fields("", "sessions held buffers_free", "in originated out punted dropped commits"),
}

// HasRates tells whether a table has counters.
func HasRates(table string) bool { return len(tables[table].counters) > 0 }

// Rate is one row's counters per second; NaN where there is none yet: a new row, a counter that began anew.
type Rate struct {
	Row       Row
	PerSecond map[string]float64
}

// Rates are those of the rows of a table, in their order, between two moments.
func Rates(table string, before, after []Row, elapsed time.Duration) []Rate {
	w := tables[table]
	old := make(map[string]Row, len(before))
	for _, r := range before {
		old[r.identity(w.key)] = r
	}
	rates := make([]Rate, len(after))
	for i, r := range after {
		rates[i] = Rate{r, make(map[string]float64, len(w.counters)+1)}
		was, known := old[r.identity(w.key)]
		for _, name := range w.counters {
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
	counter := slices.Contains(tables[table].counters, name) || name == Busy
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
	w := tables[table]
	if table == "drop" || table == "punt" {
		rates = slices.DeleteFunc(slices.Clone(rates), func(r Rate) bool {
			return r.Row.Text("packets") == "0"
		})
	}
	counters := slices.DeleteFunc(slices.Clone(w.counters), func(name string) bool {
		return len(rates) > 0 && !hasNumber(rates, name)
	})
	if table == "worker" { // one share in place of two counts of ticks
		counters = slices.DeleteFunc(counters, func(name string) bool {
			return strings.HasSuffix(name, "_ticks")
		})
		counters = append([]string{Busy}, counters...)
	}
	words := append(slices.Clone(w.key), w.beside...)
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
	if slices.Contains(tables[table].counters, name) || name == Busy {
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
	Rows    []map[string]any `json:"rows"`    // fields of the row; COUNTER_per_second, null where there is none yet
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
