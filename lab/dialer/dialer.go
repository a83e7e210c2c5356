// SPDX-License-Identifier: Apache-2.0

// Package dialer is a subscriber's end of PPPoE: discovery, and the client's part of ppp. Like the server it has no
// I/O, no clock and no goroutine; thousands of clients are a Config, and an Env each or together.
package dialer

import (
	"bytes"
	"encoding/binary"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/ppp"
	"isthmus/controlplane/pppoe"
)

// Config is what clients of one Env have in common; clients of one goroutine may share it.
type Config struct {
	PPP        ppp.Config // with Now and Random
	Service    string
	Vendor     []byte        // behind the Broadband Forum's number in the tag of access nodes (TR-101); nil: no tag
	MaxPayload uint16        // RFC 4638; 0: 1492
	Repeat     time.Duration // of PADI and PADR; each time twice as long (RFC 2516 §8)
	Attempts   int           // of each, and the client gives up
	buffer     [2048]byte
}

// NewConfig asks for both families.
func NewConfig(user, password string, methods ...access.Method) *Config {
	c := &Config{PPP: ppp.DefaultConfig(), Repeat: 3 * time.Second, Attempts: 5}
	c.PPP.Methods, c.PPP.User, c.PPP.Password, c.PPP.ID = methods, user, password, 0
	c.PPP.Families, c.PPP.Buffer = access.Families{V4: true, V6: true}, c.buffer[8:8]
	return c
}

// Env has clients.
type Env interface {
	Send(c *Client, etherType uint16, payload []byte) // behind EtherType; copied
	Wake(c *Client, at time.Duration)                 // as of ppp.Env
	Up(c *Client, f access.Families)                  // open now
	Packet(c *Client, ipv6 []byte)                    // an IPv6 packet came
	Ended(c *Client, cause access.Cause, why string)
}

type phase uint8

const (
	idle phase = iota
	soliciting
	requesting
	session
)

// Client is one subscriber.
type Client struct {
	ppp.Link
	ID       uint16 // of the session
	env      Env
	config   *Config
	phase    phase
	attempts int
	uniq     uint64
	offer    []byte // tags of the PADR
}

// New makes a client that is idle.
func New(env Env, c *Config) *Client { return &Client{env: env, config: c} }

// Dial begins.
func (c *Client) Dial() {
	c.phase, c.attempts, c.ID = soliciting, 0, 0
	c.uniq = c.config.PPP.Random()
	c.again()
}

// again sends PADI or PADR.
func (c *Client) again() {
	if c.attempts++; c.attempts > c.config.Attempts {
		c.end(access.LostCarrier, "no concentrator answers")
		return
	}
	var b []byte
	if c.phase == soliciting {
		b = pppoe.AppendHeader(c.config.buffer[:0], pppoe.PADI, 0)
		b = c.own(pppoe.AppendTag(b, pppoe.TagService, []byte(c.config.Service)))
	} else {
		b = append(pppoe.AppendHeader(c.config.buffer[:0], pppoe.PADR, 0), c.offer...)
	}
	c.env.Send(c, pppoe.EtherDiscovery, pppoe.Finish(b))
	if c.phase == soliciting || c.phase == requesting { // the answer may be there already
		c.env.Wake(c, c.config.PPP.Now()+c.config.Repeat<<(c.attempts-1))
	}
}

// own adds the tags of this end.
func (c *Client) own(b []byte) []byte {
	b = pppoe.AppendTag(b, pppoe.TagHostUniq, binary.BigEndian.AppendUint64(nil, c.uniq))
	if c.config.Vendor != nil {
		b = pppoe.AppendTag(b, pppoe.TagVendor, append([]byte{0, 0, 0x0d, 0xe9}, c.config.Vendor...))
	}
	if c.config.MaxPayload != 0 {
		b = pppoe.AppendTag(b, pppoe.TagMaxPayload, binary.BigEndian.AppendUint16(nil, c.config.MaxPayload))
	}
	return b
}

// Receive takes a frame behind its EtherType.
func (c *Client) Receive(etherType uint16, frame []byte) {
	code, id, payload, ok := pppoe.Header(frame)
	switch {
	case !ok:
	case etherType == pppoe.EtherSession:
		if c.phase != session || id != c.ID || len(payload) < 2 {
			return
		}
		protocol := binary.BigEndian.Uint16(payload)
		if protocol == ppp.IPv6 {
			c.env.Packet(c, payload[2:])
			return
		}
		c.Link.Receive(protocol, payload[2:])
	case code == pppoe.PADT:
		if c.phase == session && id == c.ID {
			c.end(access.LostCarrier, "PADT")
		}
	default:
		c.discovery(code, id, payload)
	}
}

func (c *Client) discovery(code uint8, id uint16, payload []byte) {
	t, ok := pppoe.ParseTags(payload)
	if !ok || len(t.HostUniq) != 8 || binary.BigEndian.Uint64(t.HostUniq) != c.uniq {
		return
	}
	switch {
	case code == pppoe.PADO && c.phase == soliciting && t.Name != nil && t.Error == nil:
		c.phase, c.attempts = requesting, 0
		b := pppoe.AppendTag(nil, pppoe.TagService, []byte(c.config.Service))
		b = pppoe.AppendTag(pppoe.AppendTag(b, pppoe.TagCookie, t.Cookie), pppoe.TagRelay, t.Relay)
		c.offer = c.own(b)
		c.again()
	case code == pppoe.PADS && c.phase == requesting && (id == 0 || t.Error != nil):
		c.end(access.ServiceUnavailable, "PADS: "+string(bytes.ToValidUTF8(t.Error, nil)))
	case code == pppoe.PADS && c.phase == requesting:
		c.phase, c.ID, c.offer = session, id, nil
		mru := uint16(1492)
		if c.config.MaxPayload > mru {
			mru = max(mru, min(t.MaxPayload, c.config.MaxPayload))
		}
		c.env.Wake(c, 0)
		c.Link.Start(link{c}, &c.config.PPP, ppp.Client, mru)
	}
}

// Expire is for Env.Wake.
func (c *Client) Expire() {
	switch c.phase {
	case soliciting, requesting:
		c.again()
	case session:
		c.Link.Expire()
	}
}

// Online: a session is established.
func (c *Client) Online() bool { return c.phase == session }

// Idle: it was not dialled, or its session ended.
func (c *Client) Idle() bool { return c.phase == idle }

// SendIPv6 sends an IPv6 packet through the session.
func (c *Client) SendIPv6(packet []byte) {
	if c.phase == session {
		link{c}.Send(ppp.IPv6, packet)
	}
}

// Vanish is a power cut: the gateway gets no message.
func (c *Client) Vanish() {
	c.phase = idle
	c.env.Wake(c, 0)
}

// HangUp ends the session with a Terminate-Request and a PADT.
func (c *Client) HangUp() {
	if c.phase == session {
		c.Link.Abort()
		c.padt()
	}
	c.end(access.UserRequest, "hung up")
}

func (c *Client) padt() {
	b := pppoe.AppendHeader(c.config.buffer[:0], pppoe.PADT, c.ID)
	c.env.Send(c, pppoe.EtherDiscovery, pppoe.Finish(b))
}

func (c *Client) end(cause access.Cause, why string) {
	if c.phase == idle {
		return
	}
	c.phase = idle
	c.env.Wake(c, 0)
	c.env.Ended(c, cause, why)
}

// link is the client as the owner of its ppp.Link.
type link struct{ *Client }

func (l link) Wake(at time.Duration)            { l.env.Wake(l.Client, at) }
func (l link) Authenticate(*access.Credentials) {}

func (l link) Send(protocol uint16, packet []byte) {
	b := pppoe.AppendHeader(l.config.buffer[:0], 0, l.ID)
	b = binary.BigEndian.AppendUint16(b, protocol)
	l.env.Send(l.Client, pppoe.EtherSession, pppoe.Finish(append(b, packet...)))
}

func (l link) Network(f access.Families) { l.env.Up(l.Client, f) }

func (l link) Closed(cause access.Cause, why string) {
	if l.phase == session {
		l.padt()
	}
	l.end(cause, why)
}
