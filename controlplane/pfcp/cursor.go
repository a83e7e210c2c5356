// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"encoding/binary"
	"net/netip"
)

// cursor takes fields off the value of one IE with presence flags. A short value gives one error at the end; fields
// behind it are zero.
type cursor struct {
	b     []byte
	short bool
}

func (c *cursor) take(n int) []byte {
	if n > len(c.b) {
		c.short, c.b = true, nil
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) byte() byte {
	if v := c.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) uint16() uint16 {
	if v := c.take(2); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (c *cursor) uint32() uint32 {
	if v := c.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if v := c.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (c *cursor) ipv4() netip.Addr {
	if v := c.take(4); v != nil {
		return netip.AddrFrom4([4]byte(v))
	}
	return netip.Addr{}
}

func (c *cursor) ipv6() netip.Addr {
	if v := c.take(16); v != nil {
		return netip.AddrFrom16([16]byte(v))
	}
	return netip.Addr{}
}

// counts takes eight octets for each place whose flag is set, from bit 1 on.
func (c *cursor) counts(flags byte, places ...**uint64) {
	for i, at := range places {
		if flags&(1<<i) != 0 {
			n := c.uint64()
			*at = &n
		}
	}
}

// text takes a length of two octets and that many more.
func (c *cursor) text() string { return string(c.take(int(c.uint16()))) }

// end refuses a value that the flags do not account for: P15 and P19 are such values (flags→length).
func (c *cursor) end(ie uint16, n int) *Error {
	if c.short || len(c.b) > 0 {
		return badLength(ie, n)
	}
	return nil
}
