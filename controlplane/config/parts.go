// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// A configuration is a file and its drop-ins, FILE.d/*.yaml in the order of their names. Their text is one: the file's,
// then each drop-in's behind a line with this mark and its name. Commands send, the control plane keeps and shows that
// text; no part of YAML can hold the line, since --- at its beginning ends a document.
const mark = "--- # file: "

// Read is the text of a file and its drop-ins.
func Read(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	names, err := DropIns(file)
	if err != nil {
		return nil, err
	}
	more := make(map[string][]byte, len(names))
	for _, name := range names {
		if more[name], err = ReadFile(name); err != nil {
			return nil, err
		}
	}
	return Joined(text, more), nil
}

// Joined is the text of a file and of drop-ins by their names, as Read returns it.
func Joined(text []byte, dropIns map[string][]byte) []byte {
	parts := []part{{text: text}}
	for _, name := range slices.Sorted(maps.Keys(dropIns)) {
		parts = append(parts, part{name: name, text: dropIns[name]})
	}
	return joined(parts)
}

// Folder is where a file's drop-ins are.
func Folder(file string) string { return file + ".d" }

// DropIns lists a file's drop-ins in their order: those in FILE.d whose names end in .yaml and begin with no dot.
func DropIns(file string) (names []string, err error) {
	folder := Folder(file)
	entries, err := os.ReadDir(folder) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name := filepath.Join(folder, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case strings.HasSuffix(name, ".yml"):
			return nil, fmt.Errorf("%s: is not read: the names of drop-ins end in .yaml", name)
		case !strings.HasSuffix(name, ".yaml"):
		case strings.ContainsFunc(name, unicode.IsControl):
			return nil, fmt.Errorf("%q: a drop-in's name has a control character", name)
		default:
			names = append(names, name)
		}
	}
	return names, err
}

// Files are those that a text is of, beside the first.
func Files(text []byte) (names []string) {
	for _, p := range split("", text)[1:] {
		names = append(names, p.name)
	}
	return names
}

// part is what one file says.
type part struct {
	name   string
	before int // lines of the whole text before it
	text   []byte
}

// split takes a text apart; file is the first part's name.
func split(file string, text []byte) []part {
	parts := []part{{name: file}}
	line, from, at := 0, 0, 0
	for one := range bytes.Lines(text) {
		line++
		if name, ok := bytes.CutPrefix(one, []byte(mark)); ok {
			parts[len(parts)-1].text = text[from:at]
			parts = append(parts, part{name: strings.TrimSuffix(string(name), "\n"), before: line})
			from = at + len(one)
		}
		at += len(one)
	}
	parts[len(parts)-1].text = text[from:]
	return parts
}

// joined is split's inverse.
func joined(parts []part) []byte {
	if len(parts) == 1 {
		return parts[0].text
	}
	var out bytes.Buffer
	for i, p := range parts {
		if i > 0 {
			out.WriteString(mark + p.name + "\n")
		}
		out.Write(p.text)
		if n := len(p.text); n > 0 && p.text[n-1] != '\n' {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// eachPart changes each part of a text.
func eachPart(text []byte, change func([]byte) ([]byte, error)) ([]byte, error) {
	parts := split("", text)
	for i := range parts {
		var err error
		if parts[i].text, err = change(parts[i].text); err != nil {
			return nil, err
		}
	}
	return joined(parts), nil
}

// says: a part is more than comments.
func (p *part) says() bool {
	for line := range bytes.Lines(p.text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && string(line) != "---" {
			return true
		}
	}
	return false
}

// over lays a later part's value over an earlier one's, of a type of the configuration. Mappings merge. A list of
// mappings grows: an entry lies over that of the same name, and others come behind. Other values, with lists of them,
// replace what is there; nothing ("key:") leaves it. Nothing that was there is changed: aliases may repeat it.
func over(under, later *yaml.Node, t reflect.Type, tag reflect.StructTag) *yaml.Node {
	under, later = target(under), target(later)
	_, scalar := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	switch {
	case isNull(later):
		return under
	case scalar:
		return later
	case isNull(under):
		return later
	case (t.Kind() == reflect.Struct || t.Kind() == reflect.Map) && under.Kind != yaml.MappingNode:
		return under // a fault, which nothing may hide
	case t.Kind() == reflect.Struct && later.Kind == yaml.MappingNode:
		_, fields := keys(t)
		return mapping(under, later, func(key string, a, b *yaml.Node) *yaml.Node {
			if i, known := fields[key]; known {
				return over(a, b, t.Field(i).Type, t.Field(i).Tag)
			}
			return b
		})
	case t.Kind() == reflect.Map && later.Kind == yaml.MappingNode:
		return mapping(under, later, func(_ string, a, b *yaml.Node) *yaml.Node { return over(a, b, t.Elem(), "") })
	case t.Kind() == reflect.Slice && isSection(t.Elem()):
		one := tag.Get("one") == "true"
		a, b := entries(under, one), entries(later, one)
		switch {
		case a == nil:
			return under
		case b == nil:
			return later
		}
		return list(a, b, t.Elem())
	}
	return later
}

// target is what an alias stands for.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// mapping lays one mapping over another. A key that the later one has twice stays twice, and is refused as such.
func mapping(under, later *yaml.Node, lay func(key string, a, b *yaml.Node) *yaml.Node) *yaml.Node {
	merged := *under
	merged.Content = slices.Clone(under.Content)
	at := make(map[string]int, len(under.Content)/2)
	for i := 0; i+1 < len(under.Content); i += 2 {
		at[under.Content[i].Value] = i
	}
	for i := 0; i+1 < len(later.Content); i += 2 {
		key, value := later.Content[i], later.Content[i+1]
		old, there := at[key.Value]
		delete(at, key.Value)
		if !there {
			merged.Content = append(merged.Content, key, value)
			continue
		}
		laid := lay(key.Value, merged.Content[old+1], value)
		if laid != merged.Content[old+1] {
			merged.Content[old] = key
		}
		merged.Content[old+1] = laid
	}
	return &merged
}

// entries are a list's; nil: it is none.
func entries(n *yaml.Node, one bool) *yaml.Node {
	switch {
	case n.Kind == yaml.SequenceNode:
		return n
	case isNull(n):
		return &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line}
	case n.Kind == yaml.MappingNode && one:
		return &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line, Content: []*yaml.Node{n}}
	}
	return nil
}

// list lays one list of sections over another. A name that the later one has twice stays twice.
func list(under, later *yaml.Node, t reflect.Type) *yaml.Node {
	merged := *under
	merged.Content = slices.Clone(under.Content)
	at := map[string]int{}
	if names, _ := keys(t); slices.Contains(names, "name") {
		for i, n := range under.Content {
			if name := nameOf(n); name != "" {
				at[name] = i
			}
		}
	}
	for _, n := range later.Content {
		name := nameOf(n)
		i, there := at[name]
		delete(at, name)
		if there {
			merged.Content[i] = over(merged.Content[i], n, t, "")
		} else {
			merged.Content = append(merged.Content, n)
		}
	}
	return &merged
}

// nameOf is the name of a list's entry; "" without one.
func nameOf(n *yaml.Node) string {
	n = target(n)
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if value := target(n.Content[i+1]); n.Content[i].Value == "name" && value.Kind == yaml.ScalarNode {
			return value.Value
		}
	}
	return ""
}

// moveLines gives a part's nodes their lines in the whole text.
func moveLines(n *yaml.Node, by int) {
	n.Line += by
	for _, one := range n.Content {
		moveLines(one, by)
	}
}

// layers is the tree of all parts of a text, each over those before it, with the environment's values.
func (d *decoder) layers(data []byte, environ []string) (root *yaml.Node) {
	if len(data) > maxFile {
		d.fail(0, "", "%d bytes are more than a configuration may have (%d)", len(data), maxFile)
		return nil
	}
	d.errs.parts = split(d.file, data)
	values := &expansion{decoder: d, environ: variables(environ)}
	for i := range d.errs.parts {
		p := &d.errs.parts[i]
		if !p.says() && len(d.errs.parts) > 1 {
			continue
		}
		one := Document(p.text, func(line int, format string, args ...any) {
			d.errs.say(p.name, p.line(line), "", format, args)
		})
		if one == nil {
			continue
		}
		moveLines(one, p.before)
		if mayExpand(p.text) {
			values.expand(one, "")
		}
		if root == nil {
			root = one
		} else {
			root = over(root, one, reflect.TypeFor[Config](), "")
		}
	}
	if root == nil && len(d.errs.List) == 0 {
		d.fail(0, "", "the file is empty")
	}
	return root
}

// line of the whole text is that of a part; 0, which is no line, stays.
func (p *part) line(n int) Line {
	if n > 0 {
		n += p.before
	}
	return Line(n)
}
