// SPDX-License-Identifier: Apache-2.0

package config

import "net/netip"

// Narrow is a core port whose MTU is less than a packet of 1,500 bytes in a tunnel takes: it leaves in two fragments.
type Narrow struct {
	Port       Name
	MTU, Needs uint32 // IP bytes
	File       string
	Line       int // of the file
}

// In front of a packet in a tunnel: IP, UDP, GTP-U with a PDU Session Container (TS 29.281 §5.1, TS 38.415 §5.5.2).
const (
	fullPacket    = 1500
	tunnelHeaders = 8 + 16
	ip4Header     = 20
	ip6Header     = 40
)

// InTunnel is the largest packet, of at most 1,500 bytes, that leaves a port of an MTU in one tunnel packet of an
// address.
func InTunnel(mtu uint32, from netip.Addr) uint32 {
	header := outerHeader(from)
	if mtu < tunnelHeaders+header {
		return 0
	}
	return min(fullPacket, mtu-tunnelHeaders-header)
}

func outerHeader(from netip.Addr) uint32 {
	if from.Is6() {
		return ip6Header
	}
	return ip4Header
}

// narrowPorts lists them, by the addresses of paths and of instances' endpoints.
func (k *checker) narrowPorts() (list []Narrow) {
	needs := map[Name]uint32{}
	end := func(a netip.Addr) {
		for i := range k.Interfaces {
			if f := &k.Interfaces[i]; f.has(a) {
				needs[f.Port] = max(needs[f.Port], fullPacket+tunnelHeaders+outerHeader(a))
			}
		}
	}
	for i := range k.Paths {
		end(k.Paths[i].Local.Addr)
	}
	for i := range k.Instances {
		for _, a := range k.Instances[i].Endpoints {
			end(a.Addr)
		}
	}
	for i := range k.Ports {
		if p := &k.Ports[i]; p.MTU < needs[p.Name] {
			file, line := k.errs.place(p.Line("mtu"), k.file)
			list = append(list, Narrow{p.Name, p.MTU, needs[p.Name], file, line})
		}
	}
	return list
}
