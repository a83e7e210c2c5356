// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"isthmus/lab/frames"
)

// `lab home`: homes that sign in by PPPoE or DHCP, an access switch that puts each into its VLANs, the access gateway,
// a
// RADIUS server and the internet.

// MaxSigningIn is how many homes a lab has a namespace for.
const MaxSigningIn = 64

const (
	bngNode    = "bng"
	switchNode = "switch"
	homesSTag  = 100
	// what is secret between gateway and RADIUS server
	radiusSecret = "lab-secret"
)

var (
	homesGateway   = netip.MustParsePrefix("100.64.0.1/16")
	homesDelegated = netip.MustParsePrefix("2001:db8:6400::/40")
)

// homeNode is the namespace of the i-th home, from 0.
func homeNode(i int) string {
	if i == 0 {
		return "home"
	}
	return fmt.Sprintf("home%d", i+1)
}

// HomeUser is the name by which the i-th home signs in.
func HomeUser(i int) string { return fmt.Sprintf("home%d", i+1) }

// newHome has the emulated core's node for the RADIUS server.
func newHome(opt *Options, w words) *topology {
	t := &topology{nodes: []string{"cp", switchNode, w.pdn}, cores: []core{{"radius", "RADIUS", coreAddress(0)}}}
	t.add(&function{name: bngNode, title: w.anchorTitle, access: w.access, coreSide: w.core})
	for i := range opt.Homes {
		t.nodes = append(t.nodes, homeNode(i))
		t.join(end{node: homeNode(i), name: "wan", mac: homeOf(i).MAC}, port(switchNode, fmt.Sprintf("line%d", i)),
			ipMTU)
	}
	t.join(port(switchNode, "uplink"), port(bngNode, w.access), tunnelMTU)
	t.join(port(bngNode, w.core), end{node: w.pdn, name: w.core, addresses: both(netCore, 2)}, ipMTU)
	t.joinCores()
	return t
}

// homeConfig is the gateway's configuration, as a user would write it.
// signInConfig writes the configuration of the access gateway.
func (l *Lab) signInConfig(f *function) ([]byte, error) {
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, "home.yaml.tmpl", map[string]any{
		"Dir": l.folder(f), "Gateway": homesGateway, "Core": both(netCore, 1), "STag": homesSTag,
		"IPv4": !l.opt.IPv6Only,
		"Routes": []configRoute{
			{netip.MustParsePrefix("0.0.0.0/0"), net4(netCore, 2).Addr()},
			{netip.MustParsePrefix("::/0"), net6(netCore, 2).Addr()},
		},
		"PoolIPv4": homesIPv4, "PoolIPv6": homesIPv6, "PoolPD": homesDelegated,
		"ServerIPv4": serverIPv4, "ServerIPv6": serverIPv6,
		"NAS": f.n4, "RADIUS": l.top.cores[f.core].addr, "Secret": radiusSecret,
	})
	return b.Bytes(), err
}

// internetHosts are addresses and routes of the data network.
func internetHosts(pdn string) []string {
	lines := []string{
		fmt.Sprintf("%s addr add %s/32 dev lo", pdn, serverIPv4),
		fmt.Sprintf("%s addr add %s/128 dev lo nodad", pdn, serverIPv6),
		fmt.Sprintf("%s route add %s via %s src %s", pdn, homesIPv4, net4(netCore, 1).Addr(), serverIPv4),
	}
	for _, p := range []netip.Prefix{homesIPv6, homesDelegated} {
		lines = append(lines, fmt.Sprintf("%s -6 route add %s via %s src %s", pdn, p, net6(netCore, 1).Addr(),
			serverIPv6))
	}
	return lines
}

// ---- the access switch
// ----------------------------------------------------------------------------------------------------

// startSwitch puts packets of line i into S-tag homesSTag and C-tag i + 1, and back.
func (l *Lab) startSwitch(context.Context) error {
	var uplink *os.File
	lines := make([]*os.File, l.opt.Homes)
	err := inside(switchNode, func() (err error) {
		if uplink, err = frames.Open("uplink"); err != nil {
			return err
		}
		l.closers = append(l.closers, uplink)
		for i := range lines {
			if lines[i], err = frames.Open(fmt.Sprintf("line%d", i)); err != nil {
				return err
			}
			l.closers = append(l.closers, lines[i])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, line := range lines {
		tags := binary.BigEndian.AppendUint16(nil, 0x88a8)
		tags = binary.BigEndian.AppendUint16(tags, homesSTag)
		tags = binary.BigEndian.AppendUint16(tags, 0x8100)
		tags = binary.BigEndian.AppendUint16(tags, uint16(i+1))
		go relay(line.Read, writer(uplink), func(to, from []byte) ([]byte, bool) {
			if len(from) < 14 {
				return nil, false
			}
			return append(append(append(to, from[:12]...), tags...), from[12:]...), true
		})
	}
	go fromUplink(uplink, lines)
	return nil
}

func writer(f *os.File) func([]byte) error {
	return func(b []byte) error { _, err := f.Write(b); return err }
}

// fromUplink gives frames of the gateway to their lines, until the socket is closed. The kernel has taken the outer tag
// off.
func fromUplink(uplink *os.File, lines []*os.File) {
	in, out := make([]byte, largest), make([]byte, 0, largest)
	for {
		n, err := uplink.Read(in)
		if err != nil {
			return
		}
		at, c := 12, uint16(0)
		for at+4 < n && (binary.BigEndian.Uint16(in[at:]) == 0x8100 || binary.BigEndian.Uint16(in[at:]) == 0x88a8) {
			c = binary.BigEndian.Uint16(in[at+2:]) & 0xfff
			at += 4
		}
		if c >= 1 && int(c) <= len(lines) {
			lines[c-1].Write(append(append(out, in[:12]...), in[at:n]...)) // lost, as on any link, when it does not go
		}
	}
}

// ---- homes
// ----------------------------------------------------------------------------------------------------------------

// dhclientScript does what an ordinary one does, and leaves the machine's resolv.conf alone.
const dhclientScript = `#!/bin/sh
# of isthmus lab: addresses and routes of a home by DHCP
case $reason in
BOUND | RENEW | REBIND | REBOOT)
	ip -4 addr replace "$new_ip_address/$new_subnet_mask" dev "$interface"
	for router in $new_routers; do ip -4 route replace default via "$router" dev "$interface"; done ;;
EXPIRE | FAIL | RELEASE | STOP)
	ip -4 addr flush dev "$interface" ;;
BOUND6 | RENEW6 | REBIND6)
	[ -z "$new_ip6_address" ] || ip -6 addr replace "$new_ip6_address/128" dev "$interface"
	[ -z "$new_ip6_prefix" ] || ip -6 addr replace "${new_ip6_prefix%%/*}1/64" dev lo ;;
esac
exit 0
`

// startHomesSigningIn has every home sign in, and waits until all of them reach the internet.
func (l *Lab) startHomesSigningIn(ctx context.Context) error {
	script := filepath.Join(l.opt.Dir, "dhclient-script")
	if err := os.WriteFile(script, []byte(dhclientScript), 0o755); err != nil {
		return err
	}
	for i := range l.opt.Homes {
		start := l.startIPoE
		if l.opt.PPPoE {
			start = l.startPPPoE
		}
		if err := start(ctx, i); err != nil {
			return fmt.Errorf("%s: %w", homeNode(i), err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, convergence)
	defer cancel()
	targets := []netip.Addr{serverIPv4, serverIPv6}
	if l.opt.IPv6Only {
		targets = targets[1:]
	}
	for i := range l.opt.Homes {
		if err := reached(ctx, homeNode(i), targets); err != nil {
			return err
		}
	}
	return nil
}

// startIPoE runs Debian's DHCP client in a home; the kernel makes the IPv6 address of a router advertisement.
func (l *Lab) startIPoE(ctx context.Context, i int) error {
	node := homeNode(i)
	err := inside(node, func() error {
		return sysctl(map[string]string{"ipv6/conf/wan/accept_ra": "2", "ipv6/conf/wan/router_solicitations": "-1"})
	})
	if err != nil {
		return err
	}
	for _, state := range []string{"down", "up"} { // up: it solicits routers
		if err := command(ctx, "ip", "-n", Prefix+node, "link", "set", "wan", state); err != nil {
			return err
		}
	}
	// dhclient -6 gives up without a link-local address.
	for !hasLinkLocal(node) {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("no link-local address: %w", err)
		}
	}
	file := func(name string) string { return filepath.Join(l.opt.Dir, node+"."+name) }
	script := filepath.Join(l.opt.Dir, "dhclient-script")
	if !l.opt.IPv6Only {
		err = l.spawn(node, "dhclient of "+node, file("dhclient4.log"), true, "dhclient", "-4", "-d", "-sf", script,
			"-cf", "/dev/null", "-lf", file("leases4"), "-pf", file("pid4"), "wan")
	}
	if err != nil {
		return err
	}
	return l.spawn(node, "dhclient -6 of "+node, file("dhclient6.log"), true, "dhclient", "-6", "-P", "-d", "-sf",
		script,
		"-cf", "/dev/null", "-lf", file("leases6"), "-pf", file("pid6"), "wan")
}

func hasLinkLocal(node string) (has bool) {
	inside(node, func() error {
		b, err := os.ReadFile("/proc/thread-self/net/if_inet6")
		has = bytes.Contains(b, []byte(" 20 ")) // scope; then the flags, 80 means permanent
		return err
	})
	return has
}

// signInHints are what a user may type next.
func (l *Lab) signInHints() string {
	var b bytes.Buffer
	f := l.top.functions[0]
	fmt.Fprintf(&b, "\nIn another terminal:\n")
	for _, line := range []string{
		fmt.Sprintf("isthmus lab exec home ping %s", serverIPv6),
		"isthmus lab exec home curl http://www.lab/",
		fmt.Sprintf("isthmus --socket %s/isthmus.sock show subscriber", l.folder(f)),
		fmt.Sprintf("isthmus --socket %s/isthmus.sock show radius", l.folder(f)),
		fmt.Sprintf("isthmus --socket %s/isthmus.sock clear subscriber %s", l.folder(f), HomeUser(0)),
		fmt.Sprintf("isthmus lab exec cp sh -c 'echo \"User-Name=%s,Event-Timestamp=$(date "+
			"+%%s),WISPr-Bandwidth-Max-Down=5000000,"+
			"WISPr-Bandwidth-Max-Up=5000000\" | radclient -x %s coa %s'", HomeUser(0), l.coaAddress(), radiusSecret),
		fmt.Sprintf("isthmus lab exec cp cat %s", filepath.Join(l.radiusFolder(), "detail")),
		fmt.Sprintf("isthmus lab exec %s tcpdump -eni uplink", switchNode),
	} {
		fmt.Fprintf(&b, "  sudo %s\n", line)
	}
	return b.String()
}
