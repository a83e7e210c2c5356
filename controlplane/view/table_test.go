// SPDX-License-Identifier: Apache-2.0

package view

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/testkit"
)

// Every field of a row comes from the row of the data plane, where nothing is zero, or from the control plane.
func TestFieldsAreCopied(t *testing.T) {
	s := dptest.Start(t)
	c, err := dp.Dial(t.Context(), s.Path)
	testkit.Must(t, err)
	defer c.Close()
	elsewhere := map[string]string{"session": "Association CPSEID DNN User CPSEIDHex", "acl": "Default",
		"instance": "Names Interfaces Endpoints Sources Pools", "channel": "Lost"}
	for _, table := range Tables {
		if table.OfControl() || table.Answer.Kind() != reflect.Slice {
			continue
		}
		s.Fill(table.Rows)
		v, err := table.Fetch(t.Context(), c, "", 0)
		testkit.Must(t, err)
		list, made := reflect.ValueOf(v), strings.Fields(elsewhere[table.Name])
		testkit.FatalIf(t, list.Len() != 2, "%s has %d rows", table.Name, list.Len())
		row := list.Index(1)
		for i := range row.NumField() {
			name := row.Type().Field(i).Name
			testkit.ErrorIf(t, row.Field(i).IsZero() != slices.Contains(made, name),
				"%s %s: %v, made elsewhere: %v", table.Name, name, row.Field(i), made)
		}
	}
}

// names are a table's fields in JSON, in their order.
func names(table *Table) (list []string) {
	row := map[string]reflect.Type{"graph": reflect.TypeFor[Node]()}[table.Name]
	if row == nil {
		if row = table.Answer; row.Kind() == reflect.Slice {
			row = row.Elem()
		}
	}
	for i := range row.NumField() {
		if name, options, _ := strings.Cut(row.Field(i).Tag.Get("json"), ","); options == "" {
			list = append(list, name)
		}
	}
	return list
}

func TestWatchedFieldsExist(t *testing.T) {
	for _, table := range Tables {
		for _, field := range slices.Concat(table.Watched.Key, table.Watched.Beside, table.Watched.Counters) {
			testkit.ErrorIf(t, !slices.Contains(names(table), field), "%s has no %s", table.Name, field)
		}
	}
}
