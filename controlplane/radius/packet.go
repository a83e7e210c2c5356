// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

const (
	headerLen    = 20
	maxPacket    = 4096 // RFC 2865 §3
	maxValue     = 253
	vendorHeader = 4 + 2 // of an attribute's value: vendor, then type and length of the vendor's attribute
)

// Attribute is one of a packet. A vendor's attribute has that vendor's type; several of one Vendor-Specific attribute
// are several here. Unknown vendors' are of type VendorSpecific, with the whole value.
type Attribute struct {
	Type  Type
	Value []byte
}

// Packet is one RADIUS packet.
type Packet struct {
	Code          Code
	ID            uint8
	Authenticator [16]byte
	Attributes    []Attribute
	// Since is when the event of an accounting request happened: each try sends its age in Acct-Delay-Time. Zero:
	// none is sent.
	Since time.Time
}

// ErrMalformed is what every error of Parse and Check wraps.
var ErrMalformed = errors.New("malformed packet")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

// Parse reads a packet, whose values stay in b. Octets behind its length are padding (RFC 2865 §3).
func Parse(b []byte) (*Packet, error) {
	b, err := Trim(b)
	if err != nil {
		return nil, err
	}
	p := &Packet{Code: Code(b[0]), ID: b[1], Authenticator: [16]byte(b[4:headerLen])}
	body := b[headerLen:]
	if p.Attributes, err = split(body, make([]Attribute, 0, min(16, len(body)/2))); err != nil {
		return nil, err
	}
	return p, nil
}

// Trim checks the header, and cuts b to the packet's length.
func Trim(b []byte) ([]byte, error) {
	if len(b) < headerLen {
		return nil, malformed("%d octets, shorter than a header", len(b))
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	if n < headerLen || n > maxPacket || n > len(b) {
		return nil, malformed("length %d of a packet in %d octets", n, len(b))
	}
	return b[:n], nil
}

// ParseAttributes reads what AppendAttributes wrote; values stay in b.
func ParseAttributes(b []byte) ([]Attribute, error) { return split(b, nil) }

// split appends the attributes of body, those of known vendors one by one.
func split(body []byte, list []Attribute) ([]Attribute, error) {
	for len(body) > 0 {
		t, value, rest, err := next(body)
		if err != nil {
			return nil, err
		}
		body = rest
		if t != byte(VendorSpecific) {
			list = append(list, Attribute{Type(t), value})
			continue
		}
		if len(value) < 5 { // RFC 2865 §5.26
			return nil, malformed("Vendor-Specific of %d octets", len(value))
		}
		vendor := binary.BigEndian.Uint32(value)
		if !knownVendor(vendor) {
			list = append(list, Attribute{VendorSpecific, value})
			continue
		}
		for inner := value[4:]; len(inner) > 0; {
			if t, value, inner, err = next(inner); err != nil {
				return nil, fmt.Errorf("vendor %d: %w", vendor, err)
			}
			list = append(list, Attribute{Type(vendor)<<32 | Type(t), value})
		}
	}
	return list, nil
}

// next takes the first attribute off b, which is not empty.
func next(b []byte) (t byte, value, rest []byte, err error) {
	if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
		return 0, nil, nil, malformed("an attribute ends beyond its packet")
	}
	return b[0], b[2:b[1]], b[b[1]:], nil
}

// Check refuses attributes that cannot be of their type by their length.
func (p *Packet) Check() error {
	for i := range p.Attributes {
		a := &p.Attributes[i]
		n, ok := len(a.Value), true
		switch dictionary()[a.Type].kind {
		case Integer, IPv4, Date:
			ok = n == 4
		case IPv6:
			ok = n == 16
		case InterfaceID:
			ok = n == 8
		case IPv6Prefix:
			ok = n >= 2 && n <= 18 && a.Value[1] <= 128 && n-2 >= (int(a.Value[1])+7)/8
		}
		if !ok {
			return malformed("%s of %d octets", a.Type, n)
		}
	}
	return nil
}

// Get returns the first attribute of a type, nil without one.
func (p *Packet) Get(t Type) []byte {
	for i := range p.Attributes {
		if p.Attributes[i].Type == t {
			return p.Attributes[i].Value
		}
	}
	return nil
}

// Add appends an attribute without copying its value. An empty one is left out: RFC 2865 §5 has none.
func (p *Packet) Add(t Type, value []byte) {
	if len(value) > 0 {
		p.Attributes = append(p.Attributes, Attribute{t, value})
	}
}

// Text appends a string; none when it is empty.
func (p *Packet) Text(t Type, s string) { p.Add(t, []byte(s)) }

// Integer appends a number.
func (p *Packet) Integer(t Type, v uint32) { p.Add(t, binary.BigEndian.AppendUint32(nil, v)) }

// Address appends an IPv4 or IPv6 address; none when it is not valid.
func (p *Packet) Address(t Type, a netip.Addr) {
	if a.IsValid() {
		p.Add(t, a.AsSlice())
	}
}

// Prefix appends an IPv6 prefix (RFC 3162 §2.3); none when it is not valid.
func (p *Packet) Prefix(t Type, prefix netip.Prefix) {
	if prefix.IsValid() && prefix.Addr().Is6() {
		bits, a := prefix.Bits(), prefix.Masked().Addr().As16()
		p.Add(t, append([]byte{0, byte(bits)}, a[:(bits+7)/8]...))
	}
}

// Uint32 is the value of an Integer or Date.
func (a *Attribute) Uint32() (uint32, error) {
	if len(a.Value) != 4 {
		return 0, malformed("%s of %d octets", a.Type, len(a.Value))
	}
	return binary.BigEndian.Uint32(a.Value), nil
}

// Address is the value of an IPv4 or IPv6.
func (a *Attribute) Address() (netip.Addr, error) {
	addr, ok := netip.AddrFromSlice(a.Value)
	if !ok {
		return addr, malformed("%s of %d octets", a.Type, len(a.Value))
	}
	return addr, nil
}

// Prefix is the value of an IPv6Prefix. Bits behind its length must be zero (RFC 3162 §2.3).
func (a *Attribute) Prefix() (netip.Prefix, error) {
	n := len(a.Value)
	if n < 2 || n > 18 || a.Value[1] > 128 || n-2 < (int(a.Value[1])+7)/8 {
		return netip.Prefix{}, malformed("%s of %d octets", a.Type, n)
	}
	var addr [16]byte
	copy(addr[:], a.Value[2:])
	prefix := netip.PrefixFrom(netip.AddrFrom16(addr), int(a.Value[1]))
	if prefix.Masked() != prefix {
		return netip.Prefix{}, fmt.Errorf("%s %s has bits behind its length", a.Type, prefix)
	}
	return prefix, nil
}
