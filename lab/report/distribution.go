// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"isthmus/controlplane/sheet"
)

// binsPerDecade is how finely a distribution is drawn.
const binsPerDecade = 24

// drawn is the part of all packets that a bin at either end must have to be drawn.
const drawn = 1e-3

// bins spreads a histogram over bins that are equally wide on a logarithmic axis: the result maps a bin's number to
// packets. A bucket that lies in several is shared out by how much of it lies in each.
func bins(histogram [][3]float64) (map[int]float64, float64) {
	list, total := map[int]float64{}, 0.0
	number := func(us float64) float64 { return math.Log10(us) * binsPerDecade }
	for _, b := range histogram {
		low, high, n := b[0], b[1], b[2]
		if n <= 0 || high <= 0 || high < low {
			continue
		}
		total += n
		from, to := number(max(low, high/2, 1e-3)), number(max(high, 1e-3))
		if to-from < 1e-9 {
			list[int(math.Floor(from))] += n
			continue
		}
		for i := int(math.Floor(from)); float64(i) < to; i++ {
			list[i] += n * (min(to, float64(i+1)) - max(from, float64(i))) / (to - from)
		}
	}
	return list, total
}

// histogramChart draws the distributions at several loads over each other.
func histogramChart(name string, loads []Load) *sheet.Plot {
	c := &sheet.Plot{
		Text: name + ": distribution of latency", Steps: true,
		X: sheet.Axis{Label: "latency, µs", Log: true}, Y: sheet.Axis{Label: "% of the packets", Zero: true},
	}
	for style, l := range loads {
		list, total := bins(l.Latency.Buckets)
		if total == 0 {
			continue
		}
		s := sheet.Line{Name: fmt.Sprintf("%s %% load", fixed(l.Percent, 0)), Style: style % 4, Bare: true}
		at := func(i int, y float64) {
			s.Points = append(s.Points, sheet.At(math.Pow(10, float64(i)/binsPerDecade), y))
		}
		numbers := slices.Sorted(maps.Keys(list))
		first, last := numbers[0], numbers[len(numbers)-1]
		// Rare stragglers would squeeze the bulk: the tail has a picture of its own.
		for list[last] < total*drawn && last > first {
			last--
		}
		for list[first] < total*drawn && first < last {
			first++
		}
		for i := first; i <= last; i++ {
			at(i, 100*list[i]/total)
		}
		at(last+1, 0)
		c.Lines = append(c.Lines, s)
	}
	return c
}

// tailChart draws which share of the packets took longer.
func tailChart(name string, loads []Load) *sheet.Plot {
	c := &sheet.Plot{
		Text: name + ": share of the packets that took longer", X: sheet.Axis{Label: "latency, µs", Log: true},
		Y: sheet.Axis{Label: "% of the packets took longer", Log: true},
	}
	for style, l := range loads {
		total := 0.0
		for _, b := range l.Latency.Buckets {
			total += b[2]
		}
		if total == 0 {
			continue
		}
		s := sheet.Line{Name: fmt.Sprintf("%s %% load", fixed(l.Percent, 0)), Style: style % 4, Bare: true}
		left := total
		for _, b := range l.Latency.Buckets {
			if b[0] > 0 && left > 0 {
				s.Points = append(s.Points, sheet.At(b[0], 100*left/total))
			}
			left -= b[2]
		}
		c.Lines = append(c.Lines, s)
	}
	return c
}

// dropText lists drops by reason.
func dropText(dropped map[string]uint64) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(dropped)) {
		list = append(list, fmt.Sprintf("%s %s", count(dropped[name]), name))
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
