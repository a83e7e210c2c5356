// SPDX-License-Identifier: Apache-2.0

// Package openapi makes the OpenAPI 3.1 document of the API from the operations and the Go types of their answers, so
// that it agrees with the program.
package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Parameter is one of the query.
type Parameter struct {
	Name, Text string
	Type       string   // JSON Schema's: string, integer, boolean
	Many       bool     // it may be there several times
	Names      []string // instead of Type: any of these are names of parameters of their own
	Required   bool
}

// Operation is one request.
type Operation struct {
	Method, Path string // Path without parameters
	ID           string // a name for programs
	Summary      string
	Role         string // that it needs; empty: none
	Query        []Parameter
	Body         any    // a value of the type of the body; nil: none
	BodyMedia    string // instead, where it is not JSON
	Answer       any    // a value of the type of the answer, or its reflect.Type
	Media        string // instead, where it is not JSON
	Headers      map[string]string
}

type object = map[string]any

// Document makes the document. failure is a value of the type of all answers that are not 200.
func Document(title, version string, operations []Operation, failure any) ([]byte, error) {
	g := generator{schemas: object{}, types: map[string]reflect.Type{}}
	bad := object{"description": "Refused or failed; the reason in words.",
		"content": content("", g.schema(typeOf(failure)))}
	paths := object{}
	for i := range operations {
		o := &operations[i]
		item, _ := paths[o.Path].(object)
		if item == nil {
			item = object{}
			paths[o.Path] = item
		}
		item[strings.ToLower(o.Method)] = g.operation(o, bad)
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{"title": title, "version": version,
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"paths": paths,
		"components": object{"schemas": g.schemas, "securitySchemes": object{
			"token":  object{"type": "http", "scheme": "bearer"},
			"cookie": object{"type": "apiKey", "in": "cookie", "name": "isthmus"}}},
	}
	if g.err != nil {
		return nil, g.err
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	return append(out, '\n'), err
}

func typeOf(v any) reflect.Type {
	if t, ok := v.(reflect.Type); ok {
		return t
	}
	return reflect.TypeOf(v)
}

func content(media string, schema object) object {
	if media == "" {
		media = "application/json"
	}
	return object{media: object{"schema": schema}}
}

type generator struct {
	schemas object
	types   map[string]reflect.Type // by the name of a schema
	err     error
}

func (g *generator) operation(o *Operation, bad object) object {
	good := object{"description": "Done."}
	switch {
	case o.Media != "":
		good["content"] = content(o.Media, object{"type": "string"})
	case o.Answer != nil:
		t := typeOf(o.Answer)
		s := g.schema(t)
		if t.Kind() == reflect.Slice {
			s = object{"type": "array", "items": g.schema(t.Elem())} // never null at the top
		}
		good["content"] = content("", s)
	}
	if len(o.Headers) > 0 {
		headers := object{}
		for name, text := range o.Headers {
			headers[name] = object{"description": text, "schema": object{"type": "string"}}
		}
		good["headers"] = headers
	}
	out := object{"operationId": o.ID, "summary": o.Summary, "responses": object{"200": good, "default": bad}}
	if o.Role != "" {
		out["description"] = "Role: " + o.Role + "."
		out["security"] = []any{object{"token": []string{}}, object{"cookie": []string{}}}
	}
	parameters := []any{}
	for _, p := range o.Query {
		schema := object{"type": p.Type}
		if len(p.Names) > 0 { // each property is a parameter (style form, explode)
			schema = object{"type": "object", "propertyNames": object{"enum": p.Names},
				"additionalProperties": object{"type": "string"}}
		}
		if p.Many {
			schema = object{"type": "array", "items": schema}
		}
		parameter := object{"name": p.Name, "in": "query", "description": p.Text, "schema": schema}
		if p.Required {
			parameter["required"] = true
		}
		parameters = append(parameters, parameter)
	}
	if len(parameters) > 0 {
		out["parameters"] = parameters
	}
	switch {
	case o.BodyMedia != "":
		out["requestBody"] = object{"content": content(o.BodyMedia, object{"type": "string"})}
	case o.Body != nil:
		out["requestBody"] = object{"content": content("", g.schema(typeOf(o.Body)))}
	}
	return out
}

// schema is what encoding/json makes of a type.
func (g *generator) schema(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return nullable(g.schema(t.Elem()))
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return object{"type": "integer", "minimum": 0}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		return object{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": []string{"string", "null"}, "contentEncoding": "base64"}
		}
		return object{"type": []string{"array", "null"}, "items": g.schema(t.Elem())}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": g.schema(t.Elem())}
	case reflect.Interface:
		return object{} // anything
	case reflect.Struct:
		return g.reference(t)
	}
	g.err = fmt.Errorf("openapi: no schema for %v", t)
	return object{}
}

func nullable(s object) object {
	if kind, ok := s["type"].(string); ok {
		s["type"] = []string{kind, "null"}
		return s
	}
	return object{"anyOf": []any{s, object{"type": "null"}}}
}

// reference makes a struct's schema once, under its name; equal names of two packages are prefixed by the package.
func (g *generator) reference(t reflect.Type) object {
	name := t.Name()
	if other := g.types[name]; other != nil && other != t {
		at := strings.LastIndexByte(t.PkgPath(), '/')
		name = t.PkgPath()[at+1:] + "." + name
	}
	ref := object{"$ref": "#/components/schemas/" + name}
	if g.types[name] != nil {
		return ref
	}
	g.types[name] = t
	properties, required := object{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" {
			g.err = fmt.Errorf("openapi: %v has no name for %s", t, f.Name)
			continue
		}
		properties[key] = g.schema(f.Type)
		if !strings.Contains(options, "omit") {
			required = append(required, key)
		}
	}
	slices.Sort(required)
	g.schemas[name] = object{"type": "object", "properties": properties, "required": required,
		"additionalProperties": false}
	return ref
}
