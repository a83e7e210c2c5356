// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"crypto/hmac"
	"crypto/md5"
	"net"
	"net/netip"
	"testing"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

const secret = "testing123"

// responder is a server with a function that answers; nil: no answer.
type responder struct {
	conn    *net.UDPConn
	address netip.AddrPort
}

// respond runs one on a loopback port until the test ends. answer gets requests, and sends any answers by reply.
func respond(t testing.TB, answer func(p *Packet, reply func(*Packet))) *responder {
	t.Helper()
	var r *responder
	ready := make(chan struct{})
	r = respondRaw(t, func(p *Packet, from netip.AddrPort, _ *net.UDPConn) {
		<-ready
		answer(p, func(out *Packet) { r.send(out, p, from) })
	})
	close(ready)
	return r
}

func (r *responder) send(out, request *Packet, to netip.AddrPort) {
	out.ID = request.ID
	b, err := out.Encode(nil, []byte(secret), &request.Authenticator)
	if err == nil {
		r.conn.WriteToUDPAddrPort(b, to)
	}
}

func accept(p *Packet, reply func(*Packet)) {
	code := AccessAccept
	if p.Code == AccountingRequest {
		code = AccountingResponse
	}
	reply(&Packet{Code: code})
}

func silent(*Packet, func(*Packet)) {}

// serverAt is tried once, and then dead.
func serverAt(name string, at netip.AddrPort, timeout time.Duration) ServerConfig {
	return ServerConfig{RADIUSServer: config.RADIUSServer{Name: config.Name(name),
		Address: config.Address{Addr: at.Addr()}, Port: at.Port(), Secret: secret,
		Timeout: timeout, Tries: 1, DeadTime: time.Hour, Sockets: 1, Queue: 10}}
}

// clientOf is a client of responders, with short times; change may be nil.
func clientOf(t testing.TB, change func(i int, c *ServerConfig), servers ...*responder) *Client {
	t.Helper()
	var configs []ServerConfig
	for i, r := range servers {
		c := serverAt(string(rune('a'+i)), r.address, 50*time.Millisecond)
		c.Tries, c.Priority, c.Sockets, c.Queue = 2, uint8(i), 4, 100
		if change != nil {
			change(i, &c)
		}
		configs = append(configs, c)
	}
	c, err := NewClient(configs, nil)
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

type outcome struct {
	p   *Packet
	err error
}

func ask(t testing.TB, c *Client, p *Packet) outcome {
	t.Helper()
	ch := make(chan outcome, 2)
	c.Exchange(p, func(p *Packet, err error) { ch <- outcome{p, err} })
	return testkit.Receive(t, ch)
}

func request() *Packet {
	p := &Packet{Code: AccessRequest}
	p.Text(UserName, "home")
	p.Attributes = append(p.Attributes, Attribute{UserPassword, []byte("secret word")})
	return p
}

// respondRaw is respond with packets of octets.
func respondRaw(t testing.TB, answer func(p *Packet, from netip.AddrPort, conn *net.UDPConn)) *responder {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	_ = conn.SetReadBuffer(4 << 20)
	t.Cleanup(func() { conn.Close() })
	go func() {
		buffer := make([]byte, maxPacket)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			if p, err := Parse(append([]byte(nil), buffer[:n]...)); err == nil {
				answer(p, from, conn)
			}
		}
	}()
	return &responder{conn, conn.LocalAddr().(*net.UDPAddr).AddrPort()}
}

func hmacOf(b []byte) []byte {
	mac := hmac.New(md5.New, []byte(secret))
	mac.Write(b)
	return mac.Sum(nil)
}
