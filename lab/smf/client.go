// SPDX-License-Identifier: Apache-2.0

// Package smf is the control side of PFCP (TS 29.244): an emulated SMF, SGW-C, PGW-C, MME or AMF, as far as user planes
// see one. It serves the lab, the tests and other Go programs that drive a user plane. A Client is one CP function with
// one socket. It keeps associations alive, repeats requests (T1, N1), answers user planes' requests, and passes reports
// to their sessions. The rules of each role are in rules.go; network.go lets several functions carry the bearers of
// UEs.
package smf

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/controlplane/pfcp"
)

// Options of a Client. Only Node and Conn have no default.
type Options struct {
	Node      pfcp.NodeID
	Conn      *net.UDPConn  // closed with the client
	T1        time.Duration // between repetitions of a request; 1 s
	N1        int           // repetitions; 3
	Heartbeat time.Duration // between Heartbeat Requests to each peer; 0: none are sent
	Handlers  Handlers
	Log       *slog.Logger
}

// Handlers are called, each on a goroutine of its own, after the user plane had its answer. Nil ones are not called.
type Handlers struct {
	Downlink        func(s *Session, r *pfcp.SessionReportRequest) // packets wait for a UE (DLDR)
	Usage           func(s *Session, u []pfcp.UsageReport)
	ErrorIndication func(s *Session, unknown []pfcp.FTEID)
	Inactive        func(s *Session)
	Node            func(a *Association, r *pfcp.NodeReportRequest)
	Associated      func(a *Association)               // the user plane set the association up
	Lost            func(a *Association, reason error) // by restart, silence or release; its sessions are forgotten
}

// Counters of a client since its start.
type Counters struct {
	Requests, Resent, Unanswered atomic.Uint64 // ours
	Served, Repeated, Refused    atomic.Uint64 // of user planes; Repeated: answered from the cache
	Malformed, Stray             atomic.Uint64 // Stray: unexpected responses
}

// Client is one CP function. All methods may be called from any goroutine.
type Client struct {
	Counters Counters

	opt      Options
	recovery time.Time
	sequence atomic.Uint32
	seid     atomic.Uint64
	done     chan struct{}
	once     sync.Once
	readers  sync.WaitGroup

	mu           sync.Mutex
	pending      map[exchange]*transaction
	answered     map[exchange]answer
	associations map[string]*Association // by node id
	sessions     map[uint64]*Session     // by our SEID
}

// ErrClosed ends the requests of a client that was closed.
var ErrClosed = errors.New("the PFCP client is closed")

// New starts a client on a socket.
func New(opt Options) *Client {
	if opt.T1 <= 0 {
		opt.T1 = time.Second
	}
	if opt.N1 <= 0 {
		opt.N1 = 3
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{
		opt: opt, recovery: time.Now().Truncate(time.Second), done: make(chan struct{}),
		pending: map[exchange]*transaction{}, answered: map[exchange]answer{},
		associations: map[string]*Association{}, sessions: map[uint64]*Session{},
	}
	c.readers.Add(1)
	go c.read()
	go c.keep()
	return c
}

// Close ends the client at once: nothing is sent any more, not even an Association Release.
func (c *Client) Close() {
	c.once.Do(func() {
		close(c.done)
		c.opt.Conn.Close()
		c.readers.Wait()
	})
}

// Address is where user planes reach us.
func (c *Client) Address() netip.AddrPort {
	a := c.opt.Conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// fseid makes the CP F-SEID of a session.
func (c *Client) fseid(seid uint64) pfcp.FSEID {
	f, addr := pfcp.FSEID{SEID: seid}, c.Address().Addr()
	if addr.Is4() {
		f.IPv4 = addr
	} else {
		f.IPv6 = addr
	}
	return f
}

// Associations lists the associations there are.
func (c *Client) Associations() []*Association {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*Association, 0, len(c.associations))
	for _, a := range c.associations {
		list = append(list, a)
	}
	return list
}

// Sessions counts the sessions of all associations.
func (c *Client) Sessions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// read takes messages from the socket until it is closed.
func (c *Client) read() {
	defer c.readers.Done()
	buffer := make([]byte, 65536)
	for {
		n, from, err := c.opt.Conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			select {
			case <-c.done:
				return
			default:
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // an ICMP error of an earlier send; the request is repeated
		}
		c.receive(buffer[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
	}
}

func (c *Client) receive(b []byte, from netip.AddrPort) {
	h, m, err := pfcp.Decode(b)
	if err != nil {
		c.Counters.Malformed.Add(1)
		c.opt.Log.Warn("a PFCP message that we do not understand", "from", from, "error", err)
		c.refuse(from, h, err)
		return
	}
	if !h.Type.Request() {
		c.complete(from, received{h, m, nil})
		return
	}
	c.serve(from, h, m)
}

// refuse answers a request that does not hold what the standard asks for, and fails the request that a response of
// that kind was for.
func (c *Client) refuse(from netip.AddrPort, h pfcp.Header, err error) {
	var refusal *pfcp.Error
	if !errors.As(err, &refusal) {
		return
	}
	if !h.Type.Request() {
		c.complete(from, received{h, nil, err})
		return
	}
	if answer := pfcp.Respond(h.Type, refusal, c.opt.Node); answer != nil {
		c.respond(from, h, 0, answer)
	}
}

func (c *Client) send(b []byte, to netip.AddrPort) error {
	_, err := c.opt.Conn.WriteToUDPAddrPort(b, to)
	return err
}
