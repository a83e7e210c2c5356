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

	"isthmus/controlplane/view"
)

// tableColumns are the fields of a row that can be sorted by.
type tableColumns []view.Column

// known are numbers that identify a session and are searched for; others are counts.
var known = []string{"seid", "cp_seid", "teid_local", "teid_peer", "s_tag", "c_tag", "pppoe_session"}

func columnsOf(row reflect.Type) tableColumns {
	return slices.DeleteFunc(view.Columns(row), func(c view.Column) bool {
		return !c.Compares() && c.Type != reflect.TypeFor[time.Time]()
	})
}

// find returns the indexes of rows with a text that has the words, a prefix of the address, or the number.
func (c tableColumns) find(list reflect.Value, search string) []int {
	found := make([]int, 0, 64)
	search = strings.ToLower(strings.TrimSpace(search))
	number, err := strconv.ParseUint(search, 0, 64)
	address, _ := netip.ParseAddr(search)
	looked := slices.DeleteFunc(slices.Clone(c), func(o view.Column) bool {
		return o.Type.Kind() != reflect.String && (err != nil || !slices.Contains(known, o.Name))
	})
	for i := range list.Len() {
		if search == "" || looked.matches(list.Index(i), search, address, number) {
			found = append(found, i)
		}
	}
	return found
}

func (c tableColumns) matches(row reflect.Value, search string, address netip.Addr, number uint64) bool {
	for i := range c {
		value := c[i].Of(row)
		if value.Kind() != reflect.String {
			if value.Uint() == number {
				return true
			}
			continue
		}
		text := value.String()
		if strings.Contains(strings.ToLower(text), search) || address.IsValid() && within(text, address) {
			return true
		}
	}
	return false
}

// within: a text is a prefix that contains the address, but not the prefix of all addresses.
func within(text string, address netip.Addr) bool {
	p, err := netip.ParsePrefix(text)
	return err == nil && p.Bits() > 0 && p.Contains(address)
}

// sort orders the indexes by a field; a minus before its name means the largest first. Without a name the order stays.
func (c tableColumns) sort(list reflect.Value, found []int, by string) error {
	name, down := strings.CutPrefix(by, "-")
	if name == "" {
		return nil
	}
	at := slices.IndexFunc(c, func(o view.Column) bool { return o.Name == name })
	if at < 0 {
		return fmt.Errorf("the table has no field %.64q to sort by", name)
	}
	slices.SortStableFunc(found, func(i, j int) int {
		order := compare(c[at].Of(list.Index(i)), c[at].Of(list.Index(j)))
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
	case reflect.Struct: // taken by columnsOf
		return a.Interface().(time.Time).Compare(b.Interface().(time.Time))
	}
	return cmp.Compare(a.Uint(), b.Uint())
}
