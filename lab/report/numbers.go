// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"strconv"
	"strings"

	"isthmus/lab/figure"
)

// notApplicable stands where there is no figure.
const notApplicable = figure.None

// fixed prints with a number of decimals, and commas between thousands.
func fixed(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return notApplicable
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole, part, _ := strings.Cut(s, ".")
	var b strings.Builder
	if v < 0 && strings.Trim(s, "0.") != "" {
		b.WriteString("−")
	}
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	if part != "" {
		b.WriteString("." + part)
	}
	return b.String()
}

func count(n uint64) string { return fixed(float64(n), 0) }
func whole(n int) string    { return fixed(float64(n), 0) }

// mpps prints a rate in millions of packets per second, with three digits that count where it is small.
func mpps(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a < 0.1:
		return fixed(v, 4)
	case a < 1:
		return fixed(v, 3)
	}
	return fixed(v, 2)
}

func gbps(v float64) string {
	if math.Abs(v) < 1 {
		return fixed(v, 2)
	}
	return fixed(v, 1)
}

// micro prints microseconds.
func micro(v float64) string {
	switch {
	case v < 10:
		return fixed(v, 2)
	case v < 100:
		return fixed(v, 1)
	}
	return fixed(v, 0)
}

// percent prints a ratio of 1 in per cent with two digits that count, never as 0 when it is not.
func percent(ratio float64) string {
	p := ratio * 100
	switch a := math.Abs(p); {
	case a == 0:
		return "0 %"
	case a >= 10:
		return fixed(p, 1) + " %"
	case a >= 0.1:
		return fixed(p, 2) + " %"
	default:
		decimals := 1 - int(math.Floor(math.Log10(a)))
		s := fixed(p, min(decimals, 12))
		return strings.TrimRight(strings.TrimRight(s, "0"), ".") + " %"
	}
}

// bytesOf prints a frame size: means of a mix with a decimal.
func bytesOf(v float64) string {
	if v == math.Trunc(v) {
		return fixed(v, 0)
	}
	return fixed(v, 1)
}

func times(v float64) string {
	if v == 0 {
		return notApplicable
	}
	if v < 0.1 {
		return fixed(v, 3)
	}
	return fixed(v, 2)
}

// lossText prints a loss that may not have been measured.
func lossText(v *float64) string {
	if v == nil {
		return notApplicable
	}
	return percent(*v)
}

// ownTicks prints a difference with its range, which is rough.
func ownTicks(s figure.Difference) string {
	switch {
	case s.Has() && !s.Resolved():
		return figure.Unresolved
	case s.Runs < 2:
		return s.Text(ticks)
	}
	return s.Text(ticks) + " (" + fixed(s.Min, 0) + ".." + fixed(s.Max, 0) + ")"
}

func ticks(v float64) string { return fixed(v, 1) }

// duration prints seconds in a readable form.
func duration(seconds float64) string {
	s := int(math.Round(seconds))
	if s < 60 {
		return strconv.Itoa(s) + " s"
	}
	return strconv.Itoa(s/60) + " min " + strconv.Itoa(s%60) + " s"
}
