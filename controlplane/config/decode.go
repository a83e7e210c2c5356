// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	maxFile  = 8 << 20 // bytes
	maxNodes = 6 << 20 // values visited, aliases followed: bounds what an alias bomb can cost
)

// At remembers where a section stood in the file, for errors that are found after decoding. Zero once it was checked.
type At struct {
	node *yaml.Node
	path string
}

// find returns a key of the section, nil when it is absent.
func (a At) find(key string) *yaml.Node {
	if a.node != nil && a.node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(a.node.Content); i += 2 {
			if a.node.Content[i].Value == key {
				return a.node.Content[i]
			}
		}
	}
	return nil
}

// Line of a key of the section, or of the section itself when the key is absent (or "").
func (a At) Line(key string) Line {
	if n := cmp.Or(a.find(key), a.node); n != nil {
		return Line(n.Line)
	}
	return 0
}

// Has: the file gave the key.
func (a At) Has(key string) bool { return a.find(key) != nil }

// Path of a key of the section: "subscribers[3].mac".
func (a At) Path(key string) string { return join(a.path, key) }

// decoder turns the YAML tree into the structs of config.go by their tags:
//
//	yaml  the key                 req   "true": must be given; a list, with an element
//	enum  the words allowed       min, max  bounds of a number
//	one   "true": a list that may be written as its only element
//	word  what a list of numbers may be instead
//	with  the key without which this one has no use
//	private  "true": names a user, or a user's line
//	file  "true": names a file that is read (Named)
//	default  what stands for an absent key, as the file would have it
//	unit  "ms" of a duration; else the file has seconds
type decoder struct {
	file   string
	errs   Errors
	nodes  int
	depth  int
	failed bool // gave up: too many nodes
	closed bool // the file is not of who reads the errors: they quote nothing of it

	settings []setting // that the environment overrode
}

func (d *decoder) fail(line int, path, format string, args ...any) {
	if d.closed {
		format, args = withoutValues(format), nil
	}
	d.errs.say(d.file, Line(line), path, format, args)
}

// tree parses the text into its one document's root, or reports why not.
func (d *decoder) tree(data []byte) *yaml.Node {
	if len(data) > maxFile {
		d.fail(0, "", "%d bytes are more than a configuration may have (%d)", len(data), maxFile)
		return nil
	}
	return Document(data, func(line int, format string, args ...any) { d.fail(line, "", format, args...) })
}

// enter follows an alias and keeps the two budgets: values visited and depth.
func (d *decoder) enter(n *yaml.Node, path string) (*yaml.Node, bool) {
	if d.failed {
		return nil, false
	}
	d.nodes++
	if d.nodes > maxNodes || d.depth > 32 {
		d.fail(n.Line, path, "too large: aliases repeat too much")
		d.failed = true
		return nil, false
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n, n != nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if isNull(n) {
		return "nothing"
	}
	return fmt.Sprintf("%q", clip(n.Value))
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	n, ok := d.enter(n, path)
	if !ok {
		return
	}
	d.depth++
	defer func() { d.depth-- }()
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.Kind != yaml.ScalarNode || isNull(n) {
			d.fail(n.Line, path, "needs one value, found %s", kindName(n))
		} else if err := t.UnmarshalText([]byte(n.Value)); err != nil {
			d.fail(n.Line, path, "%s", err)
		} else if tag.Get("length") == "given" && !strings.Contains(n.Value, "/") {
			d.fail(n.Line, path, "%s has no prefix length; %s/%d is this address alone", n.Value, n.Value,
				reflect.Indirect(v).Interface().(Prefix).Bits())
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.list(n, v, path, tag)
	case reflect.Array:
		d.array(n, v, path, tag)
	case reflect.Map:
		d.table(n, v, path, tag)
	default:
		d.scalar(n, v, path, tag)
	}
}

// keys lists a struct's fields by key.
func keys(t reflect.Type) (names []string, index map[string]int) {
	index = make(map[string]int, t.NumField())
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("yaml"); key != "" && key != "-" {
			names = append(names, key)
			index[key] = i
		}
	}
	return names, index
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	v.Set(defaults(v.Type()))
	v.FieldByName("At").Set(reflect.ValueOf(At{n, path}))
	if n.Kind != yaml.MappingNode {
		if !isNull(n) {
			d.fail(n.Line, path, "needs a mapping of keys to values, found %s", kindName(n))
			return
		}
		n = &yaml.Node{Kind: yaml.MappingNode, Line: n.Line} // "engine:" with nothing below: all defaults
	}
	names, index := keys(v.Type())
	seen := make(map[string]Line, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !d.failed; i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		unknown := join(path, clip(key.Value))
		if d.closed {
			unknown = path
		}
		if first, twice := seen[key.Value]; twice {
			d.fail(key.Line, unknown, "given twice, first in line %d", first)
			continue
		}
		seen[key.Value] = Line(key.Line)
		at, known := index[key.Value]
		if !known || key.Kind != yaml.ScalarNode {
			d.fail(key.Line, unknown, "unknown key%s", suggest(key.Value, names))
			continue
		}
		d.value(val, v.Field(at), join(path, key.Value), v.Type().Field(at).Tag)
	}
	for _, name := range names {
		if _, given := seen[name]; !given && v.Type().Field(index[name]).Tag.Get("req") == "true" {
			d.fail(n.Line, join(path, name), "missing")
		}
	}
	for _, name := range names {
		with := v.Type().Field(index[name]).Tag.Get("with")
		if with != "" && given(v.Field(index[name])) && !given(v.Field(index[with])) {
			d.fail(int(seen[name]), join(path, name), "given without %s", with)
		}
	}
}

var defaultSections sync.Map // reflect.Type -> reflect.Value

// defaults is a section as it is when the file leaves everything out.
func defaults(t reflect.Type) reflect.Value {
	if v, ok := defaultSections.Load(t); ok {
		return v.(reflect.Value)
	}
	section := reflect.New(t).Elem()
	for i := range t.NumField() {
		f := t.Field(i)
		text, given := f.Tag.Lookup("default")
		_, scalar := reflect.New(f.Type).Interface().(encoding.TextUnmarshaler)
		switch {
		case given:
			var doc yaml.Node
			d := decoder{file: "default"}
			if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
				panic(err) // the tags are constants; the schema's test reads them all
			}
			if d.value(doc.Content[0], section.Field(i), f.Name, f.Tag); d.errs.result() != nil {
				panic(d.errs.result())
			}
		case f.Type.Kind() == reflect.Struct && f.Tag.Get("yaml") != "" && f.Tag.Get("yaml") != "-" && !scalar:
			section.Field(i).Set(defaults(f.Type))
		}
	}
	defaultSections.Store(t, section)
	return section
}

// Default is a section of which the file says nothing.
func Default[T any]() *T {
	section := defaults(reflect.TypeFor[T]()).Interface().(T)
	return &section
}

// given: a value differs from its type's "none".
func given(v reflect.Value) bool {
	if v.Kind() == reflect.Slice {
		return v.Len() > 0
	}
	return !v.IsZero()
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	if key == "" {
		return path
	}
	return path + "." + key
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	content := n.Content
	switch {
	case tag.Get("req") == "true" && (isNull(n) || n.Kind == yaml.SequenceNode && len(content) == 0):
		d.fail(n.Line, path, "missing: the list is empty")
		return
	case isNull(n):
		return
	case n.Kind == yaml.MappingNode && tag.Get("one") == "true":
		content = []*yaml.Node{n}
	case n.Kind == yaml.ScalarNode && n.Value != "" && n.Value == tag.Get("word"):
		v.Set(reflect.ValueOf([]int{wordGiven}))
		return
	case n.Kind != yaml.SequenceNode && tag.Get("word") != "":
		d.fail(n.Line, path, "needs a list, or the word %s, found %s", tag.Get("word"), kindName(n))
		return
	case n.Kind != yaml.SequenceNode:
		d.fail(n.Line, path, "needs a list, found %s", kindName(n))
		return
	}
	if limit, err := strconv.Atoi(tag.Get("maxlen")); err == nil && len(content) > limit {
		d.fail(n.Line, path, "%d entries, at most %d", len(content), limit)
		return
	}
	if d.nodes+len(content) > maxNodes { // before the memory is taken: an alias may repeat a long list
		d.fail(n.Line, path, "too large: aliases repeat too much")
		d.failed = true
		return
	}
	out := reflect.MakeSlice(v.Type(), len(content), len(content))
	for i, one := range content {
		if d.failed {
			return
		}
		d.value(one, out.Index(i), path+"["+strconv.Itoa(i)+"]", tag)
	}
	v.Set(out)
}

func (d *decoder) array(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != v.Len() {
		d.fail(n.Line, path, "needs a list of exactly %d values", v.Len())
		return
	}
	for i, one := range n.Content {
		d.value(one, v.Index(i), path+"["+strconv.Itoa(i)+"]", tag)
	}
}

// table decodes a map from small numbers (0 to 63: DSCP, QFI).
func (d *decoder) table(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fail(n.Line, path, "needs a mapping of keys to values, found %s", kindName(n))
		return
	}
	out := reflect.MakeMap(v.Type())
	for i := 0; i+1 < len(n.Content) && !d.failed; i += 2 {
		key, at := n.Content[i], join(path, clip(n.Content[i].Value))
		number, err := strconv.ParseUint(key.Value, 10, 8)
		if err != nil || number > 63 || key.Kind != yaml.ScalarNode {
			d.fail(key.Line, at, "the key must be a number from 0 to 63")
			continue
		}
		k := reflect.ValueOf(number).Convert(v.Type().Key())
		if out.MapIndex(k).IsValid() {
			d.fail(key.Line, at, "given twice")
			continue
		}
		one := reflect.New(v.Type().Elem()).Elem()
		d.value(n.Content[i+1], one, at, tag)
		out.SetMapIndex(k, one)
	}
	v.Set(out)
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		d.fail(n.Line, path, "needs one value, found %s", kindName(n))
		return
	}
	switch {
	case v.Kind() == reflect.String:
		if enum := tag.Get("enum"); enum != "" {
			words := strings.Split(enum, "|")
			if !slices.Contains(words, n.Value) {
				d.fail(n.Line, path, "%q is none of %s%s", clip(n.Value), strings.Join(words, ", "),
					suggest(n.Value, words))
				return
			}
		}
		if limit, err := strconv.Atoi(tag.Get("max")); err == nil && len(n.Value) > limit {
			d.fail(n.Line, path, "longer than %d bytes", limit)
			return
		}
		if strings.IndexByte(n.Value, 0) >= 0 {
			d.fail(n.Line, path, "holds a NUL")
			return
		}
		v.SetString(n.Value)
	case v.Kind() == reflect.Bool:
		if n.Value != "true" && n.Value != "false" {
			d.fail(n.Line, path, "needs true or false, found %s", kindName(n))
			return
		}
		v.SetBool(n.Value == "true")
	default:
		d.number(n, v, path, tag)
	}
}

func (d *decoder) number(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	text, base := n.Value, 10
	if t, ok := strings.CutPrefix(text, "0x"); ok {
		text, base = t, 16
	}
	number, err := strconv.ParseInt(text, base, 64)
	if err != nil {
		d.fail(n.Line, path, "needs a whole number, found %s", kindName(n))
		return
	}
	low, high := bounds(v.Type(), tag)
	if number < low || number > high {
		d.fail(n.Line, path, "%d is not between %d and %d", number, low, high)
		return
	}
	if v.CanInt() {
		v.SetInt(number * unit(v.Type(), tag))
	} else {
		v.SetUint(uint64(number))
	}
}

// unit is what a number of the file counts.
func unit(t reflect.Type, tag reflect.StructTag) int64 {
	switch {
	case t != reflect.TypeFor[time.Duration]():
		return 1
	case tag.Get("unit") == "ms":
		return int64(time.Millisecond)
	}
	return int64(time.Second)
}

// bounds of a number, as the file has it: its tag's, else its type's.
func bounds(t reflect.Type, tag reflect.StructTag) (low, high int64) {
	switch t.Kind() {
	case reflect.Uint8:
		high = 1<<8 - 1
	case reflect.Uint16:
		high = 1<<16 - 1
	case reflect.Uint32, reflect.Int64: // time.Duration
		high = 1<<32 - 1
	case reflect.Int, reflect.Int32:
		low, high = -1<<31, 1<<31-1
	default:
		high = 1<<63 - 1
	}
	if v, err := strconv.ParseInt(tag.Get("min"), 0, 64); err == nil {
		low = v
	}
	if v, err := strconv.ParseInt(tag.Get("max"), 0, 64); err == nil {
		high = v
	}
	return low, high
}

func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() > 0 && t.Field(0).Type == reflect.TypeFor[At]()
}

// forget drops where sections stood, and the text's tree with that: sections that say the same are equal.
func forget(v reflect.Value) {
	switch t := v.Type(); {
	case t == reflect.TypeFor[At]():
		v.SetZero()
	case isSection(t):
		for i := range v.NumField() {
			forget(v.Field(i))
		}
	case t.Kind() == reflect.Slice && isSection(t.Elem()):
		for i := range v.Len() {
			forget(v.Index(i))
		}
	}
}

// decode reads the text with the environment's values, and without the checks between sections.
func decode(file string, data []byte, environ []string) (*Config, *decoder) {
	d := &decoder{file: file}
	c := &Config{}
	if root := d.layers(data, environ); root != nil {
		d.value(root, reflect.ValueOf(c).Elem(), "", "")
	}
	return c, d
}
