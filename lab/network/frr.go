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
	"text/template"
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

var frrText = template.Must(template.New("").Parse(`{{define "zebra"}}
no zebra nexthop kernel enable
{{end}}

{{define "staticd"}}
{{- range .Static}}
{{.}}
{{- end}}
{{end}}

{{define "bfdd"}}
bfd
 profile lab
  transmit-interval {{.BFD}}
  receive-interval {{.BFD}}
  detect-multiplier 3
 exit
{{- range .Steady}}
 peer {{.IPv4}} local-address {{.Own4}} interface {{.Interface}}
  profile lab
 exit
 peer {{.IPv6}} local-address {{.Own6}} interface {{.Interface}}
  profile lab
 exit
{{- end}}
exit
{{end}}

{{define "maps"}}
hostname {{.Title}}
ip prefix-list service permit {{.Service}}
{{- if .Service6.IsValid}}
ipv6 prefix-list service permit {{.Service6}}
route-map SERVICE6 permit 10
 match ipv6 address prefix-list service
{{- .Metric}}
{{- end}}
ip prefix-list servers permit 198.51.100.0/24
ipv6 prefix-list servers permit 2001:db8:100::/48
route-map ANNOUNCE4 permit 10
 match ip next-hop type blackhole
{{- .Metric}}
route-map ANNOUNCE6 permit 10
 match ipv6 next-hop type blackhole
{{- .Metric}}
route-map SERVICE permit 10
 match ip address prefix-list service
{{- .Metric}}
route-map SERVERS4 permit 10
 match ip address prefix-list servers
route-map SERVERS6 permit 10
 match ipv6 address prefix-list servers
{{end}}

{{define "bgpd"}}
bgp as-path access-list OWN permit ^$
{{template "maps" .}}
route-map OUT permit 10
 match as-path OWN
{{- if .Prepend}}
 set as-path prepend{{range .Prepend}} {{.}}{{end}}
{{- end}}
router bgp {{.AS}}
 bgp router-id {{.ID}}
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 bgp graceful-restart
 bgp graceful-restart preserve-fw-state
 timers bgp 1 3
{{- range .Peers}}
 neighbor {{.IPv4}} remote-as {{.AS}}
 neighbor {{.IPv4}} timers connect 1
 neighbor {{.IPv6}} remote-as {{.AS}}
 neighbor {{.IPv6}} timers connect 1
 {{- if not $.Gateway}}
 neighbor {{.IPv4}} bfd profile lab
 neighbor {{.IPv6}} bfd profile lab
 {{- end}}
{{- end}}
 address-family ipv4 unicast
{{- if .Gateway}}
  redistribute kernel route-map ANNOUNCE4
  redistribute connected route-map SERVICE
{{- else}}
  redistribute static route-map SERVERS4
  redistribute kernel
{{- end}}
{{- range .Peers}}
  neighbor {{.IPv4}} activate
{{- if $.Gateway}}
  neighbor {{.IPv4}} route-map OUT out
{{- else if eq .AS $.AS}}
  neighbor {{.IPv4}} next-hop-self
{{- else}}
  neighbor {{.IPv4}} default-originate
{{- end}}
{{- end}}
 exit-address-family
 address-family ipv6 unicast
{{- if .Gateway}}
  redistribute kernel route-map ANNOUNCE6
{{- if .Service6.IsValid}}
  redistribute connected route-map SERVICE6
{{- end}}
{{- else}}
  redistribute static route-map SERVERS6
{{- end}}
{{- range .Peers}}
  neighbor {{.IPv6}} activate
{{- if $.Gateway}}
  neighbor {{.IPv6}} route-map OUT out
{{- else if eq .AS $.AS}}
  neighbor {{.IPv6}} next-hop-self
{{- else}}
  neighbor {{.IPv6}} default-originate
{{- end}}
{{- end}}
 exit-address-family
exit
{{end}}

{{define "ospfd"}}
{{template "maps" .}}
router ospf
 ospf router-id {{.ID}}
 timers throttle spf 50 200 1000
{{- range .Peers}}
 network {{.Network}} area 0
{{- end}}
{{- if .Gateway}}
 redistribute kernel metric {{.Cost}}
 redistribute connected route-map SERVICE
{{- else}}
 redistribute static route-map SERVERS4
 default-information originate always
{{- end}}
exit
{{- range .Peers}}
interface {{.Interface}}
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 4
 ip ospf bfd
 ip ospf bfd profile lab
exit
{{- end}}
{{end}}

{{define "ospf6d"}}
{{template "maps" .}}
router ospf6
 ospf6 router-id {{.ID}}
{{- if .Gateway}}
 redistribute kernel route-map ANNOUNCE6
{{- else}}
 redistribute static route-map SERVERS6
 default-information originate always
{{- end}}
exit
{{- range .Peers}}
interface {{.Interface}}
 ipv6 ospf6 area 0
 ipv6 ospf6 network point-to-point
 ipv6 ospf6 hello-interval 1
 ipv6 ospf6 dead-interval 4
 ipv6 ospf6 bfd profile lab
exit
{{- end}}
{{end}}

{{define "isisd"}}
{{template "maps" .}}
router isis lab
 lsp-gen-interval 1
 spf-interval 1
 is-type level-2-only
 net {{.NET}}
{{- if .Gateway}}
 redistribute ipv4 kernel level-2 route-map ANNOUNCE4
 redistribute ipv6 kernel level-2 route-map ANNOUNCE6
{{- else}}
 redistribute ipv4 static level-2 route-map SERVERS4
 redistribute ipv6 static level-2 route-map SERVERS6
 default-information originate ipv4 level-2 always
 default-information originate ipv6 level-2 always
{{- end}}
exit
{{- range .Peers}}
interface {{.Interface}}
 ip router isis lab
 ipv6 router isis lab
 isis network point-to-point
 isis metric {{$.Cost}}
 isis hello-interval 1
 no isis hello padding
 isis bfd
 isis bfd profile lab
exit
{{- end}}
{{end}}
`))

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
	err := frrText.ExecuteTemplate(&b, daemon, data)
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
