// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"isthmus/controlplane/config"
)

var (
	// ErrAway: no server answers. A request with a wrong secret is dropped in silence (RFC 2865 section 3).
	ErrAway = errors.New("no RADIUS server answers; a wrong secret looks the same")
	// ErrBusy: every server has as many requests as it may, and so has its queue.
	ErrBusy = errors.New("too many RADIUS requests wait")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("the RADIUS client was closed")
)

// ServerConfig is one server of a client. Its name, the port of this use and the secret are filled in.
type ServerConfig struct {
	config.RADIUSServer
	Security *Security // RADIUS over TLS (RFC 6614); nil: over UDP
}

// Security is TLS with certificates on both sides, in PEM.
type Security struct {
	Name                 string // in the server's certificate; an address is looked for among its addresses
	CA, Certificate, Key []byte
}

func (s *Security) config() (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CA) {
		return nil, errors.New("tls.ca: no certificate of an authority")
	}
	own, err := tls.X509KeyPair(s.Certificate, s.Key)
	if err != nil { // which may quote them
		return nil, errors.New("tls.certificate and tls.key are no certificate in PEM and the key of it")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.Name, RootCAs: pool,
		Certificates: []tls.Certificate{own}}, nil
}

// Client sends requests to several servers that stand for each other, and matches answers.
type Client struct {
	servers []*server // ascending by priority
	turn    atomic.Uint32
	closed  atomic.Bool
}

// NewClient opens no sockets: they are opened on demand. The configuration has at most 32 servers. changed, which may
// be nil, is called from a goroutine of the client. It reports that a server is given up, answers again, answers but is
// not believed, or cannot be asked.
func NewClient(configs []ServerConfig, changed func(name string, is News)) (*Client, error) {
	c := &Client{}
	if changed == nil {
		changed = func(string, News) {}
	}
	for _, one := range configs {
		s := newServer(c, one, changed)
		if one.Security != nil {
			var err error
			if s.tls, err = one.Security.config(); err != nil {
				return nil, fmt.Errorf("RADIUS server %s: %w", one.Name, err)
			}
		}
		c.servers = append(c.servers, s)
	}
	slices.SortStableFunc(c.servers, func(a, b *server) int { return int(a.Priority) - int(b.Priority) })
	for i, s := range c.servers {
		s.index = i
	}
	return c, nil
}

// Exchange sends a request, repeats it, and tries other servers until an answer comes. done is called once, from a
// goroutine of the client or before Exchange returns. Its result is an authentic answer, ErrAway, ErrBusy, ErrClosed,
// an error that wraps ErrMalformed (authentic, but invalid contents), or why the request cannot be encoded. The
// packet's attributes must not change until then.
func (c *Client) Exchange(p *Packet, done func(*Packet, error)) {
	e := &exchange{p: p, done: done}
	e.timer = time.AfterFunc(time.Hour, e.expired)
	e.timer.Stop()
	c.next(e)
}

// next hands a request to the best server that did not have it yet.
func (c *Client) next(e *exchange) {
	busy := false
	for !c.closed.Load() {
		s, at := c.choose(e.tried)
		if s == nil {
			break
		}
		e.tried |= 1 << at
		switch err := s.take(e); err {
		case nil:
			return
		case ErrBusy:
			busy = true
		case ErrAway:
		default:
			e.finish(nil, err)
			return
		}
	}
	switch {
	case c.closed.Load():
		e.finish(nil, ErrClosed)
	case busy:
		e.finish(nil, ErrBusy)
	default:
		e.finish(nil, c.away())
	}
}

// choose returns an untried server that is alive: of the lowest priority, in turn.
func (c *Client) choose(tried uint32) (*server, int) {
	var equal [32]int
	n := 0
	for i, s := range c.servers {
		if n > 0 && s.Priority != c.servers[equal[0]].Priority {
			break
		}
		if tried&(1<<i) == 0 && s.alive() {
			equal[n] = i
			n++
		}
	}
	if n == 0 {
		return nil, 0
	}
	i := equal[int(c.turn.Add(1)-1)%n]
	return c.servers[i], i
}

// Alive: some server is believed to answer.
func (c *Client) Alive() bool {
	return slices.ContainsFunc(c.servers, (*server).alive)
}

// State of the servers, in the order in which they are asked.
func (c *Client) State() []ServerState {
	out := make([]ServerState, len(c.servers))
	for i, s := range c.servers {
		out[i] = s.state()
	}
	return out
}

// Close ends the requests under way with ErrClosed.
func (c *Client) Close() {
	c.closed.Store(true)
	for _, s := range c.servers {
		s.close()
	}
}

// exchange is one request on its way. While a server has it, that server's lock guards it.
type exchange struct {
	p      *Packet
	done   func(*Packet, error)
	tried  uint32 // bits of Client.servers
	server atomic.Pointer[server]
	timer  *time.Timer
	due    time.Time     // when it fires
	wait   time.Duration // before the next try
	tries  int
	moves  int       // connections that broke under it
	first  time.Time // at this server
	slots  []place   // identifiers that it has; none while it waits for one
	packet []byte    // as it was sent
	over   bool
}

// place is an identifier of a lane.
type place struct {
	lane *lane
	id   uint8
}

// finish answers. The exchange belongs to no server any more.
func (e *exchange) finish(p *Packet, err error) {
	e.timer.Stop()
	e.done(p, err)
}

func (e *exchange) expired() {
	if s := e.server.Load(); s != nil {
		s.expired(e)
	}
}

func (e *exchange) arm(d time.Duration) {
	e.due = time.Now().Add(d)
	e.timer.Reset(d)
}
