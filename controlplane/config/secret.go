// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"regexp"
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
	return parse(file, data, &checker{shown: true})
}

// Shown is a good file's text with Hidden in the place of secrets, and without comments, which may be former ones. A
// secret that only names variables of the environment stays.
func Shown(text []byte) ([]byte, error) { return eachPart(text, (&hider{}).text) }

// Redacted is a text, good or not, without secrets, comments, names of users, whose place name's take, and what is at
// unknown keys. Passwords are removed from URLs.
func Redacted(text []byte, name func(string) string) ([]byte, error) {
	return eachPart(text, (&hider{name: name}).text)
}

// removed replaces values that may be secrets.
const removed = "REMOVED"

var inURL = regexp.MustCompile(`(://)[^/@\s"']+@`)

// hider hides, and notes whether it did.
type hider struct {
	name func(string) string // nil: secrets alone are hidden
	seen map[hidden]bool
	some bool
	all  bool // also secrets that name variables alone
}

// hidden is a node that was looked at as a value of a type: aliases repeat them.
type hidden struct {
	node    *yaml.Node
	of      reflect.Type
	private bool
}

func (h *hider) text(text []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	h.seen, h.some = map[hidden]bool{}, false
	if len(root.Content) == 0 {
		return nil, nil
	}
	h.hide(root.Content[0], reflect.TypeFor[Config](), false)
	if h.name == nil && !h.some && !bytes.Contains(text, []byte("#")) { // the parser does not find all comments
		return text, nil
	}
	uncomment(&root)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := encoder.Encode(&root)
	return out.Bytes(), err
}

func uncomment(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, one := range n.Content {
		uncomment(one)
	}
}

func (h *hider) put(n *yaml.Node, value string) {
	h.some = true
	*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Anchor: n.Anchor}
}

// hide replaces what is to be hidden below a node of type t.
func (h *hider) hide(n *yaml.Node, t reflect.Type, private bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	at := hidden{n, t, private}
	if h.seen[at] {
		return
	}
	h.seen[at] = true
	_, scalar := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	scalar = scalar || t.Kind() != reflect.Struct && t.Kind() != reflect.Slice && t.Kind() != reflect.Array &&
		t.Kind() != reflect.Map
	switch {
	case isNull(n) || n.Kind == yaml.ScalarNode && n.Value == "":
	case t == reflect.TypeFor[Secret]() && !h.all && n.Kind == yaml.ScalarNode && alone(n.Value):
	case t == reflect.TypeFor[Secret]():
		h.put(n, Hidden)
	case h.name == nil && n.Kind == yaml.ScalarNode:
	case n.Kind == yaml.ScalarNode && scalar && private:
		h.put(n, h.name(n.Value))
	case n.Kind == yaml.ScalarNode && scalar:
		n.Value = inURL.ReplaceAllString(n.Value, "${1}"+removed+"@")
	case n.Kind == yaml.SequenceNode && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		for _, one := range n.Content {
			h.hide(one, t.Elem(), private)
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Slice: // a list written as its only element
		h.hide(n, t.Elem(), private)
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Map:
		for i := 0; i+1 < len(n.Content); i += 2 {
			h.hide(n.Content[i+1], t.Elem(), private)
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct && !scalar:
		h.keys(n, t)
	default:
		h.unknown(n)
	}
}

func (h *hider) keys(n *yaml.Node, t reflect.Type) {
	_, index := keys(t)
	for i := 0; i+1 < len(n.Content); i += 2 {
		at, known := index[n.Content[i].Value]
		if !known {
			h.unknown(n.Content[i])
			h.unknown(n.Content[i+1])
			continue
		}
		f := t.Field(at)
		h.hide(n.Content[i+1], f.Type, f.Tag.Get("private") == "true")
	}
}

func (h *hider) unknown(n *yaml.Node) {
	if h.name != nil {
		h.put(n, removed)
	}
}
