// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Secret is a word that nothing prints: neither logs nor show.
type Secret string

// Hidden stands for a secret in texts that are shown. A file that has it is refused.
const Hidden = "(hidden)"

// String hides it, and so does every format of package fmt.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return Hidden
}

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides it from JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Load returns a secret, of its file where it has one.
func Load(secret Secret, file string) ([]byte, error) {
	if file == "" {
		return []byte(secret), nil
	}
	b, err := ReadFile(file)
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	line = strings.TrimRight(line, "\r")
	if line == "" || len(line) > 128 {
		return nil, fmt.Errorf("%s: the first line has %d bytes, not 1 to 128", file, len(line))
	}
	return []byte(line), nil
}

// given refuses what stands for a secret: who applied a text that was shown would lock everybody out.
func (k *checker) given(at At, key string, s Secret) {
	if s == Hidden && !k.shown {
		k.fail(at, key, "is what we show in place of a secret; give the secret")
	}
}

// ParseShown is Parse of a text that Shown made: without its secrets.
func ParseShown(file string, data []byte) (*Config, error) {
	return parse(file, data, nil, &checker{shown: true})
}

// Shown is a good file's text with Hidden in the place of secrets; where it has none, as it is.
func Shown(text []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if len(root.Content) == 0 || hide(root.Content[0], reflect.TypeFor[Config]()) == 0 {
		return text, nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := encoder.Encode(&root)
	return out.Bytes(), err
}

// hide replaces the secrets below a node of type t, and counts them.
func hide(n *yaml.Node, t reflect.Type) (found int) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case t == reflect.TypeFor[Secret]():
		if isNull(n) || n.Value == "" {
			return 0
		}
		*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: Hidden, Anchor: n.Anchor}
		return 1
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for _, one := range n.Content {
			found += hide(one, t.Elem())
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Slice: // a list written as its only element
		return hide(n, t.Elem())
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		_, index := keys(t)
		for i := 0; i+1 < len(n.Content); i += 2 {
			if at, ok := index[n.Content[i].Value]; ok {
				found += hide(n.Content[i+1], t.Field(at).Type)
			}
		}
	}
	return found
}
