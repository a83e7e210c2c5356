// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"isthmus/controlplane/mmsg"
	"isthmus/controlplane/pfcp"
)

const (
	maxDatagram  = 65536 // a UDP datagram of 64 kB, put together by the kernel, fits (row P34)
	receiveBatch = 16
	sendBatch    = 64
	sendQueue    = 8192
	socketBuffer = 16 << 20
)

// socket is one listen address. One goroutine reads it, one writes it; all others put into out.
type socket struct {
	*journal
	requests *requests // of ours, that are sent by it
	index    uint8
	local    netip.AddrPort
	conn     *net.UDPConn
	raw      syscall.RawConn
	out      chan datagram
}

type datagram struct {
	to  netip.AddrPort
	b   []byte    // immutable
	own *outgoing // the memory of b, reused once it is sent; nil: b is kept elsewhere
}

// outgoing is the memory of an answer on its way out.
type outgoing struct{ b []byte }

var outgoings = sync.Pool{New: func() any { return &outgoing{make([]byte, 0, 512)} }}

const longOutgoing = 4096 // longer ones are not kept

func openSocket(index int, local netip.AddrPort, q *requests) (*socket, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(local))
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil, fmt.Errorf("pfcp.listen: %s is no address of this host: give it one (`ip addr add`), or change "+
			"the key", local.Addr())
	}
	if err != nil {
		return nil, fmt.Errorf("PFCP: %w", err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("PFCP: %w", err)
	}
	raw.Control(func(fd uintptr) {
		for _, o := range []struct{ force, plain int }{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF},
			{unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
			if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o.force, socketBuffer) != nil {
				// Without CAP_NET_ADMIN the kernel gives what net.core.rmem_max allows.
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o.plain, socketBuffer)
			}
		}
	})
	addr := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return &socket{
		journal: q.journal, requests: q, index: uint8(index),
		local: netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), conn: conn, raw: raw,
		out: make(chan datagram, sendQueue),
	}, nil
}

// read gives every datagram to take until the socket is closed. The bytes are valid until take returns.
func (k *socket) read(ctx context.Context, take func(k *socket, from netip.AddrPort, b []byte)) {
	memory := make([]byte, receiveBatch*maxDatagram)
	b := mmsg.New(receiveBatch)
	for i := range receiveBatch {
		b.SetBuffer(i, memory[i*maxDatagram:(i+1)*maxDatagram])
	}
	for ctx.Err() == nil {
		n, err := b.Receive(k.raw)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			k.event(eventReceiveFailed)
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		for i := range n {
			take(k, b.Address(i), memory[i*maxDatagram:i*maxDatagram+b.Length(i)])
		}
	}
}

// write sends what is in out until ctx ends, as many at once as wait.
func (k *socket) write(ctx context.Context) {
	b := mmsg.New(sendBatch)
	held := make([]datagram, 0, sendBatch)
	for {
		held = held[:0]
		select {
		case <-ctx.Done():
			return
		case d := <-k.out:
			held = append(held, d)
		}
	more:
		for len(held) < sendBatch {
			select {
			case d := <-k.out:
				held = append(held, d)
			default:
				break more
			}
		}
		k.flush(b, held)
	}
}

// unsent records why our request has no answer.
func (k *socket) unsent(d *datagram, err error) {
	if h, e := pfcp.DecodeHeader(d.b); e == nil && err != nil {
		k.requests.blame(d.to, h.Sequence, "the request cannot be sent", err)
	}
}

func (k *socket) flush(b *mmsg.Batch, held []datagram) {
	for len(held) > 0 {
		for i, d := range held {
			b.SetBuffer(i, d.b)
			b.SetAddress(i, d.to)
		}
		n, err := b.Send(k.raw, len(held))
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n < 1 {
			// sendmmsg fails for the first message alone: without it the others may go.
			k.event(eventSendFailed)
			k.unsent(&held[0], err)
			n = 1
		}
		for i := range n {
			if own := held[i].own; own != nil && cap(own.b) <= longOutgoing {
				outgoings.Put(own)
			}
			held[i] = datagram{}
		}
		held = held[n:]
	}
}

// send sends a message. A full queue drops it, like the network would: the peer's retransmission gets the kept answer.
func (k *socket) send(to netip.AddrPort, b []byte) { k.put(datagram{to: to, b: b}) }

func (k *socket) put(d datagram) {
	k.count.sent[d.b[1]].Add(1)
	select {
	case k.out <- d:
	default:
		k.event(eventSendQueueFull)
	}
}

// lost is how many datagrams the kernel dropped because the receive buffer was full (SO_MEMINFO, last value).
func (k *socket) lost() (n uint64) {
	k.raw.Control(func(fd uintptr) {
		var info [9]uint32
		size := uint32(unsafe.Sizeof(info))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		if errno == 0 && size == uint32(unsafe.Sizeof(info)) {
			n = uint64(info[8])
		}
	})
	return n
}
