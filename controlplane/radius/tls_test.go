// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// secure is a server over TLS that wants a certificate of its authority.
type secure struct {
	listener    net.Listener
	security    *Security
	mu          sync.Mutex
	conns       []net.Conn
	connections atomic.Int32
}

// respondTLS runs one until the test ends. answer may be slow: each request has a goroutine. It returns nil: no answer.
func respondTLS(t testing.TB, answer func(p *Packet) *Packet) *secure {
	t.Helper()
	ca := testkit.NewAuthority(t)
	cert, key := ca.Issue(t, "server")
	pair, err := tls.X509KeyPair(cert, key)
	testkit.Must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM)
	s := &secure{security: &Security{Name: "127.0.0.1", CA: ca.PEM}}
	s.security.Certificate, s.security.Key = ca.Issue(t, "client")
	s.listener, err = tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair},
		ClientCAs:  pool,
		ClientAuth: tls.RequireAndVerifyClientCert})
	testkit.Must(t, err)
	t.Cleanup(func() {
		s.listener.Close()
		s.cut()
	})
	go func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			go s.serve(conn, answer)
		}
	}()
	return s
}

// cut breaks all connections.
func (s *secure) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
	s.conns = nil
}

func (s *secure) serve(conn net.Conn, answer func(p *Packet) *Packet) {
	defer conn.Close()
	first := true
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		if first {
			first = false
			s.connections.Add(1)
		}
		b := append(head, make([]byte, binary.BigEndian.Uint16(head[2:])-4)...)
		if _, err := io.ReadFull(conn, b[4:]); err != nil {
			return
		}
		p, err := Parse(b)
		if err != nil {
			return
		}
		go func() {
			if out := answer(p); out != nil {
				out.ID = p.ID
				b, _ := out.Encode(nil, []byte("radsec"), &p.Authenticator)
				conn.Write(b)
			}
		}()
	}
}

func (s *secure) client(t testing.TB, change func(c *ServerConfig), others ...ServerConfig) *Client {
	t.Helper()
	one := serverAt("tls", s.listener.Addr().(*net.TCPAddr).AddrPort(), 10*time.Second)
	one.Secret, one.Security, one.Sockets, one.Queue = "radsec", s.security, 4, 2000
	if change != nil {
		change(&one)
	}
	c, err := NewClient(append([]ServerConfig{one}, others...), nil)
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

func welcome(*Packet) *Packet { return &Packet{Code: AccessAccept} }

func TestTLS(t *testing.T) {
	s := respondTLS(t, welcome)
	c := s.client(t, nil)
	for range 3 {
		testkit.Must(t, ask(t, c, request()).err)
	}
	testkit.Equal(t, s.connections.Load(), 1, "connections")
	testkit.Equal(t, c.State()[0].Transport, "tls", "transport")
}

// More requests at a time than a connection has identifiers: further connections, as many as may be.
func TestTLSManyAtOnce(t *testing.T) {
	hold := make(chan struct{})
	waiting := atomic.Int32{}
	s := respondTLS(t, func(*Packet) *Packet {
		waiting.Add(1)
		<-hold
		return &Packet{Code: AccessReject}
	})
	c := s.client(t, nil)
	results := make(chan error, 700)
	for range 700 {
		c.Exchange(request(), func(_ *Packet, err error) { results <- err })
	}
	testkit.Until(t, "all are there", func() bool { return waiting.Load() == 700 })
	close(hold)
	for range 700 {
		testkit.Must(t, testkit.Receive(t, results))
	}
	testkit.Equal(t, c.State()[0].Sockets, 3, "connections")
	testkit.Equal(t, c.State()[0].Counters.Rejects, 700, "rejects")
}

// A connection that breaks under a request: it goes by a new one.
func TestTLSBroken(t *testing.T) {
	var s *secure
	asked := atomic.Int32{}
	ready := make(chan struct{})
	s = respondTLS(t, func(*Packet) *Packet {
		<-ready
		if asked.Add(1) == 1 {
			s.cut()
			return nil
		}
		return &Packet{Code: AccessAccept}
	})
	close(ready)
	c := s.client(t, nil)
	testkit.Must(t, ask(t, c, request()).err)
	testkit.Equal(t, asked.Load(), 2, "asked")
	testkit.Equal(t, c.State()[0].Counters.Disconnects, 1, "disconnects")
}

// A server hangs, or has another's certificate: the next one is asked.
func TestTLSFailover(t *testing.T) {
	udp := respond(t, accept)
	next := serverAt("udp", udp.address, time.Second)
	next.Tries, next.Priority = 3, 9
	hangs := respondTLS(t, func(*Packet) *Packet { return nil })
	c := hangs.client(t, func(s *ServerConfig) { s.Timeout = 50 * time.Millisecond }, next)
	testkit.Must(t, ask(t, c, request()).err)
	testkit.ErrorIf(t, c.State()[0].Alive, "alive")

	stranger := respondTLS(t, welcome)
	c = stranger.client(t, func(s *ServerConfig) { s.Security = hangs.security }, next)
	testkit.Must(t, ask(t, c, request()).err)
	testkit.Equal(t, c.State()[0].Counters.ConnectFailures, 1, "failures")
	testkit.ErrorIf(t, c.State()[0].Alive, "alive")

	named := *stranger.security
	named.Name = "radius.example"
	c = stranger.client(t, func(s *ServerConfig) { s.Security = &named })
	testkit.ErrorIf(t, !errors.Is(ask(t, c, request()).err, ErrAway), "another name was taken")
}

// A server that is back is found by trying to connect.
func TestTLSBack(t *testing.T) {
	s := respondTLS(t, welcome)
	address := s.listener.Addr().String()
	s.listener.Close()
	c := s.client(t, func(s *ServerConfig) { s.Probe = 10 * time.Millisecond })
	testkit.ErrorIf(t, !errors.Is(ask(t, c, request()).err, ErrAway), "answered")
	plain, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip(err) // the port is taken
	}
	defer plain.Close()
	pair, err := tls.X509KeyPair(s.security.Certificate, s.security.Key)
	testkit.Must(t, err)
	go func() {
		for {
			conn, err := plain.Accept()
			if err != nil {
				return
			}
			go s.serve(tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}}), welcome)
		}
	}()
	testkit.Until(t, "it is back", c.Alive)
	testkit.Must(t, ask(t, c, request()).err)
}
