// SPDX-License-Identifier: Apache-2.0

// Command concentrator is pppoe on a network interface, for tests with real clients: it knows one user, answers pings
// as a data plane would, and says on standard output who came and went. SIGHUP is a restart that keeps its sessions.
package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/controlplane/access"
	"isthmus/controlplane/dhcp"
	"isthmus/controlplane/ppp"
	"isthmus/controlplane/ppp/chap"
	"isthmus/controlplane/pppoe"
)

const (
	user     = "homer"
	password = "secret"
)

type host struct {
	socket int
	mac    [6]byte
	calls  chan func()
	server *pppoe.Server
	dhcp   *dhcp.Server
	config pppoe.Config
	guests map[*guest]bool
	n      byte
}

func main() {
	name := flag.String("interface", "", "where subscribers are")
	method := flag.String("method", "", "pap, chap, mschapv2; empty: none")
	payload := flag.Uint("max-payload", 1492, "largest PPP packet")
	flag.Parse()
	h := &host{calls: make(chan func(), 1024), config: pppoe.DefaultConfig(), guests: map[*guest]bool{}}
	methods := map[string]access.Method{"pap": access.PAP, "chap": access.CHAP, "mschapv2": access.MSCHAPv2}
	h.config.PPP.Methods = nil
	if m, ok := methods[*method]; ok {
		h.config.PPP.Methods = []access.Method{m}
	}
	h.config.MaxPayload = map[string]uint16{"access": uint16(*payload)}
	if err := h.open(*name); err != nil {
		log.Fatal(err)
	}
	h.dhcp = dhcp.New(h, dhcp.DefaultConfig())
	h.server = pppoe.New(h, h.config, h.ipv6)
	go h.read()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	fmt.Println("ready")
	for {
		select {
		case call := <-h.calls:
			call()
		case <-hup:
			h.restart()
		}
	}
}

func (h *host) ipv6(s access.Session, line access.Line, send func([]byte),
	up func(access.Families, func(error))) pppoe.Link6 {
	return h.dhcp.OverPPP(s, line, send, up)
}

func (h *host) open(name string) error {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	h.mac = [6]byte(device.HardwareAddr)
	const everything = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8 // in network order
	if h.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, everything); err != nil {
		return err
	}
	return unix.Bind(h.socket, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: device.Index})
}

func (h *host) read() {
	for {
		b := make([]byte, 2048)
		n, from, err := unix.Recvfrom(h.socket, b, 0)
		if err != nil {
			log.Fatal(err)
		}
		if link, ok := from.(*unix.SockaddrLinklayer); !ok || link.Pkttype == unix.PACKET_OUTGOING || n < 14 {
			continue
		}
		f := &access.Frame{Line: access.Line{Port: "access", MAC: [6]byte(b[6:12])},
			EtherType: binary.BigEndian.Uint16(b[12:]), Payload: b[14:n]}
		if f.EtherType == pppoe.EtherDiscovery || f.EtherType == pppoe.EtherSession {
			h.calls <- func() { h.frame(f) }
		}
	}
}

// frame is what a data plane does: packets of sessions are its own, the rest is punted.
func (h *host) frame(f *access.Frame) {
	if _, _, payload, ok := pppoe.Header(f.Payload); ok && f.EtherType == pppoe.EtherSession && pong(payload) {
		h.Send(f)
		return
	}
	h.server.Frame(f)
}

// pong makes an answer of an ICMP echo request behind PPP's protocol.
func pong(b []byte) bool {
	switch {
	case len(b) >= 30 && binary.BigEndian.Uint16(b) == ppp.IPv4 && b[2] == 0x45 && b[11] == 1 && b[22] == 8:
		swap(b[14:18], b[18:22])
		answer(b[22:], 0)
	case len(b) >= 50 && binary.BigEndian.Uint16(b) == ppp.IPv6 && b[8] == 58 && b[42] == 128:
		swap(b[10:26], b[26:42])
		answer(b[42:], 129)
	default:
		return false
	}
	return true
}

func swap(a, b []byte) {
	was := bytes.Clone(a)
	copy(a, b)
	copy(b, was)
}

// answer changes the type of an ICMP message, and its checksum (RFC 1624).
func answer(b []byte, kind byte) {
	sum := uint32(^binary.BigEndian.Uint16(b[2:])) + uint32(^(uint16(b[0]) << 8)) + uint32(kind)<<8
	b[0] = kind
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum&0xffff+sum>>16))
}

// restart loses what the server knows, but for what it had kept.
func (h *host) restart() {
	h.server = pppoe.New(h, h.config, h.ipv6)
	for g := range h.guests {
		g.client = h.server.Restore(g, g.request.Line, g.request.PPPoE, g.state)
		fmt.Println("restored", g.client != nil)
	}
}

func (h *host) Now() time.Time { return time.Now() }

type timer struct{ stopped bool }

func (t *timer) Stop() { t.stopped = true }

func (h *host) After(d time.Duration, fn func()) access.Timer {
	t := &timer{}
	time.AfterFunc(d, func() {
		h.calls <- func() {
			if !t.stopped {
				fn()
			}
		}
	})
	return t
}

func (h *host) PortMAC(string) [6]byte { return h.mac }

func (h *host) Send(f *access.Frame) {
	b := append(append([]byte{}, f.Line.MAC[:]...), h.mac[:]...)
	b = append(binary.BigEndian.AppendUint16(b, f.EtherType), f.Payload...)
	if _, err := unix.Write(h.socket, b); err != nil {
		log.Print(err)
	}
}

func (h *host) Failed(_ *access.Request, why string) { fmt.Println("failed", why) }

func (h *host) SignIn(r *access.Request, c access.Client, done func(access.Session, *access.Verdict)) func() {
	return h.After(0, func() {
		v := &access.Verdict{Accept: knows(r), Message: "welcome"}
		if !v.Accept {
			v.Why, v.Message = "wrong password", "go away"
			fmt.Println("refused", r.User)
			done(nil, v)
			return
		}
		if r.Method == access.MSCHAPv2 {
			p, _ := chap.ParseResponse(r.Response)
			challenge := [16]byte(r.Challenge)
			hash := chap.NTHash(password)
			v.Success = chap.AuthenticatorResponse(hash, &p.NT, &challenge, &p.PeerChallenge, r.User)
		}
		h.n++
		g := &guest{host: h, request: *r, client: c, addresses: access.Addresses{
			IPv4: netip.AddrFrom4([4]byte{10, 64, 0, 1 + h.n}), Gateway: netip.MustParseAddr("10.64.0.1"),
			IPv6: netip.MustParsePrefix("fd00:64::/64"), Delegated: netip.MustParsePrefix("fd00:6400::/56"), DNS: []netip.Addr{netip.MustParseAddr("9.9.9.9")}}}
		h.guests[g] = true
		done(g, v)
	}).Stop
}

func knows(r *access.Request) bool {
	switch r.Method {
	case access.None:
		return true
	case access.PAP:
		return r.User == user && string(r.Password) == password
	case access.CHAP:
		want := chap.MD5(r.Identifier, password, r.Challenge)
		return r.User == user && bytes.Equal(r.Response, want[:])
	}
	p, ok := chap.ParseResponse(r.Response)
	challenge, hash := [16]byte(r.Challenge), chap.NTHash(password)
	return ok && r.User == user && p.NT == chap.NTResponse(&challenge, &p.PeerChallenge, r.User, hash)
}

// guest is a session.
type guest struct {
	host      *host
	request   access.Request
	client    access.Client
	addresses access.Addresses
	plan      access.Plan
	state     []byte
}

func (g *guest) ID() string                   { return g.request.User }
func (g *guest) Plan() *access.Plan           { return &g.plan }
func (g *guest) Addresses() *access.Addresses { return &g.addresses }
func (g *guest) Keep(state []byte)            { g.state = bytes.Clone(state) }

func (g *guest) Want(_ access.Families, _ *access.Addresses, done func(error)) {
	g.host.After(0, func() { done(nil) })
}

func (g *guest) Up(f access.Families, mtu uint16, _ access.KeepAlive, done func(error)) {
	fmt.Println("up", g.request.User, "ipv4", f.V4, "ipv6", f.V6, "mtu", mtu)
	g.host.After(0, func() { done(nil) })
}

func (g *guest) Down(cause access.Cause) {
	fmt.Println("down", g.request.User, "cause", cause)
	delete(g.host.guests, g)
}
