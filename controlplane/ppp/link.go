// SPDX-License-Identifier: Apache-2.0

// Package ppp is one end of a PPP link, server or client: LCP, authentication by PAP, CHAP or MS-CHAPv2, IPCP and
// IPv6CP. Its owner (Env) sends, waits and authenticates; it has no goroutine, no clock, no lock.
package ppp

import (
	"encoding/binary"
	"time"

	"isthmus/controlplane/access"
)

// Role is which end a link is.
type Role uint8

const (
	Server Role = iota // authenticates the peer, gives addresses
	Client
)

// Config is what links have in common. It does not change while a link uses it.
type Config struct {
	Methods      []access.Method // server: in this order, none: the line authenticates; client: those it answers
	Restart      time.Duration   // RFC 1661 §4.6, as the three below
	MaxConfigure uint8
	MaxTerminate uint8
	MaxFailure   uint8         // Configure-Naks in a row, then options are rejected
	AuthTimeout  time.Duration // from LCP open to a proof that can be judged
	Retries      uint8         // further MS-CHAPv2 attempts on one link
	Name         string        // server: of its CHAP challenges
	ID           uint64        // IPv6 interface identifier of this end; client: 0 asks for one
	User         string        // client
	Password     string        // client
	Families     access.Families

	Now    func() time.Duration // monotonic, of any origin; not zero
	Random func() uint64
	Buffer []byte // empty, with room for one packet of 1,500 octets and 300 more: links write there what they send
}

// DefaultConfig has RFC 1661's values.
func DefaultConfig() Config {
	return Config{Methods: []access.Method{access.CHAP, access.MSCHAPv2, access.PAP}, Restart: 3 * time.Second,
		MaxConfigure: 10, MaxTerminate: 2, MaxFailure: 5, AuthTimeout: 30 * time.Second, Retries: 2,
		Name: "isthmus", ID: 1}
}

// Env is a link's owner. Calls come from within the link's methods.
type Env interface {
	Send(protocol uint16, packet []byte) // packet is in Config.Buffer, and not used behind it
	Wake(at time.Duration)               // calls Expire then, in place of what was asked before; 0: not at all
	// Authenticate is for servers: the answer comes by Link.Authenticated, perhaps at once. c is valid until then.
	Authenticate(c *access.Credentials)
	Network(f access.Families)             // the families that are open; again when they, or Possible, change
	Closed(cause access.Cause, why string) // the link is over, once; no method needs to be called any more
}

// Network is what a server gives its peer.
type Network struct {
	access.Families            // V4: IPCP runs, V6: IPv6CP does
	Local, Remote   [4]byte    // IPv4 addresses of this end and of the peer
	DNS             [2][4]byte // 0.0.0.0: none
	LocalID         uint64     // interface identifiers; this end's is Config.ID's to begin with
	RemoteID        uint64
	Fixed           bool // RemoteID is not for the peer to choose
}

// The protocols of a link that have an automaton.
const (
	nLCP = iota
	nIPCP
	nIPv6CP
)

// maxRounds bounds Configure-Requests of a negotiation without end; settled is how long a protocol has to be open for
// its bounds to start again.
const (
	maxRounds = 24
	settled   = time.Minute
)

// Link is one end. Start or Resume initialises its zero value; then it must not be copied.
type Link struct {
	env       Env
	config    *Config
	auth      *auth // from LCP open until the first network protocol is open
	layers    [3]automaton
	network   Network
	asked     time.Duration // what Wake was last asked for
	magic     uint32
	peerMagic uint32
	mru       uint16 // the largest that this end takes; what the peer may send
	peerMRU   uint16
	role      Role
	method    uint8 // server: 1 + index in Methods of what it asks for; client: access.Method that is asked for
	proven    bool  // authenticated
	admitted  bool  // network is known
	over      bool
	loops     uint8 // own magic numbers seen
	rejects   uint8 // Protocol-Rejects that were sent
	why       string
	cause     access.Cause
}

// Start begins negotiation. mru is the largest packet that the lower layer carries.
func (l *Link) Start(env Env, c *Config, role Role, mru uint16) {
	*l = Link{env: env, config: c, role: role, mru: mru, peerMRU: defaultMRU}
	l.network.LocalID = c.ID
	l.newMagic()
	a := &l.layers[nLCP]
	a.asks = askMRU | askMagic
	if role == Server && len(c.Methods) > 0 {
		a.asks |= askAuth
		l.method = 1
	}
	l.control(nLCP).run(open, nil, nil)
	l.control(nLCP).run(up, nil, nil)
	l.wake()
}

func (l *Link) newMagic() {
	l.magic = 0
	for l.magic == 0 || l.magic == l.peerMagic {
		l.magic = uint32(l.config.Random())
	}
}

// Discard is why a packet was taken no notice of.
type Discard uint8

const (
	Taken      Discard = iota
	Malformed          // lengths do not fit
	Unexpected         // of a protocol whose turn it is not yet, or not any more
	Stale              // an answer to no request, or to an older one
)

// Receive takes what is behind the protocol number. packet is not used behind it.
func (l *Link) Receive(protocol uint16, b []byte) Discard {
	if l.over {
		return Unexpected
	}
	defer l.wake()
	switch protocol {
	case LCP:
		return l.control(nLCP).receive(b)
	case PAP, CHAP:
		return l.authPacket(protocol, b)
	case IPCP, IPv6CP:
		n := nIPCP
		if protocol == IPv6CP {
			n = nIPv6CP
		}
		l.impliedSuccess()
		if l.layers[n].state > starting {
			return l.control(n).receive(b)
		}
		if a := l.auth; a != nil && a.keeps(n, b) {
			return Taken
		}
	}
	if l.layers[nLCP].state != opened || !l.admitted || protocol == IPv4 || protocol == IPv6 {
		return Unexpected // RFC 1661 §3.4, §3.5
	}
	return l.rejectProtocol(protocol, b)
}

// rejectProtocol is RFC 1661 §5.7. A peer that ignores it gets a bounded number of rejects.
func (l *Link) rejectProtocol(protocol uint16, b []byte) Discard {
	if l.rejects == maxRounds {
		return Unexpected
	}
	l.rejects++
	a := &l.layers[nLCP]
	out := l.begin(protocolReject, a.nextID())
	out = binary.BigEndian.AppendUint16(out, protocol)
	l.send(LCP, append(out, b[:min(len(b), l.room(len(out)))]...))
	return Taken
}

// room is how much of a rejected packet fits into a packet that the peer takes.
func (l *Link) room(used int) int { return max(0, min(int(l.peerMRU), int(l.mru))-used) }

func (a *automaton) nextID() uint8 {
	if !a.waits { // an answer that is still awaited keeps its identifier
		a.id++
		return a.id
	}
	return a.id + 128
}

// begin writes a packet's head, send its length.
func (l *Link) begin(code, id uint8) []byte { return append(l.config.Buffer, code, id, 0, 0) }

func (l *Link) send(protocol uint16, b []byte) {
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	l.env.Send(protocol, b)
}

// Expire is called when a time that Wake was asked for has come.
func (l *Link) Expire() {
	if l.over {
		return
	}
	now := l.config.Now()
	for n := range l.layers {
		a := &l.layers[n]
		if !a.running() || a.at > now {
			continue
		}
		if a.counter > 0 {
			l.control(n).run(timeout, nil, nil)
		} else {
			l.control(n).run(expired, nil, nil)
		}
	}
	if l.auth != nil && l.auth.at != 0 && l.auth.at <= now {
		l.auth.expired()
	}
	l.asked = 0
	l.wake()
}

// wake asks for the earliest time that something is waited for.
func (l *Link) wake() {
	var at time.Duration
	if !l.over {
		for n := range l.layers {
			if a := &l.layers[n]; a.running() && (at == 0 || a.at < at) {
				at = a.at
			}
		}
		if l.auth != nil && l.auth.at != 0 && (at == 0 || l.auth.at < at) {
			at = l.auth.at
		}
	}
	if at != l.asked {
		l.asked = at
		l.env.Wake(at)
	}
}

// Close terminates the link with the peer: Env.Closed follows, with this text.
func (l *Link) Close(cause access.Cause, why string) {
	if l.over {
		return
	}
	l.blame(cause, why)
	l.control(nLCP).run(closeIt, nil, nil)
	if l.layers[nLCP].state <= closed {
		l.finish(cause, why)
	}
	l.wake()
}

// blame sets the cause of the link's end; the first one counts.
func (l *Link) blame(cause access.Cause, why string) {
	if l.why == "" {
		l.cause, l.why = cause, why
	}
}

// Abort ends it at once: one message to the peer, no wait; Env.Closed is not called.
func (l *Link) Abort() {
	if a := &l.layers[nLCP]; a.state > starting && !l.over {
		l.send(LCP, l.begin(terminateRequest, a.id+1))
	}
	l.Drop()
}

// Drop is Abort without a word: the layer below is gone.
func (l *Link) Drop() {
	if !l.over {
		l.over = true
		l.wake()
	}
}

// finish is the end of the link.
func (l *Link) finish(cause access.Cause, why string) {
	if l.over {
		return
	}
	l.over = true
	if l.why != "" {
		cause, why = l.cause, l.why
	}
	l.wake() // no wait: reported now, since the owner may wait for its next dial behind Closed
	l.env.Closed(cause, why)
}

// openNetwork starts the network control protocols, which wait for LCP, authentication and addresses.
func (l *Link) openNetwork() {
	early := [3][]byte{}
	if l.auth != nil {
		early, l.auth.early = l.auth.early, early
	}
	for n, on := range [3]bool{nIPCP: l.network.V4, nIPv6CP: l.network.V6} {
		if a := &l.layers[n]; on && a.state <= starting {
			if a.state == initial {
				a.asks = askAddress
				if l.role == Client {
					a.asks |= askDNS1 | askDNS2
				}
			}
			l.control(n).run(open, nil, nil)
			l.control(n).run(up, nil, nil)
		}
	}
	for n, b := range early {
		if b != nil && l.layers[n].state > starting {
			l.control(n).receive(b)
		}
	}
}

// families are those that are open.
func (l *Link) families() access.Families {
	return access.Families{V4: l.layers[nIPCP].wasUp, V6: l.layers[nIPv6CP].wasUp}
}

// Possible are the families that are open or being negotiated.
func (l *Link) Possible() access.Families {
	on := func(n int, wanted bool) bool {
		s := l.layers[n].state
		return wanted && (s <= starting || s >= reqSent)
	}
	return access.Families{V4: on(nIPCP, l.network.V4), V6: on(nIPv6CP, l.network.V6)}
}

// MTU is the largest packet that may be sent to the peer.
func (l *Link) MTU() uint16 { return min(l.mru, l.peerMRU) }

// Magic is this end's number in echoes.
func (l *Link) Magic() uint32 { return l.magic }

// Network returns the negotiated values: a client's addresses, as the server gave them.
func (l *Link) Network() *Network { return &l.network }

// Echo sends an LCP Echo-Request, when the link is open.
func (l *Link) Echo() {
	if a := &l.layers[nLCP]; a.state == opened && !l.over {
		l.send(LCP, binary.BigEndian.AppendUint32(l.begin(echoRequest, a.nextID()), l.magic))
	}
}

// State is what a server needs to continue an open link elsewhere, beside its network.
type State struct {
	Magic, PeerMagic uint32
	MRU, PeerMRU     uint16
	RemoteID         uint64
	Open             access.Families
}

// State of an open link.
func (l *Link) State() State {
	return State{l.magic, l.peerMagic, l.mru, l.peerMRU, l.network.RemoteID, l.families()}
}

// Resume makes a server's link that is open, without a word to the peer. Network protocols of n that were not open are
// left for the peer to open.
func (l *Link) Resume(env Env, c *Config, s State, n Network) {
	*l = Link{env: env, config: c, role: Server, mru: s.MRU, peerMRU: s.PeerMRU, magic: s.Magic,
		peerMagic: s.PeerMagic, network: n, proven: true, admitted: true}
	l.layers[nLCP] = automaton{state: opened, at: c.Now(), asks: askMRU | askMagic}
	for i, on := range [3]bool{nIPCP: s.Open.V4, nIPv6CP: s.Open.V6} {
		if i == nLCP || i == nIPCP && !n.V4 || i == nIPv6CP && !n.V6 {
			continue
		}
		l.layers[i].state = stopped
		l.layers[i].asks = askAddress
		if on {
			l.layers[i].state, l.layers[i].at, l.layers[i].wasUp = opened, c.Now(), true
		}
	}
	l.network.LocalID = c.ID
	if s.Open.V6 {
		l.network.RemoteID = s.RemoteID
	}
}
