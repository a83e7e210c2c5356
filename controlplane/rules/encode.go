// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"
)

// A session in the store and in memory: a version, then fields in the order of the structs, integers as varints,
// optional fields behind a bit map of what is there. A typical mobile session takes about 150 bytes. Version 2 has what
// DROBU asked for, version 3 the CHOOSE IDs of F-TEIDs, version 4 whether the session was inherited, version 5 its
// pipe; what earlier versions wrote is read.
const encodingVersion = 5

var ErrEncoding = errors.New("a stored session does not follow its encoding")

// codec writes a session, or reads it: one description of the layout serves both directions.
type codec struct {
	b       []byte
	version uint8
	reading bool
	failed  bool
}

func encode(s *Session) []byte { return AppendSession(make([]byte, 0, 320), s) }

func AppendSession(b []byte, s *Session) []byte {
	c := codec{b: append(b, encodingVersion), version: encodingVersion}
	c.session(s)
	return c.b
}

func Decode(b []byte) (*Session, error) {
	if len(b) == 0 || b[0] == 0 || b[0] > encodingVersion {
		return nil, ErrEncoding
	}
	s := &Session{}
	c := codec{b: b[1:], version: b[0], reading: true}
	c.session(s)
	if c.failed || len(c.b) != 0 {
		return nil, ErrEncoding
	}
	return s, nil
}

// session is the layout of an encoded session; those of its rules stand beside them (pdr.go, far.go, qer.go, urr.go). A
// field that is added raises encodingVersion, and is there from that version on.
func (c *codec) session(s *Session) {
	c.fixed64(&s.SEID)
	c.fixed64(&s.CP.SEID)
	c.addr(&s.CP.IPv4)
	c.addr(&s.CP.IPv6)
	c.text(&s.Owner)
	number(c, &s.Worker)
	number(c, &s.Inactivity)
	if c.version >= 2 {
		number(c, &s.Discards)
		c.fixed32(&s.Association)
	}
	c.text(&s.UserID)
	c.text(&s.APN)
	c.text(&s.SNSSAI)
	list(c, &s.FQCSID, c.bytes)
	if c.version >= 4 {
		c.flag(&s.Moved)
	}
	if c.version >= 5 {
		number(c, &s.Pipe)
	}
	list(c, &s.PDR, c.pdr)
	list(c, &s.FAR, c.far)
	list(c, &s.QER, c.qer)
	list(c, &s.URR, c.urr)
	list(c, &s.BAR, c.bar)
	list(c, &s.Endpoint, c.endpoint)
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

// take reads bytes behind their number; the result aliases the encoded session, so what is kept of it is copied.
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

// some describes an optional field: a byte that tells whether it is there, then the field.
func some[T any](c *codec, v **T, field func(*T)) {
	there := *v != nil
	c.flag(&there)
	if c.reading {
		*v = nil
		if there {
			*v = new(T)
		}
	}
	if there {
		field(*v)
	}
}

func someNumber[T integer](c *codec, v **T) { some(c, v, func(x *T) { number(c, x) }) }

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

// list describes a slice. An element takes at least a byte, so a number cannot make us allocate more than we were
// given.
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

// present is a bit map of optional fields: what is absent costs a bit.
type present struct {
	c    *codec
	bits uint32
	at   int
}

// has takes the next bit when reading; when writing, the caller has set them all.
func has[T any](p *present, v **T) bool {
	bit := uint32(1) << p.at
	p.at++
	if p.bits&bit == 0 {
		return false
	}
	if p.c.reading {
		*v = new(T)
	}
	return true
}

func (c *codec) presence(bits ...bool) present {
	p := present{c: c}
	for i, b := range bits {
		if b {
			p.bits |= 1 << i
		}
	}
	number(c, &p.bits)
	return p
}

func opt[T integer](p *present, v **T) {
	if has(p, v) {
		number(p.c, *v)
	}
}

func optDuration(p *present, v **time.Duration) {
	if has(p, v) {
		p.c.duration(*v)
	}
}
