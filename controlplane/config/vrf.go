// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"slices"
)

// vrfAddress is an address of ours: those of different VRFs may be equal.
type vrfAddress struct {
	vrf  Name
	addr netip.Addr
}

// vrfPrefix is a destination.
type vrfPrefix struct {
	vrf    Name
	prefix netip.Prefix
}

// vrf checks an interface's VRF, and what else core ports alone have. A namespace of the kernel has one main routing
// table; spaces has an interface of each.
func (f *Interface) vrf(k *checker, port *Port, spaces map[string]*Interface) {
	if f.VRF != "" && port != nil && port.Role != "core" {
		k.fail(f.At, "vrf", "interface %q is on an access port, whose addresses are of the default VRF", f.Name)
	}
	if f.Reverse != "off" && port != nil && port.Role != "core" {
		k.fail(f.At, "reverse_path", "interface %q is on an access port, where sessions have their sources",
			f.Name)
	}
	if f.Proxy && port != nil && port.Role != "access" {
		k.fail(f.At, "local_proxy", "interface %q is on a core port, which answers for nobody", f.Name)
	}
	if f.Clone.Device == "" {
		return
	}
	switch first := spaces[f.Clone.File()]; {
	case first == nil:
		spaces[f.Clone.File()] = f
	case first.VRF != f.VRF:
		k.fail(f.Clone.At, "namespace",
			"the clone in line %d is in the same namespace, and its interface in another VRF",
			first.Clone.Line(""))
	}
}

// tunnelEnd refuses an address of a tunnel that several VRFs have: the tunnels of one would be open to the other.
func (k *checker) tunnelEnd(at At, key string, a netip.Addr) {
	of := map[Name]bool{}
	for own := range k.addresses {
		if own.addr == a {
			of[own.vrf] = true
		}
	}
	if len(of) > 1 {
		k.fail(at, key, "%s is on interfaces of several VRFs", a)
	}
}

func vrfText(vrf Name) string {
	if vrf == "" {
		return "the default VRF"
	}
	return fmt.Sprintf("VRF %q", vrf)
}

// vrf is an instance's: that of its interfaces, which find finds.
func (in *Instance) vrf(find func(Name) *Interface) Name {
	for _, name := range in.Interfaces {
		if f := find(name); f != nil {
			return f.VRF
		}
	}
	return ""
}

func (k *checker) vrfOf(in *Instance) Name {
	return in.vrf(func(name Name) *Interface { return k.interfaces[name] })
}

// notOurs refuses a prefix of an instance that has an address of an interface in the same VRF.
func (k *checker) notOurs(at At, key string, in *Instance, p Prefix) {
	for own, line := range k.addresses {
		if own.vrf == k.vrfOf(in) && p.Contains(own.addr) {
			k.fail(at, key, "%s holds %s, which is an interface's, line %d", p, own.addr, line)
		}
	}
}

// ours: an address is an interface's, in any VRF.
func (k *checker) ours(a netip.Addr) bool {
	return slices.ContainsFunc(k.Interfaces, func(f Interface) bool { return f.has(a) })
}
