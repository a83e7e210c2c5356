// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"slices"
	"strings"
)

// checker is what the sections share that check themselves: where errors go, and what they refer to by name. A check
// finds what no single value shows: names given twice, references to what is not there, contradictions.
type checker struct {
	*Config
	file   string
	site   Site
	before Placement // of the running configuration; may be nil
	shown  bool      // of a text without its secrets
	closed bool      // as of decoder
	errs   Errors

	ports      map[Name]*Port
	interfaces map[Name]*Interface
	policers   map[Name]*Policer
	schedulers map[Name]*Scheduler // by port
	paths      map[Name]*Path
	instances  map[Name]*Instance
	mirrors    map[Name]*Mirror
	counters   map[Name]*Counter
	leases     map[Name]*AddressPool // pools of subscribers who sign in
	addresses  map[vrfAddress]Line   // of interfaces: line
}

func (k *checker) fail(at At, key, format string, args ...any) {
	if k.closed {
		format, args = withoutValues(format), nil
	}
	k.errs.say(k.file, at.Line(key), at.Path(key), format, args)
}

func (k *checker) all() {
	k.Engine.chooseCPUs(k)
	k.Engine.check(k)
	k.Control.check(k)
	k.ports = named(k, k.Ports, "name", func(p *Port) (Name, At) { return p.Name, p.At })
	each(k, k.Ports, (*Port).check)
	k.interfaces = named(k, k.Interfaces, "name", func(i *Interface) (Name, At) { return i.Name, i.At })
	checkInterfaces(k)
	checkRoutes(k)
	checkNeighbours(k)
	each(k, k.Firewall.Uplink.Rules, (*Rule).check)
	each(k, k.Firewall.Downlink.Rules, (*Rule).check)
	k.policers = named(k, k.Policers, "name", func(p *Policer) (Name, At) { return p.Name, p.At })
	each(k, k.Policers, (*Policer).check)
	k.schedulers = named(k, k.Schedulers, "port", func(s *Scheduler) (Name, At) { return s.Port, s.At })
	each(k, k.Schedulers, (*Scheduler).check)
	k.paths = named(k, k.Paths, "name", func(p *Path) (Name, At) { return p.Name, p.At })
	checkPaths(k)
	k.instances = named(k, k.Instances, "name", func(i *Instance) (Name, At) { return i.Name, i.At })
	checkInstances(k)
	k.mirrors = named(k, k.Mirrors, "name", func(m *Mirror) (Name, At) { return m.Name, m.At })
	each(k, k.Mirrors, (*Mirror).check)
	k.counters = named(k, k.Counters, "name", func(c *Counter) (Name, At) { return c.Name, c.At })
	each(k, k.Counters, (*Counter).check)
	k.PFCP.check(k)
	k.leases = named(k, k.Pools, "name", func(p *AddressPool) (Name, At) { return p.Name, p.At })
	each(k, k.Pools, (*AddressPool).check)
	notOwned(k)
	k.Access.check(k)
	k.RADIUS.check(k)
	k.AAA.check(k)
	checkSubscribers(k)
	k.Narrow = k.narrowPorts()
}

// each has the entries of a section check themselves, in the file's order.
func each[T any](k *checker, list []T, check func(*T, *checker)) {
	for i := range list {
		check(&list[i], k)
	}
}

// named indexes a section's entries by name and refuses a name given twice.
func named[T any](k *checker, list []T, key string, of func(*T) (Name, At)) map[Name]*T {
	index := make(map[Name]*T, len(list))
	for i := range list {
		name, at := of(&list[i])
		if first, twice := index[name]; twice {
			_, was := of(first)
			k.fail(at, key, "%q is already in line %d", name, was.Line(key))
			continue
		}
		index[name] = &list[i]
	}
	return index
}

// once refuses what has been seen before; the format's last argument is the line of the first.
func once[T comparable](k *checker, at At, key string, seen map[T]Line, what T, format string, args ...any) {
	if line, twice := seen[what]; twice {
		k.fail(at, key, format, append(args, line)...)
		return
	}
	seen[what] = at.Line(key)
}

// refer refuses a reference to what is not there; an empty one is no reference.
func refer[T any](k *checker, at At, key, what string, name Name, index map[Name]*T) *T {
	if name == "" {
		return nil
	}
	if v, ok := index[name]; ok {
		return v
	}
	var known []string
	for n := range index {
		if len(index) > 100 {
			break // a file of thousands of names may have thousands of wrong ones: no suggestion
		}
		known = append(known, string(n))
	}
	k.fail(at, key, "there is no %s %q%s", what, name, suggest(string(name), known))
	return nil
}

// network refuses a prefix that is no network: it has bits set behind its length.
func (k *checker) network(at At, key string, p Prefix) bool {
	if p.hostBits() {
		k.fail(at, key, "%s has host bits set; the network is %s", p, p.Masked())
		return false
	}
	return true
}

func (e *Engine) check(k *checker) {
	if len(e.CPUs) > 0 && len(e.CPUs) != int(e.Workers) {
		k.fail(e.At, "cpus", "%d given for %d workers", len(e.CPUs), e.Workers)
	}
	seen := map[int]bool{}
	for _, cpu := range e.CPUs {
		if cpu >= 0 && seen[cpu] {
			k.fail(e.At, "cpus", "CPU %d given twice", cpu)
		}
		seen[cpu] = true
	}
	if n := e.Limits.Channel; n != 0 && n < 64 {
		k.fail(e.Limits.At, "channel", "%d is less than 64", n)
	}
	if n := e.Limits.Events; n != 0 && n < 4 {
		k.fail(e.Limits.At, "events", "%d is less than 4", n)
	}
	if e.FlowLifetime > 15*e.FlowIdle {
		k.fail(e.At, "flow_lifetime", "%d is more than 15 times flow_idle, %d", e.FlowLifetime, e.FlowIdle)
	}
	e.buffers(k)
}

func (p *Port) check(k *checker) {
	refer(k, p.At, "xconnect", "port", p.Xconnect, k.ports)
	switch p.Driver {
	case "synth", "inject":
		if p.Device != "" || p.Args != "" {
			k.fail(p.At, "driver", "%s takes neither device nor args", p.Driver)
		}
	case "net_bond":
		p.bond(k)
	default:
		checkDevice(k, p.At, p.Driver, p.Device, p.Args)
	}
	if p.Driver != "net_bond" && (p.Bond.Mode != "" || len(p.Bond.Members) > 0) {
		k.fail(p.At, "bond", "%s is one device; net_bond takes several", p.Driver)
	}
	if len(p.DevArgs()) > 255 {
		k.fail(p.At, "args", "device and args together are longer than 255 bytes")
	}
	if p.SignIn.Packet && p.Role != "access" {
		k.fail(p.SignIn.At, "packet", "port %q is a core port", p.Name)
	}
	if p.Promiscuous && p.Role == "access" && p.Xconnect == "" && p.MAC == (MAC{}) {
		k.fail(p.At, "promiscuous",
			"does nothing on an access port: it takes frames to its own and to group addresses only")
	}
	if p.Offload != "none" && p.Xconnect != "" {
		k.fail(p.At, "offload", "of a port that sends everything to %s", p.Xconnect)
	}
	if q := p.QueueSize; q != 0 && (q < 64 || q&(q-1) != 0) {
		k.fail(p.At, "queue_size", "%d is no power of two from 64 up", q)
	}
}

// checkDevice looks at what opens a device.
func checkDevice(k *checker, at At, driver, device, args string) {
	if device == "" && args == "" {
		k.fail(at, "device", "missing: %s needs to know what to open", driver)
	}
	if strings.ContainsAny(device, ",= ") {
		k.fail(at, "device", "%q holds a comma, an equals sign or a space; use args for arguments", device)
	}
}

func (p *Port) bond(k *checker) {
	b := &p.Bond
	if p.Device != "" {
		k.fail(p.At, "device", "net_bond has none of its own; its devices are bond.members")
	}
	if b.Mode == "" || len(b.Members) == 0 {
		k.fail(p.At, "bond", "missing: net_bond needs bond: {mode: lacp, members: [{driver: pci, device: ...}, ...]}")
	}
	for _, own := range []string{"mode=", "slave="} {
		if strings.Contains(p.Args, own) {
			k.fail(p.At, "args", "%s is made of bond", own)
		}
	}
	for _, m := range b.Members {
		checkDevice(k, m.At, m.Driver, m.Device, m.Args)
		if len(DevArgs(m.Driver, m.Device, m.Args)) > 255 {
			k.fail(m.At, "args", "device and args together are longer than 255 bytes")
		}
	}
}

// bondModes are DPDK's numbers; a hash takes addresses and ports, which differ where a path's packets have one pair of
// addresses.
var bondModes = map[string]string{
	"static": "mode=2,xmit_policy=l34", "lacp": "mode=4,xmit_policy=l34", "active-standby": "mode=1",
}

// DevArgs is what the port's driver gets from DPDK.
func (p *Port) DevArgs() string {
	if p.Driver == "net_bond" {
		return DevArgs(p.Driver, bondModes[p.Bond.Mode], p.Args)
	}
	return DevArgs(p.Driver, p.Device, p.Args)
}

// DevArgs is a device shorthand and args as DPDK device arguments.
func DevArgs(driver, device, args string) string {
	if device != "" {
		switch driver {
		case "net_af_packet", "net_af_xdp", "net_tap", "net_pcap", "net_vhost":
			device = "iface=" + device
		case "share":
			device = "socket=" + device
		case "net_memif":
			device = "socket=" + device + ",socket-abstract=no"
		case "net_virtio_user":
			device = "path=" + device
		}
	}
	switch {
	case device == "":
		return args
	case args == "":
		return device
	}
	return device + "," + args
}

func checkInterfaces(k *checker) {
	k.addresses = map[vrfAddress]Line{}
	type place struct {
		port         Name
		outer, inner uint16
	}
	places := map[place]Line{}
	devices := map[[2]string]Line{}
	spaces := map[string]*Interface{}
	for i := range k.Interfaces {
		f := &k.Interfaces[i]
		port := refer(k, f.At, "port", "port", f.Port, k.ports)
		p := place{f.Port, f.OuterVLAN, f.InnerVLAN}
		if line, twice := places[p]; twice {
			k.fail(f.At, "port", "the interface in line %d is already on this port with these VLANs", line)
		} else {
			places[p] = f.Line("")
		}
		f.clone(k, port, devices)
		if f.GTSM != 0 && port != nil && port.Role != "core" {
			k.fail(f.At, "gtsm", "interface %q is on an access port", f.Name)
		}
		if f.Remark >= 0 && port != nil && (port.Role != "core" || port.Offload != "none") {
			k.fail(f.At, "remark", "port %q is an access port, or has offload", f.Port)
		}
		f.vrf(k, port, spaces)
		for _, a := range f.Addresses {
			addr := a.Addr()
			if addr.IsMulticast() || addr.IsUnspecified() || addr.IsLoopback() {
				k.fail(f.At, "addresses", "%s is no unicast address", addr)
			}
			own := vrfAddress{f.VRF, addr}
			if line, twice := k.addresses[own]; twice && (port == nil || port.Role == "core") {
				k.fail(f.At, "addresses", "%s is already in line %d", addr, line)
				continue
			}
			k.addresses[own] = f.Line("addresses")
		}
	}
}

func (f *Interface) clone(k *checker, port *Port, devices map[[2]string]Line) {
	c := &f.Clone
	if c.Device == "" {
		return
	}
	if port != nil && port.Role != "core" {
		k.fail(c.At, "", "interface %q is on an access port; clones are of core ports", f.Name)
	}
	if strings.ContainsAny(c.Device, "/: \t\n%") || c.Device == "." || c.Device == ".." {
		k.fail(c.At, "device", "%q is no name of a network device", c.Device)
	}
	n := c.Namespace
	if strings.Contains(n, "/") && !strings.HasPrefix(n, "/") || strings.HasPrefix(n, ".") {
		k.fail(c.At, "namespace", "%q is neither a name nor the path of a file", c.Namespace)
	}
	once(k, c.At, "device", devices, [2]string{c.File(), c.Device}, "%s is already the clone of line %d", c.Device)
}

// has: an address is one of the interface's own.
func (f *Interface) has(a netip.Addr) bool {
	return slices.ContainsFunc(f.Addresses, func(p Prefix) bool { return p.Addr() == a })
}

func checkNeighbours(k *checker) {
	type id struct {
		interface_ Name
		address    netip.Addr
	}
	seen := map[id]Line{}
	resolver := NewResolver(k.Config)
	for _, n := range k.Neighbours {
		f := refer(k, n.At, "interface", "interface", n.Interface, k.interfaces)
		if a := n.Address.Addr; f != nil && !f.reaches(a) && !(a.Is6() && a.IsLinkLocalUnicast()) &&
			!resolver.isGateway(f, a) {
			k.fail(n.At, "address", "%s is in no network of interface %q", n.Address, n.Interface)
		}
		key := id{n.Interface, n.Address.Addr}
		once(k, n.At, "address", seen, key, "%s on %s is already in line %d", n.Address, n.Interface)
	}
}

func (r *Rule) check(k *checker) {
	k.tuple(r.At, r.Source, r.Destination, r.SourcePort.Any() && r.DestinationPort.Any(), r.Protocol)
}

// tuple checks what a rule says of addresses, ports and protocol.
func (k *checker) tuple(at At, source, destination Prefix, anyPort bool, p Protocol) {
	if source.IsValid() && destination.IsValid() && source.Addr().Is4() != destination.Addr().Is4() {
		k.fail(at, "destination", "source and destination are not of one family")
	}
	k.network(at, "source", source)
	k.network(at, "destination", destination)
	if !anyPort && (p.Any() || p.Number != 6 && p.Number != 17 && p.Number != 132) {
		k.fail(at, "protocol", "a rule with ports needs protocol tcp, udp or sctp")
	}
}

func (p *Policer) check(k *checker) {
	k.notDynamic(p.At, p.Name)
	if p.CIR.Bytes() == 0 {
		k.fail(p.At, "cir", "must be at least 8 bit/s")
	}
	if p.Type == "srtcm" {
		for _, key := range []string{"pir", "pbs"} {
			if p.Has(key) {
				k.fail(p.At, key, "belongs to trtcm; srtcm has cir, cbs and ebs (RFC 2697)")
			}
		}
		return
	}
	if p.Has("ebs") {
		k.fail(p.At, "ebs", "belongs to srtcm; trtcm has cir, cbs, pir and pbs (RFC 2698)")
	}
	if p.PIR < p.CIR {
		k.fail(p.At, "pir", "trtcm needs a peak rate not below the committed rate")
	}
}

func checkPaths(k *checker) {
	type id struct {
		local, peer netip.Addr
		port        uint16
	}
	seen := map[id]Line{}
	for _, p := range k.Paths {
		k.notDynamic(p.At, p.Name)
		if p.Local.Is4() != p.Peer.Is4() {
			k.fail(p.At, "peer", "local and peer are not of one family")
		}
		if p.Peer.IsMulticast() || p.Peer.IsUnspecified() {
			k.fail(p.At, "peer", "%s is no unicast address", p.Peer)
		}
		if !k.ours(p.Local.Addr) {
			k.fail(p.At, "local", "%s is no address of an interface", p.Local)
		}
		k.tunnelEnd(p.At, "local", p.Local.Addr)
		if p.EchoInterval > 0 && p.EchoInterval < 60 {
			k.fail(p.At, "echo_interval", "%d s is less than 60 s (TS 29.281 clause 7.2.1)", p.EchoInterval)
		}
		key := id{p.Local.Addr, p.Peer.Addr, p.SourcePort}
		once(k, p.At, "", seen, key, "the path in line %d has the same addresses")
	}
}
