// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"isthmus/controlplane/mmsg"
)

const (
	batchOf  = 256              // datagrams a system call
	longest  = 16 << 10         // of a datagram: a route of 500 next hops
	storm    = 16               // datagrams of one call from which on the reader waits for more
	gather   = time.Millisecond // so long
	inFlight = 2                // batches: one is read, one is looked at
)

// batch is what one system call read.
type batch struct {
	*mmsg.Batch
	memory []byte // touched as far as datagrams are long
	count  int
}

func newBatch() *batch {
	b := &batch{Batch: mmsg.New(batchOf), memory: make([]byte, batchOf*longest)}
	for i := range batchOf {
		b.SetBuffer(i, b.datagram(i, longest))
	}
	return b
}

func (b *batch) datagram(i, length int) []byte { return b.memory[i*longest:][:length] }

// each calls fn with the kernel's datagrams; false: one did not fit.
func (b *batch) each(fn func(datagram []byte)) bool {
	whole := true
	for i := range b.count {
		switch length := b.Length(i); {
		case b.Sender(i) != nl.PidKernel:
		case length == longest:
			whole = false
		default:
			fn(b.datagram(i, length))
		}
	}
	return whole
}

// routeStream reads the messages of routes. Batches go round: free, read by its goroutine, full, free.
type routeStream struct {
	file       *os.File
	conn       syscall.RawConn
	full, free chan *batch // full is closed when messages were lost
}

// openRoutes subscribes in a namespace (none: our own).
func openRoutes(ns netns.NsHandle, buffer int, force bool) (*routeStream, error) {
	socket, err := nl.SubscribeAt(ns, netns.None(), unix.NETLINK_ROUTE, unix.RTNLGRP_IPV4_ROUTE,
		unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_NEXTHOP)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	if err := socket.SetReceiveBufferSize(buffer, force); err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(uintptr(socket.GetFd()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("dup: %w", err)
	}
	r := &routeStream{file: os.NewFile(uintptr(fd), "netlink"), full: make(chan *batch, inFlight),
		free: make(chan *batch, inFlight)}
	if r.conn, err = r.file.SyscallConn(); err != nil {
		r.file.Close()
		return nil, err
	}
	for range inFlight {
		r.free <- newBatch()
	}
	go r.read()
	return r, nil
}

// read ends with the socket, or when messages were lost (ENOBUFS).
func (r *routeStream) read() {
	defer close(r.full)
	for b := range r.free {
		var err error
		if b.count, err = b.Receive(r.conn); err != nil {
			return
		}
		waits := b.count >= storm && b.count < batchOf
		r.full <- b
		if waits {
			time.Sleep(gather) // a wake-up for each few routes costs more than they do
		}
	}
}

// close ends the stream; its goroutine ends soon.
func (r *routeStream) close() {
	r.file.Close()
	close(r.free)
}
