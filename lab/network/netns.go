// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// netnsDir is where iproute2 keeps the names of network namespaces.
const netnsDir = "/run/netns"

// namespaces lists those of a lab that there are.
func namespaces() []string {
	entries, _ := os.ReadDir(netnsDir)
	var list []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), Prefix) {
			list = append(list, e.Name())
		}
	}
	return list
}

// command runs a short program and returns its words when it fails.
func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// inside runs f on a thread in a namespace of the lab. The thread ends with f: it runs nothing else.
func inside(node string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if unix.Gettid() == os.Getpid() {
			// The first thread would stay, and place the lab in that namespace for observers (killInside).
			// It waits for another.
			defer runtime.UnlockOSThread()
			done <- inside(node, f)
			return
		}
		done <- func() error {
			file, err := os.Open(filepath.Join(netnsDir, Prefix+node))
			if err != nil {
				return err
			}
			defer file.Close()
			if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("namespace %s%s: %w", Prefix, node, err)
			}
			return f()
		}()
	}()
	return <-done
}

// sysctl sets values below /proc/sys/net of the thread's namespace. Parts of IPv6 may be missing in the kernel.
func sysctl(values map[string]string) error {
	var errs []error
	for name, value := range values {
		err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0)
		if err != nil && !(errors.Is(err, os.ErrNotExist) && strings.HasPrefix(name, "ipv6/")) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// makeNetwork makes namespaces, links and addresses.
func (l *Lab) makeNetwork(ctx context.Context) error {
	for _, node := range l.top.nodes {
		if err := command(ctx, "ip", "netns", "add", Prefix+node); err != nil {
			return err
		}
		if err := command(ctx, "ip", "-n", Prefix+node, "link", "set", "lo", "up"); err != nil {
			return err
		}
		if err := inside(node, func() error { return sysctl(hostSettings) }); err != nil {
			return err
		}
	}
	for _, node := range l.top.bridges {
		if err := command(ctx, "ip", "-n", Prefix+node, "link", "add", "name", "bridge", "mtu",
			fmt.Sprint(tunnelMTU),
			"type", "bridge", "mcast_snooping", "0"); err != nil {
			return err
		}
		if err := command(ctx, "ip", "-n", Prefix+node, "link", "set", "bridge", "up"); err != nil {
			return err
		}
	}
	for i := range l.top.links {
		if err := makeLink(ctx, &l.top.links[i]); err != nil {
			return err
		}
	}
	return l.makeHosts(ctx)
}

// hostSettings are those of every namespace: no address is tentative, no automatic configuration, and packets may leave
// and come by different interfaces.
var hostSettings = map[string]string{
	"ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0", "ipv4/ip_forward": "0",
	"ipv6/conf/default/accept_dad": "0", "ipv6/conf/default/accept_ra": "0",
	"ipv6/conf/default/router_solicitations": "0",
}

func makeLink(ctx context.Context, l *link) error {
	mtu := fmt.Sprint(l.mtu)
	err := command(ctx, "ip", "link", "add", "name", l.a.name, "mtu", mtu, "netns", Prefix+l.a.node, "type", "veth",
		"peer", "name", l.b.name, "mtu", mtu, "netns", Prefix+l.b.node)
	if err != nil {
		return err
	}
	for _, one := range []struct{ near, far *end }{{&l.a, &l.b}, {&l.b, &l.a}} {
		if err := one.near.prepare(ctx, one.far); err != nil {
			return err
		}
	}
	return nil
}

// prepare sets up one end of a link.
func (e *end) prepare(ctx context.Context, far *end) error {
	ns := Prefix + e.node
	// A data plane reads and writes whole frames: no later device would make checksums or cut segments.
	err := command(ctx, "nsenter", "--net="+filepath.Join(netnsDir, ns), "--", "ethtool", "-K", e.name,
		"tx", "off", "tso", "off", "gso", "off", "gro", "off")
	if err != nil {
		return err
	}
	if e.port {
		// The kernel sees copies of all frames. Without addresses it answers none, and packets for its address
		// on the N4 interface do not reach that from this side.
		err = inside(e.node, func() error {
			return sysctl(map[string]string{
				"ipv6/conf/" + e.name + "/disable_ipv6": "1", "ipv4/conf/" + e.name + "/rp_filter": "1",
				"ipv4/conf/" + e.name + "/arp_ignore": "8",
			})
		})
	}
	if err != nil {
		return err
	}
	if e.mac != "" {
		if err := command(ctx, "ip", "-n", ns, "link", "set", e.name, "address", e.mac); err != nil {
			return err
		}
	}
	if e.bridged {
		if err := command(ctx, "ip", "-n", ns, "link", "set", e.name, "master", "bridge"); err != nil {
			return err
		}
	}
	if err := command(ctx, "ip", "-n", ns, "link", "set", e.name, "up"); err != nil {
		return err
	}
	for _, a := range e.addresses {
		args := []string{"-n", ns, "addr", "add", a.String(), "dev", e.name}
		if a.IsSingleIP() { // a wire with one address at each end
			args = []string{"-n", ns, "addr", "add", a.Addr().String(), "peer", far.addresses[0].Addr().String(), "dev",
				e.name}
		} else if a.Addr().Is6() {
			args = append(args, "nodad")
		}
		if err := command(ctx, "ip", args...); err != nil {
			return err
		}
	}
	return nil
}

// shownUEs is how many UEs have their addresses on the UE namespace's interface.
const shownUEs = 8

// makeHosts gives the UE and server namespaces their addresses and routes.
func (l *Lab) makeHosts(ctx context.Context) error {
	w := generations[l.opt.Generation]
	if l.opt.Generation == "home" {
		return l.configureHosts(ctx, internetHosts(w.pdn))
	}
	var lines []string
	ue := func(format string, args ...any) { lines = append(lines, "ue "+fmt.Sprintf(format, args...)) }
	for i := range min(l.opt.UEs, shownUEs) {
		a := ueAddresses(i + 1)
		ue("addr add %s/32 dev ue0", a.IPv4)
		ue("addr add %s/128 dev ue0 nodad", host(a.IPv6))
	}
	for _, line := range camp(0) {
		ue("%s", line)
	}
	if l.opt.Generation == "isp" {
		lines = append(lines, l.ispHosts()...)
		return l.configureHosts(ctx, lines)
	}
	// Servers that are bound to no address answer from the requested one.
	server := func(node string, address netip.Addr, pool netip.Prefix, via netip.Prefix) {
		nodad := map[bool]string{true: " nodad"}[address.Is6()]
		lines = append(lines, fmt.Sprintf("%s addr add %s/%d dev lo%s", node, address, address.BitLen(), nodad),
			fmt.Sprintf("%s route add %s via %s src %s", node, pool, via.Addr(), address))
	}
	server(w.pdn, serverIPv4, poolIPv4, net4(netCore, 1))
	server(w.pdn, serverIPv6, poolIPv6, net6(netCore, 1))
	if l.opt.N9 {
		server("edge", edgeIPv4, poolIPv4, net4(netEdge, 1))
	}
	return l.configureHosts(ctx, lines)
}

// configureHosts runs ip in nodes, which the lines begin with.
func (l *Lab) configureHosts(ctx context.Context, lines []string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		if err := command(ctx, "ip", append([]string{"-n", Prefix + words[0]}, words[1:]...)...); err != nil {
			return err
		}
	}
	return l.nameServer()
}

// camp are the routes of the UE at a radio node, its own addresses as source.
func camp(radio int) []string {
	a := ueAddresses(1)
	return []string{
		fmt.Sprintf("route replace default via %s dev ue%d src %s", net4(netRadio+radio, 1).Addr(), radio, a.IPv4),
		fmt.Sprintf("-6 route replace default via %s dev ue%d src %s", net6(netRadio+radio, 1).Addr(), radio,
			host(a.IPv6)),
	}
}

// resolvFile is what `ip netns exec` puts in the place of /etc/resolv.conf.
func resolvFile(node string) string { return filepath.Join("/etc/netns", Prefix+node, "resolv.conf") }

func (l *Lab) nameServer() error {
	text := fmt.Sprintf("# of `isthmus lab`\nnameserver %s\nnameserver %s\noptions timeout:2\n", serverIPv4, serverIPv6)
	for _, node := range l.top.nodes {
		if node != "ue" && !strings.HasPrefix(node, "home") {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(resolvFile(node)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(resolvFile(node), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
