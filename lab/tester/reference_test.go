// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
	"isthmus/traffic/layers"
)

// values says what a key takes, by its tags and type.
func values(f reflect.StructField) string {
	h := tagOf(f.Tag)
	var words []string
	switch {
	case len(h.words) > 0 && h.kind == "word":
		words = append(words, "`"+strings.Join(h.words, "`, `")+"`")
	case h.kind == "whole", h.kind == "real":
		words = append(words, "number")
	case h.kind == "rate" && len(h.words) > 0:
		words = append(words, "rate, or "+strings.Join(h.words, ", "))
	case h.kind == "text", h.kind == "":
	default:
		words = append(words, h.kind)
	}
	if h.kind == "text" {
		words = append(words, fmt.Sprintf("%v to %v bytes", h.low, h.high))
	} else if h.high > 0 {
		number := func(v float64) string {
			if h.kind == "part" {
				return strconv.FormatFloat(v*100, 'f', -1, 64) + "%"
			}
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		words = append(words, number(h.low)+" to "+number(h.high))
	}
	if list := f.Tag.Get("list"); list != "" {
		bounds, what, _ := strings.Cut(list, " ")
		words = append(words, "list of "+strings.Replace(bounds, "..", " to ", 1)+" "+what)
	}
	return strings.Join(words, ", ")
}

// The page of keys, layers and results is that of the code.
func TestReferenceTester(t *testing.T) {
	comments := testkit.Comments(t, ".")
	note := func(of reflect.Type, f reflect.StructField) string {
		return testkit.Sentence(comments["tester."+of.Name()+"."+f.Name])
	}
	var p testkit.Page
	p.Text("What a profile of `isthmus-traffic` may say, and what its result has. How to use it:\n" +
		"[measure.md](../measure.md#the-tester). **Bold** keys must be given.")
	for _, section := range []struct {
		title string
		of    reflect.Type
	}{
		{"Profile", reflect.TypeFor[Profile]()},
		{"Profile: ports", reflect.TypeFor[Port]()},
		{"Profile: streams", reflect.TypeFor[Stream]()},
		{"Profile: streams, expect", reflect.TypeFor[Expect]()},
		{"Profile: run", reflect.TypeFor[Plan]()},
		{"Profile: run, search", reflect.TypeFor[Search]()},
		{"Profile: run, search, goals", reflect.TypeFor[Goal]()},
		{"Profile: run, latency", reflect.TypeFor[Latency]()},
		{"Profile: run, disturbed", reflect.TypeFor[Disturbs]()},
		{"Profile: capture", reflect.TypeFor[Capture]()},
	} {
		p.Section(section.title)
		names, index := keys(section.of)
		var rows [][]string
		for _, name := range names {
			f := section.of.Field(index[name])
			h, key := tagOf(f.Tag), "`"+name+"`"
			if h.required {
				key = "**" + key + "**"
			}
			rows = append(rows, []string{key, values(f), h.preset, note(section.of, f)})
		}
		p.Table("key | value | preset | meaning", rows)
	}
	p.Section("Layers")
	p.Text("A field without a preset is 0, or made of what the packet has.")
	var rows [][]string
	for _, l := range layers.All {
		layer := "`" + l.Name + "`"
		for _, f := range l.Fields {
			name := "`" + f.Name + "`"
			if f.Role == "REQUIRED" {
				name = "**" + name + "**"
			}
			preset := f.Preset
			if preset == "0" {
				preset = ""
			}
			rows = append(rows, []string{layer, name, strconv.Itoa(f.Bits), preset})
			layer = ""
		}
	}
	rows = append(rows, []string{"", "`extensions`", "up to 4", ""})
	p.Table("layer | field | bits | preset", rows)
	results(&p, note)
	p.Compare(t, "tester.md", "The tester's profile and result")
}

func results(p *testkit.Page, note func(reflect.Type, reflect.StructField) string) {
	for _, of := range []reflect.Type{reflect.TypeFor[Result](), reflect.TypeFor[Machine](),
		reflect.TypeFor[PortResult](), reflect.TypeFor[StreamInfo](), reflect.TypeFor[Reference](),
		reflect.TypeFor[SearchResult](), reflect.TypeFor[GoalResult](), reflect.TypeFor[Trial](),
		reflect.TypeFor[StreamTrial](), reflect.TypeFor[WrongFrame](), reflect.TypeFor[Histogram]()} {
		p.Section("Result: " + of.Name())
		var rows [][]string
		for _, f := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			owner := of
			if len(f.Index) > 1 { // embedded
				owner = of.Field(f.Index[0]).Type
			}
			rows = append(rows, []string{"`" + name + "`", note(owner, f)})
		}
		p.Table("field | meaning", rows)
	}
}
