// SPDX-License-Identifier: Apache-2.0

// Package load drives a user plane over N4 or Sx. It establishes, modifies and deletes sessions at a given rate, checks
// every answer, and reports percentiles. The load is open loop: a slow user plane does not slow it until the window of
// unanswered requests is full, and then the result says so.
package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"isthmus/controlplane/pfcp"
)

// Options of a run.
type Options struct {
	Peer  netip.AddrPort
	Local netip.AddrPort // port 0: that of PFCP if it is free, else any
	Node  pfcp.NodeID

	Rate        float64       // establishments per second
	Sessions    int           // held at a time; one more, and the oldest is deleted
	Seconds     float64       // 0: until Sessions are established
	Hold        time.Duration // in the end, idle, until they are deleted
	ModifyRatio float64       // modifications for each establishment
	Window      int           // most unanswered requests

	T1 time.Duration
	N1 int

	Access, Core string     // network instances
	FirstUE      netip.Addr // IPv4; one for each session from here on
	AccessPeer   netip.Addr // IPv4; where the downlink FAR sends to

	Progress func(what string, share float64) // called often; may be nil
	Warn     func(text string)                // called before the association; may be nil
}

type kind uint8

const (
	establishment kind = iota
	modification
	deletion
	kinds
)

var requestTypes = [kinds]pfcp.MessageType{
	pfcp.SessionEstablishmentRequestType, pfcp.SessionModificationRequestType, pfcp.SessionDeletionRequestType,
}

func (k kind) String() string { return [kinds]string{"establishment", "modification", "deletion"}[k] }

// session is one slot; a slot's UE address and CP SEID stay the same.
type session struct {
	state    state
	up       uint64
	teid     tunnel
	modify   uint32 // modifications so far; makes the next one differ
	pending  uint32 // modifications still to be made
	refusals uint8  // of its deletion, for congestion
}

type state uint8

const (
	free state = iota
	busy       // a request is under way
	held
)

type tunnel struct {
	teid    uint32
	address [16]byte
}

// request waits for its answer.
type request struct {
	sequence uint32
	slot     uint32
	kind     kind
	tries    uint8
	live     bool
	first    time.Time
	next     time.Time // when it is repeated
}

// tableSize is that of the table of requests, indexed by sequence number. A request keeps its number when repeated.
const tableSize = 1 << 16

type run struct {
	opt      Options
	conn     *net.UDPConn
	raw      syscall.RawConn
	tmpl     *templates
	recovery time.Time

	mu       sync.Mutex
	table    [tableSize]request
	waiting  []uint32 // sequence numbers in the order of their deadlines
	sequence uint32
	live     int // requests that wait
	slots    []session
	unused   []uint32
	oldest   []uint32 // held sessions, oldest first
	seids    map[uint64]struct{}
	tunnels  map[tunnel]struct{}
	due      float64 // modifications, by the ratio
	ending   bool    // no more sessions: delete all
	drained  chan struct{}
	result   Result
	latency  [kinds]histogram
}

// Result of a run. Verdict judges it.
type Result struct {
	Peer       string  `json:"peer"`
	Offered    float64 `json:"offered_per_s"`
	Achieved   float64 `json:"achieved_per_s"` // establishments answered in the time that they were sent in
	Seconds    float64 `json:"seconds"`
	Sessions   int     `json:"sessions"`      // wanted at a time
	Most       int     `json:"most_sessions"` // held at a time
	HeldBack   uint64  `json:"held_back"`     // establishments not sent in time: the window was full
	Resent     uint64  `json:"resent"`
	Unanswered uint64  `json:"unanswered"`
	Stray      uint64  `json:"stray"` // answers to nothing, second answers to repeated requests among them
	Reports    uint64  `json:"reports"`

	Established uint64 `json:"established"`
	Modified    uint64 `json:"modified"`
	Deleted     uint64 `json:"deleted"`

	Latency map[string]Latency `json:"latency"` // by kind of request, from the first sending to the answer's arrival at the socket
	Wrong   map[string]uint64  `json:"wrong"`   // what was wrong with answers
}

// Verdict is nil when every request was answered and every answer was right.
func (r *Result) Verdict() error {
	var errs []error
	refused := false
	for what, n := range r.Wrong {
		errs = append(errs, fmt.Errorf("%d answers were wrong: %s", n, what))
		refused = refused || strings.Contains(what, causeWord)
	}
	if refused {
		errs = append(errs, errors.New("the user plane's `isthmus show n4` says why"))
	}
	if r.Unanswered > 0 {
		errs = append(errs, fmt.Errorf("%d requests were not answered", r.Unanswered))
	}
	return errors.Join(errs...)
}

func (opt *Options) check() error {
	switch {
	case !opt.Peer.IsValid():
		return errors.New("no peer")
	case opt.Rate <= 0 || opt.Rate > 1e6:
		return fmt.Errorf("a rate of %g per second is not between 0 and 1,000,000", opt.Rate)
	case opt.Sessions < 1 || opt.Sessions > 1<<21:
		return fmt.Errorf("%d sessions are not between 1 and %d", opt.Sessions, 1<<21)
	case opt.Window < 1 || opt.Window > tableSize/2:
		return fmt.Errorf("a window of %d is not between 1 and %d", opt.Window, tableSize/2)
	case opt.Seconds < 0 || opt.Hold < 0 || opt.ModifyRatio < 0 || opt.ModifyRatio > 1000:
		return errors.New("seconds, hold and modify ratio may not be negative, the ratio not above 1000")
	case !opt.FirstUE.Is4() || !opt.AccessPeer.Is4():
		return errors.New("the UE's and the access peer's address are IPv4 addresses")
	case opt.T1 <= 0 || opt.N1 < 0 || opt.N1 > 100:
		return errors.New("T1 must be above 0, N1 between 0 and 100")
	}
	return nil
}

// Run does it. A result comes back whenever sessions were tried, also beside an error.
func Run(ctx context.Context, opt Options) (*Result, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	conn, taken, err := dial(opt.Local, opt.Peer)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if taken != nil && opt.Warn != nil {
		opt.Warn(fmt.Sprintf("%v: we send from %s, and see no heartbeat or report of the user plane, which go to "+
			"port %d. Free that port, or give another --local", taken, conn.LocalAddr(), pfcp.Port))
	}
	conn.SetReadBuffer(8 << 20) // bursts of answers; the kernel gives what it allows
	conn.SetWriteBuffer(8 << 20)
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	if opt.Node == (pfcp.NodeID{}) {
		opt.Node = pfcp.NodeID{Addr: local}
	}
	tmpl, err := newTemplates(&opt, local)
	if err != nil {
		return nil, err
	}
	r := newRun(opt, conn, tmpl)
	if r.raw, err = conn.SyscallConn(); err != nil {
		return nil, err
	}
	if err := r.associate(ctx); err != nil {
		return nil, err
	}
	readers := make(chan error, 1)
	go func() { readers <- r.read() }()
	stop := make(chan struct{})
	repeats := make(chan struct{})
	go func() { r.repeat(stop); close(repeats) }()
	if err = r.offer(ctx); err == nil {
		err = r.idle(ctx)
	}
	if e := r.drain(); err == nil {
		err = e
	}
	close(stop)
	<-repeats
	r.release()
	conn.Close()
	if e := <-readers; err == nil && !errors.Is(e, net.ErrClosed) {
		err = e
	}
	return r.finish(), err
}

// dial takes the port of PFCP where it is free: the user plane sends its requests there (TS 29.244 §6.3), heartbeats
// among them. On any other port answers come alone, and the association fails meanwhile: taken says why.
func dial(local, peer netip.AddrPort) (conn *net.UDPConn, taken, err error) {
	to := net.UDPAddrFromAddrPort(peer)
	conn, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(local), to)
	if err != nil || local.Port() != 0 {
		return conn, nil, err
	}
	// The kernel chose the address; the first socket has no use then.
	from := netip.AddrPortFrom(conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr(), pfcp.Port)
	known, taken := net.DialUDP("udp", net.UDPAddrFromAddrPort(from), to)
	if taken != nil {
		return conn, taken, nil
	}
	conn.Close()
	return known, nil, nil
}

func newRun(opt Options, conn *net.UDPConn, tmpl *templates) *run {
	// Slots beyond those held: sessions on their way in and out.
	r := &run{
		opt: opt, conn: conn, tmpl: tmpl, recovery: time.Now().Truncate(time.Second),
		slots: make([]session, opt.Sessions+opt.Window), drained: make(chan struct{}),
		seids: make(map[uint64]struct{}, opt.Sessions), tunnels: make(map[tunnel]struct{}, opt.Sessions),
	}
	for i := len(r.slots) - 1; i >= 0; i-- {
		r.unused = append(r.unused, uint32(i))
	}
	r.result = Result{Peer: opt.Peer.String(), Offered: opt.Rate, Sessions: opt.Sessions, Wrong: map[string]uint64{}}
	return r
}

// finish makes the result. Nothing runs any more.
func (r *run) finish() *Result {
	res := &r.result
	res.Latency = map[string]Latency{}
	for k := range kinds {
		res.Latency[k.String()] = r.latency[k].latency()
	}
	res.Established = r.latency[establishment].count
	res.Modified = r.latency[modification].count
	res.Deleted = r.latency[deletion].count
	return res
}
