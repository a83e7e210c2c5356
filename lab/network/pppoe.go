// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/ppp"
	"isthmus/controlplane/pppoe"
	"isthmus/lab/dialer"
	"isthmus/lab/frames"
)

// modem is a home's PPPoE client: frames on its wire, packets on a TUN device, as the kernel's pppoe would have them,
// which not every kernel has. One lock for both readers and the timer.
type modem struct {
	mu     sync.Mutex
	node   string
	client *dialer.Client
	began  time.Time
	timer  *time.Timer
	wire   *os.File
	device *os.File // ppp0
	own    [6]byte
	peer   [6]byte // concentrator; broadcast before its first frame
	hosts  chan []string
	frame  []byte
}

// startPPPoE has a home dial, and dial again when its session ends.
func (l *Lab) startPPPoE(ctx context.Context, i int) error {
	user := HomeUser(i)
	m := &modem{node: homeNode(i), began: time.Now(), peer: [6]byte{255, 255, 255, 255, 255, 255},
		hosts: make(chan []string, 16)}
	mac, _ := net.ParseMAC(homeOf(i).MAC)
	m.own = [6]byte(mac)
	err := inside(m.node, func() (err error) {
		if m.device, err = tun("ppp0"); err != nil {
			return err
		}
		l.closers = append(l.closers, m.device)
		if m.wire, err = frames.Open("wan"); err == nil {
			l.closers = append(l.closers, m.wire)
		}
		return err
	})
	if err != nil {
		return err
	}
	// The kernel makes its addresses of the router's advertisements, as behind any point-to-point link.
	if err := inside(m.node, func() error {
		return sysctl(map[string]string{"ipv6/conf/ppp0/accept_ra": "2", "ipv6/conf/ppp0/addr_gen_mode": "1",
			"ipv6/conf/ppp0/router_solicitations": "-1"})
	}); err != nil {
		return err
	}
	if err := l.configureHosts(ctx, []string{m.node + " link set ppp0 mtu 1492 up"}); err != nil {
		return err
	}
	config := dialer.NewConfig(user, HomePassword(user), access.CHAP, access.MSCHAPv2, access.PAP)
	config.PPP.Now, config.PPP.Random, config.Repeat = m.now, rand.Uint64, time.Second
	m.client = dialer.New(m, config)
	m.timer = time.AfterFunc(time.Hour, m.expire)
	go m.fromWire()
	go m.fromDevice()
	go m.configure(l)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client.Dial()
	return nil
}

// configure runs ip for what the client was given.
func (m *modem) configure(l *Lab) {
	for lines := range m.hosts {
		for _, line := range lines {
			if err := command(context.Background(), "ip", append([]string{"-n", Prefix + m.node},
				fields(line)...)...); err != nil &&
				!l.closing.Load() {
				l.problem("%s: %v", m.node, err)
			}
		}
	}
}

func (m *modem) fromWire() {
	in := make([]byte, largest)
	for {
		n, err := m.wire.Read(in)
		if err != nil {
			return
		}
		if n < 14 || [6]byte(in[:6]) != m.own {
			continue
		}
		kind, payload := binary.BigEndian.Uint16(in[12:]), in[14:n]
		if kind != pppoe.EtherDiscovery && kind != pppoe.EtherSession {
			continue
		}
		m.mu.Lock()
		m.peer = [6]byte(in[6:12])
		if packet := m.ip4Of(kind, payload); packet != nil {
			m.device.Write(packet)
		} else {
			m.client.Receive(kind, payload)
		}
		m.mu.Unlock()
	}
}

// ip4Of is the IPv4 packet in a frame of the session, nil without one.
func (m *modem) ip4Of(kind uint16, frame []byte) []byte {
	_, id, payload, ok := pppoe.Header(frame)
	if kind == pppoe.EtherSession && ok && m.client.Online() && id == m.client.ID && len(payload) > 2 &&
		binary.BigEndian.Uint16(payload) == ppp.IPv4 {
		return payload[2:]
	}
	return nil
}

func (m *modem) fromDevice() {
	in := make([]byte, largest)
	for {
		n, err := m.device.Read(in)
		if err != nil {
			return
		}
		m.mu.Lock()
		if m.client.Online() && n > 0 {
			protocol := uint16(ppp.IPv4)
			if in[0]>>4 == 6 {
				protocol = ppp.IPv6
			}
			b := pppoe.AppendHeader(nil, 0, m.client.ID)
			b = binary.BigEndian.AppendUint16(b, protocol)
			m.Send(m.client, pppoe.EtherSession, pppoe.Finish(append(b, in[:n]...)))
		}
		m.mu.Unlock()
	}
}

func (m *modem) expire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client.Idle() {
		m.client.Dial()
		return
	}
	m.client.Expire()
}

func (m *modem) now() time.Duration { return time.Since(m.began) + 1 }

// dialer.Env

func (m *modem) Send(_ *dialer.Client, etherType uint16, payload []byte) {
	to := m.peer
	if etherType == pppoe.EtherDiscovery && len(payload) > 1 && payload[1] == pppoe.PADI {
		to = [6]byte{255, 255, 255, 255, 255, 255}
	}
	m.frame = append(append(m.frame[:0], to[:]...), m.own[:]...)
	m.frame = binary.BigEndian.AppendUint16(m.frame, etherType)
	m.frame = append(m.frame, payload...)
	m.wire.Write(m.frame) // lost, as on any link, when it does not go
}

func (m *modem) Wake(_ *dialer.Client, at time.Duration) {
	if at == 0 {
		m.timer.Stop()
		return
	}
	m.timer.Reset(max(at-m.now(), time.Millisecond))
}

func (m *modem) Up(c *dialer.Client, f access.Families) {
	n := c.Link.Network()
	var lines []string
	if f.V4 {
		lines = append(lines, fmt.Sprintf("addr replace %s peer %s dev ppp0", netip.AddrFrom4(n.Local),
			netip.AddrFrom4(n.Remote)),
			"-4 route replace default dev ppp0")
	}
	if f.V6 {
		id := binary.BigEndian.AppendUint64(nil, n.LocalID)
		local := netip.AddrFrom16([16]byte(append([]byte{0xfe, 0x80, 0, 0, 0, 0, 0, 0}, id...)))
		lines = append(lines, fmt.Sprintf("-6 addr replace %s/64 dev ppp0 nodad", local)) // it solicits routers then
	}
	m.later(lines)
}

func (m *modem) later(lines []string) {
	select {
	case m.hosts <- lines:
	default:
	}
}

func (m *modem) Packet(_ *dialer.Client, ipv6 []byte) { m.device.Write(ipv6) }

// Ended: a modem dials again.
func (m *modem) Ended(*dialer.Client, access.Cause, string) {
	m.peer = [6]byte{255, 255, 255, 255, 255, 255}
	m.later([]string{"-4 addr flush dev ppp0"})
	m.timer.Reset(time.Second)
}
