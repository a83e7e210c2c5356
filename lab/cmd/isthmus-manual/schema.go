// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// key is what the page says of a part of the JSON Schema.
type key struct {
	Description          string         `json:"description"`
	Properties           map[string]key `json:"properties"`
	Items                *key           `json:"items"`
	AdditionalProperties any            `json:"additionalProperties"`
	Required             []string       `json:"required"`
	Enum                 []any          `json:"enum"`
	Default              any            `json:"default"`
	Minimum              *float64       `json:"minimum"`
	Maximum              *float64       `json:"maximum"`
	MaxLength            *int           `json:"maxLength"`
}

// schemaPage is isthmus.yaml(5): each key of the configuration with what it means, its values and its preset.
func schemaPage(e edition, schema []byte) []byte {
	var root key
	if err := json.Unmarshal(schema, &root); err != nil {
		panic(err) // the schema is our own
	}
	p := newPage(e, "isthmus.yaml", "5", "configuration of Isthmus")
	p.heading("DESCRIPTION")
	p.prose("The configuration is a YAML file, which isthmus run reads. " +
		"A key that is not named here is refused, with its line.\n\n" +
		"isthmus config check says whether a file would be accepted.")
	p.heading("KEYS")
	p.keys("", root)
	p.heading("EXAMPLES")
	p.line(".Bd -literal\nports:\n  \\- {name: n3, driver: pci, device: \"0000:01:01.0\", role: core}\n.Ed")
	p.heading("SEE ALSO")
	p.line(".Xr isthmus 1 ,\n.Xr isthmus-config 1 ,\n.Xr isthmus-run 1")
	return p.Bytes()
}

func (p *page) keys(path string, k key) {
	names := slices.Sorted(maps.Keys(k.Properties))
	if len(names) == 0 {
		return
	}
	p.line(".Bl -tag -width Ds")
	for _, name := range names {
		child := k.Properties[name]
		full := path + name
		p.line(".It Cm %s", escape(full))
		if child.Description != "" {
			p.text(child.Description)
		}
		p.text(limits(child, slices.Contains(k.Required, name)))
		next, mark := child, "."
		if child.Items != nil {
			next, mark = *child.Items, "[]."
		}
		p.keys(full+mark, next)
	}
	p.line(".El")
}

// limits is what values a key takes.
func limits(k key, required bool) string {
	var words []string
	if required {
		words = append(words, "required")
	}
	if len(k.Enum) > 0 {
		words = append(words, "one of "+strings.ReplaceAll(strings.Trim(fmt.Sprint(k.Enum), "[]"), " ", ", "))
	}
	if k.Minimum != nil && k.Maximum != nil {
		words = append(words, fmt.Sprintf("%.0f to %.0f", *k.Minimum, *k.Maximum))
	}
	if k.Default != nil {
		words = append(words, fmt.Sprintf("default %v", k.Default))
	}
	if len(words) == 0 {
		return ""
	}
	return "(" + strings.Join(words, "; ") + ")"
}
