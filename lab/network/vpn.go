// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"net/netip"
)

// The second VRF of `isthmus lab isp`: a company's site at both gateways, a router with FRR and servers behind it. It
// uses addresses of the first VRF: the site's are in the pool of UEs, links and servers have the same.

const (
	vpnVRF     = "vpn"
	vpnRouter  = "r3"
	vpnServers = "vdn"
	vpnSite    = "site"
)

// The site's network, and a host that has the addresses of the first UE.
var (
	siteIPv4 = netip.MustParsePrefix("10.45.0.0/24")
	siteIPv6 = netip.MustParsePrefix("2001:db8:45:1::/64")
)

// siteAddresses are those of host number n.
func siteAddresses(n int) []netip.Prefix {
	a, b := siteIPv4.Addr().As4(), siteIPv6.Addr().As16()
	a[3], b[15] = byte(n), byte(n)
	return []netip.Prefix{
		netip.PrefixFrom(netip.AddrFrom4(a), siteIPv4.Bits()), netip.PrefixFrom(netip.AddrFrom16(b), siteIPv6.Bits()),
	}
}

const siteGateway = 251 // the first gateway's host number in the site

// vpnFabric is the namespace of a gateway's clones of that VRF.
func vpnFabric(g int) string { return fmt.Sprintf("vpn%d", g+1) }

// addVPN adds it to existing gateways.
func (t *topology) addVPN(first int) {
	t.nodes = append(t.nodes, vpnSite, vpnServers)
	t.bridges = append(t.bridges, vpnSite)
	t.addRouter(vpnRouter, 0)
	far := t.routers[len(t.routers)-1]
	far.stub = netLinks + 5
	t.join(end{node: far.name, name: vpnServers, addresses: both(far.stub, 1)},
		end{node: vpnServers, name: far.name, addresses: both(far.stub, 2)}, tunnelMTU)
	for g := range gateways {
		name, n := gatewayName(g), linkNumber(g, first)
		f := t.find(name)
		space := vpnFabric(g)
		of := func(i iface) iface {
			i.vrf, i.instance, i.clone, i.mtu = vpnVRF, vpnVRF, space, ipMTU
			return i
		}
		f.interfaces = append(f.interfaces, of(iface{name: vpnVRF, addresses: both(n, 1)}),
			of(iface{name: vpnSite, addresses: siteAddresses(siteGateway + g)}))
		t.join(port(name, vpnVRF), end{node: far.name, name: name, addresses: both(n, 2)}, tunnelMTU)
		t.join(port(name, vpnSite), end{node: vpnSite, name: name, bridged: true}, tunnelMTU)
		fab := &router{name: space, title: space, as: 65001 + g, id: net4(n, 1).Addr(), gateway: true, prepend: g,
			site: true}
		fab.peers = append(fab.peers, routerPeer{vpnVRF, n, 2, far.as, far.name})
		far.peers = append(far.peers, routerPeer{name, n, 1, fab.as, fab.name})
		t.nodes = append(t.nodes, space)
		t.routers = append(t.routers, fab)
	}
}

// vpnHosts are addresses and routes of the site and the servers.
func vpnHosts() []string {
	lines := []string{
		fmt.Sprintf("%s addr add %s/32 dev lo", vpnServers, serverIPv4),
		fmt.Sprintf("%s addr add %s/128 dev lo nodad", vpnServers, serverIPv6),
	}
	host := siteAddresses(1)
	for i, of := range []struct {
		option string
		via    netip.Prefix
		from   netip.Addr
	}{{"-4", net4(netLinks+5, 1), serverIPv4}, {"-6", net6(netLinks+5, 1), serverIPv6}} {
		nodad := map[bool]string{true: " nodad"}[of.from.Is6()]
		lines = append(lines,
			fmt.Sprintf("%s %s route add default via %s src %s", vpnServers, of.option, of.via.Addr(), of.from),
			fmt.Sprintf("%s addr add %s dev bridge%s", vpnSite, host[i], nodad))
		for g := range gateways {
			lines = append(lines, fmt.Sprintf("%s %s route add default via %s metric %d", vpnSite, of.option,
				siteAddresses(siteGateway + g)[i].Addr(), 10+g))
		}
	}
	return lines
}
