// SPDX-License-Identifier: Apache-2.0

package mmsg

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

func socket(t *testing.T, network, address string) (*net.UDPConn, syscall.RawConn, netip.AddrPort) {
	t.Helper()
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address)))
	if err != nil {
		t.Skip(err) // a machine without IPv6
	}
	t.Cleanup(func() { conn.Close() })
	raw, err := conn.SyscallConn()
	testkit.Must(t, err)
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return conn, raw, netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
}

// Datagrams of every length go out by one call and come in by others, with address, length and time.
func TestThereAndBack(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			_, from, fromAddress := socket(t, "udp", address)
			_, to, toAddress := socket(t, "udp", address)
			out, in := New(8), New(5)
			testkit.Must(t, in.Stamped(to))
			var sent [8][]byte
			for i := range sent {
				sent[i] = bytes.Repeat([]byte{byte(i)}, i*70+1)
				out.SetBuffer(i, sent[i])
				out.SetAddress(i, toAddress)
			}
			memory := make([]byte, 5*300)
			for i := range in.Len() {
				in.SetBuffer(i, memory[i*300:(i+1)*300])
			}
			before := time.Now()
			for done := 0; done < len(sent); {
				n, err := out.Send(from, len(sent)-done)
				testkit.Must(t, err)
				for i, b := range sent[done+n:] {
					out.SetBuffer(i, b)
				}
				done += n
			}
			for got := 0; got < len(sent); {
				n, err := in.Receive(to)
				testkit.Must(t, err)
				for i := range n {
					want := sent[got][:min(len(sent[got]), 300)] // a longer one is cut
					if b := memory[i*300 : i*300+in.Length(i)]; !bytes.Equal(b, want) || in.Address(i) != fromAddress {
						t.Errorf("%d: %x from %s", got, b, in.Address(i))
					}
					if at := in.Stamp(i); at.Before(before.Add(-time.Minute)) || at.After(time.Now().Add(time.Minute)) {
						t.Errorf("%d came in at %s", got, at)
					}
					got++
				}
			}
		})
	}
}

func TestConnectedAndClosed(t *testing.T) {
	server, to, address := socket(t, "udp4", "127.0.0.1:0")
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(address))
	testkit.Must(t, err)
	defer conn.Close()
	raw, err := conn.SyscallConn()
	testkit.Must(t, err)
	b := New(1)
	b.SetBuffer(0, []byte("x"))
	b.SetAddress(0, netip.AddrPort{})
	if n, err := b.Send(raw, 1); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	in := New(1)
	in.SetBuffer(0, make([]byte, 10))
	if n, err := in.Receive(to); n != 1 || err != nil || in.Length(0) != 1 {
		t.Fatal(n, err)
	}
	server.Close()
	if _, err := in.Receive(to); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
