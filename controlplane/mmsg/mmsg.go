// SPDX-License-Identifier: Apache-2.0

// Package mmsg receives and sends many datagrams (UDP, netlink) with one system call (recvmmsg, sendmmsg), which costs
// more than their contents. Go's own net package has one call for each.
package mmsg

import (
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// header is struct mmsghdr of Linux.
type header struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

// Batch is the memory of one call. The kernel follows pointers from headers to vectors, names and buffers; all of them
// are kept by this struct, which does not move.
type Batch struct {
	hdrs    []header
	iovs    []unix.Iovec
	names   []unix.RawSockaddrInet6 // large enough for IPv4 too
	control []control               // with time stamps alone
}

// control is room for one SCM_TIMESTAMPNS.
type control struct {
	hdr  unix.Cmsghdr
	time unix.Timespec
}

// New makes room for n datagrams.
func New(n int) *Batch {
	b := &Batch{hdrs: make([]header, n), iovs: make([]unix.Iovec, n), names: make([]unix.RawSockaddrInet6, n)}
	for i := range b.hdrs {
		h := &b.hdrs[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		h.Iov = &b.iovs[i]
		h.SetIovlen(1)
	}
	return b
}

// Len is the number of datagrams that there is room for.
func (b *Batch) Len() int { return len(b.hdrs) }

// SetBuffer gives a datagram its bytes, or room for them. The caller keeps them until the call has returned.
func (b *Batch) SetBuffer(i int, p []byte) {
	b.iovs[i].Base = unsafe.SliceData(p)
	b.iovs[i].SetLen(len(p))
}

// Stamped asks for the moments at which datagrams come in: the kernel's, however late we are called.
func (b *Batch) Stamped(conn syscall.RawConn) error {
	b.control = make([]control, len(b.hdrs))
	var errno error
	err := conn.Control(func(fd uintptr) {
		errno = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err == nil {
		err = errno
	}
	return err
}

// Stamp is when a datagram came in; now, without a time stamp of the kernel.
func (b *Batch) Stamp(i int) time.Time {
	c := &b.control[i]
	if b.hdrs[i].hdr.Controllen < uint64(unsafe.Sizeof(*c)) || c.hdr.Level != unix.SOL_SOCKET ||
		c.hdr.Type != unix.SCM_TIMESTAMPNS {
		return time.Now().Round(0)
	}
	return time.Unix(c.time.Sec, c.time.Nsec)
}

// Address is where a datagram came from.
func (b *Batch) Address(i int) netip.AddrPort {
	n := &b.names[i]
	if n.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(n))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), swap(v4.Port))
	}
	return netip.AddrPortFrom(netip.AddrFrom16(n.Addr).Unmap(), swap(n.Port))
}

// Sender is the port of the netlink socket that a datagram came from: 0 is the kernel.
func (b *Batch) Sender(i int) uint32 {
	return (*unix.RawSockaddrNetlink)(unsafe.Pointer(&b.names[i])).Pid
}

// SetAddress sets a datagram's destination; without an address, the peer of a connected socket.
func (b *Batch) SetAddress(i int, to netip.AddrPort) {
	h, n := &b.hdrs[i].hdr, &b.names[i]
	switch {
	case !to.IsValid():
		h.Namelen = 0
	case to.Addr().Is4():
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(n))
		*v4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: swap(to.Port()), Addr: to.Addr().As4()}
		h.Namelen = unix.SizeofSockaddrInet4
	default:
		*n = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: swap(to.Port()), Addr: to.Addr().As16()}
		h.Namelen = unix.SizeofSockaddrInet6
	}
}

// swap is htons and ntohs: the kernel keeps ports in network order, on every machine.
func swap(v uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&v))
	return uint16(b[0])<<8 | uint16(b[1])
}

// Receive waits for datagrams and takes as many as there are. Their lengths are in Length.
func (b *Batch) Receive(conn syscall.RawConn) (n int, err error) {
	for i := range b.hdrs {
		h := &b.hdrs[i].hdr
		h.Namelen = unix.SizeofSockaddrInet6
		if b.control != nil {
			h.Control = (*byte)(unsafe.Pointer(&b.control[i]))
			h.SetControllen(int(unsafe.Sizeof(b.control[i])))
		}
	}
	var errno syscall.Errno
	err = conn.Read(func(fd uintptr) bool {
		n, errno = b.call(unix.SYS_RECVMMSG, fd, len(b.hdrs))
		return errno != unix.EAGAIN
	})
	return n, first(err, errno)
}

// Length is that of a datagram that came in, at most its buffer's.
func (b *Batch) Length(i int) int { return min(int(b.hdrs[i].n), int(b.iovs[i].Len)) }

// Send sends the first datagrams, and returns how many went: the others may be tried again.
func (b *Batch) Send(conn syscall.RawConn, count int) (n int, err error) {
	var errno syscall.Errno
	err = conn.Write(func(fd uintptr) bool {
		n, errno = b.call(unix.SYS_SENDMMSG, fd, count)
		return errno != unix.EAGAIN
	})
	return n, first(err, errno)
}

func first(err error, errno syscall.Errno) error {
	if err == nil && errno != 0 {
		return errno
	}
	return err
}

// call runs recvmmsg or sendmmsg on the first n messages, once.
func (b *Batch) call(trap, fd uintptr, n int) (int, syscall.Errno) {
	for {
		done, _, errno := unix.Syscall6(trap, fd, uintptr(unsafe.Pointer(&b.hdrs[0])), uintptr(n), unix.MSG_DONTWAIT, 0,
			0)
		if errno != unix.EINTR { // not the poller's business: it reports changes, and there may be none
			return int(done), errno
		}
	}
}
