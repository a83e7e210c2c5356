// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

// wire is the world on a veth, in real time, with a client's namespace at the other end. It answers ARP and neighbour
// solicitations for the gateway, as the data plane does.
type wire struct {
	*world
	fd    int
	mac   [6]byte
	space string
	dir   string
	each  func() // while it waits; may be nil
}

func command(t testing.TB, line string) {
	t.Helper()
	words := strings.Fields(line)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	testkit.FatalIf(t, err != nil, "%s: %v %s", line, err, out)
}

func newWire(t *testing.T, programs ...string) *wire {
	for _, p := range append(programs, "ip", "ethtool") {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(p, " is not installed")
		}
	}
	name := fmt.Sprintf("dhcp%d", os.Getpid()%10000)
	w := &wire{world: newWorld(t), space: name, dir: t.TempDir()}
	if exec.Command("ip", "netns", "add", name).Run() != nil {
		t.Skip("no network namespaces")
	}
	t.Cleanup(func() {
		exec.Command("ip", "link", "del", name).Run()
		exec.Command("ip", "netns", "del", name).Run()
	})
	command(t, "ip link add "+name+" type veth peer name eth0 netns "+name)
	command(t, "ip netns exec "+name+" ethtool -K eth0 tx off") // veth leaves checksums out
	command(t, "ip link set "+name+" up")
	command(t, "ip -n "+name+" link set lo up")
	command(t, "ip -n "+name+" link set eth0 up")
	dev, err := net.InterfaceByName(name)
	testkit.Must(t, err)
	w.mac = [6]byte(dev.HardwareAddr)
	w.router.MAC = w.mac
	all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})
	w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK, int(all))
	testkit.Must(t, err)
	t.Cleanup(func() { unix.Close(w.fd) })
	testkit.Must(t, unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: dev.Index}))
	w.now = time.Now()
	w.s = New(w, w.c)
	return w
}

func (w *wire) Send(f *access.Frame) { w.write(f.Line.MAC, f.EtherType, f.Payload) }

func (w *wire) write(to [6]byte, kind uint16, payload []byte) {
	b := append(append(to[:], w.mac[:]...), byte(kind>>8), byte(kind))
	if _, err := unix.Write(w.fd, append(b, payload...)); err != nil {
		w.t.Error(err)
	}
}

// until serves the client until something is so.
func (w *wire) until(what string, so func() bool) {
	w.t.Helper()
	buffer := make([]byte, 2048)
	for end := time.Now().Add(testkit.Limit / 3); !so(); {
		testkit.FatalIf(w.t, time.Now().After(end), "%s: not within %v", what, testkit.Limit)
		unix.Poll([]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}, 20)
		for {
			n, from, err := unix.Recvfrom(w.fd, buffer, 0)
			if err != nil || n < 14 {
				break
			}
			if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING {
				w.take([6]byte(buffer[6:12]), binary.BigEndian.Uint16(buffer[12:]), buffer[14:n])
			}
		}
		if w.each != nil {
			w.each()
		}
		w.run()
		w.wait(time.Since(w.now))
	}
}

// take is what the data plane does with a frame.
func (w *wire) take(from [6]byte, kind uint16, b []byte) {
	f := access.Frame{Line: access.Line{Port: "access", MAC: from}, EtherType: kind, Payload: b}
	switch kind {
	case ethernetIPv4:
		if d, ok := ipv4(b); ok && d.dest == serverPort4 {
			f.Reason = access.DHCP
			w.s.Frame(&f)
		}
	case ethernetIPv6:
		switch d, ok := ipv6(b); {
		case ok && d.dest == serverPort6:
			f.Reason = access.DHCPv6
			w.s.Frame(&f)
		case ok && d.protocol == protocolICMP && d.body[0] == 133:
			f.Reason = access.RouterSolicitation
			w.s.Frame(&f)
		case ok && d.protocol == protocolICMP && d.body[0] == 135 && len(d.body) >= 24:
			w.neighbour(from, &d)
		}
	case ethernetARP:
		if len(b) >= 28 && bytes.Equal(b[24:28], []byte{100, 64, 0, 1}) {
			answer := append([]byte{0, 1, 8, 0, 6, 4, 0, 2}, w.mac[:]...)
			answer = append(append(append(answer, b[24:28]...), from[:]...), b[14:18]...)
			w.write(from, ethernetARP, answer)
		}
	}
}

func (w *wire) neighbour(from [6]byte, d *datagram) {
	us := w.router.LinkLocal
	if netip.AddrFrom16([16]byte(d.body[8:24])) != us || d.from.IsUnspecified() {
		return
	}
	body := append([]byte{136, 0, 0, 0, 0xe0, 0, 0, 0}, us.AsSlice()...)
	answer := datagram{from: us, to: d.from, protocol: protocolICMP, body: append(append(body, 2, 1), w.mac[:]...)}
	w.write(from, ethernetIPv6, answer.packet())
}

// start runs a program in the client's namespace until the test ends.
func (w *wire) start(line string) {
	c := exec.Command("ip", "netns", "exec", w.space, "sh", "-c", "exec "+line)
	c.Dir, c.WaitDelay = w.dir, time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	testkit.Must(w.t, c.Start())
	w.t.Cleanup(func() {
		pids, _ := exec.Command("ip", "netns", "pids", w.space).Output()
		for _, pid := range strings.Fields(string(pids)) {
			if n, err := strconv.Atoi(pid); err == nil {
				unix.Kill(n, unix.SIGKILL)
			}
		}
		c.Wait()
		if w.t.Failed() {
			w.t.Logf("%s: %s", line, out.Bytes())
		}
	})
}

// script is a client's hook that only notes its environment; said returns whether it noted a line.
func (w *wire) script() string {
	path := filepath.Join(w.dir, "hook")
	testkit.Must(w.t, os.WriteFile(path, []byte("#!/bin/sh\nenv >> "+w.dir+"/said\n"), 0o700))
	return path
}

func (w *wire) said(line string) func() bool {
	return func() bool {
		b, _ := os.ReadFile(filepath.Join(w.dir, "said"))
		return strings.Contains(string(b), line+"\n")
	}
}

func (w *wire) shows(what, text string) func() bool {
	return func() bool {
		out, _ := exec.Command("ip", strings.Fields("-n "+w.space+" "+what)...).Output()
		return strings.Contains(string(out), text)
	}
}

// The kernel takes an address and a route out of router advertisements, and loses the route when we leave.
func TestKernelRA(t *testing.T) {
	w := newWire(t)
	w.until("address", w.shows("-6 addr show dev eth0 scope global", "2001:db8:1:"))
	w.until("route", w.shows("-6 route", "default via "+w.router.LinkLocal.String()))
	w.live[0].client.Ended(access.AdminReset)
	w.until("route gone", func() bool { return !w.shows("-6 route", "default via")() })
}

func TestDhclient(t *testing.T) {
	w := newWire(t, "dhclient")
	common := " -d -lf " + w.dir + "/leases -pf " + w.dir + "/pid -sf " + w.script() + " -cf /dev/null eth0"
	w.start("dhclient -4" + common)
	w.until("address", w.said("new_ip_address=100.64.0.2"))
	w.until("router", w.said("new_routers=100.64.0.1"))
	w.until("lease", w.said("new_dhcp_lease_time=3600"))
	w.until("session", func() bool { return len(w.live) > 0 && w.live[0].up.V4 })
}

func TestDhclient6(t *testing.T) {
	w := newWire(t, "dhclient")
	w.until("link-local address", w.shows("-6 addr show dev eth0 scope link -tentative", "fe80"))
	w.start("dhclient -6 -P -N -d -lf " + w.dir + "/leases -pf " + w.dir + "/pid -sf " + w.script() +
		" -cf /dev/null eth0")
	w.until("address", w.said("new_ip6_address=2001:db8:1::1"))
	w.until("prefix", w.said("new_ip6_prefix=2001:db8:100::/56"))
	w.until("session", func() bool { return w.live[0].up.V6 && w.live[0].up.Delegated })
}

func TestDhcpcd(t *testing.T) {
	w := newWire(t, "dhcpcd")
	path := filepath.Join(w.dir, "dhcpcd.conf")
	testkit.Must(t, os.WriteFile(path, []byte("duid\nnoipv4ll\noption rapid_commit\nscript "+w.script()+
		"\ninterface eth0\nipv6rs\nia_na 1\nia_pd 2\n"), 0o600))
	w.start("unshare -m sh -c 'mount -t tmpfs none /run; mount -t tmpfs none /var/lib/dhcpcd; " +
		"exec dhcpcd -B -f " + path + " eth0'")
	w.until("address", w.said("new_ip_address=100.64.0.2"))
	w.until("DHCPv6 address", w.said("new_dhcp6_ia_na1_ia_addr1=2001:db8:1::1"))
	w.until("prefix", w.said("new_dhcp6_ia_pd1_prefix1=2001:db8:100::"))
	testkit.Equal(t, w.signIns, 1, "sign-ins")
}

func TestWideClient(t *testing.T) {
	w := newWire(t, "dhcp6c")
	path := filepath.Join(w.dir, "dhcp6c.conf")
	testkit.Must(t, os.WriteFile(path, []byte("interface eth0 { send ia-pd 0; send rapid-commit; "+
		"script \""+w.script()+"\"; };\n"+
		"id-assoc pd 0 { prefix-interface lo { sla-id 1; sla-len 8; }; };\n"), 0o600))
	w.until("link-local address", w.shows("-6 addr show dev eth0 scope link -tentative", "fe80"))
	w.start("dhcp6c -f -D -c " + path + " -p " + w.dir + "/pid eth0")
	w.until("prefix", w.shows("-6 addr show dev lo", "2001:db8:100:1:"))
	w.until("session", func() bool { return w.live[0].up.Delegated })
}
