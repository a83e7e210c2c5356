// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

const keaConfig = `{"Dhcp4": {"interfaces-config": {"interfaces": ["up0"], "dhcp-socket-type": "udp"},
"lease-database": {"type": "memfile", "persist": false}, "valid-lifetime": 7200,
"subnet4": [{"subnet": "172.16.0.0/24", "pools": [{"pool": "172.16.0.50 - 172.16.0.60"}],
"relay": {"ip-addresses": ["198.18.77.1"]}, "option-data": [{"name": "routers", "data": "172.16.0.1"}]}]}}`

const keaConfig6 = `{"Dhcp6": {"interfaces-config": {"interfaces": ["up0/2001:db8:77::2"]},
"server-id": {"type": "EN", "enterprise-id": 32473, "identifier": "01", "persist": false},
"lease-database": {"type": "memfile", "persist": false}, "preferred-lifetime": 3600, "valid-lifetime": 7200,
"subnet6": [{"subnet": "2001:db8:500::/64", "interface-id": "access:0.0",
"pools": [{"pool": "2001:db8:500::50 - 2001:db8:500::60"}],
"pd-pools": [{"prefix": "2001:db8:600::", "prefix-len": 48, "delegated-len": 56}]}]}}`

// keaSpace runs Kea in a namespace of its own, on 198.18.77.2 and 2001:db8:77::2; its packets to our socket go to take.
func keaSpace(t *testing.T, w *wire, program, config string, at *net.UDPAddr, take func([]byte)) *net.UDPConn {
	name := w.space + "k"
	command(t, "ip netns add "+name)
	t.Cleanup(func() { exec.Command("ip", "netns", "del", name).Run() })
	command(t, "ip link add "+name+" type veth peer name up0 netns "+name)
	t.Cleanup(func() { exec.Command("ip", "link", "del", name).Run() })
	for _, line := range []string{"ip addr add 198.18.77.1/24 dev " + name, "ip link set " + name + " up",
		"ip addr add 2001:db8:77::1/64 dev " + name + " nodad",
		"ip -n " + name + " addr add 2001:db8:77::2/64 dev up0 nodad",
		"ip -n " + name + " addr add 198.18.77.2/24 dev up0", "ip -n " + name + " link set up0 up",
		"ip -n " + name + " link set lo up"} {
		command(t, line)
	}
	testkit.Until(t, "up0 has a carrier", func() bool { // Kea opens no socket without, and does not try again
		out, _ := exec.Command("ip", "-n", name, "link", "show", "up0").Output()
		return strings.Contains(string(out), "state UP")
	})
	path := filepath.Join(w.dir, "kea.json")
	testkit.Must(t, os.WriteFile(path, []byte(config), 0o600))
	kea := exec.Command("ip", "netns", "exec", name, program, "-c", path)
	var out strings.Builder
	kea.Stdout, kea.Stderr, kea.WaitDelay = &out, &out, time.Second
	kea.Env = append(os.Environ(), "KEA_PIDFILE_DIR="+w.dir, "KEA_LOCKFILE_DIR=none")
	testkit.Must(t, kea.Start())
	t.Cleanup(func() {
		kea.Process.Kill()
		kea.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	socket, err := net.ListenUDP("udp", at)
	testkit.Must(t, err)
	t.Cleanup(func() { socket.Close() })
	answers := make(chan []byte, 16)
	go func() {
		for {
			b := make([]byte, 1500)
			n, _, err := socket.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			answers <- b[:n]
		}
	}()
	w.each = func() {
		for len(answers) > 0 {
			take(<-answers)
		}
	}
	return socket
}

// upstreamKea has Kea serve DHCPv4 of a port of the wire.
func upstreamKea(t *testing.T, w *wire, proxy bool) {
	server := netip.MustParseAddrPort("198.18.77.2:67")
	socket := keaSpace(t, w, "kea-dhcp4", keaConfig, &net.UDPAddr{IP: net.IP{198, 18, 77, 1}, Port: serverPort4},
		func(b []byte) { w.s.FromUpstream(server, b) })
	w.c.Address.Addr = netip.MustParseAddr("198.18.77.1")
	w.ports["access"] = Port{V4: true, Proxy: proxy, Upstream: []netip.AddrPort{server}}
	w.configure()
	w.s.Upstream = func(server netip.AddrPort, packet []byte) error {
		_, err := socket.WriteToUDPAddrPort(packet, server)
		return err
	}
}

// Kea gives a real client an address and a prefix through us, and gets their release.
func TestKea6(t *testing.T) {
	w := newWire(t, "kea-dhcp6", "dhclient")
	ours, server := netip.MustParseAddrPort("[2001:db8:77::1]:547"), netip.MustParseAddrPort("[2001:db8:77::2]:547")
	socket := keaSpace(t, w, "kea-dhcp6", keaConfig6, net.UDPAddrFromAddrPort(ours),
		func(b []byte) { w.s.FromUpstream6(server, b) })
	w.c.Address6.Addr = ours.Addr()
	w.ports["access"] = Port{V6: true, Upstream6: []netip.AddrPort{server}}
	w.configure()
	w.s.Upstream6 = func(server netip.AddrPort, packet []byte) error {
		_, err := socket.WriteToUDPAddrPort(packet, server)
		return err
	}
	w.until("link-local address", w.shows("-6 addr show dev eth0 scope link -tentative", "fe80"))
	files := " -lf " + w.dir + "/leases -pf " + w.dir + "/pid -sf " + w.script() + " -cf /dev/null eth0"
	w.start("dhclient -6 -P -N -d" + files)
	w.until("address", w.said("new_ip6_address=2001:db8:500::50"))
	w.until("prefix", w.said("new_ip6_prefix=2001:db8:600::/56"))
	w.until("session", func() bool {
		return len(w.live) > 0 && w.live[0].up == access.Families{V6: true, Delegated: true}
	})
	testkit.Equal(t, w.live[0].has.IPv6, netip.MustParsePrefix("2001:db8:500::50/128"), "address")
	testkit.Equal(t, w.live[0].has.Delegated, netip.MustParsePrefix("2001:db8:600::/56"), "prefix")
	w.start("dhclient -6 -r -P -N -d" + files)
	w.until("released", func() bool { return len(w.live) == 0 })
}

// Kea gives a real client its address through us: relayed, with Kea's lease; as its proxy, with a shorter one of ours.
func TestKea(t *testing.T) {
	for _, proxy := range []bool{false, true} {
		t.Run(fmt.Sprint("proxy ", proxy), func(t *testing.T) {
			w := newWire(t, "kea-dhcp4", "dhclient")
			upstreamKea(t, w, proxy)
			w.start("dhclient -4 -d -lf " + w.dir + "/leases -pf " + w.dir + "/pid -sf " + w.script() +
				" -cf /dev/null eth0")
			w.until("address", w.said("new_ip_address=172.16.0.50"))
			server, lease := "198.18.77.2", "7200"
			if proxy {
				server, lease = "198.18.77.1", "3600"
			}
			w.until("server", w.said("new_dhcp_server_identifier="+server))
			w.until("lease", w.said("new_dhcp_lease_time="+lease))
			testkit.Equal(t, w.live[0].up, access.Families{V4: true}, "passing")
			testkit.Equal(t, w.live[0].has.Gateway, netip.MustParseAddr("172.16.0.1"), "gateway")
		})
	}
}
