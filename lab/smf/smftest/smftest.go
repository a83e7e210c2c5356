// SPDX-License-Identifier: Apache-2.0

// Package smftest is a user plane for tests: it answers PFCP like one, keeps what it was asked for, and moves no
// packets.
package smftest

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"isthmus/controlplane/pfcp"
)

// Session is what a CP function asked for.
type Session struct {
	CP       uint64
	Request  *pfcp.SessionEstablishmentRequest
	Modified []*pfcp.SessionModificationRequest
}

// Server is one user plane on the loopback interface.
type Server struct {
	Addr netip.AddrPort

	conn *net.UDPConn

	mu       sync.Mutex
	lose     func(h pfcp.Header) bool
	change   func(h pfcp.Header, answer pfcp.Message) pfcp.Message
	recovery time.Time
	seid     uint64
	teid     uint32
	sequence uint32
	sessions map[uint64]*Session
	peer     netip.AddrPort
	answers  chan pfcp.Message
	cache    map[uint32]pfcp.Message // of the newest peer
	requests map[pfcp.MessageType]int
}

// Start runs a user plane until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadBuffer(4 << 20)
	s := &Server{
		Addr: conn.LocalAddr().(*net.UDPAddr).AddrPort(), conn: conn,
		recovery: time.Now().Add(-time.Hour).Truncate(time.Second),
		sessions: map[uint64]*Session{}, answers: make(chan pfcp.Message, 16), cache: map[uint32]pfcp.Message{},
		requests: map[pfcp.MessageType]int{},
	}
	done := make(chan struct{})
	go func() { s.read(t); close(done) }()
	t.Cleanup(func() { conn.Close(); <-done })
	return s
}

// Lose sets a function that selects requests to ignore; nil: none.
func (s *Server) Lose(f func(h pfcp.Header) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = f
}

// Change gives a function that may alter answers; nothing is sent where it returns nil.
func (s *Server) Change(f func(h pfcp.Header, answer pfcp.Message) pfcp.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change = f
}

// Sessions counts the sessions there are.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Session returns a copy of a session by our SEID, nil without one.
func (s *Server) Session(seid uint64) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[seid]
	if one == nil {
		return nil
	}
	return &Session{one.CP, one.Request, slices.Clone(one.Modified)}
}

// Restart forgets everything, as a restarted user plane.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recovery = time.Now().Truncate(time.Second)
	s.sessions = map[uint64]*Session{}
}

// Count of requests of a type, repeated ones too.
func (s *Server) Count(t pfcp.MessageType) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[t]
}

// Ask sends a request to the CP function that spoke last and returns its answer, nil when none comes.
func (s *Server) Ask(seid uint64, m pfcp.Message) pfcp.Message {
	s.mu.Lock()
	to := s.peer
	s.mu.Unlock()
	return s.AskAt(to, seid, m)
}

// AskAt asks at an address, such as the port of PFCP.
func (s *Server) AskAt(to netip.AddrPort, seid uint64, m pfcp.Message) pfcp.Message {
	s.mu.Lock()
	s.sequence++
	h := pfcp.Header{SEID: seid, Sequence: s.sequence}
	s.mu.Unlock()
	b, err := pfcp.Encode(h, m)
	if err != nil {
		return nil
	}
	s.conn.WriteToUDPAddrPort(b, to)
	select {
	case a := <-s.answers:
		return a
	case <-time.After(time.Minute): // only a failing test waits so long
		return nil
	}
}

func (s *Server) read(t testing.TB) {
	b := make([]byte, 65536)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		h, m, err := pfcp.Decode(b[:n])
		if err != nil {
			t.Errorf("a message of type %d cannot be read: %v", h.Type, err)
			continue
		}
		if !h.Type.Request() {
			s.answers <- m
			continue
		}
		s.mu.Lock()
		s.requests[h.Type]++
		s.peer = from
		lose, change := s.lose, s.change
		s.mu.Unlock()
		if lose != nil && lose(h) {
			continue
		}
		s.mu.Lock()
		answer := s.cache[h.Sequence]
		seid := uint64(0)
		if answer == nil || h.Type == pfcp.AssociationSetupRequestType {
			answer, seid = s.answer(h, m)
			if h.HasSEID {
				s.cache[h.Sequence] = answer
			}
		} else if one := s.sessions[h.SEID]; one != nil {
			seid = one.CP
		}
		s.mu.Unlock()
		if change != nil {
			answer = change(h, answer)
		}
		if answer == nil {
			continue
		}
		out, err := pfcp.Encode(pfcp.Header{Sequence: h.Sequence, SEID: seid}, answer)
		if err != nil {
			t.Errorf("an answer to a message of type %d cannot be written: %v", h.Type, err)
			continue
		}
		s.conn.WriteToUDPAddrPort(out, from)
	}
}

// Endpoint is the address of all F-TEIDs over IPv4.
var Endpoint = netip.MustParseAddr("192.0.2.1")

var node = pfcp.NodeID{FQDN: "upf.test"}

// answer does what a request asks for. It returns the CP's SEID for the header.
func (s *Server) answer(h pfcp.Header, m pfcp.Message) (pfcp.Message, uint64) {
	switch r := m.(type) {
	case *pfcp.HeartbeatRequest:
		return &pfcp.HeartbeatResponse{Recovery: s.recovery}, 0
	case *pfcp.AssociationSetupRequest:
		return &pfcp.AssociationSetupResponse{
			Node: node, Cause: pfcp.CauseAccepted, Recovery: s.recovery, Features: pfcp.UPFtup | pfcp.UPEmpu,
		}, 0
	case *pfcp.AssociationReleaseRequest:
		clear(s.sessions)
		return &pfcp.AssociationReleaseResponse{Node: node, Cause: pfcp.CauseAccepted}, 0
	case *pfcp.PFDManagementRequest:
		return &pfcp.PFDManagementResponse{Cause: pfcp.CauseAccepted}, 0
	case *pfcp.SessionEstablishmentRequest:
		return s.establish(r), r.CP.SEID
	case *pfcp.SessionModificationRequest:
		one := s.sessions[h.SEID]
		if one == nil {
			return &pfcp.SessionModificationResponse{Cause: pfcp.CauseContextNotFound}, 0
		}
		one.Modified = append(one.Modified, r)
		answer := &pfcp.SessionModificationResponse{Cause: pfcp.CauseAccepted}
		if r.QueryAll {
			answer.Usage = []pfcp.UsageReport{report(1, 100, 40)}
		}
		return answer, one.CP
	case *pfcp.SessionDeletionRequest:
		one := s.sessions[h.SEID]
		if one == nil {
			return &pfcp.SessionDeletionResponse{Cause: pfcp.CauseContextNotFound}, 0
		}
		delete(s.sessions, h.SEID)
		answer := &pfcp.SessionDeletionResponse{Cause: pfcp.CauseAccepted}
		for _, u := range one.Request.URR {
			answer.Usage = append(answer.Usage, report(u.ID, 1000, 400))
		}
		return answer, one.CP
	}
	return nil, 0
}

func (s *Server) establish(r *pfcp.SessionEstablishmentRequest) pfcp.Message {
	s.seid++
	seid := 0xabc0000000000000 | s.seid
	s.sessions[seid] = &Session{CP: r.CP.SEID, Request: r}
	answer := &pfcp.SessionEstablishmentResponse{
		Node: node, Cause: pfcp.CauseAccepted, UP: pfcp.FSEID{SEID: seid, IPv4: s.Addr.Addr()},
	}
	shared := map[uint8]uint32{}
	for i := range r.PDR {
		f := r.PDR[i].PDI.LocalFTEID
		if f == nil || !f.Choose {
			continue
		}
		teid := shared[f.ChooseID]
		if !f.HasChooseID || teid == 0 {
			s.teid++
			teid = s.teid
			shared[f.ChooseID] = teid
		}
		chosen := pfcp.FTEID{TEID: teid}
		if f.WantIPv6 {
			chosen.IPv6 = netip.MustParseAddr("2001:db8::1")
		} else {
			chosen.IPv4 = Endpoint
		}
		answer.Created = append(answer.Created, pfcp.CreatedPDR{ID: r.PDR[i].ID, LocalFTEID: &chosen})
	}
	return answer
}

func report(urr uint32, total, up uint64) pfcp.UsageReport {
	now := time.Now().Truncate(time.Second)
	return pfcp.UsageReport{URR: urr, Trigger: 1 << 11, Start: now, End: now, Volume: &[3]uint64{total, up, total - up}}
}
