// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// SchemaID names the schema. It is no address: `isthmus config schema` prints what it names.
const SchemaID = "urn:isthmus:config:1"

// Schema is the JSON Schema (draft 2020-12) of the file, for editors; made from the same tags as the decoder.
func Schema() ([]byte, error) {
	root := structSchema(reflect.TypeFor[Config]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = SchemaID
	root["title"] = "Isthmus configuration"
	root["$defs"] = map[string]any{"reference": map[string]any{"type": "string",
		"pattern": `\$\{[A-Za-z_][A-Za-z0-9_]*(\[[0-9]+\])?(:-[^{}]*)?\}`}}
	out, err := json.MarshalIndent(root, "", "  ")
	return append(out, '\n'), err
}

type schemer interface{ schema() map[string]any }

// reference is a text that names a variable of the environment, in place of any value (expand.go).
const reference = "#/$defs/reference"

// orReference allows it beside a value. A text without a form may have it anyhow.
func orReference(s map[string]any) map[string]any {
	if len(s) == 1 && s["type"] == "string" {
		return s
	}
	ref := map[string]any{"$ref": reference}
	if list, ok := s["anyOf"].([]any); ok && len(s) == 1 {
		return map[string]any{"anyOf": append(slices.Clone(list), ref)}
	}
	return map[string]any{"anyOf": []any{s, ref}}
}

func structSchema(t reflect.Type) map[string]any {
	v := defaults(t)
	properties, required := map[string]any{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("yaml")
		if key == "" || key == "-" {
			continue
		}
		s := valueSchema(f.Type, f.Tag)
		if doc := f.Tag.Get("doc"); doc != "" {
			s["description"] = doc
		}
		if def, ok := defaultOf(v.Field(i), f.Tag); ok {
			s["default"] = def
		}
		if f.Tag.Get("req") == "true" {
			required = append(required, key)
		}
		properties[key] = s
	}
	out := map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["type"], out["required"] = "object", required
	}
	return out
}

func valueSchema(t reflect.Type, tag reflect.StructTag) map[string]any {
	if s, ok := reflect.Zero(t).Interface().(schemer); ok {
		out := s.schema()
		if tag.Get("length") == "given" {
			out = textLike(`^[0-9A-Fa-f:.]+/[0-9]{1,3}$`)
		}
		for key, word := range map[string]string{"min": "minimum", "max": "maximum"} {
			if bound, err := strconv.ParseInt(tag.Get(key), 10, 64); err == nil {
				out[word] = bound
			}
		}
		return orReference(out)
	}
	switch t.Kind() {
	case reflect.Struct:
		return structSchema(t)
	case reflect.Slice:
		return listSchema(t, tag)
	case reflect.Array:
		return map[string]any{"type": "array", "items": valueSchema(t.Elem(), tag),
			"minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": false,
			"patternProperties": map[string]any{"^([0-9]|[1-5][0-9]|6[0-3])$": valueSchema(t.Elem(), tag)}}
	case reflect.Bool:
		return orReference(map[string]any{"type": "boolean"})
	case reflect.String:
		s := map[string]any{"type": "string"}
		if enum := tag.Get("enum"); enum != "" {
			s["enum"] = strings.Split(enum, "|")
		}
		if limit, err := strconv.Atoi(tag.Get("max")); err == nil {
			s["maxLength"] = limit
		}
		return orReference(s)
	}
	low, high := bounds(t, tag)
	return orReference(map[string]any{"type": "integer", "minimum": low, "maximum": high})
}

func listSchema(t reflect.Type, tag reflect.StructTag) map[string]any {
	items := valueSchema(t.Elem(), tag)
	list := map[string]any{"type": []string{"array", "null"}, "items": items}
	if limit, err := strconv.Atoi(tag.Get("maxlen")); err == nil {
		list["maxItems"] = limit
	}
	if tag.Get("req") == "true" {
		list["type"], list["minItems"] = "array", 1
	}
	if word := tag.Get("word"); word != "" {
		return orReference(map[string]any{"anyOf": []any{list, map[string]any{"enum": []string{word}}}})
	}
	if tag.Get("one") == "true" {
		list["type"] = "array"
		return map[string]any{"oneOf": []any{list, items}}
	}
	return list
}

// defaultOf is a field's value, as the file has it, where it is a plain value and not zero.
func defaultOf(v reflect.Value, tag reflect.StructTag) (any, bool) {
	if v.IsZero() {
		return nil, false
	}
	if v.CanInt() {
		return v.Int() / unit(v.Type(), tag), true
	}
	if s, ok := v.Interface().(fmt.Stringer); ok {
		return s.String(), true
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Map:
		return nil, false
	}
	return v.Interface(), true
}
