// SPDX-License-Identifier: Apache-2.0

package dptest

import (
	"encoding/binary"
	"reflect"

	"isthmus/api"
)

// Fill gives tables, by the types of their rows, a row of zeros and one of numbers. Each field has the next number,
// each text is "a", each address a network. There is one row of totals.
func (s *Server) Fill(tables map[uint32]reflect.Type) {
	for table, row := range tables {
		numbers := reflect.New(row)
		number(numbers.Elem(), new(uint64))
		var body []byte
		if table != api.TableTotal {
			body = appendPart(body, reflect.New(row))
		}
		s.SetTable(table, appendPart(body, numbers))
	}
}

// appendPart is api.AppendRow of a struct type known at run time. The contract's structs have no padding.
func appendPart(b []byte, row reflect.Value) []byte {
	size := row.Elem().Type().Size()
	b = binary.NativeEndian.AppendUint16(b, row.Interface().(interface{ PartNumber() uint16 }).PartNumber())
	b = binary.NativeEndian.AppendUint16(b, uint16(size))
	b = binary.NativeEndian.AppendUint32(b, 1)
	b, err := binary.Append(b, binary.NativeEndian, row.Interface())
	if err != nil {
		panic(err) // a row has a field without a size
	}
	return append(b, make([]byte, -size&7)...)
}

func number(v reflect.Value, last *uint64) {
	if a, ok := v.Addr().Interface().(*api.Address); ok {
		*a = api.Address{Family: 4, Prefix: 24, Bytes: [16]byte{192, 0, 2}}
		return
	}
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			number(v.Field(i), last)
		}
	case v.Kind() == reflect.Array && v.Type().Elem().Kind() == reflect.Uint8:
		v.Index(0).SetUint('a')
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			number(v.Index(i), last)
		}
	case v.CanUint():
		*last++
		v.SetUint(*last)
	case v.CanInt():
		*last++
		v.SetInt(int64(*last))
	}
}
