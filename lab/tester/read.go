// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"isthmus/controlplane/config"
	"isthmus/traffic/job"
)

// Bounds of a file.
const (
	mostBytes  = 1 << 20
	mostValues = 65536 // each alias counted as what it stands for
	mostDepth  = 16
	mostFaults = 50 // that are written out
	quoteBytes = 44
)

// Fault is one reason to refuse a file.
type Fault struct {
	Line int
	Text string // "streams[0].ordr: unknown key"
}

// Faults of a file.
type Faults struct {
	File string
	List []Fault
}

func (f *Faults) Error() string {
	slices.SortStableFunc(f.List, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	var b strings.Builder
	for i, one := range f.List {
		if i == mostFaults {
			fmt.Fprintf(&b, "%s: and %d more faults\n", f.File, len(f.List)-i)
			break
		}
		fmt.Fprintf(&b, "%s:%d: %s\n", f.File, one.Line, one.Text)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// reader decodes a file by the tags of Profile and keeps where everything stood.
type reader struct {
	Faults
	lines  map[string]int        // by path; of what the file gives
	preset bool                  // what is decoded is a preset
	stacks map[string]*job.Stack // by path
	values int
}

// Load reads and checks a file. What is wrong with it is a *Faults.
func Load(file string) (*Checked, error) {
	in, err := os.Open(file)
	if err == nil {
		defer in.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(in, mostBytes+1)); err == nil {
			return Parse(file, data)
		}
	}
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return nil, &Faults{file, []Fault{{1, err.Error()}}}
}

// Parse reads and checks a text that faults call file.
func Parse(file string, data []byte) (*Checked, error) {
	r := &reader{Faults: Faults{File: file}, lines: map[string]int{}, stacks: map[string]*job.Stack{}}
	c := &Checked{File: file, read: r}
	if root := r.tree(data); root != nil && r.mapping(root, reflect.ValueOf(&c.Profile).Elem(), "") {
		r.check(&c.Profile)
	}
	if len(r.List) > 0 {
		return nil, &r.Faults
	}
	return c, nil
}

// tree parses the text into its one document's root, or says why not.
func (r *reader) tree(data []byte) *yaml.Node {
	if len(data) > mostBytes {
		return r.no(1, "is larger than 1 MB")
	}
	root := config.Document(data, func(line int, format string, args ...any) {
		r.no(max(1, line), fmt.Sprintf(format, args...))
	})
	if root == nil {
		return nil
	}
	if text, single := scalarText(root); single && text == "" {
		return r.no(1, "the file is empty")
	}
	if why := r.walk(root, 0); why != "" {
		return r.no(1, why)
	}
	return root
}

func (r *reader) no(line int, why string) *yaml.Node {
	r.List = append(r.List, Fault{line, why})
	return nil
}

// walk counts a node's size, aliases written out. Depth is bounded, so an alias within itself ends, too.
func (r *reader) walk(n *yaml.Node, depth int) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if r.values++; r.values > mostValues {
		return "more than 65536 values when aliases are written out"
	}
	if depth > mostDepth {
		return "mappings, lists and aliases stand in each other more than 16 deep"
	}
	for _, one := range n.Content {
		if why := r.walk(one, depth+1); why != "" {
			return why
		}
	}
	return ""
}

// fault is about a place of the file; line 0: where that place is.
func (r *reader) fault(path string, line int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	r.List = append(r.List, Fault{max(1, cmp.Or(line, r.lines[path])), text})
}

func (r *reader) refuse(path, text, wanted string) {
	if text == "" {
		r.fault(path, 0, "has no value; it must be %s", wanted)
		return
	}
	r.fault(path, 0, "\"%s\" must be %s", quote(text), wanted)
}

// quote is a text as it can be shown: shortened, and without control characters.
func quote(text string) string {
	short := strings.Map(func(c rune) rune {
		if c < 0x20 || c == 0x7f {
			return '?'
		}
		return c
	}, text[:min(len(text), quoteBytes)])
	if len(text) > quoteBytes {
		short += "..."
	}
	return short
}

// scalarText is the text of a single value; a plain null, ~ or nothing is "".
func scalarText(n *yaml.Node) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		return "", false
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 && (n.Value == "~" || n.Value == "null") {
		return "", true
	}
	return n.Value, true
}

// single is the text of a value, false after the fault that it is a mapping or a list.
func (r *reader) single(n *yaml.Node, path string) (string, bool) {
	text, single := scalarText(n)
	if !single {
		r.fault(path, 0, "must be a single value, not a mapping or a list")
	}
	return text, single
}

// Tags.

// how a value is read: the tag `in`.
type how struct {
	required  bool
	kind      string
	words     []string
	low, high float64
	preset    string
}

func tagOf(tag reflect.StructTag) (h how) {
	text, preset, _ := strings.Cut(" "+tag.Get("in"), "=")
	h.preset = preset
	text, h.required = strings.CutPrefix(strings.TrimSpace(text), "!")
	for i, word := range strings.Fields(text) {
		low, high, bounds := strings.Cut(word, "..")
		switch {
		case i == 0:
			h.kind = word
		case bounds:
			h.low, _ = strconv.ParseFloat(low, 64)
			h.high, _ = strconv.ParseFloat(high, 64)
		default:
			h.words = strings.Split(word, "|")
		}
	}
	return h
}

// keys lists a struct's fields by key.
func keys(t reflect.Type) (names []string, index map[string]int) {
	index = make(map[string]int, t.NumField())
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); key != "" && key != "-" {
			names, index[key] = append(names, key), i
		}
	}
	return names, index
}

// mapping decodes one to a struct. It returns whether it is one.
func (r *reader) mapping(n *yaml.Node, v reflect.Value, path string) bool {
	if n.Kind != yaml.MappingNode {
		r.fault(path, n.Line, "must be a mapping (key: value)")
		return false
	}
	names, index := keys(v.Type())
	r.presets(v)
	r.pairs(n, path, names, func(name string, value *yaml.Node, at string) {
		f := v.Type().Field(index[name])
		r.value(value, v.Field(index[name]), at, f.Tag)
	})
	for _, name := range names {
		if !r.preset && tagOf(v.Type().Field(index[name]).Tag).required && r.lines[join(path, name)] == 0 {
			r.fault(path, n.Line, "needs a key \"%s\"", name)
		}
	}
	return true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// presets sets what stands for absent keys.
func (r *reader) presets(v reflect.Value) {
	was := r.preset
	r.preset = true
	defer func() { r.preset = was }()
	for i := range v.NumField() {
		var doc yaml.Node
		tag := v.Type().Field(i).Tag
		if text := tagOf(tag).preset; text != "" && v.Field(i).CanSet() {
			if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
				panic(err) // the tags are constants
			}
			r.value(doc.Content[0], v.Field(i), "", tag)
		}
	}
}

// pairs calls fn for each pair of a mapping whose key is one of names. Others, and keys given twice, are faults.
func (r *reader) pairs(n *yaml.Node, path string, names []string, fn func(name string, value *yaml.Node, at string)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		name, single := scalarText(key)
		at := join(path, name)
		switch {
		case !single:
			r.fault(join(path, "?"), key.Line, "unknown key")
		case !slices.Contains(names, name):
			r.fault(join(path, quote(name)), key.Line, "unknown key%s", config.Suggest(name, names))
		case seen[name]:
			r.fault(at, key.Line, "is given twice")
		default:
			seen[name] = true
			if !r.preset {
				r.lines[at] = value.Line
			}
			fn(name, value, at)
		}
	}
}

// value decodes one by its type and tag.
func (r *reader) value(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch to := v.Addr().Interface().(type) {
	case *Stack:
		r.stack(n, path)
		return
	case *Sizes:
		*to = r.sizes(n, path)
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		r.list(n, v, path, tag)
	case reflect.Struct:
		r.mapping(n, v, path)
	default:
		if text, single := r.single(n, path); single {
			r.scalar(text, v, path, tagOf(tag))
		}
	}
}

// list decodes one by the tag `list`: "1..96 ports".
func (r *reader) list(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	var least, most int
	bounds, what, _ := strings.Cut(tag.Get("list"), " ")
	if _, err := fmt.Sscanf(bounds, "%d..%d", &least, &most); err != nil {
		panic(err) // the tags are constants
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) < least || len(n.Content) > most {
		size := fmt.Sprintf("%d to %d", least, most)
		if least == 0 {
			size = fmt.Sprintf("at most %d", most)
		}
		r.fault(path, 0, "must be a list of %s %s", size, what)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, one := range n.Content {
		if one.Kind == yaml.AliasNode {
			one = one.Alias
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		if !r.preset {
			r.lines[at] = one.Line
		}
		r.value(one, v.Index(i), at, tag)
	}
}

// Single values.

var nameSyntax = regexp.MustCompile(`^[a-zA-Z0-9._:-]{1,31}$`)

var drivers = []string{"share", "pci", "net_memif", "net_af_packet", "net_af_xdp", "net_tap", "net_ring", "net_pcap",
	"net_null", "net_vhost", "net_virtio_user"}

func (r *reader) scalar(text string, v reflect.Value, path string, h how) {
	good, wanted := false, ""
	switch h.kind {
	case "name", "driver":
		good, wanted = nameSyntax.MatchString(text), "a name of 1 to 31 letters, digits, and . _ : -"
		if good && h.kind == "driver" && text != "pci" && text != "share" && !strings.HasPrefix(text, "net_") {
			r.fault(path, 0, "\"%s\" is no driver of DPDK (pci, net_memif, net_af_xdp, ...)%s", text,
				config.Suggest(text, drivers))
		}
	case "text":
		good = r.text(text, path, h)
	case "bool":
		if good, wanted = text == "true" || text == "false", "true or false"; good {
			v.SetBool(text == "true")
			return
		}
	case "word":
		if good = h.words == nil || slices.Contains(h.words, text); !good {
			r.fault(path, 0, "\"%s\" is none of %s%s", quote(text), strings.Join(h.words, ", "),
				config.Suggest(text, h.words))
		}
	case "mac":
		good, wanted = r.mac(text, path), "a MAC address (02:00:00:00:00:01)"
	case "address":
		_, err := address(text)
		good, wanted = err == nil, "an IPv4 or IPv6 address"
	case "rate":
		good, wanted = r.rate(text, path, h)
	case "whole":
		number, err := whole(text)
		if good = err == nil && float64(number) >= h.low && float64(number) <= h.high; good {
			v.SetInt(int64(number))
			return
		}
		wanted = fmt.Sprintf("a whole number from %.0f to %.0f", h.low, h.high)
	default:
		good, wanted = bounded(text, v, h)
	}
	switch {
	case good && v.Kind() == reflect.String:
		v.SetString(text)
	case !good && wanted != "":
		r.refuse(path, text, wanted)
	}
}

// bounded reads a part, a time or a number without unit.
func bounded(text string, v reflect.Value, h how) (good bool, wanted string) {
	units, scale, kind, of := plainUnits, 1.0, "a number", ""
	switch h.kind {
	case "part":
		units, scale, kind, of = partUnits, 100, "a part (0.5 or 50%)", "%"
	case "seconds":
		units, kind, of = timeUnits, "a time (2, 2s or 500ms)", " s"
	}
	value, _, ok := scan(text, units)
	if ok && value >= h.low && value <= h.high {
		if v.CanFloat() {
			v.SetFloat(value)
		}
		return true, ""
	}
	return false, fmt.Sprintf("%s from %.10g%s to %.10g%s", kind, h.low*scale, of, h.high*scale, of)
}

func (r *reader) text(text, path string, h how) bool {
	switch {
	case len(text) > int(h.high):
		r.fault(path, 0, "is longer than %d bytes", int(h.high))
	case len(text) < int(h.low):
		r.fault(path, 0, "has no value")
	case strings.ContainsFunc(text, func(c rune) bool { return c < 0x20 || c == 0x7f }):
		r.fault(path, 0, "has a control character")
	default:
		return true
	}
	return false
}

// rate reads a rate; words: parts and max are allowed. Faults are reported when wanted is empty.
func (r *reader) rate(text, path string, h how) (good bool, wanted string) {
	_, of, ok := Rate(text).Scan()
	part, most := slices.Contains(h.words, "part"), slices.Contains(h.words, "max")
	if !ok || of == OfRate && !part || of == Fastest && !most {
		wanted = "a rate: 100kpps, 1.5Mpps, 10Gbit"
		if part {
			wanted += ", 50%"
		}
		if most {
			wanted += ", max"
		}
		return false, wanted + ", or a number of packets per second"
	}
	if why := Rate(text).fault(); why != "" {
		r.fault(path, 0, "a rate of %s %s", text, why)
		return false, ""
	}
	return true, ""
}

// mac reads a station's address. It returns true also after the fault that it is a group's.
func (r *reader) mac(text, path string) bool {
	mac, err := macAddress(text)
	if err == nil && (mac[0]&1 != 0 || bytes.Equal(mac, make([]byte, 6))) {
		r.fault(path, 0, "%s is no address of a single station", text)
	}
	return err == nil
}

var macSyntax = regexp.MustCompile(`^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$`)

func macAddress(text string) (net.HardwareAddr, error) {
	if !macSyntax.MatchString(text) {
		return nil, errors.New("no MAC address")
	}
	return net.ParseMAC(text)
}

// address is one without a zone, and IPv4 as such.
func address(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err == nil && a.Zone() != "" {
		err = errors.New("a zone")
	}
	return a, err
}

func (r *reader) sizes(n *yaml.Node, path string) Sizes {
	sizes := Sizes{}
	if n.Kind == yaml.ScalarNode {
		r.size(n, nil, path, sizes)
		return sizes
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 || len(n.Content) > 2*16 {
		r.fault(path, 0, "must be a size in bytes, or a mix of 1 to 16 sizes: {64: 7, 594: 4, 1518: 1}")
		return sizes
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		r.size(n.Content[i], n.Content[i+1], join(path, quote(n.Content[i].Value)), sizes)
	}
	return sizes
}

// size adds one; weight may be nil.
func (r *reader) size(bytes, weight *yaml.Node, path string, to Sizes) {
	before, one := len(r.List), struct{ Bytes, Weight int }{0, 1}
	r.lines[path] = bytes.Line
	read := func(n *yaml.Node, v *int, in reflect.StructTag) {
		r.value(n, reflect.ValueOf(v).Elem(), path, in)
	}
	read(bytes, &one.Bytes, `in:"whole 64..9216"`)
	if weight != nil {
		if weight.Kind == yaml.AliasNode {
			weight = weight.Alias
		}
		r.lines[path] = weight.Line
		read(weight, &one.Weight, `in:"whole 1..65535"`)
	}
	switch _, twice := to[one.Bytes]; {
	case len(r.List) > before:
	case twice:
		r.fault(path, bytes.Line, "%d bytes are given twice", one.Bytes)
	default:
		to[one.Bytes] = one.Weight
	}
}
