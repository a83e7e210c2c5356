// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// frrPrograms is where Debian has FRR's daemons.
const frrPrograms = "/usr/lib/frr"

// router is a node with FRR: a router, or the namespace of a gateway's clones.
type router struct {
	name, title string
	as          int
	id          netip.Addr
	gateway     bool
	prepend     int // of our AS: the more, the less preferred
	peers       []routerPeer
	stub        int  // network of the servers
	site        bool // announces the site of the second VRF
}

// routerPeer is a link to another one.
type routerPeer struct {
	Interface string
	network   int
	host      int // of the peer
	AS        int
	Name      string
}

func (p routerPeer) IPv4() netip.Addr { return net4(p.network, p.host).Addr() }
func (p routerPeer) Own4() netip.Addr { return net4(p.network, 3-p.host).Addr() }
func (p routerPeer) Own6() netip.Addr { return net6(p.network, 3-p.host).Addr() }

func (p routerPeer) Network() netip.Prefix { return net4(p.network, 0) }

func (p routerPeer) IPv6() netip.Addr { return net6(p.network, p.host).Addr() }

// bfdPeriod is how often BFD sends, in milliseconds; a neighbour that is silent for three of them is down.
const bfdPeriod = 200

// daemons of FRR that a node runs, zebra first.
func (l *Lab) daemons() []string {
	list := []string{"zebra", "staticd", "bfdd", "bgpd"}
	switch l.opt.IGP {
	case "ospf":
		return append(list[:3], "ospfd", "ospf6d")
	case "isis":
		return append(list[:3], "isisd")
	}
	return list
}

// frrConfig writes the file of one daemon.
func (l *Lab) frrConfig(r *router, daemon string) ([]byte, error) {
	data := struct {
		Title, Metric, NET string
		AS, BFD, Cost      int
		ID                 netip.Addr
		Service, Service6  netip.Prefix // of interfaces, that are announced
		Gateway            bool
		Prepend            []int
		Peers, Steady      []routerPeer
		Static             []string
	}{
		Title: r.title, AS: r.as, BFD: bfdPeriod, ID: r.id, Gateway: r.gateway,
		Service: netip.PrefixFrom(serviceIPv4, serviceIPv4.BitLen()),
		Peers:   r.peers,
		Prepend: slices.Repeat([]int{r.as}, 2*r.prepend),
	}
	if r.site {
		data.Service, data.Service6 = siteIPv4, siteIPv6
	}
	data.Cost = 10 + 100*r.prepend // of an interior protocol
	if r.gateway && l.opt.IGP != "" {
		data.Metric = fmt.Sprintf("\n set metric %d", data.Cost)
	}
	a := r.id.As4()
	data.NET = fmt.Sprintf("49.0001.%02x%02x.%02x%02x.0000.00", a[0], a[1], a[2], a[3])
	if !r.gateway || !l.opt.Graceful {
		data.Static = r.static()
	}
	if r.gateway && l.opt.IGP == "" {
		// Routers watch gateways by BFD, which continues without the gateway's bgpd: for that one they wait
		// (RFC 4724).
		data.Steady = r.peers
	}
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, daemon, data)
	return b.Bytes(), err
}

// static routes: a router's to the servers; a gateway's to the routers, as a fallback without a learnt one.
func (r *router) static() []string {
	if !r.gateway {
		return []string{
			fmt.Sprintf("ip route 198.51.100.0/24 %s", net4(r.stub, 2).Addr()),
			fmt.Sprintf("ipv6 route 2001:db8:100::/48 %s", net6(r.stub, 2).Addr()),
		}
	}
	var list []string
	for i, p := range r.peers {
		list = append(list, fmt.Sprintf("ip route 0.0.0.0/0 %s %d", p.IPv4(), 250+i),
			fmt.Sprintf("ipv6 route ::/0 %s %d", p.IPv6(), 250+i))
	}
	return list
}

// checkFRR: Debian's FRR is installed.
func checkFRR() error {
	if _, err := os.Stat(filepath.Join(frrPrograms, "zebra")); err != nil {
		return errors.New("lab isp needs FRR (Debian: frr)")
	}
	return nil
}

// startRouting runs FRR in the routers' and the gateways' clones' namespaces, with files, sockets and process ids in
// the lab's folder: the machine's own FRR is untouched.
func (l *Lab) startRouting(ctx context.Context) error {
	account, err := user.Lookup("frr") // the daemons give up root
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	for _, r := range l.top.routers {
		dir := l.frrFolder(r.name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.Chown(dir, uid, gid); err != nil {
			return err
		}
		forward := map[string]string{"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1"}
		if err := inside(r.name, func() error { return sysctl(forward) }); err != nil && !r.gateway {
			return err
		}
		for _, daemon := range l.daemons() {
			text, err := l.frrConfig(r, daemon)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, daemon+".conf"), text, 0o644); err != nil {
				return err
			}
			log := filepath.Join(dir, daemon+".log")
			err = l.spawn(r.name, daemon+" of "+r.title, log, true, frrCommand(dir, daemon)...)
			if err != nil {
				return err
			}
			if daemon == "zebra" { // others give up without its socket
				if err := waitFile(ctx, filepath.Join(dir, "zserv.api")); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func waitFile(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}

// frrFolder has the files of a router's daemons; vtysh --vty_socket takes it.
func (l *Lab) frrFolder(node string) string { return filepath.Join(l.opt.Dir, node, "frr") }

func frrCommand(dir, daemon string) []string {
	argv := []string{filepath.Join(frrPrograms, daemon), "-f", filepath.Join(dir, daemon+".conf"),
		"-i", filepath.Join(dir, daemon+".pid"), "-z", filepath.Join(dir, "zserv.api"),
		"--vty_socket", dir, "-P", "0", "--log", "stdout", "--log-level", "notifications"}
	switch daemon {
	case "zebra":
		// Routes stay when it ends, for the daemons that come back; netlink messages have room.
		argv = append(argv, "-s", "90000000", "-K", "60", "-r")
	case "bfdd":
		argv = append(argv, "--bfdctl", filepath.Join(dir, "bfdd.sock"))
	}
	return argv
}
