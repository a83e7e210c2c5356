// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net"
	"net/netip"

	"isthmus/controlplane/config"
)

// signInOf is the part of a configuration for sign-in; nil: none.
func signInOf(c *config.Config) *config.Config {
	if !c.Access.Enabled() {
		return nil
	}
	part := *c
	part.Subscribers, part.Ranges = nil, nil
	return &part
}

// Local is an address of ours that a configuration names.
type Local struct {
	Key string
	At  netip.AddrPort
}

// Listen opens a socket there.
func (l *Local) Listen() (*net.UDPConn, error) {
	socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(l.At))
	if err != nil {
		err = fmt.Errorf("%s: %w", l.Key, err)
	}
	return socket, err
}

// Relays are our addresses to DHCP servers of each family; not valid: it has none.
func Relays(c *config.Config) (list [2]Local) {
	d := &c.Access.DHCP
	if len(d.Servers) > 0 { // ports of relays, too: RFC 2131 §4.1, RFC 8415 §7.2
		list[0] = Local{"access.dhcp.address", netip.AddrPortFrom(d.Address.Addr, 67)}
	}
	if len(d.Servers6) > 0 {
		list[1] = Local{"access.dhcp.address6", netip.AddrPortFrom(d.Address6.Addr, 547)}
	}
	return list
}

// areHere checks that sockets of a configuration's addresses can be bound: on any port, since the running gateway may
// use its own.
func areHere(c *config.Config) error {
	ours := Relays(c)
	all := ours[:]
	for _, l := range c.RADIUS.CoA.Listen {
		all = append(all, Local{"radius.coa.listen", l.AddrPort})
	}
	for _, l := range all {
		if !l.At.IsValid() {
			continue
		}
		l.At = netip.AddrPortFrom(l.At.Addr(), 0)
		socket, err := l.Listen()
		if err != nil {
			return err
		}
		socket.Close()
	}
	return nil
}
