// SPDX-License-Identifier: Apache-2.0

// Package api has the message types generated from isthmus_api.h, and the helpers that turn them into bytes and back. A
// message is its memory image in host byte order: both processes run on one machine. check.sh refuses padding that a
// struct does not spell out.
package api

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"unsafe"
)

// Message is every generated type that goes over the socket: fixed layout, no pointers.
type Message interface {
	Header | Status | Hello | ObjectHead | Digest | Engine | Port | Interface | Route | Neighbour | ACL | ACLRule |
		Policer | Scheduler | Path | Session | PDR | FAR | QER | URR | Synth | StreamCommand | StatsRequest |
		PortRow | NodeRow | EdgeRow | DropRow | WorkerRow | TotalRow | SessionRow | RouteRow | NeighbourRow | ACLRow |
		SchedulerRow | SynthRow | PathRow | Instance | SDF | FARMore | Usage | Event | Acknowledge | RuleRow | URRRow |
		InstanceRow | EventRow | HolderRow | Address | PartHead | Layout | List
}

// ACLOfInstance and the instance's name are the key of its access list.
const ACLOfInstance = "in/"

// Encode returns the bytes of one message in new memory.
func Encode[T Message](v *T) []byte {
	return Append(nil, v)
}

// Append appends the bytes of one message to b.
func Append[T Message](b []byte, v *T) []byte {
	return append(b, unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))...)
}

// Decode copies the first message of b into v and returns the rest; it fails when b is too short.
func Decode[T Message](b []byte, v *T) ([]byte, error) {
	size := int(unsafe.Sizeof(*v))
	if len(b) < size {
		return nil, fmt.Errorf("%T: %d bytes, need %d", *v, len(b), size)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(v)), size), b)
	return b[size:], nil
}

// DecodeAll decodes an array of messages; it fails when b does not hold a whole number of them.
func DecodeAll[T Message](b []byte) ([]T, error) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(b)%size != 0 {
		return nil, fmt.Errorf("%T: %d bytes are no multiple of %d", zero, len(b), size)
	}
	rows := make([]T, len(b)/size)
	for i := range rows {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&rows[i])), size), b[i*size:])
	}
	return rows, nil
}

// DigestOf is FNV-1a, 64 bits.
func DigestOf(body []byte) uint64 {
	h := fnv(fnvStart)
	h.add(body)
	return uint64(h)
}

// Key is a name as it travels: NUL-terminated, zero-padded.
type Key = [NameSize]byte

// MakeKey fails on names that are empty, hold a NUL, or leave no room for the terminator.
func MakeKey(name string) (Key, error) {
	var k Key
	if name == "" || len(name) >= NameSize || strings.IndexByte(name, 0) >= 0 {
		return k, fmt.Errorf("name %q must have 1 to %d bytes and no NUL", name, NameSize-1)
	}
	copy(k[:], name)
	return k, nil
}

// ShortKey makes a key for an object without a name (a neighbour): the text if it fits, else its digest in hex.
func ShortKey[T string | []byte](text T) Key {
	var k Key
	if len(text) >= NameSize {
		var sum [8]byte
		binary.BigEndian.PutUint64(sum[:], DigestOf([]byte(text)))
		text = T(hex.EncodeToString(sum[:]))
	}
	copy(k[:], text)
	return k
}

// CString reads a NUL-terminated field; a field without terminator is read whole.
func CString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// PutCString fills a text field; it fails when the text and its terminator do not fit.
func PutCString(field []byte, s string) error {
	if len(s) >= len(field) || strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("%q: longer than %d bytes, or holds a NUL", s, len(field)-1)
	}
	clear(field)
	copy(field, s)
	return nil
}

// PutURL fills a text field with a URL, in the characters that the data plane sends in a header of HTTP.
func PutURL(field []byte, s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%q: empty, or with a character that no URL has", s)
	}
	return PutCString(field, s)
}

// Limits of a policer: bytes per second, and bytes. As in dataplane/modules/meter/meter.c.
const (
	MostRate  = 1e12
	MostBurst = 1 << 40
)

// FromAddr makes a host address; the zero netip.Addr gives family 0.
func FromAddr(a netip.Addr) Address {
	if !a.IsValid() {
		return Address{}
	}
	return FromPrefix(netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
}

// FromPrefix keeps the host bits (an interface has both an address and a prefix length).
func FromPrefix(p netip.Prefix) Address {
	var a Address
	if !p.IsValid() {
		return a
	}
	a.Prefix = byte(p.Bits())
	if p.Addr().Is4() {
		a.Family = 4
		b := p.Addr().As4()
		copy(a.Bytes[:], b[:])
		return a
	}
	a.Family = 6
	a.Bytes = p.Addr().As16()
	return a
}

// Netip is FromPrefix's inverse; the zero netip.Prefix for family 0 and for an address that is not well-formed.
func (a Address) Netip() netip.Prefix {
	switch {
	case a.Family == 4 && a.Prefix <= 32:
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(a.Bytes[:4])), int(a.Prefix))
	case a.Family == 6 && a.Prefix <= 128:
		return netip.PrefixFrom(netip.AddrFrom16(a.Bytes), int(a.Prefix))
	}
	return netip.Prefix{}
}

// String prints a host address without its length, a prefix with it, and family 0 as "".
func (a Address) String() string {
	p := a.Netip()
	switch {
	case !p.IsValid():
		return ""
	case p.IsSingleIP():
		return p.Addr().String()
	}
	return p.String()
}
