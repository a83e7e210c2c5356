// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// variable is what "${" begins: an escape, a reference with a member of a list and a default, or what is neither.
var variable = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?:\[([0-9]{1,4})\])?(:-[^{}]*)?\}|\$\{`)

// mayExpand: a text has something to expand.
func mayExpand(text []byte) bool { return bytes.Contains(text, []byte("${")) }

// variables are those of an environment ("NAME=value").
func variables(environ []string) map[string]string {
	all := make(map[string]string, len(environ))
	for _, one := range environ {
		if name, value, ok := strings.Cut(one, "="); ok {
			all[name] = value
		}
	}
	return all
}

// expansion puts the environment's values into a tree.
type expansion struct {
	*decoder
	environ map[string]string
	bytes   int // put in: a variable of 128 KiB may be named a thousand times
	count   int // references
}

// expand replaces ${NAME}, ${NAME[1]} and ${NAME:-default} in the scalar values of a parsed tree. So a value is never
// read as YAML, and keys, comments and anchors stay. Each scalar is visited once, where it stands.
func (x *expansion) expand(n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			x.expand(n.Content[i+1], join(path, clip(n.Content[i].Value)))
		}
	case yaml.SequenceNode:
		for i, one := range n.Content {
			x.expand(one, path+"["+strconv.Itoa(i)+"]")
		}
	case yaml.ScalarNode:
		if !x.failed && strings.Contains(n.Value, "${") {
			x.scalar(n, path)
		}
	}
}

func (x *expansion) scalar(n *yaml.Node, path string) {
	var out strings.Builder
	text, at, foreign := n.Value, 0, false
	for _, m := range variable.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(text[at:m[0]])
		at = m[1]
		switch {
		case m[2] >= 0:
			value, set := x.value(n.Line, path, text, m)
			x.count, x.bytes = x.count+1, x.bytes+len(value)
			if x.failed = x.count > mostReferences || x.bytes > maxFile; x.failed {
				x.fail(n.Line, path, "too large: more than %d references, or %d bytes of the environment",
					mostReferences, maxFile)
				return
			}
			if set {
				foreign = true
				x.errs.foreign.hide(value, text[m[0]:m[1]])
			}
			out.WriteString(value)
		case text[m[0]:m[1]] == "$${":
			out.WriteString("${")
		default:
			x.fail(n.Line, path, "%q: after ${ comes NAME}, NAME[0]} or NAME:-default}, the default without "+
				"braces; $${ stands for ${", clip(text[m[0]:]))
			return
		}
	}
	out.WriteString(text[at:])
	n.Value = out.String()
	if foreign {
		x.errs.foreign.hide(n.Value, text)
	}
}

// value is that of one reference; set: it is the environment's, not the file's default.
func (x *expansion) value(line int, path, text string, m []int) (value string, set bool) {
	part := func(i int) string {
		if m[2*i] < 0 {
			return ""
		}
		return text[m[2*i]:m[2*i+1]]
	}
	name, member, otherwise := part(1), part(2), part(3)
	value, set = x.environ[name]
	if member != "" && set {
		list := strings.Split(value, ",")
		i, _ := strconv.Atoi(member)
		if set = i < len(list); set {
			value = strings.TrimSpace(list[i])
		} else if otherwise == "" {
			x.fail(line, path, "${%s[%d]}: %s has %d values, separated by commas; the first is [0]", name, i, name,
				len(list))
			return "", false
		}
	}
	switch {
	case otherwise != "" && (!set || value == ""):
		return otherwise[len(":-"):], false
	case !set:
		x.fail(line, path, "${%s}: the environment has no %s: set it for isthmus (a unit's Environment=, a "+
			"container's env), or write ${%s:-default}", name, name, name)
	}
	return value, set
}

// foreign are values that the environment gave, and how the file names them.
type foreign struct {
	named  map[string]string
	sorted []string // longest first; nil: not yet
}

const (
	// shortest is how long a value of the environment is at least that no error quotes; shorter ones, such as numbers,
	// are parts of other words.
	shortest = 4
	// mostReferences bounds what finding them in errors costs.
	mostReferences = 10_000
)

// hide has errors say the file's text in place of a value of the environment. Who sends a configuration need not be
// allowed to read our environment.
func (f *foreign) hide(value, named string) {
	if f.named == nil {
		f.named = map[string]string{}
	}
	for _, form := range []string{value, clip(value)} {
		for _, form := range []string{form, strings.Trim(strconv.Quote(form), `"`)} {
			if len(form) >= shortest && form != named {
				f.named[form], f.sorted = named, nil
			}
		}
	}
}

// hidden is a reason without values of the environment.
func (f *foreign) hidden(reason string) string {
	if f.sorted == nil {
		f.sorted = slices.SortedFunc(maps.Keys(f.named), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
		})
	}
	for _, value := range f.sorted {
		reason = strings.ReplaceAll(reason, value, f.named[value])
	}
	return reason
}

// alone: a text has nothing but references without a default, so it may be shown in place of a secret.
func alone(text string) bool {
	rest := variable.ReplaceAllStringFunc(text, func(one string) string {
		if strings.HasPrefix(one, "$$") || strings.Contains(one, ":-") || one == "${" {
			return one
		}
		return ""
	})
	return text != "" && rest == ""
}

// escape is a value as a file has it that shall mean no reference.
func escape(value string) string { return strings.ReplaceAll(value, "${", "$${") }

// yamlReason is the parser's text of a fault in a line, in plain words and with what to do where beginners meet it.
func yamlReason(data []byte, line int, text string) string {
	lines := bytes.Split(data, []byte("\n"))
	for i := max(line-2, 0); i < min(line+1, len(lines)); i++ {
		indent := lines[i][:len(lines[i])-len(bytes.TrimLeft(lines[i], " \t"))]
		if bytes.IndexByte(indent, '\t') >= 0 || bytes.Contains(lines[i], []byte("-\t")) {
			return fmt.Sprintf("line %d is indented by a tab; YAML takes spaces alone", i+1)
		}
	}
	for i := max(line-1, 0); i < min(line+1, len(lines)); i++ {
		at := bytes.Index(lines[i], []byte("${"))
		if at > 0 && !bytes.ContainsAny(lines[i][at-1:at], `"'`) && bytes.ContainsAny(lines[i][:at], "{[") {
			return text + `; inside {…} and […] a reference is quoted: "${NAME}"`
		}
	}
	return text
}
