// SPDX-License-Identifier: Apache-2.0

// Package frames takes and sends whole Ethernet frames of a network interface.
package frames

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// waiting bytes do not get lost while this program does not run for a while.
const waiting = 8 << 20

// Open makes a packet socket of an interface in the thread's network namespace. It gives the frames that come in,
// without an outer VLAN tag, which the kernel takes off; its deadlines work, and closing it ends a read.
func Open(name string) (*os.File, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, all)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: i.Index}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, waiting)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, waiting)
	return os.NewFile(uintptr(fd), name), nil
}
