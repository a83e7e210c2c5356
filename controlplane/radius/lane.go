// SPDX-License-Identifier: Apache-2.0

package radius

// lane is a socket or connection: 256 identifiers, each for one request at a time. Guarded by its server's lock.
type lane struct {
	send  func([]byte) error // from any goroutine, without the lock; does not wait for the peer
	close func()
	slots [256]slot
	free  [256]uint8 // ring: the longest free one is used first, so that late answers are recognised
	head  int
	count int
}

type slot struct {
	e         *exchange
	lastAuth  [16]byte // of the request that has or last had the identifier
	everTaken bool
}

func newLane(send func([]byte) error, close func()) *lane {
	l := &lane{send: send, close: close, count: 256}
	for i := range l.free {
		l.free[i] = uint8(i)
	}
	return l
}

func (l *lane) take(e *exchange) uint8 {
	id := l.free[l.head]
	l.head = (l.head + 1) % 256
	l.count--
	l.slots[id].e = e
	e.slots = append(e.slots, place{l, id})
	return id
}

func (l *lane) release(id uint8) {
	l.slots[id].e = nil
	l.free[(l.head+l.count)%256] = id
	l.count++
}
