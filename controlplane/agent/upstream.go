// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

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

// local is an address of ours that a configuration names.
type local struct {
	key string
	at  netip.AddrPort
}

func (l *local) listen() (*net.UDPConn, error) {
	socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(l.at))
	if err != nil {
		err = fmt.Errorf("%s: %w", l.key, err)
	}
	return socket, err
}

// relays are our addresses to DHCP servers of each family; not valid: it has none.
func relays(c *config.Config) (list [2]local) {
	d := &c.Access.DHCP
	if len(d.Servers) > 0 { // ports of relays, too: RFC 2131 §4.1, RFC 8415 §7.2
		list[0] = local{"access.dhcp.address", netip.AddrPortFrom(d.Address.Addr, 67)}
	}
	if len(d.Servers6) > 0 {
		list[1] = local{"access.dhcp.address6", netip.AddrPortFrom(d.Address6.Addr, 547)}
	}
	return list
}

// areHere tells whether sockets of a configuration's addresses can be had: on any port, for its own may be in use by
// the gateway that runs.
func areHere(c *config.Config) error {
	ours := relays(c)
	all := ours[:]
	for _, l := range c.RADIUS.CoA.Listen {
		all = append(all, local{"radius.coa.listen", l.AddrPort})
	}
	for _, l := range all {
		if !l.at.IsValid() {
			continue
		}
		l.at = netip.AddrPortFrom(l.at.Addr(), 0)
		socket, err := l.listen()
		if err != nil {
			return err
		}
		socket.Close()
	}
	return nil
}

// openUpstreams makes the sockets that a configuration needs and that are not there.
func (s *signIns) openUpstreams(c *config.Config) (next upstreams, err error) {
	for i, one := range relays(c) {
		switch was := s.upstream[i]; {
		case !one.at.IsValid():
		case was != nil && was.at == one.at:
			next[i] = was
		default:
			socket, err := one.listen()
			if err != nil {
				next.closeBut(s.upstream)
				return next, err
			}
			next[i] = &upstream{socket, one.at}
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
func (s *signIns) send(by upstreams) { s.dhcp.Upstream, s.dhcp.Upstream6 = by[0].send, by[1].send }

// send: a packet that is lost is sent again by who asks.
func (u *upstream) send(server netip.AddrPort, packet []byte) error {
	if u == nil {
		return net.ErrClosed
	}
	_, err := u.WriteToUDPAddrPort(packet, server)
	return err
}

// listen reads the sockets that are not of former ones, until they are closed, or ctx ends.
func (s *signIns) listen(ctx context.Context, m *mobile, former upstreams) {
	take := [len(former)]func(server netip.AddrPort, packet []byte){s.dhcp.FromUpstream, s.dhcp.FromUpstream6}
	for i, one := range s.upstream {
		if one != nil && one != former[i] {
			m.spawn(func() {
				defer context.AfterFunc(ctx, func() { one.Close() })()
				s.readUpstream(one, take[i])
			})
		}
	}
}

// mostUpstream bounds the packets of servers that wait for the loop; more are lost, as on a network.
const mostUpstream = 1024

// readUpstream gives the loop what servers send, until the socket is closed.
func (s *signIns) readUpstream(u *upstream, take func(server netip.AddrPort, packet []byte)) {
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
		s.loop.Post(func() {
			<-room
			take(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), packet)
		})
	}
}
