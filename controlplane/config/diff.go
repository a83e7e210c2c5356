// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Diff lists in which keys two accepted configurations differ: "~ path: old -> new", "+ path: new", "- path: old".
// Entries of lists are compared by name, and those without one as a whole. Secrets are not shown.
func Diff(from, to *Config) []string {
	var d differ
	d.section("", reflect.ValueOf(from).Elem(), reflect.ValueOf(to).Elem())
	return d.lines
}

type differ struct{ lines []string }

func (d *differ) section(path string, a, b reflect.Value) {
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if key := f.Tag.Get("yaml"); key != "" && key != "-" {
			d.value(join(path, key), a.Field(i), b.Field(i), f.Tag)
		}
	}
}

func (d *differ) value(path string, a, b reflect.Value, tag reflect.StructTag) {
	switch {
	case reflect.DeepEqual(a.Interface(), b.Interface()):
	case isSection(a.Type()):
		d.section(path, a, b)
	case a.Kind() == reflect.Slice && isSection(a.Type().Elem()):
		d.list(path, a, b)
	default:
		d.say('~', path, written(a, tag)+" -> "+written(b, tag))
	}
}

func (d *differ) say(sign rune, path, text string) {
	d.lines = append(d.lines, fmt.Sprintf("%c %s: %s", sign, path, text))
}

// list compares lists of sections: those of a name with each other. Without names each is there, or not.
func (d *differ) list(path string, a, b reflect.Value) {
	identity := func(v reflect.Value) string {
		if name := v.FieldByName("Name"); name.IsValid() && name.Len() > 0 {
			return name.String()
		}
		return written(v, "")
	}
	index := func(list reflect.Value) (names []string, at map[string]int) {
		at = make(map[string]int, list.Len())
		for i := range list.Len() {
			name := identity(list.Index(i))
			names, at[name] = append(names, name), i
		}
		return names, at
	}
	was, old := index(a)
	is, now := index(b)
	place := func(list reflect.Value, name string, i int) string {
		if one := list.Index(i).FieldByName("Name"); one.IsValid() && one.Len() > 0 {
			return path + "[" + name + "]"
		}
		return path
	}
	for _, name := range was {
		if _, there := now[name]; !there {
			d.say('-', place(a, name, old[name]), written(a.Index(old[name]), ""))
		}
	}
	before := len(d.lines)
	for _, name := range is {
		if i, there := old[name]; there {
			d.section(place(b, name, now[name]), a.Index(i), b.Index(now[name]))
		} else {
			d.say('+', place(b, name, now[name]), written(b.Index(now[name]), ""))
		}
	}
	if len(d.lines) == before && len(was) == len(is) {
		d.say('~', path, "another order")
	}
}

// written is a value about as a file has it; of a section what differs from its defaults.
func written(v reflect.Value, tag reflect.StructTag) string {
	if _, scalar := reflect.New(v.Type()).Interface().(encoding.TextUnmarshaler); scalar ||
		v.Type() == reflect.TypeFor[Secret]() {
		return fmt.Sprint(v.Interface())
	}
	var parts []string
	switch v.Kind() {
	case reflect.Struct:
		preset := defaults(v.Type())
		for i := range v.NumField() {
			f := v.Type().Field(i)
			key := f.Tag.Get("yaml")
			if key == "" || key == "-" || reflect.DeepEqual(v.Field(i).Interface(), preset.Field(i).Interface()) {
				continue
			}
			parts = append(parts, key+": "+written(v.Field(i), f.Tag))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			parts = append(parts, written(v.Index(i), tag))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		at := map[string]string{}
		for _, key := range v.MapKeys() {
			at[fmt.Sprintf("%2v", key)] = fmt.Sprint(key) + ": " + written(v.MapIndex(key), tag)
		}
		for _, key := range slices.Sorted(maps.Keys(at)) {
			parts = append(parts, at[key])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.String:
		if v.Len() == 0 {
			return `""`
		}
		return v.String()
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return fmt.Sprint(v.Int() / unit(v.Type(), tag))
	}
	return fmt.Sprint(v.Interface())
}
