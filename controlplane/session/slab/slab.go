// SPDX-License-Identifier: Apache-2.0

// Package slab holds encoded sessions in memory.
package slab

import (
	"encoding/binary"
	"iter"
)

// Slab is the memory of encoded sessions: slots of equal size in pages without pointers. A million sessions are a few
// thousand objects to the garbage collector, and cost their length. A record is never changed: another replaces it, and
// its slot is freed when no transaction can restore it (see txn).
type Slab struct {
	classes [maxSlot/slotStep + 1]slotClass // by length in steps; 0: records that are longer than any slot
	long    map[uint32][]byte
	last    uint32 // number given to a long record
	Bytes   uint64 // of all data
	Count   int
}

// slotClass has the slots of one size, numbered from 0 over all its pages.
type slotClass struct {
	pages [][]byte
	used  uint32   // slots that were ever used
	free  []uint32 // slots that are free again
}

const (
	slotStep   = 16
	maxSlot    = 1024
	recordPage = 32 << 10
	recordHead = 8 + 4 + 2 // number in the store, number of the owner, length of the session
)

// Handle names a record: the class, then its slot. 0 is none: valid handles have a class, or a number from 1 on.
type Handle uint64

func (h Handle) split() (class int, slot uint32) { return int(h >> 32), uint32(h) }

func slotsInPage(class int) uint32 { return uint32(recordPage / (class * slotStep)) }

// Add makes a record; it copies data.
func (r *Slab) Add(number uint64, owner uint32, data []byte) Handle {
	need := recordHead + len(data)
	r.Bytes += uint64(len(data))
	r.Count++
	class := (need + slotStep - 1) / slotStep
	if class >= len(r.classes) {
		if r.long == nil {
			r.long = map[uint32][]byte{}
		}
		for r.last++; r.last == 0 || r.long[r.last] != nil; r.last++ {
		}
		b := make([]byte, need)
		fillRecord(b, number, owner, data)
		r.long[r.last] = b
		return Handle(r.last)
	}
	c := &r.classes[class]
	var slot uint32
	if n := len(c.free); n > 0 {
		slot = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		if slot = c.used; slot/slotsInPage(class) == uint32(len(c.pages)) {
			c.pages = append(c.pages, make([]byte, recordPage))
		}
		c.used++
	}
	fillRecord(r.slot(class, slot), number, owner, data)
	return Handle(uint64(class)<<32 | uint64(slot))
}

func fillRecord(b []byte, number uint64, owner uint32, data []byte) {
	binary.NativeEndian.PutUint64(b, number)
	binary.NativeEndian.PutUint32(b[8:], owner)
	binary.NativeEndian.PutUint16(b[12:], uint16(len(data)))
	copy(b[recordHead:], data)
}

func (r *Slab) slot(class int, slot uint32) []byte {
	if class == 0 {
		return r.long[slot]
	}
	in := slotsInPage(class)
	at := int(slot%in) * class * slotStep
	return r.classes[class].pages[slot/in][at : at+class*slotStep]
}

// Open reads a record. data is the record's own memory: it is good until the record is freed.
func (r *Slab) Open(h Handle) (number uint64, owner uint32, data []byte) {
	class, slot := h.split()
	b := r.slot(class, slot)
	number, owner = binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint32(b[8:])
	if class == 0 {
		return number, owner, b[recordHead:]
	}
	n := int(binary.NativeEndian.Uint16(b[12:]))
	return number, owner, b[recordHead : recordHead+n : recordHead+n]
}

// Drop frees a record. A class that is empty then gives its pages back.
func (r *Slab) Drop(h Handle) {
	_, _, data := r.Open(h)
	r.Bytes -= uint64(len(data))
	r.Count--
	class, slot := h.split()
	if class == 0 {
		delete(r.long, slot)
		return
	}
	binary.NativeEndian.PutUint64(r.slot(class, slot), 0)
	c := &r.classes[class]
	if c.free = append(c.free, slot); len(c.free) == int(c.used) && len(c.pages) > 1 {
		*c = slotClass{}
	}
}

// All iterates over all records. A record present from the start to the end is passed, whichever others come and go.
func (r *Slab) All() iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for at := (cursor{}); ; {
			if number, data, more := r.next(&at); !more || !yield(number, data) {
				return
			}
		}
	}
}

// cursor is a place among all records.
type cursor struct {
	class int
	slot  uint32
	long  []uint32 // long records that are yet to come
	begun bool
}

// next returns a record and advances; false at the end.
func (r *Slab) next(at *cursor) (number uint64, data []byte, ok bool) {
	if !at.begun {
		at.begun, at.class = true, 1
		for n := range r.long {
			at.long = append(at.long, n)
		}
	}
	for ; at.class < len(r.classes); at.class, at.slot = at.class+1, 0 {
		for at.slot < r.classes[at.class].used {
			h := Handle(uint64(at.class)<<32 | uint64(at.slot))
			at.slot++
			if number, _, data = r.Open(h); number != 0 {
				return number, data, true
			}
		}
	}
	for len(at.long) > 0 {
		n := at.long[0]
		at.long = at.long[1:]
		if r.long[n] != nil {
			number, _, data = r.Open(Handle(n))
			return number, data, true
		}
	}
	return 0, nil, false
}
