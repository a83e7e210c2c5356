// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rate is packets or bits a second, a part of another rate, or max, as the file has it. Empty: not given.
type Rate string

// Part is a part of a whole, as the file has it: 0.5 or 50%.
type Part string

// Unit of a rate.
type Unit int

const (
	NoRate  Unit = iota
	Packets      // 100kpps, 1.5Mpps
	Bits         // of frames with FCS (L2): 10Gbit
	OfRate       // of the rate that the run refers to: 50%
	Fastest      // as fast as the port takes them
)

// Above any tester's ability.
const (
	mostPPS  = 200e6
	mostBits = 400e9
	mostPart = 10.0
)

// unit of a number, and what the number is multiplied with.
type unit struct {
	name   string
	factor float64
	rate   Unit
}

var (
	plainUnits = []unit{{"", 1, 0}}
	partUnits  = []unit{{"", 1, 0}, {"%", 0.01, 0}}
	timeUnits  = []unit{{"", 1, 0}, {"s", 1, 0}, {"ms", 1e-3, 0}, {"us", 1e-6, 0}}
	rateUnits  = []unit{{"", 1, Packets}, {"pps", 1, Packets}, {"kpps", 1e3, Packets}, {"Mpps", 1e6, Packets},
		{"bit", 1, Bits}, {"kbit", 1e3, Bits}, {"Mbit", 1e6, Bits}, {"Gbit", 1e9, Bits},
		{"%", 0.01, OfRate}}
)

var numberSyntax = regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?`)

// scan reads a number and its unit.
func scan(text string, units []unit) (value float64, of Unit, ok bool) {
	number := numberSyntax.FindString(text)
	value, err := strconv.ParseFloat(number, 64)
	name := strings.TrimLeft(text[len(number):], " ")
	i := slices.IndexFunc(units, func(u unit) bool { return u.name == name })
	if err != nil || i < 0 {
		return 0, NoRate, false
	}
	return value * units[i].factor, units[i].rate, true
}

// Scan reads a checked rate; ok is false without one.
func (r Rate) Scan() (value float64, of Unit, ok bool) {
	switch r {
	case "":
		return 0, NoRate, false
	case "max":
		return math.Inf(1), Fastest, true
	}
	return scan(string(r), rateUnits)
}

// Unit of a rate that was checked.
func (r Rate) Unit() Unit {
	_, of, _ := r.Scan()
	return of
}

// fault returns why a rate is impossible, as the end of a sentence.
func (r Rate) fault() string {
	value, of, _ := r.Scan()
	switch {
	case of == Fastest:
	case !(value > 0):
		return "must be above 0"
	case of == Packets && value > mostPPS:
		return "is above 200 Mpps, more than a tester can send"
	case of == Bits && value > mostBits:
		return "is above 400 Gbit, more than a tester can send"
	case of == OfRate && value > mostPart:
		return "is above 1000%"
	}
	return ""
}

// Value of a part that was checked; 0 of an empty one.
func (p Part) Value() float64 {
	value, _, _ := scan(string(p), partUnits)
	return value
}

// whole reads a number without sign: 4096, 0x1000.
func whole(text string) (uint64, error) {
	for _, prefix := range []string{"0x", "0X"} {
		if hex, is := strings.CutPrefix(text, prefix); is {
			return strconv.ParseUint(hex, 16, 64)
		}
	}
	return strconv.ParseUint(text, 10, 64)
}

// PPS writes a rate in packets per second.
func PPS(v float64) Rate { return Rate(strconv.FormatFloat(v, 'f', -1, 64) + "pps") }

// Percent writes a part (0.5) as the file has it ("50%").
func Percent(part float64) Part { return Part(strconv.FormatFloat(part*100, 'g', 12, 64) + "%") }
