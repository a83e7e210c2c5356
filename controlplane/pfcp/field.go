// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"net/netip"
	"time"
)

// Makers of table rows. In each, at names the place in T that the IE's value goes to.

func need[T any](f field[T]) field[T] {
	f.mandatory = true
	return f
}

// value is an IE whose value is stored as it is; the zero value is not written.
func value[T any, V comparable](ie uint16, read func([]byte) (V, *Error), write func(*writer, uint16, V),
	at func(*T) *V) field[T] {
	f := always(ie, read, write, at)
	return f.writes(func(w *writer, t *T) {
		var zero V
		if v := *at(t); v != zero {
			write(w, ie, v)
		}
	})
}

// always is a value that is always written.
func always[T, V any](ie uint16, read func([]byte) (V, *Error), write func(*writer, uint16, V),
	at func(*T) *V) field[T] {
	return field[T]{ie: ie, read: func(v []byte, t *T) *Error {
		x, refusal := read(v)
		if refusal == nil {
			*at(t) = x
		}
		return refusal
	}, write: func(w *writer, t *T) { write(w, ie, *at(t)) }}
}

// optional is an IE whose absence differs from every value.
func optional[T, V any](ie uint16, read func([]byte) (V, *Error), write func(*writer, uint16, V),
	at func(*T) **V) field[T] {
	return field[T]{ie: ie, read: func(v []byte, t *T) *Error {
		x, refusal := read(v)
		if refusal == nil {
			*at(t) = &x
		}
		return refusal
	}, write: func(w *writer, t *T) {
		if v := *at(t); v != nil {
			write(w, ie, *v)
		}
	}}
}

// list is an IE that may come several times.
func list[T, V any](ie uint16, read func([]byte) (V, *Error), write func(*writer, uint16, V),
	at func(*T) *[]V) field[T] {
	return field[T]{ie: ie, many: true, read: func(v []byte, t *T) *Error {
		x, refusal := read(v)
		if places := at(t); refusal == nil {
			*places = append(*places, x)
		}
		return refusal
	}, write: func(w *writer, t *T) {
		for _, v := range *at(t) {
			write(w, ie, v)
		}
	}}
}

// each is a grouped IE that may come several times.
func each[T, V any](ie uint16, g *group[V], at func(*T) *[]V) field[T] {
	return field[T]{ie: ie, many: true, read: func(v []byte, t *T) *Error {
		places := at(t)
		var x V
		if *places == nil {
			*places = make([]V, 0, 2)
		}
		*places = append(*places, x)
		refusal := g.decode(v, &(*places)[len(*places)-1])
		if refusal != nil {
			if *places = (*places)[:len(*places)-1]; len(*places) == 0 {
				*places = nil
			}
		}
		return refusal
	}, write: func(w *writer, t *T) {
		for i := range *at(t) {
			w.group(ie, func() { g.encode(w, &(*at(t))[i]) })
		}
	}}
}

// inner is a grouped IE that comes once.
func inner[T, V any](ie uint16, g *group[V], at func(*T) **V) field[T] {
	return field[T]{ie: ie, read: func(v []byte, t *T) *Error {
		x := new(V)
		refusal := g.decode(v, x)
		if refusal == nil {
			*at(t) = x
		}
		return refusal
	}, write: func(w *writer, t *T) {
		if x := *at(t); x != nil {
			w.group(ie, func() { g.encode(w, x) })
		}
	}}
}

// named is a grouped IE that holds nothing but an id: Remove PDR, Query URR and so on.
func named[T, V any](ie, id uint16, read func([]byte) (V, *Error), write func(*writer, uint16, V),
	at func(*T) *[]V) field[T] {
	g := newGroup([]field[V]{need(always(id, read, write, func(v *V) *V { return v }))}, nil)
	return each(ie, g, at)
}

// writes completes a row.
func (f field[T]) writes(write func(w *writer, t *T)) field[T] {
	f.write = write
	return f
}

// Rows that several messages have.

func nodeRow[T any](at func(*T) *NodeID) field[T] {
	return need(always(ieNodeID, readNodeID, (*writer).node, at))
}

func causeRow[T any](at func(*T) *Cause) field[T] {
	return need(always(ieCause, readCause, write8[Cause], at))
}

func offendingRow[T any](at func(*T) *uint16) field[T] {
	return value(ieOffendingIE, readUint16, (*writer).uint16, at)
}

func recoveryRow[T any](at func(*T) *time.Time) field[T] {
	return need(always(ieRecoveryTimeStamp, readTime, (*writer).time, at))
}

func poolRow[T any](at func(*T) *[]UEPool) field[T] { return each(iePoolInformation, pool, at) }

func setRow[T any](at func(*T) *string) field[T] {
	return value(ieSMFSetID, readSet, (*writer).set, at)
}

func addressRow[T any](ie uint16, at func(*T) *[]netip.Addr) field[T] {
	return field[T]{ie: ie, many: true, read: func(v []byte, t *T) *Error {
		addrs, refusal := readAddresses(v)
		if places := at(t); refusal == nil {
			*places = append(*places, addrs...)
		}
		return refusal
	}, write: func(w *writer, t *T) {
		for _, a := range *at(t) {
			w.source(ie, a)
		}
	}}
}

func flagRow[T any](ie uint16, at func(*T) *bool) field[T] {
	return field[T]{ie: ie, read: func(v []byte, t *T) *Error {
		*at(t) = v[0]&1 != 0
		return nil
	}, write: func(w *writer, t *T) {
		if *at(t) {
			w.uint8(ie, 1)
		}
	}}
}

// featureRows are those of a UP function, else of a CP function; none without features.
func featureRows[T any](up func(*T) *bool, get func(*T) *uint64, put func(*T, *uint64)) (ofUP, ofCP field[T]) {
	read := func(isUP bool) func(v []byte, t *T) *Error {
		return func(v []byte, t *T) *Error {
			if f := flags(v); isUP || !*up(t) {
				*up(t) = isUP
				put(t, &f)
			}
			return nil
		}
	}
	ofCP = field[T]{ie: ieCPFeatures, read: read(false), write: func(w *writer, t *T) {
		switch f := get(t); {
		case f == nil:
		case !*up(t) && *f == 0:
			w.octets(ieCPFeatures, 0)
		default:
			w.features(*up(t), *f)
		}
	}}
	return field[T]{ie: ieUPFeatures, read: read(true)}, ofCP
}
