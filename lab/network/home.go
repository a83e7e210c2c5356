// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"isthmus/lab/frames"
)

// Wireline subscribers of `lab isp`: the kernel of node `home` has their addresses on a TUN device; its packets become
// frames with two tags on the access network. In the data network another TUN device stands for the 5G core: packets to
// homes leave it in GTP-U.

// MaxHomes is the room of one S-tag.
const MaxHomes = 4000

// home is one wireline subscriber.
type home struct {
	MAC              string
	STag, CTag       uint16
	IPv4             netip.Addr
	IPv6             netip.Prefix
	Uplink, Downlink uint32 // TEIDs
}

var (
	homesIPv4 = netip.MustParsePrefix("100.64.0.0/16")
	homesIPv6 = netip.MustParsePrefix("2001:db8:64::/48")
)

// homeOf is the i-th home, from 0.
func homeOf(i int) home {
	n := i + 1
	return home{
		MAC: net.HardwareAddr{2, 0, 0, 1, byte(n >> 8), byte(n)}.String(), STag: 100, CTag: uint16(n),
		IPv4:   netip.AddrFrom4([4]byte{100, 64, byte(n >> 8), byte(n)}),
		IPv6:   netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 13, 0xb8, 0, 0x64, byte(n >> 8), byte(n)}), 64),
		Uplink: 0x10000 + uint32(n), Downlink: 0x20000 + uint32(n),
	}
}

// homeAt is the home with an address.
func homeAt(a netip.Addr) (home, bool) {
	n := 0
	switch {
	case a.Is4() && homesIPv4.Contains(a):
		b := a.As4()
		n = int(b[2])<<8 | int(b[3])
	case a.Is6() && homesIPv6.Contains(a):
		b := a.As16()
		n = int(b[6])<<8 | int(b[7])
	}
	return homeOf(n - 1), n > 0 && n <= MaxHomes
}

const largest = 9216 // packet or frame

// tun makes a TUN device in the thread's namespace.
func tun(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	r, err := unix.NewIfreq(name)
	if err == nil {
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("TUN device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// waiting bytes survive a pause of this program; so does this number of packets of a TUN device.
const (
	waiting = 8 << 20
	queue   = 8192
)

// patient gives a socket room.
func patient(conn *net.UDPConn) {
	raw, err := conn.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, waiting)
		})
	}
}

// addressesOf are source and destination of an IP packet, and the bytes that it is long.
func addressesOf(p []byte) (from, to netip.Addr, length int, ok bool) {
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		from, to = netip.AddrFrom4([4]byte(p[12:])), netip.AddrFrom4([4]byte(p[16:]))
		length = int(binary.BigEndian.Uint16(p[2:]))
	case len(p) >= 40 && p[0]>>4 == 6:
		from, to = netip.AddrFrom16([16]byte(p[8:])), netip.AddrFrom16([16]byte(p[24:]))
		length = 40 + int(binary.BigEndian.Uint16(p[4:]))
	}
	return from, to, length, length >= 20 && length <= len(p)
}

// tagged is the frame of a home's packet.
func tagged(frame []byte, p []byte) ([]byte, bool) {
	from, _, _, ok := addressesOf(p)
	h, known := homeAt(from)
	if !ok || !known {
		return frame, false
	}
	gateway, _ := net.ParseMAC(accessMAC)
	own, _ := net.ParseMAC(h.MAC)
	frame = append(append(frame, gateway...), own...)
	frame = binary.BigEndian.AppendUint16(frame, 0x88a8)
	frame = binary.BigEndian.AppendUint16(frame, h.STag)
	frame = binary.BigEndian.AppendUint16(frame, 0x8100)
	frame = binary.BigEndian.AppendUint16(frame, h.CTag)
	kind := uint16(unix.ETH_P_IP)
	if from.Is6() {
		kind = unix.ETH_P_IPV6
	}
	return append(binary.BigEndian.AppendUint16(frame, kind), p...), true
}

// untagged is the packet in a frame to a home; the kernel has taken the outer tag off.
func untagged(frame []byte) ([]byte, bool) {
	at := 12
	for at+6 <= len(frame) {
		kind := binary.BigEndian.Uint16(frame[at:])
		if kind != 0x8100 && kind != 0x88a8 {
			break
		}
		at += 4
	}
	if at+2 > len(frame) {
		return nil, false
	}
	p := frame[at+2:]
	_, to, length, ok := addressesOf(p)
	if _, known := homeAt(to); !ok || !known {
		return nil, false
	}
	return p[:length], true
}

const gtpuPort = 2152

// encapsulated is the G-PDU of a packet to a home (TS 29.281 §5.1).
func encapsulated(b []byte, p []byte) ([]byte, bool) {
	_, to, _, ok := addressesOf(p)
	h, known := homeAt(to)
	if !ok || !known {
		return b, false
	}
	b = append(b, 0x30, 0xff)
	b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
	b = binary.BigEndian.AppendUint32(b, h.Downlink)
	return append(b, p...), true
}

// decapsulated is the packet of a home in a G-PDU without options, as the gateways send them here.
func decapsulated(b []byte) ([]byte, bool) {
	if len(b) < 8 || b[0] != 0x30 || b[1] != 0xff {
		return nil, false
	}
	from, _, length, ok := addressesOf(b[8:])
	h, known := homeAt(from)
	if !ok || !known || binary.BigEndian.Uint32(b[4:]) != h.Uplink {
		return nil, false
	}
	return b[8 : 8+length], true
}

// relay passes on what change makes of its input; it ends when a file is closed.
func relay(read func([]byte) (int, error), write func([]byte) error, change func(to, from []byte) ([]byte, bool)) {
	in, out := make([]byte, largest), make([]byte, 0, largest+64)
	for {
		n, err := read(in)
		if err != nil {
			return
		}
		if b, ok := change(out[:0], in[:n]); ok {
			write(b) // a failed one is lost, as on any link
		}
	}
}

// startHomes makes both TUN devices.
func (l *Lab) startHomes(ctx context.Context) error {
	var device, wire *os.File
	err := inside("home", func() error {
		var err error
		if device, err = tun("home0"); err != nil {
			return err
		}
		l.closers = append(l.closers, device)
		if wire, err = frames.Open("wan"); err != nil {
			return err
		}
		l.closers = append(l.closers, wire)
		return nil
	})
	if err != nil {
		return err
	}
	w := generations[l.opt.Generation]
	var core *os.File
	var tunnel *net.UDPConn
	err = inside(w.pdn, func() error {
		var err error
		if core, err = tun("n3"); err != nil {
			return err
		}
		l.closers = append(l.closers, core)
		tunnel, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(serverIPv4, gtpuPort)))
		if err == nil {
			l.closers = append(l.closers, tunnel)
			patient(tunnel)
		}
		return err
	})
	if err != nil {
		return err
	}
	to := func(f *os.File) func([]byte) error {
		return func(b []byte) error { _, err := f.Write(b); return err }
	}
	plain := func(change func([]byte) ([]byte, bool)) func(_, from []byte) ([]byte, bool) {
		return func(_, from []byte) ([]byte, bool) { return change(from) }
	}
	gateway := netip.AddrPortFrom(serviceIPv4, gtpuPort)
	go relay(device.Read, to(wire), tagged)
	go relay(wire.Read, to(device), plain(untagged))
	tunnelled := func(b []byte) error { _, err := tunnel.WriteToUDPAddrPort(b, gateway); return err }
	go relay(core.Read, tunnelled, encapsulated)
	go relay(tunnel.Read, to(core), plain(decapsulated))
	return l.configureHosts(ctx, l.homeHosts(w.pdn))
}

// homeHosts are addresses and routes at both TUN devices.
func (l *Lab) homeHosts(pdn string) []string {
	lines := []string{fmt.Sprintf("home link set home0 mtu %d txqueuelen %d up", ipMTU, queue)}
	for i := range min(l.opt.Homes, shownUEs) {
		h := homeOf(i)
		lines = append(lines, fmt.Sprintf("home addr add %s/32 dev home0", h.IPv4),
			fmt.Sprintf("home addr add %s/128 dev home0 nodad", host(h.IPv6)))
	}
	h := homeOf(0)
	return append(lines,
		fmt.Sprintf("home route add default dev home0 src %s", h.IPv4),
		fmt.Sprintf("home -6 route add default dev home0 src %s", host(h.IPv6)),
		fmt.Sprintf("%s link set n3 mtu %d txqueuelen %d up", pdn, ipMTU, queue),
		fmt.Sprintf("%s route add %s dev n3 src %s", pdn, homesIPv4, serverIPv4),
		fmt.Sprintf("%s -6 route add %s dev n3 src %s", pdn, homesIPv6, serverIPv6))
}
