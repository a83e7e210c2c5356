// SPDX-License-Identifier: Apache-2.0

// Package layers is the table of headers that the tester knows, layers.inc, as the engine has it.
package layers

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed layers.inc
var table string

// Layer is one kind of header; its index in All is its kind in a job.
type Layer struct {
	Name   string
	Fields []Field
}

// Field of a header; its index is its place in a job.
type Field struct {
	Name   string
	Form   string // MAC, NUMBER, IPV4, IPV6
	Bits   int
	Preset string
	Role   string // what it is when it is not given: enum field_role
}

// All layers, in the table's order.
var All = parse()

func parse() (all []Layer) {
	for line := range strings.Lines(table) {
		macro, arguments, _ := strings.Cut(line, "(")
		words := strings.Split(arguments, ", ")
		switch macro {
		case "LAYER":
			all = append(all, Layer{Name: strings.Trim(words[1], `"`)})
		case "FIELD":
			f := Field{Name: strings.Trim(words[0], `"`), Form: words[1], Preset: words[4],
				Role: strings.TrimRight(words[5], ")\n")}
			if _, err := fmt.Sscan(words[3], &f.Bits); err != nil {
				panic(err) // the table is part of the program
			}
			last := &all[len(all)-1]
			last.Fields = append(last.Fields, f)
		}
	}
	return all
}
