// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/config"
)

// Sockets to DHCP servers, of ports that relay.

// upstream is that of a family.
type upstream struct {
	*net.UDPConn
	at netip.AddrPort
}

// upstreams are DHCPv4's and DHCPv6's; nil: no servers.
type upstreams [2]*upstream

// openUpstreams makes the sockets that a configuration needs and that are not there.
func (s *SignIns) openUpstreams(c *config.Config) (next upstreams, err error) {
	for i, one := range plan.Relays(c) {
		switch was := s.upstream[i]; {
		case !one.At.IsValid():
		case was != nil && was.at == one.At:
			next[i] = was
		default:
			socket, err := one.Listen()
			if err != nil {
				next.closeBut(s.upstream)
				return next, err
			}
			next[i] = &upstream{socket, one.At}
		}
	}
	return next, nil
}

// closeBut closes those that others do not have.
func (u upstreams) closeBut(others upstreams) {
	for i, one := range u {
		if one != nil && one != others[i] {
			one.Close()
		}
	}
}

// send has what is relayed leave by sockets. Loop's goroutine, or before it runs.
func (s *SignIns) send(by upstreams) { s.DHCP.Upstream, s.DHCP.Upstream6 = by[0].send, by[1].send }

// send: the requester repeats a lost packet.
func (u *upstream) send(server netip.AddrPort, packet []byte) error {
	if u == nil {
		return net.ErrClosed
	}
	_, err := u.WriteToUDPAddrPort(packet, server)
	return err
}

// listen reads the sockets that are not of former ones, until they are closed, or ctx ends.
func (s *SignIns) listen(ctx context.Context, former upstreams) {
	take := [len(former)]func(server netip.AddrPort, packet []byte){s.DHCP.FromUpstream, s.DHCP.FromUpstream6}
	for i, one := range s.upstream {
		if one != nil && one != former[i] {
			s.spawn(func() {
				defer context.AfterFunc(ctx, func() { one.Close() })()
				s.readUpstream(one, take[i])
			})
		}
	}
}

// mostUpstream bounds the packets of servers that wait for the loop; more are lost, as on a network.
const mostUpstream = 1024

// readUpstream gives the loop what servers send, until the socket is closed.
func (s *SignIns) readUpstream(u *upstream, take func(server netip.AddrPort, packet []byte)) {
	buffer, room := make([]byte, 65536), make(chan struct{}, mostUpstream)
	for {
		n, from, err := u.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		select {
		case room <- struct{}{}:
		default:
			continue
		}
		packet := slices.Clone(buffer[:n])
		s.Loop.Post(func() {
			<-room
			take(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), packet)
		})
	}
}
