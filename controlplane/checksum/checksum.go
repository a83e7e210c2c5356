// SPDX-License-Identifier: Apache-2.0

// Package checksum is the Internet checksum (RFC 1071).
package checksum

// Sum adds octets to a sum; only the last part of a message may be of odd length.
func Sum(b []byte, start uint32) uint32 {
	for len(b) >= 2 {
		start += uint32(b[0])<<8 | uint32(b[1])
		b = b[2:]
	}
	if len(b) > 0 {
		start += uint32(b[0]) << 8
	}
	return start
}

// Of is the checksum of octets and a former sum; 0 if they include a right checksum.
func Of(b []byte, start uint32) uint16 {
	s := Sum(b, start)
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}
