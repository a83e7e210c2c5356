// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"isthmus/controlplane/config"
	"isthmus/traffic/job"
	"isthmus/traffic/layers"
)

// How the reader takes a list of layers: names and values. The engine decides which layers may follow, and which values
// are optional.

const pduSession = 0x85 // PDU Session Container, TS 29.281 §5.2.2.7

func (r *reader) stack(n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > job.Layers {
		r.fault(path, 0, "must be a list of 1 to %d layers, the outermost first", job.Layers)
		return
	}
	s := &job.Stack{Layers: uint32(len(n.Content))}
	r.stacks[path] = s
	for i, one := range n.Content {
		if one.Kind == yaml.AliasNode {
			one = one.Alias
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		r.lines[at] = one.Line
		r.layer(one, at, &s.Layer[i])
	}
}

func (r *reader) layer(n *yaml.Node, path string, l *job.Layer) {
	l.Line = uint32(n.Line)
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[0].Kind != yaml.ScalarNode {
		r.fault(path, 0, "must be one layer: a name and a mapping of its fields")
		return
	}
	var names []string
	for _, form := range layers.All {
		names = append(names, form.Name)
	}
	name := n.Content[0].Value
	kind := slices.Index(names, name)
	if kind < 0 {
		r.fault(join(path, quote(name)), n.Content[0].Line, "there is no such layer%s",
			config.Suggest(name, names))
		return
	}
	l.Kind = uint32(kind)
	r.fields(n.Content[1], join(path, name), layers.All[kind], l)
}

func (r *reader) fields(n *yaml.Node, path string, form layers.Layer, l *job.Layer) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if text, single := scalarText(n); single && text == "" { // "- udp:", with nothing behind it
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fault(path, n.Line, "must be a mapping (key: value)")
		return
	}
	var names []string
	for _, f := range form.Fields {
		names = append(names, f.Name)
	}
	if form.Name == "gtpu" {
		names = append(names, "extensions")
	}
	r.pairs(n, path, names, func(name string, value *yaml.Node, at string) {
		if i := slices.Index(names, name); i < len(form.Fields) {
			r.field(value, at, form.Fields[i], &l.Field[i])
		} else {
			r.extensions(value, at, l)
		}
	})
}

// counted is a value that changes with the flow: base + step × ((flow ÷ each) mod count).
type counted struct {
	Base  string `yaml:"base" in:"!word"`
	Step  string `yaml:"step" in:"word"`
	Each  int    `yaml:"each" in:"whole 1..4294967295 =1"`
	Count int    `yaml:"count" in:"whole 0..4294967295"`
}

func (r *reader) field(n *yaml.Node, path string, form layers.Field, to *job.Value) {
	*to = job.Value{Given: 1, Word: 3, Each: 1}
	text, single := scalarText(n)
	switch {
	case single && text == "any":
		to.Any = 1
	case single:
		r.bytes(text, path, form, to)
	case n.Kind == yaml.SequenceNode:
		r.fault(path, 0, "must be a value, any, or {base, step, each, count}")
	default:
		var c counted
		r.mapping(n, reflect.ValueOf(&c).Elem(), path)
		if r.lines[join(path, "base")] > 0 {
			r.bytes(c.Base, join(path, "base"), form, to)
		}
		to.Step, to.Each, to.Count = 1, uint32(c.Each), uint32(c.Count)
		if r.lines[join(path, "step")] > 0 {
			r.step(c.Step, join(path, "step"), form, to)
		}
	}
}

// bytes reads a single value of a field, right-aligned.
func (r *reader) bytes(text, path string, form layers.Field, to *job.Value) {
	wanted := ""
	switch form.Form {
	case "MAC":
		mac, err := macAddress(text)
		if copy(to.Bytes[10:], mac); err == nil {
			return
		}
		wanted = "a MAC address (02:00:00:00:00:01)"
	case "IPV4", "IPV6":
		a, err := address(text)
		if err == nil && a.Is4() == (form.Form == "IPV4") {
			copy(to.Bytes[16-a.BitLen()/8:], a.AsSlice())
			return
		}
		wanted = "an IPv" + form.Form[3:] + " address"
	default:
		number, err := whole(text)
		if err == nil && number>>form.Bits == 0 {
			binary.BigEndian.PutUint64(to.Bytes[8:], number)
			return
		}
		wanted = fmt.Sprintf("a number from 0 to %d", uint64(1)<<form.Bits-1)
	}
	r.refuse(path, text, wanted)
}

// step reads a number, or for IPv6 an address that selects the counted 32-bit word: 0:0:0:1:: counts /64 prefixes.
func (r *reader) step(text, path string, form layers.Field, to *job.Value) {
	if number, err := whole(text); err == nil && number>>32 == 0 {
		to.Step = uint32(number)
		return
	}
	wanted := "a number up to 4294967295"
	if form.Form != "IPV6" {
		r.refuse(path, text, wanted)
		return
	}
	a, err := address(text)
	if err != nil || a.Is4() {
		r.refuse(path, text, wanted+", or an address with one 32-bit word that is not 0")
		return
	}
	words, bytes := 0, a.As16()
	for i := range 4 {
		if word := binary.BigEndian.Uint32(bytes[4*i:]); word != 0 {
			to.Step, to.Word = word, byte(i)
			words++
		}
	}
	if words != 1 {
		r.fault(path, 0, "\"%s\": exactly one 32-bit word of an address that is a step is not 0", quote(text))
	}
}

// extension is a GTP-U extension header: one of both.
type extension struct {
	PDUSession *struct {
		Type string `yaml:"type" in:"!word downlink|uplink"`
		QFI  int    `yaml:"qfi" in:"!whole 0..63"`
	} `yaml:"pdu-session"`
	Raw *struct {
		Type    int    `yaml:"type" in:"!whole 1..255"`
		Content string `yaml:"content" in:"!word"`
	} `yaml:"raw"`
}

func (r *reader) extensions(n *yaml.Node, path string, l *job.Layer) {
	if n.Kind != yaml.SequenceNode || len(n.Content) > job.Extensions {
		r.fault(path, 0, "must be a list of at most %d extension headers", job.Extensions)
		return
	}
	l.Extensions = uint32(len(n.Content))
	for i, one := range n.Content {
		if one.Kind == yaml.AliasNode {
			one = one.Alias
		}
		var e extension
		at := fmt.Sprintf("%s[%d]", path, i)
		r.lines[at] = one.Line
		if r.mapping(one, reflect.ValueOf(&e).Elem(), at) && len(one.Content) != 2 {
			r.fault(at, 0, "must be one extension header: pdu-session or raw")
		}
		switch to := &l.Extension[i]; {
		case e.PDUSession != nil: // TS 38.415 §5.5.2: 0 downlink, 1 uplink
			*to = job.Extension{Type: pduSession, Length: 2, Content: [30]byte{1: byte(e.PDUSession.QFI)}}
			if e.PDUSession.Type == "uplink" {
				to.Content[0] = 1 << 4
			}
		case e.Raw != nil:
			to.Type = byte(e.Raw.Type)
			r.content(e.Raw.Content, join(at, "raw.content"), to)
		}
	}
}

// content reads the bytes of an extension header. TS 29.281 §5.2.1: with its length and next type it is a multiple of
// four bytes.
func (r *reader) content(text, path string, to *job.Extension) {
	if r.lines[path] == 0 {
		return // there is none
	}
	bytes := len(text) / 2
	if len(text)%2 != 0 || bytes%4 != 2 || bytes > len(to.Content) {
		r.fault(path, 0, "must be 2, 6, 10, ... 30 bytes in hexadecimal")
		return
	}
	if _, err := hex.Decode(to.Content[:], []byte(text)); err != nil {
		r.fault(path, 0, "must be in hexadecimal, without blanks")
	}
	to.Length = byte(bytes)
}
