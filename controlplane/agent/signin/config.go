// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"os"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dhcp"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/subscriber"
)

func pppoeConfig(c *config.Config) pppoe.Config {
	made := pppoe.ConfigOf(&c.Access.PPPoE)
	made.MaxPayload = map[string]uint16{}
	for i := range c.Ports {
		if port := &c.Ports[i]; port.Role == "access" {
			// Its MTU is that of the IP packet with PPPoE's 8 bytes (RFC 4638).
			made.MaxPayload[string(port.Name)] = uint16(min(port.MTU-8, uint32(made.MRU)))
		}
	}
	set := subscriber.SettingsOf(c)
	made.PortOf = func(l *access.Line) (port pppoe.Port) {
		if p := set.Port(l); p != nil {
			port = pppoe.Port{Relayed: len(c.Access.DHCP.Servers6) > 0 && p.DHCP != "server",
				Trusted: p.Trusted, Moves: p.Moves()}
		}
		return port
	}
	return made
}

func dhcpConfig(c *config.Config) dhcp.Config {
	machine, _ := os.ReadFile("/etc/machine-id") // without one, all such machines are one
	made := dhcp.ConfigOf(&c.Access, string(machine))
	packet := map[string]bool{}
	for i := range c.Ports {
		packet[string(c.Ports[i].Name)] = c.Ports[i].SignIn.Packet
	}
	set := subscriber.SettingsOf(c)
	four, six := dhcp.Servers(&c.Access.DHCP)
	made.PortOf = func(l *access.Line) (dhcp.Port, bool) {
		p := set.Port(l)
		if p == nil {
			return dhcp.Port{}, false
		}
		port := dhcp.Port{V4: p.IPoE, V6: p.IPoE, OneToOne: p.VLANs == "1:1", Trusted: p.Trusted,
			Moves: p.Moves(), FirstPacket: packet[l.Port], Replace: c.Access.Duplicates == "replace"}
		if p.DHCP != "server" {
			port.Upstream, port.Upstream6, port.Proxy = four, six, p.DHCP == "proxy"
		}
		return port, true
	}
	return made
}
