// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"time"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

// A session in the store and in memory: a version, then fields in the order of the structs. Integers are varints; a bit
// map marks the optional fields present (its size: TestSizeOfASession). A store of another version is not read.
const encodingVersion = 10

var (
	ErrEncoding = errors.New("a stored session does not follow its encoding")
	ErrVersion  = errors.New("a stored session has another encoding")
)

// codec writes a session, or reads it: one description of the layout serves both directions.
type codec struct {
	b       []byte
	reading bool
	failed  bool
}

func AppendSession(b []byte, s *Session) []byte {
	c := codec{b: append(b, encodingVersion)}
	c.session(s)
	return c.b
}

func Decode(b []byte) (*Session, error) {
	if len(b) == 0 {
		return nil, ErrEncoding
	}
	if b[0] != encodingVersion {
		return nil, fmt.Errorf("%w: version %d, not %d", ErrVersion, b[0], encodingVersion)
	}
	s := &Session{}
	c := codec{b: b[1:], reading: true}
	c.session(s)
	if c.failed || len(c.b) != 0 {
		return nil, ErrEncoding
	}
	return s, nil
}

// session is the layout of an encoded session; those of its rules stand beside them (pdr.go, far.go, qer.go, urr.go).
// Another layout has another encodingVersion.
func (c *codec) session(s *Session) {
	c.fixed64(&s.SEID)
	c.fixed64(&s.CP.SEID)
	c.addr(&s.CP.IPv4)
	c.addr(&s.CP.IPv6)
	c.text(&s.Owner)
	number(c, &s.Worker)
	number(c, &s.Inactivity)
	number(c, &s.Discards)
	c.fixed32(&s.Association)
	c.text(&s.UserID)
	c.text(&s.APN)
	c.text(&s.SNSSAI)
	list(c, &s.FQCSID, c.bytes)
	c.flag(&s.Moved)
	number(c, &s.Pipe)
	list(c, &s.PDR, c.pdr)
	list(c, &s.FAR, c.far)
	list(c, &s.QER, c.qer)
	list(c, &s.URR, c.urr)
	list(c, &s.BAR, c.bar)
	list(c, &s.Endpoint, c.endpoint)
	some(c, &s.Line)
	c.filters(&s.LineFilters)
}

func (c *codec) fail() {
	c.failed, c.b = true, nil
}

type integer interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64
}

func number[T integer](c *codec, v *T) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, uint64(*v))
		return
	}
	x, n := binary.Uvarint(c.b)
	if n <= 0 || uint64(T(x)) != x {
		c.fail()
		return
	}
	*v, c.b = T(x), c.b[n:]
}

func (c *codec) fixed64(v *uint64) {
	if !c.reading {
		c.b = binary.BigEndian.AppendUint64(c.b, *v)
		return
	}
	if len(c.b) < 8 {
		c.fail()
		return
	}
	*v, c.b = binary.BigEndian.Uint64(c.b), c.b[8:]
}

func (c *codec) fixed32(v *uint32) {
	if !c.reading {
		c.b = binary.BigEndian.AppendUint32(c.b, *v)
		return
	}
	if len(c.b) < 4 {
		c.fail()
		return
	}
	*v, c.b = binary.BigEndian.Uint32(c.b), c.b[4:]
}

// take reads bytes behind their number; the result aliases the encoded session, so retained parts are copied.
func (c *codec) take() []byte {
	var n uint64
	number(c, &n)
	if n > uint64(len(c.b)) {
		c.fail()
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

func (c *codec) text(v *string) {
	if c.reading {
		*v = string(c.take())
		return
	}
	c.b = binary.AppendUvarint(c.b, uint64(len(*v)))
	c.b = append(c.b, *v...)
}

func (c *codec) bytes(v *[]byte) {
	if c.reading {
		*v = append([]byte(nil), c.take()...)
		return
	}
	c.b = binary.AppendUvarint(c.b, uint64(len(*v)))
	c.b = append(c.b, *v...)
}

func (c *codec) addr(v *netip.Addr) {
	if c.reading {
		b := c.take()
		if a, ok := netip.AddrFromSlice(b); ok {
			*v = a
		} else if len(b) != 0 {
			c.fail()
		}
		return
	}
	switch {
	case !v.IsValid():
		c.b = append(c.b, 0)
	case v.Is4():
		a := v.As4()
		c.b = append(append(c.b, 4), a[:]...)
	default:
		a := v.As16()
		c.b = append(append(c.b, 16), a[:]...)
	}
}

func (c *codec) prefix(v *netip.Prefix) {
	a, bits := v.Addr(), uint8(max(v.Bits(), 0))
	c.addr(&a)
	number(c, &bits)
	if c.reading && a.IsValid() {
		*v = netip.PrefixFrom(a, int(bits))
		if !v.IsValid() {
			c.fail()
		}
	}
}

func (c *codec) flag(v *bool) {
	x := uint8(0)
	if *v {
		x = 1
	}
	number(c, &x)
	if c.reading {
		*v = x != 0
	}
}

// some describes an optional field: a presence byte, then the field.
func some[T any](c *codec, v **T) {
	there := *v != nil
	c.flag(&there)
	if there {
		c.one(v)
	}
}

func (c *codec) duration(v *time.Duration) {
	x := uint64(max(*v, 0))
	if !c.reading && x%uint64(time.Millisecond) == 0 {
		x = x/uint64(time.Millisecond)<<1 | 1
	} else if !c.reading {
		x <<= 1
	}
	number(c, &x)
	if !c.reading {
		return
	}
	if x&1 != 0 {
		*v = time.Duration(x>>1) * time.Millisecond
	} else {
		*v = time.Duration(x >> 1)
	}
}

func (c *codec) time(v *time.Time) {
	var x uint64
	if !v.IsZero() {
		x = uint64(v.UnixNano())
	}
	number(c, &x)
	if c.reading && x != 0 {
		*v = time.Unix(0, int64(x))
	}
}

// list describes a slice. An element takes at least a byte, so a number cannot allocate more than the input's size.
func list[T any](c *codec, v *[]T, field func(*T)) {
	n := uint64(len(*v))
	number(c, &n)
	if c.reading {
		if n > uint64(len(c.b)) {
			c.fail()
			return
		}
		*v = nil
		if n > 0 {
			*v = make([]T, n)
		}
	}
	for i := range *v {
		if c.failed {
			return
		}
		field(&(*v)[i])
	}
}

func (c *codec) numbers32(v *[]uint32) { list(c, v, func(x *uint32) { number(c, x) }) }

// optional describes fields that may be absent, behind a bit map: an absent field costs a bit.
func (c *codec) optional(fields ...any) {
	var bits uint32
	for i, f := range fields {
		if !c.reading && !reflect.ValueOf(f).Elem().IsNil() {
			bits |= 1 << i
		}
	}
	number(c, &bits)
	for i, f := range fields {
		if bits>>i&1 != 0 {
			c.one(f)
		}
	}
}

// one describes an optional field that is present.
func (c *codec) one(field any) {
	switch v := field.(type) {
	case **uint8:
		number(c, made(c, v))
	case **uint16:
		number(c, made(c, v))
	case **uint32:
		number(c, made(c, v))
	case **uint64:
		number(c, made(c, v))
	case **pfcp.Interface:
		number(c, made(c, v))
	case **bool:
		c.flag(made(c, v))
	case **string:
		c.text(made(c, v))
	case **time.Duration:
		c.duration(made(c, v))
	case **time.Time:
		c.time(made(c, v))
	case **pfcp.FTEID:
		c.fteid(made(c, v))
	case **pfcp.Volumes:
		x := made(c, v)
		c.optional(&x.Total, &x.Uplink, &x.Downlink)
	case **pfcp.Forwarding:
		c.forwarding(made(c, v))
	case **pfcp.Duplicating:
		c.duplicating(made(c, v))
	case **pfcp.OuterHeader:
		c.outer(made(c, v))
	case **pfcp.Redirect:
		c.redirect(made(c, v))
	case **api.Session:
		c.line(made(c, v))
	case **api.Policer:
		row(c, made(c, v))
	default:
		c.fail()
	}
}

func made[T any](c *codec, v **T) *T {
	if c.reading {
		*v = new(T)
	}
	return *v
}
