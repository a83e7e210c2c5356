// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"encoding/binary"

	"isthmus/controlplane/pfcp"
)

// answerLog is a queue of answers as bytes, in chunks. An answer lies within one chunk, so that it can be read in
// place.
type answerLog struct {
	chunks [][]byte // the first has the head, the last is appended to
	number uint64   // of the first chunk
	head   int      // offset of the head
	count  int      // answers in it, known or not
	bytes  int64    // memory of the chunks
	spare  []byte
}

// place is where an answer is: the number of its chunk, then its offset.
type place uint64

const (
	answerChunk  = 16 << 10
	offsetBits   = 20              // an answer is a datagram, and a chunk is made for a long one
	answerHeader = 24 + 8 + 8 + 4  // key, digest, expiry, length
	spareChunk   = answerChunk * 2 // a longer one is not kept for later
)

func (l *answerLog) add(t *kept) place {
	need := answerHeader + len(t.answer)
	if n := len(l.chunks); n == 0 || len(l.chunks[n-1])+need > cap(l.chunks[n-1]) {
		next := l.spare
		if l.spare = nil; cap(next) < need {
			next = make([]byte, 0, max(answerChunk, need))
		}
		l.chunks = append(l.chunks, next)
		l.bytes += int64(cap(next))
	}
	last := len(l.chunks) - 1
	b := l.chunks[last]
	at := place((l.number+uint64(last))<<offsetBits | uint64(len(b)))
	b = append(b, t.key.addr[:]...)
	b = binary.NativeEndian.AppendUint16(b, t.key.port)
	b = append(b, t.key.socket, byte(t.key.typ))
	b = binary.NativeEndian.AppendUint32(b, t.key.sequence)
	b = binary.NativeEndian.AppendUint64(b, t.digest)
	b = binary.NativeEndian.AppendUint64(b, uint64(t.expires))
	b = binary.NativeEndian.AppendUint32(b, uint32(len(t.answer)))
	l.chunks[last] = append(b, t.answer...)
	l.count++
	return at
}

// at reads an answer that is in the log. Its bytes are the log's.
func (l *answerLog) at(p place) (t kept) {
	b := l.chunks[uint64(p)>>offsetBits-l.number][p&(1<<offsetBits-1):]
	copy(t.key.addr[:], b)
	t.key.port = binary.NativeEndian.Uint16(b[16:])
	t.key.socket, t.key.typ = b[18], pfcp.MessageType(b[19])
	t.key.sequence = binary.NativeEndian.Uint32(b[20:])
	t.digest = binary.NativeEndian.Uint64(b[24:])
	t.expires = int64(binary.NativeEndian.Uint64(b[32:]))
	n := binary.NativeEndian.Uint32(b[40:])
	t.answer = b[answerHeader : answerHeader+n]
	return t
}

func (l *answerLog) first() (p place, t kept, ok bool) {
	if len(l.chunks) == 0 {
		return 0, t, false
	}
	p = place(l.number<<offsetBits | uint64(l.head))
	return p, l.at(p), true
}

// drop takes out the first. A chunk that is empty then is kept for later, or given back.
func (l *answerLog) drop() {
	_, t, _ := l.first()
	l.count--
	l.head += answerHeader + len(t.answer)
	if l.head < len(l.chunks[0]) {
		return
	}
	empty := l.chunks[0]
	l.bytes -= int64(cap(empty))
	if cap(empty) <= spareChunk {
		l.spare = empty[:0]
	}
	l.chunks[0] = nil
	l.chunks = l.chunks[1:]
	l.number++
	l.head = 0
}
