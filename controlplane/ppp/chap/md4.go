// SPDX-License-Identifier: Apache-2.0

package chap

import (
	"encoding/binary"
	"math/bits"
)

// md4 is RFC 1320. It is broken as a hash; MS-CHAPv2 is built on it, and nothing else here is.
func md4(message []byte) (sum [16]byte) {
	b := append([]byte{}, message...)
	b = append(b, 0x80)
	for len(b)%64 != 56 {
		b = append(b, 0)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(message))*8)
	state := [4]uint32{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}
	for ; len(b) > 0; b = b[64:] {
		md4Block(&state, b[:64])
	}
	for i, v := range state {
		binary.LittleEndian.PutUint32(sum[4*i:], v)
	}
	return sum
}

// md4Rounds: of each round the constant, the order of words and the four shifts (RFC 1320 §3.4).
var md4Rounds = [3]struct {
	add   uint32
	words [16]uint8
	shift [4]int
}{
	{0, [16]uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, [4]int{3, 7, 11, 19}},
	{0x5a827999, [16]uint8{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}, [4]int{3, 5, 9, 13}},
	{0x6ed9eba1, [16]uint8{0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15}, [4]int{3, 9, 11, 15}},
}

func md4Block(state *[4]uint32, block []byte) {
	a, b, c, d := state[0], state[1], state[2], state[3]
	for round := range md4Rounds {
		r := &md4Rounds[round]
		for i, word := range r.words {
			var f uint32
			switch round {
			case 0:
				f = b&c | ^b&d
			case 1:
				f = b&c | b&d | c&d
			default:
				f = b ^ c ^ d
			}
			f += a + r.add + binary.LittleEndian.Uint32(block[4*word:])
			a, b, c, d = d, bits.RotateLeft32(f, r.shift[i%4]), b, c
		}
	}
	state[0] += a
	state[1] += b
	state[2] += c
	state[3] += d
}
