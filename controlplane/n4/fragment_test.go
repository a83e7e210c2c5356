// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"encoding/binary"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// ownNetwork gives the test a network namespace whose loopback has a small MTU, so that datagrams are fragmented.
// Sockets belong to the namespace of the thread that opens them; the thread is not used again.
func ownNetwork(t *testing.T, mtu uint32) {
	runtime.LockOSThread() // without an unlock: the thread ends with the test's goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network namespace: %v", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	testkit.Must(t, err)
	defer unix.Close(fd)
	req := struct {
		name [16]byte
		v    [24]byte
	}{}
	copy(req.name[:], "lo")
	set := func(what uintptr) {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), what, uintptr(unsafe.Pointer(&req))); errno != 0 {
			t.Skipf("loopback of a namespace: %v", errno)
		}
	}
	binary.NativeEndian.PutUint16(req.v[:], unix.IFF_UP)
	set(unix.SIOCSIFFLAGS)
	binary.NativeEndian.PutUint32(req.v[:], mtu)
	set(unix.SIOCSIFMTU)
}

// Row P34: 3, 8 and 20 fragments, and a datagram as long as UDP can be.
func TestFragments(t *testing.T) {
	ownNetwork(t, 1500)
	h, m := associated(t)
	for _, size := range []int{2 * 1480, 7*1480 + 100, 19*1480 + 100, 65507} {
		b := establishment(m.next(), m.node, uint64(size), m.addr.Addr())
		for len(b) < size { // a vendor's IEs, which are skipped
			n := min(size-len(b)-4, 60000)
			b = append(b, ie(0x8123, make([]byte, max(n, 2))...)...)
		}
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)-4))
		if r := m.ask(b); r.cause() != pfcp.CauseAccepted || r.seid != uint64(size) {
			t.Errorf("%d bytes: cause %d", len(b), r.cause())
		}
	}
	// A fragment that never completes costs nothing: the kernel keeps a bounded number, and drops them.
	h.rises("too-short", 1, func() { m.send(make([]byte, 3)) })
	m.alive()
}
