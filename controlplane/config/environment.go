// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// environment lays variables over single values of the sections engine, control and pfcp, so that a container image can
// keep its file: ISTHMUS_ENGINE_WORKERS=4, ISTHMUS_CONTROL_RESTART_POLICY=external. Values are checked as in the file,
// and a variable of these families that names no value is refused.
func (d *decoder) environment(c *Config, environ []string) {
	given := map[string]string{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		for _, family := range []string{"ISTHMUS_ENGINE_", "ISTHMUS_CONTROL_", "ISTHMUS_PFCP_"} {
			if strings.HasPrefix(name, family) {
				given[name] = value
			}
		}
	}
	if len(given) == 0 {
		return
	}
	var known []string
	walk := func(v reflect.Value, prefix, section string) {
		known = d.override(v, prefix, []string{section}, given, known)
	}
	walk(reflect.ValueOf(&c.Engine).Elem(), "ISTHMUS_ENGINE", "engine")
	walk(reflect.ValueOf(&c.Control).Elem(), "ISTHMUS_CONTROL", "control")
	walk(reflect.ValueOf(&c.PFCP).Elem(), "ISTHMUS_PFCP", "pfcp")
	for _, name := range slices.Sorted(maps.Keys(given)) { // override has taken the known ones out
		d.fail(0, "environment "+name, "no such setting%s", suggest(name, known))
	}
}

func (d *decoder) override(v reflect.Value, prefix string, path []string, given map[string]string,
	known []string) []string {
	for i := range v.NumField() {
		field, tag := v.Field(i), v.Type().Field(i).Tag
		key := tag.Get("yaml")
		if key == "" || key == "-" {
			continue
		}
		name, at := prefix+"_"+strings.ToUpper(key), append(slices.Clone(path), key)
		if _, scalar := field.Addr().Interface().(encoding.TextUnmarshaler); !scalar {
			switch field.Kind() {
			case reflect.Struct:
				known = d.override(field, name, at, given, known)
				continue
			case reflect.Slice, reflect.Array, reflect.Map:
				continue
			}
		}
		known = append(known, name)
		if value, ok := given[name]; ok {
			delete(given, name)
			d.settings = append(d.settings, setting{at, value})
			d.value(&yaml.Node{Kind: yaml.ScalarNode, Value: value}, field, "environment "+name, tag)
		}
	}
	return known
}
