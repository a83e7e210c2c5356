// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// column is a field of a row that can be sorted by.
type column struct {
	name  string // in JSON
	index []int
	kind  reflect.Kind
	id    bool // a number by which people know a session
}

type tableColumns []column

// known are the numbers that a search for a number looks at; others are counts.
var known = []string{"seid", "cp_seid", "teid_local", "teid_peer", "s_tag", "c_tag", "pppoe_session"}

// columnsOf returns the plain fields of a row's type, those of embedded structs too.
func columnsOf(row reflect.Type) tableColumns {
	var list tableColumns
	for _, f := range reflect.VisibleFields(row) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && f.Type == reflect.TypeFor[time.Time]() {
			list = append(list, column{name, f.Index, reflect.Struct, false})
		}
		switch f.Type.Kind() {
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8,
			reflect.Uint16,
			reflect.Uint32, reflect.Uint64, reflect.Float64:
			if name != "" {
				list = append(list, column{name, f.Index, f.Type.Kind(), slices.Contains(known, name)})
			}
		}
	}
	return list
}

// find returns the indexes of the rows with a text that has the words, a prefix of the address, or the number.
func (c tableColumns) find(list reflect.Value, search string) []int {
	found := make([]int, 0, 64)
	search = strings.ToLower(strings.TrimSpace(search))
	number, err := strconv.ParseUint(search, 0, 64)
	numeric := err == nil
	address, _ := netip.ParseAddr(search)
	for i := range list.Len() {
		if search == "" || c.matches(list.Index(i), search, address, number, numeric) {
			found = append(found, i)
		}
	}
	return found
}

func (c tableColumns) matches(row reflect.Value, search string, address netip.Addr, number uint64, numeric bool) bool {
	for i := range c {
		switch {
		case c[i].kind == reflect.String:
			text := row.FieldByIndex(c[i].index).String()
			if strings.Contains(strings.ToLower(text), search) ||
				address.IsValid() && within(text, address) {
				return true
			}
		case numeric && c[i].id:
			if row.FieldByIndex(c[i].index).Uint() == number {
				return true
			}
		}
	}
	return false
}

// within tells whether a text is a prefix that has the address, and more than everything.
func within(text string, address netip.Addr) bool {
	p, err := netip.ParsePrefix(text)
	return err == nil && p.Bits() > 0 && p.Contains(address)
}

// sort orders the indexes by a field; a minus before its name means the largest first. No name leaves them as they are.
func (c tableColumns) sort(list reflect.Value, found []int, by string) error {
	name, down := strings.CutPrefix(by, "-")
	if name == "" {
		return nil
	}
	at := slices.IndexFunc(c, func(o column) bool { return o.name == name })
	if at < 0 {
		return fmt.Errorf("the table has no field %.64q to sort by", name)
	}
	field := c[at].index
	slices.SortStableFunc(found, func(i, j int) int {
		order := compare(list.Index(i).FieldByIndex(field), list.Index(j).FieldByIndex(field))
		if down {
			return -order
		}
		return order
	})
	return nil
}

func compare(a, b reflect.Value) int {
	switch a.Kind() {
	case reflect.String:
		return strings.Compare(a.String(), b.String())
	case reflect.Bool:
		return cmp.Compare(strconv.FormatBool(a.Bool()), strconv.FormatBool(b.Bool()))
	case reflect.Float64:
		return cmp.Compare(a.Float(), b.Float())
	case reflect.Int, reflect.Int32, reflect.Int64:
		return cmp.Compare(a.Int(), b.Int())
	case reflect.Struct: // the one that columnsOf takes
		return a.Interface().(time.Time).Compare(b.Interface().(time.Time))
	}
	return cmp.Compare(a.Uint(), b.Uint())
}
