// SPDX-License-Identifier: Apache-2.0

package load

import (
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"time"
)

// Time and frames of a crowd: one heap of alarms, one socket in batches.

type alarm struct {
	at   time.Duration
	home uint32
}

type alarms []alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at < a[j].at }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)        { *a = append(*a, x.(alarm)) }
func (a *alarms) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// Now is monotonic and not zero.
func (c *crowd) Now() time.Duration { return time.Since(c.began) + 1 }

func (c *crowd) wake(i uint32, at time.Duration) {
	h := &c.homes[i]
	if h.wakes = at; at != 0 {
		heap.Push(&c.timers, alarm{at, i})
	}
}

// turn takes what came, or waits for it, and lets clients whose time has come act.
func (c *crowd) turn(ctx context.Context, most time.Duration) error {
	c.expire()
	if err := c.flush(); err != nil {
		return err
	}
	if err := c.receive(most); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if err := c.flush(); err != nil {
		return err
	}
	return ctx.Err()
}

func (c *crowd) expire() {
	for len(c.timers) > 0 && c.timers[0].at <= c.Now() {
		a := heap.Pop(&c.timers).(alarm)
		h := &c.homes[a.home]
		if h.wakes != a.at { // another time was asked for since
			continue
		}
		h.wakes = 0
		if h.dials {
			h.Expire()
		} else {
			c.dialAgain(a.home)
		}
	}
}

func (c *crowd) receive(most time.Duration) error {
	if most > 0 {
		c.file.SetReadDeadline(time.Now().Add(most))
	}
	n, err := c.in.Receive(c.raw)
	if err != nil {
		return err
	}
	for i := range n {
		c.frame(c.inRoom[i][:c.in.Length(i)])
	}
	return nil
}

// macOf is a subscriber's address.
func macOf(i uint32) [6]byte {
	b := [6]byte{2, 0xaa}
	binary.BigEndian.PutUint32(b[2:], i)
	return b
}

// frame gives a frame to the subscriber whose address it has, or to all of the line where it is a group's.
func (c *crowd) frame(f []byte) {
	if len(f) < 14 || f[0] != 2 || f[1] != 0xaa {
		return
	}
	i := binary.BigEndian.Uint32(f[2:])
	at := 12
	for at+4 < len(f) && (binary.BigEndian.Uint16(f[at:]) == 0x8100 || binary.BigEndian.Uint16(f[at:]) == 0x88a8) {
		at += 4
	}
	if int(i) >= len(c.homes) || at+2 > len(f) {
		return
	}
	c.result.Received++
	h := &c.homes[i]
	h.peer = [6]byte(f[6:])
	kind, payload := binary.BigEndian.Uint16(f[at:]), f[at+2:]
	if p := ip4In(kind, payload); p != nil && c.isEcho(i, p) || c.isKept(i, kind, payload) {
		return
	}
	h.Receive(kind, payload)
}

// send queues a frame; broadcast: not to the gateway alone.
func (c *crowd) send(i uint32, broadcast bool, etherType uint16, payload []byte) {
	to := c.homes[i].peer
	if broadcast {
		to = [6]byte{255, 255, 255, 255, 255, 255}
	}
	c.sendTo(i, to, etherType, payload)
}

func (c *crowd) sendTo(i uint32, to [6]byte, etherType uint16, payload []byte) {
	if c.queued == batch {
		c.flush()
	}
	own := macOf(i)
	f := append(append(c.room[c.queued][:0], to[:]...), own[:]...)
	if c.opt.STag != 0 {
		f = binary.BigEndian.AppendUint16(f, 0x88a8)
		f = binary.BigEndian.AppendUint16(f, c.opt.STag+uint16(i/perSTag))
		f = binary.BigEndian.AppendUint16(f, 0x8100)
		f = binary.BigEndian.AppendUint16(f, uint16(i%perSTag)+1)
	}
	f = append(binary.BigEndian.AppendUint16(f, etherType), payload...)
	for len(f) < 60 {
		f = append(f, 0)
	}
	c.room[c.queued] = f
	c.out.SetBuffer(c.queued, f)
	c.queued++
	c.result.Sent++
}

func (c *crowd) flush() error {
	for c.queued > 0 {
		n, err := c.out.Send(c.raw, c.queued)
		if errors.Is(err, syscall.ENOBUFS) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			c.queued = 0
			return err
		}
		c.queued -= n
		for k := range c.queued { // the rest moves to the front
			c.room[k], c.room[k+n] = c.room[k+n], c.room[k]
			c.out.SetBuffer(k, c.room[k])
		}
	}
	return nil
}
