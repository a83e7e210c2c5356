// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// key is a part of the JSON Schema on the page.
type key struct {
	Description          string         `json:"description"`
	Properties           map[string]key `json:"properties"`
	Items                *key           `json:"items"`
	AdditionalProperties any            `json:"additionalProperties"`
	Required             []string       `json:"required"`
	Enum                 []any          `json:"enum"`
	Type                 any            `json:"type"`
	Pattern              string         `json:"pattern"`
	OneOf                []key          `json:"oneOf"`
	AnyOf                []key          `json:"anyOf"`
	Ref                  string         `json:"$ref"`
	Default              any            `json:"default"`
	Minimum              json.Number    `json:"minimum"`
	Maximum              json.Number    `json:"maximum"`
	MinItems             json.Number    `json:"minItems"`
	MaxItems             json.Number    `json:"maxItems"`
	MaxLength            *int           `json:"maxLength"`
}

// UnmarshalJSON leaves out that a reference to the environment may stand in place of each value.
func (k *key) UnmarshalJSON(data []byte) error {
	type plain key
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode((*plain)(k)); err != nil {
		return err
	}
	if last := len(k.AnyOf) - 1; last >= 0 && k.AnyOf[last].Ref != "" {
		k.AnyOf = k.AnyOf[:last]
	}
	if len(k.AnyOf) > 1 && k.AnyOf[0].Items != nil { // a list, or a word
		k.Items = k.AnyOf[0].Items
	}
	if len(k.AnyOf) != 1 {
		return nil
	}
	value := k.AnyOf[0]
	value.Description, value.Default = k.Description, k.Default
	*k = value
	return nil
}

// schemaPage is isthmus.yaml(5): each key of the configuration with what it means, its values and its preset.
func schemaPage(e edition, schema []byte) []byte {
	var root key
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
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

// limits describes a key's values; of a list also the number and kind of its members.
func limits(k key, required bool) string {
	var words []string
	if required {
		words = append(words, "required")
	}
	words = append(words, between(k.MinItems, k.MaxItems, " of them")...)
	words = append(words, k.values()...)
	if k.Items != nil {
		words = append(words, k.Items.values()...)
	}
	if k.Default != nil {
		words = append(words, fmt.Sprintf("default %v", k.Default))
	}
	if len(words) == 0 {
		return ""
	}
	return "(" + strings.Join(words, "; ") + ")"
}

// values are those of a key, or of each member of its list.
func (k *key) values() []string {
	var words []string
	if len(k.Enum) > 0 {
		words = append(words, "one of "+strings.ReplaceAll(strings.Trim(fmt.Sprint(k.Enum), "[]"), " ", ", "))
	}
	words = append(words, between(k.Minimum, k.Maximum, "")...)
	for i := range k.AnyOf { // a number, or a range as text
		words = append(words, k.AnyOf[i].values()...)
	}
	return words
}

func between(least, most json.Number, what string) []string {
	switch {
	case least != "" && most != "" && least == most:
		return []string{string(most) + what}
	case least != "" && most != "":
		return []string{fmt.Sprintf("%s to %s%s", least, most, what)}
	case most != "":
		return []string{fmt.Sprintf("at most %s%s", most, what)}
	case least != "":
		return []string{fmt.Sprintf("at least %s%s", least, what)}
	}
	return nil
}
