// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"isthmus/api"
)

// Scalars with a syntax of their own. Each implements encoding.TextUnmarshaler for the decoder, fmt.Stringer for
// defaults in the schema, and describes itself to the schema.

// Name is what other sections refer to; it is an object's key in the data plane.
type Name string

const namePattern = `^[A-Za-z0-9][A-Za-z0-9._:-]{0,30}$`

var nameSyntax = regexp.MustCompile(namePattern)

func (n *Name) UnmarshalText(b []byte) error {
	if !nameSyntax.Match(b) {
		return fmt.Errorf("%q is no name: 1 to 31 letters, digits, '.', '_', ':' or '-'", clip(string(b)))
	}
	*n = Name(b)
	return nil
}

func (n Name) String() string         { return string(n) }
func (n Name) schema() map[string]any { return textLike(namePattern) }

// Rate in bit/s: "100Mbit", "1.5Gbit", "64kbit", or a plain number.
type Rate uint64

const ratePattern = `^[0-9]+(\.[0-9]+)?([kMGT]?bit)?$`

func (r *Rate) UnmarshalText(b []byte) error {
	v, err := scaled(string(b), map[string]float64{
		"": 1, "bit": 1, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "Tbit": 1e12})
	if err != nil {
		return fmt.Errorf("%q is no rate: give bit/s as in 64kbit, 100Mbit, 2.5Gbit", clip(string(b)))
	}
	if v > 8*api.MostRate {
		return fmt.Errorf("%q is more than 8 Tbit/s", clip(string(b)))
	}
	*r = Rate(v)
	return nil
}

func (r Rate) String() string {
	for _, u := range []struct {
		unit string
		size Rate
	}{{"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}} {
		if r >= u.size && r%u.size == 0 {
			return fmt.Sprintf("%d%s", r/u.size, u.unit)
		}
	}
	return fmt.Sprintf("%d", uint64(r))
}

func (r Rate) schema() map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "pattern": ratePattern, "minimum": 0}
}

// Bytes per second, rounded down.
func (r Rate) Bytes() uint64 { return uint64(r) / 8 }

// Burst is a bucket size, in bytes ("64kB", "1MB", "3000") or in time at the bucket's rate ("10ms").
type Burst struct {
	Size  uint64 // bytes
	Milli float64
}

const burstPattern = `^[0-9]+(\.[0-9]+)?(B|kB|MB|ms)?$`

func (s *Burst) UnmarshalText(b []byte) error {
	text := string(b)
	if t, ok := strings.CutSuffix(text, "ms"); ok {
		v, err := scaled(t, map[string]float64{"": 1})
		if err != nil || v <= 0 || v > 10000 {
			return fmt.Errorf("%q is no burst: at most 10000ms", clip(text))
		}
		*s = Burst{Milli: v}
		return nil
	}
	v, err := scaled(text, map[string]float64{"": 1, "B": 1, "kB": 1e3, "MB": 1e6})
	if err != nil || v < 1 || v > 4e9 {
		return fmt.Errorf("%q is no burst: give bytes as in 64kB or 1MB (up to 4 GB), or time as in 10ms", clip(text))
	}
	*s = Burst{Size: uint64(v)}
	return nil
}

func (s Burst) String() string {
	if s.Milli > 0 {
		return strconv.FormatFloat(s.Milli, 'f', -1, 64) + "ms"
	}
	return strconv.FormatUint(s.Size, 10)
}

func (s Burst) schema() map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "pattern": burstPattern, "minimum": 1}
}

// Bytes at a rate. A burst given as time is never less than two full Ethernet frames: a smaller bucket passes nothing.
func (s Burst) Bytes(rate Rate) uint64 {
	if s.Milli > 0 {
		return min(max(uint64(float64(rate.Bytes())*s.Milli/1000), 2*1522), api.MostBurst)
	}
	return s.Size
}

// MAC is a unicast Ethernet address.
type MAC [6]byte

const macPattern = `^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$`

func (m *MAC) UnmarshalText(b []byte) error {
	bad := fmt.Errorf("%q is no MAC address such as 02:00:00:00:00:01", clip(string(b)))
	if len(b) != 17 {
		return bad
	}
	var out MAC
	for i := range out {
		if i > 0 && b[3*i-1] != ':' {
			return bad
		}
		v, err := strconv.ParseUint(string(b[3*i:3*i+2]), 16, 8)
		if err != nil {
			return bad
		}
		out[i] = byte(v)
	}
	if out[0]&1 != 0 || out == (MAC{}) {
		return fmt.Errorf("%s is no unicast address", string(b))
	}
	*m = out
	return nil
}

func (m MAC) String() string {
	if m == (MAC{}) {
		return ""
	}
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}
func (m MAC) schema() map[string]any { return textLike(macPattern) }

// Address is an IPv4 or IPv6 address without zone.
type Address struct{ netip.Addr }

func (a *Address) UnmarshalText(b []byte) error {
	v, err := netip.ParseAddr(string(b))
	if err != nil || v.Zone() != "" || v.Is4In6() {
		return fmt.Errorf("%q is no IP address", clip(string(b)))
	}
	a.Addr = v
	return nil
}

func (a Address) schema() map[string]any { return textLike(`^[0-9A-Fa-f:.]+$`) }

// Addresses are those of a list, as others know them; nil without any.
func Addresses(list []Address) (addresses []netip.Addr) {
	for _, a := range list {
		addresses = append(addresses, a.Addr)
	}
	return addresses
}

// Prefixes are those of a list, as others know them; nil without any.
func Prefixes(list []Prefix) (prefixes []netip.Prefix) {
	for _, p := range list {
		prefixes = append(prefixes, p.Prefix)
	}
	return prefixes
}

// Prefix is an address with a length; an interface's keeps its host bits. A bare address is a host prefix.
type Prefix struct{ netip.Prefix }

func (p *Prefix) UnmarshalText(b []byte) error {
	v, err := netip.ParsePrefix(string(b))
	if err != nil {
		var a Address
		if a.UnmarshalText(b) != nil {
			return fmt.Errorf("%q is no IP prefix such as 10.0.0.0/8 or 2001:db8::/32", clip(string(b)))
		}
		v = netip.PrefixFrom(a.Addr, a.BitLen())
	}
	if v.Addr().Is4In6() {
		return fmt.Errorf("%q is an IPv4-mapped prefix; write it as IPv4", clip(string(b)))
	}
	p.Prefix = v
	return nil
}

func (p Prefix) schema() map[string]any { return textLike(`^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$`) }

// Reachable is a prefix, an address, or a name of the DNS.
type Reachable struct {
	Prefix netip.Prefix
	Name   string
}

const dnsLabel = `[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?`

var dnsName = regexp.MustCompile(`^` + dnsLabel + `(\.` + dnsLabel + `)*\.?$`)

func (r *Reachable) UnmarshalText(b []byte) error {
	var p Prefix
	switch {
	case p.UnmarshalText(b) == nil:
		*r = Reachable{Prefix: p.Masked()}
	case len(b) <= 253 && dnsName.Match(b) && !digits.Match(b):
		*r = Reachable{Name: string(b)}
	default:
		return fmt.Errorf("%q is neither a prefix, an address nor a name", clip(string(b)))
	}
	return nil
}

func (r Reachable) String() string {
	if r.Name != "" {
		return r.Name
	}
	return r.Prefix.String()
}

func (r Reachable) schema() map[string]any { return textLike(`^[0-9A-Za-z:./-]+$`) }

// digits: an address with a fault is no name.
var digits = regexp.MustCompile(`^[0-9.:/]+$`)

// hostBits: a prefix that must be a network has bits set behind its length.
func (p Prefix) hostBits() bool { return p.IsValid() && p.Masked() != p.Prefix }

// PortRange is "80" or "1000-2000"; the zero value means any.
type PortRange struct {
	Low, High uint16
	set       bool
}

func (r *PortRange) UnmarshalText(b []byte) error {
	low, high, ranged := strings.Cut(string(b), "-")
	if !ranged {
		high = low
	}
	l, errLow := strconv.ParseUint(low, 10, 16)
	h, errHigh := strconv.ParseUint(high, 10, 16)
	if errLow != nil || errHigh != nil || l > h {
		return fmt.Errorf("%q is no port or range of ports such as 80 or 1000-2000", clip(string(b)))
	}
	*r = PortRange{uint16(l), uint16(h), true}
	return nil
}

func (r PortRange) String() string {
	if !r.set {
		return ""
	}
	return fmt.Sprintf("%d-%d", r.Low, r.High)
}
func (r PortRange) schema() map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "pattern": `^[0-9]+(-[0-9]+)?$`,
		"minimum": 0, "maximum": 65535}
}

// Any: no port was given.
func (r PortRange) Any() bool { return !r.set }

// Ports are the first and the last.
func (r PortRange) Ports() [2]uint16 {
	if r.Any() {
		return [2]uint16{0, 65535}
	}
	return [2]uint16{r.Low, r.High}
}

// Protocol is an IP protocol by number or name; the zero value means any.
type Protocol struct {
	Number uint8
	set    bool
}

func protocolNames() map[string]uint8 {
	return map[string]uint8{"icmp": 1, "igmp": 2, "tcp": 6, "udp": 17, "gre": 47, "esp": 50, "icmpv6": 58, "sctp": 132}
}

func (p *Protocol) UnmarshalText(b []byte) error {
	if string(b) == "any" {
		*p = Protocol{}
		return nil
	}
	if n, ok := protocolNames()[string(b)]; ok {
		*p = Protocol{n, true}
		return nil
	}
	n, err := strconv.ParseUint(string(b), 10, 8)
	if err != nil {
		return fmt.Errorf("%q is no protocol: any, tcp, udp, icmp, icmpv6, sctp, gre, esp, igmp or 0 to 255",
			clip(string(b)))
	}
	*p = Protocol{uint8(n), true}
	return nil
}

func (p Protocol) String() string {
	if !p.set {
		return "any"
	}
	return strconv.Itoa(int(p.Number))
}
func (p Protocol) schema() map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "minimum": 0, "maximum": 255,
		"pattern": `^(any|icmp|igmp|tcp|udp|gre|esp|icmpv6|sctp|[0-9]{1,3})$`}
}

// Any: every protocol matches.
func (p Protocol) Any() bool { return !p.set }

// ColourAction is what a policer does with a colour: "pass", "drop", or "remark N" with a DSCP.
type ColourAction struct {
	Verb string
	DSCP uint8
}

func (c *ColourAction) UnmarshalText(b []byte) error {
	text := string(b)
	if text == "pass" || text == "drop" {
		*c = ColourAction{Verb: text}
		return nil
	}
	if t, ok := strings.CutPrefix(text, "remark "); ok {
		if v, err := strconv.ParseUint(strings.TrimSpace(t), 10, 8); err == nil && v < 64 {
			*c = ColourAction{"remark", uint8(v)}
			return nil
		}
	}
	return fmt.Errorf("%q is no action: pass, drop, or remark N with a DSCP from 0 to 63", clip(text))
}

func (c ColourAction) String() string {
	if c.Verb == "remark" {
		return fmt.Sprintf("remark %d", c.DSCP)
	}
	return c.Verb
}
func (c ColourAction) schema() map[string]any { return textLike(`^(pass|drop|remark [0-9]{1,2})$`) }

// Class is a traffic class, "0" to "3", for class 3 with its queue: "3.0" to "3.3".
type Class struct{ Class, Queue uint8 }

func (c *Class) UnmarshalText(b []byte) error {
	switch {
	case len(b) == 1 && b[0] >= '0' && b[0] <= '3':
		*c = Class{Class: b[0] - '0'}
	case len(b) == 3 && b[0] == '3' && b[1] == '.' && b[2] >= '0' && b[2] <= '3':
		*c = Class{3, b[2] - '0'}
	default:
		return fmt.Errorf("%q is no traffic class: 0, 1, 2, or 3.0 to 3.3 for the queues of class 3", clip(string(b)))
	}
	return nil
}

func (c Class) String() string {
	if c.Class < 3 {
		return strconv.Itoa(int(c.Class))
	}
	return fmt.Sprintf("3.%d", c.Queue)
}
func (c Class) schema() map[string]any {
	return map[string]any{"type": []string{"string", "number"}, "pattern": `^([0-3]|3\.[0-3])$`,
		"minimum": 0, "maximum": 3.3}
}

// Where is a subport by number or name, or one of the words by-name, round-robin and block.
type Where string

func (w *Where) UnmarshalText(b []byte) error {
	var n Name
	err := n.UnmarshalText(b)
	*w = Where(n)
	return err
}

func (w Where) String() string { return string(w) }
func (w Where) schema() map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "pattern": namePattern, "minimum": 0, "maximum": 63}
}

// MSS is the most that SYNs say over IPv4, as the contract has it: a number, path (what the MTU lets through), or none.
type MSS uint16

const mostMSS = 9216 - 40 // of the longest packet

func (m *MSS) UnmarshalText(b []byte) error {
	switch text := string(b); text {
	case "none":
		*m = 0
	case "path":
		*m = api.MSSPath
	default:
		v, err := strconv.ParseUint(text, 10, 16)
		if err != nil || v < api.MSSMin || v > mostMSS {
			return fmt.Errorf("%q is no MSS: path, none, or %d to %d", clip(text), api.MSSMin, mostMSS)
		}
		*m = MSS(v)
	}
	return nil
}

func (m MSS) String() string {
	switch m {
	case 0:
		return "none"
	case api.MSSPath:
		return "path"
	}
	return strconv.Itoa(int(m))
}

func (m MSS) schema() map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "pattern": `^(path|none|[0-9]+)$`,
		"minimum": api.MSSMin, "maximum": mostMSS}
}

// textLike is the schema of what is written as text.
func textLike(pattern string) map[string]any {
	return map[string]any{"type": "string", "pattern": pattern}
}

// scaled parses a decimal number with one of the units.
func scaled(text string, units map[string]float64) (float64, error) {
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
		i++
	}
	factor, ok := units[strings.TrimSpace(text[i:])]
	if !ok || i == 0 {
		return 0, errors.New("unknown unit")
	}
	v, err := strconv.ParseFloat(text[:i], 64)
	return v * factor, err
}

// clip keeps a hostile value from filling the error message.
func clip(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}
