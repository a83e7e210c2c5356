// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

// open makes a UDP socket, not connected: answers from elsewhere are counted. The lock is held.
func (s *server) open() (*lane, error) {
	network := "udp4"
	if s.Address.Is6() {
		network = "udp6"
	}
	var source *net.UDPAddr
	if s.Source.IsValid() {
		source = net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.Source.Addr, 0))
	}
	conn, err := net.ListenUDP(network, source)
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(1 << 20) // as far as the kernel lets us
	send := func(b []byte) error {
		_, err := conn.WriteToUDPAddrPort(b, s.to)
		if err != nil && !errors.Is(err, net.ErrClosed) {
			s.mu.Lock()
			s.unreachable(err)
			s.mu.Unlock()
		}
		return err
	}
	l := newLane(send, func() { conn.Close() })
	go receive(conn, func(from netip.AddrPort, b []byte) { s.answer(l, from, b) })
	return l, nil
}

// receive passes on packets until the socket is closed. b is valid until take returns; IPv4 addresses are not mapped.
func receive(conn *net.UDPConn, take func(from netip.AddrPort, b []byte)) {
	buffer := make([]byte, maxPacket+1)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(time.Millisecond) // such as no memory
			continue
		}
		take(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), buffer[:n])
	}
}

// dial makes a TLS connection, and sends what waits for it.
func (s *server) dial() {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience())
	defer cancel()
	dialer := &tls.Dialer{NetDialer: &net.Dialer{}, Config: s.tls}
	if s.Source.IsValid() {
		dialer.NetDialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(s.Source.Addr, 0))
	}
	conn, err := dialer.DialContext(ctx, "tcp", s.to.String())
	s.mu.Lock()
	s.dialling = false
	if err != nil {
		s.unreachable(err)
		if len(s.lanes) > 0 { // the others go on
			s.mu.Unlock()
			return
		}
		s.die(nil) // unlocks
		return
	}
	if s.shut {
		s.mu.Unlock()
		conn.Close()
		return
	}
	out := make(chan []byte, 512) // more than there are identifiers
	l := newLane(func(b []byte) error {
		select {
		case out <- b:
			return nil
		default:
			return ErrBusy
		}
	}, func() { conn.Close() })
	s.lanes = append(s.lanes, l)
	over := make(chan struct{})
	go s.write(conn, out, over)
	go s.read(conn, l, over)
	if !s.living.Load() {
		s.mu.Unlock()
		s.revive()
		s.mu.Lock()
	}
	s.pump() // unlocks
}

func (s *server) write(conn net.Conn, out <-chan []byte, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case b := <-out:
			_ = conn.SetWriteDeadline(time.Now().Add(s.patience()))
			if _, err := conn.Write(b); err != nil {
				conn.Close() // the reader ends
				return
			}
		}
	}
}

// read takes packets off a connection until it breaks; then its requests are sent again.
func (s *server) read(conn net.Conn, l *lane, over chan<- struct{}) {
	in := bufio.NewReaderSize(conn, 2*maxPacket)
	buffer := make([]byte, maxPacket)
	for {
		if _, err := io.ReadFull(in, buffer[:4]); err != nil {
			break
		}
		n := int(binary.BigEndian.Uint16(buffer[2:]))
		if n < headerLen || n > maxPacket { // where the next one begins is not known (RFC 6613 §2.6.4)
			s.mu.Lock()
			s.doubt(errGarbled) // unlocks
			break
		}
		if _, err := io.ReadFull(in, buffer[4:n]); err != nil {
			break
		}
		s.answer(l, s.to, buffer[:n])
	}
	conn.Close()
	close(over)
	s.lost(l)
}

const maxMoves = 3 // connections that one request may lose at a server

func (s *server) lost(l *lane) {
	s.mu.Lock()
	for i, one := range s.lanes {
		if one == l {
			s.lanes = append(s.lanes[:i], s.lanes[i+1:]...)
			break
		}
	}
	if !s.shut {
		s.counts.Disconnects++
	}
	list := s.evictLane(l)
	for _, e := range list {
		if e.moves++; e.moves < maxMoves {
			e.tried &^= 1 << s.index
		}
	}
	s.mu.Unlock()
	for _, e := range list {
		s.client.next(e)
	}
}
