// SPDX-License-Identifier: Apache-2.0

package view

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// units are what numbers are of, by how their name in JSON ends.
var units = []struct{ end, unit string }{
	{"bytes", "bytes"}, {"packets", "packets"}, {"ticks", "TSC ticks"}, {"_per_packet", "TSC ticks"},
	{"_us", "µs"}, {"_ms", "ms"}, {"_s", "s"}, {"seconds", "s"}, {"_mbps", "Mbit/s"},
	{"_kbps", "kbit/s"}, {"_kbit", "kbit/s"},
}

// unit is what a value of a field is: of a number its unit, else its kind.
func unit(name string, t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t.Kind() == reflect.Pointer:
		return unit(name, t.Elem()) + ", null"
	case t.Kind() == reflect.Slice:
		return "array"
	case t.Kind() == reflect.Map, t.Kind() == reflect.Struct:
		return "object"
	case t.Kind() == reflect.Bool:
		return "true, false"
	case t.Kind() == reflect.String:
		return "text"
	}
	for _, u := range units {
		if strings.HasSuffix(name, u.end) {
			return u.unit
		}
	}
	return "number"
}

// fieldsOf are rows of the page: of a struct within with its name before theirs.
func fieldsOf(row reflect.Type, before string, titles []Title, comments map[string]string) (rows [][]string) {
	for _, c := range Columns(row) {
		f := row.FieldByIndex(c.index)
		title := ""
		if i := slices.IndexFunc(titles, func(t Title) bool { return t.Field == f.Name }); i >= 0 {
			title = titles[i].Text
		}
		text := comments[path.Base(row.PkgPath())+"."+row.Name()+"."+f.Name]
		inner, mark := f.Type, "."
		switch inner.Kind() {
		case reflect.Slice:
			inner, mark = inner.Elem(), "[]."
		case reflect.Map:
			inner, mark = inner.Elem(), ".NAME."
		}
		within := inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]()
		if !within || text != "" {
			rows = append(rows, []string{title, "`" + before + c.Name + "`", unit(c.Name, f.Type), text})
		}
		if within {
			rows = append(rows, fieldsOf(inner, before+c.Name+mark, nil, comments)...)
		}
	}
	return rows
}

var glossary = [][]string{
	{"node, stage", "a step of a packet's way: takes a vector of packets, sends each to a next node"},
	{"full nodes, fast path", "all steps; one node that does the same for plain packets of known sessions and flows"},
	{"walk", "a worker's round: it takes packets, runs the nodes, sends"},
	{"ticks", "of the CPU's time stamp counter; a packet's: those of a vector, divided"},
	{"handed over", "given to the worker that has the packet's session"},
	{"punted", "given to the control thread or the kernel: ARP, routing protocols, packets to unserved ports"},
	{"originated", "made here: echo answers, ICMP errors, requests for MAC addresses"},
	{"held", "waiting in a queue: scheduler, paging, reassembly, neighbour, hand-over, punt"},
	{"merged", "fragments that became part of one packet, without the first"},
}

func TestReferenceTables(t *testing.T) {
	comments := testkit.Comments(t, ".", "../n4", "../measure")
	var p testkit.Page
	p.Text("`isthmus show TABLE [NAME]` prints the columns, with `-j` an array of JSON objects. Counters count\n" +
		"from the start of the data plane. How to choose and sort rows: [cli.md](../cli.md#isthmus-show).")
	p.Table("word | meaning", glossary)
	for _, table := range Tables {
		takes := ""
		if table.Key {
			takes = " [NAME]"
		}
		p.Section("show " + strings.Replace(table.Name, IgnoredRouteTable, "route --ignored", 1) + takes)
		p.Text("%s", testkit.Sentence(table.Short))
		row := table.Answer
		if row.Kind() == reflect.Slice {
			row = row.Elem()
		} else {
			p.Text("JSON: one object.")
		}
		p.Table("column | JSON | value | meaning", fieldsOf(row, "", table.Titles, comments))
		var made []string
		for _, title := range table.Titles {
			if title.Field == "" {
				made = append(made, "`"+title.Text+"`")
			}
		}
		if len(made) > 0 {
			p.Text("Columns made of several fields: %s.", strings.Join(made, ", "))
		}
		if len(table.Watched.Counters) > 0 {
			p.Text("Rates with `--watch`: `%s`.", strings.Join(table.Watched.Counters, "`, `"))
		}
	}
	p.Compare(t, "show.md", "Tables")
}
