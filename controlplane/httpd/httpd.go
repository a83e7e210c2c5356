// SPDX-License-Identifier: Apache-2.0

// Package httpd listens for streams. Every server has timeouts for reading, writing and idling, and every listener
// bounds its connections, so that no client can exhaust the process' descriptors or memory.
package httpd

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Bounds are what clients of one listener may take.
type Bounds struct {
	Name        string // what counters call the listener
	Connections int    // of all clients
	Each        int    // of one address; 0: no other bound than that of all
	// Read is for a whole request, Write for carrying it out and writing the answer.
	Read, Write time.Duration
	// Header is for the head of a request, Idle between two of them; 0: 5 s, 30 s.
	Header, Idle time.Duration
}

const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 30 * time.Second
	maxHeader     = 16 << 10
	maxStreams    = 32 // requests at a time of a connection of HTTP/2
)

// New returns a server for what Limit returns.
func (b Bounds) New(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: cmp.Or(b.Header, headerTimeout), ReadTimeout: b.Read,
		WriteTimeout: b.Write, IdleTimeout: cmp.Or(b.Idle, idleTimeout), MaxHeaderBytes: maxHeader,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog: log.New(&brief{to: log.Writer()}, b.Name+": ", log.LstdFlags)}
}

// brief lets one line a second through: clients' faults must not fill the log.
type brief struct {
	to   io.Writer
	lock sync.Mutex
	last time.Time
	held int
}

func (q *brief) Write(line []byte) (int, error) {
	q.lock.Lock()
	defer q.lock.Unlock()
	now := time.Now()
	if now.Sub(q.last) < time.Second {
		q.held++
		return len(line), nil
	}
	if q.held > 0 {
		fmt.Fprintf(q.to, "(%d lines like the next were left out)\n", q.held)
	}
	q.last, q.held = now, 0
	return q.to.Write(line)
}

// Limit bounds the connections of a listener. A connection above it is closed at once, or another one for it: waiting
// in the kernel it would keep out addresses without one.
func (b Bounds) Limit(l net.Listener) *Listener {
	return &Listener{Listener: l, Bounds: b, by: map[netip.Addr][]*conn{}}
}

// Listener is one with a bound. lock guards the rest.
type Listener struct {
	net.Listener
	Bounds

	lock    sync.Mutex
	open    int
	by      map[netip.Addr][]*conn // the oldest first
	refused uint64
}

// Serve serves until the server is closed; by TLS where it has certificates.
func (l *Listener) Serve(s *http.Server) error {
	if s.TLSConfig != nil {
		return s.ServeTLS(l, "", "")
	}
	return s.Serve(l)
}

// Refused counts the connections that were closed for want of a place: at once, or to make room.
func (l *Listener) Refused() uint64 {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.refused
}

// Accept returns the next connection within the bounds.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		one := &conn{Conn: c, of: l, from: addressOf(c)}
		place, out := l.take(one)
		if out != nil {
			out.Close()
		}
		if place {
			return one, nil
		}
		c.Close()
	}
}

// addressOf is the zero Addr for a client of a Unix socket.
func addressOf(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		addr := a.AddrPort().Addr().Unmap().WithZone("")
		if addr.Is6() { // a host has a network of its own
			p, _ := addr.Prefix(64)
			return p.Addr()
		}
		return addr
	}
	return netip.Addr{}
}

// take finds a place. When all are taken, out gives its own: the oldest of the address that has most, if the newcomer
// has fewer even then. So no few addresses keep the others out.
func (l *Listener) take(c *conn) (place bool, out *conn) {
	l.lock.Lock()
	defer l.lock.Unlock()
	n := len(l.by[c.from])
	if l.Bounds.Each > 0 && n >= l.Bounds.Each {
		l.refused++
		return false, nil
	}
	if l.open >= l.Bounds.Connections {
		var most []*conn
		for _, list := range l.by {
			if len(list) > len(most) {
				most = list
			}
		}
		l.refused++
		if n+1 >= len(most) {
			return false, nil
		}
		out = most[0]
		l.remove(out)
	}
	l.open++
	l.by[c.from] = append(l.by[c.from], c)
	return true, out
}

// remove gives a place back, once. The lock is held.
func (l *Listener) remove(c *conn) {
	list := l.by[c.from]
	at := slices.Index(list, c)
	if at < 0 {
		return
	}
	l.open--
	if len(list) == 1 {
		delete(l.by, c.from)
		return
	}
	l.by[c.from] = slices.Delete(list, at, at+1)
}

// conn gives its place back when it is closed.
type conn struct {
	net.Conn
	of   *Listener
	from netip.Addr
}

// NetConn is the connection below.
func (c *conn) NetConn() net.Conn { return c.Conn }

func (c *conn) Close() error {
	c.of.lock.Lock()
	c.of.remove(c)
	c.of.lock.Unlock()
	return c.Conn.Close()
}
