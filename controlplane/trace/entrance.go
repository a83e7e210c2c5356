// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

type routeRow struct {
	Prefix    string `json:"prefix"`
	Interface string `json:"interface"`
	VRF       string `json:"vrf"`
}

// interfaceRow is of the configuration, instanceRow of show instance.
type interfaceRow struct {
	Name      string   `yaml:"name"`
	Port      string   `yaml:"port"`
	VRF       string   `yaml:"vrf"`
	OuterVLAN uint16   `yaml:"outer_vlan"`
	InnerVLAN uint16   `yaml:"inner_vlan"`
	Addresses []string `yaml:"addresses"`
}

type instanceRow struct {
	Interfaces []string `json:"interfaces"`
	Pools      []string `json:"pools"`
}

// tags are those of the interface's frames, the outer one of two as a service tag (IEEE 802.1ad).
func (f *interfaceRow) tags() []byte {
	switch {
	case f.OuterVLAN == 0:
		return nil
	case f.InnerVLAN == 0:
		return binary.BigEndian.AppendUint16([]byte{0x81, 0}, f.OuterVLAN)
	}
	outer := binary.BigEndian.AppendUint16([]byte{0x88, 0xa8}, f.OuterVLAN)
	return binary.BigEndian.AppendUint16(append(outer, 0x81, 0), f.InnerVLAN)
}

// enter is the frame of an IP packet that comes by an interface of a core port. h names the interface, or `usual` finds
// it, where that is on h.Port. It fills in h.Port.
func (h *Hypothesis) enter(rows Rows, ports []portRow, ip []byte,
	usual func([]interfaceRow) (*interfaceRow, error)) ([]byte, error) {
	var all []interfaceRow
	if err := rows("interfaces", nil, &all); err != nil {
		return nil, err
	}
	f, err := h.entrance(all, usual)
	if err != nil {
		return nil, err
	}
	h.Port = f.Port
	to, err := portMAC(ports, h.Port)
	if err != nil {
		return nil, err
	}
	return ethernet(to, someone, f.tags(), ethertype(ip), ip), nil
}

func (h *Hypothesis) entrance(all []interfaceRow,
	usual func([]interfaceRow) (*interfaceRow, error)) (*interfaceRow, error) {
	if h.Interface != "" {
		f := named(all, h.Interface)
		switch {
		case f == nil:
			return nil, fmt.Errorf("the configuration has no interface %q; isthmus config show has all",
				h.Interface)
		case h.Port != "" && h.Port != f.Port:
			return nil, fmt.Errorf("interface %q is on port %q, not on %q", f.Name, f.Port, h.Port)
		}
		return f, nil
	}
	f, err := usual(all)
	if h.Port == "" || err == nil && f.Port == h.Port {
		return f, err
	}
	var names []string
	for i := range all {
		if all[i].Port == h.Port {
			f = &all[i]
			names = append(names, f.Name)
		}
	}
	switch len(names) {
	case 0:
		return &interfaceRow{Port: h.Port}, nil
	case 1:
		return f, nil
	}
	return nil, fmt.Errorf("port %q has the interfaces %s: say by which the packet comes: --interface", h.Port,
		strings.Join(names, ", "))
}

func named(all []interfaceRow, name string) *interfaceRow {
	if i := slices.IndexFunc(all, func(f interfaceRow) bool { return f.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// withAddress is the interface that has an address. The end of a tunnel is of one VRF alone.
func withAddress(all []interfaceRow, address netip.Addr) (*interfaceRow, error) {
	for i := range all {
		for _, text := range all[i].Addresses {
			if p, err := netip.ParsePrefix(text); err == nil && p.Addr() == address {
				return &all[i], nil
			}
		}
	}
	return nil, fmt.Errorf("no interface of the configuration has the address %s: say by which the packet comes: "+
		"--interface", address)
}

// towards is the interface of the longest route to an address, in the VRF whose pools have the UE. Where several VRFs
// may be meant, it asks.
func towards(rows Rows, all []interfaceRow, to, ue netip.Addr) (*interfaceRow, error) {
	var routes []routeRow
	var instances []instanceRow
	if err := rows("route", of(to.String()), &routes); err != nil {
		return nil, err
	}
	if err := rows("instance", nil, &instances); err != nil {
		return nil, err
	}
	bits, best := map[string]int{}, map[string]*interfaceRow{} // by VRF
	for _, r := range routes {
		p, err := netip.ParsePrefix(r.Prefix)
		if f := named(all, r.Interface); err == nil && f != nil && p.Contains(to) &&
			(best[r.VRF] == nil || p.Bits() > bits[r.VRF]) {
			bits[r.VRF], best[r.VRF] = p.Bits(), f
		}
	}
	var lead, serve []*interfaceRow
	for vrf, f := range best {
		lead = append(lead, f)
		if servesIn(instances, all, vrf, ue) {
			serve = append(serve, f)
		}
	}
	if len(serve) > 0 {
		lead = serve
	}
	switch len(lead) {
	case 0:
		return nil, fmt.Errorf("no route leads to %s: say by which interface the packet comes: --interface", to)
	case 1:
		return lead[0], nil
	}
	var names []string
	for _, f := range lead {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("routes of several VRFs lead to %s, by the interfaces %s: "+
		"say by which the packet comes: --interface", to, strings.Join(names, ", "))
}

// servesIn: a network instance in the VRF of its interfaces has the UE in its pools.
func servesIn(instances []instanceRow, all []interfaceRow, vrf string, ue netip.Addr) bool {
	has := func(pool string) bool {
		p, err := netip.ParsePrefix(pool)
		return err == nil && p.Contains(ue)
	}
	in := func(name string) bool {
		f := named(all, name)
		return f != nil && f.VRF == vrf
	}
	return slices.ContainsFunc(instances, func(i instanceRow) bool {
		return slices.ContainsFunc(i.Pools, has) && slices.ContainsFunc(i.Interfaces, in)
	})
}
