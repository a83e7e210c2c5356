// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// syscallNotDir: a part of the path is a file.
const syscallNotDir = syscall.ENOTDIR

// own gives a staged file its owner's names on this machine, where we may. Folders that were made follow it.
func (r *Restore) own(f *file) {
	uid, gid := -1, -1
	if u, err := user.Lookup(f.Owner); err == nil {
		uid, _ = strconv.Atoi(u.Uid)
	}
	if g, err := user.LookupGroup(f.Group); err == nil {
		gid, _ = strconv.Atoi(g.Gid)
	}
	if uid < 0 || gid < 0 || os.Chown(f.staged, uid, gid) != nil {
		note := fmt.Sprintf("%s:%s cannot own files here: they belong to %d:%d", f.Owner, f.Group, os.Geteuid(),
			os.Getegid())
		if !slices.Contains(r.Notes, note) {
			r.Notes = append(r.Notes, note)
		}
		return
	}
	if isState(f.Role) {
		for _, folder := range r.made {
			os.Chown(folder, uid, gid)
		}
	}
}

// Bound are the settings that another machine may not have, a line each.
func (r *Restore) Bound() (list []string) {
	c := r.layout.start
	add := func(here bool, format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		if !here {
			line += ": not on this machine"
		}
		list = append(list, line)
	}
	device := func(key, driver, name string) {
		switch driver {
		case "pci":
			add(exists("/sys/bus/pci/devices/"+name), "%s: PCI address %s", key, name)
		case "net_af_packet", "net_af_xdp":
			_, err := net.InterfaceByName(name) // /sys may be of another namespace
			add(err == nil, "%s: interface %s", key, name)
		}
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		device("port "+string(p.Name), p.Driver, p.Device)
		for _, m := range p.Bond.Members {
			device("port "+string(p.Name), m.Driver, m.Device)
		}
	}
	var may unix.CPUSet
	known := unix.SchedGetaffinity(0, &may) == nil
	for _, cpu := range c.Engine.CPUs {
		if cpu >= 0 {
			add(!known || may.IsSet(cpu), "engine.cpus: CPU %d", cpu)
		}
	}
	for i := range c.Interfaces {
		if space := c.Interfaces[i].Clone.Namespace; space != "" {
			add(exists(c.Interfaces[i].Clone.File()), "interface %s: network namespace %s", c.Interfaces[i].Name, space)
		}
	}
	for _, s := range c.PFCP.Listen {
		add(isHere(s.Addr()), "pfcp.listen: %s", s.Addr())
	}
	for _, s := range c.Control.API.Addresses() {
		add(isHere(s.Addr()), "control.api.listen: %s", s.Addr())
	}
	if was := r.Manifest.DUID; was != "" && was != machineDUID(c) {
		add(false, "access.dhcp.duid: DHCPv6 clients know %s, made of the machine's id; give it so that they stay",
			was)
	}
	return list
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// isHere: this machine, in this network namespace, has an address, or it stands for all.
func isHere(a netip.Addr) bool {
	if a.IsUnspecified() {
		return true
	}
	list, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(list, func(is net.Addr) bool {
		p, err := netip.ParsePrefix(is.String())
		return err == nil && p.Addr().Unmap() == a.Unmap().WithZone("")
	})
}
