// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"isthmus/controlplane/bucket"
	"isthmus/controlplane/config"
)

// Cause is why a request was not obeyed (RFC 5176 §3.5).
type Cause uint32

const (
	UnsupportedAttribute Cause = 401
	MissingAttribute     Cause = 402
	NASMismatch          Cause = 403
	InvalidRequest       Cause = 404
	UnsupportedService   Cause = 405
	InvalidValue         Cause = 407
	Prohibited           Cause = 501
	SessionNotFound      Cause = 503
	NotRemovable         Cause = 504
	ResourcesUnavailable Cause = 506
	SeveralSessions      Cause = 508
)

var causeText = map[Cause]string{
	UnsupportedAttribute: "an attribute is not served", MissingAttribute: "an attribute is missing",
	NASMismatch: "for another NAS", InvalidRequest: "no such request", InvalidValue: "a value cannot be used",
	UnsupportedService: "a service is not served", Prohibited: "prohibited", SessionNotFound: "no such session",
	NotRemovable: "the session cannot be removed", ResourcesUnavailable: "no room",
	SeveralSessions: "several sessions",
}

func (c Cause) String() string { return causeText[c] }

// Answer ends a request: 0 is ACK. why has more words than the cause, or none.
type Answer func(c Cause, why string)

// Refused is a request that was not carried out.
type Refused struct {
	From   netip.Addr
	Client string  // of the configuration; empty: unlisted
	Packet *Packet // nil: not authentic
	Cause  Cause   // 0: dropped
	Why    string
}

// DynamicCounters are since the start.
type DynamicCounters struct {
	Changes, Disconnects, ACKs, NAKs   uint64
	Causes                             map[Cause]uint64 // of NAKs
	Unlisted                           uint64           // dropped: from an unlisted address
	RateLimited, Malformed             uint64           // dropped
	UnexpectedCode, WrongAuthenticator uint64           // dropped
	WrongSignature                     uint64           // dropped: Message-Authenticator is wrong, or missing
	Replayed                           uint64           // dropped: Event-Timestamp outside of the window
	Duplicates                         uint64           // answered as before, or under way
}

// Dynamic is the server side of RFC 5176: authentic requests of listed clients, each once, go to its handler.
type Dynamic struct {
	// handle carries out a request and calls answer once, from anywhere. It must not wait.
	handle  func(p *Packet, answer Answer)
	refused func(r *Refused)
	now     func() time.Time
	// up is our running time. The wall clock, which may be set back, is only compared with Event-Timestamp.
	up func() time.Duration

	mu     sync.Mutex
	config config.CoA // each client with its secret
	limits map[netip.Prefix]*bucket.Bucket
	counts DynamicCounters
	seen   map[seenKey]*seenRequest
	order  []*seenRequest // by time
	conns  []*net.UDPConn
}

// seenKey is a packet from anywhere: its authenticator is a hash of all of it and the secret.
type seenKey struct {
	id   uint8
	auth [16]byte
}

// seenRequest is remembered while it could be sent again.
type seenRequest struct {
	key    seenKey
	at     time.Duration // of up
	answer []byte        // nil: not yet
}

const maxSeen = 1 << 18

// NewDynamic makes a server that does not listen yet. refused gets each request that is not carried out.
func NewDynamic(handle func(p *Packet, answer Answer), refused func(r *Refused)) *Dynamic {
	began := time.Now()
	return &Dynamic{handle: handle, refused: refused, now: time.Now,
		up: func() time.Duration { return time.Since(began) }, limits: map[netip.Prefix]*bucket.Bucket{},
		seen:   map[seenKey]*seenRequest{},
		counts: DynamicCounters{Causes: map[Cause]uint64{}}}
}

// Bound are addresses that a server may listen to from now on.
type Bound struct{ conns, opened []*net.UDPConn }

// Bind opens those of the addresses that the server does not listen to yet.
func (d *Dynamic) Bind(addresses []netip.AddrPort) (*Bound, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := &Bound{}
	for _, a := range addresses {
		conn := d.listening(a)
		if conn == nil {
			var err error
			if conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(a)); err != nil {
				b.Close()
				return nil, err
			}
			b.opened = append(b.opened, conn)
		}
		b.conns = append(b.conns, conn)
	}
	return b, nil
}

// Close gives up what Bind opened.
func (b *Bound) Close() {
	for _, c := range b.opened {
		c.Close()
	}
}

// Use sets clients, each with its secret, and limits, and listens to the last Bind's result in place of former
// addresses. Seen requests are remembered.
func (d *Dynamic) Use(c config.CoA, b *Bound) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.config = c
	clear(d.limits)
	for _, conn := range b.opened {
		go receive(conn, func(from netip.AddrPort, b []byte) { d.request(conn, from, bytes.Clone(b)) })
	}
	for _, conn := range d.conns {
		if !slices.Contains(b.conns, conn) {
			conn.Close()
		}
	}
	d.conns = b.conns
}

func (d *Dynamic) listening(a netip.AddrPort) *net.UDPConn {
	for _, c := range d.conns {
		if local := c.LocalAddr().(*net.UDPAddr).AddrPort(); netip.AddrPortFrom(local.Addr().Unmap(),
			local.Port()) == a {
			return c
		}
	}
	return nil
}

// Addresses that it listens to.
func (d *Dynamic) Addresses() (list []netip.AddrPort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		list = append(list, c.LocalAddr().(*net.UDPAddr).AddrPort())
	}
	return list
}

// Counters of the moment.
func (d *Dynamic) Counters() DynamicCounters {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.counts
	out.Causes = maps.Clone(d.counts.Causes)
	return out
}

// Close stops listening.
func (d *Dynamic) Close() { d.Use(config.CoA{}, &Bound{}) }

// request is a datagram. What is not authentic gets no answer.
func (d *Dynamic) request(conn *net.UDPConn, from netip.AddrPort, b []byte) {
	d.mu.Lock()
	client, why := d.admit(from.Addr())
	d.mu.Unlock()
	r := &Refused{From: from.Addr().Unmap()}
	drop := func(why string) {
		r.Why = why
		d.refused(r)
	}
	if client != nil {
		r.Client = client.Address.String()
	}
	if why != "" {
		drop(why)
		return
	}
	p, err := d.read(b, client)
	if err != nil {
		d.mu.Lock()
		d.dropped(err)
		d.mu.Unlock()
		drop(err.Error())
		return
	}
	r.Packet = p
	key := seenKey{p.ID, p.Authenticator}
	d.mu.Lock()
	now := d.now()
	d.expire()
	if known := d.seen[key]; known != nil {
		d.counts.Duplicates++
		answer := known.answer
		d.mu.Unlock()
		if answer != nil {
			_, _ = conn.WriteToUDPAddrPort(answer, from)
		}
		return
	}
	cause, why := d.fresh(p, now)
	if why != "" && cause == 0 {
		d.counts.Replayed++
		d.mu.Unlock()
		drop(why)
		return
	}
	one := &seenRequest{key: key, at: d.up()}
	if len(d.seen) < maxSeen {
		d.seen[key] = one
		d.order = append(d.order, one)
	} else {
		cause, why = ResourcesUnavailable, "too many requests are remembered"
	}
	if p.Code == CoARequest {
		d.counts.Changes++
	} else {
		d.counts.Disconnects++
	}
	d.mu.Unlock()
	var once sync.Once
	reply := func(c Cause, why string) {
		once.Do(func() {
			if c != 0 {
				r.Cause, r.Why = c, why
				if why == "" {
					r.Why = c.String()
				}
				d.refused(r)
			}
			d.answer(conn, from, client, p, one, c)
		})
	}
	if cause != 0 {
		reply(cause, why)
		return
	}
	d.handle(p, reply)
}

// admit finds the client of the longest prefix; otherwise, or above its rate, why is set. The lock is held.
func (d *Dynamic) admit(from netip.Addr) (_ *config.CoAClient, why string) {
	var found *config.CoAClient
	for i := range d.config.Clients {
		c := &d.config.Clients[i]
		if c.Address.Contains(from) && (found == nil || c.Address.Bits() > found.Address.Bits()) {
			found = c
		}
	}
	if found == nil {
		d.counts.Unlisted++
		return nil, "no client of radius.coa.clients"
	}
	b := d.limits[found.Address.Prefix]
	if b == nil {
		b = &bucket.Bucket{}
		d.limits[found.Address.Prefix] = b
	}
	if _, ok := b.Take(time.Unix(0, 0).Add(d.up()), int(d.config.Rate), time.Second); !ok {
		d.counts.RateLimited++
		return found, fmt.Sprintf("more than radius.coa.rate, %d requests a second", d.config.Rate)
	}
	return found, ""
}

var errCode = errors.New("neither CoA-Request nor Disconnect-Request")

func (d *Dynamic) read(b []byte, client *config.CoAClient) (*Packet, error) {
	b, err := Trim(b)
	if err != nil {
		return nil, err
	}
	if c := Code(b[0]); c != CoARequest && c != DisconnectRequest {
		return nil, errCode
	}
	policy := Optional
	if client.Policy == "required" {
		policy = Anywhere
	}
	if err := VerifyRequest(b, []byte(client.Secret), policy); err != nil {
		return nil, err
	}
	p, err := Parse(b)
	if err == nil {
		err = p.Check()
	}
	return p, err
}

func (d *Dynamic) dropped(err error) {
	switch err {
	case errCode:
		d.counts.UnexpectedCode++
	case ErrAuthenticator:
		d.counts.WrongAuthenticator++
	case ErrUnsigned, ErrSignature, ErrSignatureLate:
		d.counts.WrongSignature++
	default:
		d.counts.Malformed++
	}
}

// fresh checks Event-Timestamp (RFC 5176 §6.3). why is given when the request is refused, by a cause or by silence.
func (d *Dynamic) fresh(p *Packet, now time.Time) (cause Cause, why string) {
	b := p.Get(EventTimestamp)
	if b == nil {
		if d.config.Timestamp == "required" {
			return MissingAttribute, noTimestamp
		}
		return 0, ""
	}
	a := Attribute{EventTimestamp, b}
	seconds, err := a.Uint32()
	if err != nil {
		return InvalidValue, err.Error()
	}
	at := time.Unix(int64(seconds), 0)
	// A request sent before our start may have been carried out by the former process. Start is by the present
	// clock, which may have been set back.
	began := now.Add(-d.up() - clockSecond)
	late := now.Sub(at)
	switch {
	case late.Abs() > d.config.ReplayWindow+clockSecond:
		side := "behind"
		if late < 0 {
			side = "ahead of"
		}
		return 0, fmt.Sprintf("Event-Timestamp is %s %s our clock: radius.coa.replay_window is %s",
			late.Abs().Truncate(clockSecond), side, d.config.ReplayWindow)
	case at.Before(began):
		return 0, "Event-Timestamp is of before our start"
	}
	return 0, ""
}

const noTimestamp = "without Event-Timestamp: radius.coa.event_timestamp: optional takes such"

// clockSecond: a time stamp of whole seconds may be that much too early.
const clockSecond = time.Second

// expire forgets requests that could not be repeated any more: twice the window covers a clock ahead of ours.
func (d *Dynamic) expire() {
	n, now := 0, d.up()
	for n < len(d.order) && now-d.order[n].at > 2*(d.config.ReplayWindow+clockSecond) {
		delete(d.seen, d.order[n].key)
		d.order[n] = nil
		n++
	}
	d.order = d.order[n:]
}

// answer sends ACK or NAK, with the Proxy-State of the request in its order, and its State (RFC 5176 §3.1, §3.3).
func (d *Dynamic) answer(conn *net.UDPConn, to netip.AddrPort, client *config.CoAClient, p *Packet, one *seenRequest,
	cause Cause) {
	out := &Packet{Code: p.Code + 1, ID: p.ID}
	if cause != 0 {
		out.Code = p.Code + 2
		out.Integer(ErrorCause, uint32(cause))
	}
	for _, a := range p.Attributes {
		if a.Type == ProxyState || a.Type == State {
			out.Attributes = append(out.Attributes, a)
		}
	}
	b, err := out.Encode(nil, []byte(client.Secret), &p.Authenticator)
	d.mu.Lock()
	if cause == 0 {
		d.counts.ACKs++
	} else {
		d.counts.NAKs++
		d.counts.Causes[cause]++
	}
	one.answer = b
	d.mu.Unlock()
	if err == nil {
		_, _ = conn.WriteToUDPAddrPort(b, to)
	}
}
