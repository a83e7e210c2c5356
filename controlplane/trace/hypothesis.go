// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"isthmus/controlplane/checksum"
)

// Hypothesis is a packet to ask about, in an operator's words.
type Hypothesis struct {
	Session            string // absent: the session with the address
	Subscriber         string // whose session it is, in place of Session
	UE                 string // absent: the session's address
	Port, Interface    string // by which it comes; absent: as the session or the routes say
	To, Protocol, TEID string
	UEPort, Length     uint16
	DSCP               uint8
	Downlink           bool
}

// Rows reads rows of a table of `show`, or the interfaces of the running configuration, into a slice of structs.
// query is as in GET /v1/show.
type Rows func(table string, query url.Values, rows any) error

// maxTunnels is how many rules are looked at for the end of any tunnel.
const maxTunnels = "64"

// of asks for the rows of a key.
func of(key string) url.Values { return url.Values{"key": {key}} }

type sessionRow struct {
	Name         string `json:"name"`
	Port         string `json:"port"`
	STag         uint16 `json:"s_tag"`
	CTag         uint16 `json:"c_tag"`
	PPPoESession uint16 `json:"pppoe_session"`
	MAC          string `json:"mac"`
	UEIP4        string `json:"ue_ip4"`
	UEIP6        string `json:"ue_ip6"`
	Encap        string `json:"encap"`
	TEIDLocal    uint32 `json:"teid_local"`
}

type subscriberRow struct {
	Object string `json:"object"`
	State  string `json:"state"`
}

// wireline: it has an endpoint on an access port, which may be without tags.
func (s *sessionRow) wireline() bool { return strings.HasPrefix(s.Encap, "qinq") }

type ruleRow struct {
	Session   string `json:"session"`
	TEIDLocal uint32 `json:"teid_local"`
	Local     string `json:"local"`
	Peer      string `json:"peer"`
	QFI       *uint8 `json:"qfi"`
}

type portRow struct {
	Name string `json:"name"`
	Role string `json:"role"`
	MAC  string `json:"mac"`
}

// Frame makes the frame of a packet from or to a UE, as it would come by its port, and fills in h.Port.
func (h *Hypothesis) Frame(rows Rows) ([]byte, error) {
	to, port, err := h.target()
	if err != nil {
		return nil, err
	}
	if err := h.named(rows); err != nil {
		return nil, err
	}
	var sessions []sessionRow
	if err := rows("session", of(cmp.Or(h.Session, h.UE)), &sessions); err != nil {
		return nil, err
	}
	ue, meant, err := h.subscriber(sessions, to)
	if err != nil {
		return nil, err
	}
	packet, err := h.packet(ue, to, port)
	if err != nil {
		return nil, err
	}
	var ports []portRow
	if err := rows("port", nil, &ports); err != nil {
		return nil, err
	}
	s, err := h.one(meant)
	switch {
	case err != nil:
		return nil, err
	case s != nil && s.wireline() && !h.Downlink:
		return h.fromSubscriber(s, ports, packet)
	case s != nil && s.TEIDLocal != 0 && s.wireline() == h.Downlink: // from the UPF to a subscriber, from a UE
		return h.inTunnel(s, rows, ports, packet)
	case h.TEID != "" && !h.Downlink:
		return h.inTunnel(&sessionRow{}, rows, ports, packet)
	case h.TEID != "":
		return nil, errors.New("a packet of the data network has no tunnel: --teid says nothing of it")
	case h.Downlink:
		return h.enter(rows, ports, packet, func(all []interfaceRow) (*interfaceRow, error) {
			return towards(rows, all, to, ue)
		})
	case s != nil:
		return nil, fmt.Errorf("session %s has no tunnel (show rule); --teid asks all the same", s.Name)
	}
	return nil, fmt.Errorf("no session has the address %s (show session); --teid asks all the same", ue)
}

// named makes a session of the subscriber.
func (h *Hypothesis) named(rows Rows) error {
	switch {
	case h.Session == "" && h.Subscriber == "" && h.UE == "":
		return errors.New("give --ue, --session, --subscriber or a capture")
	case h.Session != "" && h.Subscriber != "":
		return errors.New("give --session or --subscriber, not both")
	case h.Subscriber == "":
		return nil
	}
	var list []subscriberRow
	if err := rows("subscriber", of(h.Subscriber), &list); err != nil {
		return err
	}
	switch {
	case len(list) == 0:
		return fmt.Errorf("there is no subscriber %q; isthmus show subscriber has all", h.Subscriber)
	case len(list) > 1:
		return fmt.Errorf("%q names %d sessions; choose one by --session, such as %s or %s",
			h.Subscriber, len(list), list[0].Object, list[1].Object)
	case list[0].Object == "":
		return fmt.Errorf("subscriber %q is %s and has no session; isthmus show subscriber %s says why",
			h.Subscriber, list[0].State, h.Subscriber)
	}
	h.Session = list[0].Object
	return nil
}

func (h *Hypothesis) target() (netip.Addr, uint16, error) {
	host, text, err := net.SplitHostPort(h.To)
	if err != nil {
		host, text = h.To, "80"
	}
	to, err := netip.ParseAddr(host)
	port, again := strconv.ParseUint(text, 10, 16)
	if err != nil || again != nil {
		return to, 0, fmt.Errorf("--to %q is not ADDRESS[:PORT]", h.To)
	}
	return to, uint16(port), nil
}

// subscriber is the UE's address, and the sessions that may be meant: the named one, or those that have the address.
func (h *Hypothesis) subscriber(sessions []sessionRow, to netip.Addr) (ue netip.Addr, meant []*sessionRow, err error) {
	if h.UE != "" {
		if ue, err = netip.ParseAddr(h.UE); err != nil {
			return ue, nil, fmt.Errorf("--ue %q is no address", h.UE)
		}
	}
	for i := range sessions {
		if s := &sessions[i]; h.Session == "" && s.has(ue) || h.Session != "" && s.Name == h.Session {
			meant = append(meant, s)
		}
	}
	switch {
	case h.Session != "" && len(meant) == 0:
		return ue, nil, fmt.Errorf("there is no session %s (show session)", h.Session)
	case h.UE == "":
		if ue = meant[0].address(to.Is4()); !ue.IsValid() {
			return ue, nil, fmt.Errorf("session %s has no address of the IP version of --to", h.Session)
		}
	}
	if to.Is4() != ue.Is4() {
		return ue, nil, errors.New("--ue and --to are of different IP versions")
	}
	return ue, meant, nil
}

// has: an address is the session's.
func (s *sessionRow) has(ue netip.Addr) bool {
	return slices.ContainsFunc([]string{s.UEIP4, s.UEIP6}, func(text string) bool {
		p, err := parsePrefix(text)
		return err == nil && p.Contains(ue)
	})
}

// address is an address of the session: the first one of a prefix that is no router's (RFC 4291 section 2.6.1).
func (s *sessionRow) address(four bool) netip.Addr {
	text := s.UEIP6
	if four {
		text = s.UEIP4
	}
	p, err := parsePrefix(text)
	switch {
	case err != nil || p.Addr().Is4() != four:
		return netip.Addr{}
	case p.IsSingleIP() || p.Masked().Addr() != p.Addr():
		return p.Addr()
	}
	return p.Addr().Next()
}

// one is the session that is meant, or nil. A packet of the data network needs none: its interface says the VRF.
func (h *Hypothesis) one(meant []*sessionRow) (*sessionRow, error) {
	switch {
	case len(meant) == 0:
		return nil, nil
	case len(meant) == 1 || h.Downlink && !slices.ContainsFunc(meant, (*sessionRow).wireline):
		return meant[0], nil
	}
	var names []string
	for _, s := range meant {
		names = append(names, s.Name)
	}
	if len(names) > 8 {
		names = append(names[:8], "…")
	}
	return nil, fmt.Errorf("sessions %s have the address %s: say which: --session", strings.Join(names, ", "), h.UE)
}

// packet is the IP packet inside.
func (h *Hypothesis) packet(ue, to netip.Addr, port uint16) ([]byte, error) {
	from, dport, sport := ue, port, h.UEPort
	if h.Downlink {
		from, to, dport, sport = to, ue, h.UEPort, port
	}
	protocol, ok := map[string]byte{"udp": 17, "tcp": 6, "icmp": 1}[h.Protocol]
	if !ok {
		return nil, fmt.Errorf("--protocol %q is none of udp, tcp, icmp", h.Protocol)
	}
	if protocol == 1 && !ue.Is4() {
		protocol = 58
	}
	header := 20
	if !ue.Is4() {
		header = 40
	}
	if int(h.Length) < header+20 || h.Length > 9000 {
		return nil, fmt.Errorf("--length %d: give %d to 9000", h.Length, header+20)
	}
	p := make([]byte, h.Length)
	if ue.Is4() {
		ip4(p, from, to, protocol, h.DSCP)
	} else {
		ip6(p, from, to, protocol, h.DSCP)
	}
	transport(p[header:], protocol, sport, dport)
	if protocol == 1 || protocol == 58 || protocol == 6 {
		fixSum(p, header, protocol)
	}
	return p, nil
}

func ip4(p []byte, from, to netip.Addr, protocol, dscp byte) {
	p[0], p[1], p[8], p[9] = 0x45, dscp<<2, 64, protocol
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	copy(p[12:], from.AsSlice())
	copy(p[16:], to.AsSlice())
	binary.BigEndian.PutUint16(p[10:], checksum.Of(p[:20], 0))
}

func ip6(p []byte, from, to netip.Addr, protocol, dscp byte) {
	p[0], p[1], p[6], p[7] = 0x60|dscp>>2, dscp<<6, protocol, 64
	binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
	copy(p[8:], from.AsSlice())
	copy(p[24:], to.AsSlice())
}

func transport(t []byte, protocol byte, sport, dport uint16) {
	switch protocol {
	case 1:
		t[0] = 8
		return
	case 58:
		t[0] = 128
		return
	}
	binary.BigEndian.PutUint16(t, sport)
	binary.BigEndian.PutUint16(t[2:], dport)
	if protocol == 17 {
		binary.BigEndian.PutUint16(t[4:], uint16(len(t)))
		return
	}
	t[12], t[13] = 5<<4, 2 // SYN
}

// fixSum is the transport's checksum (RFC 1071), with the pseudo-header where it has one.
func fixSum(p []byte, header int, protocol byte) {
	at := header + map[byte]int{1: 2, 58: 2, 6: 16, 17: 6}[protocol]
	sum := uint32(0)
	if protocol != 1 {
		addresses := p[12:20]
		if header == 40 {
			addresses = p[8:40]
		}
		sum = checksum.Sum(addresses, uint32(protocol)+uint32(len(p)-header))
	}
	binary.BigEndian.PutUint16(p[at:], checksum.Of(p[header:], sum))
}

var someone = [6]byte{2, 0, 0, 0, 0, 1}

func ethernet(to, from [6]byte, rest ...[]byte) []byte {
	b := append(append([]byte{}, to[:]...), from[:]...)
	for _, r := range rest {
		b = append(b, r...)
	}
	for len(b) < 60 {
		b = append(b, 0)
	}
	return b
}

func ethertype(packet []byte) []byte {
	if packet[0]>>4 == 4 {
		return []byte{8, 0}
	}
	return []byte{0x86, 0xdd}
}

func portMAC(ports []portRow, name string) ([6]byte, error) {
	var names []string
	for _, p := range ports {
		if p.Name == name {
			return ParseMAC(p.MAC)
		}
		names = append(names, p.Name)
	}
	return [6]byte{}, fmt.Errorf("there is no port %q; there are: %s", name, strings.Join(names, ", "))
}

func (h *Hypothesis) fromSubscriber(s *sessionRow, ports []portRow, packet []byte) ([]byte, error) {
	if h.Interface != "" || h.TEID != "" {
		return nil, fmt.Errorf("session %s is on an access port: --interface and --teid say nothing of it",
			s.Name)
	}
	if h.Port == "" {
		h.Port = s.Port
	}
	to, err := portMAC(ports, h.Port)
	if err != nil {
		return nil, err
	}
	from, err := ParseMAC(s.MAC)
	if err != nil {
		return nil, err
	}
	tags := (&interfaceRow{OuterVLAN: s.STag, InnerVLAN: s.CTag}).tags()
	if s.PPPoESession == 0 {
		return ethernet(to, from, tags, ethertype(packet), packet), nil
	}
	ppp := []byte{0, 0x21}
	if packet[0]>>4 == 6 {
		ppp = []byte{0, 0x57}
	}
	length := len(packet) + 2
	pppoe := []byte{0x88, 0x64, 0x11, 0}
	pppoe = binary.BigEndian.AppendUint16(pppoe, s.PPPoESession)
	pppoe = binary.BigEndian.AppendUint16(pppoe, uint16(length))
	return ethernet(to, from, tags, pppoe, ppp, packet), nil
}

// inTunnel is a G-PDU to the F-TEID of the session's first rule that has one.
func (h *Hypothesis) inTunnel(s *sessionRow, rows Rows, ports []portRow, packet []byte) ([]byte, error) {
	var rules []ruleRow
	which := of(s.Name)
	if s.Name == "" {
		which = url.Values{"limit": {maxTunnels}}
	}
	if err := rows("rule", which, &rules); err != nil {
		return nil, err
	}
	teid, local, peer := s.TEIDLocal, netip.Addr{}, netip.Addr{}
	var qfi *uint8
	for _, r := range rules {
		if s.Name != "" && r.Session != s.Name {
			continue
		}
		if a, err := netip.ParseAddr(r.Local); err == nil && !local.IsValid() && r.TEIDLocal != 0 {
			local = a
			if s.Name != "" {
				teid, qfi = r.TEIDLocal, r.QFI
			}
		}
		if a, err := netip.ParseAddr(r.Peer); err == nil && !peer.IsValid() {
			peer = a
		}
	}
	if h.TEID != "" {
		t, err := strconv.ParseUint(h.TEID, 0, 32)
		if err != nil {
			return nil, fmt.Errorf("--teid %q is no TEID", h.TEID)
		}
		teid = uint32(t)
	}
	if !local.IsValid() {
		return nil, errors.New("no session has a tunnel (show rule)")
	}
	if !peer.IsValid() || peer.Is4() != local.Is4() {
		peer = local.Next()
	}
	gtpu := gtpuHeader(qfi, h.Downlink)
	binary.BigEndian.PutUint16(gtpu[2:], uint16(len(packet)+len(gtpu)-8))
	binary.BigEndian.PutUint32(gtpu[4:], teid)
	header := 20
	if !local.Is4() {
		header = 40
	}
	outer := make([]byte, header+8, header+8+len(gtpu)+len(packet))
	outer = append(append(outer, gtpu...), packet...)
	if local.Is4() {
		ip4(outer, peer, local, 17, 0)
	} else {
		ip6(outer, peer, local, 17, 0)
	}
	transport(outer[header:], 17, 2152, 2152)
	if header == 40 { // over IPv6 the checksum is no choice (RFC 8200 section 8.1)
		fixSum(outer, header, 17)
	}
	return h.enter(rows, ports, outer, func(all []interfaceRow) (*interfaceRow, error) {
		return withAddress(all, local)
	})
}

// gtpuHeader is that of a G-PDU without length and TEID, with a PDU Session Container where the rule has a QFI
// (TS 38.415 section 5.5.2).
func gtpuHeader(qfi *uint8, downlink bool) []byte {
	if qfi == nil {
		return []byte{0x30, 255, 0, 0, 0, 0, 0, 0}
	}
	direction := byte(0x10)
	if downlink {
		direction = 0
	}
	return []byte{0x34, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x85, 1, direction, *qfi, 0}
}

// FirstFrame reads the first frame of a capture, pcap or pcapng; of a pcapng with names of interfaces, *port is
// filled in.
func FirstFrame(path string, port *string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var magic [24]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var frame []byte
	enough := errors.New("enough")
	switch hex.EncodeToString(magic[:4]) {
	case "d4c3b2a1", "4d3cb2a1":
		var head [16]byte
		if _, err := io.ReadFull(f, head[:]); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		size := binary.LittleEndian.Uint32(head[8:])
		if size > 65535 {
			return nil, fmt.Errorf("%s: a packet of %d bytes", path, size)
		}
		frame = make([]byte, size)
		_, err = io.ReadFull(f, frame)
	default:
		f.Seek(0, io.SeekStart)
		err = ReadFrames(f, func(name string, _ time.Time, b []byte) error {
			frame = b
			if *port == "" {
				*port = name
			}
			return enough
		})
	}
	if err != nil && !errors.Is(err, enough) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if frame == nil {
		return nil, fmt.Errorf("%s: no received frame of Ethernet in it", path)
	}
	if *port == "" {
		return nil, errors.New("say by which port the packet comes: --port")
	}
	return frame, nil
}
