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

// upstreamKea has Kea in a namespace of its own, on 198.18.77.2, for a port of the wire.
func upstreamKea(t *testing.T, w *wire, proxy bool) {
	name := w.space + "k"
	command(t, "ip netns add "+name)
	t.Cleanup(func() { exec.Command("ip", "netns", "del", name).Run() })
	command(t, "ip link add "+name+" type veth peer name up0 netns "+name)
	t.Cleanup(func() { exec.Command("ip", "link", "del", name).Run() })
	for _, line := range []string{"ip addr add 198.18.77.1/24 dev " + name, "ip link set " + name + " up",
		"ip -n " + name + " addr add 198.18.77.2/24 dev up0", "ip -n " + name + " link set up0 up",
		"ip -n " + name + " link set lo up"} {
		command(t, line)
	}
	path := filepath.Join(w.dir, "kea.json")
	testkit.Must(t, os.WriteFile(path, []byte(keaConfig), 0o600))
	kea := exec.Command("ip", "netns", "exec", name, "kea-dhcp4", "-c", path)
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
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IP{198, 18, 77, 1}, Port: serverPort4})
	testkit.Must(t, err)
	t.Cleanup(func() { socket.Close() })
	w.c.Address = netip.MustParseAddr("198.18.77.1")
	w.ports["access"] = Port{V4: true, Proxy: proxy,
		Upstream: []netip.AddrPort{netip.MustParseAddrPort("198.18.77.2:67")}}
	w.configure()
	w.s.Upstream = func(server netip.AddrPort, packet []byte) { socket.WriteToUDPAddrPort(packet, server) }
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
			w.s.FromUpstream(w.ports["access"].Upstream[0], <-answers)
		}
	}
}

// Kea gives a real client its address by us: relayed, with Kea's lease; as its proxy, with a shorter one of ours.
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
