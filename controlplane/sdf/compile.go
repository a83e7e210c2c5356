// SPDX-License-Identifier: Apache-2.0

package sdf

import (
	"fmt"
	"net/netip"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

// MaxAlternatives is the most that one rule may become. Lists of ports multiply with each other and with the prefixes
// of a negated address.
const MaxAlternatives = 64

// Ends returns the far end of the rule and the UE's. "permit out" is written for packets towards the UE: its source is
// remote. "assigned" is the UE in either place (TS 29.212 §5.4.2). The data plane swaps ends for uplink packets, so
// that one filter serves both directions.
func (r *Rule) Ends() (remote, local *End) {
	if r.Source.Assigned || r.In && !r.Destination.Assigned {
		return &r.Destination, &r.Source
	}
	return &r.Source, &r.Destination
}

// Flow compiles a flow description, of an SDF filter or a PFD.
func Flow(text string) ([]api.SDF, error) {
	r, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return r.Compile()
}

// Compile expands an SDF filter (TS 29.244 §8.2.5): all its parts must match. A filter of an id alone refers to another
// one of the session.
func Compile(f *pfcp.SDFFilter) ([]api.SDF, error) {
	if f.Flow == "" && !f.HasToS && !f.HasSPI && !f.HasLabel {
		return nil, fmt.Errorf("SDF filter looks at nothing")
	}
	list := []api.SDF{{RemotePort: anyPort, LocalPort: anyPort}}
	if f.Flow != "" {
		var err error
		if list, err = Flow(f.Flow); err != nil {
			return nil, err
		}
	}
	for i := range list {
		s := &list[i]
		if f.HasToS {
			s.Flags |= api.SDFTOS
			s.TOS, s.TOSMask = f.ToS&f.Mask, f.Mask
		}
		if f.HasSPI {
			s.Flags |= api.SDFSPI
			s.SPI = f.SPI
		}
		if f.HasLabel {
			s.Flags |= api.SDFFlowLabel
			s.FlowLabel = f.FlowLabel & 0xfffff
		}
	}
	return list, nil
}

var anyPort = [2]uint16{0, 65535}

// Compile makes the alternatives, any of which a packet may match.
func (r *Rule) Compile() ([]api.SDF, error) {
	remote, local := r.Ends()
	remotes, locals := remote.prefixes(), local.prefixes()
	remotePorts, localPorts := remote.ranges(), local.ranges()
	n := len(remotes) * len(locals) * len(remotePorts) * len(localPorts)
	if n > MaxAlternatives {
		return nil, fmt.Errorf("flow description stands for %d alternatives, at most %d", n, MaxAlternatives)
	}
	var one api.SDF
	if r.Deny {
		one.Flags |= api.SDFDeny
	}
	if r.Protocol != Any {
		one.Flags |= api.SDFProtocol
		one.Protocol = byte(r.Protocol)
	}
	list := make([]api.SDF, 0, n)
	for _, one.Remote = range remotes {
		for _, one.Local = range locals {
			for _, one.RemotePort = range remotePorts {
				for _, one.LocalPort = range localPorts {
					list = append(list, one)
				}
			}
		}
	}
	return list, nil
}

// prefixes cover the end's addresses. The complement of a prefix of n bits is n prefixes: each shares its first k bits
// and differs in the next.
func (e *End) prefixes() []api.Address {
	if !e.Prefix.IsValid() {
		return []api.Address{{}}
	}
	if !e.Not {
		return []api.Address{api.FromPrefix(e.Prefix)}
	}
	var list []api.Address
	for k := range e.Prefix.Bits() {
		b := e.Prefix.Addr().AsSlice()
		b[k/8] ^= 0x80 >> (k % 8)
		if a, ok := netip.AddrFromSlice(b); ok {
			list = append(list, api.FromPrefix(netip.PrefixFrom(a, k+1).Masked()))
		}
	}
	return list
}

func (e *End) ranges() [][2]uint16 {
	if e.Ports == nil {
		return [][2]uint16{anyPort}
	}
	list := make([][2]uint16, 0, len(e.Ports))
	for _, p := range e.Ports {
		list = append(list, [2]uint16{p.Low, p.High})
	}
	return list
}
