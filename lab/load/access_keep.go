// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/netip"
	"slices"

	"isthmus/controlplane/ppp"
	"isthmus/controlplane/pppoe"
	"isthmus/lab/dialer"
)

// A subscriber's keep-alive: LCP echo (RFC 1661 §5.8), and renewals of its leases.

// keepAll has every subscriber renew once.
func (c *crowd) keepAll(ctx context.Context) error {
	if c.opt.Hold == 0 {
		return nil
	}
	err := c.askAll(ctx, &c.keeps, func(i uint32) {
		h := &c.homes[i]
		if h.kept || !h.online {
			return
		}
		h.asked = c.Now()
		switch p := h.protocol.(type) {
		case *dialer.Client:
			c.echo(i, p)
		case *dhcpClient:
			p.renew()
		}
	})
	c.result.KeptAlive = c.keeps.count
	c.result.Lapsed = uint64(len(c.homes)) - min(c.keeps.count, uint64(len(c.homes)))
	return err
}

func (c *crowd) keptAlive(i uint32) {
	if h := &c.homes[i]; !h.kept {
		h.kept = true
		c.keeps.add(c.Now() - h.asked)
	}
}

const (
	lcpEchoRequest, lcpEchoReply = 9, 10
	lcpEchoSize                  = 4 + 4 + 8
)

// echoOf is what a subscriber's Echo-Request has as its data.
func echoOf(i uint32) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(i)<<32|^uint64(i)&0xffffffff)
}

func (c *crowd) echo(i uint32, d *dialer.Client) {
	b := pppoe.AppendHeader(nil, 0, d.ID)
	b = binary.BigEndian.AppendUint16(b, ppp.LCP)
	b = append(b, lcpEchoRequest, byte(i), 0, lcpEchoSize)
	b = append(binary.BigEndian.AppendUint32(b, d.Magic()), echoOf(i)...)
	c.send(i, false, pppoe.EtherSession, pppoe.Finish(b))
}

// isKept takes the answer to a subscriber's Echo-Request.
func (c *crowd) isKept(i uint32, etherType uint16, frame []byte) bool {
	d, dials := c.homes[i].protocol.(*dialer.Client)
	if !dials || etherType != pppoe.EtherSession {
		return false
	}
	_, id, p, ok := pppoe.Header(frame)
	if !ok || len(p) < 3 || binary.BigEndian.Uint16(p) != ppp.LCP || p[2] != lcpEchoReply {
		return false
	}
	p = p[2:]
	switch {
	case id != d.ID: // of a session before
	case len(p) < lcpEchoSize || binary.BigEndian.Uint16(p[2:]) != lcpEchoSize:
		c.wrong("an LCP Echo-Reply of another length than its request")
	case p[1] != byte(i) || !bytes.Equal(p[8:lcpEchoSize], echoOf(i)):
		c.wrong("an LCP Echo-Reply that has not the identifier and the data of its request (RFC 1661 §5.8)")
	case binary.BigEndian.Uint32(p[4:]) != d.State().PeerMagic:
		c.wrong("an LCP Echo-Reply with another magic number than was agreed on (RFC 1661 §6.4)")
	default:
		c.keptAlive(i)
	}
	return true
}

// names compares a subscriber's assigned name servers with the required ones.
func (c *crowd) names(v4 bool, got []netip.Addr) {
	other := func(a netip.Addr) bool { return a.Is4() != v4 }
	want := slices.DeleteFunc(slices.Clone(c.opt.DNS), other)
	got = slices.DeleteFunc(slices.Clone(got), other)
	slices.SortFunc(want, netip.Addr.Compare)
	slices.SortFunc(got, netip.Addr.Compare)
	if len(c.opt.DNS) > 0 && !slices.Equal(got, want) {
		c.wrong("other name servers than were to be given")
	}
}
