// SPDX-License-Identifier: Apache-2.0

package pfcp

// Makers of table rows. In each, at names the place in T that the IE's value goes to.

func need[T any](f field[T]) field[T] {
	f.mandatory = true
	return f
}

// value is an IE whose value is stored as it is.
func value[T, V any](ie uint16, read func([]byte) (V, *Error), at func(*T) *V) field[T] {
	return field[T]{ie: ie, read: func(v []byte, t *T) *Error {
		x, refusal := read(v)
		if refusal == nil {
			*at(t) = x
		}
		return refusal
	}}
}

// optional is an IE whose absence is told from every value.
func optional[T, V any](ie uint16, read func([]byte) (V, *Error), at func(*T) **V) field[T] {
	return field[T]{ie: ie, read: func(v []byte, t *T) *Error {
		x, refusal := read(v)
		if refusal == nil {
			*at(t) = &x
		}
		return refusal
	}}
}

// list is an IE that may come several times.
func list[T, V any](ie uint16, read func([]byte) (V, *Error), at func(*T) *[]V) field[T] {
	return field[T]{ie: ie, many: true, read: func(v []byte, t *T) *Error {
		x, refusal := read(v)
		if places := at(t); refusal == nil {
			*places = append(*places, x)
		}
		return refusal
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
	}}
}

// named is a grouped IE that holds nothing but an id: Remove PDR, Query URR and so on.
func named[T, V any](ie, id uint16, read func([]byte) (V, *Error), at func(*T) *[]V) field[T] {
	g := newGroup([]field[V]{need(value(id, read, func(v *V) *V { return v }))}, nil)
	return each(ie, g, at)
}
