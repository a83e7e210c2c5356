// SPDX-License-Identifier: Apache-2.0

// Package sdf reads the flow descriptions of SDF filters and PFDs. They are IPFilterRules (RFC 6733 §4.3.1), as TS
// 29.212 §5.4.2 and TS 29.244 §8.2.5 restrict them. It compiles them into the alternatives that the data plane compares
// packets with.
//
// All functions are pure and may be called from any goroutine.
package sdf

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Any protocol.
const Any = -1

// MaxText is the longest flow description, in octets.
const MaxText = 1024

// maxPorts is the most ranges of one list.
const maxPorts = 32

// Ports is a range, both ends in it.
type Ports struct{ Low, High uint16 }

// End is one side of a rule. With neither a prefix nor Assigned, it is any address.
type End struct {
	Prefix   netip.Prefix // zero: any
	Not      bool         // addresses of the prefix's family that are not in it
	Assigned bool         // the UE's addresses
	Ports    []Ports      // in order, apart from each other; none: any
}

// Rule is a flow description.
type Rule struct {
	Deny        bool
	In          bool // "in": from the terminal; "out": to it
	Protocol    int  // or Any
	Source      End
	Destination End
}

// words takes the parts of a rule one by one.
type words struct{ list []string }

func (w *words) next() string {
	if len(w.list) == 0 {
		return ""
	}
	word := w.list[0]
	w.list = w.list[1:]
	return word
}

// Parse reads a flow description. Its words are of lower case, as the standard has them.
func Parse(text string) (Rule, error) {
	var r Rule
	if len(text) > MaxText {
		return r, fmt.Errorf("flow description of %d octets, at most %d", len(text), MaxText)
	}
	for _, o := range []byte(text) {
		if o < 0x20 || o > 0x7e {
			return r, fmt.Errorf("flow description with octet %#02x", o)
		}
	}
	w := words{strings.Fields(text)}
	switch action := w.next(); action {
	case "permit":
	case "deny":
		r.Deny = true
	default:
		return r, fmt.Errorf("action %.20q is neither permit nor deny", action)
	}
	switch direction := w.next(); direction {
	case "out":
	case "in":
		r.In = true
	default:
		return r, fmt.Errorf("direction %.20q is neither in nor out", direction)
	}
	var err error
	if r.Protocol, err = protocol(w.next()); err != nil {
		return r, err
	}
	if from := w.next(); from != "from" {
		return r, fmt.Errorf("%.20q stands where \"from\" should", from)
	}
	if r.Source, err = w.end("to"); err != nil {
		return r, fmt.Errorf("source: %w", err)
	}
	if to := w.next(); to != "to" {
		return r, fmt.Errorf("%.20q stands where \"to\" should", to)
	}
	if r.Destination, err = w.end(""); err != nil {
		return r, fmt.Errorf("destination: %w", err)
	}
	if len(w.list) > 0 { // TS 29.212 §5.4.2: no options
		return r, fmt.Errorf("option %.20q is not allowed", w.list[0])
	}
	return r, r.check()
}

// protocols by name, which RFC 6733 §4.3.1 does not have and SD-Core sends.
var protocols = map[string]int{"icmp": 1, "tcp": 6, "udp": 17, "icmp6": 58, "sctp": 132}

func protocol(word string) (int, error) {
	if word == "ip" {
		return Any, nil
	}
	if n, ok := protocols[word]; ok {
		return n, nil
	}
	n, err := decimal(word, 255)
	if err != nil {
		return 0, fmt.Errorf("protocol: %w", err)
	}
	return int(n), nil
}

// decimal reads digits alone: no sign, no base, no blank.
func decimal(word string, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(word, 10, 32)
	if err != nil || n > most || word[0] < '0' || word[0] > '9' {
		return 0, fmt.Errorf("%.20q is not a number from 0 to %d", word, most)
	}
	return n, nil
}

// end reads an address and, when the next word begins with a digit, ports.
func (w *words) end(until string) (End, error) {
	e, err := address(w.next())
	if err != nil {
		return e, err
	}
	if len(w.list) > 0 && w.list[0] != until && w.list[0][0] >= '0' && w.list[0][0] <= '9' {
		e.Ports, err = ports(w.next())
	}
	return e, err
}

func address(word string) (End, error) {
	var e End
	switch word {
	case "any":
		return e, nil
	case "assigned":
		e.Assigned = true
		return e, nil
	}
	text, not := strings.CutPrefix(word, "!")
	e.Not = not
	host, length, hasLength := strings.Cut(text, "/")
	a, err := netip.ParseAddr(host)
	if err != nil || a.Zone() != "" {
		return e, fmt.Errorf("%.60q is no address", text)
	}
	bits := uint64(a.BitLen())
	if hasLength {
		if bits, err = decimal(length, bits); err != nil {
			return e, fmt.Errorf("prefix length: %w", err)
		}
	}
	e.Prefix = netip.PrefixFrom(a, int(bits)).Masked()
	if e.Not && bits == 0 {
		return e, fmt.Errorf("%.60q matches nothing", word)
	}
	return e, nil
}

func ports(word string) ([]Ports, error) {
	var list []Ports
	for part := range strings.SplitSeq(word, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := decimal(low, 65535)
		if err != nil {
			return nil, fmt.Errorf("port: %w", err)
		}
		last := first
		if isRange {
			if last, err = decimal(high, 65535); err != nil {
				return nil, fmt.Errorf("port: %w", err)
			}
		}
		if last < first {
			return nil, fmt.Errorf("ports %d-%d are reversed", first, last)
		}
		if len(list) == maxPorts {
			return nil, fmt.Errorf("more than %d port ranges", maxPorts)
		}
		list = append(list, Ports{uint16(first), uint16(last)})
	}
	return merge(list), nil
}

// merge joins ranges that overlap or touch: fewer alternatives for the same ports.
func merge(list []Ports) []Ports {
	slices.SortFunc(list, func(a, b Ports) int { return int(a.Low) - int(b.Low) })
	out := list[:1]
	for _, p := range list[1:] {
		if last := &out[len(out)-1]; int(p.Low) <= int(last.High)+1 {
			last.High = max(last.High, p.High)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// hasPorts are the protocols whose headers begin with ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
func hasPorts(protocol int) bool {
	switch protocol {
	case Any, 6, 17, 33, 132, 136:
		return true
	}
	return false
}

// check refuses rules that nothing can match.
func (r *Rule) check() error {
	s, d := &r.Source, &r.Destination
	switch {
	case s.Assigned && d.Assigned:
		return fmt.Errorf("both ends are assigned")
	case s.Prefix.IsValid() && d.Prefix.IsValid() && s.Prefix.Addr().Is4() != d.Prefix.Addr().Is4():
		return fmt.Errorf("%s and %s are of two families", s.Prefix, d.Prefix)
	case (s.Ports != nil || d.Ports != nil) && !hasPorts(r.Protocol):
		return fmt.Errorf("protocol %d has no ports", r.Protocol)
	}
	return nil
}

func (e *End) String() string {
	text := "any"
	switch {
	case e.Assigned:
		text = "assigned"
	case e.Prefix.IsValid():
		text = e.Prefix.String()
		if e.Not {
			text = "!" + text
		}
	}
	for i, p := range e.Ports {
		text += map[bool]string{true: " ", false: ","}[i == 0] + strconv.Itoa(int(p.Low))
		if p.High != p.Low {
			text += "-" + strconv.Itoa(int(p.High))
		}
	}
	return text
}

// String is the rule in the form that Parse reads.
func (r *Rule) String() string {
	action, direction, protocol := "permit", "out", "ip"
	if r.Deny {
		action = "deny"
	}
	if r.In {
		direction = "in"
	}
	if r.Protocol != Any {
		protocol = strconv.Itoa(r.Protocol)
	}
	return fmt.Sprintf("%s %s %s from %s to %s", action, direction, protocol, &r.Source, &r.Destination)
}
