// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Row is every struct that is a part: types_gen.go gives it its number.
type Row[T any] interface {
	*T
	PartNumber() uint16
}

func number[T any, P Row[T]]() uint16 { return P(nil).PartNumber() }

// MaxObject is the most bytes of an object's parts.
const MaxObject = MaxBody - SizeofPartHead - SizeofObjectHead

// PartRoom is the bytes of a part of so many structs, or of none.
func PartRoom(size, count int) int {
	if count == 0 {
		return 0
	}
	return SizeofPartHead + (size*count+7)&^7
}

// AppendRows appends a part; nothing when there are no rows.
func AppendRows[T any, P Row[T]](b []byte, rows []T) []byte {
	if len(rows) == 0 {
		return b
	}
	var zeros [8]byte
	size := int(unsafe.Sizeof(rows[0]))
	b = binary.NativeEndian.AppendUint16(b, number[T, P]())
	b = binary.NativeEndian.AppendUint16(b, uint16(size))
	b = binary.NativeEndian.AppendUint32(b, uint32(len(rows)))
	b = append(b, unsafe.Slice((*byte)(unsafe.Pointer(&rows[0])), size*len(rows))...)
	return append(b, zeros[:-(size*len(rows))&7]...)
}

// AppendRow appends a part of one struct.
func AppendRow[T any, P Row[T]](b []byte, v *T) []byte {
	return AppendRows[T, P](b, unsafe.Slice(v, 1))
}

// Body is a part of one struct in new memory.
func Body[T any, P Row[T]](v *T) []byte {
	return AppendRow[T, P](make([]byte, 0, PartRoom(int(unsafe.Sizeof(*v)), 1)), v)
}

// Part is one part of a body, in its writer's sizes.
type Part struct {
	Number      uint16
	Size, Count int
	Rows        []byte
}

// NextPart reads the first part of a body that is not empty, and returns the rest.
func NextPart(b []byte) (p Part, rest []byte, err error) {
	if len(b) < SizeofPartHead {
		return p, nil, fmt.Errorf("a message ends within the head of a part (%d bytes)", len(b))
	}
	count := binary.NativeEndian.Uint32(b[4:])
	p = Part{Number: binary.NativeEndian.Uint16(b), Size: int(binary.NativeEndian.Uint16(b[2:])), Count: int(count)}
	b = b[SizeofPartHead:]
	bytes := uint64(p.Size) * uint64(count)
	padded := (bytes + 7) &^ 7
	if p.Size == 0 || padded > uint64(len(b)) {
		return p, nil, fmt.Errorf("a part of %d structs of %d bytes (%s) does not fit into its message", count, p.Size,
			PartName(p.Number))
	}
	for _, c := range b[bytes:padded] {
		if c != 0 {
			return p, nil, fmt.Errorf("the padding of a part (%s) is not zero", PartName(p.Number))
		}
	}
	p.Rows = b[:bytes]
	return p, b[padded:], nil
}

// maxGrowth limits how far a struct may grow within a version, in multiples of its first released size. It bounds the
// memory that each byte from a peer takes in rows.
const maxGrowth = 2

// rowsOf returns a part's structs in our size. Unsent fields are zero; fields that we do not know are dropped, which is
// safe in reports.
func rowsOf[T any](p Part) ([]T, error) {
	size := int(unsafe.Sizeof(*new(T)))
	if p.Count > 0 && p.Size*maxGrowth < size {
		return nil, fmt.Errorf("%s of %d bytes, which has %d here: there never was one so short",
			PartName(p.Number), p.Size, size)
	}
	list := make([]T, p.Count)
	for i := range list {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&list[i])), size), p.Rows[i*p.Size:(i+1)*p.Size])
	}
	return list, nil
}

// TakeRows reads the first part of a body when it is of this type, and returns the rest; else there are no rows.
func TakeRows[T any, P Row[T]](b []byte) ([]T, []byte, error) {
	if len(b) == 0 {
		return nil, b, nil
	}
	p, rest, err := NextPart(b)
	if err != nil || p.Number != number[T, P]() {
		return nil, b, err
	}
	list, err := rowsOf[T](p)
	return list, rest, err
}

// ReadRows reads a body whose parts are all of one type.
func ReadRows[T any, P Row[T]](b []byte) ([]T, error) {
	var list []T
	for len(b) > 0 {
		p, rest, err := NextPart(b)
		if err == nil && p.Number != number[T, P]() {
			err = fmt.Errorf("%s where %s is expected", PartName(p.Number), PartName(number[T, P]()))
		}
		var more []T
		if err == nil {
			more, err = rowsOf[T](p)
		}
		if err != nil {
			return nil, err
		}
		if b = rest; list == nil {
			list = more
		} else {
			list = append(list, more...)
		}
	}
	return list, nil
}

// ReadRow reads the first part of a body, which has one struct, and returns the rest.
func ReadRow[T any, P Row[T]](b []byte, v *T) (rest []byte, err error) {
	list, rest, err := TakeRows[T, P](b)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("no message of one %s", PartName(number[T, P]()))
	}
	if err == nil {
		*v = list[0]
	}
	return rest, err
}

// BodyDigest is the value of api_digest for an object with this body. It does not depend on struct sizes: with further
// fields that are zero the digest stays the same. A body without parts has a digest of its bytes.
func BodyDigest(body []byte) uint64 {
	h := fnv(fnvStart)
	for b := body; len(b) > 0; {
		p, rest, err := NextPart(b)
		if err != nil {
			return DigestOf(body)
		}
		b = rest
		if p.Count == 0 {
			continue
		}
		h.add16(p.Number)
		h.add16(uint16(p.Count))
		h.add16(uint16(p.Count >> 16))
		for i := range p.Count {
			r := p.Rows[i*p.Size : (i+1)*p.Size]
			for len(r) >= 8 && binary.NativeEndian.Uint64(r[len(r)-8:]) == 0 {
				r = r[:len(r)-8]
			}
			for len(r) > 0 && r[len(r)-1] == 0 {
				r = r[:len(r)-1]
			}
			h.add16(uint16(len(r)))
			h.add(r)
		}
	}
	return uint64(h)
}

// KeyOrder is the place of an object's key in the order of LIST (api_list).
func KeyOrder(key string) uint64 {
	h := fnv(fnvStart)
	for i := range len(key) {
		h = (h ^ fnv(key[i])) * fnvPrime
	}
	x := uint64(h)
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// fnv is FNV-1a, 64 bits.
type fnv uint64

const (
	fnvStart  = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
	fnvPrime8 = 0x1efac7090aef4a21 // its 8th power, modulo 2^64
)

// add: most of a body is the padding of names, and a zero is a multiplication, so eight of them are one.
func (h *fnv) add(b []byte) {
	v := *h
	for ; len(b) >= 8; b = b[8:] {
		if binary.NativeEndian.Uint64(b) == 0 {
			v *= fnvPrime8
			continue
		}
		for _, c := range b[:8] {
			v = (v ^ fnv(c)) * fnvPrime
		}
	}
	for _, c := range b {
		v = (v ^ fnv(c)) * fnvPrime
	}
	*h = v
}

func (h *fnv) add16(v uint16) {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], v)
	h.add(b[:])
}
