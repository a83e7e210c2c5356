// SPDX-License-Identifier: Apache-2.0

// Package n4 is the PFCP server (TS 29.244) of N4, Sxa and Sxb. It owns sockets, transactions, heartbeats, associations
// and limits of peers; sessions are behind the interfaces of Sessions. The README has a picture of the goroutines.
package n4

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"isthmus/controlplane/bucket"
	"isthmus/controlplane/pfcp"
)

// Server is one PFCP entity in the UP function.
type Server struct {
	*transactions
	*peers
	owner
	reports
	cfg      Config
	sessions Sessions
	sockets  []*socket
	unknown  bucket.Bucket // of all peers that we do not know
	requests requests
	calls    calls
	workers  []chan *packet
}

// packet is a message on its way from a reader to a worker or the owner.
type packet struct {
	k      *socket
	from   netip.AddrPort
	h      pfcp.Header
	b      []byte
	at     time.Time // when it was read
	memory [2048]byte
}

var packets = sync.Pool{New: func() any { return new(packet) }}

// New opens the sockets. Nothing is read before Run.
func New(cfg Config, sessions Sessions, log *slog.Logger) (*Server, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{peers: &peers{}, cfg: cfg, sessions: sessions}
	s.transactions = &transactions{
		&journal{log: log, peers: s.peers}, &s.cfg, sessions.Recovery(), newAnswers(cfg.answerBounds())}
	s.answers.known = func(peer netip.Addr) bool { return s.source(peer) != nil }
	s.calls = calls{transactions: s.transactions, peers: s.peers, sessions: sessions}
	s.requests = requests{journal: s.journal, cfg: &s.cfg, open: make(map[requestKey]*request)}
	for range cfg.Workers {
		s.workers = append(s.workers, make(chan *packet, cfg.Queue))
	}
	for i, local := range cfg.Listen {
		k, err := openSocket(i, local.AddrPort, &s.requests)
		if err != nil {
			s.close()
			return nil, err
		}
		s.sockets = append(s.sockets, k)
	}
	s.reports = reports{s.peers, &s.cfg, s.sockets}
	s.owner = owner{
		transactions: s.transactions, peers: s.peers, jobs: jobs{ready: make(chan struct{}, 1)},
		sessions: sessions, sockets: s.sockets, requests: &s.requests, nodes: make(chan *packet, cfg.Queue),
		table: table{s.journal, &s.cfg, make(map[string]*association), nil},
	}
	s.paths.owner, s.dialler.owner = &s.owner, &s.owner
	s.restore()
	return s, nil
}

func (s *Server) close() {
	for _, k := range s.sockets {
		k.conn.Close()
	}
}

// SetTell sets the receiver of association events (toldAs): before Run. Calls come from any goroutine of the server and
// must not block; args are names and values in turn.
func (s *Server) SetTell(tell func(kind, association string, args ...any)) { s.tell = tell }

// Run serves until ctx ends. Associations and sessions stay for the next process.
func (s *Server) Run(ctx context.Context) error {
	var all sync.WaitGroup
	run := func(fn func()) { // sync.WaitGroup.Go is younger than the Go we ask for
		all.Add(1)
		go func() { defer all.Done(); fn() }()
	}
	for _, k := range s.sockets {
		run(func() { k.read(ctx, s.sort) })
		run(func() { k.write(ctx) })
	}
	for _, w := range s.workers {
		run(func() { s.work(ctx, w) })
	}
	run(func() { s.own(ctx) })
	s.log.Info("PFCP ready", "listen", s.cfg.Listen, "node_id", s.cfg.Node.String(), "recovery", s.recovery)
	<-ctx.Done()
	s.calls.stopping.Store(true)
	s.close()
	s.requests.stop()
	all.Wait()
	return nil
}

// Listening returns the addresses of the sockets.
func (s *Server) Listening() []netip.AddrPort {
	var out []netip.AddrPort
	for _, k := range s.sockets {
		out = append(out, k.local)
	}
	return out
}

// Address returns the first listen address of each family.
func (s *Server) Address() (v4, v6 netip.Addr) {
	for _, k := range s.sockets {
		switch a := k.local.Addr(); {
		case a.Is4() && !v4.IsValid():
			v4 = a
		case a.Is6() && !v6.IsValid():
			v6 = a
		}
	}
	return v4, v6
}

// sort is the reader's part: cheap decisions without session state, so that a flood of session messages does not delay
// a heartbeat. Heartbeats are answered at once, other node messages go to the owner, session messages to a worker (row
// A9).
func (s *Server) sort(k *socket, from netip.AddrPort, b []byte) {
	h, why := peek(b)
	src := s.source(from.Addr())
	rate, most, limited := &s.unknown, s.cfg.Rates.Heartbeats, rejectUnknownRate
	if src != nil {
		rate, most, limited = src.rate, s.cfg.Rates.Requests, rejectPeerRate
	}
	within := func() bool {
		_, ok := rate.Take(time.Now(), int(most), time.Second)
		return ok
	}
	if why != accepted {
		if why == rejectVersion && h.Type != pfcp.VersionNotSupportedResponseType && within() {
			s.respond(k, from, h, &pfcp.VersionNotSupportedResponse{}) // §7.6.2
		}
		s.reject(why, from, "")
		return
	}
	s.count.received[h.Type].Add(1)
	if directions[h.Type] == response {
		s.sortResponse(k, from, h, b)
		return
	}
	if !within() {
		s.reject(limited, from, "")
		return
	}
	switch {
	case h.Type == pfcp.HeartbeatRequestType:
		s.paths.asked(k, from, src, b)
	case directions[h.Type] == nodeRequest:
		s.queue(s.nodes, newPacket(k, from, h, b))
	default:
		// One session's messages go to one worker, so that they are carried out in order of arrival.
		n := h.SEID
		if h.Type == pfcp.SessionEstablishmentRequestType {
			n = uint64(h.Sequence)
		}
		s.queue(s.workers[n%uint64(len(s.workers))], newPacket(k, from, h, b))
	}
}

// sortResponse drops unexpected responses before they cost anything (row P32).
func (s *Server) sortResponse(k *socket, from netip.AddrPort, h pfcp.Header, b []byte) {
	switch {
	case !s.requests.awaited(from, h):
		s.reject(rejectUnmatched, from, "response to nothing")
	case h.Type == pfcp.SessionReportResponseType:
		s.queue(s.workers[uint64(h.Sequence)%uint64(len(s.workers))], newPacket(k, from, h, b))
	case h.Type == pfcp.HeartbeatResponseType:
		p := packet{k: k, from: from, h: h, b: b}
		s.requests.answer(&p)
	default:
		s.queue(s.nodes, newPacket(k, from, h, b))
	}
}

// newPacket copies a message out of the reader's memory.
func newPacket(k *socket, from netip.AddrPort, h pfcp.Header, b []byte) *packet {
	p := packets.Get().(*packet)
	p.k, p.from, p.h, p.at = k, from, h, time.Now()
	if len(b) <= len(p.memory) {
		p.b = p.memory[:copy(p.memory[:], b)]
	} else {
		p.b = append([]byte(nil), b...)
	}
	return p
}

func (p *packet) free() {
	p.b, p.k = nil, nil
	packets.Put(p)
}

func (s *Server) queue(q chan *packet, p *packet) {
	select {
	case q <- p:
	default:
		s.reject(rejectQueue, p.from, "")
		p.free()
	}
}

// work carries out session messages.
func (s *Server) work(ctx context.Context, q chan *packet) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-q:
			if p.h.Type == pfcp.SessionReportResponseType {
				s.requests.answer(p)
			} else {
				s.calls.carryOut(p, len(q) > cap(q)/2)
			}
			p.free()
		}
	}
}

var _ Reporter = (*Server)(nil)
