// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	maxDatagram  = 65536 // a UDP datagram of 64 kB, put together by the kernel, fits (row P34)
	receiveBatch = 16
	sendBatch    = 64
	sendQueue    = 8192
	socketBuffer = 16 << 20
)

// mmsghdr is struct mmsghdr of Linux.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

// socket is one listen address. One goroutine reads it, one writes it; everybody else puts into out.
type socket struct {
	index uint8
	local netip.AddrPort
	conn  *net.UDPConn
	raw   syscall.RawConn
	out   chan datagram
}

type datagram struct {
	to netip.AddrPort
	b  []byte // nobody writes it any more
}

func openSocket(index int, local netip.AddrPort) (*socket, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(local))
	if err != nil {
		return nil, fmt.Errorf("PFCP: %w", err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("PFCP: %w", err)
	}
	raw.Control(func(fd uintptr) {
		for _, o := range []struct{ force, plain int }{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
			if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o.force, socketBuffer) != nil {
				// Without CAP_NET_ADMIN the kernel gives what net.core.rmem_max allows.
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o.plain, socketBuffer)
			}
		}
	})
	addr := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return &socket{
		index: uint8(index), local: netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), conn: conn, raw: raw,
		out: make(chan datagram, sendQueue),
	}, nil
}

// batch is the memory of one recvmmsg or sendmmsg. The kernel follows pointers from hdrs to iovs, names and buffers; all
// of them are kept by this struct, which does not move.
type batch struct {
	hdrs  []mmsghdr
	iovs  []unix.Iovec
	names []unix.RawSockaddrInet6 // large enough for IPv4 too
}

func newBatch(n int) *batch {
	b := &batch{hdrs: make([]mmsghdr, n), iovs: make([]unix.Iovec, n), names: make([]unix.RawSockaddrInet6, n)}
	for i := range b.hdrs {
		h := &b.hdrs[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		h.Iov = &b.iovs[i]
		h.SetIovlen(1)
	}
	return b
}

func (b *batch) address(i int) netip.AddrPort {
	n := &b.names[i]
	if n.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(n))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), swap(v4.Port))
	}
	return netip.AddrPortFrom(netip.AddrFrom16(n.Addr).Unmap(), swap(n.Port))
}

func (b *batch) setAddress(i int, to netip.AddrPort) {
	h, n := &b.hdrs[i].hdr, &b.names[i]
	if to.Addr().Is4() {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(n))
		*v4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: swap(to.Port()), Addr: to.Addr().As4()}
		h.Namelen = unix.SizeofSockaddrInet4
		return
	}
	*n = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: swap(to.Port()), Addr: to.Addr().As16()}
	h.Namelen = unix.SizeofSockaddrInet6
}

// swap is htons and ntohs: the kernel keeps ports in network order, on every machine.
func swap(v uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&v))
	return uint16(b[0])<<8 | uint16(b[1])
}

// call runs recvmmsg or sendmmsg on the first n messages, once.
func (b *batch) call(trap, fd uintptr, n int) (int, syscall.Errno) {
	done, _, errno := unix.Syscall6(trap, fd, uintptr(unsafe.Pointer(&b.hdrs[0])), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
	return int(done), errno
}

// read gives every datagram to take until the socket is closed. The bytes are take's only until it returns.
func (s *Server) read(ctx context.Context, k *socket, take func(k *socket, from netip.AddrPort, b []byte)) {
	memory := make([]byte, receiveBatch*maxDatagram)
	b := newBatch(receiveBatch)
	for i := range b.iovs {
		b.iovs[i].Base = &memory[i*maxDatagram]
		b.iovs[i].SetLen(maxDatagram)
	}
	for ctx.Err() == nil {
		for i := range b.hdrs {
			b.hdrs[i].hdr.Namelen = unix.SizeofSockaddrInet6
		}
		var n int
		var errno syscall.Errno
		err := k.raw.Read(func(fd uintptr) bool {
			n, errno = b.call(unix.SYS_RECVMMSG, fd, receiveBatch)
			return errno != unix.EAGAIN && errno != unix.EINTR
		})
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil || errno != 0:
			s.event(eventReceiveFailed)
			pause(ctx, 10*time.Millisecond)
			continue
		}
		for i := range n {
			l := min(int(b.hdrs[i].n), maxDatagram)
			take(k, b.address(i), memory[i*maxDatagram:i*maxDatagram+l])
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// write sends what is in out until ctx ends, as many at once as wait.
func (s *Server) write(ctx context.Context, k *socket) {
	b := newBatch(sendBatch)
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
		s.flush(k, b, held)
	}
}

func (s *Server) flush(k *socket, b *batch, held []datagram) {
	for len(held) > 0 {
		for i, d := range held {
			b.iovs[i].Base = &d.b[0]
			b.iovs[i].SetLen(len(d.b))
			b.setAddress(i, d.to)
		}
		var n int
		var errno syscall.Errno
		err := k.raw.Write(func(fd uintptr) bool {
			n, errno = b.call(unix.SYS_SENDMMSG, fd, len(held))
			return errno != unix.EAGAIN && errno != unix.EINTR
		})
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || errno != 0 || n < 1 {
			// sendmmsg fails for the first message alone: without it the others may go.
			s.event(eventSendFailed)
			n = 1
		}
		held = held[n:]
	}
}

// send puts a message out. A full queue loses it, like the network would: the peer's retransmission gets the kept answer.
func (s *Server) send(k *socket, to netip.AddrPort, b []byte) {
	s.count.sent[b[1]].Add(1)
	select {
	case k.out <- datagram{to, b}:
	default:
		s.event(eventSendQueueFull)
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
