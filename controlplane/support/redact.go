// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// removed stands in a secret's place.
const removed = "REMOVED"

// A key is a secret's when one of its words is in the first list, or its last word in the second.
var (
	secretWords = []string{"password", "passwd", "passphrase", "secret", "secrets", "token", "tokens", "credential",
		"credentials", "psk", "authorization", "imsi", "msisdn", "nai"}
	secretEnds = []string{"key", "keys", "user", "community"}

	wordBreak  = regexp.MustCompile(`[_\-. ]+|([a-z])([A-Z])`)
	inURL      = regexp.MustCompile(`(://)[^/@\s"']+@`)
	bearer     = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}`)
	assignment = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)"?(\s*[=:]\s*)("(?:[^"\\]|\\.)*"|[^\s",;}]+)`)
)

// secretKey tells by its name that a key's value is a secret.
func secretKey(name string) bool {
	words := strings.Fields(strings.ToLower(wordBreak.ReplaceAllString(name, "$1 $2")))
	if len(words) == 0 {
		return false
	}
	isSecret := func(w string) bool { return slices.Contains(secretWords, w) }
	return slices.ContainsFunc(words, isSecret) || slices.Contains(secretEnds, words[len(words)-1])
}

// Text removes what looks like secrets from lines of a log: the values of keys with a secret's name, tokens,
// passwords in URLs.
func Text(text []byte) []byte {
	text = inURL.ReplaceAll(text, []byte("${1}"+removed+"@"))
	text = bearer.ReplaceAll(text, []byte("${1} "+removed))
	return assignment.ReplaceAllFunc(text, func(found []byte) []byte {
		part := assignment.FindSubmatch(found)
		if !secretKey(string(part[1])) {
			return found
		}
		return append(found[:len(found)-len(part[3]):len(found)-len(part[3])], removed...)
	})
}

// Config removes secrets from a configuration: fields of the struct with the tag `secret:"true"`, keys with a secret's
// name wherever they are, passwords in URLs, all comments.
func Config(text []byte, of reflect.Type) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("left out, for it cannot be read, nor secrets be found in it: %w", err)
	}
	if len(root.Content) == 0 {
		return nil, nil
	}
	redactNode(root.Content[0], of, false)
	root.HeadComment, root.FootComment = "", ""
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// redactNode removes secrets below a node that stands for a value of type t; nil: of no known type.
func redactNode(n *yaml.Node, t reflect.Type, secret bool) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if secret && n.Tag != "!!null" && n.Value != "" {
			*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: removed}
			return
		}
		n.Value = inURL.ReplaceAllString(n.Value, "${1}"+removed+"@")
	case yaml.SequenceNode:
		for _, child := range n.Content {
			redactNode(child, elem(t), secret)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			key.HeadComment, key.LineComment, key.FootComment = "", "", ""
			childType, tagged := field(t, key.Value)
			redactNode(n.Content[i+1], childType, secret || tagged || secretKey(key.Value))
		}
	}
}

func elem(t reflect.Type) reflect.Type {
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map) {
		return t.Elem()
	}
	return nil
}

// field finds a key's type among a struct's fields, and whether the field has the tag.
func field(t reflect.Type, key string) (reflect.Type, bool) {
	if t == nil || t.Kind() != reflect.Struct {
		return elem(t), false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name == key {
			return f.Type, f.Tag.Get("secret") == "true"
		}
	}
	return nil, false
}

// JSON removes values of keys with a secret's name, and passwords in URLs.
func JSON(data []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, fmt.Errorf("left out, for it is no JSON: %w", err)
	}
	return json.MarshalIndent(redactValue(v, false), "", " ")
}

func redactValue(v any, secret bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			v[key] = redactValue(child, secret || secretKey(key))
		}
	case []any:
		for i := range v {
			v[i] = redactValue(v[i], secret)
		}
	case string:
		if secret && v != "" {
			return removed
		}
		return inURL.ReplaceAllString(v, "${1}"+removed+"@")
	}
	return v
}
